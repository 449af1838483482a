//! The report while it grows, saved after every step.

use std::time::Instant;

use super::result::{BenchReport, Failure, Setup, Suite, SuiteResult};
use crate::error::Error;

/// Receives the report each time something was added to it.
pub type Save<'a> = &'a mut dyn FnMut(&BenchReport) -> Result<(), Error>;

/// Holds the report and hands it on for saving.
pub(super) struct Recorder<'a> {
    /// What is known so far.
    pub(super) report: BenchReport,
    save: Save<'a>,
    began: Instant,
    /// The first failure of saving; measuring goes on, since the answer on standard output is still worth it.
    pub(super) save_error: Option<Error>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(report: BenchReport, save: Save<'a>) -> Self {
        Self { report, save, began: Instant::now(), save_error: None }
    }

    pub(super) fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Saves the report as it is.
    pub(super) fn save(&mut self) {
        self.report.cost.wall_s = self.elapsed_s();
        if self.save_error.is_none() {
            self.save_error = (self.save)(&self.report).err();
        }
    }

    /// Adds an empty entry for a suite and returns its position.
    pub(super) fn begin_suite(&mut self, suite: Suite, setup: Setup, rounds: u32) -> usize {
        self.report.suites.push(SuiteResult {
            suite,
            setup,
            rounds_planned: rounds,
            shrunk: Vec::new(),
            rounds: Vec::new(),
            figures: Vec::new(),
            failures: Vec::new(),
            notes: Vec::new(),
            complete: false,
        });
        self.report.suites.len() - 1
    }
}

/// Describes an error as a part that could not be measured.
pub(super) fn failure(place: Option<usize>, error: &Error) -> Failure {
    let mut message = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        message.push_str(": ");
        message.push_str(&crate::error::printable_text(&cause.to_string()));
        next = cause.source();
    }
    Failure { place, message, hint: error.hint() }
}
