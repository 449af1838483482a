//! Benchmarks as text, as JSON and as a page: one run, or several side by side.

mod html;
mod text;
mod words;

pub use super::json::write_json;
pub use html::write_html;
pub use text::{write_comparison, write_run};

use crate::bench::result::BenchReport;

/// Returns what a reader must know besides the figures, one sentence each, named by its run.
#[must_use]
pub fn remarks(runs: &[(Option<String>, BenchReport)]) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut first = 0;
    for (file, report) in runs {
        let prefix = file.as_ref().map_or_else(String::new, |file| format!("{file}: "));
        if !report.complete {
            remarks.push(format!("{prefix}the run is incomplete"));
        }
        for suite in &report.suites {
            let name = suite.suite.name();
            let shrunk = suite.shrunk.iter().cloned();
            let lost = suite.rounds.iter().filter_map(|round| words::lost_round(round, first));
            let failed = suite.failures.iter().map(|failure| words::failure(failure, first));
            remarks.extend(shrunk.chain(lost).chain(failed).map(|remark| format!("{prefix}{name}: {remark}")));
        }
        remarks.extend(report.notes.iter().map(|note| format!("{prefix}{note}")));
        first += report.places.len();
    }
    remarks
}
