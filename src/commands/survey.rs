//! `rehome survey`: find repositories, measure each for a short time, rank them.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::cli::{PlainFormat, SurveyArgs};
use crate::commands::output::terminal_style;
use crate::commands::progress;
use crate::commands::supervise::{
    self, Event, Outcome, Patience, Terms, emit, end_with_parent, no_answer, supervise, this_program_as,
};
use crate::error::{EXIT_OK, Error, printable};
use crate::format;
use crate::progress::{Progress, Silent};
use crate::report::Report;
use crate::report::survey::{Finding, Survey, write_finding, write_survey};
use crate::scan::access::Access;
use crate::scan::repositories::{Bounds, Found, find};
use crate::signals::Interrupt;
use crate::state::Store;

/// Directories to look into below all of the given ones: some thousand projects, and a minute on a slow mount.
const MAX_DIRECTORIES: usize = 20_000;
/// Part of the budget that searching may take; the rest is for measuring.
const SEARCH_SHARE: u32 = 5;
/// The least and the most that one repository gets: less gives no figure, more makes none better for a ranking.
const LEAST_SHARE: Duration = Duration::from_millis(700);
const MOST_SHARE: Duration = Duration::from_secs(6);
/// What scanning and cleaning up take besides the measuring of one repository, in which the others must not wait long.
const GRACE: Duration = Duration::from_millis(1_500);

/// Surveys the directories and writes the answer.
///
/// # Errors
///
/// [`Error::Io`] when a directory cannot be read, [`Error::Interrupted`] when a signal came; what was known by then is
/// written first.
pub fn run(args: &SurveyArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let started = Instant::now();
    let interrupt = Interrupt::on_signals()?;
    let (dirs, found) = search(args, &interrupt)?;
    let mut survey = Survey {
        dirs: dirs.iter().map(|dir| dir.to_string_lossy().into_owned()).collect(),
        notes: notes(&found, args),
        ..Survey::default()
    };
    measure_all(args, &found.repositories, started, &interrupt, &mut survey, out)?;
    survey.wall_s = started.elapsed().as_secs_f64();
    match args.format {
        PlainFormat::Text => write_survey(&survey, &terminal_style(false), out).map_err(Error::Output)?,
        PlainFormat::Json => {}
    }
    if interrupt.is_set() { Err(Error::Interrupted) } else { Ok(EXIT_OK) }
}

/// What the search brought, as the process that made it tells; paths in the system's own form, since names need not be
/// UTF-8.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    dirs: Vec<OsString>,
    repositories: Vec<OsString>,
    directories: usize,
    unreadable: usize,
    is_cut: bool,
}

/// Has the directories searched by a process of its own, since any of them may be on a mount that hangs.
fn search(args: &SurveyArgs, interrupt: &Interrupt) -> Result<(Vec<PathBuf>, Found), Error> {
    let bars = progress::for_terminal(args.quiet);
    bars.begin("looking for repositories", None);
    let mut terms = Terms {
        limit: Some(args.budget / SEARCH_SHARE + GRACE),
        patience: Patience::None,
        interrupt,
        progress: &Silent,
        on_partial: &mut no_answer::<Told>,
    };
    let (outcome, rest) = supervise(&mut this_program_as("__survey", "survey"), &mut terms)?;
    bars.end();
    match outcome {
        Outcome::Finished(told) => {
            rest.wait();
            let paths = |names: Vec<OsString>| names.into_iter().map(PathBuf::from).collect();
            let Told { dirs, repositories, directories, unreadable, is_cut } = *told;
            Ok((paths(dirs), Found { repositories: paths(repositories), directories, unreadable, is_cut }))
        }
        Outcome::Partial { is_interrupted: true, .. } => Err(Error::Interrupted),
        Outcome::Partial { stuck_at, .. } => {
            let place = stuck_at.map_or_else(|| "a directory".to_owned(), |place| format!("`{}`", printable(place)));
            Err(Error::refused(
                format!("{place} did not answer while it was searched"),
                "its mount hangs or is very slow: see if `ls` answers there, mount it again (in WSL 2: `wsl --shutdown` \
                 from Windows), or name directories further down",
            ))
        }
    }
}

/// Searches, and tells what was found; the side of the process that may be left behind.
///
/// # Errors
///
/// [`Error::Output`] when the parent is gone; what goes wrong with the search is an event.
pub fn work(args: &SurveyArgs, out: &mut dyn Write) -> Result<u8, Error> {
    end_with_parent(Signal::TERM)?;
    emit(out, &Event::<Told>::Started)?;
    match search_here(args) {
        Ok((dirs, found)) => {
            let names = |paths: Vec<PathBuf>| paths.into_iter().map(PathBuf::into_os_string).collect();
            let Found { repositories, directories, unreadable, is_cut } = found;
            let told = Told { dirs: names(dirs), repositories: names(repositories), directories, unreadable, is_cut };
            emit(out, &Event::Finished { report: Box::new(told) })?;
        }
        Err(error) => emit(out, &Event::<Told>::failed(&error))?,
    }
    Ok(EXIT_OK)
}

