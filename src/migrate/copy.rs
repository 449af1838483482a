//! Copying what an inventory lists: directories, files, links, with what belongs to them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

use crate::error::Error;
use crate::migrate::attributes::Attributes;
use crate::migrate::fsys::{self, FileStat, Kind};
use crate::migrate::git::Abilities;
use crate::migrate::inventory::{Entry, Source, Unreadable};
use crate::migrate::journal::{Copied, Journal};
use crate::migrate::partial::{Partial, remove_any};
use crate::migrate::pool::{self, Queue, Tuner};
use crate::migrate::transfer::{self, Fault};
use crate::progress::Progress;
use crate::scan::access::is_absent;
use crate::signals::Interrupt;

/// How often a file is read anew within one pass when it changes under our hands; later passes come back to it.
const ATTEMPTS: u32 = 3;
/// Files that cannot be read before the pass gives up: by then it is the mount and not the files.
const MAX_UNREADABLE: usize = 200;

/// What all passes of one move share.
pub(super) struct Engine<'a> {
    pub(super) source: &'a Source,
    pub(super) partial: &'a Partial,
    pub(super) journal: &'a Journal,
    pub(super) tuner: &'a Tuner,
    pub(super) cancel: &'a Interrupt,
    pub(super) progress: &'a dyn Progress,
    pub(super) attributes: Attributes,
    /// What the destination's filesystem can hold.
    pub(super) new_side: Abilities,
    /// Every regular file in the copy, as it was when it was copied.
    pub(super) copied: Mutex<HashMap<PathBuf, Copied>>,
    pub(super) unreadable: Mutex<Vec<Unreadable>>,
    /// Pipes that the destination's filesystem does not hold.
    pub(super) unmade: Mutex<Vec<PathBuf>>,
    pub(super) files_moved: AtomicU64,
    pub(super) bytes_moved: AtomicU64,
}

/// One directory, open on both sides.
struct Pair {
    from: OwnedFd,
    to: OwnedFd,
}

/// A directory and what is to be copied in it.
struct Node<'e> {
    entry: &'e Entry,
    directories: Vec<usize>,
    others: Vec<&'e Entry>,
}

enum Task<'e> {
    Directory { parent: Option<Arc<Pair>>, node: usize },
    Other { pair: Arc<Pair>, entry: &'e Entry },
}

