//! The directory that a benchmark writes in: private, removed on every way out, and reaped after a kill.
//!
//! It is made on the very mount that is measured, which may be another machine's or one without locks. So who owns it
//! is written down (machine, boot, process and its start time) besides being locked, and nothing is removed unless it
//! is certain that its owner is gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use serde::{Deserialize, Serialize};

use super::result::ScratchRecord;
use crate::error::{Error, printable};
use crate::proc_stat::ProcStat;

/// Name of a scratch directory before the random part; hidden, and tells whose it is.
pub const PREFIX: &str = ".rehome-bench-";
/// File that says who owns the directory, locked while the run is alive.
const OWNER: &str = "owner.json";
/// Directory inside that the suites write in.
const WORK: &str = "work";
/// Longest owner file that is read: ours has some two hundred bytes.
const OWNER_MAX_BYTES: u64 = 4096;
/// Leftovers looked at in one place: more would mean that something else is wrong, and each costs round trips.
const REAPED_AT_MOST: usize = 64;
/// Attempts to remove a directory: a virus scanner or a sync client may hold a file open for a moment.
const REMOVE_ATTEMPTS: u32 = 5;
/// Wait before another attempt.
const REMOVE_PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// Who made a scratch directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    machine: String,
    boot: String,
    pid_namespace: String,
    pid: u32,
    /// Start time of the process in clock ticks since boot (field 22 of `/proc/<pid>/stat`): pids are used again.
    started: u64,
    /// Whether the filesystem granted a lock on the file.
    locked: bool,
}

/// A scratch directory; dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    mode: u32,
    reaped: Vec<String>,
    is_removed: bool,
    /// Closing the file frees the lock, so it lives until the directory is nearly gone.
    owner: Option<File>,
}

impl Scratch {
    /// Makes a scratch directory in `parent` and removes what killed runs left there.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when the place is read-only or full, [`Error::Io`] when it refuses for another reason.
    pub fn create(parent: &Path) -> Result<Self, Error> {
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(|source| cannot_write(parent, source))?;
        let owner_path = dir.path().join(OWNER);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&owner_path)
            .map_err(|source| cannot_write(parent, source))?;
        // Some network and FUSE filesystems have no locks; then the process alone tells.
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let text = serde_json::to_string(&Owner::this_process(locked)).unwrap_or_default();
        file.write_all(text.as_bytes()).map_err(|source| cannot_write(parent, source))?;
        let work = dir.path().join(WORK);
        fs::create_dir(&work).map_err(|source| cannot_write(parent, source))?;
        let metadata = fs::symlink_metadata(dir.path()).map_err(|e| Error::io("look at", dir.path(), e))?;
        let reaped = reap(parent, dir.path(), metadata.uid());
        // From here on `Drop` of this type removes it.
        let path = dir.keep();
        Ok(Self { path, mode: metadata.mode() & 0o7777, reaped, is_removed: false, owner: Some(file) })
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory inside that suites write in.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.path.join(WORK)
    }

    /// Opens [`Self::work`], so that files are reached by one path component less for each level above it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it is gone.
    pub fn open_work(&self) -> Result<OwnedFd, Error> {
        let path = self.work();
        rustix::fs::open(&path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| Error::io("open", path, e.into()))
    }

    /// Returns what is known of it as a value for the report.
    #[must_use]
    pub fn record(&self) -> ScratchRecord {
        ScratchRecord {
            path: self.path.to_string_lossy().into_owned(),
            mode: format!("{:04o}", self.mode),
            gone: self.is_removed,
            reaped: self.reaped.clone(),
        }
    }

    /// Removes it and looks whether it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when something is left, with the command that removes it.
    pub fn remove(&mut self) -> Result<(), Error> {
        // While the lock is still held; what is left then is for the second call to say.
        let _ = std::fs::remove_dir_all(self.work());
        // FUSE and NFS keep a file that is open under another name in its directory, which then cannot be removed. This
        // process is alive, so that nobody reaps the directory meanwhile.
        self.owner = None;
        remove_tree(&self.path)?;
        self.is_removed = true;
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_removed {
            self.owner = None;
            // There is nobody to tell; the next run tries again.
            let _ = remove_tree(&self.path);
        }
    }
}

impl Owner {
    fn this_process(locked: bool) -> Self {
        let pid = std::process::id();
        Self {
            machine: machine(),
            boot: boot(),
            pid_namespace: pid_namespace(),
            pid,
            started: start_time(pid).unwrap_or(0),
            locked,
        }
    }

    /// Returns whether the owner is certainly gone; `is_lock_free` says that its lock could be taken.
    fn is_gone(&self, is_lock_free: bool) -> bool {
        if self.machine.is_empty() || self.machine != machine() || !is_lock_free {
            return false;
        }
        if self.boot != boot() {
            return true;
        }
        if self.pid_namespace == pid_namespace() {
            return start_time(self.pid) != Some(self.started);
        }
        // A process of another container cannot be seen from here; its lock can.
        self.locked
    }
}

