//! Running `git` and `du` so that nothing of the user's environment changes what they do.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::error::{Error, printable_text};
use crate::measure::process::{self, End, Run};
use crate::signals::Interrupt;

/// A program that takes longer than this hangs; rounds that take minutes would not be worth waiting for.
const LIMIT: Duration = Duration::from_secs(600);
/// As much of a program's complaint as fits a line.
const COMPLAINT_MAX_CHARS: usize = 200;

/// Returns a command that runs in `dir` in the `C` locale and without git's and du's variables.
pub(super) fn command(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"GIT_") || matches!(name_bytes, b"DU_BLOCK_SIZE" | b"BLOCK_SIZE" | b"BLOCKSIZE") {
            command.env_remove(&name);
        }
    }
    command.current_dir(dir).env("LC_ALL", "C");
    command
}

/// Runs a program to its end, or until the given moment where that comes first.
///
/// # Errors
///
/// [`Error::Interrupted`] on a signal; [`Error::Refused`] when it takes too long; [`Error::Io`] when it cannot start.
pub(super) fn run(command: Command, until: Option<Instant>, interrupt: &Interrupt) -> Result<Run, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let latest = Instant::now() + LIMIT;
    let limit = until.map_or(latest, |until| until.min(latest));
    match process::run(command, Vec::new(), limit, interrupt) {
        Ok(End::Done(run)) => Ok(run),
        Ok(End::Interrupted) => Err(Error::Interrupted),
        Ok(End::TimedOut(after)) => Err(Error::refused(
            format!("`{}` did not end within {:.0} s", printable_text(&program), after.as_secs_f64()),
            "the mount hangs or is very slow; measure with fewer files",
        )),
        Err(source) => Err(Error::io("start", program, source)),
    }
}

/// Returns how a program ended and what it complained about, as a piece of a sentence.
pub(super) fn complaint(run: &Run) -> String {
    let stderr = String::from_utf8_lossy(&run.stderr);
    let line = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
    let line: String = printable_text(line.trim()).chars().take(COMPLAINT_MAX_CHARS).collect();
    format!("{} ({line})", run.status)
}

/// Returns the first executable file of that name on `PATH`, relative entries left out.
pub(super) fn find(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok() && candidate.is_file())
}
