//! How much work fits a budget; no clock, no I/O.

/// Rounds that are left out last: fewer say little about how far they scatter.
pub(super) const MIN_ROUNDS: u32 = 3;
/// How far a suite may go over its share before its rounds are given up: the shares are only a way to divide.
pub(super) const OVERTIME: f64 = 1.5;
/// How far a single round may go over what is left of the budget: trials err on the side of too long, and a figure is
/// worth more than none.
const PATIENCE: f64 = 2.0;
/// Advice about a larger budget is rounded up to whole multiples of this, in seconds.
const BUDGET_STEP_S: f64 = 30.0;
/// An estimate from a small trial is uncertain, so advice adds this share to it.
const BUDGET_MARGIN: f64 = 1.2;
/// Nobody waits longer for a benchmark; then a larger budget is no advice.
const BUDGET_MAX_S: f64 = 7_200.0;

/// How long a suite will take, from a trial with a small part of the work; in seconds, all places together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub(super) struct Estimate {
    /// Before and after all rounds, whatever the size.
    pub(super) fixed_s: f64,
    /// Before and after all rounds, in proportion to the size.
    pub(super) setup_s: f64,
    /// A round, whatever the size.
    pub(super) round_fixed_s: f64,
    /// A round, in proportion to the size.
    pub(super) round_s: f64,
}

impl Estimate {
    /// Returns the time of so many rounds, and the warm-up before them, at this share of the size.
    fn total_s(&self, rounds: u32, size: f64) -> f64 {
        let passes = f64::from(rounds) + 1.0;
        self.fixed_s + self.setup_s * size + (self.round_fixed_s + self.round_s * size) * passes
    }

    /// Returns the smaller of two estimates of the same: what disturbs a trial only ever makes it longer.
    pub(super) fn smaller(self, other: Self) -> Self {
        if other.total_s(1, 1.0) < self.total_s(1, 1.0) { other } else { self }
    }

    /// Adds another place's.
    pub(super) fn add(&mut self, other: Self) {
        self.fixed_s += other.fixed_s;
        self.setup_s += other.setup_s;
        self.round_fixed_s += other.round_fixed_s;
        self.round_s += other.round_s;
    }
}

/// What fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    /// Rounds that are to count.
    pub(super) rounds: u32,
    /// By how much a round has to shrink besides; `None` when it may stay as it is.
    pub(super) factor: Option<f64>,
    /// What the work as it was asked for would take, in seconds.
    pub(super) whole_s: f64,
}

/// Fits rounds (and one warm-up before them) into `share_s` seconds: rounds are left out first, since the size is what
/// makes results comparable with others; then, with three rounds left, the size shrinks.
pub(super) fn fit(rounds: u32, estimate: &Estimate, share_s: f64) -> Fit {
    let whole_s = estimate.total_s(rounds, 1.0);
    let least = MIN_ROUNDS.min(rounds);
    for fewer in (least..=rounds).rev() {
        if estimate.total_s(fewer, 1.0) <= share_s {
            return Fit { rounds: fewer, factor: None, whole_s };
        }
    }
    let fixed_s = estimate.total_s(least, 0.0);
    let factor = ((share_s - fixed_s) / (estimate.total_s(least, 1.0) - fixed_s)).clamp(0.0, 1.0);
    Fit { rounds: least, factor: Some(if factor.is_nan() { 0.0 } else { factor }), whole_s }
}

/// Returns how many of the rounds are run at the size that was settled on; `None` when even one would take longer than
/// what is left of the whole budget, by far.
pub(super) fn settle(rounds: u32, estimate: &Estimate, size: f64, share_s: f64, left_s: f64) -> Option<u32> {
    if estimate.total_s(rounds, size) <= share_s * OVERTIME {
        return Some(rounds);
    }
    (1..=rounds)
        .rev()
        .find(|fewer| estimate.total_s(*fewer, size) <= share_s * OVERTIME)
        .or_else(|| (estimate.total_s(1, size) <= left_s * PATIENCE).then_some(1))
}

