//! A working copy on disk as the source of what rules read.

use std::path::PathBuf;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry;

use super::RuleSet;
use super::condition::{IndexProperty, Mode, PlaceKind};
use super::evaluate::ConfigValue;
use super::gather::{Budget, Material, Observations, Purpose, gather};
use super::paths::{IndexCounts, PathIndex, TrackedPath};
use super::source::{Fetched, Listed, Place, Source};
use crate::facts::Facts;
use crate::scan::access::{Access, DirEntry, EntryKind, is_absent};
use crate::scan::{Index, RepoProfile};

/// Reads a working copy through the counted access of the scan.
#[derive(Debug)]
pub struct LiveSource<'a> {
    profile: &'a RepoProfile,
    access: &'a Access,
}

impl<'a> LiveSource<'a> {
    /// Makes a source; nothing is read yet.
    #[must_use]
    pub fn new(profile: &'a RepoProfile, access: &'a Access) -> Self {
        Self { profile, access }
    }

    fn path_of(&self, place: &str) -> PathBuf {
        match place.strip_prefix(".git/") {
            // The operation under way and the index belong to one worktree, everything else to all of them.
            Some(inner) if is_per_worktree(inner) => self.profile.git_dir.join(inner),
            Some(inner) => self.profile.common_dir.join(inner),
            None if place == ".git" => self.profile.common_dir.clone(),
            None => self.profile.worktree.join(place),
        }
    }
}

fn is_per_worktree(inner: &str) -> bool {
    inner.ends_with("_HEAD")
        || ["index", "HEAD", "rebase-merge", "rebase-apply", "gitdir", "commondir"].contains(&inner)
}

impl Source for LiveSource<'_> {
    fn read(&self, place: &str, max_bytes: usize) -> Fetched {
        match self.access.read_head(&self.path_of(place), max_bytes) {
            Ok(head) => Fetched::Bytes { data: head.data, is_truncated: head.is_truncated },
            Err(error) if is_absent(&error) => Fetched::Absent,
            Err(error) if is_no_file(&error) => Fetched::NoFile,
            Err(_) => Fetched::Unknown,
        }
    }

    fn list(&self, place: &str, max_names: usize) -> Listed {
        // The scan listed the git dir already; of a linked worktree that is not the common one.
        if place == ".git" && self.profile.git_dir == self.profile.common_dir {
            return Listed::Names(self.profile.git_dir_entries.iter().map(|name| (name.clone(), None)).collect());
        }
        // One more than wanted tells whether the listing is whole.
        match self.access.list(&self.path_of(place), max_names + 1) {
            Ok(entries) if entries.len() > max_names => Listed::Unknown,
            Ok(entries) => Listed::Names(entries.iter().map(named).collect()),
            Err(error) if is_absent(&error) => Listed::Absent,
            Err(_) => Listed::Unknown,
        }
    }

    fn look(&self, place: &str) -> Place {
        match self.access.lstat(&self.path_of(place)) {
            Ok(stat) => Place::There(match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
                rustix::fs::FileType::Directory => PlaceKind::Directory,
                rustix::fs::FileType::Symlink => PlaceKind::Symlink,
                _ => PlaceKind::File,
            }),
            Err(error) if is_absent(&error) => Place::Absent,
            Err(_) => Place::Unknown,
        }
    }

    fn modified_at(&self, place: &str) -> Option<i64> {
        self.access.lstat(&self.path_of(place)).ok().map(|stat| stat.st_mtime)
    }
}

/// Tells the errors of something that is there and is no regular file: a link, a directory, a pipe without a writer.
fn is_no_file(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::IsADirectory)
        || matches!(
            error.raw_os_error().map(rustix::io::Errno::from_raw_os_error),
            Some(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO)
        )
}

fn named(entry: &DirEntry) -> (String, Option<PlaceKind>) {
    let kind = entry.kind.map(|kind| match kind {
        EntryKind::Directory => PlaceKind::Directory,
        EntryKind::Symlink => PlaceKind::Symlink,
        EntryKind::File | EntryKind::Other => PlaceKind::File,
    });
    (entry.name.to_string_lossy().into_owned(), kind)
}

