//! The directory beside DEST in which the copy grows, and the one step that gives it its name.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::RenameFlags;
use rustix::io::Errno;
use tempfile::TempDir;

use crate::error::{Error, printable};
use crate::lock::FileLock;
use crate::migrate::fsys;

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

fn lock(path: &Path) -> Result<FileLock, Error> {
    let name = path.join(LOCK);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&name)
        .map_err(|source| Error::io("create", &name, source))?;
    FileLock::try_take(file).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => Error::refused(
            format!("another `rehome move` is working in `{}`", printable(path)),
            "wait until it ends, or stop it; the copy that it made so far will be used",
        ),
        _ => Error::io("lock", name, source),
    })
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
