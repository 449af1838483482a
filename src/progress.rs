//! How a stage tells how far it is, without knowing if anybody looks.

use std::path::Path;

/// Receives the state of a running stage.
///
/// Implementations must be cheap: a stage may report once a file.
pub trait Progress: Sync {
    /// A phase begins; `total` is its number of steps where it is known.
    fn begin(&self, phase: &str, total: Option<u64>);
    /// `done` of the current phase's steps are finished.
    fn advance(&self, done: u64);
    /// The current phase is over; what was drawn for it goes away.
    fn end(&self);
    /// A phase begins that moves so many files and bytes; its pace is told in bytes.
    fn begin_transfer(&self, phase: &str, _files: u64, bytes: u64) {
        self.begin(phase, Some(bytes));
    }
    /// So many files and bytes of the current transfer are done.
    fn transferred(&self, _files: u64, bytes: u64) {
        self.advance(bytes);
    }
    /// The next calls go to this directory; if they do not come back, it is the one to name.
    fn at(&self, _place: &Path) {}
    /// A temporary directory was made, which somebody else has to remove when this process cannot.
    fn made(&self, _path: &Path) {}
}

/// Says nothing; for scripts, tests and output that is no terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _phase: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64) {}
    fn end(&self) {}
}
