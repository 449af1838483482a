//! The probe's side that asks, and that can walk away.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;

use crate::error::printable_text;
use crate::measure::probe::server::serve;
use crate::measure::probe::{Answer, Ask};
use crate::measure::process::{POLL, group, kill};
use crate::signals::Interrupt;

/// Argument that makes rehome's own program serve as a probe.
pub const PROBE_ARGUMENT: &str = "__probe";

/// Why a question got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The mount did not answer in time; the probe was given up and answers nothing more.
    Hung,
    /// The user, or a signal, asked to stop.
    Interrupted,
    /// The request failed; a sentence.
    Failed(String),
}

/// A probe that runs.
#[derive(Debug)]
pub struct Probe {
    child: Option<Child>,
    asks: Option<Box<dyn WriteDebug>>,
    answers: Receiver<io::Result<String>>,
    is_hung: bool,
}

trait WriteDebug: Write + Send + std::fmt::Debug {}
impl<T: Write + Send + std::fmt::Debug> WriteDebug for T {}

impl Probe {
    /// Starts a probe: `program` with [`PROBE_ARGUMENT`], or a thread of this process when there is none (in tests).
    ///
    /// A thread can be left alone too, but a process whose thread hangs in the kernel may not be able to exit.
    ///
    /// # Errors
    ///
    /// When the program cannot be started.
    pub fn start(program: Option<&Path>) -> io::Result<Self> {
        let (sender, answers) = mpsc::channel();
        let forward = move |output: Box<dyn io::Read + Send>| {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines() {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        };
        if let Some(program) = program {
            let mut child = Command::new(program)
                .arg(PROBE_ARGUMENT)
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()?;
            let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the probe has no output"))?;
            forward(Box::new(stdout));
            let asks = child.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn WriteDebug>);
            return Ok(Self { child: Some(child), asks, answers, is_hung: false });
        }
        let (ask_read, ask_write) = io::pipe()?;
        let (answer_read, answer_write) = io::pipe()?;
        std::thread::spawn(move || serve(BufReader::new(ask_read), answer_write));
        forward(Box::new(answer_read));
        Ok(Self { child: None, asks: Some(Box::new(ask_write)), answers, is_hung: false })
    }

    /// Asks and waits for the answer until `limit`.
    ///
    /// # Errors
    ///
    /// [`Trouble`]; after [`Trouble::Hung`] every further question is answered so at once.
    pub fn ask(&mut self, ask: &Ask, limit: Instant, interrupt: &Interrupt) -> Result<Answer, Trouble> {
        if self.is_hung {
            return Err(Trouble::Hung);
        }
        let failed = |e: &dyn std::fmt::Display| Trouble::Failed(format!("the probe does not work: {e}"));
        let mut line = serde_json::to_vec(ask).map_err(|e| failed(&e))?;
        line.push(b'\n');
        let asks = self.asks.as_mut().ok_or(Trouble::Hung)?;
        asks.write_all(&line).and_then(|()| asks.flush()).map_err(|e| failed(&e))?;
        loop {
            if interrupt.is_set() {
                self.give_up();
                return Err(Trouble::Interrupted);
            }
            let patience = limit.saturating_duration_since(Instant::now()).min(POLL);
            match self.answers.recv_timeout(patience) {
                Ok(line) => {
                    let line = line.map_err(|e| failed(&e))?;
                    return match serde_json::from_str(&line).map_err(|e| failed(&e))? {
                        Answer::Failed(why) => Err(Trouble::Failed(printable_text(&why))),
                        answer => Ok(answer),
                    };
                }
                Err(RecvTimeoutError::Disconnected) => return Err(failed(&"it ended")),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= limit => {
                    self.give_up();
                    return Err(Trouble::Hung);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns whether the probe was given up because the mount did not answer.
    #[must_use]
    pub fn is_hung(&self) -> bool {
        self.is_hung
    }

    /// Kills the probe without waiting: a process that hangs in the kernel dies when the mount answers.
    fn give_up(&mut self) {
        self.is_hung = true;
        self.asks = None;
        if let Some(child) = &mut self.child {
            kill(group(child));
            let _ = child.try_wait();
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(child) = &mut self.child {
            kill(group(child));
            // Collects it where it is gone already; never waits.
            let _ = child.try_wait();
        }
    }
}
