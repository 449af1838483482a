//! Entries of the index that make `git status` read files, by git's own rules.

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::measure::raw_index::{Kind, RawEntry, RawIndex};
use crate::measure::settings::Settings;
use crate::measure::skeleton::entry_stat;

/// The settings that decide which stat data git compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatRules {
    /// Only size and whole seconds of mtime count (`core.checkStat=minimal`).
    pub is_minimal: bool,
    /// The change time counts (`core.trustctime`), unless minimal.
    pub trusts_ctime: bool,
    /// The executable bit counts (`core.fileMode`).
    pub file_mode: bool,
    /// Links are links (`core.symlinks`).
    pub symlinks: bool,
}

impl From<&Settings> for StatRules {
    fn from(settings: &Settings) -> Self {
        Self {
            is_minimal: settings.check_stat_minimal,
            trusts_ctime: settings.trust_ctime,
            file_mode: settings.file_mode,
            symlinks: settings.symlinks,
        }
    }
}

/// How a file compares with its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// Nothing differs: git goes on.
    Clean,
    /// The stat data differ but may hide the same content: git reads the file.
    Unsure,
    /// The size, the type or the mode differs: git knows without reading.
    Modified,
}

/// Compares a file with its entry as git's `match_stat_data` and `ce_match_stat_basic` do (read-cache.c, statinfo.c).
///
/// Whole seconds of the times; inode, owner and group unless minimal; the device never.
#[must_use]
pub fn compare(index: &RawIndex, bytes: &[u8], entry: &RawEntry, stat: &Stat, rules: StatRules) -> Match {
    let recorded = index.stat(bytes, entry);
    let actual = entry_stat(stat);
    let file_type = FileType::from_raw_mode(stat.st_mode);
    let is_right_type = match entry.kind() {
        Kind::Symlink => file_type == FileType::Symlink || (!rules.symlinks && file_type == FileType::RegularFile),
        Kind::File => file_type == FileType::RegularFile,
        Kind::Gitlink | Kind::SparseDirectory => file_type == FileType::Directory,
    };
    let is_executable = stat.st_mode & 0o100 != 0;
    let has_mode_changed = rules.file_mode && entry.kind() == Kind::File && is_executable != entry.is_executable();
    // Size 0 marks an entry that git was not sure of, unless the content is empty indeed.
    let is_smudged = recorded.size == 0 && !index.is_empty_blob(bytes, entry);
    if !is_right_type || has_mode_changed || (recorded.size != actual.size && !is_smudged) {
        return Match::Modified;
    }
    let differs = recorded.mtime.0 != actual.mtime.0
        || (!rules.is_minimal && rules.trusts_ctime && recorded.ctime.0 != actual.ctime.0)
        || (!rules.is_minimal
            && (recorded.ino != actual.ino || recorded.uid != actual.uid || recorded.gid != actual.gid));
    if differs || is_smudged { Match::Unsure } else { Match::Clean }
}

/// Counts the entries that are as new as the index file, in whole seconds, which git reads to be sure.
///
/// `index_mtime_s` is the index file's modification time in seconds since the epoch.
#[must_use]
pub fn racy(index: &RawIndex, bytes: &[u8], index_mtime_s: i64) -> u64 {
    let is_racy = |entry: &&RawEntry| {
        entry.is_in_worktree()
            && entry.stage() == 0
            && !entry.is_intent_to_add()
            && index_mtime_s <= i64::from(index.stat(bytes, entry).mtime.0)
    };
    index.entries.iter().filter(is_racy).count() as u64
}
