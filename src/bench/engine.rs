//! Runs a suite: sizes it, warms up, alternates the places round by round, records every round as it ends.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};

use super::figures::figures;
use super::fit::{Estimate, Fit, OVERTIME, budget_advice, fit, in_words, rounds_left, settle};
use super::record::{Recorder, failure};
use super::result::{Failure, PhaseTime, Proof, Round, Setup, Suite, SuiteResult};
use super::scratch::Scratch;
use crate::error::Error;
use crate::progress::Progress;
use crate::signals::Interrupt;

/// Room that stays free beside what a suite writes: metadata takes some, and nobody wants a full disk.
const SPARE_BYTES: u64 = 64 << 20;
/// A trial that would make the work smaller is done twice when it took less than this share of the suite's time: what the
/// suite before it left to be written to the disk may have been in its way.
const RETRIAL_SHARE: f64 = 0.1;
/// A trial step that took longer than this, in seconds, tells enough; a larger one would only cost time.
const TRIAL_ENOUGH_S: f64 = 0.2;

/// An open directory that a suite works in.
#[derive(Debug)]
pub(super) struct WorkDir {
    /// Where it is, for programs and for messages.
    pub(super) path: PathBuf,
    /// The directory itself, for calls relative to it.
    pub(super) fd: OwnedFd,
}

impl WorkDir {
    /// Opens the place that suites work in.
    pub(super) fn open(scratch: &Scratch) -> Result<Self, Error> {
        Ok(Self { path: scratch.work(), fd: scratch.open_work()? })
    }

