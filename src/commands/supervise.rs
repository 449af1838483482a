//! One process that never touches the repository's mount watches another that does.
//!
//! A thread inside a system call on a mount that stopped answering can neither be cancelled nor killed: FUSE and 9p
//! wait for the server's answer, and a process with such a thread cannot even exit. So `check` runs its work in a child
//! of the same program, which reports over a pipe as it goes; the parent keeps the time, and when it runs out it
//! abandons the child and answers with what has arrived so far. Measuring has a probe process of its own for the same
//! reason ([`crate::measure::probe`]), so the parent's clock matters while the child scans.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{EXIT_FAILURE, Error, printable_text};
use crate::progress::Progress;
use crate::report::Report;
use crate::signals::Interrupt;

/// How long the child may take until it begins: it loads rules from the local disk by then, and nothing else.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long the child may take after its answer to remove its copy; what is left then, the next run removes.
const CLEANING_LIMIT: Duration = Duration::from_secs(30);
/// As much of the child's last words as an error shows.
const LAST_WORDS_BYTES: usize = 4096;
/// A bar is drawn ten times a second; more events than that would only cost processor time.
const ADVANCE_PAUSE_MS: u64 = 100;
/// How often the parent looks whether a signal came while it waits.
const POLL: Duration = Duration::from_millis(50);
/// How long an interrupted child may take to remove its temporary data and to send what it has.
const INTERRUPT_GRACE: Duration = Duration::from_secs(3);

/// What the child tells, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The rules are loaded; from now on time counts.
    Started,
    /// A phase of the work begins.
    Begin {
        /// What is done.
        phase: String,
        /// Its steps, where they are known.
        total: Option<u64>,
    },
    /// A phase that moves files begins.
    BeginTransfer {
        /// What is done.
        phase: String,
        /// How many files.
        files: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// So many steps of the phase are done.
    Advance {
        /// Steps.
        done: u64,
    },
    /// So much of the transfer is done.
    Transferred {
        /// Files.
        files: u64,
        /// Bytes.
        bytes: u64,
    },
    /// The phase is over.
    End,
    /// What is known so far; `complete` is false.
    Partial {
        /// The report without the missing parts.
        report: Box<Report>,
    },
    /// From here on the repository's mount is touched only by a probe that the child can abandon itself.
    LeftTheMount,
    /// The end: the whole report.
    Finished {
        /// The report.
        report: Box<Report>,
    },
    /// The end: an error.
    Failed {
        /// Its one line.
        message: String,
        /// Its causes.
        causes: Vec<String>,
        /// What to do next.
        hint: Option<String>,
        /// The exit status that it stands for.
        exit_code: u8,
    },
}

impl Event {
    /// Describes an error for the parent.
    #[must_use]
    pub fn failed(error: &Error) -> Self {
        Self::Failed {
            message: error.to_string(),
            causes: error.causes(),
            hint: error.hint(),
            exit_code: error.exit_code(),
        }
    }
}

/// Writes one event and flushes it.
///
/// # Errors
///
/// [`Error::Output`] when the parent is gone.
pub fn emit(out: &mut dyn Write, event: &Event) -> Result<(), Error> {
    let mut line = serde_json::to_string(event).map_err(|error| Error::Output(error.into()))?;
    line.push('\n');
    // One call, so that events of several threads do not run into each other.
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
}

/// Progress of the child, told to the parent, which alone knows if somebody looks.
#[derive(Debug)]
pub struct Told {
    started: Instant,
    last_advance_ms: AtomicU64,
}

