//! The workloads `stat` and `walk`, and what both sides' runs make together.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::measure::copy_side::CopySide;
use crate::measure::porcelain;
use crate::measure::probe::server::{choose, choose_dirs, latency, sizes};
use crate::measure::probe::{Answer, Ask};
use crate::measure::raw_index::RawIndex;
use crate::measure::request::Halt;
use crate::measure::session::Session;
use crate::measure::stats::{Estimate, estimate, speedup};
use crate::measure::status::MOST_ROUNDS;
use crate::measure::sweep::{Pass, Stop, stat_pass, walk_pass};
use crate::measure::{Latency, Measurement, Method, STAT, Sample};

/// Passes that the number of files is chosen for: a warm-up and six rounds, the fewest for an interval by ranks.
const PLANNED_PASSES: f64 = 7.0;
/// Fewest files of a pass, however slow the mount.
const FEWEST_FILES: usize = 16;
/// Fewest directories of a pass: each costs as much as all the files in it.
const FEWEST_DIRS: usize = 4;
/// Mean time of a call from which on timing each call does not change the sum, in seconds (the clock takes 50 ns).
const SLOW_CALL_S: f64 = 50e-6;
/// Calls that listing a directory takes besides one for each entry: open, read twice.
const CALLS_A_DIRECTORY: f64 = 3.0;

/// The runs of one workload on both sides.
#[derive(Debug)]
pub(crate) struct Sides {
    workload: &'static str,
    pub(crate) place: Vec<f64>,
    pub(crate) copy: Vec<f64>,
    pub(crate) place_sample: Option<Sample>,
    pub(crate) is_same: bool,
    pub(crate) operations: Option<u64>,
    pub(crate) failed: Option<u64>,
    pub(crate) place_latency: Option<Latency>,
    pub(crate) copy_latency: Option<Latency>,
    notes: Vec<String>,
}

impl Sides {
    pub(crate) fn new(workload: &'static str) -> Self {
        Self {
            workload,
            place: Vec::new(),
            copy: Vec::new(),
            place_sample: None,
            is_same: true,
            operations: None,
            failed: None,
            place_latency: None,
            copy_latency: None,
            notes: Vec::new(),
        }
    }

    /// Adds a sentence once.
    pub(crate) fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Compares git's output with the first one in place and notes the first difference; `when` ends the sentence.
    pub(crate) fn compare_output(&mut self, first: &[u8], output: &[u8], when: &str) {
        if first == output {
            return;
        }
        self.is_same = false;
        let (here, there) = (porcelain::parse(first), porcelain::parse(output));
        let differing = here.iter().find(|c| !there.contains(c)).or_else(|| there.iter().find(|c| !here.contains(c)));
        let path = differing.map_or_else(String::new, |change| format!(", first at `{}`", shown(change.path)));
        self.note(format!("`git status` gave another answer {when}{path}"));
    }

    /// Compares a round in place with what the rounds before it found, and notes what is otherwise now.
    fn compare_rounds(&mut self, index: &RawIndex, first: &Pass, later: &Pass) {
        let comes = later.odd.iter().find(|number| !first.odd.contains(number));
        let goes = first.odd.iter().find(|number| !later.odd.contains(number));
        if let Some(entry) = comes.or(goes).and_then(|number| index.entries.get(*number as usize)) {
            self.is_same = false;
            self.note(format!("`{}` was not the same in every round", shown(index.name(entry))));
        }
        if first.failed != later.failed {
            self.is_same = false;
            self.note("the mount reported errors in some rounds and not in others".to_owned());
        }
    }

    fn say_what_failed(&mut self) {
        if let (Some(failed), Some(done)) = (self.failed, self.operations)
            && failed > 0
        {
            self.note(format!("could not measure {failed} of {} files: the mount reported errors", done + failed));
        }
    }

    /// Puts the runs together; `None` when there is nothing from the place.
    pub(crate) fn finish(self) -> Option<Measurement> {
        let mut in_place = self.place_sample.or_else(|| sample(&self.place, Method::Run))?;
        in_place.latency = self.place_latency;
        let mut in_copy = sample(&self.copy, Method::Run);
        if let Some(copy) = &mut in_copy {
            copy.latency = self.copy_latency;
        }
        let is_comparable = self.is_same && in_place.method != Method::AtLeast;
        let both = in_copy.as_ref().filter(|_| is_comparable);
        Some(Measurement {
            workload: self.workload.to_owned(),
            unit: "s".to_owned(),
            speedup: both.and_then(|copy| speedup(&estimate_of(&in_place), &estimate_of(copy))),
            saved_s: both.map(|copy| in_place.median - copy.median),
            same_work: in_copy.is_some() && is_comparable,
            in_place,
            in_copy,
            now: None,
            operations: self.operations,
            failed: self.failed.filter(|failed| *failed > 0),
            note: (!self.notes.is_empty()).then(|| self.notes.join("; ")),
        })
    }
}

