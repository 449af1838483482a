//! A whole run: scratch directories, the suites in turn, and the removal at the end.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::engine::{Limits, Participant, WorkDir, Workload, run_suite};
use super::git::Git;
use super::record::{Recorder, Save, failure};
use super::result::{BENCH_SCHEMA_VERSION, BenchCost, BenchKind, BenchReport, Failure, Machine, Place, Setup, Suite};
use super::scratch::Scratch;
use super::seq::Seq;
use super::small::{Small, SmallPlan};
use super::stream::Stream;
use super::walk::Walk;
use crate::error::{Error, printable};
use crate::facts::{GitFacts, Platform};
use crate::progress::Progress;
use crate::signals::Interrupt;

/// Rounds that count: the fewest for which the 95 % interval of a median needs no assumption about the noise.
pub const ROUNDS: u32 = 6;
/// Rounds of the suites that move bulk data: they take long, and their figures scatter little.
pub const BULK_ROUNDS: u32 = 3;
/// Size of the large file of the suite `seq`.
pub const SEQ_BYTES: u64 = 512 << 20;
/// Length of a stream; seven of them are written in a round.
pub const STREAM_BYTES: u64 = 64 << 20;

/// How long a program may go on when the budget is used up, in seconds: what it does then is of no more use, and it may
/// hang.
const PROGRAM_OVERTIME_S: f64 = 1.0;

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The suites; run in the order of [`Suite::ALL`], each once.
    pub suites: Vec<Suite>,
    /// How much the suite `small` does in a round.
    pub small: SmallPlan,
    /// Rounds that count; `None` for [`ROUNDS`], or [`BULK_ROUNDS`] where bulk data is moved.
    pub rounds: Option<u32>,
    /// Length of the large file and of the streams; `None` for [`SEQ_BYTES`] and [`STREAM_BYTES`].
    pub bytes: Option<u64>,
    /// Trees that the suite `walk` reads instead of making its own; empty to make them.
    pub trees: Vec<Place>,
    /// What the whole run may take.
    pub budget: Duration,
}

/// What a run needs from outside.
pub struct Environment<'a> {
    /// The system; absent when it could not be told.
    pub platform: Option<Platform>,
    /// The git program; absent when there is none.
    pub git: Option<GitFacts>,
    /// Receives how far it is.
    pub progress: &'a dyn Progress,
    /// Says when to stop.
    pub interrupt: &'a Interrupt,
}

/// A run that came to its end, or as far as a signal let it.
#[derive(Debug)]
pub struct Finished {
    /// Everything that was measured.
    pub report: BenchReport,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
    /// Why the report could not be saved; the report itself is whole all the same.
    pub save_error: Option<Error>,
}

/// Runs the suites in the given places and hands the report to `save` each time it grew.
///
/// # Errors
///
/// When a scratch directory cannot be made, or when the first saving fails: nothing was measured then. What goes wrong
/// later is in the report.
pub fn run(options: &Options, places: Vec<Place>, env: &Environment<'_>, save: Save<'_>) -> Result<Finished, Error> {
    let mut suites: Vec<Suite> = Suite::ALL.into_iter().filter(|suite| options.suites.contains(suite)).collect();
    if suites.is_empty() {
        suites = Suite::ALL.to_vec();
    }
    let writes = suites.iter().any(|suite| *suite != Suite::Walk || options.trees.is_empty());
    let mut scratches = Vec::new();
    let mut report = empty_report(options, env);
    if writes {
        for mut place in places {
            env.progress.at(Path::new(&place.path));
            let scratch = Scratch::create(Path::new(&place.path))?;
            env.progress.made(scratch.path());
            place.scratch = Some(scratch.record());
            scratches.push((report.places.len(), scratch));
            report.places.push(place);
        }
    }
    let mut trees = Vec::new();
    if suites.contains(&Suite::Walk) {
        for tree in &options.trees {
            trees.push((report.places.len(), PathBuf::from(&tree.path)));
            report.places.push(tree.clone());
        }
    }
    note_places(&mut report, env.progress);
    let mut recorder = Recorder::new(report, save);
    recorder.save();
    if let Some(error) = recorder.save_error.take() {
        return Err(error);
    }
    let result = run_suites(&suites, options, &scratches, &trees, env, &mut recorder);
    remove(&mut scratches, &mut recorder, env.progress);
    let is_interrupted = result.is_err();
    let report = &mut recorder.report;
    report.complete = !is_interrupted && report.suites.iter().all(|suite| suite.complete);
    recorder.save();
    let Recorder { report, save_error, .. } = recorder;
    Ok(Finished { report, is_interrupted, save_error })
}

