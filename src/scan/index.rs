//! The index: one plain read, decoded by gix, and what its entries tell.

use std::collections::HashSet;
use std::path::Path;

use bstr::ByteSlice;
use filetime::FileTime;
use gix::index::entry::{Flags, Mode, Stage};

use crate::error::{Error, printable};
use crate::facts::{RepoFacts, Side};
use crate::scan::Index;
use crate::scan::access::{Access, is_absent};

/// The largest index that is read. A million entries take about 100 MB; beyond this the file is not one.
const MAX_INDEX_BYTES: usize = 1 << 30;

/// Share of the entries that must look alike before one git is named as the writer; the rest is what the other side
/// touched since (`../evidence` of a survey: a single `git add` from the other side rewrites only what it added).
const WRITER_SHARE: f64 = 0.9;

/// Reads the index of a git dir; `None` when there is none yet.
///
/// gix maps the file and hashes it, which is two passes over a slow mount; this is one.
///
/// # Errors
///
/// [`Error::Io`] when it cannot be read, [`Error::Refused`] when it is damaged.
pub fn read(git_dir: &Path, object_hash: gix::hash::Kind, access: &Access) -> Result<Option<Index>, Error> {
    let path = git_dir.join("index");
    let head = match access.read_head(&path, MAX_INDEX_BYTES) {
        Ok(head) => head,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(source) => return Err(Error::io("read the index", path, source)),
    };
    let decode = |bytes: &[u8]| decode(bytes, head.mtime, object_hash);
    let state = decode(&head.data).map_err(|why| damaged(&path, &why))?;
    let Some(link) = state.link() else {
        return Ok(Some(Index { bytes: head.data, shared: None, state, mtime: head.mtime }));
    };
    let name = format!("sharedindex.{}", link.shared_index_checksum);
    let shared_path = git_dir.join(&name);
    let shared = access
        .read(&shared_path, MAX_INDEX_BYTES)
        .map_err(|source| Error::io("read the shared index", shared_path.clone(), source))?;
    decode(&shared).map_err(|why| damaged(&shared_path, &why))?;
    let state = dissolve(&head.data, &name, &shared, object_hash).map_err(|why| damaged(&path, &why))?;
    Ok(Some(Index { bytes: head.data, shared: Some((name, shared)), state, mtime: head.mtime }))
}

fn damaged(path: &Path, why: &str) -> Error {
    let path = printable(path);
    Error::refused(
        format!("the index `{path}` is damaged: {why}"),
        format!(
            "do not copy this repository before it is mended: run `git fsck`; \
             `mv '{path}' '{path}.broken' && git reset` builds a new index from HEAD (what was staged is lost)"
        ),
    )
}

/// Decodes an index file and verifies the checksum at its end (all zero under `index.skipHash`).
fn decode(bytes: &[u8], mtime: (i64, u32), object_hash: gix::hash::Kind) -> Result<gix::index::State, String> {
    let options = gix::index::decode::Options {
        thread_limit: Some(1),
        // A damaged header must not ask for more memory than any real index of this size could need.
        alloc_limit_bytes: Some(bytes.len().saturating_mul(64)),
        ..Default::default()
    };
    let (state, checksum) =
        gix::index::State::from_bytes(bytes, FileTime::from_unix_time(mtime.0, mtime.1), object_hash, options)
            .map_err(|error| error.to_string())?;
    if let Some(expected) = checksum.filter(|checksum| !checksum.is_null()) {
        let content = &bytes[..bytes.len().saturating_sub(object_hash.len_in_bytes())];
        let mut hasher = gix::hash::hasher(object_hash);
        hasher.update(content);
        let actual = hasher.try_finalize().map_err(|error| error.to_string())?;
        if actual != expected {
            return Err("its checksum does not match its content".to_owned());
        }
    }
    Ok(state)
}

/// Joins a split index with its shared part; gix does that only for files, so both are laid into a private directory.
fn dissolve(
    bytes: &[u8],
    shared_name: &str,
    shared: &[u8],
    object_hash: gix::hash::Kind,
) -> Result<gix::index::State, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = directory.path().join("index");
    std::fs::write(&path, bytes)
        .and_then(|()| std::fs::write(directory.path().join(shared_name), shared))
        .map_err(|error| error.to_string())?;
    let file = gix::index::File::at(&path, object_hash, true, gix::index::decode::Options::default())
        .map_err(|error| error.to_string())?;
    Ok(file.into())
}

