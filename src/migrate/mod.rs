//! `rehome move`: a verified copy that is right for the side it lands on.
//!
//! The source is opened for reading only, by descriptors relative to its root and never through a link in it. The copy
//! grows in a directory beside the destination, is read back, repaired and checked there, and gets its name by one
//! rename; until then nothing is at the destination, whatever happens.

mod attributes;
mod copy;
mod fsys;
mod git;
mod ignored;
mod inventory;
mod journal;
mod names;
mod outside;
mod partial;
mod place;
mod plan;
mod pool;
mod preflight;
mod proof;
mod rebuildable;
mod repair;
mod run;
mod script;
mod select;
mod spelling;
mod status;
mod transfer;
mod unit;
mod verify;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, printable};
use crate::migrate::fsys::Kind;
use crate::migrate::inventory::{Inventory, Look, Source};
use crate::migrate::place::Place;
use crate::migrate::pool::Tuner;
use crate::migrate::select::{Selection, Tracked};
use crate::migrate::spelling::{Spellings, normalized};
use crate::progress::Progress;
use crate::scan::{RepoProfile, config};
use crate::signals::Interrupt;

pub use plan::{Blocker, Moved, OutsidePointer, Plan, Request, SCHEMA_VERSION, Verified};
pub use rebuildable::LeftOut;
pub use repair::Repair;
pub use run::{execute, finished_before};
pub use script::script;
pub use select::Scope;

/// Paths that one message names; the JSON has them all.
pub const MAX_NAMED: usize = 10;

/// A plan with what carrying it out needs.
#[derive(Debug)]
pub struct Prepared<'a> {
    /// What would be done.
    pub plan: Plan,
    profile: &'a RepoProfile,
    request: &'a Request,
    destination: PathBuf,
    source: Source,
    selection: Selection<'a>,
    inventory: Inventory,
    spellings: Spellings,
    modes_are_real: bool,
    owners_are_real: bool,
    tuner: Tuner,
}

/// Looks at source and destination and says what a move would do; changes nothing.
///
/// # Errors
///
/// [`Error::Io`] when the source's root cannot be read or the destination cannot be resolved, [`Error::Interrupted`]
/// when `cancel` was set. What only stands in the way of the move is a blocker of the plan.
pub fn prepare<'a>(
    profile: &'a RepoProfile,
    request: &'a Request,
    cancel: &Interrupt,
    progress: &dyn Progress,
) -> Result<Prepared<'a>, Error> {
    fsys::allow_many_open_files();
    let destination = preflight::real_destination(&request.destination)?;
    let ground = preflight::existing(&destination);
    let target = target_place(request, ground)?;
    let from = source_place(profile, request)?;
    preflight::worktree_is_here(profile)?;
    let mut blockers = preflight::places(profile, &destination, request, &target);
    let source = Source::open(&profile.worktree)?;
    let selection = Selection {
        scope: request.scope,
        rules: &request.rebuildable,
        tracked: Tracked::of(profile),
        git_dir: if profile.facts.bare { PathBuf::new() } else { PathBuf::from(".git") },
        excludes: excludes(profile),
    };
    let tuner = Tuner::default();
    progress.begin("looking at the source", None);
    let inventory = inventory::walk(&source, &selection, &tuner, cancel, progress, Look::First);
    progress.end();
    let inventory = inventory?;
    let free_bytes = free_bytes(request, ground)?;
    blockers.extend(preflight::content(profile, request, &selection, &inventory, free_bytes));
    blockers.extend(request.blockers.iter().cloned());
    let file_mode = config::boolean(&profile.config, "core.fileMode");
    let modes_are_real = place::modes_are_real(&inventory, from.class, file_mode);
    let windows = request.site.as_ref().and_then(|site| site.windows_path.as_deref());
    let spellings = Spellings::of(&profile.worktree, windows);
    let plan = Plan {
        source: printable(&profile.worktree),
        destination: printable(&destination),
        partial: printable(partial::place(&destination)),
        continues: partial::place(&destination).join("journal").exists(),
        scope: request.scope,
        to_windows: request.to_windows,
        source_fstype: from.fstype,
        destination_fstype: target.fstype,
        files: inventory.files(),
        directories: count(&inventory, Kind::Directory),
        bytes: inventory.bytes(),
        free_bytes,
        left_out: inventory.left_out.clone(),
        links_outside: links_outside(&inventory, &spellings),
        blockers,
        repairs: expected_repairs(profile, modes_are_real),
        notes: notes(&inventory).into_iter().chain(request.notes.iter().cloned()).collect(),
    };
    let owners_are_real = place::is_native(from.class);
    Ok(Prepared {
        plan,
        profile,
        request,
        destination,
        source,
        selection,
        inventory,
        spellings,
        modes_are_real,
        owners_are_real,
        tuner,
    })
}

