//! Every touch of the repository's mount during measuring, in a process of its own.
//!
//! A system call on a mount that hangs cannot be interrupted, so the calls are made by a child that the parent can
//! abandon. The two speak in lines of JSON: one [`Ask`] a line down, one [`Answer`] a line up, strictly in turn.

pub mod client;
pub mod copy;
pub mod fixed;
pub mod preload;
pub mod server;
pub mod stale;
pub mod untracked;

use serde::{Deserialize, Serialize};

use crate::measure::Latency;
use crate::measure::dirty::StatRules;
use crate::measure::model::Part;
use crate::measure::probe::stale::Stale;
use crate::measure::settings::Untracked;
use crate::measure::sweep::Pass;

/// A path as bytes; JSON has no other way to keep one that is no UTF-8.
pub type PathBytes = Vec<u8>;

/// What the probe is to work on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    /// The worktree.
    pub worktree: PathBytes,
    /// A copy of the index, not on the worktree's mount.
    pub index: PathBytes,
    /// Whether object ids are SHA-256.
    pub is_sha256: bool,
    /// How git compares stat data.
    pub rules: StatRules,
    /// The git dir of the worktree.
    pub git_dir: PathBytes,
    /// The git dir that all worktrees share.
    pub common_dir: PathBytes,
}

/// A request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Ask {
    /// Open the worktree and read the copy of the index.
    Open(Setup),
    /// Stat entries all over the index, in series, for at most this long.
    Calibrate {
        /// Seconds.
        limit_s: f64,
    },
    /// Stat the chosen entries.
    Stat {
        /// How many of them, spread over the index.
        count: u32,
        /// Number of paths at the index's beginning that take part.
        within: u32,
        /// Numbers of entries to leave out.
        leave_out: Vec<u32>,
        /// Time each call and add it to the percentiles.
        times_each: bool,
        /// Seconds after which to stop.
        limit_s: f64,
    },
    /// Open, read and stat the chosen directories.
    Walk {
        /// How many of them, spread over all.
        count: u32,
        /// Seconds after which to stop.
        limit_s: f64,
    },
    /// Put what is at these paths into the skeleton.
    Copy {
        /// Paths relative to the worktree; one that ends in a slash is an untracked directory.
        paths: Vec<PathBytes>,
        /// The skeleton.
        into: PathBytes,
        /// Seconds after which to stop.
        limit_s: f64,
    },
    /// Sample git's preload and predict the whole.
    Preload {
        /// Seconds.
        limit_s: f64,
        /// Whether git stats entries in several threads.
        preloads: bool,
    },
    /// Sample git's search for untracked files and predict the whole.
    Untracked {
        /// Seconds.
        limit_s: f64,
        /// The user's `status.showUntrackedFiles`.
        mode: Untracked,
        /// Whether the index has a valid untracked cache.
        has_cache: bool,
        /// The skeleton, for every tracked `.gitignore`.
        skeleton: Option<PathBytes>,
        /// Text of `info/exclude`.
        exclude: Option<Vec<u8>>,
        /// The user's own exclude file.
        excludes_file: Option<PathBytes>,
    },
    /// Sample entries that make git read files.
    Stale {
        /// Seconds.
        limit_s: f64,
        /// The index file's modification time, in seconds since the epoch.
        index_mtime_s: i64,
    },
    /// Do once what git does in the git dir before and after it looks at the worktree.
    Fixed {
        /// Seconds after which what was done stands for the rest.
        limit_s: f64,
    },
}

/// An answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Answer {
    /// The worktree is open.
    Opened,
    /// Result of [`Ask::Calibrate`].
    Calibrated(Calibration),
    /// Result of [`Ask::Stat`] and [`Ask::Walk`].
    Passed {
        /// What was found.
        pass: Pass,
        /// Percentiles over all timed calls so far; absent when none was timed.
        latency: Option<Latency>,
    },
    /// Result of [`Ask::Copy`].
    Copied(Copied),
    /// Result of [`Ask::Fixed`].
    Fixed {
        /// Seconds.
        elapsed_s: f64,
        /// Calls that were made.
        calls: usize,
    },
    /// Result of [`Ask::Preload`] and [`Ask::Untracked`].
    Part(Part),
    /// Result of [`Ask::Stale`].
    Stale(Stale),
    /// The request failed as a whole; a sentence without the path.
    Failed(String),
}

/// What a short sample of stat calls says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Calls that were made.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Mean time of a call, in seconds.
    pub mean_s: f64,
    /// Entries among them that git would have to read.
    pub unsure: u64,
    /// Entries among them that git knows as modified.
    pub modified: u64,
}

/// What was put into the skeleton.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// For each path, in order: whether it was done.
    pub done: Vec<bool>,
    /// Whether a limit (time, bytes, entries) was met.
    pub is_cut: bool,
}
