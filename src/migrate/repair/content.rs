//! Tells changes that a person made from what the old side's filesystem and line endings made of the files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use gix::index::entry::Mode;

use crate::error::{Error, printable};
use crate::migrate::git::{Git, nul_separated, split_nul, to_path};
use crate::migrate::inventory::Source;
use crate::migrate::status::{Change, Changes};

/// Paths that git is asked about in one go: bounds what is in memory of their content.
const PATHS_PER_BATCH: usize = 256;
/// A larger text file is not compared; it then counts as changed, which is the safe side.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// What attributes say about a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PathAttributes {
    pub(super) is_binary: bool,
    pub(super) has_filter: bool,
}

/// Asks git for the attributes that decide how content is converted.
pub(super) fn attributes(git: &Git, paths: &[&Path]) -> Result<HashMap<PathBuf, PathAttributes>, Error> {
    let mut found: HashMap<PathBuf, PathAttributes> = HashMap::new();
    if paths.is_empty() {
        return Ok(found);
    }
    let input = nul_separated(paths.iter().copied());
    let text = git.run(&["check-attr", "-z", "--stdin", "text", "filter"], &input)?;
    let words: Vec<&[u8]> = split_nul(&text).collect();
    for triple in words.chunks_exact(3) {
        let entry = found.entry(to_path(triple[0])).or_default();
        let is_off = triple[2] == b"unset";
        match triple[1] {
            b"text" => entry.is_binary = is_off,
            _ => entry.has_filter = !is_off && triple[2] != b"unspecified",
        }
    }
    Ok(found)
}

/// Reads objects by their names, in order; a missing one is `None`.
fn objects(git: &Git, names: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut input = Vec::new();
    for name in names {
        input.extend_from_slice(name);
        input.push(b'\n');
    }
    let out = git.run(&["cat-file", "--batch"], &input)?;
    let mut rest = out.as_slice();
    let mut found = Vec::with_capacity(names.len());
    while found.len() < names.len() {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let header = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = rest.get(end + 1..).unwrap_or_default();
        let size = header.rsplit(' ').next().and_then(|size| size.parse::<usize>().ok());
        match size.filter(|size| *size < rest.len()) {
            Some(size) => {
                found.push(Some(rest[..size].to_vec()));
                rest = &rest[size + 1..];
            }
            None => found.push(None),
        }
    }
    Ok(found)
}

/// Returns the changed files whose content differs from the index by line endings alone.
pub(super) fn line_endings(git: &Git, worktree: &Path, changes: &Changes) -> Result<Vec<PathBuf>, Error> {
    let candidates: Vec<(&PathBuf, &Change)> = changes
        .iter()
        .filter(|(path, change)| {
            change.unstaged == b'M' && is_regular(&change.index_mode) && is_text_sized(worktree, path)
        })
        .collect();
    let paths: Vec<&Path> = candidates.iter().map(|(path, _)| path.as_path()).collect();
    let attributes = attributes(git, &paths)?;
    let mut found = Vec::new();
    for batch in candidates.chunks(PATHS_PER_BATCH) {
        let names: Vec<&[u8]> = batch.iter().map(|(_, change)| change.object.as_slice()).collect();
        for ((path, _), blob) in batch.iter().zip(objects(git, &names)?) {
            let attribute = attributes.get(*path).cloned().unwrap_or_default();
            if attribute.is_binary || attribute.has_filter {
                continue;
            }
            let full = worktree.join(path);
            let file = std::fs::read(&full).map_err(|source| Error::io("read", full, source))?;
            if blob.is_some_and(|blob| is_same_text(&blob, &file)) {
                found.push((*path).clone());
            }
        }
    }
    Ok(found)
}

fn is_regular(mode: &[u8]) -> bool {
    mode.starts_with(b"100")
}

fn is_text_sized(worktree: &Path, path: &Path) -> bool {
    worktree.join(path).symlink_metadata().is_ok_and(|found| found.is_file() && found.len() < MAX_TEXT_BYTES)
}

/// Returns whether two texts are the same once CRLF is LF; binary content never is.
pub(super) fn is_same_text(one: &[u8], other: &[u8]) -> bool {
    !one.contains(&0) && !other.contains(&0) && without_cr(one).eq(without_cr(other))
}

fn without_cr(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    text.iter()
        .enumerate()
        .filter(|(at, byte)| **byte != b'\r' || text.get(at + 1) != Some(&b'\n'))
        .map(|(_, byte)| *byte)
}

