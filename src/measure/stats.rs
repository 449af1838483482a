//! Medians, percentiles and intervals; no clock, no I/O.

use crate::measure::Speedup;

/// Two-sided 97.5 % points of Student's t for 1 to 4 degrees of freedom; from 6 runs on ranks are used instead.
/// Source: any table of the t distribution, e.g. NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
const T_975: [f64; 4] = [12.706, 4.303, 3.182, 2.776];

/// Fewest runs for which two order statistics enclose the median with 95 % probability (1 - 2 / 2^6 = 96.9 %).
const RANK_INTERVAL_MIN_RUNS: usize = 6;

/// Asymptotic ratio of the median's standard error to the mean's under normal noise, sqrt(pi / 2).
/// Source: Kendall & Stuart, The Advanced Theory of Statistics, vol. 1, 10.11.
const MEDIAN_SE_FACTOR: f64 = 1.2533;

/// A value with its 95 % interval; the ends are absent when the sample is too small to tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value.
    pub mid: f64,
    /// The interval's ends, lower first.
    pub interval: Option<(f64, f64)>,
}

/// Returns the median, the mean of the two middle values for an even number; `None` for an empty slice.
///
/// Medians, because one virus scan during a run pulls a mean but not a median
/// (breakdown point, <https://en.wikipedia.org/wiki/Robust_statistics>).
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Returns the value below which the share `q` (0 to 1) of a sorted slice lies; `None` for an empty slice.
///
/// The nearest-rank definition: always a value that was really seen
/// (<https://en.wikipedia.org/wiki/Percentile#The_nearest-rank_method>).
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rank lies between 1 and the length"
)]
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Returns the median of positive times with a 95 % interval; `None` for an empty slice.
///
/// From six runs on the interval's ends are order statistics, which assumes nothing about the noise
/// (Hahn & Meeker, Statistical Intervals, 5.2). With two to five runs no two ranks reach 95 %; then Student's t on
/// logarithms is used, because timing noise multiplies and an interval of a time must not reach below zero. A single
/// run has no interval.
#[must_use]
pub fn estimate(runs: &[f64]) -> Option<Estimate> {
    let mid = median(runs)?;
    let interval = match runs.len() {
        1 => None,
        n if n < RANK_INTERVAL_MIN_RUNS => log_t_interval(runs, mid),
        _ => Some(rank_interval(&sorted(runs))),
    };
    Some(Estimate { mid, interval })
}

/// Returns the distance of the quartiles as a share of the median; `None` below the four values that have quartiles.
#[must_use]
pub fn scatter(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let mid = median(&sorted).filter(|mid| *mid > 0.0 && sorted.len() >= 4)?;
    Some((quantile(&sorted, 0.75)? - quantile(&sorted, 0.25)?) / mid)
}

/// Returns the ends of the narrowest symmetric pair of order statistics that encloses the median in 95 % of samples.
fn rank_interval(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    // P(fewer than j of n values lie below the median) for a binomial with p = 1/2; both tails count.
    let mut probability = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    let mut rank = 0;
    #[expect(clippy::cast_precision_loss, reason = "numbers of runs are small")]
    for below in 0..n / 2 {
        tail += probability;
        if 2.0 * tail > 0.05 {
            break;
        }
        rank = below;
        probability *= (n - below) as f64 / (below + 1) as f64;
    }
    (sorted[rank], sorted[n - 1 - rank])
}

fn log_t_interval(runs: &[f64], mid: f64) -> Option<(f64, f64)> {
    if runs.iter().any(|run| *run <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = runs.iter().map(|run| run.ln()).collect();
    #[expect(clippy::cast_precision_loss, reason = "numbers of runs are small")]
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = T_975.get(runs.len() - 2)? * MEDIAN_SE_FACTOR * (variance / n).sqrt();
    Some((mid * (-half).exp(), mid * half.exp()))
}

/// Returns how many times faster the copy is than the place, with a 95 % interval.
///
/// The value is the ratio of the medians. The interval comes from both sides' own intervals by the 'method of variance
/// estimates recovery' on logarithms (Zou & Donner, Statistics in Medicine 27, 2008, 1693-1702), so it holds for timed
/// and for predicted figures alike. `None` when a side is not positive or has no interval.
#[must_use]
pub fn speedup(in_place: &Estimate, in_copy: &Estimate) -> Option<Speedup> {
    let (place_low, place_high) = in_place.interval?;
    let (copy_low, copy_high) = in_copy.interval?;
    let all = [in_place.mid, in_copy.mid, place_low, place_high, copy_low, copy_high];
    if all.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return None;
    }
    let log_mid = (in_place.mid / in_copy.mid).ln();
    let down = (in_place.mid / place_low).ln().hypot((copy_high / in_copy.mid).ln());
    let up = (place_high / in_place.mid).ln().hypot((in_copy.mid / copy_low).ln());
    Some(Speedup { mid: log_mid.exp(), low: (log_mid - down).exp(), high: (log_mid + up).exp() })
}

