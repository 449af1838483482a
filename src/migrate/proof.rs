//! The proof that the copy is right: repairs, then git's own word on both sides.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, printable};
use crate::migrate::git::{Abilities, Git, Origin, fsck};
use crate::migrate::inventory::Inventory;
use crate::migrate::journal::Journal;
use crate::migrate::partial::Partial;
use crate::migrate::plan::{Moved, Verified};
use crate::migrate::repair::{Checked, Repairer, check_unit};
use crate::migrate::select::Scope;
use crate::migrate::status::{Changes, arguments, differing, parse};
use crate::migrate::unit::{Unit, UnitKind};
use crate::migrate::verify::named;
use crate::migrate::{Prepared, outside, unit};
use crate::progress::Progress;
use crate::signals::Interrupt;

/// The least time that `git status` at the old place is given; one that takes longer is told by that alone.
const MIN_STATUS_TIME: Duration = Duration::from_millis(500);
/// The part of the copy's time that it is given: a figure to compare with must not be what one waits for.
const STATUS_SHARE: u32 = 4;

/// The part after the copy: repair and check.
pub(super) struct Proof<'a> {
    pub(super) prepared: &'a Prepared<'a>,
    pub(super) partial: &'a Partial,
    pub(super) journal: &'a Journal,
    pub(super) new_side: Abilities,
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a Interrupt,
}

impl Proof<'_> {
    /// Repairs the copy and proves that it is right.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with what differs; [`Error::Interrupted`] when the user asked to stop.
    pub(super) fn run(&self, inventory: &mut Inventory, copied_in: Duration) -> Result<Moved, Error> {
        self.progress.begin("repairing and checking the copy", None);
        let result = self.repair_and_check(inventory, copied_in);
        self.progress.end();
        // A signal reaches git too; its failure is then no news.
        if self.cancel.is_set() { Err(Error::Interrupted) } else { result }
    }

    fn repair_and_check(&self, inventory: &mut Inventory, copied_in: Duration) -> Result<Moved, Error> {
        let prepared = self.prepared;
        let is_bare = prepared.profile.facts.bare;
        let units = unit::find(&self.partial.tree, inventory, is_bare, &prepared.spellings);
        let destination = self.destination_spelling();
        let mut repairer = Repairer {
            source: &prepared.source,
            partial: self.partial,
            journal: self.journal,
            git_program: &prepared.request.git,
            spellings: &prepared.spellings,
            destination: &destination,
            new_side: self.new_side,
            modes_are_real: prepared.modes_are_real,
            with_untracked: prepared.request.scope != Scope::OnlyTracked,
            done: Vec::new(),
            notes: prepared.plan.notes.clone(),
        };
        repairer.whole_tree(inventory, &units)?;
        let checked = check_units(&mut repairer, &units, inventory)?;
        repairer.settings(inventory)?;
        let mut moved = self.result(std::mem::take(&mut repairer.done), std::mem::take(&mut repairer.notes));
        self.check_git(&checked, &units, copied_in, &mut moved)?;
        let outside = outside::search(
            prepared.request.home.as_deref(),
            &prepared.source.path,
            &prepared.destination,
            &prepared.spellings,
        );
        moved.outside = outside;
        Ok(moved)
    }

    /// Returns the destination as the programs of its side write it.
    fn destination_spelling(&self) -> String {
        let windows = self.prepared.request.target.as_ref().and_then(|target| target.site.windows_path.clone());
        match windows {
            Some(path) if self.prepared.request.to_windows => path.replace('\\', "/"),
            _ => self.prepared.destination.to_string_lossy().into_owned(),
        }
    }

    /// Runs the checks that need git: objects, refs, reflogs, and the source's own status.
    fn check_git(
        &self,
        checked: &[(UnitKind, PathBuf, Checked)],
        units: &[Unit],
        copied_in: Duration,
        moved: &mut Moved,
    ) -> Result<(), Error> {
        let main = checked.iter().find(|(kind, ..)| *kind == UnitKind::Main);
        let bare = match main {
            Some(_) => None,
            None => Some(self.private(&self.partial.tree, &self.partial.tree, "git-bare", None)?),
        };
        let git = main.map(|(_, _, checked)| &checked.git).or(bare.as_ref());
        let mut gits: Vec<(&Git, &Path)> = checked
            .iter()
            .filter(|(kind, ..)| matches!(kind, UnitKind::Main | UnitKind::Submodule))
            .map(|(_, path, checked)| (&checked.git, path.as_path()))
            .collect();
        gits.extend(bare.as_ref().map(|git| (git, Path::new(""))));
        debug_assert!(units.len() >= checked.len(), "a repository was checked twice");
        let source_git_dir = &self.prepared.profile.git_dir;
        let source_git = self.private(source_git_dir, &self.prepared.source.path, "git-source", main)?;
        let question = main.map(|(_, _, main)| OldQuestion {
            git: &source_git,
            raw: &main.raw,
            with_untracked: self.prepared.request.scope != Scope::OnlyTracked,
            bound: (copied_in / STATUS_SHARE).max(MIN_STATUS_TIME),
        });
        let (checks, status) = std::thread::scope(|scope| {
            let old = scope.spawn(|| question.as_ref().map(old_status));
            let mut oddities = Vec::new();
            let checks = gits.iter().try_for_each(|(git, name)| {
                oddities.extend(fsck(git, name)?);
                Ok::<(), Error>(())
            });
            (checks.map(|()| oddities), old.join().unwrap_or(None))
        });
        moved.notes.extend(checks?);
        moved.verified.repositories_checked = gits.len() as u64;
        if let Some(git) = git {
            compare_refs(&source_git, git, &mut moved.verified)?;
        }
        if let Some((_, _, main)) = main {
            moved.verified.real_changes = main.changes.len() as u64;
            moved.verified.artefacts = differing(&main.raw, &main.changes).len() as u64;
        }
        match status.transpose()? {
            Some(OldStatus::Took(seconds)) => moved.status_old_s = Some(seconds),
            Some(OldStatus::AtLeast(seconds)) => moved.status_old_at_least_s = Some(seconds),
            None => {}
        }
        Ok(())
    }

    /// Makes a private git dir; for the source one whose objects and index are the copy's, so that only refs and files
    /// are read there.
    fn private(
        &self,
        git_dir: &Path,
        worktree: &Path,
        name: &str,
        main: Option<&(UnitKind, PathBuf, Checked)>,
    ) -> Result<Git, Error> {
        let stand_in = if main.is_some() { self.partial.tree.join(".git") } else { self.partial.tree.clone() };
        let config = main.map_or(&self.prepared.profile.config, |(_, _, checked)| &checked.config);
        let origin = Origin { git_dir, common_dir: git_dir, worktree, config, stand_in: Some(&stand_in) };
        let own = |key| crate::scan::config::boolean(config, key);
        let can = Abilities {
            // Bits that the old side makes up, or that the new one cannot hold, are no changes.
            modes: self.prepared.modes_are_real && self.new_side.modes && own("core.fileMode") != Some(false),
            symlinks: own("core.symlinks") != Some(false),
            ignores_case: own("core.ignoreCase") == Some(true),
        };
        Git::private(&self.prepared.request.git, &self.partial.git_dirs.join(name), origin, can)
    }

    fn result(&self, repairs: Vec<crate::migrate::Repair>, notes: Vec<String>) -> Moved {
        let prepared = self.prepared;
        let windows_path = prepared.request.target.as_ref().and_then(|target| target.site.windows_path.clone());
        let source = printable(&prepared.source.path);
        Moved {
            destination: printable(&prepared.destination),
            windows_path,
            remove_later: format!("rm -rf {}", shell_words::quote(&source)),
            source,
            files: 0,
            files_continued: 0,
            bytes: 0,
            wall_s: 0.0,
            in_flight: 0,
            verified: Verified::default(),
            repairs,
            left_out: Vec::new(),
            outside: Vec::new(),
            notes,
            status_new_s: None,
            status_old_s: None,
            status_old_at_least_s: None,
        }
    }
}

