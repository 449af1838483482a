//! What `git status` says, as a set that two sides can be compared by.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Error;
use crate::migrate::git::{Git, split_nul, to_path};

/// One path that git reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Change between HEAD and index: `.`, `M`, `A`, `D`, `T`, or `U` in a conflict, `?` when untracked.
    pub(super) staged: u8,
    /// Change between index and worktree.
    pub(super) unstaged: u8,
    /// Mode in the index, as git prints it; empty when untracked.
    pub(super) index_mode: Vec<u8>,
    /// Object in the index, in hex; empty when untracked.
    pub(super) object: Vec<u8>,
}

/// All that git reports, by path.
pub(super) type Changes = BTreeMap<PathBuf, Change>;

/// The arguments of every status here: stable form, no submodule's configuration, no guess at renames.
pub(super) fn arguments(with_untracked: bool) -> [&'static str; 6] {
    let untracked = if with_untracked { "--untracked-files=all" } else { "--untracked-files=no" };
    ["status", "--porcelain=v2", "-z", "--ignore-submodules=all", "--no-renames", untracked]
}

/// Runs `git status`; the private index is refreshed on the way.
pub(super) fn status(git: &Git, with_untracked: bool) -> Result<Changes, Error> {
    Ok(parse(&git.run(&arguments(with_untracked), b"")?))
}

/// Parses `--porcelain=v2 -z` (git-status(1)).
pub(super) fn parse(text: &[u8]) -> Changes {
    split_nul(text).filter_map(parse_one).collect()
}

fn parse_one(line: &[u8]) -> Option<(PathBuf, Change)> {
    let (kind, rest) = line.split_first_chunk::<2>()?;
    match kind {
        b"? " => {
            Some((to_path(rest), Change { staged: b'?', unstaged: b'?', index_mode: Vec::new(), object: Vec::new() }))
        }
        // XY sub mH mI mW hH hI path
        b"1 " => {
            let words: Vec<&[u8]> = rest.splitn(8, |byte| *byte == b' ').collect();
            let [codes, _, _, mode, _, _, object, path] = words.as_slice() else { return None };
            Some((to_path(path), change(codes, mode, object)?))
        }
        // XY sub m1 m2 m3 mW h1 h2 h3 path
        b"u " => {
            let words: Vec<&[u8]> = rest.splitn(10, |byte| *byte == b' ').collect();
            let (codes, path) = (words.first()?, words.get(9)?);
            let stages = words.get(2..9)?.concat();
            Some((to_path(path), change(codes, b"conflict", &stages)?))
        }
        _ => None,
    }
}

fn change(codes: &[u8], mode: &[u8], object: &[u8]) -> Option<Change> {
    let [staged, unstaged] = codes else { return None };
    Some(Change { staged: *staged, unstaged: *unstaged, index_mode: mode.to_vec(), object: object.to_vec() })
}

/// Removes the worktree half of a change that is an artefact of the old side.
pub(super) fn without_artefact(changes: &mut Changes, path: &std::path::Path) {
    let Some(change) = changes.get_mut(path) else { return };
    change.unstaged = b'.';
    if change.staged == b'.' {
        changes.remove(path);
    }
}

/// Returns the paths that one side reports otherwise than the other.
pub(super) fn differing(one: &Changes, other: &Changes) -> Vec<PathBuf> {
    let in_one = one.iter().filter(|(path, change)| other.get(*path) != Some(change));
    let in_other_only = other.iter().filter(|(path, _)| !one.contains_key(*path));
    let mut paths: Vec<PathBuf> = in_one.chain(in_other_only).map(|(path, _)| path.clone()).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"1 .M N... 100644 100644 100755 aa aa with space\0\
        1 MM N... 100644 100644 100644 aa bb both\0? new\nline\0\
        u UU N... 100644 100644 100644 100644 a b c conflicted\0";

    #[test]
    fn every_form_of_a_line_is_understood() {
        let changes = parse(TEXT);
        assert_eq!(changes.len(), 4);
        let both = &changes[&PathBuf::from("both")];
        assert_eq!((both.staged, both.unstaged, both.object.as_slice()), (b'M', b'M', b"bb".as_slice()));
        assert!(changes.contains_key(&PathBuf::from("with space")));
        assert!(changes.contains_key(&PathBuf::from("new\nline")));
    }

    #[test]
    fn an_artefact_takes_only_the_worktree_half_away() {
        let mut changes = parse(TEXT);
        without_artefact(&mut changes, "with space".as_ref());
        without_artefact(&mut changes, "both".as_ref());
        assert!(!changes.contains_key(&PathBuf::from("with space")));
        assert_eq!(changes[&PathBuf::from("both")].unstaged, b'.');
        assert_eq!(differing(&changes, &parse(TEXT)), [PathBuf::from("both"), PathBuf::from("with space")]);
    }
}
