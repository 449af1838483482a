//! What is copied and what is left out.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::migrate::ignored::IgnoreChain;
use crate::migrate::rebuildable::{LeftOut, named_by};
use crate::rules::kinds::RebuildableRule;
use crate::scan::RepoProfile;

/// How much of the repository is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Everything but ignored directories that a rule knows how to make again.
    Precious,
    /// Everything.
    All,
    /// The git dir and tracked files with their local changes.
    OnlyTracked,
}

/// The paths of an index, for membership tests.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    paths: Vec<Vec<u8>>,
    submodules: Vec<Vec<u8>>,
}

impl Tracked {
    pub(super) fn of(profile: &RepoProfile) -> Self {
        let Some(index) = &profile.index else { return Self::default() };
        let mut tracked = Self::default();
        for entry in index.state.entries() {
            let path = entry.path(&index.state).to_vec();
            if entry.mode == gix::index::entry::Mode::COMMIT {
                tracked.submodules.push(path.clone());
            }
            tracked.paths.push(path);
        }
        // Bytewise with `/` as an ordinary byte: the order in which a prefix is followed by all that it is a prefix of.
        tracked.paths.sort_unstable();
        tracked.paths.dedup();
        tracked
    }

    fn contains(&self, path: &Path) -> bool {
        self.paths.binary_search_by(|known| known.as_slice().cmp(path.as_os_str().as_bytes())).is_ok()
    }

    /// Returns whether a tracked path is below the directory.
    pub(super) fn has_below(&self, directory: &Path) -> bool {
        let mut prefix = directory.as_os_str().as_bytes().to_vec();
        prefix.push(b'/');
        let at = self.paths.partition_point(|known| known.as_slice() < prefix.as_slice());
        self.paths.get(at).is_some_and(|known| known.starts_with(&prefix))
    }

    fn is_in_submodule(&self, path: &Path) -> bool {
        self.submodules.iter().any(|submodule| path.starts_with(OsStr::from_bytes(submodule)))
    }
}

/// The choice of one move.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub(super) scope: Scope,
    pub(super) rules: &'a [RebuildableRule],
    pub(super) tracked: Tracked,
    /// The git dir relative to the root; empty for a bare repository.
    pub(super) git_dir: PathBuf,
    /// Texts of the user's excludes file and `info/exclude`.
    pub(super) excludes: Vec<Vec<u8>>,
}

impl Selection<'_> {
    /// Returns whether the path is the git dir or in it.
    pub(super) fn is_git_data(&self, path: &Path) -> bool {
        path.starts_with(&self.git_dir)
    }

    /// Returns whether an entry that is no directory is copied.
    pub(super) fn takes_file(&self, path: &Path) -> bool {
        self.scope != Scope::OnlyTracked
            || self.is_git_data(path)
            || self.tracked.contains(path)
            || self.tracked.is_in_submodule(path)
    }

    /// Returns whether a directory is gone into at all.
    pub(super) fn takes_directory(&self, path: &Path) -> bool {
        self.scope != Scope::OnlyTracked
            || self.is_git_data(path)
            || self.tracked.has_below(path)
            || self.tracked.is_in_submodule(path)
    }

    /// Returns the rule by which a directory is left out; `None` when it is copied.
    ///
    /// Only what git ignores, holds nothing tracked and can be made again may be missing in the copy.
    pub(super) fn leave_out(&self, path: &Path, beside: &[OsString], chain: &IgnoreChain) -> Option<LeftOut> {
        if self.scope == Scope::All || self.is_git_data(path) || !chain.is_ignored() {
            return None;
        }
        named_by(self.rules, path, beside).filter(|_| !self.tracked.has_below(path))
    }
}
