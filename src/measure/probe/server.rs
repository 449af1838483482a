//! The probe's side that makes the calls.

use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, statat};

use crate::measure::Latency;
use crate::measure::dirty::{Match, compare};
use crate::measure::files::{Files, spread};
use crate::measure::probe::{Answer, Ask, Calibration, Setup, copy, fixed, preload, stale, untracked};
use crate::measure::raw_index::RawIndex;
use crate::measure::shape::Shape;
use crate::measure::skeleton::open_dir;
use crate::measure::stats;
use crate::measure::sweep::{Stop, stat_pass, walk_pass};
use crate::signals::Interrupt;

/// Consecutive entries that are taken together: they share directories, as git finds them.
pub const BLOCK: usize = 16;
/// Parts that a distribution is divided into: every 5th percentile.
const QUANTILE_STEPS: u32 = 20;
/// Fewest calls of a calibration; one call tells nothing about a mount.
const FEWEST_CALLS: u64 = 4;

/// Answers requests until the input ends.
///
/// # Errors
///
/// When the other side is gone.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut state: Option<State> = None;
    for line in input.lines() {
        let answer = match serde_json::from_str::<Ask>(&line?) {
            Ok(ask) => answer(&mut state, ask),
            Err(error) => Answer::Failed(format!("the request makes no sense: {error}")),
        };
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

/// Serves what comes on standard input: all that the hidden `__probe` command does.
///
/// # Errors
///
/// When the parent is gone.
pub fn serve_stdin(output: &mut dyn Write) -> io::Result<()> {
    serve(io::stdin().lock(), output)
}

fn answer(state: &mut Option<State>, ask: Ask) -> Answer {
    let result = match (ask, state.as_mut()) {
        (Ask::Open(setup), _) => State::open(&setup).map(|opened| {
            *state = Some(opened);
            Answer::Opened
        }),
        (_, None) => Err("nothing is open".to_owned()),
        (ask, Some(state)) => state.answer(ask),
    };
    result.unwrap_or_else(Answer::Failed)
}

struct State {
    worktree: OwnedFd,
    bytes: Vec<u8>,
    index: RawIndex,
    files: Files,
    sizes: Vec<u32>,
    setup: Setup,
    git_dir: PathBuf,
    common_dir: PathBuf,
    head_ref: Option<String>,
    latencies: Vec<f64>,
    // Never set: the parent ends the probe by killing it.
    never: Interrupt,
}

impl State {
    fn open(setup: &Setup) -> Result<Self, String> {
        let path = |bytes: &[u8]| path_of(bytes).to_owned();
        let bytes = std::fs::read(path(&setup.index)).map_err(|e| format!("cannot read the copied index: {e}"))?;
        let hash = if setup.is_sha256 { gix::hash::Kind::Sha256 } else { gix::hash::Kind::Sha1 };
        let index = RawIndex::parse(&bytes, hash).map_err(|e| e.to_string())?;
        let files = Files::of(&index).map_err(|e| e.to_string())?;
        let worktree = path(&setup.worktree);
        let fd = open_dir(&worktree).map_err(|e| format!("cannot open the worktree: {e}"))?;
        // Paths of the git dir are given relative to here, as git's are.
        let common_dir = fixed::relative_to(&worktree, &path(&setup.common_dir));
        let git_dir = fixed::relative_to(&worktree, &path(&setup.git_dir));
        Ok(Self {
            sizes: sizes(&index, &bytes),
            bytes,
            files,
            index,
            setup: setup.clone(),
            head_ref: fixed::head_ref(fd.as_fd(), &path(&setup.git_dir)),
            worktree: fd,
            git_dir,
            common_dir,
            latencies: Vec::new(),
            never: Interrupt::default(),
        })
    }

    fn stop_after(&self, limit_s: f64) -> Stop<'_> {
        let limit = Duration::try_from_secs_f64(limit_s).unwrap_or_default();
        Stop { at: Instant::now() + limit, flag: &self.never }
    }

    fn answer(&mut self, ask: Ask) -> Result<Answer, String> {
        Ok(match ask {
            Ask::Open(_) => return Err("already open".to_owned()),
            Ask::Calibrate { limit_s } => Answer::Calibrated(self.calibrate(limit_s)),
            Ask::Stat { count, within, leave_out, times_each, limit_s } => {
                let paths = &self.files.paths[..self.files.paths.len().min(within as usize)];
                let list = choose(paths, count as usize, &leave_out);
                let mut pass = stat_pass(
                    self.worktree.as_fd(),
                    &self.index,
                    &self.sizes,
                    &list,
                    times_each,
                    self.stop_after(limit_s),
                );
                self.latencies.extend(pass.latencies.drain(..).map(f64::from));
                Answer::Passed { pass, latency: latency(&self.latencies) }
            }
            Ask::Walk { count, limit_s } => {
                let list = choose_dirs(&self.files, count as usize);
                let pass = walk_pass(
                    self.worktree.as_fd(),
                    &self.index,
                    &self.sizes,
                    &self.files,
                    &list,
                    self.stop_after(limit_s),
                );
                Answer::Passed { pass, latency: None }
            }
            Ask::Copy { paths, into, limit_s } => {
                let into = open_dir(path_of(&into)).map_err(|e| format!("cannot open the skeleton: {e}"))?;
                Answer::Copied(copy::copy(self.worktree.as_fd(), into.as_fd(), &paths, self.stop_after(limit_s)))
            }
            Ask::Preload { limit_s, preloads } => {
                let shape = Shape::of(&self.index, preloads);
                let limit = Duration::try_from_secs_f64(limit_s).unwrap_or_default();
                Answer::Part(preload::sample(self.worktree.as_fd(), &self.index, &shape, limit))
            }
            Ask::Untracked { limit_s, mode, has_cache, skeleton, exclude, excludes_file } => {
                let search = untracked::Search {
                    worktree: self.worktree.as_fd(),
                    index: &self.index,
                    files: &self.files,
                    mode,
                    has_cache,
                    skeleton: skeleton.as_deref().map(path_of),
                    exclude: exclude.as_deref(),
                    excludes_file: excludes_file.as_deref().map(path_of),
                };
                Answer::Part(untracked::sample(search, Duration::try_from_secs_f64(limit_s).unwrap_or_default()))
            }
            Ask::Stale { limit_s, index_mtime_s } => Answer::Stale(stale::sample(
                self.worktree.as_fd(),
                &self.index,
                &self.bytes,
                &self.files,
                self.setup.rules,
                index_mtime_s,
                self.stop_after(limit_s),
            )),
            Ask::Fixed { limit_s } => {
                let worktree = self.worktree.as_fd();
                let (elapsed_s, calls) = fixed::run(
                    worktree,
                    &self.git_dir,
                    &self.common_dir,
                    self.head_ref.as_deref(),
                    Duration::try_from_secs_f64(limit_s).unwrap_or_default(),
                );
                Answer::Fixed { elapsed_s, calls }
            }
        })
    }

    fn calibrate(&self, limit_s: f64) -> Calibration {
        let stop = self.stop_after(limit_s);
        let mut result = Calibration::default();
        let mut total_s = 0.0;
        for turn in spread(self.files.paths.len()) {
            if result.calls >= FEWEST_CALLS && stop.is_now() {
                break;
            }
            let entry = &self.index.entries[self.files.paths[turn as usize] as usize];
            let before = Instant::now();
            let stat = statat(&self.worktree, self.index.c_name(entry), AtFlags::SYMLINK_NOFOLLOW);
            total_s += before.elapsed().as_secs_f64();
            result.calls += 1;
            match stat {
                Err(_) => result.failed += 1,
                Ok(_) if entry.stage() != 0 || entry.is_intent_to_add() => {}
                Ok(stat) => match compare(&self.index, &self.bytes, entry, &stat, self.setup.rules) {
                    Match::Clean => {}
                    Match::Unsure => result.unsure += 1,
                    Match::Modified => result.modified += 1,
                },
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "numbers of calls are far below 2^52")]
        if result.calls > 0 {
            result.mean_s = total_s / result.calls as f64;
        }
        result
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Returns the sizes that the index records, by entry number.
#[must_use]
pub fn sizes(index: &RawIndex, bytes: &[u8]) -> Vec<u32> {
    index.entries.iter().map(|entry| index.stat(bytes, entry).size).collect()
}

/// Chooses about `count` of the listed entries, in blocks spread over all, without `leave_out`; in their own order.
///
/// Both sides call this with the same index, so that they do the same work.
#[must_use]
pub fn choose(paths: &[u32], count: usize, leave_out: &[u32]) -> Vec<u32> {
    let mut chosen = Vec::with_capacity(count.min(paths.len()));
    let blocks = spread(paths.len().div_ceil(BLOCK));
    for block in blocks.iter().take(count.div_ceil(BLOCK)) {
        chosen.extend(paths.iter().skip(*block as usize * BLOCK).take(BLOCK));
    }
    if !leave_out.is_empty() {
        chosen.retain(|number| !leave_out.contains(number));
    }
    chosen.sort_unstable();
    chosen
}

/// Chooses `count` directories, spread over all; in their own order.
#[must_use]
pub fn choose_dirs(files: &Files, count: usize) -> Vec<u32> {
    let mut chosen = spread(files.dirs.len());
    chosen.truncate(count);
    chosen.sort_unstable();
    chosen
}

/// Returns the percentiles of single calls; `None` when there are none.
#[must_use]
pub fn latency(latencies: &[f64]) -> Option<Latency> {
    let sorted = stats::sorted(latencies);
    let steps = 0..=QUANTILE_STEPS;
    Some(Latency {
        count: sorted.len() as u64,
        p50: stats::quantile(&sorted, 0.5)?,
        p95: stats::quantile(&sorted, 0.95)?,
        p99: stats::quantile(&sorted, 0.99)?,
        quantiles: steps
            .filter_map(|step| stats::quantile(&sorted, f64::from(step) / f64::from(QUANTILE_STEPS)))
            .collect(),
    })
}
