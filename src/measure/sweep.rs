//! The `stat` and `walk` workloads: plain system calls on the repository's own tracked files.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, openat, statat};
use serde::{Deserialize, Serialize};

use crate::measure::files::Files;
use crate::measure::raw_index::{Kind, RawIndex};
use crate::signals::Interrupt;

/// Calls between two looks at the clock: a look costs some 30 ns, a stat call on ext4 some 1 µs.
const CLOCK_EVERY: usize = 16;
/// Bytes for one directory read; what glibc's `opendir`, and so git, uses.
pub const DIRECTORY_BUFFER: usize = 32 * 1024;

/// What one run of a workload found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// How long it took, in seconds.
    pub elapsed_s: f64,
    /// Operations that were done.
    pub done: u64,
    /// Numbers of entries whose kind or size is not what the index says.
    pub odd: Vec<u32>,
    /// Numbers of entries (or directories) that could not be looked at, with the system's error number.
    pub failed: Vec<(u32, i32)>,
    /// Seconds of each operation, in order, where they were asked for.
    pub latencies: Vec<f32>,
    /// Whether the limit came before the end.
    pub is_cut: bool,
}

impl Pass {
    /// Returns the mean time of an operation, in seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of operations are far below 2^52")]
    pub fn per_operation_s(&self) -> f64 {
        self.elapsed_s / self.done.max(1) as f64
    }
}

/// When a pass stops early.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a> {
    /// At this time.
    pub at: Instant,
    /// When this is set.
    pub flag: &'a Interrupt,
}

impl Stop<'_> {
    /// Returns whether it is time to stop.
    #[must_use]
    pub fn is_now(&self) -> bool {
        self.flag.is_set() || Instant::now() >= self.at
    }

    /// Returns how much time is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// Takes the stat data of each listed entry, in order, by its path relative to the open worktree.
///
/// The loop does what a C loop would: one `newfstatat` a path on a string that is ready, and a comparison of kind and
/// size with the index, `expected` being the sizes by entry number. Single calls are timed only when `times_each`.
#[must_use]
pub fn stat_pass(
    worktree: BorrowedFd,
    index: &RawIndex,
    expected: &[u32],
    list: &[u32],
    times_each: bool,
    stop: Stop,
) -> Pass {
    let mut pass = Pass::default();
    if times_each {
        pass.latencies.reserve(list.len());
    }
    let started = Instant::now();
    for (turn, number) in list.iter().enumerate() {
        // The first call is always made; with a clock at hand it is looked at each time.
        if turn > 0 && (times_each || turn % CLOCK_EVERY == 0) && stop.is_now() {
            pass.is_cut = true;
            break;
        }
        let Some(entry) = index.entries.get(*number as usize) else { continue };
        let before = times_each.then(Instant::now);
        let result = statat(worktree, index.c_name(entry), AtFlags::SYMLINK_NOFOLLOW);
        if let Some(before) = before {
            pass.latencies.push(before.elapsed().as_secs_f32());
        }
        match result {
            Ok(stat) => {
                if !is_as_recorded(&stat, entry.kind(), expected.get(*number as usize).copied()) {
                    pass.odd.push(*number);
                }
            }
            Err(error) => pass.failed.push((*number, error.raw_os_error())),
        }
        pass.done += 1;
    }
    pass.elapsed_s = started.elapsed().as_secs_f64();
    pass
}

/// Returns whether a file is of the kind and size that the index recorded; sizes are compared modulo 2^32.
fn is_as_recorded(stat: &Stat, kind: Kind, size: Option<u32>) -> bool {
    let file_type = FileType::from_raw_mode(stat.st_mode);
    let is_kind = match kind {
        Kind::Symlink => file_type == FileType::Symlink,
        Kind::Gitlink | Kind::SparseDirectory => file_type == FileType::Directory,
        Kind::File => file_type == FileType::RegularFile,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the index keeps 32 bits of the size")]
    let actual = stat.st_size as u32;
    is_kind && size.is_none_or(|size| size == actual)
}

/// Does in each listed directory what `du -s` or a file watcher does: open, read to the end, stat every tracked entry.
///
/// Entries that are not tracked are listed and left alone, so that both sides do the same work; kind and size of the others
/// are compared with the index as in [`stat_pass`].
#[must_use]
pub fn walk_pass(
    worktree: BorrowedFd,
    index: &RawIndex,
    expected: &[u32],
    files: &Files,
    list: &[u32],
    stop: Stop,
) -> Pass {
    let mut pass = Pass::default();
    let mut buffer = vec![const { MaybeUninit::uninit() }; DIRECTORY_BUFFER];
    let started = Instant::now();
    let walk = Walk { worktree, index, expected, files };
    for dir in list {
        if stop.is_now() {
            pass.is_cut = true;
            break;
        }
        if let Err(error) = walk.one(*dir as usize, &mut buffer, &mut pass) {
            pass.failed.push((*dir, error.raw_os_error().unwrap_or(0)));
        }
    }
    pass.elapsed_s = started.elapsed().as_secs_f64();
    pass
}

struct Walk<'a> {
    worktree: BorrowedFd<'a>,
    index: &'a RawIndex,
    expected: &'a [u32],
    files: &'a Files,
}

impl Walk<'_> {
    fn one(&self, dir: usize, buffer: &mut [MaybeUninit<u8>], pass: &mut Pass) -> io::Result<()> {
        let path = self.files.path(self.index, dir);
        let open = openat(self.worktree, c_path(path)?.as_c_str(), DIRECTORY, Mode::empty())?;
        pass.done += 1;
        let mut listing = RawDir::new(&open, buffer);
        while let Some(entry) = listing.next() {
            entry?;
        }
        let skip = if path.is_empty() { 0 } else { path.len() + 1 };
        for number in self.files.directly_in(dir) {
            let Some(entry) = self.index.entries.get(*number as usize) else { continue };
            let name = c_path(&self.index.name(entry)[skip..])?;
            pass.done += 1;
            match statat(&open, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    if !is_as_recorded(&stat, entry.kind(), self.expected.get(*number as usize).copied()) {
                        pass.odd.push(*number);
                    }
                }
                Err(error) => pass.failed.push((*number, error.raw_os_error())),
            }
        }
        Ok(())
    }
}

/// Flags for opening a directory, those of glibc's `opendir`.
pub const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);

/// Returns a relative path for a system call; `.` for the empty one.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] when the path holds a NUL.
pub fn c_path(path: &[u8]) -> io::Result<CString> {
    CString::new(if path.is_empty() { b"." } else { path }).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
}
