//! `--writes` and `--run`: workloads that write, measured only because the user asked for them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Event;
use super::worker::incomplete;
use crate::bench::{self, Environment, OwnWork};
use crate::cli::CheckArgs;
use crate::commands::supervise::emit;
use crate::error::{Error, printable};
use crate::facts::{FilesystemClass, Platform};
use crate::measure::Measurement;
use crate::measure::temp::RunDir;
use crate::migrate::{self, Scope};
use crate::progress::Progress;
use crate::report::Report;
use crate::scan::RepoProfile;
use crate::scan::filesystem::{Location, System};
use crate::signals::Interrupt;

/// Name in the facts of the user's own command that a move would save most on.
const BEST_RUN: &str = "run";

/// Name in the facts of what a relay of small writes costs in place.
const RELAY: &str = "relay";

/// What `--writes` may take beyond another `--budget` before a mount counts as hung.
pub(super) const WRITES_GRACE: Duration = Duration::from_secs(1);

/// What the extra workloads need of the check.
pub(super) struct Extra<'a> {
    pub(super) args: &'a CheckArgs,
    pub(super) system: &'a System,
    pub(super) profile: &'a RepoProfile,
    pub(super) location: &'a Location,
    /// An existing directory on the target filesystem; absent when there is nothing to compare with.
    pub(super) target: Option<&'a Path>,
    pub(super) cache_home: Option<&'a Path>,
    pub(super) progress: &'a dyn Progress,
    pub(super) interrupt: &'a Interrupt,
}

impl Extra<'_> {
    /// Measures what was asked for and adds it to the report; returns the directory that the copy is in, whose removal
    /// may wait until the answer is out.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] on a signal; [`Error::Output`] when the parent is gone. What could not be measured is a
    /// note.
    pub(super) fn measure(&self, report: &mut Report, out: &mut dyn Write) -> Result<Option<RunDir>, Error> {
        if self.args.writes {
            // The suites make their calls in this process, so that from here on the parent keeps the time again.
            let limit_s = (self.args.budget + WRITES_GRACE).as_secs_f64();
            emit(out, &Event::OnTheMount { limit_s })?;
            let result = self.writes(report);
            survive(result, "small files were not measured", report)?;
            emit(out, &Event::LeftTheMount)?;
            emit(out, &incomplete(report))?;
        }
        if self.args.run.is_empty() {
            return Ok(None);
        }
        let copy = match self.target {
            None => None,
            Some(target) => {
                let result = self.copy(target, report);
                survive(result, "the copy for `--run` could not be made, so it was timed in place alone", report)?
            }
        };
        self.runs(copy.as_ref().map(|(path, _)| path.as_path()), report, out)?;
        Ok(copy.map(|(_, run_dir)| run_dir))
    }

    /// Small files in a scratch directory beside the repository, never inside.
    fn writes(&self, report: &mut Report) -> Result<(), Error> {
        let inside = &self.profile.worktree;
        let beside = inside.parent().ok_or_else(|| {
            Error::refused("there is no directory beside the root of the filesystem", "measure with `rehome bench`")
        })?;
        let location = self.system.locate(beside)?;
        if !location.mount.is_same_filesystem(&self.location.mount) {
            return Err(Error::refused(
                format!("`{}` is on another filesystem than the repository", printable(beside)),
                "nothing is written inside a repository; name a directory of that mount with `rehome bench DIR`",
            ));
        }
        small_files(beside, self.target, self.args.budget, self.progress, self.interrupt, report)
    }

    /// Makes a full, verified copy of the repository with the engine of `rehome move`.
    fn copy(&self, target: &Path, report: &mut Report) -> Result<(PathBuf, RunDir), Error> {
        let Some(git) = &report.facts.git else {
            return Err(Error::refused("there is no git on PATH", "install git: the copy is checked with it"));
        };
        let run_dir = RunDir::create(target, self.cache_home)?;
        let name = self.profile.worktree.file_name().unwrap_or("repository".as_ref());
        let destination = run_dir.path().join(name);
        let request = migrate::Request {
            destination: destination.clone(),
            // Also what a rule knows how to make again: the command may need it, and it was asked to be timed as it is.
            scope: Scope::All,
            to_windows: false,
            target_fs: self.args.target_fs.clone(),
            rebuildable: Vec::new(),
            site: Some(self.location.site.clone()),
            target: report.facts.target.clone(),
            blockers: Vec::new(),
            notes: Vec::new(),
            git: PathBuf::from(&git.path),
            // Nothing is moved, so nothing outside has to follow.
            home: None,
        };
        let prepared = migrate::prepare(self.profile, &request, self.interrupt, self.progress)?;
        let moved = migrate::execute(prepared, self.interrupt, self.progress)?;
        report.notes.push(format!(
            "`--run`: timed in place and in a full copy of {} files, each read back and compared",
            moved.files
        ));
        Ok((destination, run_dir))
    }

    fn runs(&self, copy: Option<&Path>, report: &mut Report, out: &mut dyn Write) -> Result<(), Error> {
        let below = self.below();
        // Joining nothing would add a slash, and a command may print where it runs.
        let there = |root: &Path| if below.as_os_str().is_empty() { root.to_owned() } else { root.join(&below) };
        let in_place = there(&self.profile.worktree);
        let in_copy = copy.map(there);
        for (number, command) in self.args.run.iter().enumerate() {
            let name = format!("run_{}", number + 1);
            let work = OwnWork {
                command,
                prepare: self.args.prepare.as_deref(),
                same_output: self.args.same_output,
                rounds: self.args.rounds,
                name: &name,
            };
            let result = bench::time_own_work(&work, &in_place, in_copy.as_deref(), self.progress, self.interrupt);
            if let Some(measurement) = survive(result, "a `--run` could not be timed", report)? {
                add(report, measurement);
            }
            emit(out, &incomplete(report))?;
        }
        report.notes.push(format!(
            "`--run` ran what you gave it in `{}`; whatever it wrote there is its own doing and was left",
            printable(&in_place)
        ));
        let own = report.measurements.iter().filter(|it| it.workload.starts_with("run_"));
        let best = own.max_by(|a, b| a.saved_s.unwrap_or(f64::MIN).total_cmp(&b.saved_s.unwrap_or(f64::MIN)));
        if let Some(best) = best {
            report.facts.measure.insert(BEST_RUN.to_owned(), best.into());
        }
        Ok(())
    }

    /// Returns the directory below the worktree that the user stands in or named; empty for the worktree itself.
    fn below(&self) -> PathBuf {
        let given = self.args.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let path = self.system.resolve_spelling(&given).unwrap_or(given);
        let path = std::fs::canonicalize(path).unwrap_or_default();
        let directory = path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new(""));
        directory.strip_prefix(&self.profile.worktree).map(Path::to_path_buf).unwrap_or_default()
    }
}

