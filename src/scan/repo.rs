//! One scan of a repository: from a path to a [`RepoProfile`].

use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rustix::io::Errno;

use crate::error::{Error, printable};
use crate::facts::RepoFacts;
use crate::scan::access::{Access, is_absent};
use crate::scan::discover::{Location, discover};
use crate::scan::refs::Refs;
use crate::scan::{InfoFiles, RepoProfile, config, index, refs};

/// Files below `.git/info` are written by hand and short; a sparse checkout's patterns may be many.
const MAX_INFO_BYTES: usize = 4 << 20;
/// As much of the root's `.gitattributes` as is looked at for the LFS filter.
const MAX_ATTRIBUTES_BYTES: usize = 256 * 1024;

/// Files and directories in the git dir that tell of an operation under way, the most telling first
/// (`wt-status.c` of git looks for the same ones).
const OPERATIONS: &[(&str, &str)] = &[
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

/// Scans the repository that `path` is in.
///
/// The number of calls does not depend on the repository's size: the index is one read, the git dir one listing.
///
/// # Errors
///
/// [`Error::Io`] when the path or a part of the repository cannot be read, [`Error::Refused`] when there is no
/// repository or it is damaged.
pub fn scan(path: &Path, access: &Access) -> Result<RepoProfile, Error> {
    let start = access.real_directory(path).map_err(|source| Error::io("open", path, source))?;
    let location = discover(&start, access)?;
    let layers = config::read(&location.git_dir, &location.common_dir, access)?;
    let object_hash = object_hash(&layers.own, &location)?;
    let refs = refs::read(&location, &layers.merged, access)?;
    let says_bare = config::boolean(&layers.own, "core.bare") == Some(true) && !location.is_linked_worktree();
    let worktree = if says_bare { None } else { configured_worktree(&location, &layers.own, access)? };
    let is_bare = worktree.is_none();
    let index = match worktree {
        Some(_) => index::read(&location.git_dir, object_hash, access)?,
        None => None,
    };
    let root = worktree.clone().unwrap_or_else(|| location.git_dir.clone());
    let mut facts = facts(&location, &layers.own, refs.clone());
    facts.object_format = object_hash.to_string();
    facts.bare = is_bare;
    facts.worktree = worktree.as_deref().map(printable);
    facts.foreign_owner = is_foreign(&root, access)?;
    facts.remotes = config::remotes(&layers.merged);
    if let Some(index) = &index {
        index::summarise(index, &mut facts);
        facts.lfs = uses_lfs(index, &root, access)?;
    } else if !is_bare {
        facts.tracked_files = Some(0);
        facts.tracked_bytes = Some(0);
        facts.dirs = Some(0);
    }
    facts.worktrees = linked_worktrees(&location, access)?;
    let info = info_files(&location, access)?;
    Ok(RepoProfile {
        facts,
        worktree: root,
        git_dir: location.git_dir,
        common_dir: location.common_dir,
        index,
        config: layers.merged,
        own_config: layers.own,
        head_commit: refs.head_commit,
        git_dir_entries: location.git_dir_entries,
        info,
        notes: layers.notes,
    })
}

/// Returns the hash of the object names; the format belongs to the repository's own configuration.
fn object_hash(own: &gix::config::File, location: &Location) -> Result<gix::hash::Kind, Error> {
    let Some(format) = own.string("extensions.objectFormat") else { return Ok(gix::hash::Kind::Sha1) };
    format.to_str_lossy().parse().map_err(|_| {
        Error::refused(
            format!("`{}` uses the unknown object format `{format}`", printable(&location.git_dir)),
            "rehome knows sha1 and sha256; look for a newer version",
        )
    })
}

/// Returns the worktree's root: where `.git` was found, unless `core.worktree` names another place.
fn configured_worktree(
    location: &Location,
    own: &gix::config::File,
    access: &Access,
) -> Result<Option<PathBuf>, Error> {
    let Some(named) = own.string("core.worktree").filter(|_| !location.is_linked_worktree()) else {
        return Ok(location.worktree.clone());
    };
    let Ok(named) = named.to_path() else { return Ok(location.worktree.clone()) };
    let wanted = location.git_dir.join(named);
    match access.real_directory(&wanted) {
        Ok(real) => Ok(Some(real)),
        Err(error) if is_absent(&error) => Err(Error::refused(
            format!(
                "`core.worktree` of `{}` names `{}`, and there is nothing",
                printable(&location.git_dir),
                printable(&wanted)
            ),
            "correct it with `git config core.worktree PATH`, or remove it with `git config --unset core.worktree`",
        )),
        Err(source) => Err(Error::io("open", wanted, source)),
    }
}

fn facts(location: &Location, own: &gix::config::File, refs: Refs) -> RepoFacts {
    let has = |name: &str| location.git_dir_entries.iter().any(|entry| entry == name);
    let operation = OPERATIONS.iter().find(|(file, _)| has(file)).map(|(_, operation)| (*operation).to_owned());
    RepoFacts {
        git_dir: printable(&location.git_dir),
        linked_worktree: location.is_linked_worktree(),
        unborn: refs.head_commit.is_none() && !refs.is_reftable,
        branch: refs.branch,
        ref_format: if refs.is_reftable { "reftable" } else { "files" }.to_owned(),
        sparse_checkout: config::boolean(own, "core.sparseCheckout") == Some(true),
        in_progress: operation,
        has_stash: refs.stashes.map(|count| count > 0),
        stashes: refs.stashes,
        unpushed: refs.unpushed,
        shallow: has("shallow"),
        partial_clone: is_partial(own),
        ..RepoFacts::default()
    }
}

fn is_partial(own: &gix::config::File) -> bool {
    own.string("extensions.partialClone").is_some()
        || own.sections_by_name("remote").into_iter().flatten().any(|section| section.value("promisor").is_some())
}

/// Returns whether the worktree belongs to another user, by git's rule: root who came by `sudo` counts as the one who
/// called it (`ensure_valid_ownership` in setup.c).
fn is_foreign(root: &Path, access: &Access) -> Result<bool, Error> {
    let owner = access.lstat(root).map_err(|source| Error::io("read", root, source))?.st_uid;
    let user = rustix::process::geteuid();
    let sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse::<u32>().ok()).filter(|_| user.is_root());
    Ok(owner != user.as_raw() && Some(owner) != sudo)
}

