//! What is asked of a run, and what comes of it.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::facts::GitFacts;
use crate::measure::Measurement;
use crate::measure::probe::client::Trouble;
use crate::measure::temp::RunDir;
use crate::scan::RepoProfile;

/// A piece of real work that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// One stat call a tracked file.
    Stat,
    /// The user's `git status`.
    GitStatus,
    /// What `du -s` or a file watcher does in the tracked directories.
    Walk,
}

/// What to measure, and where the copy goes.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The repository.
    pub profile: &'a RepoProfile,
    /// An existing directory on the target filesystem.
    pub target: &'a Path,
    /// The user's cache directory (`$XDG_CACHE_HOME`), used for the copy where it is on the target filesystem.
    pub cache_home: Option<&'a Path>,
    /// Time that everything together may take.
    pub budget: Duration,
    /// Rounds of each workload; `None` for as many as fit, 3 to 12.
    pub rounds: Option<u32>,
    /// What to time.
    pub workloads: &'a [Workload],
    /// The user's git; without it there is no `git_status`.
    pub git: Option<&'a GitFacts>,
    /// Program that serves as probe when started with `__probe`, rehome itself; `None` for a thread of this process.
    pub probe_program: Option<&'a Path>,
}

/// How the copy came about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyFacts {
    /// Files and links in it.
    pub files: u64,
    /// Directories in it.
    pub dirs: u64,
    /// Seconds that making it took.
    pub build_s: f64,
    /// Whether it holds every tracked file; otherwise its figures were scaled up from a part.
    pub is_whole: bool,
    /// Whether what `git status` named in place was taken over, so that both sides show the same changes; otherwise the
    /// copy stands for a clean worktree.
    pub has_changes: bool,
    /// Whether it is in memory, because next to nothing of it could be made on the target in time.
    pub is_in_memory: bool,
    /// Whether it has a commit of its own because HEAD's trees could not be taken over.
    pub has_own_commit: bool,
}

/// Everything that measuring brought.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One for each workload that got as far as a figure.
    pub measurements: Vec<Measurement>,
    /// Whether everything that was asked for was measured.
    pub complete: bool,
    /// Whether the user, or a signal, asked to stop.
    pub interrupted: bool,
    /// Whether the repository's mount stopped answering.
    pub hung: bool,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
    /// Entries whose stat data differ although their content may not, estimated from a sample; `None` when not sampled.
    pub stat_dirty: Option<u64>,
    /// Entries as new as the index file; `None` without an index.
    pub racy: Option<u64>,
    /// Paths that differ from another one in case alone.
    pub case_collisions: u64,
    /// The copy; `None` when none was made.
    pub copy: Option<CopyFacts>,
    /// Keeps the temporary data; dropping it removes them, which may wait until the report is printed.
    pub run_dir: Option<RunDir>,
    /// Keeps the copy where it had to be made in memory; as [`Self::run_dir`].
    pub memory_dir: Option<RunDir>,
    /// Keeps the full copy that the user's own commands ran in; as [`Self::run_dir`].
    pub own_copy: Option<RunDir>,
}

/// Why a run ended early.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The user, or a signal, asked to stop.
    Interrupted,
    /// The repository's mount does not answer.
    Hung,
    /// The budget was used up.
    Late,
    /// It failed.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Self::Interrupted,
            error => Self::Failed(error),
        }
    }
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Interrupted => Self::Interrupted,
            Trouble::Hung => Self::Hung,
            Trouble::Failed(why) => {
                Self::Failed(Error::refused(why, "check that the repository's mount answers, then run rehome again"))
            }
        }
    }
}
