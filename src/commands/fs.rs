//! `rehome fs`: which mount a path is on, and how that is known.
//!
//! A process that waits for a mount whose server is gone can neither be stopped nor end. So each path is looked up by a
//! child process, which is left behind when no answer comes.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;

use crate::cli::{FsArgs, PlainFormat};
use crate::error::{EXIT_OK, Error};
use crate::report;
use crate::report::place::{self, Place};
use crate::rules;
use crate::scan::filesystem::{System, kernel};

/// How long one path may take before its mount counts as gone: a network drive that is merely slow answers within a
/// second or two, and a person should not wait longer for a message.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// This program, also when it was replaced on disk since it was started.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Looks up every path, writes those that were found, and fails with the first that was not.
///
/// # Errors
///
/// Those of [`System::live`], [`System::from_table`] and [`System::locate`]; [`Error::Usage`] for a saved table without a
/// path; [`Error::Refused`] for a mount that does not answer and for a mistake in a rule file.
pub fn run(args: &FsArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let rules = rules::filesystem::load(&args.rules)?;
    let system = match &args.mounts {
        None => System::live(rules)?,
        Some(_) if args.paths.is_empty() => {
            return Err(Error::Usage("`--mounts FILE` needs a path to look up in the table".to_owned()));
        }
        Some(file) => {
            let text = fs::read(file).map_err(|error| Error::io("read", file, error))?;
            System::from_table(&text, rules)?
        }
    };
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths[..] };
    let mut places = Vec::new();
    let mut failure = None;
    for path in paths {
        match system.locate_by(path, &ask_child) {
            Ok(location) => places.push(Place::new(&system, location)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match (args.format, places.as_slice()) {
        (_, []) if paths.len() == 1 => {}
        (PlainFormat::Json, [place]) if paths.len() == 1 => report::write_json(place, out).map_err(Error::Output)?,
        (PlainFormat::Json, places) => report::write_json(&places, out).map_err(Error::Output)?,
        (_, places) => place::write_text(places, out).map_err(Error::Output)?,
    }
    failure.map_or(Ok(EXIT_OK), Err)
}

/// Puts the question about one path to the kernel and writes what it says; the child's side.
///
/// # Errors
///
/// [`Error::Output`] when nobody listens any more.
pub fn locate(path: &Path, out: &mut dyn Write) -> Result<u8, Error> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Error::io("watch the parent of", OWN_PROGRAM, error.into()))?;
    out.write_all(&kernel::encode(&kernel::find(path))).map_err(Error::Output)?;
    Ok(EXIT_OK)
}

/// Has a child process put the question; `ETIMEDOUT` when it does not answer.
fn ask_child(path: &Path) -> io::Result<kernel::Answer> {
    let mut child = Command::new(OWN_PROGRAM)
        .args(["__locate", "--"])
        .arg(path)
        // A child that is left behind must hold nothing that somebody else waits for.
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pipe = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut text));
        // The receiver is gone when the answer comes too late.
        drop(sender.send(read.map(|_| text)));
    });
    let Ok(answer) = receiver.recv_timeout(ANSWER_LIMIT) else {
        // Waiting for its end could take for ever; whoever inherits it will see to that.
        let _ = child.kill();
        return Err(Errno::TIMEDOUT.into());
    };
    // Its output has ended, and nothing can hold it up any more.
    let _ = child.wait();
    let ended_early = || io::Error::other("the process that looked it up ended without an answer");
    kernel::decode(&answer?).ok_or_else(ended_early)?
}
