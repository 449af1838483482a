//! A home of its own for every test, a repository to move, and the means to compare trees.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::schema::assert_valid;

/// The program under test.
pub(crate) const REHOME: &str = env!("CARGO_BIN_EXE_rehome");

/// A place with a home directory, a source and room for a destination.
pub(crate) struct Ground {
    pub(crate) dir: TempDir,
}

impl Ground {
    /// Makes an empty repository `src`.
    pub(crate) fn new() -> Self {
        let ground = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(ground.home()).unwrap();
        ground.git(&["init", "-q", "-b", "main", "src"], &ground.root());
        ground
    }

    /// Makes a repository with some of everything that must be kept.
    pub(crate) fn furnished() -> Self {
        let ground = Self::new();
        ground.write("src/lib/deep/er/one.txt", "one\n");
        ground.write("src/two.txt", "two\n");
        ground.write("src/run.sh", "#!/bin/sh\necho ran\n");
        ground.mode("src/run.sh", 0o755);
        ground.write("src/.gitignore", ".env\n*.log\nnode_modules/\n");
        std::os::unix::fs::symlink("two.txt", ground.path("src/link")).unwrap();
        ground.commit("first");
        ground.write("src/two.txt", "two stashed\n");
        ground.in_source(&["stash", "-q"]);
        ground.write("src/two.txt", "two changed\n");
        ground.write("src/staged.txt", "staged\n");
        ground.in_source(&["add", "staged.txt"]);
        ground.write("src/untracked dir/new.txt", "new\n");
        ground.write("src/.env", "SECRET=1\n");
        ground.write("src/debug.log", "log\n");
        ground.in_source(&["branch", "other"]);
        ground.in_source(&["tag", "-a", "-m", "t", "v1"]);
        ground.in_source(&["gc", "-q"]);
        ground
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.path("src")
    }

    pub(crate) fn dest(&self) -> PathBuf {
        self.path("dest")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn mode(&self, path: impl AsRef<Path>, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) {
        self.in_source(&["add", "-A"]);
        self.in_source(&["commit", "-q", "-m", message]);
    }

    /// Runs git in the source.
    pub(crate) fn in_source(&self, arguments: &[&str]) -> String {
        self.git(arguments, &self.source())
    }

    pub(crate) fn git(&self, arguments: &[&str], directory: &Path) -> String {
        let output = self.clean(Command::new("git")).args(arguments).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What `git status` says in a worktree, without touching its index.
    pub(crate) fn status(&self, directory: &Path) -> String {
        self.git(&["--no-optional-locks", "status", "--porcelain", "-uall"], directory)
    }

    /// A command in an environment without the user's own settings.
    pub(crate) fn clean(&self, mut command: Command) -> Command {
        command
            .env("HOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "a")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .stdin(Stdio::null());
        command
    }

    /// `rehome move SRC DEST` with further options; filesystem types of test machines are allowed.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        self.command_from(&self.source(), options)
    }

    pub(crate) fn command_from(&self, source: &Path, options: &[&str]) -> Command {
        let mut command = self.clean(Command::new(REHOME));
        command.arg("move").arg(source).arg(self.dest()).args(options);
        command.args(["--target-fs", &fstype(&self.root())]);
        command
    }

    /// Moves, and expects that it works.
    pub(crate) fn moved(&self, options: &[&str]) -> serde_json::Value {
        self.moved_from(&self.source(), options)
    }

    pub(crate) fn moved_from(&self, source: &Path, options: &[&str]) -> serde_json::Value {
        let mut all = vec!["--yes", "--format", "json"];
        all.extend(options);
        let output = self.command_from(source, &all).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report = serde_json::from_slice(&output.stdout).unwrap();
        assert_valid("move", &report);
        report
    }

    /// Moves, and expects that it fails with exit status 1; returns the message.
    pub(crate) fn refused(&self, options: &[&str]) -> String {
        let mut all = vec!["--yes"];
        all.extend(options);
        failed(&self.command(&all).output().unwrap())
    }
}

/// Returns what a failed run said.
pub(crate) fn failed(output: &Output) -> String {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}{}", text(&output.stdout));
    message
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name under which the kernel knows the filesystem of a path.
pub(crate) fn fstype(path: &Path) -> String {
    let output = Command::new(REHOME).args(["fs", "--format", "json"]).arg(path).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["site"]["fstype"].as_str().unwrap().to_owned()
}

/// Everything that can be told of the files below a directory: kind, mode, size, times, content, link target.
pub(crate) fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(root.join(&directory)).unwrap() {
            let path = directory.join(entry.unwrap().file_name());
            let full = root.join(&path);
            let found = full.symlink_metadata().unwrap();
            let mut line = format!("{:o} {}.{:09}", found.mode(), found.mtime(), found.mtime_nsec());
            if found.is_dir() {
                open.push(path.clone());
            } else if found.is_symlink() {
                write!(line, " -> {}", fs::read_link(&full).unwrap().display()).unwrap();
            } else if found.is_file() {
                write!(line, " {} {}", found.len(), blake3::hash(&fs::read(&full).unwrap())).unwrap();
            }
            seen.insert(path, line);
        }
    }
    seen
}

/// The picture without the git dir and without what belongs to the filesystem alone.
pub(crate) fn worktree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = picture(root);
    seen.retain(|path, _| !path.starts_with(".git"));
    seen
}

/// The partial directory that a failed run leaves beside the destination.
pub(crate) fn partial(dest: &Path) -> PathBuf {
    let name = dest.file_name().unwrap().to_str().unwrap();
    dest.with_file_name(format!(".{name}.rehome-partial"))
}

pub(crate) fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Returns whether the test can run; a test that cannot says so, and fails where everything is required.
pub(crate) fn can(test: &str, what: &str, is_possible: bool) -> bool {
    if !is_possible {
        // Past the test harness's capture, which hides what a passing test prints.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: needs {what}");
        assert!(std::env::var_os("REHOME_REQUIRE_ALL").is_none_or(|value| value != "1"), "{test} needs {what}");
    }
    is_possible
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
