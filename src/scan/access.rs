//! Counted, bounded, read-only access to the repository's mount.
//!
//! On a slow mount each path that the kernel resolves costs a round trip a component, so scanning goes through this
//! one type: it counts what it does, and the report prints the count (`cost.scan_calls_in_place`).

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, OFlags, Stat};

use crate::error::NotAFile;

/// What was asked of the mount so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessCount {
    /// Calls that resolve a path: stat, open, readlink, opendir.
    pub calls: u64,
    /// Calls on an open descriptor: read, getdents.
    pub reads: u64,
    /// Bytes read from files.
    pub bytes: u64,
}

/// The beginning of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// At most as many bytes as were asked for.
    pub data: Vec<u8>,
    /// Whether the file goes on.
    pub is_truncated: bool,
    /// The file's modification time: seconds and nanoseconds since the epoch.
    pub mtime: (i64, u32),
}

/// One entry of a listed directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: std::ffi::OsString,
    /// What it is, as far as the directory itself tells; `None` where the filesystem does not say.
    pub kind: Option<EntryKind>,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, a socket or a pipe.
    Other,
}

/// Reads from the repository's mount and counts each call; see the module's text.
#[derive(Debug, Default)]
pub struct Access {
    calls: AtomicU64,
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Access {
    /// Returns what was asked so far.
    #[must_use]
    pub fn count(&self) -> AccessCount {
        AccessCount {
            calls: self.calls.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Adds calls that a library made on our behalf.
    pub fn add_calls(&self, calls: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
    }

    /// Returns the stat data of a path without following a final symbolic link.
    ///
    /// # Errors
    ///
    /// Those of `lstat(2)`.
    pub fn lstat(&self, path: &Path) -> io::Result<Stat> {
        self.add_calls(1);
        Ok(rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Returns whether something is at `path`; a path that leads through a file counts as nothing.
    ///
    /// # Errors
    ///
    /// Those of `lstat(2)` but for 'no such file' and 'not a directory'.
    pub fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.lstat(path) {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a whole regular file of at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// Those of `open(2)` and `read(2)`; [`io::ErrorKind::FileTooLarge`] when the file is longer.
    pub fn read(&self, path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
        let head = self.read_head(path, max_bytes)?;
        if head.is_truncated {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {max_bytes} bytes")));
        }
        Ok(head.data)
    }

    /// Like [`Self::read`], but `None` when there is no such file.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], without 'no such file' and 'not a directory'.
    pub fn read_if_present(&self, path: &Path, max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
        match self.read(path, max_bytes) {
            Ok(data) => Ok(Some(data)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a directory and returns its path with every symbolic link resolved, in one call on the mount.
    ///
    /// The kernel resolves the whole path at once and tells the result in `/proc/self/fd`; `realpath(3)` would ask for
    /// each component. A file is answered with its directory.
    ///
    /// # Errors
    ///
    /// Those of `open(2)` and `readlink(2)`.
    pub fn real_directory(&self, path: &Path) -> io::Result<PathBuf> {
        let real = self.real_path(path)?;
        if rustix::fs::FileType::from_raw_mode(real.1.st_mode).is_dir() {
            return Ok(real.0);
        }
        Ok(real.0.parent().unwrap_or(Path::new("/")).to_path_buf())
    }

    fn real_path(&self, path: &Path) -> io::Result<(PathBuf, Stat)> {
        self.add_calls(1);
        let descriptor = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty())?;
        let stat = rustix::fs::fstat(&descriptor)?;
        let link = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
        Ok((std::fs::read_link(link)?, stat))
    }

    /// Reads the first `max_bytes` of a regular file; a final symbolic link is not followed.
    ///
    /// Opened without blocking, so that a FIFO in the file's place cannot hang the run.
    ///
    /// # Errors
    ///
    /// Those of `open(2)` and `read(2)`; those made of [`NotAFile`] when it is no regular file.
    pub fn read_head(&self, path: &Path, max_bytes: usize) -> io::Result<Head> {
        self.add_calls(1);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_a_file(&metadata).into());
        }
        self.read_from(file, &metadata, max_bytes)
    }

    fn read_from(&self, file: File, metadata: &Metadata, max_bytes: usize) -> io::Result<Head> {
        // One byte more than asked for tells whether the file goes on, without another call.
        let limit = max_bytes as u64 + 1;
        let mut counted = CountedReader { inner: file, reads: &self.reads };
        let capacity = metadata.len().min(limit);
        // The size is only a forecast (0 for files of procfs), and one byte more saves the call that finds the end.
        let mut data = Vec::with_capacity(usize::try_from(capacity).unwrap_or(0) + 1);
        Read::take(&mut counted, limit).read_to_end(&mut data)?;
        let is_truncated = data.len() > max_bytes;
        data.truncate(max_bytes);
        self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        // Nanoseconds are below 10^9, which fits.
        let mtime = (metadata.mtime(), u32::try_from(metadata.mtime_nsec()).unwrap_or(0));
        Ok(Head { data, is_truncated, mtime })
    }

    /// Returns where a symbolic link points to.
    ///
    /// # Errors
    ///
    /// Those of `readlink(2)`.
    pub fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.add_calls(1);
        std::fs::read_link(path)
    }

    /// Lists at most `max_entries` entries of a directory, in the filesystem's order.
    ///
    /// # Errors
    ///
    /// Those of `open(2)` and `getdents(2)`.
    pub fn list(&self, path: &Path, max_entries: usize) -> io::Result<Vec<DirEntry>> {
        self.add_calls(1);
        self.reads.fetch_add(1, Ordering::Relaxed);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path)?.take(max_entries) {
            let entry = entry?;
            let kind = entry.file_type().ok().map(|kind| {
                if kind.is_file() {
                    EntryKind::File
                } else if kind.is_dir() {
                    EntryKind::Directory
                } else if kind.is_symlink() {
                    EntryKind::Symlink
                } else {
                    EntryKind::Other
                }
            });
            entries.push(DirEntry { name: entry.file_name(), kind });
        }
        Ok(entries)
    }
}

fn not_a_file(metadata: &Metadata) -> NotAFile {
    let kind = metadata.file_type();
    if kind.is_dir() {
        NotAFile::Directory
    } else if kind.is_fifo() {
        NotAFile::Pipe
    } else {
        NotAFile::Device
    }
}

/// Returns whether an error means that there is nothing at the path.
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

struct CountedReader<'a> {
    inner: File,
    reads: &'a AtomicU64,
}

impl Read for CountedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, b"hello").unwrap();
        let access = Access::default();
        assert!(access.exists(&file).unwrap());
        assert!(!access.exists(&file.join("below-a-file")).unwrap());
        assert_eq!(access.read(&file, 100).unwrap(), b"hello");
        assert_eq!(access.list(dir.path(), 10).unwrap().len(), 1);
        assert_eq!(access.count().calls, 4);
        assert_eq!(access.count().bytes, 5);
    }

    #[test]
    fn a_long_file_is_cut_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, vec![b'x'; 1000]).unwrap();
        let access = Access::default();
        let head = access.read_head(&file, 10).unwrap();
        assert_eq!((head.data, head.is_truncated), (vec![b'x'; 10], true));
        assert_eq!(access.read(&file, 999).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(access.read(&file, 1000).unwrap().len(), 1000);
    }

    #[test]
    fn a_link_or_a_directory_is_not_read_as_a_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), b"s").unwrap();
        std::os::unix::fs::symlink("secret", dir.path().join("link")).unwrap();
        let access = Access::default();
        assert!(access.read(&dir.path().join("link"), 10).is_err());
        assert_eq!(NotAFile::of(&access.read(dir.path(), 10).unwrap_err()), Some(NotAFile::Directory));
        let device = access.read(Path::new("/dev/null"), 10).unwrap_err();
        assert_eq!(NotAFile::of(&device), Some(NotAFile::Device));
    }
}
