//! How a stage tells how far it is, without knowing if anybody looks.

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
    /// So many files and bytes of the current phase are transferred; for phases whose pace is told in bytes.
    fn transferred(&self, _files: u64, _bytes: u64) {}
}

/// Says nothing; for scripts, tests and output that is no terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _phase: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64) {}
    fn end(&self) {}
}
