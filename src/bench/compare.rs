//! Several results side by side: other machines, other filesystems, other days; no clock, no I/O.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::ratios;
use super::result::{BENCH_SCHEMA_VERSION, BenchReport, Machine, Place, PlaceFigure, Setup, Suite, SuiteResult};
use super::stream::{RELAY, RELAY_AGAINST};
use crate::measure::stats;

/// Results of one or several runs, ready to be shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What this is, so that it is not taken for a single run.
    pub kind: ComparisonKind,
    /// See [`BENCH_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The places compared, run by run.
    pub columns: Vec<Column>,
    /// The figures, one entry a kind of work.
    pub groups: Vec<Group>,
    /// How many times longer a stream takes in writes of 4 KiB, one entry a column where that was measured.
    pub relays: Vec<RelayCost>,
}

/// Tells a comparison from other JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonKind {
    /// The result of `rehome bench --compare`.
    BenchComparison,
}

/// One place of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// File that the run was read from; absent for the run that was just made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The place.
    pub place: Place,
    /// The machine.
    pub machine: Machine,
}

/// The phases of one suite that did the same amount of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Which suite.
    pub suite: Suite,
    /// How much work; figures of another amount are in another group, because they cannot be compared.
    pub setup: Setup,
    /// The phases.
    pub rows: Vec<Row>,
}

/// One phase in all columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The phase.
    pub phase: String,
    /// Whether it is what the suite is about.
    pub headline: bool,
    /// Operations in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Bytes moved in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// One entry a column that has it; `place` is the position in [`Comparison::columns`], ratios are to the fastest.
    pub figures: Vec<PlaceFigure>,
}

/// What a relay that writes 4 KiB at a time costs in one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayCost {
    /// Position in [`Comparison::columns`].
    pub column: usize,
    /// Time in writes of 4 KiB over the time in writes of 1 MiB, without unit.
    pub factor: f64,
    /// Lower end of its 95 % interval; absent with a single round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// Puts runs side by side; each comes with the name of its file, or `None` for the run that was just made.
#[must_use]
pub fn compare(runs: &[(Option<String>, BenchReport)]) -> Comparison {
    let mut columns = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    for (file, report) in runs {
        let first = columns.len();
        columns.extend(report.places.iter().map(|place| Column {
            file: file.clone(),
            place: place.clone(),
            machine: report.machine.clone(),
        }));
        for suite in &report.suites {
            add(&mut groups, suite, first);
        }
    }
    for row in groups.iter_mut().flat_map(|group| &mut group.rows) {
        let samples = row.figures.drain(..).map(|figure| (figure.place, figure.runs)).collect();
        row.figures = ratios(samples);
    }
    let relays = relay_costs(&groups);
    Comparison { kind: ComparisonKind::BenchComparison, schema_version: BENCH_SCHEMA_VERSION, columns, groups, relays }
}

/// Adds a suite's figures, their places counted from `first`, to the groups of the same work.
fn add(groups: &mut Vec<Group>, suite: &SuiteResult, first: usize) {
    for figure in &suite.figures {
        let setup = work(suite.suite, &suite.setup, &figure.phase);
        let known = groups.iter().position(|group| group.suite == suite.suite && group.setup == setup);
        let group = known.unwrap_or_else(|| {
            groups.push(Group { suite: suite.suite, setup, rows: Vec::new() });
            groups.len() - 1
        });
        let rows = &mut groups[group].rows;
        let known = rows.iter().position(|row| row.phase == figure.phase);
        let row = known.unwrap_or_else(|| {
            rows.push(Row {
                phase: figure.phase.clone(),
                headline: figure.headline,
                operations: figure.operations,
                bytes: figure.bytes,
                figures: Vec::new(),
            });
            rows.len() - 1
        });
        rows[row]
            .figures
            .extend(figure.places.iter().map(|place| PlaceFigure { place: first + place.place, ..place.clone() }));
    }
}

/// Returns the part of a setup that decides how much work a phase is.
fn work(suite: Suite, setup: &Setup, phase: &str) -> Setup {
    match suite {
        Suite::Seq if phase == "create" => {
            Setup { files: setup.files, size_bytes: setup.size_bytes, ..Setup::default() }
        }
        Suite::Seq => Setup { bytes: setup.bytes, ..Setup::default() },
        // The name of the phase has the number of files of the one tree that it walked.
        Suite::Walk => match phase.rsplit_once('_').and_then(|(_, files)| files.parse().ok()) {
            Some(files) => Setup { tree_files: vec![files], ..Setup::default() },
            None => setup.clone(),
        },
        Suite::Small | Suite::Stream | Suite::Git => setup.clone(),
    }
}

