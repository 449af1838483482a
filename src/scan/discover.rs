//! Finds the git dir that a path belongs to, as git does: upwards, but not across a mount.
//!
//! `gix::discover` does the same with more calls (it opens the repository at each candidate); on a mount where each
//! call costs milliseconds, two a directory are enough. What git reads as data (a `.git` file, `commondir`) is read as
//! data here; nothing is run.

use std::io;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rustix::fs::FileType;

use crate::error::{Error, printable};
use crate::scan::access::{Access, is_absent};

/// A `.git` file and `commondir` hold one path; git itself gives up above one mebibyte.
const MAX_LINK_FILE_BYTES: usize = 64 * 1024;

/// Where the parts of a repository are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The worktree's root; `None` in a bare repository.
    pub worktree: Option<PathBuf>,
    /// The git dir of this worktree.
    pub git_dir: PathBuf,
    /// The git dir that all worktrees share.
    pub common_dir: PathBuf,
    /// Whether `.git` is a file (a linked worktree or a submodule).
    pub has_git_file: bool,
    /// Names in the git dir.
    pub git_dir_entries: Vec<String>,
}

impl Location {
    /// Returns whether the git dir belongs to a linked worktree.
    #[must_use]
    pub fn is_linked_worktree(&self) -> bool {
        self.git_dir != self.common_dir
    }
}

/// Finds the repository that `start` (a real path, a directory) is in.
///
/// # Errors
///
/// [`Error::Refused`] when there is none, or when what looks like one is broken; [`Error::Io`] when the mount refuses.
pub fn discover(start: &Path, access: &Access) -> Result<Location, Error> {
    let mount = access.lstat(start).map_err(|source| Error::io("read", start, source))?.st_dev;
    for directory in start.ancestors() {
        let device = access.lstat(directory).map_err(|source| Error::io("read", directory, source))?.st_dev;
        if device != mount {
            break;
        }
        if let Some(location) = at(directory, access)? {
            return Ok(location);
        }
    }
    Err(Error::refused(
        format!("`{}` is not in a git repository", printable(start)),
        "run rehome inside a repository, or name one: `rehome check PATH`",
    ))
}

/// Returns the repository whose worktree or git dir is exactly `directory`.
fn at(directory: &Path, access: &Access) -> Result<Option<Location>, Error> {
    let dot_git = directory.join(".git");
    match access.lstat(&dot_git) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                if let Some(entries) = git_dir_entries(&dot_git, access)? {
                    return Ok(Some(main_worktree(directory, dot_git, entries)));
                }
            }
            FileType::RegularFile => return git_file(directory, &dot_git, access).map(Some),
            FileType::Symlink => {
                let target = access.real_directory(&dot_git).map_err(|source| Error::io("follow", &dot_git, source))?;
                if let Some(entries) = git_dir_entries(&target, access)? {
                    return Ok(Some(main_worktree(directory, target, entries)));
                }
            }
            _ => {}
        },
        Err(error) if is_absent(&error) => {}
        Err(source) => return Err(Error::io("read", dot_git, source)),
    }
    // Below here `directory` can only be a git dir itself: a bare repository, or somebody stands inside `.git`.
    let is_candidate = access.exists(&directory.join("HEAD")).map_err(|source| Error::io("read", directory, source))?;
    if !is_candidate {
        return Ok(None);
    }
    let Some(entries) = git_dir_entries(directory, access)? else { return Ok(None) };
    let worktree = match (directory.file_name(), directory.parent()) {
        (Some(name), Some(parent)) if name == ".git" => Some(parent.to_path_buf()),
        _ => None,
    };
    Ok(Some(Location {
        worktree,
        git_dir: directory.to_path_buf(),
        common_dir: directory.to_path_buf(),
        has_git_file: false,
        git_dir_entries: entries,
    }))
}

fn main_worktree(directory: &Path, git_dir: PathBuf, entries: Vec<String>) -> Location {
    Location {
        worktree: Some(directory.to_path_buf()),
        common_dir: git_dir.clone(),
        git_dir,
        has_git_file: false,
        git_dir_entries: entries,
    }
}

/// Lists a directory and returns its names if they are those of a git dir: `HEAD`, `objects` and `refs`.
///
/// A linked worktree's git dir has `HEAD` and `commondir` instead.
fn git_dir_entries(directory: &Path, access: &Access) -> Result<Option<Vec<String>>, Error> {
    /// A git dir has some twenty entries; the bound only stops a directory that is none.
    const MAX_ENTRIES: usize = 10_000;
    let listed = match access.list(directory, MAX_ENTRIES) {
        Ok(listed) => listed,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(source) => return Err(Error::io("list", directory, source)),
    };
    let names: Vec<String> = listed.into_iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect();
    let has = |name: &str| names.iter().any(|n| n == name);
    let is_git_dir = has("HEAD") && ((has("objects") && has("refs")) || has("commondir"));
    Ok(is_git_dir.then_some(names))
}

/// Follows a `.git` file to the git dir of a linked worktree or a submodule.
fn git_file(directory: &Path, dot_git: &Path, access: &Access) -> Result<Location, Error> {
    let text = access.read(dot_git, MAX_LINK_FILE_BYTES).map_err(|source| Error::io("read", dot_git, source))?;
    let Some(named) = text.strip_prefix(b"gitdir: ") else {
        return Err(Error::refused(
            format!("`{}` is a file, but none that git wrote: it does not begin with `gitdir: `", printable(dot_git)),
            "restore it, or remove it if this directory is no repository",
        ));
    };
    let named = named.trim_end_with(|c| c == '\n' || c == '\r');
    let named = named.to_path().map_err(|_| {
        Error::refused(
            format!("the path in `{}` is not valid text on this system", printable(dot_git)),
            "restore it with `git worktree repair`",
        )
    })?;
    let wanted = directory.join(named);
    let missing = || {
        Error::refused(
            format!("`{}` names the git dir `{}`, and there is none", printable(dot_git), printable(named)),
            "if another git (the Windows one, say) wrote that path, run `git worktree repair` in the main worktree, \
             or `git submodule update --init` for a submodule",
        )
    };
    let git_dir = match access.real_directory(&wanted) {
        Ok(real) => real,
        Err(error) if is_absent(&error) => return Err(missing()),
        Err(source) => return Err(Error::io("read", wanted, source)),
    };
    let Some(entries) = git_dir_entries(&git_dir, access)? else { return Err(missing()) };
    let common_dir =
        if entries.iter().any(|name| name == "commondir") { common_dir(&git_dir, access)? } else { git_dir.clone() };
    Ok(Location {
        worktree: Some(directory.to_path_buf()),
        git_dir,
        common_dir,
        has_git_file: true,
        git_dir_entries: entries,
    })
}

fn common_dir(git_dir: &Path, access: &Access) -> Result<PathBuf, Error> {
    let file = git_dir.join("commondir");
    let text = access.read(&file, MAX_LINK_FILE_BYTES).map_err(|source| Error::io("read", &file, source))?;
    let broken = |source: io::Error| Error::io("follow", file.clone(), source);
    let named = text.trim_end().to_path().map_err(|error| broken(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    access.real_directory(&git_dir.join(named)).map_err(broken)
}
