//! Many requests at a time, as many as the mount turns out to serve.
//!
//! A slow mount hides its latency only when several requests are under way, and how many it serves at once is a
//! property of the mount. So the number is climbed to by measuring: doubled as long as the throughput grows, set back
//! when it does not, tried again now and then. What one pass learned, the next one starts from.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::signals::Interrupt;

/// Requests in flight before anything is known about the mount: enough to see a difference to one, little enough
/// not to disturb a disk.
const FIRST_GUESS: usize = 8;
/// More than any mount was seen to use (git itself uses 20 threads, the FUSE background queue holds 12 by default).
const MAX_IN_FLIGHT: usize = 128;
/// The shortest time that a rate is taken over; scheduling noise is some milliseconds.
const WINDOW: Duration = Duration::from_millis(60);
/// A rate over fewer tasks than this many per worker is mostly chance.
const TASKS_PER_WORKER: u64 = 4;
/// A doubling that gains less than a tenth is not worth its threads, and is within the noise of a short window.
const WORTH_IT: f64 = 1.10;
/// Windows that a found number is kept before its neighbours are tried again.
const HOLD_WINDOWS: u32 = 24;
/// Bytes that count as much as one task: what most filesystems move in a single request.
const BYTES_PER_CREDIT: u64 = 128 * 1024;

/// What is known about how many requests a mount serves at once; lives longer than one pass.
#[derive(Debug)]
pub(super) struct Tuner {
    limit: AtomicUsize,
}

impl Default for Tuner {
    fn default() -> Self {
        Self { limit: AtomicUsize::new(FIRST_GUESS) }
    }
}

impl Tuner {
    /// Returns the number of requests in flight that served best so far.
    #[must_use]
    pub(super) fn in_flight(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
}

/// The work of one pass: what is still to be done, and how much was.
#[derive(Debug)]
pub(super) struct Queue<'a, T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    credits: AtomicU64,
    cancel: &'a Interrupt,
}

#[derive(Debug)]
struct State<T> {
    stack: Vec<T>,
    active: usize,
    limit: usize,
    failed: Option<Error>,
}

impl<T: Send> Queue<'_, T> {
    /// Adds work; the last that was added is done first, which keeps few directories open.
    pub(super) fn push_all(&self, tasks: impl IntoIterator<Item = T>) {
        self.lock().stack.extend(tasks);
        self.changed.notify_all();
    }

    /// Counts bytes that a long task moved, so that it shows in the throughput before it ends.
    pub(super) fn credit_bytes(&self, bytes: u64) {
        self.credits.fetch_add(bytes / BYTES_PER_CREDIT, Ordering::Relaxed);
    }

    /// Returns whether the user asked to stop.
    #[must_use]
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_set()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next task; `None` when all work is done, failed or cancelled.
    fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.failed.is_some() || self.is_cancelled() || (state.stack.is_empty() && state.active == 0) {
                self.changed.notify_all();
                return None;
            }
            if state.active < state.limit
                && let Some(task) = state.stack.pop()
            {
                state.active += 1;
                return Some(task);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, result: Result<(), Error>) {
        let mut state = self.lock();
        state.active -= 1;
        if let Err(error) = result {
            state.failed.get_or_insert(error);
        }
        let is_over = state.failed.is_some() || (state.active == 0 && state.stack.is_empty());
        drop(state);
        self.credits.fetch_add(1, Ordering::Relaxed);
        if is_over {
            self.changed.notify_all();
        } else {
            self.changed.notify_one();
        }
    }

    fn worker(&self, work: &(impl Fn(T, &Self) -> Result<(), Error> + Sync)) {
        while let Some(task) = self.take() {
            self.finish(work(task, self));
        }
    }
}

