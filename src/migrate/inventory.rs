//! What there is to copy: one parallel walk over the source.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, printable};
use crate::migrate::fsys::{self, FileStat, Kind};
use crate::migrate::ignored::IgnoreChain;
use crate::migrate::pool::{self, Queue, Tuner};
use crate::migrate::rebuildable::LeftOut;
use crate::migrate::select::Selection;
use crate::progress::Progress;
use crate::scan::access::is_absent;
use crate::signals::Interrupt;

/// Names whose stat data one task asks for; few, so that a single large directory is shared out too.
const NAMES_PER_TASK: usize = 4;
/// More than this in a `.gitignore` is not read: it is then taken as empty, and more is copied.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// One name in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative to the root; empty for the root itself.
    pub(super) path: PathBuf,
    /// Its stat data.
    pub(super) stat: FileStat,
    /// Where it points to; only of a symbolic link.
    pub(super) target: Option<OsString>,
}

/// Something in the source that could not be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// Relative to the root.
    pub(super) path: PathBuf,
    /// Why.
    pub(super) error: io::Error,
}

/// How fresh the stat data of a walk has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// What the look-up of a name brings; another walk will follow.
    First,
    /// What the server says now.
    Again,
}

/// Everything that one walk saw.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    /// What is to be copied, parents before children.
    pub(super) entries: Vec<Entry>,
    /// Directories that are left out, with the way to restore them.
    pub(super) left_out: Vec<LeftOut>,
    /// What could not be read.
    pub(super) unreadable: Vec<Unreadable>,
}

impl Inventory {
    /// Returns the number of regular files.
    #[must_use]
    pub(super) fn files(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.stat.kind == Kind::File).count() as u64
    }

    /// Returns the bytes that a copy will need: what is stored, each hard-linked file once.
    #[must_use]
    pub(super) fn bytes(&self) -> u64 {
        let mut seen = std::collections::HashSet::new();
        self.entries
            .iter()
            .filter(|entry| entry.stat.kind == Kind::File)
            .filter(|entry| entry.stat.links < 2 || seen.insert(entry.stat.id))
            .map(|entry| entry.stat.size.min(entry.stat.stored.max(1)))
            .sum()
    }

    /// Returns the entries by path.
    #[must_use]
    pub(super) fn by_path(&self) -> HashMap<&Path, &Entry> {
        self.entries.iter().map(|entry| (entry.path.as_path(), entry)).collect()
    }
}

/// The repository that is read.
#[derive(Debug)]
pub(super) struct Source {
    /// Its real path.
    pub(super) path: PathBuf,
    pub(super) root: OwnedFd,
}

impl Source {
    /// Opens the repository's root for reading.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let root = fsys::open_root(path).map_err(|source| Error::io("open", path, source))?;
        Ok(Self { path: path.to_path_buf(), root })
    }

    /// Returns whether something answers to the name; on a mount that ignores case, in any case.
    pub(super) fn has(&self, path: &Path) -> bool {
        fsys::open_below(&self.root, path.parent().unwrap_or(Path::new("")))
            .and_then(|parent| fsys::stat_at(&parent, path.file_name().unwrap_or(OsStr::new("."))))
            .is_ok()
    }
}

struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    names: Vec<OsString>,
    chain: IgnoreChain,
}

enum Task {
    List { parent: Option<Arc<Directory>>, name: OsString, chain: IgnoreChain },
    Stat { directory: Arc<Directory>, from: usize },
}

/// Walks over the source, many directories at a time.
///
/// # Errors
///
/// [`Error::Io`] when the root itself cannot be read, [`Error::Interrupted`] when `cancel` was set; what else cannot
/// be read is part of the result.
pub(super) fn walk(
    source: &Source,
    selection: &Selection<'_>,
    tuner: &Tuner,
    cancel: &Interrupt,
    progress: &dyn Progress,
    look: Look,
) -> Result<Inventory, Error> {
    let found = Mutex::new(Inventory::default());
    let texts: Vec<&[u8]> = selection.excludes.iter().map(Vec::as_slice).collect();
    let seed = Task::List { parent: None, name: OsString::new(), chain: IgnoreChain::root(&texts) };
    let files = AtomicU64::new(0);
    pool::run(tuner, cancel, vec![seed], |task, queue| match task {
        Task::List { parent, name, chain } => list(source, parent.as_deref(), &name, chain, selection, queue, &found),
        Task::Stat { directory, from } => {
            let new = stat_some(&directory, from, selection, queue, &found, look);
            progress.advance(files.fetch_add(new, Ordering::Relaxed) + new);
            Ok(())
        }
    })?;
    let mut inventory = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    inventory.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    inventory.left_out.sort_unstable_by(|a, b| a.raw.cmp(&b.raw));
    inventory.unreadable.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(inventory)
}

