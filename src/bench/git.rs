//! Suite `git`: `git status` in a repository of 1,000 tracked files with exactly one modified.
//!
//! The repository is made here and git sees no configuration but its own: no hooks, templates, monitors, signing or
//! filters of the user's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use super::content::Content;
use super::engine::{Outcome, Shrunk, WorkDir, Workload, scaled};
use super::fit::Estimate;
use super::program;
use super::result::{Proof, Setup, Suite};
use super::verify::Mismatch;
use crate::error::Error;
use crate::measure::process::Run;
use crate::signals::Interrupt;

/// Tracked files.
pub(super) const FILES: u64 = 1_000;
/// Size of each: a short source file.
const SIZE_BYTES: usize = 2_048;
/// Files in a directory.
const PER_DIR: u64 = 50;
/// Files of the trial.
const TRIAL_FILES: u64 = 10;
/// Fewest files that a round is shrunk to.
const MIN_FILES: u64 = 50;
/// Name of the repository.
const REPOSITORY: &str = "repository";
/// How much older than the index the files are: git reads files as new as the index to be sure (`racy`), and that is
/// not what is to be measured. Two seconds are the coarsest time stamps that there are (FAT).
const AGE: Duration = Duration::from_secs(60);

/// Options that take the user's configuration out of the way, for every call.
///
/// `safe.directory` because some mounts show every file as another user's, which git refuses.
const ISOLATION: [&str; 10] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "commit.gpgSign=false",
    "gc.auto=0",
    "safe.directory=*",
];

/// The workload.
pub(super) struct Git {
    program: PathBuf,
    /// When a git that still runs is given up.
    until: Option<Instant>,
    files: u64,
    content: Content,
}

impl Git {
    pub(super) fn new(program: PathBuf, until: Option<Instant>) -> Self {
        Self { program, until, files: FILES, content: Content::new(SIZE_BYTES) }
    }

    fn git(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = program::command(&self.program, dir);
        command
            .env("HOME", dir)
            .env("XDG_CONFIG_HOME", dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .env("GIT_EDITOR", "false")
            // Nothing above the repository is looked at, whatever it lies in.
            .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir));
        for (role, value) in [("NAME", "rehome"), ("EMAIL", "rehome@localhost"), ("DATE", "2000-01-01T00:00:00Z")] {
            command.env(format!("GIT_AUTHOR_{role}"), value).env(format!("GIT_COMMITTER_{role}"), value);
        }
        for setting in ISOLATION {
            command.args(["-c", setting]);
        }
        command.args(args);
        command
    }

    fn must(&self, dir: &Path, args: &[&str], interrupt: &Interrupt) -> Result<Run, Error> {
        let run = program::run(self.git(dir, args), self.until, interrupt)?;
        if run.status.success() {
            return Ok(run);
        }
        Err(Error::refused(
            format!("`git {}` failed in the scratch directory: {}", args[0], program::complaint(&run)),
            "see if git works there by hand; other suites: `rehome bench --suite small`",
        ))
    }

    /// Makes a repository with one modified file, and returns the bytes written into its worktree.
    fn make(&self, repository: &Path, files: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        self.init(repository, interrupt)?;
        self.fill(repository, files, interrupt)
    }

    fn init(&self, repository: &Path, interrupt: &Interrupt) -> Result<(), Error> {
        std::fs::create_dir(repository).map_err(|e| Error::io("create", repository, e))?;
        self.must(repository, &["init", "--quiet", "--template=", "--initial-branch=main", "."], interrupt)?;
        Ok(())
    }

    fn fill(&self, repository: &Path, files: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let old = SystemTime::now() - AGE;
        for number in 0..files {
            let path = repository.join(file_name(number));
            if number % PER_DIR == 0 {
                let dir = path.parent().unwrap_or(repository);
                std::fs::create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
            }
            // The remainder is small.
            let piece = self.content.piece(usize::try_from(number % 4096).unwrap_or(0));
            write_dated(&path, piece, old)?;
            interrupt.check()?;
        }
        self.must(repository, &["add", "--all"], interrupt)?;
        self.must(repository, &["commit", "--quiet", "--no-verify", "--message=base"], interrupt)?;
        let modified = repository.join(modified_name(files));
        // Another length, so that no time stamp is needed to see the change.
        write_dated(&modified, &self.content.piece(0)[..SIZE_BYTES / 2], old)?;
        Ok(files * SIZE_BYTES as u64)
    }

    fn status(&self, repository: &Path, files: u64, interrupt: &Interrupt) -> Result<Outcome, Error> {
        let args = ["status", "--porcelain=v1", "--untracked-files=all"];
        let run = program::run(self.git(repository, &args), self.until, interrupt)?;
        let output = String::from_utf8_lossy(&run.stdout).into_owned();
        let mut mismatch = Mismatch::default();
        let wanted = expected(files);
        mismatch.text("the output", &format!("{wanted:?}"), Some(&format!("{output:?}")));
        mismatch.truth(&format!("git ended with {}", program::complaint(&run)), run.status.success());
        Ok(Outcome {
            phases: vec![("status".to_owned(), run.elapsed.as_secs_f64())],
            proof: Proof { files: Some(files), output: Some(output), ..Proof::default() },
            fault: mismatch.finish(),
            bytes_written: 0,
        })
    }
}

