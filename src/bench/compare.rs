//! Several results side by side: other machines, other filesystems, other days; no clock, no I/O.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::ratios;
use super::result::{BENCH_SCHEMA_VERSION, BenchReport, Machine, Place, PlaceFigure, Setup, Suite, SuiteResult};
use super::stream::{OVERLAPPED, WRITES};

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
    /// Time in writes of 4 KiB over the time of the best way, without unit.
    pub factor: f64,
    /// The best way: the name of its phase.
    pub best: String,
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
    let (smallest, others) = (WRITES[0].0, WRITES[1..].iter().map(|(name, _)| *name).chain([OVERLAPPED]));
    let others: Vec<&str> = others.collect();
    let mut costs = Vec::new();
    for group in groups.iter().filter(|group| group.suite == Suite::Stream) {
        let median = |phase: &str, column: usize| {
            let row = group.rows.iter().find(|row| row.phase == phase)?;
            row.figures.iter().find(|figure| figure.place == column).map(|figure| figure.median)
        };
        let columns = group.rows.iter().find(|row| row.phase == smallest).map_or(&[][..], |row| &row.figures);
        for column in columns {
            let best = others
                .iter()
                .filter_map(|phase| median(phase, column.place).map(|median| (*phase, median)))
                .min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((phase, best_s)) = best.filter(|(_, best_s)| *best_s > 0.0) {
                let factor = column.median / best_s;
                costs.push(RelayCost { column: column.place, factor, best: phase.to_owned() });
            }
        }
    }
    costs
}
