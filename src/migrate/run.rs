//! Carrying a plan out: copy until nothing changes, read back, repair, check, and only then the name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::migrate::attributes::Attributes;
use crate::migrate::copy::{Engine, lock};
use crate::migrate::fsys::{self, Kind};
use crate::migrate::git::{Abilities, Git, Origin};
use crate::migrate::inventory::{Entry, Inventory, Look, unreadable_error, walk};
use crate::migrate::journal::{Copied, Journal};
use crate::migrate::partial::{self, Partial, remove_any};
use crate::migrate::plan::Moved;
use crate::migrate::pool::Tuner;
use crate::migrate::proof::Proof;
use crate::migrate::status::arguments;
use crate::migrate::verify::{difference, named, read_back, with_parents};
use crate::migrate::{Prepared, place, preflight};
use crate::progress::Progress;
use crate::signals::Interrupt;

/// How often the source is looked at again for what changed meanwhile; a file that changes more often than that is
/// being written to all the time.
const MAX_ROUNDS: usize = 5;
/// The most time that the first `git status` in the new place is given; it ended in the copy before.
const MAX_FIRST_STATUS: Duration = Duration::from_secs(600);

/// Returns the result of a run that was killed after its copy had got its name; what it left is removed.
#[must_use]
pub fn finished_before(destination: &Path) -> Option<Moved> {
    let place = partial::place(destination);
    let text = std::fs::read(place.join("result.json")).ok()?;
    if place.join("tree").exists() || !destination.exists() {
        return None;
    }
    let moved = serde_json::from_slice(&text).ok()?;
    let _ = std::fs::remove_dir_all(place);
    Some(moved)
}

/// Makes the copy, proves that it is right, and gives it its name.
///
/// # Errors
///
/// Whatever kept the copy from being made or proven; the source is as it was, nothing is at the destination, and what
/// was copied is used by the next run.
pub fn execute(prepared: Prepared<'_>, cancel: &Interrupt, progress: &dyn Progress) -> Result<Moved, Error> {
    let begun = Instant::now();
    if let Some(blocker) = prepared.plan.blockers.first() {
        return Err(Error::refused(blocker.say.clone(), blocker.fix.clone()));
    }
    let mut prepared = prepared;
    let mut partial = Partial::open(&prepared.destination)?;
    let new_side = new_side(&partial, prepared.plan.to_windows)?;
    if let Some(blocker) = preflight::not_held(&prepared.selection, &prepared.inventory, new_side) {
        if !prepared.plan.continues {
            partial.remove();
        }
        return Err(Error::refused(blocker.say, blocker.fix));
    }
    if !new_side.symlinks {
        partial.keep_git_dirs_elsewhere()?;
    }
    let path = partial.journal();
    let (journal, known, is_continued) =
        Journal::open(&path, &prepared.source.path).map_err(|source| Error::io("open", path, source))?;
    let mut inventory = std::mem::take(&mut prepared.inventory);
    let known = if is_continued { sweep(&partial, &inventory, known)? } else { HashMap::new() };
    if !is_continued {
        partial.clear()?;
    }
    let files_continued = known.len() as u64;
    let engine = Engine {
        source: &prepared.source,
        partial: &partial,
        journal: &journal,
        tuner: &prepared.tuner,
        cancel,
        progress,
        attributes: Attributes::new(prepared.owners_are_real && rustix::process::geteuid().is_root()),
        new_side,
        copied: Mutex::new(known),
        unreadable: Mutex::new(Vec::new()),
        unmade: Mutex::new(Vec::new()),
        files_moved: AtomicU64::new(0),
        bytes_moved: AtomicU64::new(0),
    };
    let read_back = settle(&prepared, &engine, &mut inventory)?;
    let (bytes, lost) = (engine.bytes_moved.load(Ordering::Relaxed), engine.attributes.lost());
    let unmade = std::mem::take(&mut *lock(&engine.unmade));
    let copied_in = begun.elapsed();
    let proof = Proof { prepared: &prepared, partial: &partial, journal: &journal, new_side, progress, cancel };
    let mut moved = proof.run(&mut inventory, copied_in)?;
    moved.verified.files_read_back = read_back;
    moved.files = inventory.files();
    moved.files_continued = files_continued;
    moved.bytes = bytes;
    moved.left_out = std::mem::take(&mut inventory.left_out);
    moved.in_flight = prepared.tuner.in_flight() as u64;
    if lost > 0 {
        moved
            .notes
            .push(format!("{lost} extended attributes could not be kept: the new filesystem does not take them"));
    }
    if !unmade.is_empty() {
        moved
            .notes
            .push(format!("the new filesystem holds no pipes, so these are not in the copy: {}", named(&unmade)));
    }
    engine.finish_directories(&inventory.entries)?;
    moved.wall_s = begun.elapsed().as_secs_f64();
    publish(&prepared, &partial, &mut moved, cancel)?;
    moved.wall_s = begun.elapsed().as_secs_f64();
    // It is open in the directory that goes away.
    drop(journal);
    partial.remove();
    Ok(moved)
}