/// The only line that `git status` may print.
fn expected(files: u64) -> String {
    format!(" M {}\n", modified_name(files))
}

fn modified_name(files: u64) -> String {
    file_name(files / 3)
}

fn file_name(number: u64) -> String {
    format!("d{:02}/f{number:04}.txt", number / PER_DIR)
}

fn write_dated(path: &Path, data: &[u8], mtime: SystemTime) -> Result<(), Error> {
    std::fs::write(path, data)
        .and_then(|()| {
            // Both, since some FUSE filesystems ignore a change of one alone.
            let time = filetime::FileTime::from_system_time(mtime);
            filetime::set_file_times(path, time, time)
        })
        .map_err(|e| Error::io("write", path, e))
}

impl Workload for Git {
    fn suite(&self) -> Suite {
        Suite::Git
    }

    fn setup(&self) -> Setup {
        Setup {
            files: Some(self.files),
            size_bytes: Some(SIZE_BYTES as u64),
            dirs: Some(self.files.div_ceil(PER_DIR)),
            ..Setup::default()
        }
    }

    fn needed_bytes(&self) -> u64 {
        // Worktree and loose objects.
        2 * self.files * SIZE_BYTES as u64
    }

    fn estimate(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Estimate, Error> {
        let trial = place.path.join("trial");
        let began = Instant::now();
        self.init(&trial, interrupt)?;
        let fixed_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        self.fill(&trial, TRIAL_FILES, interrupt)?;
        let filled_s = began.elapsed().as_secs_f64();
        // The first status writes the index; the second is what a round does. What it takes in so small a repository
        // does not depend on the files.
        self.status(&trial, TRIAL_FILES, interrupt)?;
        let round_fixed_s = self.status(&trial, TRIAL_FILES, interrupt)?.total_s();
        let began = Instant::now();
        for number in 0..TRIAL_FILES {
            let path = trial.join(file_name(number));
            std::fs::symlink_metadata(&path).map_err(|e| Error::io("stat", path, e))?;
        }
        let statted_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        std::fs::remove_dir_all(&trial).map_err(|e| Error::io("delete", &trial, e))?;
        let removed_s = began.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "small whole numbers")]
        let factor = self.files as f64 / TRIAL_FILES as f64;
        Ok(Estimate { fixed_s, setup_s: (filled_s + removed_s) * factor, round_fixed_s, round_s: statted_s * factor })
    }

    fn shrink(&mut self, factor: f64) -> Result<Option<Shrunk>, Error> {
        let files = scaled(self.files, factor, MIN_FILES);
        if files >= self.files {
            return Ok(None);
        }
        let said = format!("{files} tracked files instead of {}", self.files);
        let shrunk = Shrunk::new(said, self.files, files);
        self.files = files;
        Ok(Some(shrunk))
    }

    fn prepare(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<u64, Error> {
        self.make(&place.path.join(REPOSITORY), self.files, interrupt)
    }

    fn round(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Outcome, Error> {
        self.status(&place.path.join(REPOSITORY), self.files, interrupt)
    }

    fn is_standing(&self) -> bool {
        true
    }

    fn operations(&self, _phase: &str) -> Option<u64> {
        None
    }

    fn bytes(&self, _phase: &str) -> Option<u64> {
        None
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "`git status --porcelain=v1 --untracked-files=all`, which must print exactly `{}` each time; git's own start is in it",
            expected(self.files).trim_end()
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scratch::Scratch;

    fn with_repository(check: impl FnOnce(&mut Git, &WorkDir, &Path)) {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        let mut git = Git::new(program::find("git").unwrap(), None);
        git.files = 100;
        git.prepare(&place, &Interrupt::default()).unwrap();
        check(&mut git, &place, &place.path.join(REPOSITORY));
    }

    #[test]
    fn status_prints_the_one_modified_file_with_its_leading_space() {
        with_repository(|git, place, _| {
            let outcome = git.round(place, &Interrupt::default()).unwrap();
            assert_eq!(outcome.fault, None);
            assert_eq!(outcome.proof.output.as_deref(), Some(" M d00/f0033.txt\n"));
        });
    }

    #[test]
    fn a_second_change_makes_the_round_not_count() {
        with_repository(|git, place, repository| {
            std::fs::write(repository.join("stray"), b"x").unwrap();
            let outcome = git.round(place, &Interrupt::default()).unwrap();
            let fault = outcome.fault.unwrap();
            assert!(fault.starts_with(r#"the output is " M d00/f0033.txt\n?? stray\n" instead of "#), "{fault}");
        });
    }

    #[test]
    fn a_broken_repository_is_said_and_not_timed() {
        with_repository(|git, place, repository| {
            std::fs::write(repository.join(".git/HEAD"), b"nonsense").unwrap();
            let outcome = git.round(place, &Interrupt::default()).unwrap();
            assert!(outcome.fault.unwrap().contains("git ended with exit status: 128"));
        });
    }
}
