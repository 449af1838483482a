//! What it costs that git reads files whose entries it cannot trust.

use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};
use serde::{Deserialize, Serialize};

use crate::measure::dirty::{Match, StatRules, compare};
use crate::measure::files::{Files, spread};
use crate::measure::raw_index::RawIndex;
use crate::measure::sweep::Stop;

/// Files that are read at most: their mean is then known to a few percent.
const MOST_FILES: u64 = 50;
/// Bytes that are read of one file; a larger one is scaled up.
const MOST_BYTES: u64 = 8 << 20;

/// A sample of stale entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stale {
    /// Entries that were looked at.
    pub looked: u64,
    /// Those among them that git would read.
    pub stale: u64,
    /// Mean time of reading one, in seconds: stat, open, read, close, as git does in series.
    pub mean_s: f64,
}

/// Looks for stale entries all over the index and reads them.
#[must_use]
pub fn sample(
    worktree: BorrowedFd,
    index: &RawIndex,
    bytes: &[u8],
    files: &Files,
    rules: StatRules,
    index_mtime_s: i64,
    stop: Stop,
) -> Stale {
    let mut result = Stale::default();
    let mut total_s = 0.0;
    for turn in spread(files.paths.len()) {
        if result.stale >= MOST_FILES || (result.looked > 0 && stop.is_now()) {
            break;
        }
        let entry = &index.entries[files.paths[turn as usize] as usize];
        if entry.stage() != 0 || entry.is_intent_to_add() || entry.is_assume_unchanged() {
            continue;
        }
        result.looked += 1;
        let before = Instant::now();
        let Ok(stat) = statat(worktree, index.c_name(entry), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let is_racy = index_mtime_s <= i64::from(index.stat(bytes, entry).mtime.0);
        let is_stale = match compare(index, bytes, entry, &stat, rules) {
            Match::Clean => is_racy,
            Match::Unsure => true,
            Match::Modified => false,
        };
        if is_stale {
            let factor = read(worktree, index.c_name(entry), u64::try_from(stat.st_size).unwrap_or(0));
            total_s += before.elapsed().as_secs_f64() * factor;
            result.stale += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 50 files")]
    if result.stale > 0 {
        result.mean_s = total_s / result.stale as f64;
    }
    result
}

/// Reads a file as far as it may; returns by how much the whole is more than that.
fn read(worktree: BorrowedFd, path: &std::ffi::CStr, size: u64) -> f64 {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(fd) = openat(worktree, path, flags, Mode::empty()) {
        let mut content = Vec::new();
        // A file that cannot be read costs the time that it took to find out.
        let _ = File::from(fd).take(MOST_BYTES).read_to_end(&mut content);
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
    let factor = size as f64 / MOST_BYTES as f64;
    factor.max(1.0)
}