/// Finds out what the destination's filesystem can hold.
fn new_side(partial: &Partial, to_windows: bool) -> Result<Abilities, Error> {
    let mut can = place::abilities(&partial.work)?;
    // Whatever the driver here does, Windows' own programs take names that differ by case alone for one.
    can.ignores_case |= to_windows;
    Ok(can)
}

/// Removes from an earlier run's copy what is not in the source any more; returns the files that need no new copy.
fn sweep(
    partial: &Partial,
    inventory: &Inventory,
    mut known: HashMap<PathBuf, Copied>,
) -> Result<HashMap<PathBuf, Copied>, Error> {
    let wanted = inventory.by_path();
    let mut present = std::collections::HashSet::new();
    let mut stack = vec![PathBuf::new()];
    while let Some(directory) = stack.pop() {
        let full = partial.tree.join(&directory);
        let failed = |source| Error::io("read", &full, source);
        let fd = fsys::open_root(&full).map_err(failed)?;
        // A directory may have got its final mode already.
        let _ = rustix::fs::fchmod(&fd, rustix::fs::Mode::RWXU);
        for name in fsys::list(&fd).map_err(failed)? {
            let path = directory.join(&name);
            let stat = fsys::stat_at(&fd, &name).map_err(failed)?;
            match wanted.get(path.as_path()) {
                Some(entry) if entry.stat.kind == stat.kind => {
                    if stat.kind == Kind::Directory {
                        stack.push(path);
                    } else {
                        present.insert(path);
                    }
                }
                _ => remove_any(&full.join(&name)).map_err(|source| Error::io("remove", full.join(&name), source))?,
            }
        }
    }
    known.retain(|path, copied| {
        present.contains(path) && wanted.get(path.as_path()).is_some_and(|entry| copied.is_current(&entry.stat))
    });
    Ok(known)
}

/// Copies and reads back until the source and the copy agree; returns the number of files read back.
fn settle(prepared: &Prepared<'_>, engine: &Engine<'_>, inventory: &mut Inventory) -> Result<u64, Error> {
    let local = Tuner::default();
    let mut todo = missing(inventory, engine);
    let mut checked: Option<Vec<PathBuf>> = None;
    let mut is_still = false;
    for round in 0..MAX_ROUNDS {
        copy_round(engine, inventory, &todo)?;
        let unreadable = std::mem::take(&mut *lock(&engine.unreadable));
        if round > 0
            && let Some(error) = unreadable_error(&unreadable)
        {
            return Err(error);
        }
        // The source answers slowly, the copy keeps the processor busy: both at once.
        let (source, selection) = (&prepared.source, &prepared.selection);
        let (walked, bad) = std::thread::scope(|scope| {
            let again = scope
                .spawn(|| walk(source, selection, engine.tuner, engine.cancel, &crate::progress::Silent, Look::Again));
            engine.progress.begin("reading the copy back", Some(inventory.files()));
            let entries = to_check(inventory, checked.as_deref());
            let bad = read_back(engine, &entries, &local);
            engine.progress.end();
            (again.join().unwrap_or(Err(Error::Interrupted)), bad)
        });
        let (now, bad) = (walked?, bad?);
        if let Some(error) = unreadable_error(&now.unreadable) {
            return Err(error);
        }
        let changed = difference(inventory, &now, engine);
        engine.remove(&changed.gone)?;
        is_still = changed.stale.is_empty() && unreadable.is_empty();
        *inventory = now;
        todo = again(inventory, changed.stale, &bad, engine)?;
        if todo.is_empty() && unreadable.is_empty() {
            return Ok(inventory.files());
        }
        checked = Some(todo.iter().map(|at| inventory.entries[*at].path.clone()).collect());
    }
    let paths: Vec<&Path> = todo.iter().map(|at| inventory.entries[*at].path.as_path()).collect();
    if is_still {
        return Err(Error::refused(
            format!("the copy does not read back as it was written: {}", named(&paths)),
            "the destination's filesystem loses contents or times of files; check its disk, or name another destination",
        ));
    }
    Err(Error::refused(
        format!("the source does not keep still: {} changed each time it was copied", named(&paths)),
        "stop what writes there (an editor, a build, a sync program), and run the same command again; it continues",
    ))
}

