//! Who is served when: counting, delays, the limit on concurrency, injected faults and hangs.
//!
//! A request is handed over by the thread that read it from the kernel and answered by a worker, so that requests wait
//! side by side as they do on a network mount. A request that hangs takes no worker: it is put aside until released.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use globset::{GlobBuilder, GlobMatcher};
use rustix::io::Errno;

use super::calls::{Call, Counts, KINDS};

/// Most requests that can wait side by side; git's preload uses 20 threads.
const MAX_WORKERS: usize = 256;
/// A worker resolves one path and makes one system call.
const WORKER_STACK_BYTES: usize = 256 * 1024;
/// How long a sleeping worker may take to notice that the mount is going away.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// The answer of one request; with an error, the request is refused with it.
pub(crate) type Work = Box<dyn FnOnce(Option<Errno>) + Send>;

/// What happens to a call that a fault matches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// It is answered with this error, after the usual delay.
    Fail(Errno),
    /// It gets no answer until released.
    Hang,
}

struct Fault {
    pattern: GlobMatcher,
    /// Empty for every kind.
    calls: Vec<Call>,
    action: Action,
    /// How many more calls it lets through before it begins.
    skip: u64,
    /// How many more calls it hits; `None` for all.
    left: Option<u64>,
}

struct Job {
    delay: Duration,
    refusal: Option<Errno>,
    work: Work,
}

struct Queue {
    waiting: VecDeque<Job>,
    hung: Vec<Job>,
    delays: [Duration; KINDS],
    /// Most requests served at once; 0 for no limit.
    parallel: usize,
    in_service: usize,
    max_in_service: usize,
    /// The delays that requests were given, added up.
    delayed: Duration,
    workers: usize,
    idle: usize,
    faults: Vec<Fault>,
    trace: Option<Vec<(Call, PathBuf)>>,
}

/// The waiting room of a mount.
pub(crate) struct Server {
    queue: Mutex<Queue>,
    changed: Condvar,
    counts: [AtomicU64; KINDS],
    stopping: AtomicBool,
    /// Whether a fault or a trace needs the path of each call.
    needs_paths: AtomicBool,
}

