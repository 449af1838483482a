//! The workload `git_status`: the user's git, in place and in the copy, in turn.

use std::time::{Duration, Instant};

use crate::error::{Error, printable_text};
use crate::measure::copy_side::CopySide;
use crate::measure::objects;
use crate::measure::porcelain;
use crate::measure::private_git::{PrivateGit, StatusMode};
use crate::measure::probe::{Answer, Ask};
use crate::measure::process::{End, run};
use crate::measure::session::{Halt, Session};
use crate::measure::workloads::{Sides, at_least, sample};
use crate::measure::{Method, Sample};

/// Rounds when the user asked for none: enough for an interval by ranks, and no more than that needs.
pub(crate) const MOST_ROUNDS: u32 = 12;
/// Rounds of the copy alone, when the place could not be timed.
const COPY_ALONE_ROUNDS: u32 = 5;
/// Share of the budget for taking over what `git status` names.
const CHANGES_SHARE: f64 = 0.1;
/// Share of the budget for one run with the index as it is, when that makes git read files.
const NOW_SHARE: f64 = 0.25;
/// Objects that are taken over after git missed them; what is known beforehand comes in one go.
const MOST_GAPS: u32 = 16;
/// Share of stale entries from which on the cost of reading them is worth a figure of its own.
const WORTH_SAYING: f64 = 0.01;

/// How a status ended.
enum Status {
    Done { seconds: f64, output: Vec<u8> },
    TimedOut(f64),
    Failed(String),
}

impl Session<'_> {
    /// Times `git status` on both sides and adds the measurement.
    pub(crate) fn git_status(&mut self, place: &PrivateGit, mut copy: Option<&mut CopySide>) -> Result<(), Halt> {
        self.progress.begin("git status", None);
        let mode = StatusMode { is_mended: self.is_stale(), writes_index: false };
        let now = self.status_now(place)?;
        if mode.is_mended {
            Self::set_ahead(place)?;
        }
        let warm_up = self.in_place(place, mode, self.git_limit())?;
        let mut sides = Sides::new("git_status");
        match warm_up {
            Status::Done { output, .. } => {
                if let Some(copy) = copy.as_deref_mut() {
                    self.match_changes(place, copy, &output)?;
                }
                self.rounds(place, copy.as_deref(), mode, &output, &mut sides)?;
            }
            Status::TimedOut(seconds) => {
                sides.place_sample = Some(at_least(seconds));
                sides.note("`git status` did not end within the budget".to_owned());
                self.copy_alone(copy.as_deref(), mode, &mut sides)?;
            }
            Status::Failed(why) => {
                self.note(format!("`git status` failed in place: {why}"));
                self.progress.end();
                return Ok(());
            }
        }
        let mut measurement = sides.finish();
        if let Some(measurement) = &mut measurement {
            measurement.now = now;
        }
        self.outcome.measurements.extend(measurement);
        self.progress.end();
        Ok(())
    }

    /// Times one status with the index as it is, where that is worth a figure of its own.
    fn status_now(&mut self, place: &PrivateGit) -> Result<Option<Sample>, Halt> {
        let stale = self.outcome.stat_dirty.unwrap_or(0) + self.outcome.racy.unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "numbers of entries are far below 2^52")]
        if !self.is_stale() || (stale as f64) < WORTH_SAYING * self.files.paths.len() as f64 {
            return Ok(None);
        }
        let limit = Instant::now() + Duration::try_from_secs_f64(self.share_s(NOW_SHARE)).unwrap_or_default();
        Ok(match self.in_place(place, StatusMode::default(), limit)? {
            Status::Done { seconds, .. } => sample(&[seconds], Method::Run),
            Status::TimedOut(seconds) => Some(at_least(seconds)),
            Status::Failed(_) => None,
        })
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
        let writes_index = self.settings.untracked_cache && self.raw.has_extension(&self.bytes, *b"UNTR");
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
        let copy_git = copy.and_then(|copy| copy.git.as_ref());
        let limit = self.git_limit();
        let wanted = self.request.rounds.unwrap_or(MOST_ROUNDS);
        let mut longest = Duration::ZERO;
        for round in 0..wanted {
            // The first round always starts: without it there is no figure at all.
            if round > 0 && Instant::now() + longest > limit {
                break;
            }
            let started = Instant::now();
            match self.in_place(place, mode, limit)? {
                Status::Done { seconds, output } => {
                    sides.place.push(seconds);
                    sides.is_same &= output == expected;
                }
                Status::TimedOut(seconds) => {
                    if sides.place.is_empty() {
                        sides.place_sample = Some(at_least(seconds));
                    }
                    break;
                }
                Status::Failed(why) => {
                    sides.note(format!("`git status` failed in place: {why}"));
                    break;
                }
            }
            if let Some(git) = copy_git {
                match self.in_copy(git, mode)? {
                    Status::Done { seconds, output } => {
                        sides.copy.push(seconds);
                        sides.compare_output(expected, &output);
                    }
                    Status::TimedOut(_) => break,
                    Status::Failed(why) => {
                        sides.note(format!("`git status` failed in the copy: {why}"));
                        sides.is_same = false;
                        break;
                    }
                }
            }
            longest = longest.max(started.elapsed());
            self.progress.advance(u64::from(round) + 1);
        }
        Ok(())
    }

    fn copy_alone(&mut self, copy: Option<&CopySide>, mode: StatusMode, sides: &mut Sides) -> Result<(), Halt> {
        let Some(copy) = copy else { return Ok(()) };
        self.warm_copy(copy)?;
        let Some(git) = &copy.git else { return Ok(()) };
        for _ in 0..self.request.rounds.unwrap_or(COPY_ALONE_ROUNDS) {
            if Instant::now() >= self.git_limit() && !sides.copy.is_empty() {
                break;
            }
            match self.in_copy(git, mode)? {
                Status::Done { seconds, .. } => sides.copy.push(seconds),
                Status::TimedOut(_) | Status::Failed(_) => break,
            }
        }
        Ok(())
    }

    /// Runs `git status` in place; the time of what it would do in the real git dir is added.
    fn in_place(&mut self, place: &PrivateGit, mode: StatusMode, limit: Instant) -> Result<Status, Halt> {
        let status = self.one(place, mode, limit)?;
        if let Status::Done { seconds, output } = status {
            let fixed_s = match self.ask(&Ask::Fixed)? {
                Answer::Fixed { elapsed_s, .. } => elapsed_s,
                _ => 0.0,
            };
            return Ok(Status::Done { seconds: seconds + fixed_s, output });
        }
        Ok(status)
    }

    fn in_copy(&mut self, git: &PrivateGit, mode: StatusMode) -> Result<Status, Halt> {
        self.one(git, mode, self.deadline)
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
