//! The copy as the workloads see it: the skeleton, its index and its private git dir.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gix::index::extension::tree;
use rustix::fs::{AtFlags, statat};

use crate::error::Error;
use crate::measure::objects::{self, HeadFile};
use crate::measure::own_commit;
use crate::measure::porcelain::Change;
use crate::measure::private_git::{Parts, PrivateGit, ahead_of_now};
use crate::measure::probe::copy::READ_BY_GIT;
use crate::measure::probe::{Answer, Ask, Copied, PathBytes};
use crate::measure::raw_index::Kind;
use crate::measure::request::{CopyFacts, Halt};
use crate::measure::session::Session;
use crate::measure::skeleton::{self, Skeleton, entry_stat, open_dir};
use crate::measure::sweep::Stop;

/// Share of the budget for taking over contents that git reads.
const CONTENTS_SHARE: f64 = 0.1;
/// Bytes in memory for one of the cache of trees in the index, at most: some thirty there are a hundred here.
const TREE_GROWTH: usize = 64;
/// Share of the budget for taking over objects.
const OBJECTS_SHARE: f64 = 0.1;
/// Entries that are taken over because `git status` named them; more would make a copy of the whole.
const MOST_CHANGES: usize = 5_000;
/// Seconds by which a changed file's recorded time differs from its real one, so that git looks at it.
const CHANGED_BY_S: u32 = 10;

/// The copy.
#[derive(Debug)]
pub(crate) struct CopySide {
    pub(crate) skeleton: Skeleton,
    pub(crate) root: PathBuf,
    pub(crate) fd: OwnedFd,
    pub(crate) git: Option<PrivateGit>,
    pub(crate) facts: CopyFacts,
    /// Seconds that reading HEAD's commit and tree in place took.
    pub(crate) objects_s: f64,
    head_files: Vec<HeadFile>,
    all_files: usize,
}

impl CopySide {
    /// Builds the skeleton below `run_dir`.
    pub(crate) fn build(session: &Session, run_dir: &Path, stop: Stop) -> Result<Self, Halt> {
        // The run's own name is random, and so is this one: ext4 chooses the place on the disk by it.
        let name = run_dir.file_name().map_or_else(|| "copy".into(), std::ffi::OsStr::to_os_string);
        let root = run_dir.join(name);
        let (raw, files) = (&session.raw, &session.files);
        let skeleton = skeleton::build(&root, raw, &session.bytes, files, &session.settings, stop)?;
        let facts = CopyFacts {
            files: skeleton.files,
            dirs: skeleton.dirs,
            is_whole: skeleton.built_entries == raw.entries.len(),
            ..CopyFacts::default()
        };
        let fd = open_dir(&root).map_err(|e| Error::io("open", &root, e))?;
        Ok(Self {
            skeleton,
            root,
            fd,
            git: None,
            facts,
            objects_s: 0.0,
            head_files: Vec::new(),
            all_files: files.paths.len(),
        })
    }

    /// Gives the files that git reads (`.gitignore` and the like) their content.
    pub(crate) fn take_contents(&mut self, session: &mut Session) -> Result<(), Halt> {
        let raw = &session.raw;
        let is_read = |name: &[u8]| {
            let base = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
            READ_BY_GIT.contains(&base)
        };
        let numbers: Vec<u32> = session.files.paths.iter().copied().take(self.files()).collect();
        let paths: Vec<PathBytes> = numbers
            .iter()
            .map(|number| raw.name(&raw.entries[*number as usize]))
            .filter(|name| is_read(name))
            .map(<[u8]>::to_vec)
            .collect();
        let copied = self.copy(session, &paths, session.share_s(CONTENTS_SHARE))?;
        if copied.is_cut {
            session.note("not every .gitignore could be copied in time; the copy may show more untracked files");
        }
        for path in &paths {
            self.record(session, path, false);
        }
        session.raw.seal(&mut self.skeleton.index);
        Ok(())
    }

    /// Makes the git dir of the copy, with the objects that it needs.
    pub(crate) fn add_git(&mut self, session: &mut Session, place: &PrivateGit) -> Result<(), Halt> {
        let Some(program) = session.request.git else { return Ok(()) };
        let profile = session.request.profile;
        let parts = Parts {
            program: Path::new(&program.path),
            worktree: &self.root,
            settings: &session.settings,
            info: &profile.info,
            head: profile.head_commit.as_deref(),
            objects: None,
        };
        let git = PrivateGit::create(&self.root.with_extension("git"), &parts)?;
        git.write_index(&self.skeleton.index, ahead_of_now())?;
        if !self.facts.is_whole {
            self.own_commit(session, &git)?;
        } else if let Some(head) = profile.head_commit.as_deref() {
            let limit =
                Instant::now() + Duration::try_from_secs_f64(session.share_s(OBJECTS_SHARE)).unwrap_or_default();
            let cached = session.raw.extension(&session.bytes, tree::SIGNATURE).and_then(|data| {
                // No more memory than the extension itself could describe.
                tree::decode(data, session.raw.hash(), Some(data.len().saturating_mul(TREE_GROWTH)))
            });
            match objects::take_head(place, &git, head, cached.as_ref(), limit, session.interrupt)? {
                Some(taken) => {
                    self.head_files = taken.files;
                    self.objects_s = taken.first_s;
                    let sparse = sparse_trees(session);
                    if !sparse.is_empty() {
                        objects::take(place, &git, &sparse, limit, session.interrupt)?;
                    }
                }
                None => self.own_commit(session, &git)?,
            }
        }
        self.git = Some(git);
        Ok(())
    }