fn search_here(args: &SurveyArgs) -> Result<(Vec<PathBuf>, Found), Error> {
    let dirs = if args.dirs.is_empty() { vec![PathBuf::from(".")] } else { args.dirs.clone() };
    let progress = supervise::Told::new();
    let started = Instant::now();
    let limit = args.budget / SEARCH_SHARE;
    let access = Arc::new(Access::default());
    let mut all = Found::default();
    let mut absolute = Vec::new();
    for dir in dirs {
        let dir = std::path::absolute(&dir).map_err(|source| Error::io("find", &dir, source))?;
        let bounds = Bounds {
            max_depth: args.depth,
            max_directories: MAX_DIRECTORIES.saturating_sub(all.directories),
            limit: limit.saturating_sub(started.elapsed()),
        };
        progress.at(&dir);
        let found = find(&dir, bounds, &access)?;
        all.repositories.extend(found.repositories);
        all.directories += found.directories;
        all.unreadable += found.unreadable;
        all.is_cut |= found.is_cut;
        absolute.push(dir);
    }
    // The same directory may be given twice, or one within the other.
    all.repositories.sort();
    all.repositories.dedup();
    Ok((absolute, all))
}

fn notes(found: &Found, args: &SurveyArgs) -> Vec<String> {
    let mut notes = Vec::new();
    if found.unreadable > 0 {
        let number = format::counted(found.unreadable as u64, "directory", "directories");
        notes.push(format!("{number} could not be read and may hold more"));
    }
    if found.is_cut {
        let number = format::counted(found.directories as u64, "directory", "directories");
        notes.push(format!("the search ended after {number}; give it more time with `--budget`, or name directories"));
    }
    if args.depth == 0 {
        notes.push("with `--depth 0` only the directories themselves were looked at".to_owned());
    }
    notes
}

fn measure_all(
    args: &SurveyArgs,
    repositories: &[PathBuf],
    started: Instant,
    interrupt: &Interrupt,
    survey: &mut Survey,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let store = Store::of_user();
    let bars = progress::for_terminal(args.quiet);
    bars.begin("measuring repositories", Some(repositories.len() as u64));
    for (number, repository) in (0_u32..).zip(repositories) {
        let left = u32::try_from(repositories.len()).unwrap_or(u32::MAX).saturating_sub(number);
        let remaining = args.budget.saturating_sub(started.elapsed());
        if interrupt.is_set() || remaining < LEAST_SHARE {
            survey.left_out = u64::from(left);
            break;
        }
        bars.advance(u64::from(number));
        let share = (remaining / left).clamp(LEAST_SHARE, MOST_SHARE);
        let finding = measure_one(args, repository, share, interrupt);
        if let (Some(store), Some(report)) = (&store, &finding.report) {
            // Only later prompts would miss it, and they measure again.
            let _ = store.save(report);
        }
        if args.format == PlainFormat::Json {
            write_finding(&finding, out).map_err(Error::Output)?;
        }
        survey.findings.push(finding);
    }
    bars.end();
    Ok(())
}

/// Checks one repository in a process of its own, which is given up on when its mount hangs.
fn measure_one(args: &SurveyArgs, repository: &Path, share: Duration, interrupt: &Interrupt) -> Finding {
    let mut command = Command::new("/proc/self/exe");
    command.args(["__worker", "--quick", "--quiet", "--budget"]).arg(format!("{}s", share.as_secs_f64()));
    if let Some(target) = &args.target {
        command.arg("--target").arg(target);
    }
    if !args.target_fs.is_empty() {
        command.arg("--target-fs").arg(args.target_fs.join(","));
    }
    command.arg("--").arg(repository);
    let path = repository.to_string_lossy().into_owned();
    let mut terms = Terms {
        limit: Some(share + GRACE),
        patience: Patience::None,
        interrupt,
        progress: &Silent,
        on_partial: &mut no_answer::<Report>,
    };
    let supervised = supervise(&mut command, &mut terms).map(|(outcome, rest)| {
        rest.wait();
        outcome
    });
    match supervised {
        Ok(Outcome::Finished(report) | Outcome::Partial { report: Some(report), .. }) => {
            Finding { path, report: Some(*report), error: None }
        }
        Ok(Outcome::Partial { report: None, .. }) => {
            Finding { path, report: None, error: Some(format!("`{}` did not answer in time", printable(repository))) }
        }
        Err(error) => {
            let said: Vec<String> = std::iter::once(error.to_string()).chain(error.causes()).collect();
            Finding { path, report: None, error: Some(said.join(": ")) }
        }
    }
}
