//! What earlier runs left for later ones: the last report of each repository, and what was already shown of it.
//!
//! Everything is under `$XDG_STATE_HOME/rehome` (default `~/.local/state/rehome`): `reports/` has one file a
//! repository, `tried/` one empty file for each place where a measurement in the background was started. Nothing here is
//! needed: a file that is missing or broken only means that nothing is known.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::facts::{FilesystemClass, RepoFacts};
use crate::lock::FileLock;
use crate::report::Report;

/// Version of the files; others are passed over.
const STATE_VERSION: u32 = 1;
/// A report is some 30 kB; a file that is far larger is not ours.
const MAX_ENTRY_BYTES: u64 = 8 << 20;
/// A repository that was not looked at for so long is forgotten.
const KEPT: Duration = Duration::from_secs(180 * 24 * 60 * 60);
/// Reports hold paths and branch names, which are nobody else's business.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The directory that the state is kept in.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

/// The last report of one repository, and what it held for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    state_version: u32,
    /// The worktree's canonical path, or the git dir's in a bare repository; lower case when `is_case_folded`.
    key: String,
    /// Whether the path means the same in upper and lower case, as on a Windows drive.
    is_case_folded: bool,
    /// When it was saved, in seconds since the epoch.
    saved_at_s: u64,
    /// The report.
    pub report: Report,
}

/// What must still be so for an entry to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The mount that the index is on: mount point, type and source.
    pub mount: Option<(String, String, String)>,
    /// Size of the index in bytes; `None` when there is none.
    pub index_bytes: Option<u64>,
}

