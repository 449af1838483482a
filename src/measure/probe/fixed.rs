//! What `git status` does in the git dir, which a run with a private git dir leaves out.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, openat, statat};

use crate::measure::files::spread;

/// One call that git makes.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// lstat.
    Stat,
    /// access.
    Access,
    /// open, fstat, read to the end.
    Read,
    /// open, fstat, read as a directory.
    List,
}

/// Calls in the git dir of the worktree, in git's order; as traced with git 2.47 on a clean repository.
const IN_GIT_DIR: &[(Call, &str)] = &[
    // Finding the repository.
    (Call::Stat, ""),
    (Call::Read, "HEAD"),
    (Call::Stat, "commondir"),
    (Call::Stat, ""),
    (Call::Stat, "commondir"),
    (Call::Stat, ""),
    (Call::Stat, "commondir"),
    (Call::Stat, "commondir"),
    // HEAD and what is under way, before the index.
    (Call::Read, "HEAD"),
    (Call::Stat, "MERGE_HEAD"),
    (Call::Stat, "CHERRY_PICK_HEAD"),
    (Call::Read, "index"),
    // HEAD again, twice.
    (Call::Read, "HEAD"),
    (Call::Stat, "refs/HEAD"),
    (Call::Read, "HEAD"),
    (Call::Stat, "refs/HEAD"),
    // What is under way, at the end.
    (Call::Stat, "MERGE_HEAD"),
    (Call::Stat, "rebase-apply"),
    (Call::Stat, "rebase-merge"),
    (Call::Stat, "CHERRY_PICK_HEAD"),
    (Call::Stat, "BISECT_LOG"),
    (Call::Stat, "REVERT_HEAD"),
    (Call::Stat, "sequencer/todo"),
];

/// Calls in the git dir that all worktrees share. Objects are left out: the private git dir borrows them in place.
const IN_COMMON_DIR: &[(Call, &str)] = &[
    (Call::Access, "objects"),
    (Call::Access, "refs"),
    (Call::Read, "config"),
    (Call::Access, "config"),
    (Call::Read, "config"),
    (Call::Access, "config"),
    (Call::Read, "config"),
    (Call::Read, "packed-refs"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/tags/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/heads/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/remotes/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/remotes/HEAD/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/tags/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/heads/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/remotes/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "refs/remotes/HEAD/HEAD"),
    (Call::Stat, "packed-refs"),
    (Call::List, "refs"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "info/grafts"),
    (Call::Stat, "shallow"),
    (Call::Access, "info/exclude"),
    (Call::Read, "info/exclude"),
    (Call::Access, "info/exclude"),
    (Call::Read, "info/exclude"),
    (Call::Stat, "packed-refs"),
    (Call::Stat, "packed-refs"),
];

/// Times that git reads the ref which HEAD names.
const REF_READS: usize = 3;

/// Makes the calls once, in series; returns the seconds that all of them take, and how many were made.
///
/// Paths are relative to the worktree as git's are where the git dir is `.git` in it, so that each call costs as many
/// components as git's own. Failures are part of the work: most of these files do not exist. When `limit` comes first,
/// the calls made until then, spread over all, stand for the others.
#[must_use]
pub fn run(
    worktree: BorrowedFd,
    git_dir: &Path,
    common_dir: &Path,
    head_ref: Option<&str>,
    limit: Duration,
) -> (f64, usize) {
    let mut calls: Vec<(Call, PathBuf)> = Vec::new();
    calls.extend(IN_GIT_DIR.iter().map(|(call, name)| (*call, git_dir.join(name))));
    calls.extend(IN_COMMON_DIR.iter().map(|(call, name)| (*call, common_dir.join(name))));
    for name in head_ref.into_iter().flat_map(|name| std::iter::repeat_n(name, REF_READS)) {
        calls.extend([Call::Stat, Call::Read].map(|call| (call, common_dir.join(name))));
    }
    let started = Instant::now();
    let mut made = 0;
    for turn in spread(calls.len()) {
        if made > 0 && started.elapsed() >= limit {
            break;
        }
        let (call, path) = &calls[turn as usize];
        make(worktree, *call, path);
        made += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "some seventy calls")]
    let scale = calls.len() as f64 / made.max(1) as f64;
    (started.elapsed().as_secs_f64() * scale, made)
}

/// Returns the ref that HEAD names; `None` when detached or unreadable.
#[must_use]
pub fn head_ref(worktree: BorrowedFd, git_dir: &Path) -> Option<String> {
    let text = read(worktree, &git_dir.join("HEAD")).ok()?;
    let name = std::str::from_utf8(&text).ok()?.strip_prefix("ref: ")?.trim_end().to_owned();
    let is_plain = name.starts_with("refs/") && !name.split('/').any(|part| matches!(part, "" | "." | ".."));
    is_plain.then_some(name)
}

/// Returns the git dir as git itself would write it with the worktree as current directory.
#[must_use]
pub fn relative_to(worktree: &Path, dir: &Path) -> PathBuf {
    dir.strip_prefix(worktree).unwrap_or(dir).to_owned()
}

fn make(worktree: BorrowedFd, call: Call, path: &Path) {
    // What the calls find does not matter, only that they are made.
    match call {
        Call::Stat => drop(statat(worktree, path, AtFlags::SYMLINK_NOFOLLOW)),
        Call::Access => drop(accessat(worktree, path, Access::READ_OK, AtFlags::empty())),
        Call::Read => drop(read(worktree, path)),
        Call::List => {
            if let Ok(dir) = openat(worktree, path, crate::measure::sweep::DIRECTORY, Mode::empty()) {
                let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 4096];
                let mut listing = rustix::fs::RawDir::new(dir, &mut buffer);
                while listing.next().is_some() {}
            }
        }
    }
}

/// Reads a regular file whole; anything else is not waited for.
fn read(worktree: BorrowedFd, path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(openat(worktree, path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut data = Vec::new();
    file.read_to_end(&mut data)?;
    Ok(data)
}
