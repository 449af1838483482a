//! The directory beside DEST in which the copy grows, and the one step that gives it its name.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, RenameFlags};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::error::{Error, printable};
use crate::lock::FileLock;
use crate::migrate::fsys;
use crate::proc_stat::{self, ProcStat};

/// The partial directory, locked against a second run for as long as this value lives.
#[derive(Debug)]
pub(super) struct Partial {
    /// `.NAME.rehome-partial` beside DEST.
    pub(super) path: PathBuf,
    /// What becomes DEST.
    pub(super) tree: PathBuf,
    /// For what is made beside the copy and renamed into it; nothing in it outlives the move.
    pub(super) work: PathBuf,
    /// For private git dirs: `work`, unless the filesystem there has no links.
    pub(super) git_dirs: PathBuf,
    elsewhere: Option<TempDir>,
    pub(super) tree_fd: OwnedFd,
    parent_fd: OwnedFd,
    destination: PathBuf,
    /// An empty directory that is at DEST already and may be replaced.
    may_replace_empty: bool,
    lock: FileLock,
}

/// Name of the file in the partial directory by whose lock a run has it for itself.
const LOCK: &str = "lock";
/// How long a killed run may take to end before its lock is taken over: one that does not hang ends in milliseconds.
const DYING_PATIENCE: Duration = Duration::from_secs(2);
/// How often that is looked for.
const DYING_POLL: Duration = Duration::from_millis(20);
/// Longest note of a holder that is read: ours has some twenty bytes.
const HOLDER_MAX_BYTES: u64 = 64;
/// How often it is tried to remove the partial directory while what was in it is still being closed.
const REMOVE_ATTEMPTS: u32 = 50;
/// Pause between two of those attempts: all of them together take half a second.
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// Returns where the copy for `destination` grows.
#[must_use]
pub(super) fn place(destination: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(destination.file_name().unwrap_or(OsStr::new("copy")));
    name.push(".rehome-partial");
    destination.with_file_name(name)
}

impl Partial {
    /// Opens or creates the partial directory for `destination`, and locks it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when another run holds it or it is not the user's own, [`Error::Io`] otherwise.
    pub(super) fn open(destination: &Path) -> Result<Self, Error> {
        let path = place(destination);
        let parent = destination.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(parent).map_err(|source| Error::io("create", parent, source))?;
        make_private(&path)?;
        let lock = lock(&path)?;
        let tree = path.join("tree");
        let work = path.join("work");
        if work.exists() {
            std::fs::remove_dir_all(&work).map_err(|source| Error::io("remove", &work, source))?;
        }
        make_private(&work)?;
        make_private(&tree)?;
        let tree_fd = fsys::open_root(&tree).map_err(|source| Error::io("open", &tree, source))?;
        let parent_fd = fsys::open_root(parent).map_err(|source| Error::io("open", parent, source))?;
        let may_replace_empty = destination.symlink_metadata().is_ok();
        let destination = destination.to_path_buf();
        let (git_dirs, elsewhere) = (work.clone(), None);
        Ok(Self { path, tree, work, git_dirs, elsewhere, tree_fd, parent_fd, destination, may_replace_empty, lock })
    }

    /// Puts private git dirs, which are made of links, into the directory for temporary files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when nothing can be made there.
    pub(super) fn keep_git_dirs_elsewhere(&mut self) -> Result<(), Error> {
        let made = TempDir::with_prefix("rehome-move-");
        let made = made.map_err(|source| Error::io("create a directory in", std::env::temp_dir(), source))?;
        made.path().clone_into(&mut self.git_dirs);
        self.elsewhere = Some(made);
        Ok(())
    }

    /// Returns where the journal is.
    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// Removes what an earlier run copied, because it belongs to another source or another choice.
    pub(super) fn clear(&self) -> Result<(), Error> {
        remove_contents(&self.tree).map_err(|source| Error::io("remove", &self.tree, source))
    }

