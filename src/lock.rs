//! A lock on a file that ends when its value does.
//!
//! `flock(2)` binds a lock to the open file, not to the process: a child that was forked and has not yet started its
//! program holds a copy of the descriptor, so that closing ours leaves the lock in force for as long. Giving it back
//! explicitly ends it for every copy.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

/// A file that this process alone has locked.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Takes the lock without waiting.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] when somebody else has it; otherwise that of `flock(2)`, which some network and FUSE
    /// filesystems do not have.
    pub fn try_take(file: File) -> io::Result<Self> {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self(file))
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // It ends at the latest when the last copy of the descriptor is closed.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_value_although_a_copy_of_the_descriptor_lives_on() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::create(dir.path().join("lock")).unwrap();
        let held = FileLock::try_take(open()).unwrap();
        assert_eq!(FileLock::try_take(open()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let copy = held.file().try_clone().unwrap();
        drop(held);
        assert!(FileLock::try_take(open()).is_ok());
        drop(copy);
    }
}
