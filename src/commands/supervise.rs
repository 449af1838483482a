//! One process that never touches the repository's mount watches another that does.
//!
//! A thread inside a system call on a mount that stopped answering can neither be cancelled nor killed: FUSE and 9p
//! wait for the server's answer, and a process with such a thread cannot even exit. So `check` runs its work in a child
//! of the same program, which reports over a pipe as it goes; the parent keeps the time, and when it runs out it
//! abandons the child and answers with what has arrived so far. Measuring has a probe process of its own for the same
//! reason ([`crate::measure::probe`]), so the parent's clock matters while the child scans.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::report::Report;
use crate::signals::Interrupt;

/// How often the parent looks whether a signal came while it waits.
const POLL: Duration = Duration::from_millis(50);
/// How long an interrupted child may take to remove its temporary data and to send what it has.
const INTERRUPT_GRACE: Duration = Duration::from_secs(3);

/// What the child tells, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
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
    let line = serde_json::to_string(event).map_err(|error| Error::Output(error.into()))?;
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::Output)
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

/// Runs `command` (this program with a worker's arguments) and collects what it reports until it ends, `limit` is over,
/// or a signal comes.
///
/// # Errors
///
/// [`Error::Reported`] when the child failed, [`Error::Io`] when it could not be started, [`Error::Refused`] when it
/// ended without a word.
pub fn supervise(command: &mut Command, limit: Duration, interrupt: &Interrupt) -> Result<Outcome, Error> {
    let started = Instant::now();
    // A group of its own: Ctrl-C reaches the parent alone, which then tells the child in one well-defined way.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|source| Error::io("start", "/proc/self/exe", source))?;
    let Some(pipe) = child.stdout.take() else {
        return Err(Error::refused("the worker process has no output", "this is a bug in rehome; please report it"));
    };
    let mut state = State { child, partial: None, deadline: Some(started + limit) };
    let events = read_events(pipe);
    let mut interrupted_at: Option<Instant> = None;
    loop {
        match events.recv_timeout(POLL) {
            Ok(Event::Finished { report }) => {
                state.reap();
                return Ok(Outcome::Finished(report));
            }
            Ok(Event::Failed { message, causes, hint, exit_code }) => {
                state.reap();
                return Err(Error::Reported { message, causes, hint, exit_code });
            }
            Ok(Event::Partial { report }) => state.partial = Some(report),
            Ok(Event::LeftTheMount) => state.deadline = None,
            Err(RecvTimeoutError::Disconnected) => return state.ended_without_a_word(interrupt.is_set()),
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

    fn reap(&mut self) {
        let _ = self.child.wait();
    }

    /// Kills the child without waiting for it: it may never die. It has made no temporary data while it touches the
    /// mount itself.
    fn abandon(mut self, is_interrupted: bool) -> Outcome {
        self.signal(rustix::process::Signal::KILL);
        // Gone at once unless it hangs in the kernel; then init inherits it.
        let _ = self.child.try_wait();
        Outcome::Partial { report: self.partial, is_interrupted }
    }

    fn ended_without_a_word(mut self, is_interrupted: bool) -> Result<Outcome, Error> {
        if is_interrupted {
            return Ok(self.abandon(true));
        }
        let status = self.child.wait().map_err(|source| Error::io("wait for", "/proc/self/exe", source))?;
        Err(Error::refused(
            format!("the worker process ended early ({status})"),
            "this is a bug in rehome, or the system ended it (out of memory?); what it printed is above",
        ))
    }
}
