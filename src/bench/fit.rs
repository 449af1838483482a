//! How much work fits a budget; no clock, no I/O.

use super::engine::Estimate;

/// Rounds that are never left out: fewer say nothing about how far they scatter.
pub(super) const MIN_ROUNDS: u32 = 3;
/// Advice about a larger budget is rounded up to whole multiples of this, in seconds.
const BUDGET_STEP_S: f64 = 30.0;
/// An estimate from a small trial is uncertain, so advice adds this share to it.
const BUDGET_MARGIN: f64 = 1.2;

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
pub(super) fn fit(rounds: u32, estimate: Estimate, share_s: f64) -> Fit {
    let whole_s = estimate.setup_s + estimate.round_s * f64::from(rounds + 1);
    if whole_s <= share_s {
        return Fit { rounds, factor: None, whole_s };
    }
    let least = MIN_ROUNDS.min(rounds);
    for fewer in (least..rounds).rev() {
        if estimate.setup_s + estimate.round_s * f64::from(fewer + 1) <= share_s {
            return Fit { rounds: fewer, factor: None, whole_s };
        }
    }
    let least_s = estimate.setup_s + estimate.round_s * f64::from(least + 1);
    Fit { rounds: least, factor: Some(share_s / least_s), whole_s }
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

/// Returns a `--budget` with which a suite's share would hold all of its work.
pub(super) fn needed_budget(budget_s: f64, whole_s: f64, share_s: f64) -> String {
    // A share of nothing is left when earlier suites took all of the budget.
    let needed_s = (budget_s * whole_s / share_s.max(1.0)).max(budget_s + whole_s.min(share_s)) * BUDGET_MARGIN;
    let steps_s = (needed_s / BUDGET_STEP_S).ceil() * BUDGET_STEP_S;
    if steps_s % 60.0 == 0.0 { format!("{:.0}m", steps_s / 60.0) } else { format!("{steps_s:.0}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(round_s: f64) -> Estimate {
        Estimate { setup_s: 2.0, round_s }
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(fit(6, each(1.0), 9.0), Fit { rounds: 6, factor: None, whole_s: 9.0 });
    }

    #[test]
    fn rounds_are_left_out_before_the_size_shrinks() {
        assert_eq!(fit(6, each(1.0), 8.9).rounds, 5);
        assert_eq!(fit(6, each(1.0), 6.0), Fit { rounds: 3, factor: None, whole_s: 9.0 });
        let tight = fit(6, each(10.0), 21.0);
        assert_eq!((tight.rounds, tight.factor), (3, Some(0.5)));
    }

    #[test]
    fn a_single_round_stays_a_single_round() {
        assert_eq!(fit(1, each(10.0), 1.0).rounds, 1);
    }

    #[test]
    fn an_endless_estimate_does_not_divide_by_zero() {
        let fit = fit(6, each(f64::MAX), 0.0);
        assert_eq!((fit.rounds, fit.factor), (3, Some(0.0)));
        assert_eq!(needed_budget(120.0, 240.0, 60.0), "10m");
        assert_eq!(needed_budget(10.0, 20.0, 0.0), "4m");
        assert_eq!(in_words(22.4), "23 s");
        assert_eq!(in_words(500.0), "9 min");
    }
}
