//! What must be solved before a move.

use std::path::{Path, PathBuf};

use crate::error::{Error, printable};
use crate::facts::FilesystemClass;
use crate::migrate::MAX_NAMED;
use crate::migrate::fsys::Kind;
use crate::migrate::git::Abilities;
use crate::migrate::inventory::Inventory;
use crate::migrate::names::{bad_names, case_collisions};
use crate::migrate::place::Place;
use crate::migrate::plan::{Blocker, Request};
use crate::migrate::select::Selection;
use crate::migrate::verify::named;
use crate::scan::RepoProfile;

/// Room that must stay beyond the copy itself: git's private index and the journal, and a disk that is not brim-full.
const SPARE_BYTES: u64 = 64 << 20;

/// Returns the real path of the destination: the nearest ancestor that exists with its links resolved, and the rest.
pub(super) fn real_destination(path: &Path) -> Result<PathBuf, Error> {
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match at.canonicalize() {
            Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
                    return Err(Error::io("resolve", path, error));
                };
                if at.symlink_metadata().is_ok() {
                    return Err(Error::refused(
                        format!("`{}` is a link to nothing", printable(at)),
                        "remove the link, or name the directory that is meant",
                    ));
                }
                missing.push(name);
                at = parent;
            }
            Err(error) => return Err(Error::io("resolve", at, error)),
        }
    }
}

/// Returns the nearest ancestor that exists.
pub(super) fn existing(path: &Path) -> &Path {
    path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"))
}

/// Refuses a worktree that `core.worktree` puts somewhere else than beside its git dir.
///
/// The value can name anything, the root of the system too, and what lies there is not for this repository to have walked.
///
/// # Errors
///
/// [`Error::Refused`] when the worktree has no `.git` of its own.
pub(super) fn worktree_is_here(profile: &RepoProfile) -> Result<(), Error> {
    if profile.facts.bare || profile.worktree.join(".git").symlink_metadata().is_ok() {
        return Ok(());
    }
    Err(Error::refused(
        format!(
            "`core.worktree` of `{}` puts the worktree at `{}`, which has no `.git`",
            printable(&profile.git_dir),
            printable(&profile.worktree)
        ),
        "move such a repository by hand, or remove the setting with `git config --unset core.worktree`",
    ))
}

/// Checks source and destination against each other; needs no walk.
pub(super) fn places(profile: &RepoProfile, destination: &Path, request: &Request, target: &Place) -> Vec<Blocker> {
    let source = &profile.worktree;
    let mut found = Vec::new();
    if destination == source {
        found.push(Blocker::new("same-place", "source and destination are the same directory", "name another one"));
    } else if destination.starts_with(source) {
        found.push(Blocker::new(
            "destination-inside-source",
            "the destination lies inside the source",
            "name a directory outside of the repository",
        ));
    } else if source.starts_with(destination) {
        found.push(Blocker::new(
            "source-inside-destination",
            "the source lies inside the destination",
            "name a directory that does not hold the repository",
        ));
    } else if !is_free(destination) {
        found.push(Blocker::new(
            "destination-not-empty",
            format!("`{}` is there already, and is no empty directory", printable(destination)),
            "nothing is ever overwritten: name another destination, or move that one away",
        ));
    }
    found.extend(wrong_filesystem(request, target));
    found.extend(linked(profile));
    found
}