/// Returns how many of the rounds still fit when one takes `pass_s` and `left_s` seconds are left; at least one, since
/// the warm-up is already paid for.
pub(super) fn rounds_left(rounds: u32, pass_s: f64, left_s: f64) -> u32 {
    (1..=rounds).rev().find(|fewer| pass_s * f64::from(*fewer) <= left_s).unwrap_or(1)
}

/// Returns a duration for a sentence: `22 s`, `9 min`.
pub(super) fn in_words(value_s: f64) -> String {
    const MINUTES_FROM_S: f64 = 120.0;
    if value_s < MINUTES_FROM_S {
        format!("{:.0} s", value_s.ceil())
    } else {
        format!("{:.0} min", (value_s / 60.0).ceil())
    }
}

/// Returns advice about a `--budget` with which a suite's share would hold all of its work, as the end of a sentence;
/// empty when that would be hours.
pub(super) fn budget_advice(budget_s: f64, whole_s: f64, share_s: f64) -> String {
    // A share of nothing is left when earlier suites took all of the budget.
    let needed_s = (budget_s * whole_s / share_s.max(1.0)).max(budget_s) * BUDGET_MARGIN;
    let steps_s = (needed_s / BUDGET_STEP_S).ceil() * BUDGET_STEP_S;
    if steps_s.is_nan() || steps_s > BUDGET_MAX_S {
        return String::new();
    }
    let budget = if steps_s % 60.0 == 0.0 { format!("{:.0}m", steps_s / 60.0) } else { format!("{steps_s:.0}s") };
    format!("; `--budget {budget}` runs it all")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(round_s: f64) -> Estimate {
        Estimate { setup_s: 2.0, round_s, ..Estimate::default() }
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(fit(6, &each(1.0), 9.0), Fit { rounds: 6, factor: None, whole_s: 9.0 });
    }

    #[test]
    fn rounds_are_left_out_before_the_size_shrinks() {
        assert_eq!(fit(6, &each(1.0), 8.9).rounds, 5);
        assert_eq!(fit(6, &each(1.0), 6.0), Fit { rounds: 3, factor: None, whole_s: 9.0 });
        let tight = fit(6, &each(10.0), 21.0);
        assert_eq!((tight.rounds, tight.factor), (3, Some(0.5)));
    }

    #[test]
    fn what_does_not_depend_on_the_size_is_left_out_of_the_shrinking() {
        let estimate = Estimate { fixed_s: 4.0, setup_s: 0.0, round_fixed_s: 1.0, round_s: 9.0 };
        // 4 s and four passes of 1 s stay; 36 s have to become 10 s.
        let fitted = fit(3, &estimate, 18.0);
        assert!((fitted.factor.unwrap() - 10.0 / 36.0).abs() < 1e-12);
        assert_eq!(fit(3, &estimate, 1.0).factor, Some(0.0));
    }

    #[test]
    fn a_size_that_cannot_shrink_further_costs_rounds_and_then_the_suite() {
        assert_eq!(settle(3, &each(1.0), 1.0, 5.0, 100.0), Some(3));
        assert_eq!(settle(3, &each(1.0), 1.0, 3.0, 100.0), Some(1));
        assert_eq!(settle(3, &each(40.0), 1.0, 3.0, 100.0), Some(1));
        assert_eq!(settle(3, &each(120.0), 1.0, 3.0, 100.0), None);
    }

    #[test]
    fn a_slow_warm_up_leaves_as_many_rounds_as_fit_and_at_least_one() {
        assert_eq!(rounds_left(6, 1.0, 10.0), 6);
        assert_eq!(rounds_left(6, 2.0, 5.0), 2);
        assert_eq!(rounds_left(6, 20.0, 5.0), 1);
    }

    #[test]
    fn an_endless_estimate_does_not_divide_by_zero() {
        let fit = fit(6, &each(f64::MAX), 0.0);
        assert_eq!((fit.rounds, fit.factor), (3, Some(0.0)));
        assert_eq!(budget_advice(120.0, 240.0, 60.0), "; `--budget 10m` runs it all");
        assert_eq!(budget_advice(10.0, f64::MAX, 0.0), "");
        assert_eq!(in_words(22.4), "23 s");
        assert_eq!(in_words(500.0), "9 min");
    }
}