    /// Opens a directory of the user's.
    pub(super) fn open_tree(path: PathBuf) -> Result<Self, Error> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| Error::io("open", path.clone(), e.into()))?;
        Ok(Self { path, fd })
    }

    /// Returns the bytes that this user can still write here; `None` when the filesystem does not tell.
    fn free_bytes(&self) -> Option<u64> {
        let stat = rustix::fs::fstatvfs(&self.fd).ok()?;
        // Some servers (9p, FUSE) answer zeros for everything, which says nothing.
        (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// A place that takes part in a suite.
#[derive(Debug)]
pub(super) struct Participant {
    /// Position in the report.
    pub(super) index: usize,
    /// Where it works.
    pub(super) dir: WorkDir,
    /// Whether the engine may empty it.
    pub(super) is_scratch: bool,
}

/// What one round did.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Phases with their time in seconds, in the order they were run.
    pub(super) phases: Vec<(String, f64)>,
    /// What it saw of its own work.
    pub(super) proof: Proof,
    /// Why it does not count; `None` when it does.
    pub(super) fault: Option<String>,
    /// Bytes of file contents that it wrote.
    pub(super) bytes_written: u64,
}

impl Outcome {
    pub(super) fn total_s(&self) -> f64 {
        self.phases.iter().map(|(_, elapsed_s)| elapsed_s).sum()
    }
}

/// How a round was made smaller.
#[derive(Debug, PartialEq)]
pub(super) struct Shrunk {
    /// What is now instead of what, as a piece of a sentence.
    pub(super) said: String,
    /// Share of the former size.
    pub(super) factor: f64,
}

impl Shrunk {
    /// Describes a change of the size from `old` to `new`.
    pub(super) fn new(said: String, old: u64, new: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a rounded share is good enough")]
        let factor = new as f64 / old.max(1) as f64;
        Self { said, factor }
    }
}

/// One suite's work.
pub(super) trait Workload {
    /// Which suite it is.
    fn suite(&self) -> Suite;
    /// How much a round is.
    fn setup(&self) -> Setup;
    /// Bytes that it has on the disk at once.
    fn needed_bytes(&self) -> u64;
    /// Tries a small part of the work.
    fn estimate(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Estimate, Error>;
    /// Makes a round smaller by this factor, as far as that makes sense; `None` when it cannot be smaller.
    fn shrink(&mut self, factor: f64) -> Result<Option<Shrunk>, Error>;
    /// Makes what all rounds at a place need; returns the bytes written.
    fn prepare(&mut self, _place: &WorkDir, _interrupt: &Interrupt) -> Result<u64, Error> {
        Ok(0)
    }
    /// Does the work once.
    fn round(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Outcome, Error>;
    /// Whether something stays in the directory between rounds, so that a faulty round must not empty it.
    fn is_standing(&self) -> bool {
        false
    }
    /// Operations in a phase, for a time per operation.
    fn operations(&self, phase: &str) -> Option<u64>;
    /// Bytes moved in a phase, for a throughput.
    fn bytes(&self, phase: &str) -> Option<u64>;
    /// Whether the sum of the phases is what the suite is about.
    fn has_total(&self) -> bool {
        false
    }
    /// Whether a phase is a part that stands beside the others, and not what the suite is about.
    fn is_side_phase(&self, _phase: &str) -> bool {
        false
    }
    /// What a reader must know about the figures.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a suite is allowed, and who watches.
pub(super) struct Limits<'a> {
    /// Rounds that are to count.
    pub(super) rounds: u32,
    /// Time, in seconds.
    pub(super) share_s: f64,
    /// What is left of the whole run's budget, in seconds.
    pub(super) left_s: f64,
    /// The whole run's budget, in seconds, for advice about it.
    pub(super) budget_s: f64,
    /// Receives how far it is.
    pub(super) progress: &'a dyn Progress,
    /// Says when to stop.
    pub(super) interrupt: &'a Interrupt,
}

/// Returns a number times a factor, at least `least`.
pub(super) fn scaled(number: u64, factor: f64, least: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the factor lies between 0 and 1, and a rounded number is good enough"
    )]
    let scaled = (number as f64 * factor.clamp(0.0, 1.0)) as u64;
    scaled.max(least)
}

/// Runs a suite at all places that can take part.
///
/// # Errors
///
/// [`Error::Interrupted`] only: whatever else goes wrong at a place is recorded, and the others go on.
pub(super) fn run_suite(
    workload: &mut dyn Workload,
    places: Vec<Participant>,
    limits: &Limits<'_>,
    recorder: &mut Recorder<'_>,
) -> Result<(), Error> {
    let mut runner = Runner {
        suite: recorder.begin_suite(workload.suite(), workload.setup(), limits.rounds),
        workload,
        places,
        limits,
        recorder,
        started: Instant::now(),
    };
    let result = runner.run();
    runner.limits.progress.end();
    runner.finish(result.is_ok());
    result
}

struct Runner<'a, 'b> {
    suite: usize,
    workload: &'a mut dyn Workload,
    places: Vec<Participant>,
    limits: &'a Limits<'a>,
    recorder: &'a mut Recorder<'b>,
    started: Instant,
}

impl Runner<'_, '_> {
    fn run(&mut self) -> Result<(), Error> {
        let name = self.workload.suite().name();
        self.limits.progress.begin(&format!("{name}: trial"), None);
        let mut estimate = self.estimate()?;
        let tried_s = self.started.elapsed().as_secs_f64();
        if fit(self.limits.rounds, &estimate, self.limits.share_s).factor.is_some()
            && tried_s < self.limits.share_s * RETRIAL_SHARE
        {
            estimate = estimate.smaller(self.estimate()?);
        }
        let Some(mut rounds) = self.shrink_to_fit(&estimate)? else { return Ok(()) };
        self.drop_places_without_room();
        self.limits.progress.begin(&format!("{name}: preparing"), None);
        self.at_each_place(
            false,
            |workload, dir, interrupt| workload.prepare(dir, interrupt),
            |runner, _, bytes| {
                runner.recorder.report.cost.bytes_written += bytes;
            },
        )?;
        let total = u64::from(rounds + 1) * self.places.len() as u64;
        self.limits.progress.begin(&format!("{name}: rounds"), Some(total));
        let warm_up_s = self.pass(0)?;
        rounds = self.shorten(rounds, warm_up_s);
        for round in 1..=rounds {
            if self.places.is_empty() {
                break;
            }
            if round > 1 && self.is_overtime(warm_up_s) {
                self.result().rounds_planned = round - 1;
                self.say_shrunk(format!(
                    "{} instead of {rounds}: they took longer than the first one promised",
                    counted_rounds(round - 1)
                ));
                break;
            }
            self.pass(round)?;
        }
        Ok(())
    }

    fn estimate(&mut self) -> Result<Estimate, Error> {
        let mut estimate = Estimate::default();
        let trial =
            |workload: &mut dyn Workload, dir: &WorkDir, interrupt: &Interrupt| workload.estimate(dir, interrupt);
        self.at_each_place(false, trial, |_, _, one| estimate.add(one))?;
        Ok(estimate)
    }

    /// Does something at every place that is still in, forwards or backwards; a place where it fails drops out.
    ///
    /// What is done is handed over at once, so that a signal costs no result that was there before it.
    fn at_each_place<T>(
        &mut self,
        backwards: bool,
        mut action: impl FnMut(&mut dyn Workload, &WorkDir, &Interrupt) -> Result<T, Error>,
        mut done: impl FnMut(&mut Self, usize, T),
    ) -> Result<(), Error> {
        let count = self.places.len();
        let mut dropped = Vec::new();
        for step in 0..count {
            let place = if backwards { count - 1 - step } else { step };
            let index = self.places[place].index;
            self.limits.progress.at(&self.places[place].dir.path);
            match action(self.workload, &self.places[place].dir, self.limits.interrupt) {
                Ok(value) => done(self, index, value),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    self.fail(failure(Some(index), &error));
                    dropped.push(index);
                }
            }
        }
        if !dropped.is_empty() {
            self.empty(|participant| dropped.contains(&participant.index));
            self.places.retain(|participant| !dropped.contains(&participant.index));
            self.recorder.save();
        }
        Ok(())
    }

    /// Fits rounds and size into the share, says what was changed, and returns the rounds; `None` when not even one fits.
    fn shrink_to_fit(&mut self, estimate: &Estimate) -> Result<Option<u32>, Error> {
        let share_s = (self.limits.share_s - self.started.elapsed().as_secs_f64()).max(0.0);
        let left_s = self.limits.left_s - self.started.elapsed().as_secs_f64();
        let Fit { rounds, factor, whole_s } = fit(self.limits.rounds, estimate, share_s);
        let shrunk = factor.map_or(Ok(None), |factor| self.workload.shrink(factor))?;
        let size = shrunk.as_ref().map_or(1.0, |shrunk| shrunk.factor);
        let settled = settle(rounds, estimate, size, share_s, left_s);
        let mut changes = Vec::new();
        if let Some(rounds) = settled.filter(|rounds| *rounds < self.limits.rounds) {
            changes.push(format!("{} instead of {}", counted_rounds(rounds), self.limits.rounds));
        }
        changes.extend(shrunk.map(|shrunk| shrunk.said));
        let whole = format!(
            "the whole would take about {}, and this suite's share of the budget is {}{}",
            in_words(whole_s),
            in_words(self.limits.share_s),
            budget_advice(self.limits.budget_s, whole_s, self.limits.share_s),
        );
        let setup = self.workload.setup();
        let result = self.result();
        result.setup = setup;
        result.rounds_planned = settled.unwrap_or(0);
        match settled {
            None => self.fail(Failure {
                place: None,
                message: format!(
                    "one round of the smallest size takes longer than what is left of the budget: {whole}"
                ),
                hint: Some("run this suite alone, or give more time with `--budget`".to_owned()),
            }),
            Some(_) if !changes.is_empty() => self.say_shrunk(format!("{}: {whole}", changes.join(", "))),
            Some(_) => {}
        }
        self.recorder.save();
        Ok(settled)
    }

    fn drop_places_without_room(&mut self) {
        let needed = self.workload.needed_bytes();
        let mut short = Vec::new();
        for participant in self.places.iter().filter(|participant| participant.is_scratch) {
            self.limits.progress.at(&participant.dir.path);
            match participant.dir.free_bytes() {
                Some(free) if free < needed.saturating_add(SPARE_BYTES) => short.push((participant.index, free)),
                _ => {}
            }
        }
        for (index, free) in &short {
            self.fail(Failure {
                place: Some(*index),
                message: format!(
                    "not enough room: the suite writes {} MB and leaves {} MB free, but only {} MB are there",
                    needed.div_ceil(1 << 20),
                    SPARE_BYTES >> 20,
                    free >> 20
                ),
                hint: Some("make room there, name another directory, or write less (`--bytes`, `--files`)".to_owned()),
            });
        }
        self.places.retain(|participant| short.iter().all(|(index, _)| *index != participant.index));
    }

    /// Looks at the warm-up, the first round of full size, and leaves out rounds that would not fit.
    fn shorten(&mut self, rounds: u32, pass_s: f64) -> u32 {
        let left_s = (self.limits.share_s * OVERTIME - self.started.elapsed().as_secs_f64()).max(0.0);
        let fitted = rounds_left(rounds, pass_s, left_s);
        if fitted < rounds {
            self.say_shrunk(format!(
                "{} instead of {rounds}: one at every place takes {}, and {} of the suite's share are left{}",
                counted_rounds(fitted),
                in_words(pass_s),
                in_words(left_s),
                budget_advice(self.limits.budget_s, pass_s * f64::from(rounds + 1), self.limits.share_s),
            ));
            self.result().rounds_planned = fitted;
        }
        fitted
    }

    fn is_overtime(&self, pass_s: f64) -> bool {
        self.started.elapsed().as_secs_f64() + pass_s > self.limits.share_s * OVERTIME * OVERTIME
    }

    /// Runs one round at every place, forwards and backwards in turn, and returns the seconds that it took.
    fn pass(&mut self, round: u32) -> Result<f64, Error> {
        let began = Instant::now();
        self.at_each_place(
            round % 2 == 1,
            |workload, dir, interrupt| workload.round(dir, interrupt),
            |runner, place, outcome| runner.record(place, round, outcome),
        )?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn record(&mut self, place: usize, round: u32, outcome: Outcome) {
        if outcome.fault.is_some() {
            self.empty(|participant| participant.index == place);
        }
        self.recorder.report.cost.bytes_written += outcome.bytes_written;
        let phases = outcome.phases.into_iter().map(|(phase, elapsed_s)| PhaseTime { phase, elapsed_s }).collect();
        let is_counted = round > 0 && outcome.fault.is_none();
        let round = Round { place, round, phases, proof: outcome.proof, counted: is_counted, why_not: outcome.fault };
        let result = &mut self.recorder.report.suites[self.suite];
        result.rounds.push(round);
        result.figures = figures(&result.rounds, self.workload);
        self.limits.progress.advance(result.rounds.len() as u64);
        self.recorder.save();
    }

    /// Empties the scratch directories of some places; what cannot be removed now is removed, or named, at the end.
    fn empty(&mut self, is_meant: impl Fn(&Participant) -> bool) {
        if !self.workload.is_standing() {
            for participant in self.places.iter().filter(|participant| participant.is_scratch && is_meant(participant))
            {
                self.limits.progress.at(&participant.dir.path);
                empty_dir(&participant.dir.path);
            }
        }
    }

    fn result(&mut self) -> &mut SuiteResult {
        &mut self.recorder.report.suites[self.suite]
    }

    fn say_shrunk(&mut self, what: String) {
        self.result().shrunk.push(what);
    }

    fn fail(&mut self, failure: Failure) {
        self.result().failures.push(failure);
    }

    fn finish(&mut self, is_done: bool) {
        for participant in self.places.iter().filter(|participant| participant.is_scratch) {
            self.limits.progress.at(&participant.dir.path);
            empty_dir(&participant.dir.path);
        }
        let notes = self.workload.notes();
        let result = self.result();
        result.notes = notes;
        result.complete = is_done && result.failures.is_empty();
        self.recorder.save();
    }
}

fn counted_rounds(rounds: u32) -> String {
    if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") }
}

/// Tries growing parts of the work, given as what the whole is divided by, until one takes long enough to tell; returns
/// the seconds of the whole.
pub(super) fn extrapolate(divisors: &[u32], mut part: impl FnMut(u64) -> Result<f64, Error>) -> Result<f64, Error> {
    let mut whole_s = 0.0;
    for divisor in divisors {
        let part_s = part(u64::from(*divisor))?;
        whole_s = part_s * f64::from(*divisor);
        if part_s >= TRIAL_ENOUGH_S {
            break;
        }
    }
    Ok(whole_s)
}

fn empty_dir(path: &Path) {
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let _ = if is_dir { std::fs::remove_dir_all(entry.path()) } else { std::fs::remove_file(entry.path()) };
    }
}