/// Returns whether the root's `.gitattributes` names the LFS filter; `None` without such a file.
fn uses_lfs(index: &crate::scan::Index, root: &Path, access: &Access) -> Result<Option<bool>, Error> {
    if index.state.entry_by_path(".gitattributes".into()).is_none() {
        return Ok(None);
    }
    let path = root.join(".gitattributes");
    match access.read_head(&path, MAX_ATTRIBUTES_BYTES) {
        Ok(head) => Ok(Some(head.data.contains_str("filter=lfs"))),
        // Deleted in the worktree, or a link (`ELOOP`): git then does not use it either.
        Err(error) if is_absent(&error) || error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Ok(None),
        Err(source) => Err(Error::io("read", path, source)),
    }
}

/// Counts the linked worktrees; only the main git dir has them.
fn linked_worktrees(location: &Location, access: &Access) -> Result<Option<u64>, Error> {
    /// Nobody works in more worktrees than this; the bound only limits a listing.
    const MAX_WORKTREES: usize = 1000;
    let may_have = location.is_linked_worktree() || location.git_dir_entries.iter().any(|name| name == "worktrees");
    if !may_have {
        return Ok(Some(0));
    }
    let path = location.common_dir.join("worktrees");
    match access.list(&path, MAX_WORKTREES) {
        Ok(entries) => Ok(Some(entries.len() as u64)),
        Err(error) if is_absent(&error) => Ok(Some(0)),
        Err(source) => Err(Error::io("list", path, source)),
    }
}

fn info_files(location: &Location, access: &Access) -> Result<InfoFiles, Error> {
    let read = |directory: &Path, name: &str| {
        let path = directory.join(name);
        access.read_if_present(&path, MAX_INFO_BYTES).map_err(|source| Error::io("read", path, source))
    };
    Ok(InfoFiles {
        exclude: read(&location.common_dir, "info/exclude")?,
        attributes: read(&location.common_dir, "info/attributes")?,
        sparse_checkout: read(&location.git_dir, "info/sparse-checkout")?,
        alternates: read(&location.common_dir, "objects/info/alternates")?,
    })
}
