//! Where contents come from: the working copy, the lines of an example, or a corpus.

use super::condition::PlaceKind;
use super::extract::{Extracted, Extractor};

/// What reading a file gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The first bytes of a regular file.
    Bytes {
        /// At most as many as were asked for.
        data: Vec<u8>,
        /// Whether the file goes on.
        is_truncated: bool,
    },
    /// Nothing is there.
    Absent,
    /// Something that is no regular file is there.
    NoFile,
    /// It could not be read, or was not read to save calls: nothing is known about it.
    Unknown,
}

/// What listing a directory gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// Names and what they are, where the directory tells.
    Names(Vec<(String, Option<PlaceKind>)>),
    /// No directory is there.
    Absent,
    /// It could not be listed, or has more names than were asked for.
    Unknown,
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// This.
    There(PlaceKind),
    /// Nothing.
    Absent,
    /// It could not be looked at.
    Unknown,
}

/// Gives contents of one working copy. Places are relative to the worktree; below `.git/` the git dir is meant.
pub trait Source {
    /// Reads the first bytes of a file without following a link at its end.
    fn read(&self, place: &str, max_bytes: usize) -> Fetched;
    /// Lists a directory; `""` is the worktree itself.
    fn list(&self, place: &str, max_names: usize) -> Listed;
    /// Looks what is at a place.
    fn look(&self, place: &str) -> Place;
    /// Returns the modification time of a place, in seconds since the epoch.
    fn modified_at(&self, place: &str) -> Option<i64>;
    /// Returns the values of one file where the source has values instead of texts.
    fn values(&self, _extractor: Extractor, _path: &str) -> Option<Extracted> {
        None
    }
}