fn count(inventory: &Inventory, kind: Kind) -> u64 {
    inventory.entries.iter().filter(|entry| entry.stat.kind == kind).count() as u64
}

fn target_place(request: &Request, ground: &Path) -> Result<Place, Error> {
    match &request.target {
        Some(target) => Ok(Place::known(&target.site.fstype, target.site.class)),
        None => place::of(ground).map_err(|source| Error::io("ask for the filesystem of", ground, source)),
    }
}

fn source_place(profile: &RepoProfile, request: &Request) -> Result<Place, Error> {
    match &request.site {
        Some(site) => Ok(Place::known(&site.fstype, site.class)),
        None => place::of(&profile.worktree)
            .map_err(|source| Error::io("ask for the filesystem of", &profile.worktree, source)),
    }
}

/// In WSL 2 the disk image grows on a Windows drive, whose free space is the real limit.
fn free_bytes(request: &Request, ground: &Path) -> Result<u64, Error> {
    let known = request.target.as_ref();
    let own = match known.and_then(|target| target.free_bytes) {
        Some(bytes) => bytes,
        None => place::free_bytes(ground).map_err(|source| Error::io("ask for free space at", ground, source))?,
    };
    Ok(known.and_then(|target| target.host_free_bytes).map_or(own, |host| host.min(own)))
}

/// Returns the texts of the user's excludes file and of `info/exclude`, weakest first.
fn excludes(profile: &RepoProfile) -> Vec<Vec<u8>> {
    let home = etcetera::home_dir().ok();
    let configured = profile.config.string("core.excludesFile").map(|value| PathBuf::from(value.to_string()));
    let path = match (configured, home) {
        (Some(path), Some(home)) => Some(path.strip_prefix("~").map_or(path.clone(), |rest| home.join(rest))),
        (None, Some(home)) => Some(home.join(".config/git/ignore")),
        (path, None) => path,
    };
    let user = path.filter(|path| path.is_file()).and_then(|path| std::fs::read(path).ok());
    user.into_iter().chain(profile.info.exclude.clone()).collect()
}

/// Names the links that will not lead to the same place from the copy.
fn links_outside(inventory: &Inventory, spellings: &Spellings) -> Vec<String> {
    let mut found = Vec::new();
    for entry in &inventory.entries {
        let Some(target) = &entry.target else { continue };
        let parent = entry.path.parent().unwrap_or(Path::new(""));
        let leads_out =
            if target.as_bytes().starts_with(b"/") { true } else { normalized(&parent.join(target)).is_none() };
        if leads_out {
            let is_own = spellings.strip(&target.to_string_lossy()).is_some();
            let remark = if is_own { " (in the old copy)" } else { "" };
            found.push(format!("{} -> {}{remark}", printable(&entry.path), printable(Path::new(target))));
        }
    }
    found
}

fn expected_repairs(profile: &RepoProfile, modes_are_real: bool) -> Vec<String> {
    let own = |key: &str| config::boolean(&profile.own_config, key);
    let mut repairs = Vec::new();
    if !modes_are_real {
        repairs.push("executable bits are set as the index has them, those of untracked files by content".to_owned());
    }
    if own("core.symlinks") == Some(false) {
        repairs.push("links that were checked out as text become links".to_owned());
    }
    if own("core.ignoreCase") == Some(true) {
        repairs.push("files that collided by case come from the object database".to_owned());
    }
    repairs
        .push("files that differ from the index by CRLF alone are written as attributes and settings ask".to_owned());
    repairs.push("settings that describe the filesystem are set as the new one is".to_owned());
    if profile.facts.submodules > 0 || profile.facts.worktrees.unwrap_or(0) > 0 {
        repairs.push("absolute paths of worktrees and submodules are repaired".to_owned());
    }
    repairs.push("the index is refreshed, so that the first `git status` is fast".to_owned());
    repairs
}

fn notes(inventory: &Inventory) -> Vec<String> {
    let mut notes = Vec::new();
    let special: Vec<&Path> = inventory
        .entries
        .iter()
        .filter(|entry| entry.stat.kind == Kind::Other)
        .map(|entry| entry.path.as_path())
        .collect();
    if !special.is_empty() {
        notes.push(format!("sockets and devices are not copied: {}", verify::named(&special)));
    }
    notes
}