/// Fills in what the index tells about the repository.
pub fn summarise(index: &Index, facts: &mut RepoFacts) {
    let state = &index.state;
    facts.index_bytes =
        Some(index.bytes.len() as u64 + index.shared.as_ref().map_or(0, |shared| shared.1.len() as u64));
    facts.index_version = Some(match state.version() {
        gix::index::Version::V2 => 2,
        gix::index::Version::V3 => 3,
        gix::index::Version::V4 => 4,
    });
    facts.split_index = index.shared.is_some();
    facts.sparse_index = state.is_sparse();
    facts.untracked_cache = state.untracked().is_some();
    facts.fsmonitor = state.fs_monitor().is_some();
    let mut count = Count::default();
    for entry in state.entries() {
        count.add(entry, entry.path(state), index.mtime);
    }
    facts.tracked_files = Some(count.files);
    facts.tracked_bytes = Some(count.bytes);
    facts.dirs = Some(count.directories.len() as u64);
    facts.racy = Some(count.racy);
    facts.skip_worktree = count.skip_worktree;
    facts.intent_to_add = count.intent_to_add;
    facts.conflicts = count.conflicts;
    facts.symlinks = count.symlinks;
    facts.executables = count.executables;
    facts.submodules = count.submodules;
    facts.index_written_by = count.writer();
}

#[derive(Default)]
struct Count<'a> {
    files: u64,
    bytes: u64,
    directories: HashSet<&'a [u8]>,
    racy: u64,
    skip_worktree: u64,
    intent_to_add: u64,
    conflicts: u64,
    symlinks: u64,
    executables: u64,
    submodules: u64,
    zero_stat: u64,
    real_stat: u64,
    last_conflict: &'a [u8],
}

impl<'a> Count<'a> {
    fn add(&mut self, entry: &gix::index::Entry, path: &'a bstr::BStr, index_mtime: (i64, u32)) {
        if entry.stage() != Stage::Unconflicted {
            if self.last_conflict == path.as_bytes() {
                return;
            }
            self.last_conflict = path.as_bytes();
            self.conflicts += 1;
        }
        match entry.mode {
            Mode::COMMIT => {
                self.submodules += 1;
                return;
            }
            Mode::DIR => return,
            Mode::SYMLINK => self.symlinks += 1,
            Mode::FILE_EXECUTABLE => self.executables += 1,
            _ => {}
        }
        self.files += 1;
        self.bytes += u64::from(entry.stat.size);
        self.skip_worktree += u64::from(entry.flags.contains(Flags::SKIP_WORKTREE));
        self.intent_to_add += u64::from(entry.flags.contains(Flags::INTENT_TO_ADD));
        for at in path.find_iter(b"/") {
            self.directories.insert(&path[..at]);
        }
        self.add_stat(entry, index_mtime);
    }

    /// Tells the writer by the stat data: Git for Windows has no inode, uid or gid to write and leaves them zero, a Unix
    /// `stat(2)` always has an inode and a device. Entries never refreshed have no time and tell nothing.
    fn add_stat(&mut self, entry: &gix::index::Entry, index_mtime: (i64, u32)) {
        let stat = &entry.stat;
        if stat.mtime.secs == 0 {
            return;
        }
        if stat.ino == 0 && stat.uid == 0 && stat.gid == 0 {
            self.zero_stat += 1;
        } else if stat.ino != 0 && stat.dev != 0 {
            self.real_stat += 1;
        }
        // Git compares whole seconds unless it was built with nanoseconds (`is_racy_stat` in read-cache.c), and then
        // a file changed in the index's own second cannot be told from an unchanged one.
        let is_racy = i64::from(stat.mtime.secs) >= index_mtime.0;
        self.racy += u64::from(is_racy);
    }

    fn writer(&self) -> Option<Side> {
        let all = self.zero_stat + self.real_stat;
        if all == 0 {
            return None;
        }
        // Exact for counts below 2^53, far above any index.
        #[expect(clippy::cast_precision_loss, reason = "counts of index entries are far below 2^53")]
        let share = self.zero_stat as f64 / all as f64;
        Some(if share >= WRITER_SHARE {
            Side::Windows
        } else if share <= 1.0 - WRITER_SHARE {
            Side::Linux
        } else {
            Side::Mixed
        })
    }
}
