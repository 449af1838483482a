//! Running a program with a limit, so that a mount that hangs cannot hang rehome.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::signals::Interrupt;

/// How often a waiting thread looks at the interrupt flag; short enough that Ctrl-C feels immediate.
pub const POLL: Duration = Duration::from_millis(50);
/// How long a killed program may take to go away before it is left alone; one that hangs in the kernel never does.
const REAP_PATIENCE: Duration = Duration::from_millis(200);

/// What a finished program did.
#[derive(Debug)]
pub struct Run {
    /// From just before the program was started until it was gone.
    pub elapsed: Duration,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
}

/// How waiting for a program ended.
#[derive(Debug)]
pub enum End {
    /// The program ended by itself.
    Done(Run),
    /// It was killed because its time was over; how long it had run.
    TimedOut(Duration),
    /// It was killed because the user, or a signal, asked to stop.
    Interrupted,
}

/// Runs a program in its own process group until it ends, `limit` is reached or `interrupt` is set.
///
/// In the two latter cases the whole group is killed. A process that cannot die because the kernel waits for a mount
/// is abandoned: nothing here waits for it longer than a fifth of a second.
///
/// # Errors
///
/// When the program cannot be started.
pub fn run(mut command: Command, input: Vec<u8>, limit: Instant, interrupt: &Interrupt) -> io::Result<End> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let started = Instant::now();
    let child = command.spawn()?;
    let pid = group(&child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let result = feed_and_wait(child, input).map(|mut run| {
            run.elapsed = started.elapsed();
            run
        });
        // The receiver is gone when the program was abandoned.
        let _ = sender.send(result);
    });
    loop {
        let patience = limit.saturating_duration_since(Instant::now()).min(POLL);
        match receiver.recv_timeout(patience) {
            Ok(result) => return result.map(End::Done),
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the waiting thread is gone")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let is_interrupted = interrupt.is_set();
        if is_interrupted || Instant::now() >= limit {
            let elapsed = started.elapsed();
            kill(pid);
            let _ = receiver.recv_timeout(REAP_PATIENCE);
            return Ok(if is_interrupted { End::Interrupted } else { End::TimedOut(elapsed) });
        }
    }
}

fn feed_and_wait(mut child: Child, input: Vec<u8>) -> io::Result<Run> {
    let feeder = child.stdin.take().map(|mut stdin| {
        std::thread::spawn(move || {
            // A program that does not read all of it says so by its exit status.
            let _ = stdin.write_all(&input);
        })
    });
    let output = child.wait_with_output()?;
    if let Some(feeder) = feeder {
        let _ = feeder.join();
    }
    Ok(Run { elapsed: Duration::ZERO, status: output.status, stdout: output.stdout, stderr: output.stderr })
}

/// Returns the process group of a child that was started as the leader of its own.
#[must_use]
pub fn group(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Kills a process group; one that is already gone is fine.
pub fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> Interrupt {
        let interrupt = Interrupt::default();
        interrupt.set();
        interrupt
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_come_back() {
        let limit = Instant::now() + Duration::from_secs(60);
        let end = run(shell("cat; echo err >&2; exit 3"), b"in".to_vec(), limit, &Interrupt::default()).unwrap();
        let End::Done(run) = end else { panic!("{end:?}") };
        assert_eq!(
            (run.stdout.as_slice(), run.stderr.as_slice(), run.status.code()),
            (&b"in"[..], &b"err\n"[..], Some(3))
        );
    }

    #[test]
    fn the_whole_group_is_killed_at_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("survived");
        let script = format!("(sleep 1; touch '{}') & sleep 60", mark.display());
        let limit = Instant::now() + Duration::from_millis(100);
        let end = run(shell(&script), Vec::new(), limit, &Interrupt::default()).unwrap();
        assert!(matches!(end, End::TimedOut(_)), "{end:?}");
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!mark.exists(), "a grandchild lived on");
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let limit = Instant::now() + Duration::from_secs(60);
        let end = run(shell("sleep 60"), Vec::new(), limit, &set()).unwrap();
        assert!(matches!(end, End::Interrupted), "{end:?}");
    }
}