fn is_free(destination: &Path) -> bool {
    match std::fs::read_dir(destination) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn wrong_filesystem(request: &Request, target: &Place) -> Option<Blocker> {
    let fstype = &target.fstype;
    let is_right = if request.target_fs.is_empty() {
        let is_windows = target.class == FilesystemClass::WindowsDrive;
        // A FUSE filesystem may be a Windows drive (ntfs-3g); only the mount table knows.
        let may_be_windows = is_windows || target.class == FilesystemClass::Fuse;
        if request.to_windows { may_be_windows } else { target.class == FilesystemClass::LocalNative }
    } else {
        request.target_fs.iter().any(|wanted| wanted == fstype)
    };
    if is_right {
        return None;
    }
    let why = match target.class {
        FilesystemClass::Memory => "what is there is gone at the next restart",
        FilesystemClass::WindowsDrive => "that is a Windows drive",
        FilesystemClass::Overlay => "what is there goes away with the container",
        FilesystemClass::Network => "that is another machine's storage",
        FilesystemClass::VmShared => "that is a folder of the host",
        FilesystemClass::Fuse => "nothing is known about it",
        FilesystemClass::LocalNative if request.to_windows => "Windows programs do not work on it",
        FilesystemClass::LocalNative => "it is not among those that `--target-fs` names",
    };
    let fix = match target.class {
        FilesystemClass::WindowsDrive if !request.to_windows => {
            "to move to the Windows side, pass `--to-windows`; otherwise name a directory on a disk of this system"
        }
        _ => "name a directory elsewhere, or allow this type with `--target-fs`",
    };
    let say = format!("the destination is on {fstype}, and {why}");
    Some(Blocker::new("destination-filesystem", say, fix))
}

/// A worktree whose git dir lies elsewhere cannot be moved alone.
fn linked(profile: &RepoProfile) -> Option<Blocker> {
    let is_inside = profile.git_dir.starts_with(&profile.worktree);
    if profile.facts.bare || (is_inside && profile.common_dir.starts_with(&profile.worktree)) {
        return None;
    }
    let (git_dir, common) = (printable(&profile.git_dir), printable(&profile.common_dir));
    if profile.facts.linked_worktree {
        return Some(Blocker::new(
            "linked-worktree",
            format!("this is a linked worktree; its repository is `{common}`"),
            "move the repository's main worktree; or move this one alone with `git worktree move`",
        ));
    }
    Some(Blocker::new(
        "git-dir-outside",
        format!("the git dir `{git_dir}` lies outside of the worktree"),
        "a submodule moves with its superproject; of a repository with a separate git dir, replace the file `.git` by \
         the directory that it names",
    ))
}

/// Checks what the walk found.
pub(super) fn content(
    profile: &RepoProfile,
    request: &Request,
    selection: &Selection<'_>,
    inventory: &Inventory,
    free_bytes: u64,
) -> Vec<Blocker> {
    let mut found = Vec::new();
    if let Some(operation) = &profile.facts.in_progress {
        found.push(Blocker::new(
            "operation-in-progress",
            format!("a {operation} is in progress"),
            format!("finish it (`git {operation} --continue`), or give it up (`git {operation} --abort`)"),
        ));
    }
    found.extend(locks(selection, inventory));
    found.extend(pipes(selection, inventory));
    found.extend(stray(selection, inventory));
    found.extend(space(inventory, free_bytes));
    if let Some(error) = crate::migrate::inventory::unreadable_error(&inventory.unreadable) {
        found.push(Blocker::new("unreadable", error.to_string(), error.hint().unwrap_or_default()));
    }
    if request.to_windows {
        found.extend(windows_names(request, inventory));
    }
    found
}

fn locks(selection: &Selection<'_>, inventory: &Inventory) -> Option<Blocker> {
    let is_lock = |path: &Path| {
        selection.is_git_data(path)
            && path.extension().is_some_and(|extension| extension == "lock")
            && !path.components().any(|part| part.as_os_str() == "hooks")
    };
    let locks: Vec<&Path> =
        inventory.entries.iter().map(|entry| entry.path.as_path()).filter(|path| is_lock(path)).collect();
    (!locks.is_empty()).then(|| {
        Blocker::new(
            "lock",
            format!("git holds {}", named(&locks)),
            "wait until the git command that runs there has ended; if none runs, one was killed: remove the file",
        )
    })
}

/// Git waits for ever on a pipe in the place of a file that it reads, in the copy as in the source.
fn pipes(selection: &Selection<'_>, inventory: &Inventory) -> Option<Blocker> {
    const READ_IN_WORKTREE: &[&str] = &[".git", ".gitattributes", ".gitignore", ".gitmodules"];
    let is_read = |path: &Path| {
        selection.is_git_data(path)
            || path.components().any(|part| part.as_os_str() == ".git")
            || path.file_name().is_some_and(|name| READ_IN_WORKTREE.iter().any(|read| name == *read))
    };
    let pipes: Vec<&Path> = inventory
        .entries
        .iter()
        .filter(|entry| entry.stat.kind == Kind::Fifo && is_read(&entry.path))
        .map(|entry| entry.path.as_path())
        .collect();
    (!pipes.is_empty()).then(|| {
        Blocker::new(
            "pipes",
            format!("git would wait for ever on a named pipe in the place of a file: {}", named(&pipes)),
            "remove it, or put the file back that belongs there",
        )
    })
}

/// Sync programs and file managers leave files in `refs`, which git takes for broken refs.
fn stray(selection: &Selection<'_>, inventory: &Inventory) -> Option<Blocker> {
    const NAMES: &[&str] = &["desktop.ini", "Thumbs.db", ".DS_Store"];
    let refs = selection.git_dir.join("refs");
    let strays: Vec<&Path> = inventory
        .entries
        .iter()
        .map(|entry| entry.path.as_path())
        .filter(|path| path.starts_with(&refs))
        .filter(|path| path.file_name().is_some_and(|name| NAMES.iter().any(|stray| name == *stray)))
        .collect();
    (!strays.is_empty()).then(|| {
        Blocker::new(
            "stray-refs",
            format!("another program left files among the refs: {}", named(&strays)),
            "delete them, then see with `git fsck` that nothing else was damaged",
        )
    })
}

fn space(inventory: &Inventory, free_bytes: u64) -> Option<Blocker> {
    let needed = inventory.bytes() + SPARE_BYTES;
    (needed > free_bytes).then(|| {
        Blocker::new(
            "free-space",
            format!("the copy needs {needed} bytes and {free_bytes} are free"),
            "make room, leave more out (without `--all`), or name a destination on another disk; in WSL 2 the drive that \
             holds the disk image counts too",
        )
    })
}

/// Checks what was found against what the destination's filesystem turned out to hold.
pub(super) fn not_held(selection: &Selection<'_>, inventory: &Inventory, can: Abilities) -> Option<Blocker> {
    if can.ignores_case {
        let pairs = case_collisions(inventory);
        let names: Vec<&Path> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
        if !names.is_empty() {
            return Some(Blocker::new(
                "case-collisions",
                format!("names that differ by case alone are one name at the destination: {}", named(&names)),
                "rename one of each (`git mv` and commit), or name a destination on a disk of this system",
            ));
        }
    }
    let is_link = |entry: &&crate::migrate::inventory::Entry| {
        entry.stat.kind == Kind::Symlink && selection.is_git_data(&entry.path)
    };
    let links: Vec<&Path> = inventory.entries.iter().filter(is_link).map(|entry| entry.path.as_path()).collect();
    (!can.symlinks && !links.is_empty()).then(|| {
        Blocker::new(
            "links-in-git-dir",
            format!("the destination's filesystem holds no links, and the git dir is made of some: {}", named(&links)),
            "make a clone of its own there (`git clone`), or name a destination on a disk of this system",
        )
    })
}

fn windows_names(request: &Request, inventory: &Inventory) -> Option<Blocker> {
    let known = request.target.as_ref().and_then(|target| target.site.windows_path.clone());
    let text = known.unwrap_or_else(|| request.destination.to_string_lossy().into_owned());
    let bad = bad_names(inventory, text.encode_utf16().count());
    let list: Vec<String> =
        bad.iter().take(MAX_NAMED).map(|bad| format!("`{}` {}", printable(&bad.path), bad.why)).collect();
    let more = bad.len().saturating_sub(MAX_NAMED);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!bad.is_empty()).then(|| {
        Blocker::new(
            "windows-names",
            format!("Windows cannot hold {} names: {}{rest}", bad.len(), list.join("; ")),
            "rename them (`git mv` and commit), or delete those that are not needed",
        )
    })
}
