//! The index of a repository in the copy.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use gix::index::entry::{Mode, Stage};

use crate::error::{Error, printable};
use crate::migrate::fsys::FileStat;
use crate::migrate::git::to_path;
use crate::scan::access::Access;
use crate::scan::{Index, config, index};

/// Configuration and index of one repository in the tree.
pub(super) struct Opened {
    pub(super) config: gix::config::File,
    pub(super) index: Option<Index>,
    pub(super) hash: gix::hash::Kind,
}

/// Reads configuration and index of a git dir of the copy.
pub(super) fn open(git_dir: &Path, common_dir: &Path) -> Result<Opened, Error> {
    let access = Access::default();
    let layers = config::read(git_dir, common_dir, &access)?;
    let format = layers.own.string("extensions.objectFormat");
    let hash = match format {
        None => gix::hash::Kind::Sha1,
        Some(format) => format.to_str_lossy().parse().map_err(|_| {
            Error::refused(
                format!("`{}` uses the unknown object format `{format}`", printable(git_dir)),
                "rehome knows sha1 and sha256; look for a newer version",
            )
        })?,
    };
    let index = index::read(git_dir, hash, &access)?;
    Ok(Opened { config: layers.merged, index, hash })
}

/// Entries of an index by path, stage 0 only.
pub(super) fn modes(index: &Index) -> HashMap<PathBuf, Mode> {
    let state = &index.state;
    let plain = state.entries().iter().filter(|entry| entry.stage() == Stage::Unconflicted);
    plain.map(|entry| (to_path(entry.path(state)), entry.mode)).collect()
}

/// Returns whether git at the old place took the file for unchanged by its stat data alone.
///
/// By whole seconds and size, as under `core.checkStat=minimal`: the other fields differ between the two sides' gits.
/// An entry as new as the index itself says nothing (git's rule for racy entries).
pub(super) fn was_clean(index: &Index, path: &Path, stat: &FileStat) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Some(entry) = index.state.entry_by_path(path.as_os_str().as_bytes().as_bstr()) else { return false };
    let mtime = i64::from(entry.stat.mtime.secs);
    // Sizes are kept modulo 2^32.
    let size = u64::from(entry.stat.size);
    mtime == stat.mtime.0 && size == stat.size & u64::from(u32::MAX) && mtime < index.mtime.0
}

/// Gives entries the stat data of their files as they are now, so that git takes them for unchanged.
pub(super) fn trust(index: &Path, hash: gix::hash::Kind, worktree: &Path, paths: &[PathBuf]) -> Result<(), Error> {
    use std::os::unix::ffi::OsStrExt;
    let failed = |words: String| {
        Error::refused(
            format!("cannot refresh the index `{}`: {words}", printable(index)),
            "the source is as it was; report this with the output of `git ls-files --stage`",
        )
    };
    let mut file = gix::index::File::at(index, hash, false, gix::index::decode::Options::default())
        .map_err(|error| failed(error.to_string()))?;
    for path in paths {
        let full = worktree.join(path);
        let found = gix::index::fs::Metadata::from_path_no_follow(&full);
        let stat = found.ok().and_then(|found| gix::index::entry::Stat::from_fs(&found).ok());
        let name = path.as_os_str().as_bytes().as_bstr();
        let entry = file.entry_mut_by_path_and_stage(name, Stage::Unconflicted);
        if let (Some(entry), Some(stat)) = (entry, stat) {
            entry.stat = stat;
        }
    }
    file.write(gix::index::write::Options::default()).map_err(|error| failed(error.to_string()))
}
