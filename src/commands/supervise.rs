//! One process that never touches a mount watches another that does.
//!
//! A thread inside a system call on a mount that stopped answering can neither be cancelled nor killed: FUSE and 9p
//! wait for the server's answer, and a process with such a thread cannot even exit. So `check`, `bench` and `move` run
//! their work in a child of the same program, which reports over a pipe as it goes; the parent keeps the time and
//! listens for signals, and when the child does not come back it abandons it and answers with what has arrived so far.
//!
//! A child that is late may be slow and not stuck: `check` gives it up at once, since it has left nothing behind by
//! then; where something has to be removed or a copy to be completed, the child is given up only when it shows no
//! sign of life any more.

mod life;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{EXIT_FAILURE, EXIT_INTERRUPTED, Error, printable_text};
use crate::progress::Progress;
use crate::signals::Interrupt;
use life::Watch;

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
/// How long an interrupted child may take to remove its temporary data and to send what it has; with
/// [`Patience::WhileAlive`], how long it may stand still.
const INTERRUPT_GRACE: Duration = Duration::from_secs(3);
/// The child's line of an answer that means yes.
const YES: &str = "yes";

/// What the child tells, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<R> {
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
    /// The next calls go to this directory.
    At {
        /// Where, as text for a person.
        place: String,
    },
    /// A temporary directory was made, which has to be removed when the child cannot do it itself.
    Made {
        /// Where.
        path: PathBuf,
    },
    /// What is known so far; `complete` is false.
    Partial {
        /// The report without the missing parts.
        report: Box<R>,
    },
    /// From here on the repository's mount is touched only by a probe that the child can abandon itself.
    LeftTheMount,
    /// From here on the child touches the mount itself, and makes temporary data.
    OnTheMount {
        /// How long it may take, in seconds; afterwards it is given up as soon as it stands still.
        limit_s: f64,
    },
    /// The end: the whole report.
    Finished {
        /// The report.
        report: Box<R>,
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

impl<R> Event<R> {
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
pub fn emit<R: Serialize>(out: &mut dyn Write, event: &Event<R>) -> Result<(), Error> {
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

    fn tell(event: &Event<()>) {
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

    fn at(&self, place: &Path) {
        Self::tell(&Event::At { place: place.to_string_lossy().into_owned() });
    }

    fn made(&self, path: &Path) {
        Self::tell(&Event::Made { path: path.to_path_buf() });
    }
}

/// Lets the child end with its parent, by this signal: nobody reads its answer any more then.
///
/// # Errors
///
/// [`Error::Io`] when the system refuses.
pub fn end_with_parent(signal: Signal) -> Result<(), Error> {
    rustix::process::set_parent_process_death_signal(Some(signal))
        .map_err(|error| Error::io("watch the parent of", "/proc/self", error.into()))
}

/// Waits for the parent's answer to the last [`Event::Partial`]; the child's side. A parent that is gone says no.
#[must_use]
pub fn is_told_to_go_on() -> bool {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).is_ok() && line.trim_end() == YES
}

/// What becomes of a child whose time is over, or that was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It is given up when its time is over, whatever it does.
    None,
    /// It is given up when its time is over and it stands still, so that it can remove what it made.
    WhileAlive,
}

/// How a supervised run ended.
#[derive(Debug)]
pub enum Outcome<R> {
    /// The child finished.
    Finished(Box<R>),
    /// The child was abandoned, or a signal came; this is what it had sent by then.
    Partial {
        /// The last partial report.
        report: Option<Box<R>>,
        /// Whether a signal ended it, and not the deadline.
        is_interrupted: bool,
        /// The directory that it stands still in; absent when it ended by itself, or named none.
        stuck_at: Option<String>,
        /// Temporary directories that it made and could not remove.
        left: Vec<PathBuf>,
    },
}

/// A child that gave its answer and may still be removing its copy.
#[derive(Debug)]
pub struct Rest(Option<Child>);

impl Rest {
    /// Waits until the child is gone, so that its temporary data is too when this program ends.
    pub fn wait(self) {
        self.wait_for(CLEANING_LIMIT);
    }

    fn wait_for(self, limit: Duration) {
        let Some(mut child) = self.0 else { return };
        let started = Instant::now();
        while started.elapsed() < limit && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What a parent does while it waits.
pub struct Terms<'a, R> {
    /// How long the child may take from the moment that it begins; `None` for as long as it likes.
    pub limit: Option<Duration>,
    /// What happens then, and after a signal.
    pub patience: Patience,
    /// Says when to stop.
    pub interrupt: &'a Interrupt,
    /// Shows how far it is.
    pub progress: &'a dyn Progress,
    /// Hears each partial report; an answer is handed to the child, which may wait for it ([`is_told_to_go_on`]), and an
    /// error ends the run.
    pub on_partial: &'a mut dyn FnMut(&R) -> Result<Option<bool>, Error>,
}

/// Hears a partial report and has nothing to say.
///
/// # Errors
///
/// None; the type is that of [`Terms::on_partial`].
pub fn no_answer<R>(_: &R) -> Result<Option<bool>, Error> {
    Ok(None)
}

/// Returns the command that runs this program again as `worker`, with the options that `name` was called with.
#[must_use]
pub fn this_program_as(worker: &str, name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    // A default command is only named or not, and only in front.
    let mut options = std::env::args_os().skip(1).peekable();
    options.next_if(|first| first == name);
    command.arg(worker).args(options);
    command
}

/// Runs `command` (this program with a worker's arguments) and collects what it reports until it has answered, its time
/// is over, or a signal comes.
///
/// # Errors
///
/// [`Error::Reported`] when the child failed, [`Error::Io`] when it could not be started, [`Error::Refused`] when it
/// ended without a word.
pub fn supervise<R: DeserializeOwned + Send + 'static>(
    command: &mut Command,
    terms: &mut Terms<'_, R>,
) -> Result<(Outcome<R>, Rest), Error> {
    // A group of its own: Ctrl-C reaches the parent alone, which then tells the child in one well-defined way. No
    // descriptor of ours: a child that hangs would keep a pipe open that somebody waits for the end of.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|source| Error::io("start", "/proc/self/exe", source))?;
    let (Some(answers), Some(complaints)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Error::refused("the worker process has no output", "this is a bug in rehome; please report it"));
    };
    let events = read_events(answers);
    let last_words = read_last_words(complaints);
    let mut state = State {
        questions: child.stdin.take(),
        child,
        partial: None,
        deadline: Some(Instant::now() + START_LIMIT),
        patience: terms.patience,
        place: None,
        made: Vec::new(),
        is_interrupted: false,
        watch: None,
    };
    loop {
        match events.recv_timeout(POLL) {
            Ok(Event::Finished { report }) => return Ok((Outcome::Finished(report), Rest(Some(state.child)))),
            Ok(Event::Failed { message, causes, hint, exit_code }) => {
                let is_stop = exit_code == EXIT_INTERRUPTED && state.is_interrupted && state.partial.is_some();
                if is_stop {
                    return Ok(state.ended());
                }
                Rest(Some(state.child)).wait();
                return Err(Error::Reported { message, causes, hint, exit_code });
            }
            Ok(Event::Started) => state.deadline = terms.limit.map(|limit| Instant::now() + limit),
            Ok(Event::LeftTheMount) => (state.deadline, state.patience) = (None, terms.patience),
            Ok(Event::OnTheMount { limit_s }) => {
                let limit = Duration::try_from_secs_f64(limit_s).unwrap_or_default();
                (state.deadline, state.patience) = (Some(Instant::now() + limit), Patience::WhileAlive);
            }
            Ok(Event::At { place }) => state.place = Some(place),
            Ok(Event::Made { path }) => state.made.push(path),
            Ok(Event::Partial { report }) => {
                let answer = (terms.on_partial)(&report);
                state.partial = Some(report);
                match answer {
                    Ok(answer) => state.tell(answer),
                    Err(error) => {
                        state.stop();
                        return Err(error);
                    }
                }
            }
            Ok(event) => show(&event, terms.progress),
            Err(RecvTimeoutError::Disconnected) if terms.interrupt.is_set() => return Ok(state.abandon()),
            Err(RecvTimeoutError::Disconnected) => return Err(state.ended_without_a_word(&last_words)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if terms.interrupt.is_set() && !state.is_interrupted {
            state.is_interrupted = true;
            state.signal(Signal::TERM);
        }
        if state.is_lost() {
            return Ok(state.abandon());
        }
    }
}

fn show<R>(event: &Event<R>, progress: &dyn Progress) {
    match event {
        Event::Begin { phase, total } => progress.begin(phase, *total),
        Event::BeginTransfer { phase, files, bytes } => progress.begin_transfer(phase, *files, *bytes),
        Event::Advance { done } => progress.advance(*done),
        Event::Transferred { files, bytes } => progress.transferred(*files, *bytes),
        _ => progress.end(),
    }
}

/// Reads the child's events on a thread, so that waiting for them can be given up.
fn read_events<R: DeserializeOwned + Send + 'static>(pipe: ChildStdout) -> mpsc::Receiver<Event<R>> {
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

struct State<R> {
    child: Child,
    /// Where answers go; closed, it is the answer no.
    questions: Option<ChildStdin>,
    partial: Option<Box<R>>,
    deadline: Option<Instant>,
    patience: Patience,
    place: Option<String>,
    made: Vec<PathBuf>,
    is_interrupted: bool,
    /// Runs from the moment that the child should have ended.
    watch: Option<Watch>,
}

impl<R> State<R> {
    fn signal(&self, signal: Signal) {
        // The child may be gone already, which is what the signal was for.
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), signal);
    }

    fn tell(&mut self, answer: Option<bool>) {
        match (answer, &mut self.questions) {
            (Some(true), Some(pipe)) => {
                // A child that is gone is noticed by its silence.
                let _ = writeln!(pipe, "{YES}");
            }
            (Some(false), _) => self.questions = None,
            _ => {}
        }
    }

    /// Returns whether the child should have ended and will not do so by itself.
    fn is_lost(&mut self) -> bool {
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_over && self.patience == Patience::None {
            return true;
        }
        if !is_over && !self.is_interrupted {
            self.watch = None;
            return false;
        }
        let pid = self.child.id();
        let watch = self.watch.get_or_insert_with(|| Watch::begin(pid));
        if self.patience == Patience::WhileAlive {
            watch.look();
        }
        watch.quiet_for() >= INTERRUPT_GRACE
    }

    /// Ends the child, which did nothing yet that would have to be undone.
    fn stop(mut self) {
        self.questions = None;
        self.signal(Signal::TERM);
        Rest(Some(self.child)).wait_for(INTERRUPT_GRACE);
    }

    /// The child ended as it was told to.
    fn ended(self) -> (Outcome<R>, Rest) {
        let (report, is_interrupted) = (self.partial, self.is_interrupted);
        let outcome = Outcome::Partial { report, is_interrupted, stuck_at: None, left: Vec::new() };
        (outcome, Rest(Some(self.child)))
    }

    /// Kills the child without waiting for it: it may never die.
    fn abandon(mut self) -> (Outcome<R>, Rest) {
        self.signal(Signal::KILL);
        // Gone at once unless it hangs in the kernel; then init inherits it.
        let _ = self.child.try_wait();
        let outcome = Outcome::Partial {
            report: self.partial,
            is_interrupted: self.is_interrupted,
            stuck_at: self.place,
            left: self.made,
        };
        (outcome, Rest(None))
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