impl Store {
    /// Returns the user's own store; `None` when neither `XDG_STATE_HOME` nor a home directory is known.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let strategy = etcetera::base_strategy::Xdg::new().ok()?;
        Some(Self::at(strategy.state_dir()?.join("rehome")))
    }

    /// Returns a store in a directory, which need not exist yet.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Keeps a finished report for later runs; one that is not finished, or has no advice, is not kept.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the directory or the file cannot be written.
    pub fn save(&self, report: &Report) -> Result<(), Error> {
        if !report.complete || report.recommendation.is_none() {
            return Ok(());
        }
        let Some(entry) = Entry::new(report, now_s()) else { return Ok(()) };
        let path = self.report_path(&entry.key);
        let text = serde_json::to_vec(&entry).map_err(|error| Error::io("write", &path, error.into()))?;
        self.write(&path, &text).map_err(|source| Error::io("write", &path, source))?;
        self.prune();
        Ok(())
    }

    /// Returns the entry of the repository that holds `path`, which is absolute and without links.
    ///
    /// The nearest directory upwards that has an entry is taken; the repository's own mount is not touched. How far up
    /// it was found is the second value.
    #[must_use]
    pub fn find(&self, path: &Path) -> Option<(Entry, usize)> {
        path.ancestors().enumerate().find_map(|(levels, dir)| Some((self.entry(dir)?, levels)))
    }

    fn entry(&self, dir: &Path) -> Option<Entry> {
        let exact = dir.to_string_lossy().into_owned();
        let folded = fold(&exact);
        let read = |key: &str, is_case_folded: bool| {
            let entry = read_entry(&self.report_path(key))?;
            (entry.key == key && entry.is_case_folded == is_case_folded).then_some(entry)
        };
        read(&exact, false).or_else(|| read(&folded, true))
    }

    /// Returns whether this answer was already shown for this state of the repository.
    #[must_use]
    pub fn was_shown(&self, entry: &Entry) -> bool {
        fs::read_to_string(self.shown_path(entry)).is_ok_and(|text| text == entry.state())
    }

    /// Remembers that this answer was shown.
    ///
    /// # Errors
    ///
    /// Those of writing the file.
    pub fn mark_shown(&self, entry: &Entry) -> io::Result<()> {
        self.write(&self.shown_path(entry), entry.state().as_bytes())
    }

    /// Returns whether a measurement in the background may be started for a place: none was within `pause`.
    ///
    /// The attempt is remembered, so that of many prompts at once one starts it, and that a place that cannot be
    /// measured is not tried at every prompt.
    #[must_use]
    pub fn may_try(&self, path: &Path, pause: Duration) -> bool {
        let stamp = self.dir.join("tried").join(file_name(&path.to_string_lossy()));
        let age = fs::metadata(&stamp).ok().and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
        age.is_none_or(|age| age >= pause) && self.write(&stamp, b"").is_ok()
    }

    /// Takes the lock that only one measurement in the background holds; `None` when another one does.
    ///
    /// It is given back when the value is dropped, and however the process ends.
    #[must_use]
    pub fn lock(&self) -> Option<FileLock> {
        Self::make_dir(&self.dir).ok()?;
        let path = self.dir.join("lock");
        let file = fs::OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path).ok()?;
        FileLock::try_take(file).ok()
    }

    fn report_path(&self, key: &str) -> PathBuf {
        self.dir.join("reports").join(format!("{}.json", file_name(key)))
    }

    fn shown_path(&self, entry: &Entry) -> PathBuf {
        self.dir.join("reports").join(format!("{}.shown", file_name(&entry.key)))
    }

    /// Writes a file as a whole or not at all: a prompt may read it at any moment.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let parent = path.parent().unwrap_or(&self.dir);
        Self::make_dir(parent)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(parent)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn make_dir(dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(dir)
    }

    /// Forgets what nobody asked for in a long time; whatever goes wrong is left for the next time.
    fn prune(&self) {
        for dir in ["reports", "tried"] {
            let Ok(entries) = fs::read_dir(self.dir.join(dir)) else { continue };
            for entry in entries.flatten() {
                let age = entry.metadata().ok().and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
                if age.is_some_and(|age| age > KEPT) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

impl Entry {
    /// Returns the entry of a report; `None` for one without a repository.
    fn new(report: &Report, saved_at_s: u64) -> Option<Self> {
        let is_case_folded = report.facts.site.class == FilesystemClass::WindowsDrive;
        let repo = report.facts.repo.as_ref()?;
        let place = repo.worktree.as_ref().unwrap_or(&repo.git_dir);
        let key = if is_case_folded { fold(place) } else { place.clone() };
        Some(Self { state_version: STATE_VERSION, key, is_case_folded, saved_at_s, report: report.clone() })
    }

    /// Returns how old the report is; a report from the future is new.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_secs(now_s().saturating_sub(self.saved_at_s))
    }

    /// Returns the repository that the entry is about.
    ///
    /// [`None`] only for a report without one, which is never kept.
    #[must_use]
    pub fn repo(&self) -> Option<&RepoFacts> {
        self.report.facts.repo.as_ref()
    }

    /// Returns the index file of the repository.
    #[must_use]
    pub fn index_path(&self) -> Option<PathBuf> {
        Some(Path::new(&self.repo()?.git_dir).join("index"))
    }

    /// Returns the repository's own configuration file.
    #[must_use]
    pub fn config_path(&self) -> Option<PathBuf> {
        let repo = self.repo()?;
        let git_dir = Path::new(&repo.git_dir);
        // The git dir of a linked worktree is `<common>/worktrees/<name>`.
        let common = if repo.linked_worktree { git_dir.ancestors().nth(2) } else { None };
        Some(common.unwrap_or(git_dir).join("config"))
    }

    /// Returns whether the report still holds: the same mount, and an index of the same size.
    ///
    /// What was measured depends on which paths are in the index, and its size changes with them. Its time does not
    /// count: every `git status` that refreshes a stat entry would make the answer stale.
    #[must_use]
    pub fn holds(&self, seen: &Seen) -> bool {
        let site = &self.report.facts.site;
        let mount = (site.mount_point.as_str(), site.fstype.as_str(), site.source.as_str());
        let is_same_mount = seen
            .mount
            .as_ref()
            .is_some_and(|(point, fstype, source)| (point.as_str(), fstype.as_str(), source.as_str()) == mount);
        is_same_mount && self.repo().is_some_and(|repo| seen.index_bytes == repo.index_bytes)
    }

    /// Returns what distinguishes one answer about one state from the next.
    fn state(&self) -> String {
        let facts = &self.report.facts;
        let advice = self.report.recommendation.as_ref();
        format!(
            "{}\n{}\n{}\n{:?}\n{:?}\n",
            facts.site.mount_point,
            facts.site.fstype,
            facts.site.source,
            facts.repo.as_ref().and_then(|repo| repo.index_bytes),
            advice.map(|advice| (advice.verdict, advice.reason.as_str()))
        )
    }
}

fn read_entry(path: &Path) -> Option<Entry> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > MAX_ENTRY_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut &file, &mut bytes).ok()?;
    let entry: Entry = serde_json::from_slice(&bytes).ok()?;
    (entry.state_version == STATE_VERSION && entry.repo().is_some()).then_some(entry)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}

/// Folds case as far as a path on NTFS is concerned; a letter that only NTFS folds costs no more than a second entry.
fn fold(path: &str) -> String {
    path.to_lowercase()
}

