//! From a sample to the whole: the cost of a call, how the server shares its time, how sure that is; no clock, no I/O.

use serde::{Deserialize, Serialize};

use crate::measure::shape::Work;
use crate::measure::stats;

/// Resamples for an interval: the ends of a 95 % interval are then the fifth value from either side.
pub const RESAMPLES: usize = 200;
/// Error of the model itself, as a share: what no sample shows, because the real run comes at another moment and git's
/// calls are not quite those of the model. On a quiet machine 34 of 35 single predictions were off by less, where their
/// samples alone told of 0.5 % (`benches/accuracy.py`; the README has the table).
pub const MODEL_ERROR: f64 = 0.03;
/// Passes over the same entries that differ by more than this make no precise figure.
pub const MOST_DISAGREEMENT: f64 = 0.10;

/// Sums over some calls, enough for a least-squares fit of latency on path components.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Number of calls.
    pub n: f64,
    /// Components.
    pub c: f64,
    /// Components squared.
    pub cc: f64,
    /// Latency in seconds.
    pub l: f64,
    /// Components times latency.
    pub cl: f64,
}

impl Sums {
    /// Adds a call.
    pub fn add(&mut self, components: f64, latency_s: f64) {
        self.n += 1.0;
        self.c += components;
        self.cc += components * components;
        self.l += latency_s;
        self.cl += components * latency_s;
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.c += other.c;
        self.cc += other.cc;
        self.l += other.l;
        self.cl += other.cl;
    }

    /// Adds all of these.
    #[must_use]
    pub fn total<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut total = Self::default();
        for sums in all {
            total.merge(sums);
        }
        total
    }
}

/// The cost of a call: `a + b * components`, in seconds, neither negative.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Of the call itself.
    pub a: f64,
    /// Of each component of its path.
    pub b: f64,
}

impl Cost {
    /// Fits the cost to calls by least squares; `None` without calls.
    #[must_use]
    pub fn fit(sums: &Sums) -> Option<Self> {
        if sums.n < 1.0 {
            return None;
        }
        let spread = sums.n * sums.cc - sums.c * sums.c;
        let b = if spread > 1e-9 { (sums.n * sums.cl - sums.c * sums.l) / spread } else { -1.0 };
        let a = (sums.l - b * sums.c) / sums.n;
        Some(if b < 0.0 {
            Self { a: sums.l / sums.n, b: 0.0 }
        } else if a < 0.0 {
            // The least-squares line through the origin.
            Self { a: 0.0, b: if sums.cc > 0.0 { sums.cl / sums.cc } else { 0.0 } }
        } else {
            Self { a, b }
        })
    }

    /// Returns the time of some work, in seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of calls are far below 2^52")]
    pub fn of(&self, work: Work) -> f64 {
        self.a * work.calls as f64 + self.b * work.components as f64
    }
}

/// Returns how many requests the server works on at once, 1 to `threads`.
///
/// With `threads` in flight a call takes `threads / parallelism` times as long as alone. `alone` are calls made in
/// series, `loaded` the cost with all threads at work.
#[must_use]
pub fn parallelism(alone: &Sums, loaded: Cost, threads: f64) -> f64 {
    let same_under_load = loaded.a * alone.n + loaded.b * alone.c;
    if alone.n < 1.0 || same_under_load <= 0.0 {
        return threads;
    }
    (threads * alone.l / same_under_load).clamp(1.0, threads)
}

/// Returns when the last thread is done, in seconds, if the server shares its time evenly.
///
/// `work_s` is each thread's time while all of them are at work; `parallelism` how many requests the server works on
/// at once. With fewer threads left each of them is faster, until the server has room for all: taking the slowest
/// thread alone was 8 to 30 % too high on a saturated server, the aggregate rate 9 to 18 % too low on an idle one.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "there are at most 20 threads")]
pub fn last_end(work_s: &[f64], parallelism: f64) -> f64 {
    let mut left = stats::sorted(work_s);
    left.retain(|work| *work > 0.0);
    let threads = work_s.len() as f64;
    let full_load = threads.max(parallelism);
    let (mut now, mut done) = (0.0, 0.0);
    for (finished, work) in left.iter().enumerate() {
        let active = (left.len() - finished) as f64;
        let speed = full_load / active.max(parallelism);
        now += (work - done) / speed;
        done = *work;
    }
    now
}

/// A part of the prediction: its value, and what it would be with other samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Part {
    /// From all that counts, in seconds.
    pub mid_s: f64,
    /// From each pass alone, the cold one first.
    pub passes_s: Vec<f64>,
    /// From resampled blocks.
    pub resampled_s: Vec<f64>,
    /// How long the sampling took.
    pub sampled_s: f64,
    /// Calls in the sample.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Whether the sample was the whole.
    pub is_whole: bool,
    /// Whether a bound on untracked directories was met, so that the real work may be more.
    pub is_bounded: bool,
}

impl Part {
    /// Returns by how much the passes that count differ, as a share of the smaller one.
    ///
    /// The first pass is the cold one. Where the second agrees with it nothing was cold, and the two are compared;
    /// otherwise the later ones.
    #[must_use]
    pub fn disagreement(&self) -> f64 {
        let counting = counting(&self.passes_s);
        let low = counting.iter().copied().fold(f64::INFINITY, f64::min);
        let high = counting.iter().copied().fold(0.0, f64::max);
        if counting.len() < 2 || low <= 0.0 { 0.0 } else { high / low - 1.0 }
    }
}