/// Returns tracked files that the old side could not hold beside another one whose name differs by case alone.
///
/// Missing ones come from the object database; so does the one that is there when it holds what belongs to another
/// name.
pub(super) fn collisions(
    git: &Git,
    worktree: &Path,
    place: &Path,
    modes: &HashMap<PathBuf, Mode>,
    changes: &Changes,
    source: &Source,
    old_ignores_case: bool,
) -> Result<Vec<PathBuf>, Error> {
    let mut groups: BTreeMap<String, Vec<&PathBuf>> = BTreeMap::new();
    for path in modes.keys() {
        groups.entry(path.to_string_lossy().to_lowercase()).or_default().push(path);
    }
    let mut found = Vec::new();
    for group in groups.into_values().filter(|group| group.len() > 1) {
        let is_missing = |path: &Path| {
            changes.get(path).is_some_and(|change| change.unstaged == b'D')
                && (old_ignores_case || source.has(&place.join(path)))
        };
        let missing: Vec<&PathBuf> = group.iter().copied().filter(|path| is_missing(path)).collect();
        if missing.is_empty() {
            continue;
        }
        let contents = missing_contents(git, &missing, changes)?;
        found.extend(missing.into_iter().cloned());
        for path in group.into_iter().filter(|path| changes.get(*path).is_some_and(|change| change.unstaged == b'M')) {
            let file = std::fs::read(worktree.join(path)).unwrap_or_default();
            if contents.iter().any(|content| *content == file || is_same_text(content, &file)) {
                found.push(path.clone());
            }
        }
    }
    Ok(found)
}

fn missing_contents(git: &Git, missing: &[&PathBuf], changes: &Changes) -> Result<Vec<Vec<u8>>, Error> {
    let names: Vec<&[u8]> =
        missing.iter().filter_map(|path| changes.get(*path)).map(|change| change.object.as_slice()).collect();
    Ok(objects(git, &names)?.into_iter().flatten().collect())
}

/// Returns tracked links that are regular files in the worktree, and so were written out as text.
pub(super) fn links_as_text(
    git: &Git,
    worktree: &Path,
    modes: &HashMap<PathBuf, Mode>,
    changes: &Changes,
    old_holds_links: bool,
) -> Result<Vec<(PathBuf, Vec<u8>)>, Error> {
    /// Longer than any path that a link may hold (`PATH_MAX`).
    const MAX_TARGET_BYTES: u64 = 4096;
    let mut found = Vec::new();
    let mut links: Vec<&PathBuf> =
        modes.iter().filter(|(_, mode)| **mode == Mode::SYMLINK).map(|(path, _)| path).collect();
    links.sort_unstable();
    for path in links {
        let full = worktree.join(path);
        let is_text = full.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() < MAX_TARGET_BYTES);
        if !is_text {
            continue;
        }
        let target = std::fs::read(&full).map_err(|source| Error::io("read", &full, source))?;
        let is_artefact = !old_holds_links || {
            let name = changes.get(path).map(|change| change.object.as_slice());
            let blob = objects(git, &name.into_iter().collect::<Vec<_>>())?.pop().flatten();
            blob.is_some_and(|blob| blob == target)
        };
        if is_artefact && !target.is_empty() && !target.contains(&0) {
            found.push((path.clone(), target));
        }
    }
    Ok(found)
}

/// Lets git write files out of the index, converted as attributes and configuration of the new side ask.
pub(super) fn check_out(git: &Git, worktree: &Path, paths: &[PathBuf]) -> Result<(), Error> {
    let input = nul_separated(paths.iter().map(PathBuf::as_path));
    git.run(&["checkout-index", "--force", "-z", "--stdin"], &input)?;
    match paths.iter().find(|path| worktree.join(path).symlink_metadata().is_err()) {
        None => Ok(()),
        Some(path) => Err(Error::refused(
            format!("git did not write `{}` out of the index", printable(path)),
            "the source is as it was; run `git fsck` there, its object may be missing",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_without_regard_to_line_endings_and_binaries_are_not() {
        assert!(is_same_text(b"a\r\nb\r\n", b"a\nb\n"));
        assert!(is_same_text(b"a\nb\r\n", b"a\r\nb\n"));
        assert!(!is_same_text(b"a\rb\n", b"ab\n"));
        assert!(!is_same_text(b"a\r\n", b"a\n\n"));
        assert!(!is_same_text(b"\0a\r\n", b"\0a\n"));
    }
}