fn run_suites(
    suites: &[Suite],
    options: &Options,
    scratches: &[(usize, Scratch)],
    trees: &[(usize, PathBuf)],
    env: &Environment<'_>,
    recorder: &mut Recorder<'_>,
) -> Result<(), Error> {
    for (position, suite) in suites.iter().enumerate() {
        env.interrupt.check()?;
        let rounds = options.rounds.unwrap_or(if is_bulk(*suite) { BULK_ROUNDS } else { ROUNDS });
        let budget_s = options.budget.as_secs_f64();
        let left_s = budget_s - recorder.elapsed_s();
        if left_s <= 0.0 {
            not_run(*suite, rounds, used_up(*suite, budget_s), recorder);
            continue;
        }
        let share_s = share(&suites[position..], left_s);
        let limits = Limits { rounds, share_s, left_s, budget_s, progress: env.progress, interrupt: env.interrupt };
        let participants = if *suite == Suite::Walk && !trees.is_empty() {
            tree_participants(trees, env.progress)
        } else {
            scratch_participants(scratches, env.progress)
        };
        let until = Duration::try_from_secs_f64(left_s + PROGRAM_OVERTIME_S).ok();
        let until = until.and_then(|left| Instant::now().checked_add(left));
        let prepared = participants.and_then(|places| Ok((workload(*suite, options, env, until)?, places)));
        match prepared {
            Ok((mut workload, places)) => run_suite(workload.as_mut(), places, &limits, recorder)?,
            Err(error) => not_run(*suite, rounds, failure(None, &error), recorder),
        }
    }
    Ok(())
}

fn not_run(suite: Suite, rounds: u32, failure: Failure, recorder: &mut Recorder<'_>) {
    let position = recorder.begin_suite(suite, Setup::default(), rounds);
    recorder.report.suites[position].failures.push(failure);
    recorder.save();
}

fn used_up(suite: Suite, budget_s: f64) -> Failure {
    Failure {
        place: None,
        message: format!("the suites before it used up the budget of {budget_s:.0} s"),
        hint: Some(format!("run it alone with `--suite {}`, or give more time with `--budget`", suite.name())),
    }
}

fn is_bulk(suite: Suite) -> bool {
    matches!(suite, Suite::Seq | Suite::Stream)
}

/// Returns the seconds that the first of these suites may take; what it leaves over goes to the others.
fn share(suites: &[Suite], left_s: f64) -> f64 {
    // By how long they take on a local disk at full size, roughly, so that all shrink alike.
    let weight = |suite: &Suite| match suite {
        Suite::Git => 1.0,
        Suite::Small | Suite::Seq => 2.0,
        Suite::Stream | Suite::Walk => 3.0,
    };
    let all: f64 = suites.iter().map(weight).sum();
    suites.first().map_or(0.0, |first| (left_s * weight(first) / all).max(0.0))
}

fn workload(
    suite: Suite,
    options: &Options,
    env: &Environment<'_>,
    until: Option<Instant>,
) -> Result<Box<dyn Workload>, Error> {
    Ok(match suite {
        Suite::Small => Box::new(Small::new(options.small)?),
        Suite::Seq => Box::new(Seq::new(options.bytes.unwrap_or(SEQ_BYTES), options.small.size_bytes)?),
        Suite::Stream => Box::new(Stream::new(options.bytes.unwrap_or(STREAM_BYTES))),
        Suite::Walk if options.trees.is_empty() => Box::new(Walk::made(until)),
        Suite::Walk => Box::new(Walk::given(until)),
        Suite::Git => match &env.git {
            Some(git) => Box::new(Git::new(PathBuf::from(&git.path), until)),
            None => {
                return Err(Error::refused(
                    "there is no git on PATH",
                    "install git, or leave this suite out: `--suite small,seq,stream,walk`",
                ));
            }
        },
    })
}

fn scratch_participants(scratches: &[(usize, Scratch)], progress: &dyn Progress) -> Result<Vec<Participant>, Error> {
    scratches
        .iter()
        .map(|(index, scratch)| {
            progress.at(scratch.path());
            Ok(Participant { index: *index, dir: WorkDir::open(scratch)?, is_scratch: true })
        })
        .collect()
}