/// Tries `beside` with small files in a scratch directory, and the target with the same, and adds what came of it.
///
/// # Errors
///
/// [`Error::Interrupted`] on a signal; otherwise when no scratch directory can be made.
pub(super) fn small_files(
    beside: &Path,
    target: Option<&Path>,
    budget: Duration,
    progress: &dyn Progress,
    interrupt: &Interrupt,
    report: &mut Report,
) -> Result<(), Error> {
    let env = Environment { platform: Some(report.facts.platform), git: None, progress, interrupt };
    let mut save = |_: &bench::result::BenchReport| Ok(());
    let measured = bench::measure_beside(beside, target, has_relay(report), budget, &env, &mut save)?;
    if let Some(relay) = measured.relay {
        report.facts.measure.insert(RELAY.to_owned(), relay);
    }
    report.cost.bytes_written_in_place += measured.bytes_in_place;
    report.notes.extend(measured.notes);
    report.complete &= measured.complete;
    for measurement in measured.measurements {
        add(report, measurement);
    }
    Ok(())
}

/// Returns whether output of Linux commands may reach this place through the relay of `wsl.exe`.
fn has_relay(report: &Report) -> bool {
    report.facts.platform == Platform::Wsl2
        && matches!(report.facts.site.class, FilesystemClass::WindowsDrive | FilesystemClass::Network)
}

fn add(report: &mut Report, measurement: Measurement) {
    let measurement = measurement.finite();
    report.facts.measure.insert(measurement.workload.clone(), (&measurement).into());
    report.measurements.push(measurement);
}

/// Turns a failure into a note, so that the rest of the report is still given; signals and a lost parent end the run.
pub(super) fn survive<T>(result: Result<T, Error>, what: &str, report: &mut Report) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error @ (Error::Interrupted | Error::Output(_))) => Err(error),
        Err(error) => {
            let what_and_why: Vec<String> =
                [what.to_owned(), error.to_string()].into_iter().chain(error.causes()).collect();
            let hint = error.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
            report.notes.push(format!("{}{hint}", what_and_why.join(": ")));
            report.complete = false;
            Ok(None)
        }
    }
}
