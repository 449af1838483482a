//! Benchmarks as text, as JSON and as a page: one run, or several side by side.

mod html;
mod text;
mod words;

pub use html::write_html;
pub use text::{write_comparison, write_run};

use std::io::{self, Write};

use serde::Serialize;

use crate::bench::result::BenchReport;

/// Writes a run or a comparison as indented JSON with a newline at its end; what a terminal would act on is escaped.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    for c in text.chars() {
        if c != '\n' && crate::error::printable_text(c.encode_utf8(&mut [0; 4])).len() != c.len_utf8() {
            write!(out, "\\u{:04x}", u32::from(c))?;
        } else {
            write!(out, "{c}")?;
        }
    }
    writeln!(out)
}

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
