//! The workload `git_status`: the user's git, in place and in the copy, in turn.

use std::time::{Duration, Instant};

use crate::error::{Error, printable_text};
use crate::measure::copy_side::CopySide;
use crate::measure::load::Reading;
use crate::measure::objects;
use crate::measure::porcelain;
use crate::measure::private_git::{PrivateGit, StatusMode};
use crate::measure::process::{End, run};
use crate::measure::request::Halt;
use crate::measure::session::Session;
use crate::measure::workloads::{Sides, at_least, sample};
use crate::measure::{Measurement, Method, Sample, stats};

/// Rounds when the user asked for none: enough for an interval by ranks, and no more than that needs.
pub(crate) const MOST_ROUNDS: u32 = 12;
/// Rounds of the copy alone, when the place cannot be timed.
const COPY_ALONE_ROUNDS: u32 = 6;
/// Runs in place that have to fit, by the first guess: a warm-up and two rounds.
const FEWEST_RUNS: f64 = 3.0;
/// Share of the budget for taking over what `git status` names.
const CHANGES_SHARE: f64 = 0.1;
/// Share of what is left of the budget for one run with the index as it is, when that makes git read files.
const NOW_SHARE: f64 = 0.25;
/// Share of what is left that the warm-up may take before the prediction needs the rest.
const WARM_UP_SHARE: f64 = 0.6;
/// Share of what is left that the copy's rounds may take when the place is predicted.
const COPY_ALONE_SHARE: f64 = 0.3;
/// Objects that are taken over after git missed them; what is known beforehand comes in one go.
const MOST_GAPS: u32 = 16;
/// Scatter of the copy's rounds from which a reader has to know: on a quiet machine it is a few percent.
const MOST_SCATTER: f64 = 0.25;
/// Stat calls on all files that take less than this, in seconds, need no guess: the status fits.
const SURELY_FITS_S: f64 = 0.1;

/// How a status ended.
enum Status {
    Done { seconds: f64, output: Vec<u8> },
    TimedOut(f64),
    Failed(String),
}