/// Returns the passes that count: all when the first two agree, else those after the first.
#[must_use]
pub fn counting(passes_s: &[f64]) -> &[f64] {
    match passes_s {
        [cold, warm, ..] if (cold / warm - 1.0).abs() > MOST_DISAGREEMENT => &passes_s[1..],
        all => all,
    }
}

/// Returns the ends of the interval that encloses 95 % of resampled values and every pass that counts, widened by the
/// error of the model: independent errors add as squares.
#[must_use]
pub fn interval(mid: f64, resampled: &[f64], passes: &[f64]) -> (f64, f64) {
    let sorted = stats::sorted(resampled);
    let low = stats::quantile(&sorted, 0.025).unwrap_or(mid);
    let high = stats::quantile(&sorted, 0.975).unwrap_or(mid);
    let counting = counting(passes);
    let low = counting.iter().copied().fold(low.min(mid), f64::min);
    let high = counting.iter().copied().fold(high.max(mid), f64::max);
    let own = mid * MODEL_ERROR;
    // A sample may be so poor that its low end is far down, but no time is below zero.
    ((mid - (mid - low).hypot(own)).max(0.0), mid + (high - mid).hypot(own))
}

/// Numbers for resampling that are the same in every run (`SplitMix64`, Steele, Lea & Flood 2014).
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    /// Starts a sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The high half of a product maps the whole range evenly.
        usize::try_from((u128::from(z) * bound as u128) >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(calls: &[(f64, f64)]) -> Sums {
        let mut sums = Sums::default();
        for (components, latency) in calls {
            sums.add(*components, *latency);
        }
        sums
    }

    #[test]
    fn a_cost_is_recovered_from_its_calls() {
        let calls: Vec<_> = (1..8).map(|c| (f64::from(c), 0.5 + 2.0 * f64::from(c))).collect();
        let cost = Cost::fit(&sums(&calls)).unwrap();
        assert!((cost.a - 0.5).abs() < 1e-9 && (cost.b - 2.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.of(Work { calls: 10, components: 30 }) - 65.0).abs() < 1e-9);
    }

    #[test]
    fn a_cost_is_never_negative() {
        let falling = Cost::fit(&sums(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)])).unwrap();
        assert_eq!((falling.a, falling.b), (2.0, 0.0));
        let steep = Cost::fit(&sums(&[(2.0, 1.0), (3.0, 3.0)])).unwrap();
        assert!(steep.a == 0.0 && steep.b > 0.0, "{steep:?}");
        assert_eq!(Cost::fit(&Sums::default()), None);
    }

    #[test]
    fn an_idle_server_ends_with_its_slowest_thread_and_a_saturated_one_with_the_sum() {
        let work = [1.0, 2.0, 3.0, 4.0];
        assert!((last_end(&work, 4.0) - 4.0).abs() < 1e-9);
        // One at a time: loaded calls take four times as long, so the sum of the work is a quarter of the sum.
        assert!((last_end(&work, 1.0) - 2.5).abs() < 1e-9);
        assert!((last_end(&[2.0, 2.0], 1.0) - 2.0).abs() < 1e-9);
        assert!(last_end(&[], 1.0).abs() < 1e-9);
    }

    #[test]
    fn parallelism_follows_from_how_much_slower_a_loaded_call_is() {
        let alone = sums(&[(1.0, 1.0), (1.0, 1.0)]);
        assert!((parallelism(&alone, Cost { a: 2.5, b: 0.0 }, 20.0) - 8.0).abs() < 1e-9);
        assert!((parallelism(&alone, Cost { a: 1.0, b: 0.0 }, 20.0) - 20.0).abs() < 1e-9);
        assert!((parallelism(&alone, Cost { a: 90.0, b: 0.0 }, 20.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_interval_is_never_narrower_than_the_models_own_error() {
        let (low, high) = interval(100.0, &[100.0, 100.0], &[100.0]);
        assert!((low - 97.0).abs() < 1e-9 && (high - 103.0).abs() < 1e-9, "{low} {high}");
        // 4 % of sampling and 3 % of the model are 5 % together.
        let (low, high) = interval(100.0, &[96.0, 104.0], &[]);
        assert!((low - 95.0).abs() < 1e-9 && (high - 105.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(interval(0.0, &[], &[]), (0.0, 0.0));
    }

    #[test]
    fn a_cold_first_pass_does_not_count_and_an_equal_one_does() {
        assert_eq!(counting(&[9.0, 1.0, 1.02]), [1.0, 1.02]);
        assert_eq!(counting(&[1.0, 1.05]), [1.0, 1.05]);
        let part = Part { passes_s: vec![9.0, 1.0, 1.3], ..Part::default() };
        assert!((part.disagreement() - 0.3).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_end_lies_between_the_fair_share_and_the_slowest_thread(
            work in prop::collection::vec(0.01_f64..10.0, 1..20),
            share in 0.0_f64..1.0,
        ) {
            #[expect(clippy::cast_precision_loss, reason = "few threads")]
            let threads = work.len() as f64;
            let parallelism = 1.0 + share * (threads - 1.0);
            let end = last_end(&work, parallelism);
            let slowest = work.iter().copied().fold(0.0, f64::max);
            let fair = work.iter().sum::<f64>() / threads;
            prop_assert!(end <= slowest * (1.0 + 1e-9) && end >= fair * (1.0 - 1e-9), "{end} {fair} {slowest}");
        }

        #[test]
        fn draws_stay_below_their_bound(seed in any::<u64>(), bound in 1_usize..1000) {
            let mut draws = Draws::new(seed);
            for _ in 0..50 {
                prop_assert!(draws.below(bound) < bound);
            }
        }
    }
}