/// Locks a mutex; the state of this test server stays usable when a thread panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    pub(crate) fn new(delay: Duration, parallel: usize) -> Arc<Server> {
        Arc::new(Server {
            queue: Mutex::new(Queue {
                waiting: VecDeque::new(),
                hung: Vec::new(),
                delays: [delay; KINDS],
                parallel,
                in_service: 0,
                max_in_service: 0,
                delayed: Duration::ZERO,
                workers: 0,
                idle: 0,
                faults: Vec::new(),
                trace: None,
            }),
            changed: Condvar::new(),
            counts: [const { AtomicU64::new(0) }; KINDS],
            stopping: AtomicBool::new(false),
            needs_paths: AtomicBool::new(false),
        })
    }

    /// Counts a call and has `work` answer it: at once on this thread where nothing delays it, else on a worker.
    ///
    /// `path` gives the path of the call relative to the mount point; it is asked only when something needs it.
    pub(crate) fn submit(self: &Arc<Self>, call: Call, path: impl FnOnce() -> PathBuf, work: Work) {
        self.counts[call.index()].fetch_add(1, Ordering::Relaxed);
        let path = self.needs_paths.load(Ordering::Relaxed).then(path);
        let mut queue = locked(&self.queue);
        let mut action = None;
        if let Some(path) = path {
            action = queue.action_for(call, &path);
            if let Some(trace) = &mut queue.trace {
                trace.push((call, path));
            }
        }
        if self.stopping.load(Ordering::Relaxed) {
            drop(queue);
            return work(Some(Errno::NOTCONN));
        }
        let delay = queue.delays[call.index()];
        let job = |refusal| Job { delay, refusal, work };
        match action {
            Some(Action::Hang) => {
                queue.hung.push(job(None));
                return;
            }
            Some(Action::Fail(errno)) => queue.waiting.push_back(job(Some(errno))),
            None if delay.is_zero() && queue.parallel == 0 => {
                queue.begin();
                drop(queue);
                (job(None).work)(None);
                locked(&self.queue).in_service -= 1;
                return;
            }
            None => queue.waiting.push_back(job(None)),
        }
        self.hire(&mut queue);
        drop(queue);
        self.changed.notify_one();
    }

    /// Starts workers until there is one for each waiting request that may be served.
    fn hire(self: &Arc<Self>, queue: &mut Queue) {
        let most = if queue.parallel == 0 { MAX_WORKERS } else { queue.parallel.min(MAX_WORKERS) };
        let wanted = queue.waiting.len().saturating_sub(queue.idle).min(most.saturating_sub(queue.workers));
        for _ in 0..wanted {
            let server = Arc::clone(self);
            let worker = thread::Builder::new().name("slow-mount".to_owned()).stack_size(WORKER_STACK_BYTES);
            // Without another thread the request waits for one that exists.
            if worker.spawn(move || server.work()).is_err() {
                break;
            }
            queue.workers += 1;
        }
    }

    fn work(&self) {
        // The default slack of 50 µs would add to every delay; where it cannot be set, delays are that much longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut queue = locked(&self.queue);
        loop {
            let may_serve = queue.parallel == 0 || queue.in_service < queue.parallel || self.is_stopping();
            if let Some(job) = may_serve.then(|| queue.waiting.pop_front()).flatten() {
                queue.begin();
                queue.delayed += job.delay;
                drop(queue);
                self.nap(job.delay);
                let refusal = if self.is_stopping() { Some(Errno::NOTCONN) } else { job.refusal };
                (job.work)(refusal);
                queue = locked(&self.queue);
                queue.in_service -= 1;
            } else if self.is_stopping() {
                queue.workers -= 1;
                return;
            } else {
                queue.idle += 1;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }

    fn nap(&self, delay: Duration) {
        let end = Instant::now() + delay;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopping() {
                return;
            }
            thread::sleep(left.min(LONGEST_NAP));
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Sets the delay of one kind, or of every kind.
    pub(crate) fn set_delay(&self, call: Option<Call>, delay: Duration) {
        let mut queue = locked(&self.queue);
        match call {
            Some(call) => queue.delays[call.index()] = delay,
            None => queue.delays = [delay; KINDS],
        }
    }

    /// Sets how many requests are served at once; 0 for no limit.
    pub(crate) fn set_parallel(self: &Arc<Self>, parallel: usize) {
        let mut queue = locked(&self.queue);
        queue.parallel = parallel;
        self.hire(&mut queue);
        drop(queue);
        self.changed.notify_all();
    }

    /// Lets calls whose path matches `pattern` and whose kind is in `calls` (empty: every kind) meet `action`: the
    /// first `skip` of them not, then `times` of them, or all.
    pub(crate) fn add_fault(
        &self,
        pattern: &str,
        calls: &[Call],
        action: Action,
        (skip, times): (u64, Option<u64>),
    ) -> io::Result<()> {
        let pattern = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?
            .compile_matcher();
        locked(&self.queue).faults.push(Fault { pattern, calls: calls.to_vec(), action, skip, left: times });
        self.needs_paths.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Removes every fault; what hangs stays so until [`Server::release`].
    pub(crate) fn clear_faults(&self) {
        let mut queue = locked(&self.queue);
        queue.faults.clear();
        self.needs_paths.store(queue.trace.is_some(), Ordering::Relaxed);
    }

    /// Serves the requests that hang, as if they had just arrived.
    pub(crate) fn release(self: &Arc<Self>) {
        let mut queue = locked(&self.queue);
        let hung = std::mem::take(&mut queue.hung);
        queue.waiting.extend(hung);
        self.hire(&mut queue);
        drop(queue);
        self.changed.notify_all();
    }

    /// Returns how many requests hang.
    pub(crate) fn hung(&self) -> usize {
        locked(&self.queue).hung.len()
    }

    /// Returns how many requests are being served or wait for it; those that hang are left out.
    pub(crate) fn pending(&self) -> usize {
        let queue = locked(&self.queue);
        queue.waiting.len() + queue.in_service
    }

    pub(crate) fn counts(&self) -> Counts {
        let queue = locked(&self.queue);
        Counts {
            by_kind: std::array::from_fn(|kind| self.counts[kind].load(Ordering::Relaxed)),
            max_in_service: queue.max_in_service,
            delayed: queue.delayed,
        }
    }

    pub(crate) fn reset_counts(&self) {
        let mut queue = locked(&self.queue);
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
        queue.max_in_service = queue.in_service;
        queue.delayed = Duration::ZERO;
    }

    /// Starts to keep kind and path of every call, from none; or stops it.
    pub(crate) fn set_trace(&self, on: bool) {
        let mut queue = locked(&self.queue);
        queue.trace = on.then(Vec::new);
        self.needs_paths.store(on || !queue.faults.is_empty(), Ordering::Relaxed);
    }

    /// Returns what was traced so far.
    pub(crate) fn trace(&self) -> Vec<(Call, PathBuf)> {
        locked(&self.queue).trace.clone().unwrap_or_default()
    }

    /// Refuses everything that waits, hangs or arrives from now on, as a connection that was cut.
    pub(crate) fn stop(self: &Arc<Self>) {
        self.stopping.store(true, Ordering::Relaxed);
        self.release();
    }
}

impl Queue {
    fn begin(&mut self) {
        self.in_service += 1;
        self.max_in_service = self.max_in_service.max(self.in_service);
    }

    /// Returns what the first fault that matches does, and counts the hit.
    fn action_for(&mut self, call: Call, path: &Path) -> Option<Action> {
        for fault in &mut self.faults {
            let is_meant = fault.calls.is_empty() || fault.calls.contains(&call);
            if fault.left == Some(0) || !is_meant || !fault.pattern.is_match(path) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            if let Some(left) = &mut fault.left {
                *left -= 1;
            }
            return Some(fault.action);
        }
        None
    }
}