impl Engine<'_> {
    /// Copies the entries, which must hold the directories that lead to each of them.
    ///
    /// # Errors
    ///
    /// The first failure to write; what cannot be read is gathered in `unreadable`, what changes too often is left
    /// without a record.
    pub(super) fn copy(&self, entries: &[&Entry]) -> Result<(), Error> {
        let (primaries, links) = hard_links(entries);
        let nodes = tree(&primaries);
        if nodes.is_empty() {
            return Ok(());
        }
        let seed = Task::Directory { parent: None, node: 0 };
        pool::run(self.tuner, self.cancel, vec![seed], |task, queue| match task {
            Task::Directory { parent, node } => self.directory(parent.as_deref(), node, &nodes, queue),
            Task::Other { pair, entry } => self.other(&pair, entry, queue),
        })?;
        for (name, primary) in links {
            self.hard_link(name, primary)?;
        }
        self.journal.flush().map_err(|source| Error::io("write", self.partial.journal(), source))
    }

    fn directory<'e>(
        &self,
        parent: Option<&Pair>,
        node: usize,
        nodes: &[Node<'e>],
        queue: &Queue<'_, Task<'e>>,
    ) -> Result<(), Error> {
        let node = &nodes[node];
        let (from, to) = match parent {
            None => (
                fsys::open_dir(&self.source.root, OsStr::new(".")),
                fsys::open_dir(&self.partial.tree_fd, OsStr::new(".")),
            ),
            Some(parent) => {
                let name = node.entry.path.file_name().unwrap_or_default();
                (fsys::open_dir(&parent.from, name), self.make_directory(&parent.to, name))
            }
        };
        let to = to.map_err(|source| self.write_error(&node.entry.path, source))?;
        let from = match from {
            Ok(from) => from,
            Err(error) => return self.note_unreadable(&node.entry.path, error),
        };
        self.attributes.copy(&from, &to, &node.entry.stat);
        let pair = Arc::new(Pair { from, to });
        queue.push_all(
            node.directories.iter().map(|child| Task::Directory { parent: Some(Arc::clone(&pair)), node: *child }),
        );
        queue.push_all(node.others.iter().map(|entry| Task::Other { pair: Arc::clone(&pair), entry }));
        Ok(())
    }

    /// Makes or opens a directory of the copy; its own mode comes at the end, until then we must be able to write.
    fn make_directory(&self, parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
        match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                if fsys::stat_at(parent, name)?.kind != Kind::Directory {
                    rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
                    rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
                } else if self.is_locked(parent, name) {
                    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        fsys::open_dir(parent, name)
    }

    /// Returns whether an earlier run already gave the directory a mode that keeps us out.
    #[expect(clippy::unused_self, reason = "reads better at the call, beside the other steps")]
    fn is_locked(&self, parent: &OwnedFd, name: &OsStr) -> bool {
        fsys::stat_at(parent, name).is_ok_and(|stat| stat.mode & 0o700 != 0o700)
    }

    fn other<'e>(&self, pair: &Pair, entry: &'e Entry, queue: &Queue<'_, Task<'e>>) -> Result<(), Error> {
        let name = entry.path.file_name().unwrap_or_default();
        let made = match (entry.stat.kind, &entry.target) {
            (Kind::File, _) => return self.file(pair, name, entry, queue),
            (Kind::Symlink, Some(target)) => self.symlink(&pair.to, name, target, &entry.stat),
            (Kind::Fifo, _) => match pipe(&pair.to, name, &entry.stat) {
                // A filesystem that does not even know links may give any error.
                Err(error) if is_unknown_there(&error) || !(self.new_side.symlinks || fsys::is_full(&error)) => {
                    lock(&self.unmade).push(entry.path.clone());
                    Ok(())
                }
                other => other,
            },
            // Sockets and devices belong to a running program or a system; the plan names them.
            _ => Ok(()),
        };
        made.map_err(|source| self.write_error(&entry.path, source))
    }

    fn symlink(&self, to: &OwnedFd, name: &OsStr, target: &OsString, stat: &FileStat) -> io::Result<()> {
        if !self.new_side.symlinks {
            // What git itself writes where links cannot be (`core.symlinks=false`).
            let file = create(to, name).map(File::from)?;
            std::os::unix::fs::FileExt::write_all_at(&file, target.as_bytes(), 0)?;
            return Ok(rustix::fs::futimens(&file, &times(stat))?);
        }
        replace(to, name, || rustix::fs::symlinkat(target.as_os_str(), to, name))?;
        self.attributes.own_link(to, name, stat);
        Ok(rustix::fs::utimensat(to, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn file<'e>(&self, pair: &Pair, name: &OsStr, entry: &'e Entry, queue: &Queue<'_, Task<'e>>) -> Result<(), Error> {
        let mut expected = entry.stat;
        for _ in 0..ATTEMPTS {
            match self.file_once(pair, name, &expected, queue) {
                Ok((hash, stat)) => {
                    let copied = Copied::new(hash, &stat);
                    self.journal
                        .copied(&entry.path, &copied)
                        .map_err(|source| Error::io("write", self.partial.journal(), source))?;
                    lock(&self.copied).insert(entry.path.clone(), copied);
                    let files = self.files_moved.fetch_add(1, Ordering::Relaxed) + 1;
                    self.progress.transferred(files, self.bytes_moved.load(Ordering::Relaxed));
                    return Ok(());
                }
                Err(Fault::Changed) => match fsys::stat_at(&pair.from, name) {
                    Ok(stat) if stat.kind == Kind::File => expected = stat,
                    // Gone or something else by now: the next pass sees what it is.
                    _ => return Ok(()),
                },
                Err(Fault::Source(error)) => return self.note_unreadable(&entry.path, error),
                Err(Fault::Destination(error)) => return Err(self.write_error(&entry.path, error)),
            }
            if self.cancel.is_set() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn file_once(
        &self,
        pair: &Pair,
        name: &OsStr,
        expected: &FileStat,
        queue: &Queue<'_, Task<'_>>,
    ) -> Result<(blake3::Hash, FileStat), Fault> {
        let from = fsys::open_file(&pair.from, name).map(File::from).map_err(Fault::Source)?;
        let to = create(&pair.to, name).map(File::from).map_err(Fault::Destination)?;
        let moved = |bytes| {
            queue.credit_bytes(bytes);
            self.bytes_moved.fetch_add(bytes, Ordering::Relaxed);
        };
        let hash = BUFFER.with_borrow_mut(|buffer| transfer::content(&from, &to, expected, buffer, &moved))?;
        // That it did not change meanwhile is seen at the last look at the source, for all files alike.
        let stat = *expected;
        self.attributes.copy(&from, &to, &stat);
        self.set_mode(&to, stat.mode)
            .and_then(|()| Ok(rustix::fs::futimens(&to, &times(&stat))?))
            .map_err(Fault::Destination)?;
        Ok((hash, stat))
    }

    /// Sets the mode; a filesystem without modes may refuse, and loses nothing by it.
    fn set_mode(&self, file: impl std::os::fd::AsFd, mode: u32) -> io::Result<()> {
        match rustix::fs::fchmod(file, Mode::from_raw_mode(mode)) {
            Err(_) if !self.new_side.modes => Ok(()),
            other => Ok(other?),
        }
    }

    fn hard_link(&self, name: &Entry, primary: &Entry) -> Result<(), Error> {
        let Some(copied) = lock(&self.copied).get(&primary.path).copied() else { return Ok(()) };
        let tree = &self.partial.tree_fd;
        let linked = replace_path(&self.partial.tree, &name.path).and_then(|()| {
            match rustix::fs::linkat(tree, &primary.path, tree, &name.path, AtFlags::empty()) {
                Ok(()) => Ok(()),
                // A filesystem without hard links gets a second file with the same content.
                Err(error) if error == Errno::MLINK || is_unknown_there(&error.into()) => {
                    self.second_copy(primary, name)
                }
                Err(error) => Err(error.into()),
            }
        });
        match linked {
            Ok(()) => {
                let own = Copied::new(copied.hash, &name.stat);
                lock(&self.copied).insert(name.path.clone(), own);
                Ok(())
            }
            Err(error) => Err(self.write_error(&name.path, error)),
        }
    }

    fn second_copy(&self, primary: &Entry, name: &Entry) -> io::Result<()> {
        let tree = &self.partial.tree;
        std::fs::copy(tree.join(&primary.path), tree.join(&name.path))?;
        let fd = fsys::open_file(&self.partial.tree_fd, name.path.as_os_str())?;
        Ok(rustix::fs::futimens(&fd, &times(&name.stat))?)
    }

    /// Removes from the copy what is no longer in the source.
    pub(super) fn remove(&self, paths: &[PathBuf]) -> Result<(), Error> {
        // Children before their parents, which may be in the list too.
        for path in paths.iter().rev() {
            lock(&self.copied).remove(path);
            match remove_any(&self.partial.tree.join(path)) {
                Err(error) if !is_absent(&error) => return Err(self.write_error(path, error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives the directories their modes and times, innermost first, when nothing is written in them any more.
    pub(super) fn finish_directories(&self, entries: &[Entry]) -> Result<(), Error> {
        for entry in entries.iter().rev().filter(|entry| entry.stat.kind == Kind::Directory) {
            let path = self.partial.tree.join(&entry.path);
            // Opened by its whole path: no component of it is anything but a directory that we made.
            let set = fsys::open_root(&path).and_then(|fd| {
                self.set_mode(&fd, entry.stat.mode)?;
                Ok(rustix::fs::futimens(&fd, &times(&entry.stat))?)
            });
            set.map_err(|source| self.write_error(&entry.path, source))?;
        }
        Ok(())
    }

    fn note_unreadable(&self, path: &Path, error: io::Error) -> Result<(), Error> {
        // Deleted meanwhile: the next walk no longer lists it.
        if is_absent(&error) {
            return Ok(());
        }
        let mut unreadable = lock(&self.unreadable);
        unreadable.push(Unreadable { path: path.to_path_buf(), error });
        if unreadable.len() < MAX_UNREADABLE {
            return Ok(());
        }
        Err(crate::migrate::inventory::unreadable_error(&unreadable).unwrap_or(Error::Interrupted))
    }

    /// Says what helps when writing fails; what is there already is used by the next run.
    pub(super) fn write_error(&self, path: &Path, source: io::Error) -> Error {
        let path = self.partial.tree.join(path);
        if fsys::is_full(&source) {
            return Error::refused(
                format!("cannot write `{}`: {source}", crate::error::printable(&path)),
                format!(
                    "make room there and run the same command again, it continues; or remove `{}`",
                    crate::error::printable(&self.partial.path)
                ),
            );
        }
        if is_unfit_name(&source, &path) {
            return Error::refused(
                format!("cannot write `{}`: {source}", crate::error::printable(&path)),
                "the filesystem there may not hold such a name: rename the file in the source; with `--to-windows \
                 --dry-run` every name is listed that filesystems of Windows do not hold",
            );
        }
        Error::io("write", path, source)
    }
}

/// Returns whether an error says that a filesystem does not know this kind of file at all.
fn is_unknown_there(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::PERM | Errno::NOTSUP | Errno::NOSYS))
}

/// Returns whether an error is one that filesystems give for a name that they cannot hold.
fn is_unfit_name(error: &io::Error, path: &Path) -> bool {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::INVAL | Errno::ILSEQ | Errno::NAMETOOLONG) => true,
        // Some cannot even look for such a name.
        Some(Errno::NOENT) => path.parent().is_some_and(Path::is_dir),
        _ => false,
    }
}

thread_local! {
    /// One buffer a worker, as large as the largest small file so far.
    static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Returns the times of a copy: its content is as old as it was, and it was last used now.
///
/// Both are given, because many FUSE filesystems (those of libfuse 2) take no notice when one is left out.
pub(super) fn times(stat: &FileStat) -> Timestamps {
    #[expect(clippy::useless_conversion, reason = "the field's width depends on the architecture")]
    let at = |time: (i64, i64)| Timespec { tv_sec: time.0, tv_nsec: time.1.try_into().unwrap_or(0) };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW }, last_modification: at(stat.mtime) }
}

/// Creates a file for writing; what an earlier run left under the name goes first.
fn create(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR);
    match open() {
        Err(Errno::EXIST) => {
            make_way(parent, name)?;
            Ok(open()?)
        }
        other => Ok(other?),
    }
}

fn pipe(parent: &OwnedFd, name: &OsStr, stat: &FileStat) -> io::Result<()> {
    let mode = Mode::from_raw_mode(stat.mode);
    replace(parent, name, || rustix::fs::mknodat(parent, name, rustix::fs::FileType::Fifo, mode, 0))?;
    Ok(rustix::fs::utimensat(parent, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Makes something under a name that may be taken by what an earlier run left.
fn replace(parent: &OwnedFd, name: &OsStr, make: impl Fn() -> rustix::io::Result<()>) -> io::Result<()> {
    match make() {
        Err(Errno::EXIST) => {
            make_way(parent, name)?;
            Ok(make()?)
        }
        other => Ok(other?),
    }
}

fn make_way(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => Ok(()),
        // The source had a directory there when the earlier run came by.
        Err(Errno::ISDIR) => {
            let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(parent));
            remove_any(&Path::new(&link).join(name))
        }
        Err(error) => Err(error.into()),
    }
}

fn replace_path(tree: &Path, path: &Path) -> io::Result<()> {
    match remove_any(&tree.join(path)) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Parts the entries into those that are copied and further names of files that are.
fn hard_links<'e>(entries: &[&'e Entry]) -> (Vec<&'e Entry>, Vec<(&'e Entry, &'e Entry)>) {
    let mut first: HashMap<(u64, u64), &Entry> = HashMap::new();
    let mut copied = Vec::with_capacity(entries.len());
    let mut links = Vec::new();
    for entry in entries {
        if entry.stat.kind == Kind::File && entry.stat.links > 1 {
            match first.get(&entry.stat.id) {
                // The same number on a mount that makes them up would not come with the same times and size.
                Some(primary) if primary.stat.is_same_content(&entry.stat) => {
                    links.push((*entry, *primary));
                    continue;
                }
                _ => first.insert(entry.stat.id, entry),
            };
        }
        copied.push(*entry);
    }
    (copied, links)
}

/// Builds the tree of directories out of sorted entries; the root is the first node.
fn tree<'e>(entries: &[&'e Entry]) -> Vec<Node<'e>> {
    let mut nodes: Vec<Node<'e>> = Vec::new();
    let mut by_path: HashMap<&Path, usize> = HashMap::new();
    for entry in entries {
        let parent = entry.path.parent().and_then(|parent| by_path.get(parent).copied());
        if entry.stat.kind == Kind::Directory {
            let node = nodes.len();
            by_path.insert(&entry.path, node);
            if let Some(parent) = parent {
                nodes[parent].directories.push(node);
            }
            nodes.push(Node { entry, directories: Vec::new(), others: Vec::new() });
        } else if let Some(parent) = parent {
            nodes[parent].others.push(entry);
        }
    }
    nodes
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
