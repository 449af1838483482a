//! A sample of git's preload: its threads, its ranges, its calls, on the real entries.

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, statat};

use crate::measure::files::spread;
use crate::measure::model::{Cost, Draws, Part, RESAMPLES, Sums, counting, last_end, parallelism};
use crate::measure::probe::server::BLOCK;
use crate::measure::raw_index::RawIndex;
use crate::measure::shape::{Cursor, Shape};

/// Share of the time for calls in series, which tell how many requests the server works on at once.
const SERIAL_SHARE: f64 = 0.12;
/// Share of the rest for the first pass, which may be cold; the second one over the same entries takes as long, and both
/// run over by a call.
const FIRST_SHARE: f64 = 0.42;
/// Fewest recorded calls of a thread in a pass.
const FEWEST_CALLS: usize = 2;

/// What one thread recorded in one pass: sums a block.
type Blocks = Vec<Sums>;

/// Samples the preload for about `limit` and predicts the whole.
#[must_use]
pub fn sample(worktree: BorrowedFd, index: &RawIndex, shape: &Shape, limit: Duration) -> Part {
    let started = Instant::now();
    let threads = shape.ranges.len();
    let serial_limit = if threads > 1 { limit.mul_f64(SERIAL_SHARE) } else { Duration::ZERO };
    let parallel_limit = limit.saturating_sub(serial_limit);
    let left = || parallel_limit.saturating_sub(started.elapsed());
    let first_limit = parallel_limit.mul_f64(FIRST_SHARE);
    let mut passes = vec![pass(worktree, index, shape, &vec![usize::MAX; threads], Some(first_limit))];
    let counts: Vec<usize> = passes[0].threads.iter().map(|thread| thread.calls).collect();
    // The same entries again, as far as the time goes should the mount have become slower.
    passes.push(pass(worktree, index, shape, &counts, Some(left())));
    let first = predict(shape, &passes[0].blocks(), threads_f(threads));
    let second = predict(shape, &passes[1].blocks(), threads_f(threads));
    let is_cold = counting(&[first, second]).len() < 2;
    if is_cold {
        passes.push(pass(worktree, index, shape, &counts, Some(left())));
    }
    let serial = serial(worktree, index, shape, serial_limit);
    let mut part = evaluate(shape, &passes, &serial);
    part.sampled_s = started.elapsed().as_secs_f64();
    part
}

fn evaluate(shape: &Shape, passes: &[Pass], serial: &Sums) -> Part {
    let threads = threads_f(shape.ranges.len());
    let parallel_of = |blocks: &[Sums]| {
        let loaded = Cost::fit(&Sums::total(blocks)).unwrap_or_default();
        if threads > 1.0 { parallelism(serial, loaded, threads) } else { 1.0 }
    };
    let passes_s: Vec<f64> = passes
        .iter()
        .map(|pass| {
            let blocks = pass.blocks();
            predict(shape, &blocks, parallel_of(&blocks))
        })
        .collect();
    let counts = counting(&passes_s).len();
    let blocks: Vec<Sums> = passes[passes.len() - counts..].iter().flat_map(Pass::blocks).collect();
    let parallel = parallel_of(&blocks);
    let mut random = Draws::new(1);
    let resampled_s = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<Sums> = (0..blocks.len()).map(|_| blocks[random.below(blocks.len())]).collect();
            predict(shape, &drawn, parallel)
        })
        .collect();
    Part {
        mid_s: predict(shape, &blocks, parallel),
        passes_s,
        resampled_s,
        sampled_s: 0.0,
        calls: passes.iter().flat_map(|pass| &pass.threads).map(|thread| thread.calls as u64).sum(),
        failed: passes.last().map_or(0, |pass| pass.threads.iter().map(|thread| thread.failed).sum()),
        is_whole: passes[0].is_whole,
        is_bounded: false,
    }
}

/// Returns the time of the whole preload if calls cost what these did.
fn predict(shape: &Shape, blocks: &[Sums], parallelism: f64) -> f64 {
    let cost = Cost::fit(&Sums::total(blocks)).unwrap_or_default();
    let work: Vec<f64> = shape.work.iter().map(|work| cost.of(*work)).collect();
    last_end(&work, parallelism)
}

#[expect(clippy::cast_precision_loss, reason = "there are at most 20 threads")]
fn threads_f(threads: usize) -> f64 {
    threads as f64
}

struct Pass {
    threads: Vec<Thread>,
    is_whole: bool,
}

impl Pass {
    fn blocks(&self) -> Blocks {
        self.threads.iter().flat_map(|thread| thread.blocks.iter().copied()).filter(|block| block.n > 0.0).collect()
    }
}

#[derive(Default)]
struct Thread {
    blocks: Blocks,
    calls: usize,
    failed: u64,
    is_whole: bool,
}

