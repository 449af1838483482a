//! The directory that holds everything a run writes, and that is gone when the run ends.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::lock::FileLock;

/// Name of a run's directory below the cache directory, before the random part.
const IN_CACHE: &str = "run-";
/// Name of a run's directory directly in the target, before the random part; hidden, and tells whose it is.
const IN_TARGET: &str = ".rehome-";
/// File whose lock says that the run is alive.
const LOCK: &str = "lock";

/// A run's own directory, mode 0700; dropping it removes everything.
#[derive(Debug)]
pub struct RunDir {
    // Fields are dropped in this order. The lock goes first: filesystems that keep an open file under another name (NFS,
    // FUSE) would not let its directory be removed. Whoever takes the run for dead then only helps with removing.
    lock: Option<FileLock>,
    dir: Option<tempfile::TempDir>,
    path: PathBuf,
}

impl RunDir {
    /// Makes the directory on the target's filesystem and removes what earlier, killed runs left.
    ///
    /// It is made in `cache_home/rehome` if that is on the filesystem of `target`, else in `target` itself.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when nothing can be made there.
    pub fn create(target: &Path, cache_home: Option<&Path>) -> Result<Self, Error> {
        let target_dev = fs::metadata(target).map_err(|e| Error::io("look at", target, e))?.dev();
        let (base, prefix) = match cache_home.and_then(|home| cache_base(home, target_dev)) {
            Some(base) => (base, IN_CACHE),
            None => (target.to_owned(), IN_TARGET),
        };
        remove_leftovers(&base, prefix);
        let dir = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&base)
            .map_err(|e| Error::io("make a directory in", &base, e))?;
        let path = dir.path().to_owned();
        let lock_path = path.join(LOCK);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|e| Error::io("create", &lock_path, e))?;
        let lock = FileLock::try_take(file).map_err(|e| Error::io("lock", &lock_path, e))?;
        // For a person who finds the directory; the lock alone decides.
        let _ = writeln!(lock.file(), "{}", std::process::id());
        Ok(Self { lock: Some(lock), dir: Some(dir), path })
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything now and says if that failed; dropping does the same in silence.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when something could not be removed.
    pub fn remove(mut self) -> Result<(), Error> {
        drop(self.lock.take());
        match self.dir.take() {
            Some(dir) => dir.close().map_err(|e| Error::io("remove", &self.path, e)),
            None => Ok(()),
        }
    }
}

/// Returns `<cache home>/rehome`, made if need be, when it is on the device `dev` and belongs to this user.
fn cache_base(home: &Path, dev: u64) -> Option<PathBuf> {
    // The home itself may not exist yet; its nearest existing ancestor tells the device before anything is made.
    let existing = home.ancestors().find(|dir| dir.is_dir())?;
    if fs::metadata(existing).ok()?.dev() != dev {
        return None;
    }
    let base = home.join("rehome");
    DirBuilder::new().recursive(true).mode(0o700).create(&base).ok()?;
    let meta = fs::metadata(&base).ok()?;
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw();
    (meta.dev() == dev && is_ours).then_some(base)
}

/// Removes directories of runs that are over: named like one, ours, and their lock is free.
///
/// A directory without lock file belongs to a run that is just starting, or to nobody we know: it stays.
fn remove_leftovers(base: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let is_named_so = entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes());
        if is_named_so && is_abandoned(&entry.path()) {
            // Best effort: the next run tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(dir: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(dir) else { return false };
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return false;
    }
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let lock = OpenOptions::new().write(true).custom_flags(flags).open(dir.join(LOCK));
    lock.and_then(FileLock::try_take).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_leaves_nothing_and_its_directory_is_private() {
        let target = tempfile::tempdir().unwrap();
        let run = RunDir::create(target.path(), None).unwrap();
        assert_eq!(fs::metadata(run.path()).unwrap().mode() & 0o777, 0o700);
        assert!(run.path().file_name().unwrap().to_str().unwrap().starts_with(".rehome-"));
        fs::write(run.path().join("x"), b"x").unwrap();
        drop(run);
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_killed_run_is_removed_by_the_next_and_a_living_one_is_not() {
        let target = tempfile::tempdir().unwrap();
        let living = RunDir::create(target.path(), None).unwrap();
        let killed = target.path().join(".rehome-killed");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join(LOCK), b"1").unwrap();
        let foreign = target.path().join(".rehome-without-lock");
        fs::create_dir(&foreign).unwrap();
        let next = RunDir::create(target.path(), None).unwrap();
        assert!(!killed.exists());
        assert!(living.path().exists() && next.path().exists() && foreign.exists());
    }

    #[test]
    fn the_cache_directory_is_used_where_it_is_on_the_target_filesystem() {
        let target = tempfile::tempdir().unwrap();
        let cache = target.path().join("cache");
        let run = RunDir::create(target.path(), Some(&cache)).unwrap();
        assert!(run.path().starts_with(cache.join("rehome")));
        let elsewhere = RunDir::create(target.path(), Some(Path::new("/proc"))).unwrap();
        assert_eq!(elsewhere.path().parent(), Some(target.path()));
    }
}