    /// Makes everything durable that was written so far.
    pub(super) fn sync(&self) -> Result<(), Error> {
        rustix::fs::syncfs(&self.tree_fd).map_err(|source| Error::io("write out", &self.tree, source.into()))
    }

    /// Gives the copy its name, in one step that never replaces anything but an empty directory that was there from
    /// the beginning.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when something appeared at DEST meanwhile, [`Error::Io`] otherwise.
    pub(super) fn publish(&self) -> Result<(), Error> {
        self.sync()?;
        let partial_fd = fsys::open_root(&self.path).map_err(|source| Error::io("open", &self.path, source))?;
        let name = self.destination.file_name().unwrap_or(OsStr::new("copy"));
        let flags = if self.may_replace_empty { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let renamed = match rustix::fs::renameat_with(&partial_fd, "tree", &self.parent_fd, name, flags) {
            // A filesystem without this flag; a plain rename of a directory replaces at most an empty directory.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if !self.may_replace_empty => {
                rustix::fs::renameat(&partial_fd, "tree", &self.parent_fd, name)
            }
            other => other,
        };
        match renamed {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {
                return Err(Error::refused(
                    format!("`{}` appeared while the copy was made", printable(&self.destination)),
                    format!(
                        "it was not touched; move it away and run the same command again: the copy in `{}` is kept",
                        printable(&self.path)
                    ),
                ));
            }
            Err(source) => return Err(Error::io("create", &self.destination, source.into())),
        }
        rustix::fs::fsync(&self.parent_fd).map_err(|source| Error::io("write out", &self.destination, source.into()))
    }

    /// Removes the partial directory after the copy got its name, or before anything was copied.
    pub(super) fn remove(self) {
        let Self { path, lock, tree_fd, parent_fd, .. } = self;
        drop((tree_fd, parent_fd));
        // What stays would be our own small files in a hidden directory; the copy itself is complete.
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            if entry.file_name() != LOCK {
                let _ = remove_any(&entry.path());
            }
        }
        // FUSE and NFS keep a file that is deleted while it is open under another name, and close it a little later.
        drop(lock);
        let _ = std::fs::remove_file(path.join(LOCK));
        for _ in 0..REMOVE_ATTEMPTS {
            match std::fs::remove_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => std::thread::sleep(REMOVE_PAUSE),
                _ => return,
            }
        }
    }
}

/// Makes a directory that only the user may enter, or takes the one that is there if it is the user's own.
fn make_private(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = path.symlink_metadata().map_err(|source| Error::io("read", path, source))?;
            let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
            is_own.then_some(()).ok_or_else(|| {
                Error::refused(
                    format!("`{}` is in the way, and it is not a directory of yours", printable(path)),
                    "remove it, or choose another destination",
                )
            })
        }
        other => other.map_err(|source| Error::io("create", path, source)),
    }
}

/// Locks the partial directory, and notes in the lock who holds it.
///
/// A run that was killed while a mount did not answer may never end, and keeps its lock; but it does nothing any more,
/// so after some patience it is taken over from.
fn lock(path: &Path) -> Result<FileLock, Error> {
    let name = path.join(LOCK);
    // Held for a moment only, so that no two runs take over at once; best effort where directories know no locks.
    let directory = File::open(path).map_err(|source| Error::io("open", path, source))?;
    let _ = rustix::fs::flock(&directory, FlockOperation::LockExclusive);
    let patience = Instant::now() + DYING_PATIENCE;
    loop {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&name)
            .map_err(|source| Error::io("create", &name, source))?;
        match FileLock::try_take(file) {
            Ok(lock) => {
                let mut file = lock.file();
                let noted = file.set_len(0).and_then(|()| file.write_all(Holder::this_process().to_line().as_bytes()));
                noted.map_err(|source| Error::io("write", &name, source))?;
                return Ok(lock);
            }
            Err(source) if source.kind() == io::ErrorKind::WouldBlock => {}
            Err(source) => return Err(Error::io("lock", name, source)),
        }
        let mut line = String::new();
        // A note that cannot be read is that of a run at work.
        let _ = File::open(&name).and_then(|file| file.take(HOLDER_MAX_BYTES).read_to_string(&mut line));
        let holder = Holder::parse(&line);
        let is_dying = holder.is_some_and(Holder::is_dying);
        // It may have ended since it was found to hold the lock.
        let may_be_gone = holder.is_some_and(|holder| !holder.is_there());
        if (is_dying || may_be_gone) && Instant::now() < patience {
            std::thread::sleep(DYING_POLL);
            continue;
        }
        if !is_dying {
            return Err(Error::refused(
                format!("another `rehome move` is working in `{}`", printable(path)),
                "wait until it ends, or stop it; the copy that it made so far will be used",
            ));
        }
        std::fs::remove_file(&name).map_err(|source| Error::io("remove", &name, source))?;
    }
}

