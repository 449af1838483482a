//! Putting single paths of the worktree into the skeleton, as they are.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, fchmod, openat, readlinkat, statat, symlinkat, unlinkat};
use rustix::io::Errno;

use crate::measure::probe::{Copied, PathBytes};
use crate::measure::skeleton::make_dirs;
use crate::measure::sweep::{DIRECTORY, DIRECTORY_BUFFER, Stop, c_path};

/// Bytes that may be copied in all; more would cost more time than the whole run has.
const MOST_BYTES: u64 = 64 << 20;
/// Entries of untracked directories that are made in all.
const MOST_ENTRIES: u32 = 5_000;
/// Depth to which untracked directories are followed.
const MOST_DEPTH: u32 = 32;
/// Files whose content decides what `git status` says, wherever they are.
pub const READ_BY_GIT: [&[u8]; 3] = [b".gitignore", b".gitattributes", b".gitmodules"];

/// Copies paths until a limit is met.
#[must_use]
pub fn copy(worktree: BorrowedFd, skeleton: BorrowedFd, paths: &[PathBytes], stop: Stop) -> Copied {
    let mut copier = Copier { worktree, skeleton, stop, bytes: 0, entries: 0, is_cut: false };
    let done = paths.iter().map(|path| copier.one(path).is_ok()).collect();
    Copied { done, is_cut: copier.is_cut }
}

struct Copier<'a> {
    worktree: BorrowedFd<'a>,
    skeleton: BorrowedFd<'a>,
    stop: Stop<'a>,
    bytes: u64,
    entries: u32,
    is_cut: bool,
}

impl Copier<'_> {
    fn one(&mut self, path: &[u8]) -> io::Result<()> {
        self.check_limits()?;
        if let Some(dir) = path.strip_suffix(b"/") {
            return self.untracked(dir, 0);
        }
        let (dir, base) = split(path);
        let source = c_path(path)?;
        let stat = match statat(self.worktree, source.as_c_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => return self.remove(dir, base),
            Err(error) => return Err(error.into()),
        };
        let parent = make_dirs(self.skeleton, dir)?;
        let base = c_path(base)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(&parent, base.as_c_str(), source.as_c_str(), stat.st_mode),
            FileType::Symlink => {
                let target = readlinkat(self.worktree, source.as_c_str(), Vec::new())?;
                unlink(&parent, base.as_c_str())?;
                Ok(symlinkat(target.as_c_str(), &parent, base.as_c_str())?)
            }
            FileType::Directory => {
                unlink(&parent, base.as_c_str())?;
                self.untracked(path, 0)
            }
            // Git takes no notice of pipes, sockets and devices, but for the file that is missing.
            _ => unlink(&parent, base.as_c_str()),
        }
    }

    fn check_limits(&mut self) -> io::Result<()> {
        if self.stop.is_now() || self.bytes >= MOST_BYTES || self.entries >= MOST_ENTRIES {
            self.is_cut = true;
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    fn file(&mut self, parent: &OwnedFd, base: &std::ffi::CStr, source: &std::ffi::CStr, mode: u32) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let from = File::from(openat(self.worktree, source, flags, Mode::empty())?);
        if !from.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        unlink(parent, base)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = openat(parent, base, flags, Mode::from_raw_mode(0o644))?;
        fchmod(&to, Mode::from_raw_mode(if mode & 0o100 == 0 { 0o644 } else { 0o755 }))?;
        let mut to = File::from(to);
        let mut limited = from.take(MOST_BYTES - self.bytes);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = limited.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            to.write_all(&buffer[..count])?;
            self.bytes += count as u64;
            self.check_limits()?;
        }
        Ok(())
    }

    fn remove(&self, dir: &[u8], base: &[u8]) -> io::Result<()> {
        let parent = make_dirs(self.skeleton, dir)?;
        unlink(&parent, c_path(base)?.as_c_str())
    }

    /// Makes an untracked directory with the names in it; only files that git reads get their content.
    fn untracked(&mut self, path: &[u8], depth: u32) -> io::Result<()> {
        let into = make_dirs(self.skeleton, path)?;
        let from = openat(self.worktree, c_path(path)?.as_c_str(), DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        let mut buffer = vec![MaybeUninit::uninit(); DIRECTORY_BUFFER];
        let mut names = Vec::new();
        let mut listing = RawDir::new(&from, &mut buffer);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push((entry.file_name().to_owned(), entry.file_type()));
            }
        }
        for (name, kind) in names {
            self.check_limits()?;
            self.entries += 1;
            let below = [path, b"/", name.to_bytes()].concat();
            if kind == FileType::Directory && depth < MOST_DEPTH {
                self.untracked(&below, depth + 1)?;
            } else if READ_BY_GIT.contains(&name.to_bytes()) && kind == FileType::RegularFile {
                self.file(&into, &name, c_path(&below)?.as_c_str(), 0)?;
            } else if kind != FileType::Directory {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                openat(&into, name.as_c_str(), flags, Mode::from_raw_mode(0o644))?;
            }
        }
        Ok(())
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.iter().rposition(|byte| *byte == b'/').map_or((&path[..0], path), |cut| (&path[..cut], &path[cut + 1..]))
}

/// Removes what is at a name, an empty directory too; nothing there is fine.
fn unlink(parent: &OwnedFd, base: &std::ffi::CStr) -> io::Result<()> {
    match unlinkat(parent.as_fd(), base, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => match unlinkat(parent.as_fd(), base, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOTEMPTY) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}
