//! Proof that the copy holds what was read: the source looked at once more, the copy read back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::{Error, printable};
use crate::migrate::MAX_NAMED;
use crate::migrate::copy::{Engine, lock};
use crate::migrate::fsys::{self, Kind};
use crate::migrate::inventory::{Entry, Inventory};
use crate::migrate::journal::Copied;
use crate::migrate::pool::{self, Tuner};
use crate::migrate::transfer;

/// Seconds by which a time may be rounded: FAT keeps every second one only.
const COARSEST_MTIME_S: i64 = 2;

/// 1980-01-01, the first day that FAT and exFAT know; an earlier time becomes this one.
const FAT_EPOCH_S: i64 = 315_532_800;

/// What the source holds and the copy does not yet, and the reverse.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Indexes into the inventory's entries.
    pub(super) stale: Vec<usize>,
    /// In the copy but no longer in the source.
    pub(super) gone: Vec<PathBuf>,
}

/// Compares a fresh inventory with the one before it and with what was copied.
pub(super) fn difference(before: &Inventory, now: &Inventory, engine: &Engine<'_>) -> Difference {
    let copied = lock(&engine.copied);
    let known = before.by_path();
    let stale = now.entries.iter().enumerate().filter(|(_, entry)| match entry.stat.kind {
        Kind::File => !copied.get(&entry.path).is_some_and(|copied| copied.is_current(&entry.stat)),
        // A directory's times change with its entries, which are compared themselves.
        Kind::Directory => known.get(entry.path.as_path()).is_none_or(|old| old.stat.kind != Kind::Directory),
        _ => known
            .get(entry.path.as_path())
            .is_none_or(|old| old.target != entry.target || old.stat.kind != entry.stat.kind),
    });
    let stale = stale.map(|(at, _)| at).collect();
    let current: HashSet<&Path> = now.entries.iter().map(|entry| entry.path.as_path()).collect();
    let old = before.entries.iter().map(|entry| entry.path.clone());
    let mut gone: Vec<PathBuf> = old.filter(|path| !current.contains(path.as_path())).collect();
    gone.sort_unstable();
    Difference { stale, gone }
}

/// Returns the stale entries with the directories that lead to them, parents first.
pub(super) fn with_parents<'e>(inventory: &'e Inventory, stale: &[usize]) -> Vec<&'e Entry> {
    let mut wanted: HashSet<&Path> = HashSet::new();
    for at in stale {
        for ancestor in inventory.entries[*at].path.ancestors() {
            if !wanted.insert(ancestor) {
                break;
            }
        }
    }
    inventory.entries.iter().filter(|entry| wanted.contains(entry.path.as_path())).collect()
}

/// Reads every copied file back and returns the paths that are not what was read from the source.
///
/// # Errors
///
/// [`Error::Interrupted`]; a file of the copy that cannot be read counts as different.
pub(super) fn read_back(engine: &Engine<'_>, entries: &[Entry], tuner: &Tuner) -> Result<Vec<PathBuf>, Error> {
    engine.partial.sync()?;
    let copied = lock(&engine.copied).clone();
    let different = Mutex::new(Vec::new());
    let files: Vec<&Entry> = entries.iter().filter(|entry| entry.stat.kind == Kind::File).collect();
    let done = std::sync::atomic::AtomicU64::new(0);
    pool::run(tuner, engine.cancel, files, |entry, queue| {
        let is_right = copied.get(&entry.path).is_some_and(|expected| is_as_copied(engine, entry, expected));
        if !is_right {
            lock(&different).push(entry.path.clone());
        }
        queue.credit_bytes(entry.stat.size);
        engine.progress.advance(done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
        Ok(())
    })?;
    let mut different = different.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    different.sort_unstable();
    Ok(different)
}

fn is_as_copied(engine: &Engine<'_>, entry: &Entry, expected: &Copied) -> bool {
    thread_local! {
        static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let Ok(file) = fsys::open_file(&engine.partial.tree_fd, entry.path.as_os_str()) else { return false };
    let Ok(stat) = fsys::stat_fd(&file) else { return false };
    let is_as_old = expected.mtime.0 < FAT_EPOCH_S || (stat.mtime.0 - expected.mtime.0).abs() < COARSEST_MTIME_S;
    let is_like = stat.kind == Kind::File && stat.size == expected.size && is_as_old;
    let file = std::fs::File::from(file);
    is_like
        && BUFFER.with_borrow_mut(|buffer| transfer::read_back(&file, buffer)).ok()
            == Some((expected.hash, expected.size))
}

/// Names paths in a sentence: the first ones, and how many more there are.
pub(super) fn named<P: AsRef<Path>>(paths: &[P]) -> String {
    let names: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| format!("`{}`", printable(path))).collect();
    match paths.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
