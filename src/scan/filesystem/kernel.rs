//! The few questions that are put to the kernel about a path.
//!
//! On a mount whose server is gone each of them may never return, and then the process cannot end either; whoever asks
//! does so in a process that can be left behind.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::FoundBy;
use super::mount_table::MountTable;
use crate::error::Error;

/// What the kernel says about a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The path without links.
    pub real_path: PathBuf,
    /// Id of the mount, and how it was told; absent where the kernel does not tell.
    pub mount_id: Option<(u64, FoundBy)>,
    /// Calls that resolved the path.
    pub calls: u64,
}

/// Reads the mount table of this process.
pub(super) fn read_mount_table() -> Result<MountTable, Error> {
    let with_ids = Path::new("/proc/self/mountinfo");
    match fs::read(with_ids).or_else(|_| fs::read("/proc/mounts")) {
        Ok(text) => Ok(MountTable::parse(&text)),
        Err(error) => Err(Error::io("read", with_ids, error)),
    }
}

/// Resolves a path in one call, and asks which mount it ended on.
///
/// The path is opened only as a place (`O_PATH`): neither its content nor the right to read it is needed.
///
/// # Errors
///
/// Those of `open(2)`; `ENOENT` for a directory that was deleted while it is in use.
pub fn find(path: &Path) -> io::Result<Answer> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let real_path = fs::read_link(link).ok().filter(|real| real.is_absolute());
    let mut calls = 1;
    let real_path = match real_path {
        Some(real) if real.as_os_str().as_bytes().ends_with(b" (deleted)") && real.symlink_metadata().is_err() => {
            return Err(Errno::NOENT.into());
        }
        Some(real) => real,
        None => {
            calls += path.components().count() as u64;
            path.canonicalize()?
        }
    };
    Ok(Answer { real_path, mount_id: mount_id(place.as_fd()), calls })
}

fn mount_id(place: BorrowedFd<'_>) -> Option<(u64, FoundBy)> {
    // No attributes are needed, so the server of a network mount is not asked for any.
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let statx = rustix::fs::statx(place, "", flags, StatxFlags::MNT_ID).ok();
    let is_told = |mask: u32| StatxFlags::from_bits_retain(mask).contains(StatxFlags::MNT_ID);
    if let Some(statx) = statx.filter(|statx| is_told(statx.stx_mask)) {
        return Some((statx.stx_mnt_id, FoundBy::Statx));
    }
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", place.as_raw_fd())).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    Some((id.trim().parse().ok()?, FoundBy::Fdinfo))
}

/// Writes an answer for another process: fields that each end with a NUL, since a path may hold anything else.
#[must_use]
pub fn encode(answer: &io::Result<Answer>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut field = |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        out.push(0);
    };
    match answer {
        Ok(answer) => {
            field(answer.real_path.as_os_str().as_bytes());
            let (id, by) = match answer.mount_id {
                Some((id, FoundBy::Fdinfo)) => (id, "fdinfo"),
                Some((id, FoundBy::Statx | FoundBy::Table)) => (id, "statx"),
                None => (0, ""),
            };
            field(id.to_string().as_bytes());
            field(by.as_bytes());
            field(answer.calls.to_string().as_bytes());
        }
        Err(error) => field(error.raw_os_error().unwrap_or_default().to_string().as_bytes()),
    }
    out
}

/// Reads what [`encode`] wrote; `None` for anything else, such as an answer that was cut short.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<io::Result<Answer>> {
    let fields: Vec<&[u8]> = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    match fields.as_slice() {
        [errno] => Some(Err(io::Error::from_raw_os_error(i32::try_from(number(errno)?).ok()?))),
        [path, id, by, calls] => {
            let mount_id = match *by {
                b"statx" => Some((number(id)?, FoundBy::Statx)),
                b"fdinfo" => Some((number(id)?, FoundBy::Fdinfo)),
                b"" => None,
                _ => return None,
            };
            let real_path = PathBuf::from(OsStr::from_bytes(path));
            Some(Ok(Answer { real_path, mount_id, calls: number(calls)? }))
        }
        _ => None,
    }
}

/// Returns the system error number of an error.
pub(super) fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw_os_error)
}

/// Returns the bytes that an unprivileged user can still write at a place (`f_bavail * f_frsize`).
pub(super) fn free_bytes(path: &Path) -> io::Result<u64> {
    let statvfs = rustix::fs::statvfs(path)?;
    Ok(statvfs.f_bavail.saturating_mul(statvfs.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_from_its_encoding() {
        let path = PathBuf::from(OsStr::from_bytes(b"/a\n\xff b"));
        for mount_id in [None, Some((7, FoundBy::Statx)), Some((u64::MAX, FoundBy::Fdinfo))] {
            let answer = Answer { real_path: path.clone(), mount_id, calls: 2 };
            let bytes = encode(&Ok(answer.clone()));
            assert_eq!(decode(&bytes).unwrap().unwrap(), answer);
            assert!(decode(&bytes[..bytes.len() - 1]).is_none());
        }
        let failed = decode(&encode(&Err(Errno::NOTCONN.into()))).unwrap();
        assert_eq!(errno(&failed.unwrap_err()), Some(Errno::NOTCONN));
        assert!(decode(b"").is_none() && decode(b"x\0").is_none());
    }

    #[test]
    fn a_deleted_directory_is_not_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let place = fs::File::open(&gone).unwrap();
        fs::remove_dir(&gone).unwrap();
        let link = PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()));
        assert_eq!(errno(&find(&link).unwrap_err()), Some(Errno::NOENT));
    }
}
