//! Absolute paths by which git dirs, worktrees and submodules find each other.

use std::path::{Path, PathBuf};

use crate::error::{Error, printable};
use crate::migrate::inventory::Inventory;
use crate::migrate::repair::settings::own_file;
use crate::migrate::repair::{Repair, Repairer};
use crate::migrate::spelling::{is_absolute, is_windows, normalized, relative, to_local};
use crate::migrate::unit::{Unit, UnitKind};

impl Repairer<'_> {
    /// Repairs what is in the tree, and names the worktrees outside of it.
    pub(super) fn pointers(&mut self, inventory: &Inventory, units: &[Unit]) -> Result<(), Error> {
        let mut repaired = Vec::new();
        for unit in units {
            match unit.kind {
                UnitKind::Submodule => self.submodule(unit, &mut repaired)?,
                UnitKind::Worktree => self.worktree(unit, &mut repaired)?,
                UnitKind::Main | UnitKind::Nested => {}
            }
        }
        self.worktrees_outside(inventory, units, &mut repaired)?;
        self.alternates(inventory, &mut repaired)?;
        self.report(Repair::new("pointers", "paths between worktrees, submodules and git dirs repaired", repaired));
        Ok(())
    }

    /// A submodule and its git dir point to each other by relative paths, as git itself writes them.
    fn submodule(&self, unit: &Unit, repaired: &mut Vec<PathBuf>) -> Result<(), Error> {
        if unit.pointer.as_deref().is_some_and(is_absolute) {
            let file = unit.worktree.join(".git");
            let way = relative(&unit.worktree, &unit.git_dir);
            self.rewrite(&file, format!("gitdir: {}\n", way.display()).as_bytes())?;
            repaired.push(file);
        }
        let path = unit.git_dir.join("config");
        if !self.tree().join(&path).symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Ok(());
        }
        let configured = own_file(&self.tree().join(&path))?.string("core.worktree").map(|value| value.to_string());
        if configured.as_deref().is_some_and(is_absolute) {
            let way = relative(&unit.git_dir, &unit.worktree);
            self.announce([path.as_path()])?;
            self.edit(&path, "core.worktree", Some(&way.to_string_lossy()))?;
            repaired.push(path);
        }
        Ok(())
    }

    /// A linked worktree and its git dir point to each other by absolute paths, unless they were relative before.
    fn worktree(&self, unit: &Unit, repaired: &mut Vec<PathBuf>) -> Result<(), Error> {
        let place = |path: &Path| format!("{}/{}", self.destination, path.display());
        if unit.pointer.as_deref().is_some_and(is_absolute) {
            let file = unit.worktree.join(".git");
            self.rewrite(&file, format!("gitdir: {}\n", place(&unit.git_dir)).as_bytes())?;
            repaired.push(file);
        }
        let back = unit.git_dir.join("gitdir");
        let text = std::fs::read_to_string(self.tree().join(&back)).unwrap_or_default();
        if is_absolute(text.trim()) {
            self.rewrite(&back, format!("{}\n", place(&unit.worktree.join(".git"))).as_bytes())?;
            repaired.push(back);
        }
        Ok(())
    }

    /// Worktrees that lie elsewhere stay with the source: their own `.git` file is not ours to change.
    fn worktrees_outside(
        &mut self,
        inventory: &Inventory,
        units: &[Unit],
        repaired: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        let is_back_pointer = |path: &Path| {
            path.file_name().is_some_and(|name| name == "gitdir")
                && path.parent().and_then(Path::parent).is_some_and(|parent| parent.ends_with("worktrees"))
        };
        for entry in inventory.entries.iter().filter(|entry| is_back_pointer(&entry.path)) {
            let git_dir = entry.path.parent().unwrap_or(Path::new(""));
            if units.iter().any(|unit| unit.git_dir == git_dir) {
                continue;
            }
            let text = std::fs::read_to_string(self.tree().join(&entry.path)).unwrap_or_default();
            let text = text.trim();
            let place = match (is_absolute(text), is_windows(text)) {
                (true, true) => to_local(text),
                (true, false) => None,
                // Relative to the source's git dir, and so to another place from here.
                (false, _) => normalized(&self.source.path.join(git_dir).join(text)),
            };
            if let Some(place) = &place {
                self.rewrite(&entry.path, format!("{}\n", place.display()).as_bytes())?;
                repaired.push(entry.path.clone());
            }
            let named = place.unwrap_or_else(|| PathBuf::from(text));
            let named = named.parent().unwrap_or(&named);
            self.notes.push(format!(
                "the worktree `{}` lies outside and still belongs to the old copy; to let it use the new one, run \
                 `git -C {} worktree repair {}`",
                printable(named),
                shell_words::quote(self.destination),
                shell_words::quote(&printable(named)),
            ));
        }
        Ok(())
    }

    /// Borrowed object stores outside of the tree are named by absolute paths, so that they are found from here too.
    fn alternates(&mut self, inventory: &Inventory, repaired: &mut Vec<PathBuf>) -> Result<(), Error> {
        let files = inventory.entries.iter().filter(|entry| entry.path.ends_with("objects/info/alternates"));
        for entry in files {
            let objects = entry.path.parent().and_then(Path::parent).unwrap_or(Path::new(""));
            let text = std::fs::read_to_string(self.tree().join(&entry.path)).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(|line| self.alternate(line, objects)).collect();
            let rewritten = lines.iter().fold(String::new(), |text, line| text + line + "\n");
            if rewritten != text {
                self.rewrite(&entry.path, rewritten.as_bytes())?;
                repaired.push(entry.path.clone());
            }
            for line in lines.iter().filter(|line| is_absolute(line)) {
                self.notes.push(format!(
                    "objects are still borrowed from `{}`; to copy them in, run `git repack -a -d` in the new place",
                    printable(line)
                ));
            }
        }
        Ok(())
    }

    fn alternate(&self, line: &str, objects: &Path) -> String {
        if line.starts_with('#') || line.is_empty() {
            return line.to_owned();
        }
        if is_absolute(line) {
            // One that is in the tree itself moves along.
            if let Some(inside) = self.spellings.strip(line) {
                return relative(objects, &inside).display().to_string();
            }
            return to_local(line).map_or_else(|| line.to_owned(), |path| path.display().to_string());
        }
        if normalized(&objects.join(line)).is_some() {
            return line.to_owned();
        }
        normalized(&self.source.path.join(objects).join(line))
            .map_or_else(|| line.to_owned(), |path| path.display().to_string())
    }
}
