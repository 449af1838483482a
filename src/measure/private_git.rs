//! Running the user's git on the repository without letting it see the repository's configuration.
//!
//! `git status` in a hostile repository can run programs that its configuration names. So git gets a git dir of our
//! own with a configuration of allowed keys, a copy of the index, and the objects as alternates; nothing below the
//! repository is written, and hooks, filters and monitors do not exist for it.

use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::error::Error;
use crate::measure::settings::Settings;
use crate::scan::InfoFiles;

/// A git dir of our own for one worktree.
#[derive(Debug, Clone)]
pub struct PrivateGit {
    program: PathBuf,
    dir: PathBuf,
    worktree: PathBuf,
    untracked: &'static str,
}

/// What a private git dir is made of.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The git program.
    pub program: &'a Path,
    /// The worktree to look at.
    pub worktree: &'a Path,
    /// The user's settings.
    pub settings: &'a Settings,
    /// Files of `.git/info`.
    pub info: &'a InfoFiles,
    /// Commit that HEAD names, in hex; `None` for a branch without commit.
    pub head: Option<&'a str>,
    /// Object directory to borrow from; `None` for a git dir that has all it needs.
    pub objects: Option<&'a Path>,
}

/// How a status is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatusMode {
    /// Take entries whose size and whole seconds of mtime match as clean, as after an ordinary status.
    pub is_mended: bool,
    /// Let git write the (private) index, which fills the untracked cache.
    pub writes_index: bool,
}

impl PrivateGit {
    /// Makes the git dir at `dir`, which must not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn create(dir: &Path, parts: &Parts) -> Result<Self, Error> {
        for below in ["refs/heads", "objects/info", "info"] {
            let path = dir.join(below);
            fs::create_dir_all(&path).map_err(|e| Error::io("create", path, e))?;
        }
        let head = parts.head.map_or_else(|| "ref: refs/heads/main\n".to_owned(), |commit| format!("{commit}\n"));
        write(&dir.join("HEAD"), head.as_bytes())?;
        write(&dir.join("config"), &parts.settings.config)?;
        if let Some(objects) = parts.objects {
            write(&dir.join("objects/info/alternates"), &quote_alternate(objects))?;
        }
        let info = [
            ("exclude", &parts.info.exclude),
            ("attributes", &parts.info.attributes),
            ("sparse-checkout", &parts.info.sparse_checkout),
        ];
        for (name, content) in info {
            if let Some(content) = content {
                write(&dir.join("info").join(name), content)?;
            }
        }
        Ok(Self {
            program: parts.program.to_owned(),
            dir: dir.to_owned(),
            worktree: parts.worktree.to_owned(),
            untracked: parts.settings.untracked.word(),
        })
    }

    /// Returns the private git dir.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the private index with the given modification time, which decides what git takes for racy.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn write_index(&self, bytes: &[u8], mtime: SystemTime) -> Result<(), Error> {
        write(&self.dir.join("index"), bytes)?;
        self.set_index_mtime(mtime)
    }

    /// Sets the private index's modification time.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when that fails.
    pub fn set_index_mtime(&self, mtime: SystemTime) -> Result<(), Error> {
        let path = self.dir.join("index");
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_times(FileTimes::new().set_modified(mtime)))
            .map_err(|e| Error::io("set the time of", path, e))
    }

    /// Names another commit as HEAD.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn set_head(&self, commit: &str) -> Result<(), Error> {
        write(&self.dir.join("HEAD"), format!("{commit}\n").as_bytes())
    }

    /// Returns the `git status` to time.
    #[must_use]
    pub fn status(&self, mode: StatusMode) -> Command {
        let mut command = self.bare_command();
        if mode.is_mended {
            command.args(["-c", "core.checkStat=minimal"]);
        }
        if mode.writes_index {
            command.env("GIT_OPTIONAL_LOCKS", "1");
        } else {
            command.arg("--no-optional-locks");
        }
        command.args(["status", "--porcelain=v1", "-z", "--ignore-submodules=all"]);
        command.arg(format!("--untracked-files={}", self.untracked));
        command
    }

    /// Returns git with these arguments, cut off from every configuration but the private one.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bare_command();
        command.arg("--no-optional-locks").args(args);
        command
    }

    fn bare_command(&self) -> Command {
        let mut command = cut_off(&self.program, &self.dir, &self.worktree);
        command.current_dir(&self.dir).env("GIT_INDEX_FILE", self.dir.join("index")).env("GIT_OPTIONAL_LOCKS", "0");
        command
    }
}

/// Returns git on a private git dir: of the environment's `GIT_*` it sees nothing, of all configuration files only the one
/// in that git dir, and no hook, file monitor, pager or prompt is run.
#[must_use]
pub fn cut_off(program: &Path, git_dir: &Path, worktree: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("GIT_DIR", git_dir)
        .env("GIT_WORK_TREE", worktree)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C")
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command
}

/// Returns the time that the private index of a skeleton gets: ahead of every file in it.
///
/// Git without nanoseconds reads every file that is not older than its index, in whole seconds, so two seconds are
/// enough and one is not.
#[must_use]
pub fn ahead_of_now() -> SystemTime {
    SystemTime::now() + Duration::from_secs(2)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    File::create(path).and_then(|mut file| file.write_all(bytes)).map_err(|e| Error::io("write", path, e))
}

/// Writes a path as a line of `objects/info/alternates`; git reads a quoted line as a C string.
fn quote_alternate(path: &Path) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => line.push(*byte),
            other => line.extend_from_slice(format!("\\{other:03o}").as_bytes()),
        }
    }
    line.extend_from_slice(b"\"\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alternate_with_odd_characters_is_quoted() {
        assert_eq!(quote_alternate(Path::new("/a b/\"c\"\n/é")), b"\"/a b/\\\"c\\\"\\012/\\303\\251\"\n");
    }
}
