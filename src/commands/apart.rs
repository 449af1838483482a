//! Small jobs on mounts that may hang, each in a process of its own that is left behind when it does not come back.
//!
//! The process that watches over a run ([`crate::commands::supervise`]) must touch no mount itself; what it still wants
//! done after it gave a run up, it has done here.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench::scratch::{self, PREFIX};
use crate::commands::output;
use crate::commands::supervise::Event;
use crate::error::{EXIT_FAILURE, EXIT_OK, Error, printable};
use crate::measure::process::{self, End};
use crate::signals::Interrupt;

/// This program, also when it was replaced on disk since it was started.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// How long such a job may take: a small file, or the thousand files of a scratch directory on a disk.
const LIMIT: Duration = Duration::from_secs(3);

/// A scratch directory that a run left, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Where it is, or was.
    pub path: PathBuf,
    /// Whether it is gone.
    pub is_gone: bool,
}

impl Removal {
    /// Returns what the user must know of it; `None` when it is gone.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let shown = printable(&self.path);
        (!self.is_gone).then(|| {
            format!("the scratch directory `{shown}` is still there: the next `rehome bench` in that place removes it")
        })
    }
}

/// Returns the directory that a run was told to work in, for one that it works in.
#[must_use]
pub fn given_directory(place: &Path) -> &Path {
    let is_scratch =
        |path: &&Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    place.ancestors().find(is_scratch).and_then(Path::parent).unwrap_or(place)
}

/// Says which directory a run was given up for.
#[must_use]
pub fn stopped_answering(place: &str) -> String {
    let shown = printable(given_directory(Path::new(place)));
    format!("`{shown}` stopped answering, and the run was given up there")
}

/// Removes the scratch directories of a run that was abandoned; the one that it hangs in is not tried.
#[must_use]
pub fn remove_scratches(left: &[PathBuf], stuck_at: Option<&str>) -> Vec<Removal> {
    let hung = stuck_at.map(|place| given_directory(Path::new(place)));
    let remove = |path: &PathBuf| {
        let is_hung = hung.is_some_and(|hung| path.starts_with(hung));
        let is_gone = !is_hung && matches!(run("__remove-scratch", path, Vec::new()), Ok(Some(EXIT_OK)));
        Removal { path: path.clone(), is_gone }
    };
    left.iter().map(remove).collect()
}

/// Writes a file as a whole or not at all.
///
/// # Errors
///
/// [`Error::Refused`] when its mount does not answer, [`Error::Io`] or [`Error::Reported`] when it refuses.
pub fn write_file(path: &Path, contents: Vec<u8>) -> Result<(), Error> {
    match run("__write", path, contents)? {
        Some(EXIT_OK) => Ok(()),
        Some(_) => Err(Error::refused(
            format!("cannot write `{}`", printable(path)),
            "see if there is room, and whether you may write there",
        )),
        None => Err(Error::refused(
            format!("cannot write `{}`: its mount does not answer", printable(path)),
            "write to a local disk with `--output FILE`",
        )),
    }
}

/// Runs this program for one job; returns its exit status, `None` when it did not end in time.
///
/// What it describes as an error is returned as that.
fn run(job: &str, path: &Path, input: Vec<u8>) -> Result<Option<u8>, Error> {
    let mut command = Command::new(OWN_PROGRAM);
    command.args([OsStr::new(job), OsStr::new("--"), path.as_os_str()]);
    // A signal has ended the run already; this is what remains to be done.
    let end = process::run(command, input, Instant::now() + LIMIT, &Interrupt::default())
        .map_err(|source| Error::io("start", OWN_PROGRAM, source))?;
    let End::Done(run) = end else { return Ok(None) };
    match serde_json::from_slice(&run.stdout) {
        Ok(Event::<()>::Failed { message, causes, hint, exit_code }) => {
            Err(Error::Reported { message, causes, hint, exit_code })
        }
        _ => Ok(Some(if run.status.success() { EXIT_OK } else { EXIT_FAILURE })),
    }
}

/// Removes a scratch directory; the side of the process that may be left behind.
///
/// # Errors
///
/// [`Error::Output`] when nobody listens; that it is not gone is an event.
pub fn remove_scratch(path: &Path, out: &mut dyn Write) -> Result<u8, Error> {
    tell(scratch::remove_abandoned(path), out)
}

/// Writes what standard input holds into a file; the side of the process that may be left behind.
///
/// # Errors
///
/// [`Error::Output`] when nobody listens; that it could not be written is an event.
pub fn write_input(path: &Path, out: &mut dyn Write) -> Result<u8, Error> {
    let mut contents = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut contents);
    let read = read.map(drop).map_err(|source| Error::io("read", "/dev/stdin", source));
    tell(read.and_then(|()| output::write_file(path, |file| file.write_all(&contents))), out)
}

fn tell(result: Result<(), Error>, out: &mut dyn Write) -> Result<u8, Error> {
    match result {
        Ok(()) => Ok(EXIT_OK),
        Err(error) => {
            crate::commands::supervise::emit(out, &Event::<()>::failed(&error))?;
            Ok(error.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_that_was_given_is_named_and_not_the_scratch_directory_in_it() {
        let inside = format!("/mnt/c/src/{PREFIX}ab/work/dir");
        assert_eq!(given_directory(Path::new(&inside)), Path::new("/mnt/c/src"));
        assert_eq!(given_directory(Path::new("/mnt/c/src")), Path::new("/mnt/c/src"));
        assert_eq!(stopped_answering(&inside), "`/mnt/c/src` stopped answering, and the run was given up there");
    }

    #[test]
    fn the_scratch_directory_on_the_mount_that_hangs_is_left_and_said() {
        let left = [PathBuf::from(format!("/mnt/c/{PREFIX}ab"))];
        let removals = remove_scratches(&left, Some(&format!("/mnt/c/{PREFIX}ab/work")));
        assert_eq!(removals, [Removal { path: left[0].clone(), is_gone: false }]);
        assert!(removals[0].note().unwrap().contains("is still there"));
    }
}