/// Returns a file name for a key: 64 bits of FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>).
///
/// It must be the same in every version and is no secret. The key itself is in the file, so that a collision only
/// costs one of the two repositories its entry.
fn file_name(key: &str) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = key.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().join("rehome"));
        (dir, store)
    }

    fn seen(report: &Report) -> Seen {
        let site = &report.facts.site;
        Seen {
            mount: Some((site.mount_point.clone(), site.fstype.clone(), site.source.clone())),
            index_bytes: report.facts.repo.as_ref().unwrap().index_bytes,
        }
    }

    #[test]
    fn a_report_is_found_again_from_below_its_repository() {
        let (_dir, store) = store();
        store.save(&sample::moving()).unwrap();
        let (entry, levels) = store.find(Path::new("/mnt/c/src/shop/web/app")).unwrap();
        assert_eq!((entry.report, levels), (sample::moving(), 2));
        assert!(store.find(Path::new("/mnt/c/src")).is_none());
    }

    #[test]
    fn case_counts_on_linux_and_not_on_a_windows_drive() {
        let (_dir, store) = store();
        store.save(&sample::moving()).unwrap();
        assert!(store.find(Path::new("/mnt/c/SRC/Shop")).is_some());
        let mut native = sample::native();
        native.facts.repo.as_mut().unwrap().worktree = Some("/home/me/Shop".into());
        store.save(&native).unwrap();
        assert!(store.find(Path::new("/home/me/Shop")).is_some());
        assert!(store.find(Path::new("/home/me/shop")).is_none());
    }

    #[test]
    fn an_unfinished_report_is_not_kept() {
        let (_dir, store) = store();
        store.save(&sample::inconclusive()).unwrap();
        assert!(store.find(Path::new("/mnt/c/src/shop")).is_none());
    }

    #[test]
    fn a_report_without_a_repository_is_not_kept() {
        let (_dir, store) = store();
        let mut report = sample::moving();
        report.facts.repo = None;
        store.save(&report).unwrap();
        assert!(store.find(Path::new(&report.facts.site.path)).is_none());
    }

    #[test]
    fn another_mount_or_another_index_ends_an_entry() {
        let report = sample::moving();
        let entry = Entry::new(&report, now_s()).unwrap();
        assert!(entry.holds(&seen(&report)));
        let mut other = seen(&report);
        other.index_bytes = Some(7);
        assert!(!entry.holds(&other));
        other = seen(&report);
        other.mount = Some(("/mnt/c".into(), "virtiofs".into(), "drvfs1".into()));
        assert!(!entry.holds(&other));
        other.mount = None;
        assert!(!entry.holds(&other));
    }

    #[test]
    fn an_answer_counts_as_shown_until_the_state_changes() {
        let (_dir, store) = store();
        let mut report = sample::moving();
        store.save(&report).unwrap();
        let entry = Entry::new(&report, now_s()).unwrap();
        assert!(!store.was_shown(&entry));
        store.mark_shown(&entry).unwrap();
        assert!(store.was_shown(&entry));
        report.facts.repo.as_mut().unwrap().index_bytes = Some(1);
        assert!(!store.was_shown(&Entry::new(&report, now_s()).unwrap()));
    }

    #[test]
    fn a_broken_or_foreign_file_is_passed_over() {
        let (_dir, store) = store();
        store.save(&sample::moving()).unwrap();
        let path = store.report_path("/mnt/c/src/shop");
        for text in ["", "{", "[]", r#"{"state_version":1}"#, "\u{0}\u{1}"] {
            fs::write(&path, text).unwrap();
            assert!(store.find(Path::new("/mnt/c/src/shop")).is_none());
        }
    }

    #[test]
    fn files_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, store) = store();
        store.save(&sample::moving()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.dir), DIRECTORY_MODE);
        assert_eq!(mode(&store.report_path("/mnt/c/src/shop")), FILE_MODE);
    }

    #[test]
    fn one_process_at_a_time_measures_in_the_background() {
        let (_dir, store) = store();
        let held = store.lock().unwrap();
        assert!(store.lock().is_none());
        drop(held);
        assert!(store.lock().is_some());
    }

    #[test]
    fn a_place_is_not_tried_again_at_once() {
        let (_dir, store) = store();
        let place = Path::new("/mnt/c/src/shop");
        assert!(store.may_try(place, Duration::from_secs(600)));
        assert!(!store.may_try(place, Duration::from_secs(600)));
        assert!(store.may_try(place, Duration::ZERO));
    }

    #[test]
    fn the_configuration_of_a_linked_worktree_is_the_common_one() {
        let mut report = sample::moving();
        let path = |report: &Report| Entry::new(report, 0).unwrap().config_path().unwrap();
        report.facts.repo.as_mut().unwrap().git_dir = "/r/.git/worktrees/w".into();
        assert_eq!(path(&report), Path::new("/r/.git/worktrees/w/config"));
        report.facts.repo.as_mut().unwrap().linked_worktree = true;
        assert_eq!(path(&report), Path::new("/r/.git/config"));
    }
}