/// What the threads of a pass share: when to stop recording, and who is still recording.
struct Shared {
    deadline: Option<Instant>,
    recording: AtomicUsize,
    is_over: AtomicBool,
}

/// Runs all threads at once, each through its own range, until its count of calls or the limit is met.
///
/// A thread that is done goes on calling until the last one is done, and its first call is not recorded: otherwise the
/// beginning and the end of a pass would be measured under a lighter load than git makes.
fn pass(worktree: BorrowedFd, index: &RawIndex, shape: &Shape, counts: &[usize], limit: Option<Duration>) -> Pass {
    let shared = Shared {
        deadline: limit.map(|limit| Instant::now() + limit),
        recording: AtomicUsize::new(shape.ranges.len()),
        is_over: AtomicBool::new(false),
    };
    let run = |number: usize| one_thread(worktree, index, shape.ranges[number].clone(), counts[number], &shared);
    let threads: Vec<Thread> = if shape.ranges.len() == 1 {
        vec![run(0)]
    } else {
        std::thread::scope(|scope| {
            let run = &run;
            let handles: Vec<_> = (0..shape.ranges.len()).map(|number| scope.spawn(move || run(number))).collect();
            handles.into_iter().map(|handle| handle.join().unwrap_or_default()).collect()
        })
    };
    let is_whole = threads.iter().all(|thread| thread.is_whole);
    Pass { threads, is_whole }
}

fn one_thread(
    worktree: BorrowedFd,
    index: &RawIndex,
    range: std::ops::Range<usize>,
    count: usize,
    shared: &Shared,
) -> Thread {
    let mut thread = Thread::default();
    let mut cursor = Cursor::new(index, range.clone());
    let blocks = spread(range.len().div_ceil(BLOCK));
    let mut is_warm = shared.recording.load(Ordering::Relaxed) == 1;
    let mut is_recording = true;
    'all: loop {
        let mut has_called = false;
        for block in &blocks {
            let start = range.start + *block as usize * BLOCK;
            let mut sums = Sums::default();
            for number in start..(start + BLOCK).min(range.end) {
                let mut is_done = false;
                cursor.calls(number, |path, components| {
                    if is_done || (!is_recording && shared.is_over.load(Ordering::Relaxed)) {
                        return;
                    }
                    has_called = true;
                    let (latency, is_ok) = timed(worktree, path);
                    if !is_recording {
                        return;
                    }
                    if !is_warm {
                        is_warm = true;
                        return;
                    }
                    #[expect(clippy::cast_precision_loss, reason = "paths have few components")]
                    sums.add(components as f64, latency);
                    thread.calls += 1;
                    thread.failed += u64::from(!is_ok);
                    let is_late = shared.deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    is_done = thread.calls >= count || (is_late && thread.calls >= FEWEST_CALLS);
                });
                if is_done {
                    is_recording = false;
                    thread.blocks.push(std::mem::take(&mut sums));
                    if shared.recording.fetch_sub(1, Ordering::Relaxed) == 1 {
                        shared.is_over.store(true, Ordering::Relaxed);
                    }
                }
                if !is_recording && shared.is_over.load(Ordering::Relaxed) {
                    break 'all;
                }
            }
            if is_recording {
                thread.blocks.push(sums);
            }
        }
        // The whole range was visited.
        if is_recording {
            is_recording = false;
            thread.is_whole = true;
            if shared.recording.fetch_sub(1, Ordering::Relaxed) == 1 {
                shared.is_over.store(true, Ordering::Relaxed);
            }
        }
        if shared.is_over.load(Ordering::Relaxed) || !has_called {
            break;
        }
    }
    thread
}

/// Makes calls of all ranges in series.
fn serial(worktree: BorrowedFd, index: &RawIndex, shape: &Shape, limit: Duration) -> Sums {
    let mut sums = Sums::default();
    let deadline = Instant::now() + limit;
    if limit.is_zero() {
        return sums;
    }
    for number in spread(index.entries.len()) {
        let number = number as usize;
        let Some(range) = shape.ranges.iter().find(|range| range.contains(&number)) else { continue };
        let mut cursor = Cursor::new(index, range.clone());
        cursor.calls(number, |path, components| {
            let (latency, _) = timed(worktree, path);
            #[expect(clippy::cast_precision_loss, reason = "paths have few components")]
            sums.add(components as f64, latency);
        });
        if Instant::now() >= deadline {
            break;
        }
    }
    sums
}

fn timed(worktree: BorrowedFd, path: &[u8]) -> (f64, bool) {
    // A path with a NUL cannot be in an index that was parsed: NUL ends the name.
    let path = CString::new(path).unwrap_or_default();
    let before = Instant::now();
    let result = statat(worktree, path.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
    (before.elapsed().as_secs_f64(), result.is_ok())
}
