//! What the repository is and where it is; reads, never writes.

pub mod access;
pub mod config;
pub mod discover;
pub mod filesystem;
pub mod git;
pub mod index;
pub mod refs;
pub mod repo;
pub mod repositories;

use std::path::PathBuf;

use crate::facts::RepoFacts;

/// A repository as one scan saw it: the facts, and what later stages need besides them.
#[derive(Debug)]
pub struct RepoProfile {
    /// What rules and reports see.
    pub facts: RepoFacts,
    /// The worktree with every link resolved; the git dir's place in a bare repository.
    pub worktree: PathBuf,
    /// The git dir of this worktree (`.git`, or `.git/worktrees/<name>`).
    pub git_dir: PathBuf,
    /// The git dir that all worktrees share; equal to `git_dir` in the main one.
    pub common_dir: PathBuf,
    /// The index as one plain read gave it; absent when bare or when nothing was ever added.
    pub index: Option<Index>,
    /// Repository, worktree, user and system configuration, merged as git would, parsed as data.
    pub config: gix::config::File,
    /// The repository's own configuration alone (`.git/config` and `config.worktree`).
    pub own_config: gix::config::File,
    /// The commit that HEAD names, in hex; absent when there is none yet.
    pub head_commit: Option<String>,
    /// Names in the git dir, as one listing gave them.
    pub git_dir_entries: Vec<String>,
    /// What was left out of the scan, as sentences.
    pub notes: Vec<String>,
    /// Contents of `info/exclude`, `info/attributes` and `info/sparse-checkout`, where they exist.
    pub info: InfoFiles,
}

/// An index file in memory.
#[derive(Debug)]
pub struct Index {
    /// The file's bytes, for a private copy without a second read.
    pub bytes: Vec<u8>,
    /// The shared index that a split index refers to: its file name and bytes.
    pub shared: Option<(String, Vec<u8>)>,
    /// The decoded entries; a split index is dissolved. None after [`Self::forget_entries`].
    pub state: gix::index::State,
    /// The file's modification time: seconds and nanoseconds since the epoch.
    pub mtime: (i64, u32),
}

impl Index {
    /// Forgets the decoded entries where the bytes still say the same, for who is done with them: of a large repository
    /// they are a quarter of all memory.
    pub fn forget_entries(&mut self) {
        if self.shared.is_none() {
            self.state = gix::index::State::new(self.state.object_hash());
        }
    }
}

/// Files below `.git/info` that decide what `git status` shows.
#[derive(Debug, Default, Clone)]
pub struct InfoFiles {
    /// `info/exclude`.
    pub exclude: Option<Vec<u8>>,
    /// `info/attributes`.
    pub attributes: Option<Vec<u8>>,
    /// `info/sparse-checkout` of this worktree.
    pub sparse_checkout: Option<Vec<u8>>,
    /// `objects/info/alternates`.
    pub alternates: Option<Vec<u8>>,
}