/// Takes out of a scan what the rules look at; reads nothing.
#[must_use]
pub fn material(profile: &RepoProfile, facts: &Facts, rules: &RuleSet) -> Material {
    let tracked = profile.index.as_ref().map(tracked_paths).unwrap_or_default();
    let paths = PathIndex::new(tracked, &rules.globs, &rules.judging);
    let mut index = profile.index.as_ref().map(index_counts).unwrap_or_default();
    index.insert(IndexProperty::CaseCollisions, paths.case_collisions().len() as u64);
    index.insert(IndexProperty::WindowsReservedNames, paths.reserved().len() as u64);
    let mut config = config_values(&profile.own_config, true);
    config.extend(config_values(&profile.config, false));
    let facts = serde_json::to_value(facts).unwrap_or_default();
    Material { paths, config, index, facts }
}

fn tracked_paths(index: &Index) -> Vec<TrackedPath> {
    let backing = index.state.path_backing();
    let mut paths: Vec<TrackedPath> = Vec::with_capacity(index.state.entries().len());
    let mut last: Option<&BStr> = None;
    for entry in index.state.entries() {
        let path = entry.path_in(backing);
        // A conflict has up to three entries of one path.
        if last == Some(path) {
            continue;
        }
        last = Some(path);
        let mode = match entry.mode {
            mode if mode == entry::Mode::FILE_EXECUTABLE => Mode::Executable,
            mode if mode == entry::Mode::SYMLINK => Mode::Symlink,
            mode if mode == entry::Mode::COMMIT => Mode::Submodule,
            mode if mode == entry::Mode::DIR => continue,
            _ => Mode::Plain,
        };
        paths.push(TrackedPath { path: path.to_str_lossy().into_owned(), mode });
    }
    paths
}

fn index_counts(index: &Index) -> IndexCounts {
    /// Resolution of time stamps on NTFS, in nanoseconds.
    const NTFS_TICK_NS: u32 = 100;
    let mut counts = IndexCounts::new();
    let mut add = |property| *counts.entry(property).or_default() += 1;
    for entry in index.state.entries() {
        let stat = &entry.stat;
        // Entries that were never refreshed have no times and tell nothing.
        if stat.mtime.secs == 0 {
            continue;
        }
        if stat.ino == 0 && stat.uid == 0 && stat.gid == 0 {
            add(IndexProperty::WindowsEntries);
        } else if stat.ino != 0 && stat.dev != 0 {
            add(IndexProperty::UnixEntries);
        }
        if (stat.ctime.secs, stat.ctime.nsecs) < (stat.mtime.secs, stat.mtime.nsecs) {
            add(IndexProperty::CtimeBeforeMtime);
        }
        if stat.mtime.nsecs != 0 && stat.mtime.nsecs % NTFS_TICK_NS == 0 {
            add(IndexProperty::CoarseMtime);
        }
    }
    if let Some(cache) = index.state.untracked() {
        // `Location <path>, system <name>`
        let system = cache.identifier().to_str_lossy().to_ascii_lowercase();
        let system = system.rsplit("system ").next().unwrap_or_default().to_owned();
        if system.starts_with("windows") {
            add(IndexProperty::UntrackedCacheWindows);
        } else if system.starts_with("linux") {
            add(IndexProperty::UntrackedCacheLinux);
        }
    }
    counts
}

fn config_values(config: &gix::config::File, is_own: bool) -> Vec<ConfigValue> {
    let mut values = Vec::new();
    for section in config.sections() {
        let name = section.header().name().to_str_lossy().to_lowercase();
        let prefix = match section.header().subsection_name() {
            Some(subsection) => format!("{name}.{}", subsection.to_str_lossy()),
            None => name,
        };
        for key in section.value_names() {
            let key_path = format!("{prefix}.{}", key.to_lowercase());
            // A key without a value means true.
            if section.value_implicit(&key) == Some(None) {
                values.push(ConfigValue { key: key_path, value: "true".to_owned(), is_own });
                continue;
            }
            for value in section.values(&key) {
                values.push(ConfigValue { key: key_path.clone(), value: boolean(&value.to_str_lossy()), is_own });
            }
        }
    }
    values
}

/// Writes the other spellings of git's booleans as `true` and `false`.
fn boolean(value: &str) -> String {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" => "true".to_owned(),
        "no" | "off" | "false" => "false".to_owned(),
        _ => value.to_owned(),
    }
}

/// Gathers what the rules need of a working copy on disk, through counted and bounded reads.
#[must_use]
pub fn observe(profile: &RepoProfile, facts: &Facts, rules: &RuleSet, access: &Access) -> Observations {
    let material = material(profile, facts, rules);
    gather(rules, material, &LiveSource::new(profile, access), Budget::default(), Purpose { local: true })
}