enum OldStatus {
    Took(f64),
    AtLeast(f64),
}

/// What is asked of git at the old place.
struct OldQuestion<'a> {
    git: &'a Git,
    /// What the raw copy showed.
    raw: &'a Changes,
    with_untracked: bool,
    bound: Duration,
}

/// Runs `git status` in the source, as its user would, and compares; it may show less than the copy's, never more.
fn old_status(question: &OldQuestion<'_>) -> Result<OldStatus, Error> {
    let mut words = vec!["--no-optional-locks", "-c", "core.checkStat=minimal"];
    words.extend(arguments(question.with_untracked));
    let Some((took, output)) = question.git.timed(&words, question.bound)? else {
        return Ok(OldStatus::AtLeast(question.bound.as_secs_f64()));
    };
    if !output.status.success() {
        return Err(Error::refused(
            "`git status` failed in the source",
            "see what `git status` says there; the source is as it was",
        ));
    }
    let shown = parse(&output.stdout);
    let more: Vec<&PathBuf> = shown.keys().filter(|path| !question.raw.contains_key(*path)).collect();
    if more.is_empty() {
        return Ok(OldStatus::Took(took.as_secs_f64()));
    }
    Err(Error::refused(
        format!("`git status` in the source shows changes that the copy does not have: {}", named(&more)),
        "the source changed while it was copied; run the same command again, it continues",
    ))
}

fn check_units(
    repairer: &mut Repairer<'_>,
    units: &[Unit],
    inventory: &Inventory,
) -> Result<Vec<(UnitKind, PathBuf, Checked)>, Error> {
    let entries = inventory.by_path();
    let mut checked = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        match check_unit(repairer, unit, number, &entries) {
            Ok(result) => checked.push((unit.kind, unit.worktree.clone(), result)),
            // What lies there by chance (a test's broken repository) does not hold up the one that is moved.
            Err(error) if unit.kind == UnitKind::Nested => repairer
                .notes
                .push(format!("the repository in `{}` was copied as it is: {error}", printable(&unit.worktree))),
            Err(error) => return Err(error),
        }
    }
    Ok(checked)
}

/// HEAD, refs, and the stash's reflog must be the same by git's own word.
fn compare_refs(source: &Git, copy: &Git, verified: &mut Verified) -> Result<(), Error> {
    let questions: [&[&str]; 3] = [
        &["for-each-ref", "--format=%(objectname) %(refname) %(symref)"],
        &["rev-parse", "--symbolic-full-name", "HEAD"],
        &["reflog", "show", "--format=%H %gs", "refs/stash"],
    ];
    for (at, question) in questions.iter().enumerate() {
        let (one, other) = (source.output(question, b"")?, copy.output(question, b"")?);
        if one.stdout != other.stdout || one.status.success() != other.status.success() {
            return Err(Error::refused(
                format!("`git {}` says something else in the copy than in the source", question[0]),
                "git was used in the source meanwhile; run the same command again, it continues",
            ));
        }
        let lines = split_lines(&one.stdout);
        match at {
            0 => verified.refs = lines,
            2 if one.status.success() => verified.stashes = lines,
            _ => {}
        }
    }
    Ok(())
}

fn split_lines(text: &[u8]) -> u64 {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64
}