impl Told {
    /// Makes one; nothing is told yet.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now(), last_advance_ms: AtomicU64::new(0) }
    }

    fn tell(event: &Event) {
        // A parent that is gone is noticed when the answer cannot be given.
        let _ = emit(&mut std::io::stdout(), event);
    }

    fn is_time(&self) -> bool {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.last_advance_ms.load(Ordering::Relaxed);
        now >= last.saturating_add(ADVANCE_PAUSE_MS)
            && self.last_advance_ms.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Default for Told {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Told {
    fn begin(&self, phase: &str, total: Option<u64>) {
        Self::tell(&Event::Begin { phase: phase.to_owned(), total });
    }

    fn advance(&self, done: u64) {
        if self.is_time() {
            Self::tell(&Event::Advance { done });
        }
    }

    fn end(&self) {
        Self::tell(&Event::End);
    }

    fn begin_transfer(&self, phase: &str, files: u64, bytes: u64) {
        Self::tell(&Event::BeginTransfer { phase: phase.to_owned(), files, bytes });
    }

    fn transferred(&self, files: u64, bytes: u64) {
        if self.is_time() {
            Self::tell(&Event::Transferred { files, bytes });
        }
    }
}

/// How a supervised run ended.
#[derive(Debug)]
pub enum Outcome {
    /// The child finished.
    Finished(Box<Report>),
    /// The child was abandoned, or a signal came; this is what it had sent by then.
    Partial {
        /// The last partial report.
        report: Option<Box<Report>>,
        /// Whether a signal ended it, and not the deadline.
        is_interrupted: bool,
    },
}

/// A child that gave its answer and may still be removing its copy.
#[derive(Debug)]
pub struct Rest(Option<Child>);

impl Rest {
    /// Waits until the child is gone, so that its temporary data is too when this program ends.
    pub fn wait(self) {
        let Some(mut child) = self.0 else { return };
        let started = Instant::now();
        while started.elapsed() < CLEANING_LIMIT && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Runs `command` (this program with a worker's arguments) and collects what it reports until it has answered, `limit` is
/// over, or a signal comes.
///
/// # Errors
///
/// [`Error::Reported`] when the child failed, [`Error::Io`] when it could not be started, [`Error::Refused`] when it
/// ended without a word.
pub fn supervise(
    command: &mut Command,
    limit: Duration,
    interrupt: &Interrupt,
    progress: &dyn Progress,
) -> Result<(Outcome, Rest), Error> {
    // A group of its own: Ctrl-C reaches the parent alone, which then tells the child in one well-defined way. No
    // descriptor of ours: a child that hangs would keep a pipe open that somebody waits for the end of.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|source| Error::io("start", "/proc/self/exe", source))?;
    let (Some(answers), Some(complaints)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Error::refused("the worker process has no output", "this is a bug in rehome; please report it"));
    };
    let events = read_events(answers);
    let last_words = read_last_words(complaints);
    let mut state = State { child, partial: None, deadline: Some(Instant::now() + START_LIMIT) };
    let mut interrupted_at: Option<Instant> = None;
    loop {
        match events.recv_timeout(POLL) {
            Ok(Event::Finished { report }) => return Ok((Outcome::Finished(report), Rest(Some(state.child)))),
            Ok(Event::Failed { message, causes, hint, exit_code }) => {
                Rest(Some(state.child)).wait();
                return Err(Error::Reported { message, causes, hint, exit_code });
            }
            Ok(Event::Started) => state.deadline = Some(Instant::now() + limit),
            Ok(Event::LeftTheMount) => state.deadline = None,
            Ok(Event::Partial { report }) => state.partial = Some(report),
            Ok(event) => show(&event, progress),
            Err(RecvTimeoutError::Disconnected) if interrupt.is_set() => return Ok(state.abandon(true)),
            Err(RecvTimeoutError::Disconnected) => return Err(state.ended_without_a_word(&last_words)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt.is_set() && interrupted_at.is_none() {
            interrupted_at = Some(Instant::now());
            state.signal(rustix::process::Signal::TERM);
        }
        let is_over = state.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let is_stuck = interrupted_at.is_some_and(|at| at.elapsed() >= INTERRUPT_GRACE);
        if is_over || is_stuck {
            return Ok(state.abandon(interrupted_at.is_some()));
        }
    }
}

fn show(event: &Event, progress: &dyn Progress) {
    match event {
        Event::Begin { phase, total } => progress.begin(phase, *total),
        Event::BeginTransfer { phase, files, bytes } => progress.begin_transfer(phase, *files, *bytes),
        Event::Advance { done } => progress.advance(*done),
        Event::Transferred { files, bytes } => progress.transferred(*files, *bytes),
        _ => progress.end(),
    }
}

/// Reads the child's events on a thread, so that waiting for them can be given up.
fn read_events(pipe: ChildStdout) -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            // A line cut short by the child's death is no event; the end of the pipe then tells the rest.
            let Some(event) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
            if sender.send(event).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Collects the end of what the child says on standard error, which is what a panic leaves.
fn read_last_words(mut pipe: ChildStderr) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut words = Vec::new();
        let mut buffer = [0; LAST_WORDS_BYTES];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            words.extend_from_slice(&buffer[..length]);
            words.drain(..words.len().saturating_sub(LAST_WORDS_BYTES));
        }
        // Nobody listens when the child ended well.
        let _ = sender.send(String::from_utf8_lossy(&words).into_owned());
    });
    receiver
}

struct State {
    child: Child,
    partial: Option<Box<Report>>,
    deadline: Option<Instant>,
}

impl State {
    fn signal(&self, signal: rustix::process::Signal) {
        // The child may be gone already, which is what the signal was for.
        let _ = rustix::process::kill_process_group(rustix::process::Pid::from_child(&self.child), signal);
    }

    /// Kills the child without waiting for it: it may never die. It has made no temporary data while it touches the
    /// mount itself.
    fn abandon(mut self, is_interrupted: bool) -> (Outcome, Rest) {
        self.signal(rustix::process::Signal::KILL);
        // Gone at once unless it hangs in the kernel; then init inherits it.
        let _ = self.child.try_wait();
        (Outcome::Partial { report: self.partial, is_interrupted }, Rest(None))
    }

    fn ended_without_a_word(mut self, last_words: &mpsc::Receiver<String>) -> Error {
        let status = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let words = last_words.recv_timeout(POLL).unwrap_or_default();
        Error::Reported {
            message: format!("the worker process ended early ({status})"),
            causes: words.lines().map(printable_text).collect(),
            hint: Some("this is a bug in rehome, or the system ended it (out of memory?); please report it".to_owned()),
            exit_code: EXIT_FAILURE,
        }
    }
}