fn list(
    source: &Source,
    parent: Option<&Directory>,
    name: &OsStr,
    chain: IgnoreChain,
    selection: &Selection<'_>,
    queue: &Queue<'_, Task>,
    found: &Mutex<Inventory>,
) -> Result<(), Error> {
    let path = parent.map_or_else(PathBuf::new, |parent| parent.path.join(name));
    let opened = match parent {
        Some(parent) => fsys::open_dir(&parent.fd, name),
        None => fsys::open_dir(&source.root, OsStr::new(".")),
    };
    let read = opened.and_then(|fd| Ok((fsys::stat_fd(&fd)?, fsys::list(&fd)?, fd)));
    let (stat, names, fd) = match read {
        Ok(read) => read,
        Err(error) if parent.is_none() => return Err(Error::io("read", &source.path, error)),
        Err(error) => {
            note_unreadable(found, path, error);
            return Ok(());
        }
    };
    lock(found).entries.push(Entry { path: path.clone(), stat, target: None });
    let chain = if selection.is_git_data(&path) { chain } else { read_rules(&fd, &path, &names, chain) };
    let directory = Arc::new(Directory { fd, path, names, chain });
    let starts = (0..directory.names.len()).step_by(NAMES_PER_TASK);
    queue.push_all(starts.map(|from| Task::Stat { directory: Arc::clone(&directory), from }));
    Ok(())
}

fn read_rules(fd: &OwnedFd, path: &Path, names: &[OsString], chain: IgnoreChain) -> IgnoreChain {
    if !names.iter().any(|name| name == ".gitignore") {
        return chain;
    }
    let mut text = Vec::new();
    let read = fsys::open_file(fd, OsStr::new(".gitignore")).and_then(|file| {
        io::Read::read_to_end(&mut io::Read::take(std::fs::File::from(file), MAX_IGNORE_BYTES), &mut text)
    });
    // Not read means not ignored, and so copied; that it cannot be read comes up again when it is copied.
    if read.is_ok() { chain.with(path, &text) } else { chain }
}

/// Looks at some names of a directory; returns how many files there were.
fn stat_some(
    directory: &Arc<Directory>,
    from: usize,
    selection: &Selection<'_>,
    queue: &Queue<'_, Task>,
    found: &Mutex<Inventory>,
    look: Look,
) -> u64 {
    let mut files = 0;
    for name in directory.names.iter().skip(from).take(NAMES_PER_TASK) {
        let path = directory.path.join(name);
        match look_at(directory, name, path.clone(), look) {
            Ok(entry) if entry.stat.kind == Kind::Directory => {
                let chain = directory.chain.enter(&path);
                if let Some(left_out) = selection.leave_out(&path, &directory.names, &chain) {
                    lock(found).left_out.push(left_out);
                } else if selection.takes_directory(&path) {
                    let task = Task::List { parent: Some(Arc::clone(directory)), name: name.clone(), chain };
                    queue.push_all([task]);
                }
            }
            Ok(entry) => {
                if selection.takes_file(&path) {
                    files += 1;
                    lock(found).entries.push(entry);
                }
            }
            // Deleted since the directory was listed.
            Err(error) if is_absent(&error) => {}
            Err(error) => note_unreadable(found, path, error),
        }
    }
    files
}

fn look_at(directory: &Directory, name: &OsStr, path: PathBuf, look: Look) -> io::Result<Entry> {
    let stat = match look {
        Look::First => fsys::stat_at_once(&directory.fd, name)?,
        Look::Again => fsys::stat_at(&directory.fd, name)?,
    };
    let target = match stat.kind {
        Kind::Symlink => Some(fsys::read_link(&directory.fd, name)?),
        _ => None,
    };
    Ok(Entry { path, stat, target })
}

fn note_unreadable(found: &Mutex<Inventory>, path: PathBuf, error: io::Error) {
    if !is_absent(&error) {
        lock(found).unreadable.push(Unreadable { path, error });
    }
}

fn lock(found: &Mutex<Inventory>) -> std::sync::MutexGuard<'_, Inventory> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes one error of everything that could not be read; `None` when all could be.
#[must_use]
pub(super) fn unreadable_error(unreadable: &[Unreadable]) -> Option<Error> {
    let first = unreadable.first()?;
    let names: Vec<String> =
        unreadable.iter().take(crate::migrate::MAX_NAMED).map(|one| format!("`{}`", printable(&one.path))).collect();
    let more = unreadable.len().saturating_sub(names.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(Error::refused(
        format!("cannot read {}{rest}: {}", names.join(", "), first.error),
        "nothing is left behind silently: make them readable, or delete them, and run the same command again",
    ))
}
