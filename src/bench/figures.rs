//! Rounds -> medians, intervals and ratios to the fastest place; no clock, no I/O.

use super::engine::Workload;
use super::result::{Figure, PlaceFigure, Round};
use crate::measure::stats::{self, Estimate};

/// Name of the sum of a suite's phases.
pub(super) const TOTAL: &str = "total";

/// Returns the figures of the rounds that count, the total first where the suite has one.
pub(super) fn figures(rounds: &[Round], workload: &dyn Workload) -> Vec<Figure> {
    let counted: Vec<&Round> = rounds.iter().filter(|round| round.counted).collect();
    let mut phases: Vec<&str> = Vec::new();
    for phase in counted.iter().flat_map(|round| &round.phases) {
        if !phases.contains(&phase.phase.as_str()) {
            phases.push(&phase.phase);
        }
    }
    let mut figures = Vec::new();
    if workload.has_total() && !phases.is_empty() {
        let sum = |round: &Round| Some(round.phases.iter().map(|phase| phase.elapsed_s).sum());
        figures.push(Figure {
            phase: TOTAL.to_owned(),
            headline: true,
            operations: workload.operations(TOTAL),
            bytes: None,
            places: place_figures(&counted, sum),
        });
    }
    for phase in phases {
        let time = |round: &Round| round.phases.iter().find(|time| time.phase == phase).map(|time| time.elapsed_s);
        figures.push(Figure {
            phase: phase.to_owned(),
            headline: !workload.has_total() && !workload.is_side_phase(phase),
            operations: workload.operations(phase),
            bytes: workload.bytes(phase),
            places: place_figures(&counted, time),
        });
    }
    figures
}

fn place_figures(rounds: &[&Round], time: impl Fn(&Round) -> Option<f64>) -> Vec<PlaceFigure> {
    let mut places: Vec<usize> = rounds.iter().map(|round| round.place).collect();
    places.sort_unstable();
    places.dedup();
    let samples: Vec<(usize, Vec<f64>)> = places
        .into_iter()
        .map(|place| {
            (place, rounds.iter().filter(|round| round.place == place).filter_map(|round| time(round)).collect())
        })
        .collect();
    ratios(samples)
}

/// Returns figures from samples: medians with their intervals, and ratios to the smallest median.
pub(super) fn ratios(samples: Vec<(usize, Vec<f64>)>) -> Vec<PlaceFigure> {
    let estimated: Vec<(usize, Vec<f64>, Estimate)> = samples
        .into_iter()
        .filter_map(|(place, runs)| stats::estimate(&runs).map(|estimate| (place, runs, estimate)))
        .collect();
    let Some(fastest) =
        estimated.iter().min_by(|a, b| a.2.mid.total_cmp(&b.2.mid)).map(|(place, _, best)| (*place, *best))
    else {
        return Vec::new();
    };
    estimated
        .into_iter()
        .map(|(place, runs, estimate)| {
            let ratio = if place == fastest.0 { None } else { stats::speedup(&estimate, &fastest.1) };
            PlaceFigure {
                place,
                runs,
                median: estimate.mid,
                low: estimate.interval.map(|(low, _)| low),
                high: estimate.interval.map(|(_, high)| high),
                ratio: if place == fastest.0 { 1.0 } else { estimate.mid / fastest.1.mid },
                ratio_low: ratio.map(|ratio| ratio.low),
                ratio_high: ratio.map(|ratio| ratio.high),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_place_has_ratio_one_and_the_others_stand_to_it() {
        let figures = ratios(vec![(0, vec![4.0, 4.1, 3.9]), (1, vec![2.0, 2.0, 2.1]), (2, Vec::new())]);
        assert_eq!(figures.len(), 2);
        assert!((figures[0].ratio - 2.0).abs() < 1e-12);
        assert!(figures[0].ratio_low.unwrap() < 2.0 && figures[0].ratio_high.unwrap() > 2.0);
        assert!((figures[1].ratio - 1.0).abs() < 1e-12);
        assert_eq!(figures[1].ratio_low, None);
    }

    #[test]
    fn a_single_round_gives_a_ratio_without_interval() {
        let figures = ratios(vec![(0, vec![4.0]), (1, vec![2.0])]);
        assert_eq!((figures[0].ratio_low, figures[0].low), (None, None));
        assert!((figures[0].ratio - 2.0).abs() < 1e-12);
    }
}
