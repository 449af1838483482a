//! Permission bits, where the old side showed the same ones for all.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use gix::index::entry::Mode as IndexMode;
use rustix::fs::{AtFlags, Mode};

use crate::error::Error;
use crate::migrate::fsys::{self, Kind};
use crate::migrate::inventory::{Entry, Inventory};
use crate::migrate::repair::{Repair, Repairer, in_tree, index};
use crate::migrate::unit::Unit;

impl Repairer<'_> {
    /// Gives tracked files the mode of the index, and others one by their content.
    pub(super) fn modes(&mut self, inventory: &mut Inventory, units: &[Unit]) -> Result<(), Error> {
        let tracked = self.tracked_modes(units)?;
        let git_dirs: Vec<&Path> = units.iter().map(|unit| unit.git_dir.as_path()).collect();
        let mask = fsys::umask();
        let (mut from_index, mut by_content) = (Vec::new(), Vec::new());
        let mut changed = 0_u64;
        for entry in &mut inventory.entries {
            let is_tracked = tracked.get(&entry.path);
            let Some(wanted) = self.wanted(entry, is_tracked.copied(), &git_dirs) else { continue };
            let wanted = wanted & !mask;
            if wanted == entry.stat.mode {
                continue;
            }
            let has_changed_meaning = entry.stat.kind == Kind::File && (wanted ^ entry.stat.mode) & 0o100 != 0;
            self.set_mode(&entry.path, entry.stat.kind, wanted)?;
            entry.stat.mode = wanted;
            changed += 1;
            if has_changed_meaning && is_tracked.is_some() {
                from_index.push(entry.path.clone());
            } else if has_changed_meaning && wanted & 0o100 != 0 {
                by_content.push(entry.path.clone());
            }
        }
        if changed > 0 {
            self.notes.push(format!("{changed} files and directories got the permissions of the new side"));
        }
        self.report(Repair::new("modes", "executable bit set as the index has it", from_index));
        self.report(Repair::new("modes-by-content", "untracked programs and scripts made executable", by_content));
        Ok(())
    }

    /// Returns the executable bit of every tracked file in the tree.
    fn tracked_modes(&self, units: &[Unit]) -> Result<HashMap<PathBuf, bool>, Error> {
        let mut tracked = HashMap::new();
        for unit in units {
            let opened = index::open(&self.tree().join(&unit.git_dir), &self.tree().join(&unit.common_dir))?;
            for (path, mode) in opened.index.iter().flat_map(index::modes) {
                if matches!(mode, IndexMode::FILE | IndexMode::FILE_EXECUTABLE) {
                    tracked.insert(in_tree(&unit.worktree, &path), mode == IndexMode::FILE_EXECUTABLE);
                }
            }
        }
        Ok(tracked)
    }

    /// Returns the mode before the umask; `None` for what has none.
    fn wanted(&self, entry: &Entry, tracked: Option<bool>, git_dirs: &[&Path]) -> Option<u32> {
        let plain = |is_executable: bool| if is_executable { 0o777 } else { 0o666 };
        match (entry.stat.kind, tracked) {
            (Kind::Directory, _) => Some(0o777),
            (Kind::File, Some(is_executable)) => Some(plain(is_executable)),
            (Kind::File, None) => match git_dirs.iter().find_map(|git_dir| entry.path.strip_prefix(git_dir).ok()) {
                // Git itself makes objects and packs read-only.
                Some(inner) if inner.starts_with("objects") && !inner.starts_with("objects/info") => Some(0o444),
                Some(inner) if inner.starts_with("hooks") => Some(plain(self.is_program(&entry.path))),
                Some(_) => Some(0o666),
                None => Some(plain(self.is_program(&entry.path))),
            },
            _ => None,
        }
    }

    /// Returns whether a file begins as a script or as a Linux program does.
    fn is_program(&self, path: &Path) -> bool {
        let mut head = [0_u8; 4];
        let read = fsys::open_file(&self.partial.tree_fd, path.as_os_str())
            .and_then(|file| std::fs::File::from(file).read(&mut head));
        read.is_ok_and(|length| head[..length].starts_with(b"#!") || head[..length] == *b"\x7fELF")
    }

    fn set_mode(&self, path: &Path, kind: Kind, mode: u32) -> Result<(), Error> {
        // Directories get theirs when nothing is written in them any more.
        if kind == Kind::Directory {
            return Ok(());
        }
        rustix::fs::chmodat(&self.partial.tree_fd, path, Mode::from_raw_mode(mode), AtFlags::empty())
            .map_err(|source| Error::io("set the mode of", self.tree().join(path), source.into()))
    }
}
