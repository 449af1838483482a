//! `git status` in place computed from a sample, where a full one does not fit the budget.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::measure::copy_side::CopySide;
use crate::measure::model::{MOST_DISAGREEMENT, Part, interval};
use crate::measure::probe::stale::Stale;
use crate::measure::probe::untracked::components_of;
use crate::measure::probe::{Answer, Ask, fixed};
use crate::measure::request::Halt;
use crate::measure::session::Session;
use crate::measure::settings::Untracked;
use crate::measure::{Method, Sample};

/// Shares of the sample's time: the preload has more operations, the search for untracked files fewer but in series, so
/// that both weigh about the same where a server works on several requests at once.
const PRELOAD_SHARE: f64 = 0.58;
/// Time for a first guess of the preload, in seconds.
const GUESS_S: f64 = 0.25;
/// Share of the budget for the calls in the git dir.
const FIXED_SHARE: f64 = 0.04;
/// Share of the budget for the same calls in a private git dir; they take a fraction of a millisecond.
const PRIVATE_SHARE: f64 = 0.01;
/// Round trips that a directory costs besides those for the components of its paths: open, stat, two reads, close.
const TRIPS_A_DIRECTORY: f64 = 5.0;
/// Share of the budget for reading stale files.
const STALE_SHARE: f64 = 0.05;
/// Share of stale entries from which on the cost of reading them is worth a figure of its own.
const WORTH_SAYING: f64 = 0.01;

/// What a prediction is put together from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prediction {
    preload: Part,
    untracked: Part,
    /// What git does in the real git dir beyond its work in a private one, and the objects that it reads, in seconds.
    fixed_s: f64,
    /// What git needs beside the mount: the time of the same status in the copy, in seconds.
    rest_s: f64,
}

impl Prediction {
    /// Returns the whole time, in seconds.
    pub(crate) fn total_s(&self) -> f64 {
        self.constant_s() + self.preload.mid_s + self.untracked.mid_s
    }

    fn constant_s(&self) -> f64 {
        self.fixed_s + self.rest_s
    }

    /// Returns the figure with its interval.
    pub(crate) fn sample(&self) -> Sample {
        let mid = self.total_s();
        let sums = |one: &[f64], other: &[f64]| -> Vec<f64> {
            one.iter().zip(other).map(|(one, other)| self.constant_s() + one + other).collect()
        };
        // A part that was not needed has no passes: then the other one's stand alone.
        let pad = |values: &[f64], length: usize, fill: f64| -> Vec<f64> {
            let last = values.last().copied().unwrap_or(fill);
            values.iter().copied().chain(std::iter::repeat(last)).take(length).collect()
        };
        let (preload, untracked) = (&self.preload, &self.untracked);
        let resampled = sums(
            &pad(&preload.resampled_s, crate::measure::model::RESAMPLES, preload.mid_s),
            &pad(&untracked.resampled_s, crate::measure::model::RESAMPLES, untracked.mid_s),
        );
        let length = preload.passes_s.len().max(untracked.passes_s.len());
        let passes =
            sums(&pad(&preload.passes_s, length, preload.mid_s), &pad(&untracked.passes_s, length, untracked.mid_s));
        let (low, high) = interval(mid, &resampled, &passes);
        Sample {
            runs: Vec::new(),
            median: mid,
            low: Some(low),
            high: Some(high),
            method: Method::Predicted,
            sampled_s: Some(preload.sampled_s + untracked.sampled_s),
            latency: None,
        }
    }

    /// Returns what a reader must know about the figure.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let disagreement = self.preload.disagreement().max(self.untracked.disagreement());
        if disagreement > MOST_DISAGREEMENT {
            remarks.push(format!(
                "passes over the same sample differed by {:.0} %, so take it as an order of magnitude",
                disagreement * 100.0
            ));
        }
        if self.untracked.is_bounded {
            remarks.push("large untracked directories were not followed to the end, so it may take longer".to_owned());
        }
        let failed = self.preload.failed + self.untracked.failed;
        if failed > 0 {
            remarks.push(format!("{failed} calls of the sample failed"));
        }
        remarks
    }
}