fn tree_participants(trees: &[(usize, PathBuf)], progress: &dyn Progress) -> Result<Vec<Participant>, Error> {
    trees
        .iter()
        .map(|(index, path)| {
            progress.at(path);
            Ok(Participant { index: *index, dir: WorkDir::open_tree(path.clone())?, is_scratch: false })
        })
        .collect()
}

/// Removes the scratch directories and writes down the proof.
fn remove(scratches: &mut [(usize, Scratch)], recorder: &mut Recorder<'_>, progress: &dyn Progress) {
    for (index, scratch) in scratches {
        progress.at(scratch.path());
        if let Err(error) = scratch.remove() {
            let hint = error.hint().unwrap_or_default();
            recorder.report.notes.push(format!("{error}; {hint}"));
        }
        recorder.report.places[*index].scratch = Some(scratch.record());
    }
}

fn empty_report(options: &Options, env: &Environment<'_>) -> BenchReport {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    BenchReport {
        kind: BenchKind::Bench,
        schema_version: BENCH_SCHEMA_VERSION,
        rehome_version: env!("CARGO_PKG_VERSION").to_owned(),
        complete: false,
        started_at_unix_s: started,
        machine: Machine {
            platform: env.platform,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            cpus: std::thread::available_parallelism().ok().map(|cpus| cpus.get() as u64),
            git_version: env.git.as_ref().map(|git| git.version.clone()),
        },
        budget_s: options.budget.as_secs_f64(),
        places: Vec::new(),
        suites: Vec::new(),
        notes: Vec::new(),
        cost: BenchCost::default(),
    }
}

/// Returns whether a place is on ext4 without a journal; `None` where that cannot be told.
///
/// Such a filesystem keeps away from inodes that were deleted in the last minutes (`recently_deleted` in the kernel's
/// `fs/ext4/ialloc.c`), and steps over each of them for every file that it creates.
fn lacks_journal(place: &Place) -> Option<bool> {
    let site = place.site.as_ref().filter(|site| site.fstype == "ext4")?;
    let dev = std::fs::metadata(&site.real_path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let device = link.file_name()?.to_str()?.to_owned();
    // Mounted filesystems are listed by their device here, whether or not they have a journal ...
    std::fs::metadata(format!("/proc/fs/ext4/{device}")).ok()?;
    // ... and journals by the device and the number of their inode.
    let prefix = format!("{device}-");
    let mut journals = std::fs::read_dir("/proc/fs/jbd2").ok()?.flatten();
    Some(!journals.any(|journal| journal.file_name().as_encoded_bytes().starts_with(prefix.as_bytes())))
}

/// Returns whether two places are on one mount.
fn share_a_mount(a: &Place, b: &Place) -> bool {
    a.site
        .as_ref()
        .zip(b.site.as_ref())
        .is_some_and(|(a, b)| (&a.mount_point, &a.source, &a.fstype) == (&b.mount_point, &b.source, &b.fstype))
}

/// Says what a reader would otherwise stumble over.
fn note_places(report: &mut BenchReport, progress: &dyn Progress) {
    let mut notes = Vec::new();
    for (position, place) in report.places.iter().enumerate() {
        progress.at(Path::new(&place.path));
        let shown = printable(&place.path);
        let earlier = report.places[..position].iter().find(|earlier| share_a_mount(place, earlier));
        if let Some(earlier) = earlier {
            let earlier = printable(&earlier.path);
            notes.push(format!("`{shown}` and `{earlier}` are on the same filesystem, so their difference is noise"));
        } else if place.scratch.is_some() && lacks_journal(place) == Some(true) {
            notes.push(format!(
                "`{shown}` is on ext4 without a journal, which creates files slowly for minutes after others were \
                 deleted; an ordinary ext4 does not, so take `create` there for an upper bound"
            ));
        }
        let Some(scratch) = &place.scratch else { continue };
        if scratch.mode != "0700" {
            let mode = &scratch.mode;
            notes.push(format!(
                "the filesystem of `{shown}` keeps no permissions: the scratch directory has mode {mode}"
            ));
        }
        for left in &scratch.reaped {
            notes.push(format!("removed what a killed run left: `{}`", printable(left)));
        }
    }
    report.notes.extend(notes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_budget_and_the_last_suite_gets_what_is_left() {
        let mut left_s = 110.0;
        for position in 0..Suite::ALL.len() {
            left_s -= share(&Suite::ALL[position..], left_s);
        }
        assert!(left_s.abs() < 1e-9);
        assert!((share(&[Suite::Git], 7.0) - 7.0).abs() < 1e-9);
        assert!(share(&Suite::ALL, -5.0).abs() < 1e-9);
    }
}
