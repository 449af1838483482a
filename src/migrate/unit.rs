//! The repositories in a tree: the main one, its submodules, worktrees that lie in it, and others nested there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::migrate::fsys::Kind;
use crate::migrate::inventory::Inventory;
use crate::migrate::spelling::{Spellings, is_absolute, normalized};

/// What a repository is to the one that is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// The one that is moved.
    Main,
    /// A submodule of it, with its git dir in `.git/modules`.
    Submodule,
    /// A linked worktree of it that lies in the tree.
    Worktree,
    /// Another repository that happens to lie there.
    Nested,
}

/// A worktree with its git dir, all relative to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    pub(super) worktree: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    /// What the `.git` file says; `None` where `.git` is the git dir itself.
    pub(super) pointer: Option<String>,
}

/// Finds the repositories of a copied tree; `spellings` are those of the source.
pub(super) fn find(tree: &Path, inventory: &Inventory, is_bare: bool, spellings: &Spellings) -> Vec<Unit> {
    let paths: HashSet<&Path> = inventory.entries.iter().map(|entry| entry.path.as_path()).collect();
    let mut units = Vec::new();
    if is_bare {
        return units;
    }
    for entry in inventory.entries.iter().filter(|entry| entry.path.file_name().is_some_and(|name| name == ".git")) {
        let worktree = entry.path.parent().unwrap_or(Path::new("")).to_path_buf();
        let git_dir = match entry.stat.kind {
            Kind::Directory if paths.contains(entry.path.join("HEAD").as_path()) => Some((entry.path.clone(), None)),
            Kind::File => std::fs::read_to_string(tree.join(&entry.path)).ok().and_then(|text| {
                let pointer = text.strip_prefix("gitdir:")?.trim().to_owned();
                let git_dir = locate(&pointer, &worktree, &paths, spellings, tree)?;
                Some((git_dir, Some(pointer)))
            }),
            _ => None,
        };
        if let Some((git_dir, pointer)) = git_dir {
            units.push(unit(worktree, git_dir, pointer));
        }
    }
    units
}

fn unit(worktree: PathBuf, git_dir: PathBuf, pointer: Option<String>) -> Unit {
    let mut common_dir = git_dir.clone();
    let kind = if worktree.as_os_str().is_empty() {
        UnitKind::Main
    } else if git_dir.starts_with(".git/modules") {
        UnitKind::Submodule
    } else if git_dir.parent().is_some_and(|parent| parent.ends_with("worktrees")) && pointer.is_some() {
        common_dir = git_dir.parent().and_then(Path::parent).unwrap_or(Path::new(".git")).to_path_buf();
        UnitKind::Worktree
    } else {
        UnitKind::Nested
    };
    Unit { kind, worktree, git_dir, common_dir, pointer }
}

/// Returns the git dir in the tree that a `.git` file means.
///
/// A path of the source in any spelling is followed. Another absolute path counts only when the git dir that it seems
/// to mean, told by its end, points back here: the drive may have had another letter or mount point.
fn locate(
    pointer: &str,
    worktree: &Path,
    paths: &HashSet<&Path>,
    spellings: &Spellings,
    tree: &Path,
) -> Option<PathBuf> {
    let is_git_dir = |path: &Path| paths.contains(path.join("HEAD").as_path());
    if !is_absolute(pointer) {
        return normalized(&worktree.join(pointer.replace('\\', "/"))).filter(|path| is_git_dir(path));
    }
    if let Some(path) = spellings.strip(pointer) {
        return is_git_dir(&path).then_some(path);
    }
    let text = pointer.replace('\\', "/");
    let end = PathBuf::from(&text[text.find("/.git/")? + 1..]);
    (is_git_dir(&end) && points_back(&tree.join(&end), worktree)).then_some(end)
}

fn points_back(git_dir: &Path, worktree: &Path) -> bool {
    let ends_here = |text: &str| {
        let text = text.trim().replace('\\', "/");
        let text = text.strip_suffix("/.git").unwrap_or(&text).to_owned();
        text.ends_with(&format!("/{}", worktree.display()))
    };
    let back = std::fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
    let config = std::fs::read_to_string(git_dir.join("config")).unwrap_or_default();
    let configured = config.lines().filter_map(|line| line.trim().strip_prefix("worktree"));
    ends_here(&back) || configured.filter_map(|rest| rest.split_once('=')).any(|(_, value)| ends_here(value))
}