/// The process that holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    pid: u32,
    /// Start time in clock ticks since boot: pids are used again.
    started: u64,
}

impl Holder {
    fn this_process() -> Self {
        let pid = std::process::id();
        Self { pid, started: ProcStat::of(pid).map_or(0, |stat| stat.started) }
    }

    fn to_line(self) -> String {
        format!("{} {}\n", self.pid, self.started)
    }

    fn parse(line: &str) -> Option<Self> {
        let (pid, started) = line.trim_end().split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, started: started.parse().ok()? })
    }

    fn is_there(self) -> bool {
        ProcStat::of(self.pid).is_some_and(|stat| stat.started == self.started)
    }

    fn is_dying(self) -> bool {
        self.is_there() && proc_stat::is_dying(self.pid)
    }
}

/// Removes everything in a directory; directories that forbid it are opened up first.
fn remove_contents(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        remove_any(&path)?;
    }
    Ok(())
}

/// Removes a file, a link or a whole directory.
pub(super) fn remove_any(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata()?.is_dir() {
        return std::fs::remove_file(path);
    }
    // A filesystem without modes may refuse; where it mattered, removing fails and says so.
    let _ = rustix::fs::chmod(path, rustix::fs::Mode::RWXU);
    remove_contents(path)?;
    std::fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_cannot_work_on_one_destination() {
        let dir = tempfile::tempdir().unwrap();
        let destination = dir.path().join("d");
        let first = Partial::open(&destination).unwrap();
        let error = Partial::open(&destination).unwrap_err();
        assert!(error.to_string().contains("another `rehome move`"), "{error}");
        drop(first);
        assert!(Partial::open(&destination).is_ok());
    }

    #[test]
    fn the_lock_tells_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let partial = Partial::open(&dir.path().join("d")).unwrap();
        let line = std::fs::read_to_string(partial.path.join("lock")).unwrap();
        let holder = Holder::parse(&line).unwrap();
        assert_eq!(holder, Holder::this_process());
        assert!(!holder.is_dying());
        assert_eq!(Holder::parse(""), None);
    }

    #[test]
    fn what_appears_at_the_destination_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let destination = dir.path().join("d");
        for make in [|path: &Path| std::fs::create_dir(path), |path: &Path| std::fs::write(path, "mine")] {
            let partial = Partial::open(&destination).unwrap();
            make(&destination).unwrap();
            assert!(partial.publish().unwrap_err().to_string().contains("appeared"));
            assert!(partial.tree.is_dir());
            remove_any(&destination).unwrap();
        }
        let partial = Partial::open(&destination).unwrap();
        std::fs::write(partial.tree.join("a"), "a").unwrap();
        partial.publish().unwrap();
        assert_eq!(std::fs::read(destination.join("a")).unwrap(), b"a");
    }

    #[test]
    fn an_empty_directory_that_was_there_before_gives_way_and_a_filled_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let destination = dir.path().join("d");
        std::fs::create_dir(&destination).unwrap();
        let partial = Partial::open(&destination).unwrap();
        std::fs::write(destination.join("late"), "x").unwrap();
        assert!(partial.publish().is_err());
        std::fs::remove_file(destination.join("late")).unwrap();
        partial.publish().unwrap();
        assert!(!dir.path().join("d/late").exists());
    }
}