impl Session<'_> {
    /// Times `git status` on both sides, or predicts it in place, and adds the measurement.
    pub(crate) fn git_status(&mut self, place: &PrivateGit, mut copy: Option<&mut CopySide>) -> Result<(), Halt> {
        self.progress.begin("git status", None);
        let mode = StatusMode { is_mended: self.is_stale(), writes_index: false };
        let stale_s = self.stale()?;
        let guess_s = self.first_guess()?;
        let left_s = self.git_left_s();
        let fits = guess_s * FEWEST_RUNS <= left_s;
        let mut sides = Sides::new("git_status");
        let mut now = None;
        if fits {
            now = self.status_now(place, guess_s, stale_s)?;
        }
        if mode.is_mended {
            Self::set_ahead(place)?;
        }
        let is_run = fits && self.run_both(place, copy.as_deref_mut(), mode, &mut sides)?;
        if !is_run {
            self.predict_place(copy.as_deref(), mode, &mut sides)?;
        }
        if let Some(scatter) = stats::scatter(&sides.copy).filter(|scatter| *scatter > MOST_SCATTER) {
            sides.note(format!(
                "the rounds in the copy scatter by {:.0} %, which a quiet machine does not show; run again when it is",
                scatter * 100.0
            ));
        }
        if let Some(mut measurement) = sides.finish() {
            measurement.now = now.or_else(|| stale_s.map(|stale_s| later(&measurement, stale_s)));
            self.outcome.measurements.push(measurement);
        }
        self.progress.end();
        Ok(())
    }

    /// Guesses how long a status takes; 0 where it certainly fits.
    fn first_guess(&mut self) -> Result<f64, Halt> {
        #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
        let all_s = self.calibration.mean_s * self.files.paths.len() as f64;
        if all_s < SURELY_FITS_S { Ok(0.0) } else { self.guess_s() }
    }

    fn git_left_s(&self) -> f64 {
        self.git_limit().saturating_duration_since(Instant::now()).as_secs_f64()
    }

    /// Returns the point in time when a share of what is left is over.
    fn until(&self, share: f64) -> Instant {
        Instant::now() + Duration::try_from_secs_f64(self.git_left_s() * share).unwrap_or_default()
    }

    /// Times one status with the index as it is, where that is worth a figure of its own and fits.
    fn status_now(&mut self, place: &PrivateGit, guess_s: f64, stale_s: Option<f64>) -> Result<Option<Sample>, Halt> {
        let Some(stale_s) = stale_s else { return Ok(None) };
        if guess_s + stale_s > self.git_left_s() * NOW_SHARE {
            return Ok(None);
        }
        let limit = self.until(NOW_SHARE * 2.0);
        Ok(match self.in_place(place, StatusMode::default(), limit)? {
            Status::Done { seconds, .. } => sample(&[seconds], Method::Run),
            Status::TimedOut(_) | Status::Failed(_) => None,
        })
    }

    /// Runs git on both sides; returns whether there is a figure for the place or none can be had.
    fn run_both(
        &mut self,
        place: &PrivateGit,
        mut copy: Option<&mut CopySide>,
        mode: StatusMode,
        sides: &mut Sides,
    ) -> Result<bool, Halt> {
        match self.in_place(place, mode, self.until(WARM_UP_SHARE))? {
            Status::Done { output, .. } => {
                if let Some(copy) = copy.as_deref_mut() {
                    self.match_changes(place, copy, &output)?;
                }
                self.rounds(place, copy.as_deref(), mode, &output, sides)?;
                Ok(!sides.place.is_empty())
            }
            Status::TimedOut(_) => Ok(false),
            Status::Failed(why) => {
                self.note(format!("`git status` failed in place: {why}"));
                Ok(true)
            }
        }
    }

    /// Predicts the place's time, and times the copy.
    fn predict_place(&mut self, copy: Option<&CopySide>, mode: StatusMode, sides: &mut Sides) -> Result<(), Halt> {
        if sides.copy.is_empty() {
            self.copy_alone(copy, mode, sides)?;
        }
        let rest_s = stats::median(&sides.copy).unwrap_or(0.0);
        let prediction = self.predict(copy, rest_s, self.git_limit())?;
        sides.place.clear();
        sides.place_sample = Some(prediction.sample());
        for remark in prediction.remarks() {
            sides.note(remark);
        }
        if copy.is_some_and(|copy| !copy.facts.has_changes) {
            sides.note("the copy stands for a clean worktree".to_owned());
        }
        Ok(())
    }

    /// Takes over what the status in place named, and runs the copy's first status.
    fn match_changes(&mut self, place: &PrivateGit, copy: &mut CopySide, output: &[u8]) -> Result<(), Halt> {
        if copy.facts.is_whole && !copy.facts.has_own_commit {
            let changes = porcelain::parse(output);
            copy.take_changes(self, place, &changes, self.share_s(CHANGES_SHARE))?;
            self.outcome.copy = Some(copy.facts.clone());
        }
        self.fill_gaps(place, copy)?;
        self.warm_copy(copy)
    }

    /// Takes over objects that git misses in the copy, one after the other, as its messages name them.
    fn fill_gaps(&mut self, place: &PrivateGit, copy: &CopySide) -> Result<(), Halt> {
        let Some(git) = &copy.git else { return Ok(()) };
        let limit = Instant::now() + Duration::try_from_secs_f64(self.share_s(CHANGES_SHARE)).unwrap_or_default();
        for _ in 0..MOST_GAPS {
            let Status::Failed(why) = self.in_copy(git, StatusMode::default())? else { break };
            let ids = objects::ids_in(&why);
            if ids.is_empty() || Instant::now() >= limit {
                break;
            }
            objects::take(place, git, &ids, limit, self.interrupt)?;
        }
        Ok(())
    }

    /// Runs the copy's status once; with an untracked cache in the index, git fills the copy's own.
    fn warm_copy(&mut self, copy: &CopySide) -> Result<(), Halt> {
        let Some(git) = &copy.git else { return Ok(()) };
        let writes_index = self.settings.untracked_cache && self.raw.extension(&self.bytes, *b"UNTR").is_some();
        let mode = StatusMode { is_mended: self.is_stale(), writes_index };
        self.in_copy(git, mode)?;
        if writes_index {
            Self::set_ahead(git)?;
        }
        Ok(())
    }

    /// Runs both sides in turn until there are enough rounds or the time is over.
    fn rounds(
        &mut self,
        place: &PrivateGit,
        copy: Option<&CopySide>,
        mode: StatusMode,
        expected: &[u8],
        sides: &mut Sides,
    ) -> Result<(), Halt> {
        let limit = self.git_limit();
        let mut longest = Duration::ZERO;
        for round in 0..self.request.rounds.unwrap_or(MOST_ROUNDS) {
            // The first round always starts: without it there is no figure at all.
            if round > 0 && Instant::now() + longest > limit {
                break;
            }
            let started = Instant::now();
            // Each side begins every other round, so that neither profits from what the other leaves in the caches.
            let is_copy_first = round % 2 == 1;
            if is_copy_first && !self.copy_round(copy, mode, expected, sides)? {
                break;
            }
            if !self.place_round(place, mode, expected, sides)? {
                break;
            }
            if !is_copy_first && !self.copy_round(copy, mode, expected, sides)? {
                break;
            }
            longest = longest.max(started.elapsed());
            self.progress.advance(u64::from(round) + 1);
        }
        Ok(())
    }

    /// Runs the place's side of a round; returns whether another round makes sense.
    fn place_round(
        &mut self,
        place: &PrivateGit,
        mode: StatusMode,
        expected: &[u8],
        sides: &mut Sides,
    ) -> Result<bool, Halt> {
        match self.in_place(place, mode, self.git_limit())? {
            Status::Done { seconds, output } => {
                sides.place.push(seconds);
                sides.compare_output(expected, &output, "in place than before");
                Ok(true)
            }
            Status::TimedOut(seconds) => {
                if sides.place.is_empty() {
                    sides.place_sample = Some(at_least(seconds));
                }
                Ok(false)
            }
            Status::Failed(why) => {
                sides.note(format!("`git status` failed in place: {why}"));
                Ok(false)
            }
        }
    }

    /// Runs the copy's side of a round; returns whether another round makes sense.
    fn copy_round(
        &mut self,
        copy: Option<&CopySide>,
        mode: StatusMode,
        expected: &[u8],
        sides: &mut Sides,
    ) -> Result<bool, Halt> {
        let Some(copy) = copy else { return Ok(true) };
        let Some(git) = &copy.git else { return Ok(true) };
        match self.in_copy(git, mode)? {
            Status::Done { seconds, output } => {
                sides.copy.push(copy.scaled(seconds));
                sides.compare_output(expected, &output, "in the copy");
                Ok(true)
            }
            Status::TimedOut(_) => Ok(false),
            Status::Failed(why) => {
                sides.note(format!("`git status` failed in the copy: {why}"));
                sides.is_same = false;
                Ok(false)
            }
        }
    }

    fn copy_alone(&mut self, copy: Option<&CopySide>, mode: StatusMode, sides: &mut Sides) -> Result<(), Halt> {
        let Some(copy) = copy else { return Ok(()) };
        let until = self.until(COPY_ALONE_SHARE);
        self.warm_copy(copy)?;
        let Some(git) = &copy.git else { return Ok(()) };
        for _ in 0..self.request.rounds.unwrap_or(COPY_ALONE_ROUNDS) {
            if Instant::now() >= until && sides.copy.len() > 1 {
                break;
            }
            match self.in_copy(git, mode)? {
                Status::Done { seconds, .. } => sides.copy.push(copy.scaled(seconds)),
                Status::TimedOut(_) => break,
                Status::Failed(why) => {
                    sides.note(format!("`git status` failed in the copy: {why}"));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs `git status` in place; the time of what it would do in the real git dir takes the place of that in the private
    /// one.
    fn in_place(&mut self, place: &PrivateGit, mode: StatusMode, limit: Instant) -> Result<Status, Halt> {
        let status = self.one(place, mode, limit)?;
        if let Status::Done { seconds, output } = status {
            return Ok(Status::Done { seconds: seconds + self.extra_fixed_s()?, output });
        }
        Ok(status)
    }

    fn in_copy(&mut self, git: &PrivateGit, mode: StatusMode) -> Result<Status, Halt> {
        let before = Reading::now();
        let result = self.one(git, mode, self.deadline);
        if let (Some(before), Some(after)) = (before, Reading::now()) {
            self.load.add(before, after);
        }
        result
    }

    fn one(&self, git: &PrivateGit, mode: StatusMode, limit: Instant) -> Result<Status, Halt> {
        match run(git.status(mode), Vec::new(), limit, self.interrupt) {
            Ok(End::Done(run)) if run.status.success() => {
                Ok(Status::Done { seconds: run.elapsed.as_secs_f64(), output: run.stdout })
            }
            Ok(End::Done(run)) => {
                let text = String::from_utf8_lossy(&run.stderr);
                let line = text.lines().next().unwrap_or("it said nothing");
                Ok(Status::Failed(printable_text(line)))
            }
            Ok(End::TimedOut(elapsed)) => Ok(Status::TimedOut(elapsed.as_secs_f64())),
            Ok(End::Interrupted) => Err(Halt::Interrupted),
            Err(error) => Err(Halt::Failed(Error::io("run git in", git.dir(), error))),
        }
    }
}

/// Returns the place's figure with the time for reading stale files added.
fn later(measurement: &Measurement, stale_s: f64) -> Sample {
    let base = &measurement.in_place;
    Sample {
        runs: Vec::new(),
        median: base.median + stale_s,
        low: base.low.map(|low| low + stale_s),
        high: base.high.map(|high| high + stale_s),
        method: if base.method == Method::AtLeast { Method::AtLeast } else { Method::Predicted },
        sampled_s: base.sampled_s,
        latency: None,
    }
}