    /// Gives the copy a commit of exactly what is in it.
    fn own_commit(&mut self, session: &Session, git: &PrivateGit) -> Result<(), Halt> {
        let own = own_commit::make(&session.raw, &self.skeleton.index, self.skeleton.built_entries)?;
        for object in &own.objects {
            objects::store(git.dir(), object)?;
        }
        git.set_head(&own.commit)?;
        git.write_index(&own.index, ahead_of_now())?;
        self.facts.has_own_commit = true;
        Ok(())
    }

    /// Takes over what `git status` named in place, so that both sides show the same.
    pub(crate) fn take_changes(
        &mut self,
        session: &mut Session,
        place: &PrivateGit,
        changes: &[Change],
        limit_s: f64,
    ) -> Result<(), Halt> {
        let Some(git) = self.git.clone() else { return Ok(()) };
        let in_worktree: Vec<&Change> = changes.iter().filter(|change| change.is_in_worktree()).collect();
        if in_worktree.len() > MOST_CHANGES {
            session.note(format!(
                "`git status` names {} changes in place; the copy shows a clean worktree instead",
                in_worktree.len()
            ));
            return Ok(());
        }
        let paths: Vec<PathBytes> = in_worktree
            .iter()
            .flat_map(|change| [Some(change.path), change.from].into_iter().flatten())
            .map(<[u8]>::to_vec)
            .collect();
        self.copy(session, &paths, limit_s)?;
        for change in &in_worktree {
            if !change.is_unmerged() && change.y != b'?' {
                self.record(session, change.path, true);
            }
        }
        session.raw.seal(&mut self.skeleton.index);
        git.write_index(&self.skeleton.index, ahead_of_now())?;
        let ids = self.blobs_of(session, changes);
        if !ids.is_empty() {
            let limit = Instant::now() + Duration::try_from_secs_f64(limit_s).unwrap_or_default();
            objects::take(place, &git, &ids, limit, session.interrupt)?;
        }
        self.facts.has_changes = true;
        Ok(())
    }

    /// Lists the blobs that git may read to find renames: both sides of every staged change, and what is gone.
    fn blobs_of(&self, session: &Session, changes: &[Change]) -> Vec<String> {
        let mut ids = Vec::new();
        for change in changes.iter().filter(|change| change.is_staged() || matches!(change.y, b'R' | b'D')) {
            for path in [Some(change.path), change.from].into_iter().flatten() {
                if let Some(number) = session.raw.find(path) {
                    let id = session.raw.id(&session.bytes, &session.raw.entries[number]);
                    ids.extend(gix::ObjectId::try_from(id).map(|id| id.to_string()));
                }
                let in_head = self.head_files.iter().filter(|(name, _)| name.as_slice() == path);
                ids.extend(in_head.map(|(_, id)| id.clone()));
            }
        }
        ids
    }

    /// Copies paths from the repository into the skeleton through the probe.
    fn copy(&self, session: &mut Session, paths: &[PathBytes], limit_s: f64) -> Result<Copied, Halt> {
        if paths.is_empty() {
            return Ok(Copied::default());
        }
        let into = self.root.as_os_str().as_bytes().to_vec();
        match session.ask(&Ask::Copy { paths: paths.to_vec(), into, limit_s })? {
            Answer::Copied(copied) => Ok(copied),
            _ => Ok(Copied::default()),
        }
    }

    /// Records a file's new stat data; for a changed one so that git finds the same difference as in place.
    ///
    /// In place git compares the recorded size first and reads the file only when that is the same. So a changed file
    /// keeps its recorded size, and its recorded time is wrong.
    fn record(&mut self, session: &Session, path: &[u8], is_changed: bool) {
        let Some(number) = session.raw.find(path) else { return };
        let entry = &session.raw.entries[number];
        if entry.stage() != 0 || entry.is_intent_to_add() {
            return;
        }
        let Ok(stat) = statat(self.fd.as_fd(), session.raw.c_name(entry), AtFlags::SYMLINK_NOFOLLOW) else { return };
        let mut stat = entry_stat(&stat);
        if is_changed {
            stat.size = session.raw.stat(&session.bytes, entry).size;
            stat.mtime.0 = stat.mtime.0.saturating_sub(CHANGED_BY_S);
        }
        session.raw.set_stat(&mut self.skeleton.index, entry, &stat);
    }

    /// Scales a status of a copy that is not whole up to the whole, in proportion to its files.
    #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
    pub(crate) fn scaled(&self, seconds: f64) -> f64 {
        if self.facts.is_whole { seconds } else { seconds * self.all_files as f64 / self.facts.files.max(1) as f64 }
    }

    /// Returns the number of paths at the index's beginning that are in the skeleton.
    pub(crate) fn files(&self) -> usize {
        usize::try_from(self.skeleton.files).unwrap_or(usize::MAX)
    }
}

/// Lists the trees of whole directories outside the sparse checkout, which git reads to compare them with HEAD.
fn sparse_trees(session: &Session) -> Vec<String> {
    let entries = session.raw.entries.iter().filter(|entry| entry.kind() == Kind::SparseDirectory);
    let ids = entries.filter_map(|entry| gix::ObjectId::try_from(session.raw.id(&session.bytes, entry)).ok());
    ids.map(|id| id.to_string()).take(MOST_CHANGES).collect()
}