impl Session<'_> {
    /// Guesses from a short sample how long a full status takes, in seconds.
    pub(crate) fn guess_s(&mut self) -> Result<f64, Halt> {
        let limit_s = GUESS_S.min(self.share_s(0.04));
        let preload = self.sample_preload(limit_s)?;
        Ok(preload.mid_s + self.guess_untracked_s())
    }

    /// Guesses the search for untracked files from the calibration alone.
    #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
    fn guess_untracked_s(&self) -> f64 {
        if self.settings.untracked == Untracked::No {
            return 0.0;
        }
        let length = |number: &u32| {
            let name = self.raw.entries.get(*number as usize).map_or(&[][..], |entry| self.raw.name(entry));
            name.split(|byte| *byte == b'/').count() as f64
        };
        let files = &self.files;
        let components = files.paths.iter().map(length).sum::<f64>() / files.paths.len().max(1) as f64;
        // A stat call resolves each component and asks once more.
        let mean_trip_s = self.calibration.mean_s / (components + 1.0);
        let needed = |dir: usize| components_of(files, dir) as f64 + TRIPS_A_DIRECTORY;
        (0..files.dirs.len()).map(needed).sum::<f64>() * mean_trip_s
    }

    /// Samples both parts until `until` and predicts the whole.
    pub(crate) fn predict(&mut self, copy: Option<&CopySide>, rest_s: f64, until: Instant) -> Result<Prediction, Halt> {
        let left_s = until.saturating_duration_since(Instant::now()).as_secs_f64();
        let preload = self.sample_preload(left_s * PRELOAD_SHARE)?;
        let left_s = until.saturating_duration_since(Instant::now()).as_secs_f64();
        let untracked = self.sample_untracked(copy, left_s)?;
        let fixed_s = self.extra_fixed_s()? + copy.map_or(0.0, |copy| copy.objects_s);
        Ok(Prediction { preload, untracked, fixed_s, rest_s })
    }

    /// Returns what git's work in the real git dir takes beyond that in a private one, in seconds.
    pub(crate) fn extra_fixed_s(&mut self) -> Result<f64, Halt> {
        // Both are timed at once and in the same way, so that they find the processor's caches alike.
        let limit = Duration::try_from_secs_f64(self.share_s(PRIVATE_SHARE)).unwrap_or_default();
        let private = |dir: &PathBuf| fixed::run(rustix::fs::CWD, dir, dir, None, limit).0;
        let private_s = self.place_git_dir.as_ref().map_or(0.0, private);
        Ok((self.fixed_s()? - private_s).max(0.0))
    }

    /// Makes the calls that a status makes in the git dir; returns their time in seconds.
    fn fixed_s(&mut self) -> Result<f64, Halt> {
        let limit_s = self.share_s(FIXED_SHARE);
        Ok(match self.ask(&Ask::Fixed { limit_s })? {
            Answer::Fixed { elapsed_s, .. } => elapsed_s,
            _ => 0.0,
        })
    }

    fn sample_preload(&mut self, limit_s: f64) -> Result<Part, Halt> {
        let preloads = self.settings.preload_index;
        self.part(&Ask::Preload { limit_s, preloads })
    }

    fn sample_untracked(&mut self, copy: Option<&CopySide>, limit_s: f64) -> Result<Part, Halt> {
        let ask = Ask::Untracked {
            limit_s,
            mode: self.settings.untracked,
            has_cache: self.has_untracked_cache(),
            skeleton: copy.map(|copy| copy.root.as_os_str().as_bytes().to_vec()),
            exclude: self.request.profile.info.exclude.clone(),
            excludes_file: excludes_file(self).map(|path| path.as_os_str().as_bytes().to_vec()),
        };
        self.part(&ask)
    }

    fn part(&mut self, ask: &Ask) -> Result<Part, Halt> {
        match self.ask(ask)? {
            Answer::Part(part) => Ok(part),
            _ => Ok(Part::default()),
        }
    }

    /// Returns whether git can use the index's untracked cache: it is there, allowed, made for this place and this mode.
    pub(crate) fn has_untracked_cache(&self) -> bool {
        let place = self.request.profile.worktree.as_os_str().as_bytes();
        self.settings.untracked_cache
            && self.settings.untracked == Untracked::Normal
            && self.raw.extension(&self.bytes, *b"UNTR").is_some_and(|data| {
                // Its first string says `Location <worktree>, system <name>`.
                data.windows(place.len().max(1)).take(64).any(|window| window == place)
            })
    }

    /// Samples what stale entries cost; `None` when there are too few to matter.
    pub(crate) fn stale(&mut self) -> Result<Option<f64>, Halt> {
        let racy = self.outcome.racy.unwrap_or(0);
        let known = self.outcome.stat_dirty.unwrap_or(0) + racy;
        #[expect(clippy::cast_precision_loss, reason = "numbers of entries are far below 2^52")]
        if !self.is_stale() || (known as f64) < WORTH_SAYING * self.files.paths.len() as f64 {
            return Ok(None);
        }
        let index_mtime_s = self.request.profile.index.as_ref().map_or(0, |index| index.mtime.0);
        let ask = Ask::Stale { limit_s: self.share_s(STALE_SHARE), index_mtime_s };
        let Answer::Stale(Stale { looked, stale, mean_s }) = self.ask(&ask)? else { return Ok(None) };
        let files = self.files.paths.len() as u64;
        let estimated = (stale * files).checked_div(looked).unwrap_or(0).max(racy);
        #[expect(clippy::cast_precision_loss, reason = "numbers of entries are far below 2^52")]
        Ok((stale > 0).then_some(mean_s * estimated as f64))
    }
}

/// Returns the file of patterns that the user set, or git's default for it.
fn excludes_file(session: &Session) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    if let Some(value) = session.request.profile.config.string("core.excludesFile") {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&value));
        return match path.strip_prefix("~") {
            Ok(below) => Some(home?.join(below)),
            Err(_) => Some(path),
        };
    }
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or(home.map(|home| home.join(".config")));
    Some(config?.join("git/ignore"))
}