fn copy_round(engine: &Engine<'_>, inventory: &Inventory, todo: &[usize]) -> Result<(), Error> {
    let entries = with_parents(inventory, todo);
    let files = entries.iter().filter(|entry| entry.stat.kind == Kind::File);
    let (count, bytes) = files.fold((0_u64, 0), |(count, bytes), entry| (count + 1, bytes + entry.stat.size));
    engine.files_moved.store(0, Ordering::Relaxed);
    engine.progress.begin_transfer("copying", count, bytes);
    let result = engine.copy(&entries);
    engine.progress.end();
    result
}

/// Returns what the first round has to do: all but the files that an earlier run copied.
fn missing(inventory: &Inventory, engine: &Engine<'_>) -> Vec<usize> {
    let copied = lock(&engine.copied);
    let is_missing = |entry: &Entry| entry.stat.kind != Kind::File || !copied.contains_key(&entry.path);
    inventory.entries.iter().enumerate().filter(|(_, entry)| is_missing(entry)).map(|(at, _)| at).collect()
}

fn to_check(inventory: &Inventory, only: Option<&[PathBuf]>) -> Vec<Entry> {
    let Some(only) = only else { return inventory.entries.clone() };
    let only: std::collections::HashSet<&Path> = only.iter().map(PathBuf::as_path).collect();
    inventory.entries.iter().filter(|entry| only.contains(entry.path.as_path())).cloned().collect()
}

/// Returns what must be copied again: what changed in the source, and what did not read back as it was written.
fn again(
    inventory: &Inventory,
    mut stale: Vec<usize>,
    bad: &[PathBuf],
    engine: &Engine<'_>,
) -> Result<Vec<usize>, Error> {
    let bad: std::collections::HashSet<&Path> = bad.iter().map(PathBuf::as_path).collect();
    for path in &bad {
        engine.journal.changed(path).map_err(|source| Error::io("write", engine.partial.journal(), source))?;
        lock(&engine.copied).remove(*path);
    }
    let is_bad = |entry: &Entry| bad.contains(entry.path.as_path());
    stale.extend(inventory.entries.iter().enumerate().filter(|(_, entry)| is_bad(entry)).map(|(at, _)| at));
    stale.sort_unstable();
    stale.dedup();
    Ok(stale)
}

/// Gives the copy its name, then takes the time of its first `git status`.
fn publish(prepared: &Prepared<'_>, partial: &Partial, moved: &mut Moved, cancel: &Interrupt) -> Result<(), Error> {
    if cancel.is_set() {
        return Err(Error::Interrupted);
    }
    // Whoever kills us between the rename and the last word still gets the result from the next run.
    let note = partial.path.join("result.json");
    let text = serde_json::to_vec(moved).map_err(|error| Error::io("write", &note, error.into()))?;
    std::fs::write(&note, text).map_err(|source| Error::io("write", &note, source))?;
    partial.publish()?;
    if !prepared.profile.facts.bare {
        moved.status_new_s = first_status(prepared, partial);
    }
    Ok(())
}

/// Times `git status` in the new place; `None` when it could not be run, which is no reason to call the move failed.
fn first_status(prepared: &Prepared<'_>, partial: &Partial) -> Option<f64> {
    let git_dir = prepared.destination.join(".git");
    let config = crate::scan::config::read(&git_dir, &git_dir, &crate::scan::access::Access::default()).ok()?.merged;
    let origin = Origin {
        git_dir: &git_dir,
        common_dir: &git_dir,
        worktree: &prepared.destination,
        config: &config,
        stand_in: None,
    };
    let can = place::abilities(&partial.work).ok()?;
    let git = Git::private(&prepared.request.git, &partial.git_dirs.join("git-new"), origin, can).ok()?;
    let (took, output) = git.timed(&arguments(true), MAX_FIRST_STATUS).ok()??;
    output.status.success().then_some(took.as_secs_f64())
}