/// Removes the scratch directories in `parent` whose owner is gone, and returns their paths.
///
/// Only those are touched that belong to the user whom this filesystem gave our own directory to.
fn reap(parent: &Path, own: &Path, uid: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
        .map(|entry| entry.path())
        .filter(|path| path != own)
        .take(REAPED_AT_MOST)
        .filter(|path| is_abandoned(path, uid))
        .filter(|path| remove_tree(path).is_ok())
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

fn is_abandoned(dir: &Path, uid: u32) -> bool {
    let Ok(metadata) = fs::symlink_metadata(dir) else { return false };
    if !metadata.is_dir() || metadata.uid() != uid {
        return false;
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(dir.join(OWNER)) else { return false };
    let mut text = String::new();
    if (&file).take(OWNER_MAX_BYTES).read_to_string(&mut text).is_err() {
        return false;
    }
    let Ok(owner) = serde_json::from_str::<Owner>(&text) else { return false };
    let is_lock_free = !owner.locked || flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    owner.is_gone(is_lock_free)
}

/// Removes the scratch directory of a run whose own process cannot do it, since it hangs somewhere else.
///
/// # Errors
///
/// [`Error::Refused`] when it is no scratch directory, or when something is left.
pub fn remove_abandoned(path: &Path) -> Result<(), Error> {
    let is_scratch = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
        && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    if !is_scratch {
        return Err(Error::refused(
            format!("`{}` is no scratch directory of `rehome bench`", printable(path)),
            "nothing was removed",
        ));
    }
    remove_tree(path)
}

/// Removes a directory with everything in it and makes sure that nothing is left.
fn remove_tree(path: &Path) -> Result<(), Error> {
    let mut last = io::Error::other("it is still there");
    for attempt in 0..REMOVE_ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(REMOVE_PAUSE);
        }
        if let Err(error) = fs::remove_dir_all(path) {
            last = error;
        }
        // The proof: the kernel is asked again.
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
    }
    let shown = path.to_string_lossy();
    let command = format!("rm -rf {}", shell_words::quote(&shown));
    Err(Error::refused(
        format!("cannot remove the scratch directory `{}`: {last}", printable(path)),
        format!("remove it by hand: {}", crate::error::printable_text(&command)),
    ))
}

fn cannot_write(parent: &Path, source: io::Error) -> Error {
    let place = printable(parent);
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => Error::refused(
            format!("cannot make a scratch directory in `{place}`: it is on a read-only mount"),
            "name a directory that you can write in, or measure a tree without writing: `rehome bench --suite walk --tree DIR`",
        ),
        io::ErrorKind::PermissionDenied => Error::refused(
            format!("cannot make a scratch directory in `{place}`: you may not write there"),
            "name a directory that you can write in, or measure a tree without writing: `rehome bench --suite walk --tree DIR`",
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::refused(
            format!("cannot make a scratch directory in `{place}`: there is no room left"),
            "make room there, or name another directory",
        ),
        _ => Error::io("make a scratch directory in", parent, source),
    }
}

/// Identity of this installation; empty where there is none, and then nothing is ever reaped.
fn machine() -> String {
    read_trimmed("/etc/machine-id")
        .filter(|id| !id.is_empty())
        .or_else(|| read_trimmed("/proc/sys/kernel/hostname"))
        .unwrap_or_default()
}

fn boot() -> String {
    read_trimmed("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read_trimmed(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Returns the start time of a process in clock ticks since boot; `None` when none with that pid is alive.
///
/// One that was killed and that nobody waited for keeps its pid for as long as the system runs.
fn start_time(pid: u32) -> Option<u64> {
    ProcStat::of(pid).filter(|stat| !stat.has_ended()).map(|stat| stat.started)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leftover(parent: &Path, name: &str, change: impl FnOnce(&mut Owner)) -> PathBuf {
        let dir = parent.join(format!("{PREFIX}{name}"));
        fs::create_dir(&dir).unwrap();
        let mut owner = Owner::this_process(true);
        change(&mut owner);
        fs::write(dir.join(OWNER), serde_json::to_string(&owner).unwrap()).unwrap();
        dir
    }

    #[test]
    fn it_is_private_and_gone_after_its_end() {
        let parent = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::create(parent.path()).unwrap();
        assert_eq!(fs::metadata(scratch.path()).unwrap().mode() & 0o7777, 0o700);
        fs::write(scratch.work().join("x"), b"x").unwrap();
        assert!(!scratch.record().gone);
        scratch.remove().unwrap();
        assert!(scratch.record().gone);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        drop(Scratch::create(parent.path()).unwrap());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_directories_whose_owner_is_certainly_gone_are_reaped() {
        let parent = tempfile::tempdir().unwrap();
        let dead = leftover(parent.path(), "dead", |owner| owner.started += 1);
        let before_boot = leftover(parent.path(), "boot", |owner| "earlier".clone_into(&mut owner.boot));
        let alive = leftover(parent.path(), "alive", |_| {});
        let other_machine = leftover(parent.path(), "machine", |owner| {
            "elsewhere".clone_into(&mut owner.machine);
            owner.started += 1;
        });
        let unowned = parent.path().join(format!("{PREFIX}unowned"));
        fs::create_dir(&unowned).unwrap();
        let living = Scratch::create(parent.path()).unwrap();
        let next = Scratch::create(parent.path()).unwrap();
        assert!(!dead.exists() && !before_boot.exists());
        assert!(alive.exists() && other_machine.exists() && unowned.exists());
        assert!(living.path().exists() && next.path().exists());
        assert_eq!(living.record().reaped.len(), 2);
        assert!(next.record().reaped.is_empty());
    }

    #[test]
    fn a_link_with_the_name_of_a_scratch_directory_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let precious = tempfile::tempdir().unwrap();
        fs::write(precious.path().join("data"), b"x").unwrap();
        std::os::unix::fs::symlink(precious.path(), parent.path().join(format!("{PREFIX}link"))).unwrap();
        drop(Scratch::create(parent.path()).unwrap());
        assert!(precious.path().join("data").exists());
    }
}