fn shown(name: &[u8]) -> String {
    crate::error::printable_text(&String::from_utf8_lossy(name))
}

/// Says that a measurement's figures were computed from a part.
fn mark_as_predicted(measurement: &mut Measurement) {
    for sample in [Some(&mut measurement.in_place), measurement.in_copy.as_mut()].into_iter().flatten() {
        sample.method = Method::Predicted;
        sample.runs.clear();
    }
}

fn estimate_of(sample: &Sample) -> Estimate {
    Estimate { mid: sample.median, interval: sample.low.zip(sample.high) }
}

/// Returns the sample of these runs; `None` when there are none.
pub(crate) fn sample(runs: &[f64], method: Method) -> Option<Sample> {
    let estimate = estimate(runs)?;
    Some(Sample {
        runs: runs.to_vec(),
        median: estimate.mid,
        low: estimate.interval.map(|(low, _)| low),
        high: estimate.interval.map(|(_, high)| high),
        method,
        sampled_s: None,
        latency: None,
    })
}

/// Returns a lower bound.
pub(crate) fn at_least(seconds: f64) -> Sample {
    Sample {
        runs: Vec::new(),
        median: seconds,
        low: None,
        high: None,
        method: Method::AtLeast,
        sampled_s: None,
        latency: None,
    }
}

/// Returns whether an error number says that there is no such file: one that the user deleted is no fault of the mount.
fn is_absence(errno: i32) -> bool {
    [Errno::NOENT, Errno::NOTDIR].iter().any(|absence| absence.raw_os_error() == errno)
}

/// Returns how many items fit into a share of the budget, at least `fewest`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "negative and huge values are clamped")]
fn affordable(share_s: f64, item_s: f64, fewest: usize, all: usize) -> usize {
    let fitting = share_s / PLANNED_PASSES / item_s.max(1e-9);
    (fitting as usize).max(fewest).min(all)
}