/// Does all tasks, and those that they add, many at a time.
///
/// # Errors
///
/// The first error of a task, after which no further one is begun; [`Error::Interrupted`] when `cancel` was set.
pub(super) fn run<T: Send>(
    tuner: &Tuner,
    cancel: &Interrupt,
    seeds: Vec<T>,
    work: impl Fn(T, &Queue<'_, T>) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let state = State { stack: seeds, active: 0, limit: tuner.in_flight(), failed: None };
    let queue = Queue { state: Mutex::new(state), changed: Condvar::new(), credits: AtomicU64::new(0), cancel };
    thread::scope(|scope| {
        let mut workers = 0;
        let mut climb = Climb::new(tuner.in_flight());
        loop {
            // Threads come as the limit rises; those above a lowered limit sleep.
            let limit = queue.lock().limit;
            while workers < limit {
                scope.spawn(|| queue.worker(&work));
                workers += 1;
            }
            if wait_window(&queue) {
                break;
            }
            if let Some(limit) = climb.observe(queue.credits.load(Ordering::Relaxed)) {
                queue.lock().limit = limit;
                queue.changed.notify_all();
            }
        }
        tuner.limit.store(climb.best, Ordering::Relaxed);
    });
    let failed = queue.lock().failed.take();
    match failed {
        Some(error) => Err(error),
        None if cancel.is_set() => Err(Error::Interrupted),
        None => Ok(()),
    }
}

/// Waits for the end of a window; returns whether the work is over.
fn wait_window<T: Send>(queue: &Queue<'_, T>) -> bool {
    let end = Instant::now() + WINDOW;
    let mut state = queue.lock();
    loop {
        if state.failed.is_some() || queue.is_cancelled() || (state.stack.is_empty() && state.active == 0) {
            queue.changed.notify_all();
            return true;
        }
        let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
        state = queue.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// The search for the best number: doubling, then halving, then rest.
#[derive(Debug)]
struct Climb {
    best: usize,
    best_rate: f64,
    trying: usize,
    step: Step,
    since: Instant,
    credits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Up,
    Down,
    Hold(u32),
}

impl Climb {
    fn new(start: usize) -> Self {
        Self { best: start, best_rate: 0.0, trying: start, step: Step::Up, since: Instant::now(), credits: 0 }
    }

    /// Takes the credits so far; returns the number to try from now on, `None` to go on as it is.
    fn observe(&mut self, credits: u64) -> Option<usize> {
        let done = credits - self.credits;
        if done < TASKS_PER_WORKER * self.trying as u64 && self.since.elapsed() < WINDOW * 10 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
        let rate = done as f64 / self.since.elapsed().as_secs_f64();
        self.credits = credits;
        self.since = Instant::now();
        self.trying = self.next(rate);
        Some(self.trying)
    }

    fn next(&mut self, rate: f64) -> usize {
        let better = rate > self.best_rate * WORTH_IT;
        match self.step {
            Step::Up if better => {
                (self.best, self.best_rate) = (self.trying, rate);
                if self.best < MAX_IN_FLIGHT {
                    return (self.best * 2).min(MAX_IN_FLIGHT);
                }
                self.step = Step::Hold(HOLD_WINDOWS);
                self.best
            }
            Step::Up => {
                self.step = if self.best > 1 { Step::Down } else { Step::Hold(HOLD_WINDOWS) };
                (self.best / 2).max(1)
            }
            // Fewer threads at the same rate are as good and leave more to others.
            Step::Down if rate * WORTH_IT > self.best_rate && self.trying < self.best => {
                (self.best, self.best_rate) = (self.trying, rate.max(self.best_rate / WORTH_IT));
                if self.best == 1 {
                    self.step = Step::Hold(HOLD_WINDOWS);
                }
                (self.best / 2).max(1)
            }
            Step::Down => {
                self.step = Step::Hold(HOLD_WINDOWS);
                self.best
            }
            Step::Hold(0) => {
                self.best_rate = rate;
                self.step = Step::Up;
                (self.best * 2).min(MAX_IN_FLIGHT)
            }
            Step::Hold(left) => {
                self.step = Step::Hold(left - 1);
                self.best
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the climb a mount that serves `parallel` requests at once and returns where it comes to rest.
    fn settle(parallel: usize) -> usize {
        let mut climb = Climb::new(FIRST_GUESS);
        for _ in 0..20 {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let rate = climb.trying.min(parallel) as f64;
            climb.trying = climb.next(rate);
        }
        climb.best
    }

    #[test]
    fn the_number_in_flight_follows_what_the_mount_serves() {
        assert_eq!(settle(1), 1);
        assert_eq!(settle(8), 8);
        assert_eq!(settle(64), 64);
        assert_eq!(settle(10_000), MAX_IN_FLIGHT);
    }

    #[test]
    fn tasks_that_tasks_add_are_done_too() {
        let done = AtomicU64::new(0);
        let cancel = Interrupt::default();
        run(&Tuner::default(), &cancel, vec![6_u32], |depth, queue| {
            done.fetch_add(1, Ordering::Relaxed);
            if depth > 0 {
                queue.push_all([depth - 1, depth - 1]);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 127);
    }

    #[test]
    fn the_first_failure_stops_the_pass_and_is_returned() {
        let cancel = Interrupt::default();
        let error = run(&Tuner::default(), &cancel, (0..1000).collect(), |number, _| {
            if number == 500 { Err(Error::refused("five hundred", "")) } else { Ok(()) }
        });
        assert_eq!(error.unwrap_err().to_string(), "five hundred");
    }

    #[test]
    fn a_cancelled_pass_ends_as_interrupted() {
        let cancel = Interrupt::default();
        cancel.set();
        assert!(matches!(run(&Tuner::default(), &cancel, vec![1], |_, _| Ok(())), Err(Error::Interrupted)));
    }
}
