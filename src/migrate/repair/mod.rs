//! Making the copy right for the side that it is on now; every step is reported, and the source still has the original.

mod content;
mod index;
mod modes;
mod notes;
mod pointers;
mod settings;
mod unit;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, printable};
use crate::migrate::git::Abilities;
use crate::migrate::inventory::{Inventory, Source};
use crate::migrate::journal::Journal;
use crate::migrate::partial::Partial;
use crate::migrate::spelling::Spellings;

pub(super) use unit::{Checked, check_unit};

/// One thing that was changed in the copy, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repair {
    /// Stable name of the step (`modes`, `line-endings`, ...).
    pub step: String,
    /// What was done, one sentence.
    pub say: String,
    /// Every path that it was done to, relative to the repository.
    pub paths: Vec<String>,
}

impl Repair {
    fn new<P: AsRef<Path>>(step: &str, say: impl Into<String>, paths: impl IntoIterator<Item = P>) -> Self {
        Self { step: step.to_owned(), say: say.into(), paths: paths.into_iter().map(printable).collect() }
    }
}

/// What the repairs of one move share.
pub(super) struct Repairer<'a> {
    pub(super) source: &'a Source,
    pub(super) partial: &'a Partial,
    pub(super) journal: &'a Journal,
    pub(super) git_program: &'a Path,
    /// How the source is spelled in files.
    pub(super) spellings: &'a Spellings,
    /// Where the copy will be, as the programs of its side write it.
    pub(super) destination: &'a str,
    /// What the new filesystem can hold.
    pub(super) new_side: Abilities,
    /// Whether the source's mode bits mean anything.
    pub(super) modes_are_real: bool,
    pub(super) with_untracked: bool,
    pub(super) done: Vec<Repair>,
    pub(super) notes: Vec<String>,
}

impl Repairer<'_> {
    fn tree(&self) -> &Path {
        &self.partial.tree
    }

    /// Announces that paths in the copy are about to differ from the source.
    fn announce<'p>(&self, paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Error> {
        let failed = |source| Error::io("write", self.partial.journal(), source);
        for path in paths {
            self.journal.changed(path).map_err(failed)?;
        }
        self.journal.flush().map_err(failed)
    }

    /// Writes a file of the copy anew, by another file and a rename, so that hard links of it are left alone.
    fn rewrite(&self, path: &Path, text: &[u8]) -> Result<(), Error> {
        self.announce([path])?;
        let target = self.tree().join(path);
        let fresh = self.partial.work.join("rewritten");
        let failed = |source| Error::io("write", &target, source);
        let mode = target.metadata().map(|found| found.permissions());
        std::fs::write(&fresh, text).map_err(failed)?;
        if let Ok(mode) = mode {
            std::fs::set_permissions(&fresh, mode).map_err(failed)?;
        }
        std::fs::rename(&fresh, &target).map_err(failed)
    }

    fn report(&mut self, repair: Repair) {
        if !repair.paths.is_empty() {
            self.done.push(repair);
        }
    }

    /// Does the steps that concern files and git dirs as such; those that need an index come with each repository, and
    /// the settings last, since until then they tell what the old side could hold.
    pub(super) fn whole_tree(
        &mut self,
        inventory: &mut Inventory,
        units: &[crate::migrate::unit::Unit],
    ) -> Result<(), Error> {
        self.pointers(inventory, units)?;
        if !self.modes_are_real && self.new_side.modes {
            self.modes(inventory, units)?;
        }
        if !self.new_side.symlinks {
            let links = inventory.entries.iter().filter(|entry| entry.target.is_some()).map(|entry| entry.path.clone());
            let say = "links written as small text files, as git does on a filesystem without links";
            self.report(Repair::new("links-as-text", say, links.collect::<Vec<_>>()));
        }
        if self.modes_are_real && !self.new_side.modes {
            self.notes.push("the new filesystem holds no executable bits; git keeps those of the index".to_owned());
        }
        self.name_what_stays(inventory)
    }
}

/// Joins a path in a repository to the place of that repository in the tree.
fn in_tree(worktree: &Path, path: &Path) -> PathBuf {
    if worktree.as_os_str().is_empty() { path.to_path_buf() } else { worktree.join(path) }
}