/// Returns the values in ascending order.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        assert_eq!(median(&[1.0, 1.1, 0.9, 50.0, 1.05]), Some(1.05));
        assert_eq!(median(&[2.0, 1.0]), Some(1.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn scatter_is_that_of_the_middle_half() {
        assert_eq!(scatter(&[1.0, 1.0, 1.0, 9.0]), Some(0.0));
        assert_eq!(scatter(&[1.0, 2.0, 3.0, 4.0]), Some(0.8));
        assert_eq!(scatter(&[1.0, 2.0, 3.0]), None);
        assert_eq!(scatter(&[0.0; 8]), None);
    }

    #[test]
    fn rank_intervals_use_the_published_ranks() {
        // Ranks of the 95 % interval of the median: n = 6: 1 and 6, n = 10: 2 and 9, n = 20: 6 and 15.
        for (n, low, high) in [(6, 1.0, 6.0), (8, 1.0, 8.0), (9, 2.0, 8.0), (10, 2.0, 9.0), (20, 6.0, 15.0)] {
            let runs: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(estimate(&runs).unwrap().interval, Some((low, high)), "n = {n}");
        }
    }

    #[test]
    fn a_single_run_has_no_interval_and_gives_no_speedup() {
        let one = estimate(&[1.0]).unwrap();
        assert_eq!(one.interval, None);
        assert_eq!(speedup(&one, &one), None);
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), Some(50.0));
        assert_eq!(quantile(&values, 0.99), Some(99.0));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    proptest! {
        #[test]
        fn the_interval_encloses_the_median(runs in prop::collection::vec(1e-6_f64..1e3, 2..40)) {
            let estimate = estimate(&runs).unwrap();
            let (low, high) = estimate.interval.unwrap();
            prop_assert!(low <= estimate.mid * (1.0 + 1e-12) && estimate.mid <= high * (1.0 + 1e-12));
            prop_assert!(low > 0.0);
        }

        #[test]
        fn the_speedup_lies_in_its_interval_and_is_the_ratio_of_the_medians(
            place in prop::collection::vec(1e-6_f64..1e3, 2..20),
            copy in prop::collection::vec(1e-6_f64..1e3, 2..20),
        ) {
            let (place, copy) = (estimate(&place).unwrap(), estimate(&copy).unwrap());
            let speedup = speedup(&place, &copy).unwrap();
            prop_assert!(speedup.low <= speedup.mid && speedup.mid <= speedup.high);
            prop_assert!((speedup.mid / (place.mid / copy.mid) - 1.0).abs() < 1e-9);
        }

        #[test]
        fn percentiles_grow_and_are_among_the_values(
            values in prop::collection::vec(1e-6_f64..1e3, 1..60),
            (low, high) in (0.0_f64..=1.0, 0.0_f64..=1.0),
        ) {
            let values = sorted(&values);
            let (low, high) = (low.min(high), low.max(high));
            let (lower, upper) = (quantile(&values, low).unwrap(), quantile(&values, high).unwrap());
            prop_assert!(lower <= upper && values.contains(&lower) && values.contains(&upper));
            let at_most = values.iter().filter(|value| **value <= upper).count();
            let share = f64::from(u32::try_from(at_most).unwrap()) / f64::from(u32::try_from(values.len()).unwrap());
            prop_assert!(share >= high - 1e-9);
        }

        #[test]
        fn a_unit_changes_no_ratio(
            place in prop::collection::vec(1e-6_f64..1e3, 2..20),
            copy in prop::collection::vec(1e-6_f64..1e3, 2..20),
        ) {
            let ratio = |unit: f64| {
                let side = |runs: &[f64]| estimate(&runs.iter().map(|run| run * unit).collect::<Vec<_>>()).unwrap();
                speedup(&side(&place), &side(&copy)).unwrap()
            };
            let (seconds, milliseconds) = (ratio(1.0), ratio(1e3));
            for (one, other) in
                [(seconds.low, milliseconds.low), (seconds.mid, milliseconds.mid), (seconds.high, milliseconds.high)]
            {
                prop_assert!((one / other - 1.0).abs() < 1e-6, "{} and {}", one, other);
            }
        }

        #[test]
        fn the_order_of_runs_does_not_matter(mut runs in prop::collection::vec(1e-6_f64..1e3, 1..20)) {
            let before = estimate(&runs);
            runs.reverse();
            prop_assert_eq!(before.map(|e| e.mid), estimate(&runs).map(|e| e.mid));
        }
    }
}