impl Session<'_> {
    /// Times stat calls on tracked files, one by one in series, and adds the measurement.
    pub(crate) fn stat(&mut self, copy: Option<&CopySide>) -> Result<(), Halt> {
        self.progress.begin("stat", None);
        let share_s = self.workload_share_s();
        let limit = Instant::now() + Duration::try_from_secs_f64(share_s).unwrap_or_default();
        let within = copy.map_or(self.files.paths.len(), |copy| copy.files().min(self.files.paths.len()));
        let count = affordable(share_s, self.calibration.mean_s, FEWEST_FILES, within);
        let warm_up = self.place_stat(count, within, &[], false)?.0;
        let mut sides = Sides::new(STAT);
        sides.failed = Some(warm_up.failed.iter().filter(|(_, errno)| !is_absence(*errno)).count() as u64);
        let leave_out: Vec<u32> = warm_up.failed.iter().map(|(number, _)| *number).chain(warm_up.odd).collect();
        let list = choose(&self.files.paths[..within], count, &leave_out);
        sides.operations = Some(list.len() as u64);
        if list.len() < self.files.paths.len() {
            sides.note(format!("{} of {} files, spread over the index", list.len(), self.files.paths.len()));
        }
        let is_slow = self.calibration.mean_s >= SLOW_CALL_S;
        let copied = copy.map(|copy| (copy, sizes(&self.raw, &copy.skeleton.index)));
        if !is_slow {
            sides.place_latency = self.place_stat(count, within, &leave_out, true)?.1;
        }
        if let Some((copy, sizes)) = &copied {
            let pass = self.copy_stat(copy, sizes, &list, true);
            let latencies: Vec<f64> = pass.latencies.iter().map(|latency| f64::from(*latency)).collect();
            sides.copy_latency = latency(&latencies);
        }
        let mut longest = Duration::ZERO;
        for round in 0..self.request.rounds.unwrap_or(MOST_ROUNDS) {
            if round > 0 && Instant::now() + longest > limit {
                break;
            }
            let started = Instant::now();
            let (pass, latency) = self.place_stat(count, within, &leave_out, is_slow)?;
            if pass.is_cut {
                break;
            }
            sides.is_same &= pass.done == list.len() as u64;
            // What was odd in the warm-up is left out of every round.
            sides.compare_rounds(&self.raw, &Pass::default(), &pass);
            sides.place.push(pass.per_operation_s());
            sides.place_latency = latency.or(sides.place_latency);
            if let Some((copy, sizes)) = &copied {
                let pass = self.copy_stat(copy, sizes, &list, false);
                sides.is_same &= pass.odd.is_empty() && pass.failed.is_empty();
                sides.copy.push(pass.per_operation_s());
            }
            longest = longest.max(started.elapsed());
            self.progress.advance(u64::from(round) + 1);
        }
        sides.say_what_failed();
        self.outcome.measurements.extend(sides.finish());
        self.progress.end();
        Ok(())
    }

    fn place_stat(
        &mut self,
        count: usize,
        within: usize,
        leave_out: &[u32],
        times_each: bool,
    ) -> Result<(Pass, Option<Latency>), Halt> {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let limit_s = self.pass_limit_s();
        let leave_out = leave_out.to_vec();
        let ask = Ask::Stat { count: number(count), within: number(within), leave_out, times_each, limit_s };
        self.passed(&ask)
    }

    /// Returns how long one pass may take: it is planned to take a seventh of the share, and may take the whole.
    fn pass_limit_s(&self) -> f64 {
        self.workload_share_s()
    }

    fn passed(&mut self, ask: &Ask) -> Result<(Pass, Option<Latency>), Halt> {
        match self.ask(ask)? {
            Answer::Passed { pass, latency } => Ok((pass, latency)),
            _ => Ok((Pass::default(), None)),
        }
    }

    fn copy_stat(&self, copy: &CopySide, sizes: &[u32], list: &[u32], times_each: bool) -> Pass {
        let stop = Stop { at: self.deadline, flag: self.interrupt };
        stat_pass(copy.fd.as_fd(), &self.raw, sizes, list, times_each, stop)
    }

    /// Times walking through tracked directories and adds the measurement.
    pub(crate) fn walk(&mut self, copy: Option<&CopySide>) -> Result<(), Halt> {
        if copy.is_some_and(|copy| !copy.facts.is_whole) {
            self.note("the walk was not measured: the copy is not whole");
            return Ok(());
        }
        self.progress.begin("walk", None);
        let share_s = self.workload_share_s();
        let limit = Instant::now() + Duration::try_from_secs_f64(share_s).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
        let calls = self.files.paths.len() as f64 / self.files.dirs.len() as f64 + CALLS_A_DIRECTORY;
        let count = affordable(share_s, self.calibration.mean_s * calls, FEWEST_DIRS, self.files.dirs.len());
        let ask = Ask::Walk { count: u32::try_from(count).unwrap_or(u32::MAX), limit_s: self.pass_limit_s() };
        let list = choose_dirs(&self.files, count);
        let warm_up = self.passed(&ask)?.0;
        let mut sides = Sides::new("walk");
        sides.operations = Some(warm_up.done);
        let whole = self.files.dirs.len() as u64 + self.files.paths.len() as u64;
        // A part stands for the whole in proportion to its operations.
        #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
        let factor = whole as f64 / warm_up.done.max(1) as f64;
        let is_part = list.len() < self.files.dirs.len();
        if is_part {
            sides.note(format!("from {} of {} directories, spread over all", list.len(), self.files.dirs.len()));
        }
        let copied = copy.map(|copy| (copy, sizes(&self.raw, &copy.skeleton.index)));
        let copy_warm_up = copied.as_ref().map(|(copy, sizes)| self.copy_walk(copy, sizes, &list));
        let mut longest = Duration::ZERO;
        for round in 0..self.request.rounds.unwrap_or(MOST_ROUNDS) {
            if round > 0 && Instant::now() + longest > limit {
                break;
            }
            let started = Instant::now();
            let pass = self.passed(&ask)?.0;
            if pass.is_cut {
                break;
            }
            // Files that the user changed are odd in every round, and cost what others do.
            sides.compare_rounds(&self.raw, &warm_up, &pass);
            sides.place.push(pass.elapsed_s * factor);
            if let (Some((copy, sizes)), Some(copy_warm_up)) = (&copied, &copy_warm_up) {
                let copy_pass = self.copy_walk(copy, sizes, &list);
                // Files that were deleted in place fail there; the copy has to miss the same ones.
                sides.is_same &= copy_pass.done == pass.done && copy_pass.failed == pass.failed;
                sides.is_same &= copy_pass.odd == copy_warm_up.odd;
                sides.copy.push(copy_pass.elapsed_s * factor);
            }
            longest = longest.max(started.elapsed());
            self.progress.advance(u64::from(round) + 1);
        }
        let mut measurement = sides.finish();
        if is_part && let Some(measurement) = &mut measurement {
            mark_as_predicted(measurement);
        }
        self.outcome.measurements.extend(measurement);
        self.progress.end();
        Ok(())
    }

    fn copy_walk(&self, copy: &CopySide, sizes: &[u32], list: &[u32]) -> Pass {
        let stop = Stop { at: self.deadline, flag: self.interrupt };
        walk_pass(copy.fd.as_fd(), &self.raw, sizes, &self.files, list, stop)
    }
}
