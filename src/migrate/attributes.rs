//! What belongs to a file besides its content: extended attributes and owner.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, Gid, Uid, XattrFlags};
use rustix::io::Errno;

use crate::migrate::fsys::FileStat;

/// Room for a list of attribute names or for one value; the kernel's own limit (`XATTR_SIZE_MAX`).
const XATTR_BYTES: usize = 64 * 1024;

/// Copies attributes where both sides have them, and counts what could not be kept.
#[derive(Debug)]
pub(super) struct Attributes {
    /// Cleared when the source's filesystem says that it has none.
    has_source: AtomicBool,
    /// Cleared when the destination's filesystem says that it has none.
    has_destination: AtomicBool,
    lost: AtomicU64,
    /// Whether owners are kept: only root can, and only where the source's owners are real.
    keeps_owner: bool,
}

impl Attributes {
    pub(super) fn new(keeps_owner: bool) -> Self {
        Self {
            has_source: AtomicBool::new(true),
            has_destination: AtomicBool::new(true),
            lost: AtomicU64::new(0),
            keeps_owner,
        }
    }

    /// Returns how many attributes the destination could not take.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Copies owner and attributes from one open file or directory to another.
    pub(super) fn copy(&self, from: impl AsFd, to: impl AsFd, stat: &FileStat) {
        if self.keeps_owner && stat.owner != own() {
            let (uid, gid) = ids(stat);
            // Not ours to give, or not storable there: the copy then belongs to who made it.
            let _ = rustix::fs::fchown(&to, Some(uid), Some(gid));
        }
        if !self.has_source.load(Ordering::Relaxed) {
            return;
        }
        let mut names = [0_u8; 4096];
        let length = match rustix::fs::flistxattr(&from, &mut names) {
            Ok(0) => return,
            Ok(length) => length,
            Err(Errno::NOTSUP | Errno::NOSYS) => {
                self.has_source.store(false, Ordering::Relaxed);
                return;
            }
            Err(_) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        for name in names[..length].split_inclusive(|byte| *byte == 0) {
            if let Ok(name) = CStr::from_bytes_with_nul(name)
                && is_kept(name.to_bytes())
            {
                self.copy_one(&from, &to, name);
            }
        }
    }

    fn copy_one(&self, from: impl AsFd, to: impl AsFd, name: &CStr) {
        let mut value = vec![0_u8; XATTR_BYTES];
        let set = rustix::fs::fgetxattr(&from, name, value.as_mut_slice()).and_then(|length| {
            if !self.has_destination.load(Ordering::Relaxed) {
                return Err(Errno::NOTSUP);
            }
            rustix::fs::fsetxattr(&to, name, &value[..length], XattrFlags::empty())
        });
        match set {
            Ok(()) => {}
            Err(error) => {
                if error == Errno::NOTSUP && name.to_bytes().starts_with(b"user.") {
                    self.has_destination.store(false, Ordering::Relaxed);
                }
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Gives a link its owner.
    pub(super) fn own_link(&self, to: &OwnedFd, name: &OsStr, stat: &FileStat) {
        if self.keeps_owner && stat.owner != own() {
            let (uid, gid) = ids(stat);
            let _ = rustix::fs::chownat(to, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
        }
    }
}

fn own() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

fn ids(stat: &FileStat) -> (Uid, Gid) {
    (Uid::from_raw(stat.owner.0), Gid::from_raw(stat.owner.1))
}

/// The user's own attributes and access lists; those of security modules and of a server describe the old place.
fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_")
}