fn relay_costs(groups: &[Group]) -> Vec<RelayCost> {
    let mut costs = Vec::new();
    for group in groups.iter().filter(|group| group.suite == Suite::Stream) {
        let row = |phase: &str| group.rows.iter().find(|row| row.phase == phase);
        let Some((small, large)) = row(RELAY).zip(row(RELAY_AGAINST)) else { continue };
        for figure in &small.figures {
            let Some(other) = large.figures.iter().find(|other| other.place == figure.place) else { continue };
            let interval = stats::estimate(&figure.runs)
                .zip(stats::estimate(&other.runs))
                .and_then(|(small, large)| stats::speedup(&small, &large));
            if other.median > 0.0 {
                costs.push(RelayCost {
                    column: figure.place,
                    factor: figure.median / other.median,
                    low: interval.map(|interval| interval.low),
                    high: interval.map(|interval| interval.high),
                });
            }
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::{BenchCost, BenchKind, Figure, Role};

    fn figure(phase: &str, runs: &[(usize, &[f64])]) -> Figure {
        Figure {
            phase: phase.to_owned(),
            headline: true,
            operations: None,
            bytes: None,
            places: ratios(runs.iter().map(|(place, runs)| (*place, runs.to_vec())).collect()),
        }
    }

    fn report(suite: Suite, setup: Setup, places: usize, figures: Vec<Figure>) -> BenchReport {
        let place = |number| Place { path: format!("/place{number}"), role: Role::Scratch, site: None, scratch: None };
        BenchReport {
            kind: BenchKind::Bench,
            schema_version: BENCH_SCHEMA_VERSION,
            rehome_version: "0".to_owned(),
            complete: true,
            started_at_unix_s: 0,
            machine: Machine { platform: None, kernel: "6".to_owned(), cpus: None, git_version: None },
            budget_s: 1.0,
            places: (0..places).map(place).collect(),
            suites: vec![SuiteResult {
                suite,
                setup,
                rounds_planned: 1,
                shrunk: Vec::new(),
                rounds: Vec::new(),
                figures,
                failures: Vec::new(),
                notes: Vec::new(),
                complete: true,
            }],
            notes: Vec::new(),
            cost: BenchCost::default(),
        }
    }

    fn small(files: u64) -> Setup {
        Setup { files: Some(files), ..Setup::default() }
    }

    #[test]
    fn ratios_are_to_the_fastest_of_all_runs() {
        let one = report(Suite::Small, small(10), 2, vec![figure("total", &[(0, &[4.0, 4.0]), (1, &[2.0, 2.0])])]);
        let other = report(Suite::Small, small(10), 1, vec![figure("total", &[(0, &[1.0, 1.0])])]);
        let comparison = compare(&[(Some("one".to_owned()), one), (Some("other".to_owned()), other)]);
        assert_eq!(comparison.columns.len(), 3);
        assert_eq!(comparison.groups.len(), 1);
        let found: Vec<(usize, f64)> =
            comparison.groups[0].rows[0].figures.iter().map(|figure| (figure.place, figure.ratio)).collect();
        assert_eq!(found, [(0, 4.0), (1, 2.0), (2, 1.0)]);
    }

    #[test]
    fn different_amounts_of_work_are_not_compared() {
        let one = report(Suite::Small, small(10), 1, vec![figure("total", &[(0, &[4.0])])]);
        let other = report(Suite::Small, small(1000), 1, vec![figure("total", &[(0, &[1.0])])]);
        let comparison = compare(&[(None, one), (None, other)]);
        assert_eq!(comparison.groups.len(), 2);
        assert!(comparison.groups.iter().all(|group| group.rows[0].figures.len() == 1));
    }

    #[test]
    fn trees_of_one_size_are_compared_although_the_other_tree_was_smaller() {
        let trees = |tree_files: &[u64]| Setup { tree_files: tree_files.to_vec(), ..Setup::default() };
        let full = [figure("du_4700", &[(0, &[1.0])]), figure("du_100000", &[(0, &[9.0])])];
        let less = [figure("du_4700", &[(0, &[2.0])]), figure("du_20000", &[(0, &[5.0])])];
        let one = report(Suite::Walk, trees(&[4700, 100_000]), 1, full.to_vec());
        let other = report(Suite::Walk, trees(&[4700, 20_000]), 1, less.to_vec());
        let comparison = compare(&[(None, one), (None, other)]);
        let counts: Vec<usize> = comparison.groups.iter().map(|group| group.rows[0].figures.len()).collect();
        assert_eq!(counts, [2, 1, 1]);
    }

    #[test]
    fn the_cost_of_a_relay_is_told_for_each_place() {
        let setup = Setup { bytes: Some(1), ..Setup::default() };
        let figures = vec![
            figure("write_4k", &[(0, &[8.0, 8.1, 7.9]), (1, &[1.0])]),
            figure("write_1m", &[(0, &[1.0, 1.0, 1.1]), (1, &[1.0])]),
        ];
        let comparison = compare(&[(None, report(Suite::Stream, setup, 2, figures))]);
        assert_eq!(comparison.relays.len(), 2);
        assert!((comparison.relays[0].factor - 8.0).abs() < 1e-12 && comparison.relays[0].low.unwrap() > 1.0);
        assert_eq!((comparison.relays[1].factor, comparison.relays[1].low), (1.0, None));
    }
}
