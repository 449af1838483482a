//! The system calls of the move, relative to open directories and never through a symbolic link.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, Statx, StatxFlags};
use rustix::io::Errno;

/// As much of a directory as one request brings; larger than any server answers with.
const DIRECTORY_BUFFER_BYTES: usize = 64 * 1024;
/// How often a read that failed with a fault of the connection is tried again.
pub(super) const READ_ATTEMPTS: u32 = 4;

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket or a device.
    Other,
}

/// The part of a file's stat data that a copy keeps or is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStat {
    /// What it is.
    pub(super) kind: Kind,
    /// Permission bits.
    pub(super) mode: u32,
    /// Device and inode: two names with the same are hard links of one file.
    pub(super) id: (u64, u64),
    /// Number of names.
    pub(super) links: u64,
    /// Owner and group.
    pub(super) owner: (u32, u32),
    /// Size in bytes.
    pub(super) size: u64,
    /// Bytes that are really stored; fewer than `size` where a file has holes.
    pub(super) stored: u64,
    /// Modification time, seconds and nanoseconds.
    pub(super) mtime: (i64, i64),
    /// Change time, seconds and nanoseconds.
    pub(super) ctime: (i64, i64),
}

impl FileStat {
    /// Returns whether nothing says that the content changed between the two.
    ///
    /// Inode numbers are left out: some shared mounts make them up anew.
    #[must_use]
    pub(super) fn is_same_content(&self, other: &Self) -> bool {
        (self.kind, self.size, self.mtime, self.ctime) == (other.kind, other.size, other.mtime, other.ctime)
    }
}

impl From<Stat> for FileStat {
    fn from(stat: Stat) -> Self {
        #[expect(clippy::cast_possible_wrap, reason = "nanoseconds are below 10^9 on every architecture")]
        let (mtime_ns, ctime_ns) = (stat.st_mtime_nsec as i64, stat.st_ctime_nsec as i64);
        Self {
            kind: kind(stat.st_mode),
            mode: stat.st_mode & 0o7777,
            id: (stat.st_dev, stat.st_ino),
            links: stat.st_nlink,
            owner: (stat.st_uid, stat.st_gid),
            size: stat.st_size.unsigned_abs(),
            stored: stat.st_blocks.unsigned_abs() * 512,
            mtime: (stat.st_mtime, mtime_ns),
            ctime: (stat.st_ctime, ctime_ns),
        }
    }
}

impl From<Statx> for FileStat {
    fn from(found: Statx) -> Self {
        Self {
            kind: kind(u32::from(found.stx_mode)),
            mode: u32::from(found.stx_mode) & 0o7777,
            id: (rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino),
            links: u64::from(found.stx_nlink),
            owner: (found.stx_uid, found.stx_gid),
            size: found.stx_size,
            stored: found.stx_blocks * 512,
            mtime: (found.stx_mtime.tv_sec, i64::from(found.stx_mtime.tv_nsec)),
            ctime: (found.stx_ctime.tv_sec, i64::from(found.stx_ctime.tv_nsec)),
        }
    }
}

fn kind(mode: u32) -> Kind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        _ => Kind::Other,
    }
}

/// Opens a directory by path, links resolved: the root of either tree.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a directory in another one; a symbolic link in its place is an error.
pub(super) fn open_dir(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_io(|| Ok(rustix::fs::openat(&parent, name, flags, Mode::empty())?))
}

/// Opens the directory at a relative path below `root`, component by component.
pub(super) fn open_below(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let mut current = open_dir(root, OsStr::new("."))?;
    for name in path {
        current = open_dir(&current, name)?;
    }
    Ok(current)
}

/// Whether the source's mount lets us read without touching the access time; learned at the first refusal.
static MAY_SKIP_ATIME: AtomicBool = AtomicBool::new(true);

/// Opens a regular file for reading, without blocking on a pipe in its place.
pub(super) fn open_file(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    retry_io(|| {
        if MAY_SKIP_ATIME.load(Ordering::Relaxed) {
            match rustix::fs::openat(&parent, name, flags | OFlags::NOATIME, Mode::empty()) {
                // Only the owner may ask for it.
                Err(Errno::PERM | Errno::INVAL) => MAY_SKIP_ATIME.store(false, Ordering::Relaxed),
                other => return Ok(other?),
            }
        }
        Ok(rustix::fs::openat(&parent, name, flags, Mode::empty())?)
    })
}

/// Returns the stat data of a name in a directory.
pub(super) fn stat_at(parent: impl AsFd, name: &OsStr) -> io::Result<FileStat> {
    retry_io(|| Ok(rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?.into()))
}

/// Returns the stat data of a name as the look-up of the name brought it, without asking the server once more.
///
/// On a mount that caches names the answer may be as old as its cache; whoever uses it must look again in the end.
pub(super) fn stat_at_once(parent: impl AsFd, name: &OsStr) -> io::Result<FileStat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::BASIC_STATS;
    match retry_io(|| Ok(rustix::fs::statx(&parent, name, flags, wanted)?)) {
        Ok(found) if found.stx_mask & wanted.bits() == wanted.bits() => Ok(found.into()),
        // A kernel without statx, or a filesystem that left something out.
        _ => stat_at(parent, name),
    }
}

/// Returns the stat data of an open file.
pub(super) fn stat_fd(fd: impl AsFd) -> io::Result<FileStat> {
    retry_io(|| Ok(rustix::fs::fstat(&fd)?.into()))
}

/// Returns where a link points to.
pub(super) fn read_link(parent: impl AsFd, name: &OsStr) -> io::Result<OsString> {
    let target = retry_io(|| Ok(rustix::fs::readlinkat(&parent, name, Vec::new())?))?;
    Ok(OsStr::from_bytes(target.as_bytes()).to_owned())
}

/// Lists the names in an open directory, `.` and `..` left out.
pub(super) fn list(directory: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    let mut buffer = Vec::with_capacity(DIRECTORY_BUFFER_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Tries again what failed with a fault of the connection, which on shared mounts passes.
pub(super) fn retry_io<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut attempt = 1;
    loop {
        match call() {
            Err(error) if attempt < READ_ATTEMPTS && is_passing(&error) => {
                // Twenty, forty, eighty milliseconds: a server that is only busy has answered by then.
                std::thread::sleep(std::time::Duration::from_millis(10 << attempt));
                attempt += 1;
            }
            other => return other,
        }
    }
}

/// Returns whether an error is of the kind that may be gone a moment later.
fn is_passing(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::IO | Errno::STALE | Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT))
}

/// Returns whether an error says that nothing more can be written there, whatever file is next.
pub(super) fn is_full(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::ROFS))
}

/// Raises the number of files that may be open to what the system allows; some hundred are under way at once.
pub(super) fn allow_many_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Failing leaves the limit as it was, and the copy then reports which file could not be opened.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Returns the bits that this process takes from the mode of a new file; 022 where the kernel does not say.
pub(super) fn umask() -> u32 {
    const COMMON: u32 = 0o022;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|value| u32::from_str_radix(value.trim(), 8).ok()).unwrap_or(COMMON)
}
