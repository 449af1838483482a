//! What a move would do, as values: shown before, printed as JSON, carried out after.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::migrate::rebuildable::LeftOut;
use crate::migrate::repair::Repair;
use crate::migrate::select::Scope;

/// Version of the JSON of plan and result; changes when a name changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// Something that must be solved before the move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blocker {
    /// Stable name.
    pub id: String,
    /// What is the matter.
    pub say: String,
    /// What to do about it.
    pub fix: String,
}

impl Blocker {
    /// Makes a blocker.
    #[must_use]
    pub fn new(id: &str, say: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id: id.to_owned(), say: say.into(), fix: fix.into() }
    }
}

/// What a move would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The repository's worktree (git dir, when bare).
    pub source: String,
    /// Where the copy will be.
    pub destination: String,
    /// Where it grows until it is verified.
    pub partial: String,
    /// Whether an interrupted copy is continued.
    pub continues: bool,
    /// How much is copied.
    pub scope: Scope,
    /// Whether the new side is Windows.
    pub to_windows: bool,
    /// Filesystem type of the source.
    pub source_fstype: String,
    /// Filesystem type of the destination.
    pub destination_fstype: String,
    /// Regular files to copy.
    pub files: u64,
    /// Directories to make.
    pub directories: u64,
    /// Bytes to copy, each hard-linked file once, holes left out.
    pub bytes: u64,
    /// Bytes that are free at the destination; in WSL 2 the smaller of the disk image's and its drive's.
    pub free_bytes: u64,
    /// Directories that are left out, with the command that restores them.
    pub left_out: Vec<LeftOut>,
    /// Symbolic links that are absolute or lead out of the repository, as `link -> target`.
    pub links_outside: Vec<String>,
    /// What must be solved first; the move does not begin while there is any.
    pub blockers: Vec<Blocker>,
    /// What will be made right for the new side, one sentence each.
    pub repairs: Vec<String>,
    /// What is good to know.
    pub notes: Vec<String>,
}

/// How a move ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// Where the copy is.
    pub destination: String,
    /// The same as Windows programs write it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_path: Option<String>,
    /// The old copy, as it was.
    pub source: String,
    /// Regular files in the copy.
    pub files: u64,
    /// Files that an interrupted run had copied already.
    pub files_continued: u64,
    /// Bytes that were copied in this run.
    pub bytes: u64,
    /// Time of the whole move, in seconds.
    pub wall_s: f64,
    /// Requests in flight that served best on the source's mount.
    pub in_flight: u64,
    /// How the copy was proven right.
    pub verified: Verified,
    /// What was changed for the new side, and where; the originals are in the source.
    pub repairs: Vec<Repair>,
    /// What was left out, with the command that restores it.
    pub left_out: Vec<LeftOut>,
    /// What outside still points to the old place.
    pub outside: Vec<OutsidePointer>,
    /// What is good to know.
    pub notes: Vec<String>,
    /// Time of the first `git status` in the new place, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_new_s: Option<f64>,
    /// Time of a `git status` in the old place, in seconds; absent when it was not run or did not end in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_old_s: Option<f64>,
    /// Bound at which the `git status` in the old place was given up, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_old_at_least_s: Option<f64>,
    /// The command that removes the old copy, for later.
    pub remove_later: String,
}

/// How a copy was proven right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Files of the copy that were read back and compared by hash with what was read from the source.
    pub files_read_back: u64,
    /// Refs that are the same on both sides.
    pub refs: u64,
    /// Stashes that are the same on both sides.
    pub stashes: u64,
    /// Repositories (submodules included) that `git fsck` found whole.
    pub repositories_checked: u64,
    /// Paths that `git status` reports on both sides: the real changes.
    pub real_changes: u64,
    /// Paths that it reported at the old place for line endings, modes or links alone.
    pub artefacts: u64,
}

/// Something outside of the repository that holds the old path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutsidePointer {
    /// What holds it.
    pub path: String,
    /// What that is (`link`, `editor workspace`, ...).
    pub kind: String,
    /// What to do about it.
    pub fix: String,
}

/// What the caller decided.
#[derive(Debug)]
pub struct Request {
    /// Where the copy is to be; absolute, need not exist.
    pub destination: PathBuf,
    /// How much is copied.
    pub scope: Scope,
    /// Whether the new side is Windows.
    pub to_windows: bool,
    /// Filesystem types that the destination may have; empty for what suits the direction.
    pub target_fs: Vec<String>,
    /// Rules for directories that can be made again.
    pub rebuildable: Vec<crate::rules::kinds::RebuildableRule>,
    /// The source's place, where the mount table was asked.
    pub site: Option<crate::facts::Site>,
    /// The destination's place, where the mount table was asked.
    pub target: Option<crate::facts::Target>,
    /// Blockers that the caller knows of (hazard rules).
    pub blockers: Vec<Blocker>,
    /// What the caller found that the user should know.
    pub notes: Vec<String>,
    /// The git program.
    pub git: PathBuf,
    /// The user's home, in which pointers to the old place are looked for.
    pub home: Option<PathBuf>,
}
