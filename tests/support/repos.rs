//! Repositories of every kind, made by the scripts in `tests/fixtures`, and a world of their own for `rehome` to run in.

#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Exit status of a fixture script for a kind that cannot be made here.
const UNSUPPORTED: i32 = 77;
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(5);
/// Variable that marks every process that a world started.
const MARK: &str = "REHOME_TEST_WORLD";

/// A home, a cache and a temporary directory that belong to one test, on the disk that holds the build.
pub(crate) struct World {
    dir: TempDir,
    /// Directories put in front of the search path, or the whole of it.
    path: OsString,
}

/// What a fixture script made.
pub(crate) struct Fixture {
    /// The paths to check.
    pub(crate) places: Vec<PathBuf>,
    /// The lines after those.
    pub(crate) rest: Vec<String>,
}

/// How a run of `rehome` ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> World {
        let dir = tempfile::Builder::new().prefix("world-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["home", "cache", "state", "tmp", "ground", "marks"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        World { dir, path: std::env::var_os("PATH").unwrap() }
    }

    /// Lets programs be found in these directories alone.
    pub(crate) fn set_path(&mut self, path: impl Into<OsString>) {
        self.path = path.into();
    }

    /// Returns the directory that repositories are made in.
    pub(crate) fn ground(&self) -> PathBuf {
        self.dir.path().join("ground")
    }

    /// Returns the home directory, which is also where copies go.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Returns the directory in which hostile programs leave their marks.
    pub(crate) fn marks(&self) -> PathBuf {
        self.dir.path().join("marks")
    }

    /// Prepares a program with the environment of this world and none of this machine's settings.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home())
            .env("XDG_CACHE_HOME", self.dir.path().join("cache"))
            .env("XDG_STATE_HOME", self.dir.path().join("state"))
            .env("TMPDIR", self.dir.path().join("tmp"))
            .env("LC_ALL", "C")
            .env(MARK, self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Prepares `rehome` with these arguments.
    pub(crate) fn rehome<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_rehome"));
        command.args(args);
        command
    }

    /// Prepares `rehome check` of a place.
    pub(crate) fn check(&self, place: &Path, budget: &str, options: &[&str]) -> Command {
        let mut command = self.rehome(["check", "--budget", budget]);
        command.arg(place).args(options);
        command
    }

    /// Prepares git, the user's own configuration left out.
    pub(crate) fn git(&self, dir: &Path) -> Command {
        let mut command = self.command("git");
        self.as_author(&mut command);
        command.current_dir(dir);
        command
    }

    fn as_author(&self, command: &mut Command) {
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "a tester")))
            .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "tester@example.org")))
            // A process that tidies up in the background would change what is being compared.
            .envs([
                ("GIT_CONFIG_COUNT", "2"),
                ("GIT_CONFIG_KEY_0", "maintenance.auto"),
                ("GIT_CONFIG_KEY_1", "gc.auto"),
            ])
            .envs([("GIT_CONFIG_VALUE_0", "false"), ("GIT_CONFIG_VALUE_1", "0")])
            .env("MARKS", self.marks());
    }

    /// Runs a shell command as an ordinary user of git would.
    pub(crate) fn shell(&self, dir: &Path, command: &str) -> Output {
        let mut shell = self.command("sh");
        self.as_author(&mut shell);
        shell.args(["-c", command]).current_dir(dir).output().unwrap()
    }

    /// Runs a fixture script in `dir`, which may lie on a mount; `None` (said aloud) where it cannot make that kind.
    pub(crate) fn make(&self, script: &str, kind: &str, dir: &Path) -> Option<Fixture> {
        let mut command = self.command(fixtures().join(script));
        self.as_author(&mut command);
        let out = command.arg(kind).current_dir(dir).output().unwrap();
        if out.status.code() == Some(UNSUPPORTED) {
            let _ = writeln!(io::stderr(), "SKIPPED {kind}: this git or filesystem cannot make it");
            return None;
        }
        assert!(out.status.success(), "{script} {kind}: {}", String::from_utf8_lossy(&out.stderr));
        let lines = out.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let (places, rest): (Vec<&[u8]>, Vec<&[u8]>) =
            lines.partition(|line| dir.join(OsString::from_vec(line.to_vec())).exists());
        Some(Fixture {
            places: places.iter().map(|line| dir.join(OsString::from_vec(line.to_vec()))).collect(),
            rest: rest.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect(),
        })
    }

    /// Returns what a run left outside the repository: everything in home, cache and temporary directory but the
    /// program's own empty directory in the cache, and everything in the state directory but saved answers.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open: Vec<PathBuf> = ["home", "cache", "state", "tmp"].map(PathBuf::from).to_vec();
        while let Some(dir) = open.pop() {
            // What is being removed while one looks is no leftover.
            for entry in fs::read_dir(self.dir.path().join(&dir)).into_iter().flatten().flatten() {
                let path = dir.join(entry.file_name());
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_dir {
                    open.push(path.clone());
                }
                let is_saved_answer = path.starts_with("state/rehome")
                    && (is_dir || path.extension().is_some_and(|extension| extension == "json"));
                if !is_saved_answer && path != Path::new("cache/rehome") {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Returns the marks that hostile programs left, and removes them.
    pub(crate) fn take_marks(&self) -> Vec<OsString> {
        let mut marks = Vec::new();
        for entry in fs::read_dir(self.marks()).unwrap() {
            let entry = entry.unwrap();
            fs::remove_file(entry.path()).unwrap();
            marks.push(entry.file_name());
        }
        marks.sort();
        marks
    }

    /// Returns the processes of this world that still run, with their command lines.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.dir.path().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            // Processes end while one looks; what cannot be read is gone or a zombie.
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|line| line == mark.as_bytes()) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }
}

impl Run {
    /// Runs a command to its end.
    ///
    /// # Panics
    ///
    /// When it does not end within `patience`; it is killed first.
    pub(crate) fn of(mut command: Command, patience: Duration) -> Run {
        let mut out = tempfile::tempfile().unwrap();
        let mut err = tempfile::tempfile().unwrap();
        command.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        let status = wait(&mut child, patience);
        let (stdout, stderr) = (contents(&mut out), contents(&mut err));
        let status = status.unwrap_or_else(|| {
            // A process that waits for a hung mount cannot be waited for.
            let _ = child.kill();
            panic!("{command:?} does not end within {patience:?}\n{stdout}{stderr}")
        });
        Run { status, stdout, stderr }
    }

    /// Returns the JSON that it printed.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks what holds for every run: no panic, an exit status of the documented table, nothing printed that a
    /// terminal would obey.
    pub(crate) fn assert_civil(&self, what: &str) {
        assert!(!self.stderr.contains("panicked"), "{what}: {}", self.stderr);
        assert!(matches!(self.status.code(), Some(0 | 1)), "{what}: {:?}\n{}", self.status, self.stderr);
        for (stream, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let control = text.chars().find(|c| (c.is_control() && *c != '\n') || is_bidi(*c));
            assert_eq!(control, None, "{what}: control character on {stream}: {text:?}");
        }
        if self.status.code() == Some(1) {
            assert!(self.stderr.starts_with("rehome: "), "{what}: {}", self.stderr);
        }
    }
}

/// Whether a character reorders the text around it.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Waits for a process; `None` when it runs longer than `patience`.
pub(crate) fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if Instant::now() > end {
            return None;
        }
        thread::sleep(POLL);
    }
}

/// Waits until something holds; false when that takes longer than `patience`.
pub(crate) fn wait_until(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(POLL);
    }
    true
}

fn contents(file: &mut File) -> String {
    use std::io::{Read, Seek};
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the directory with the fixture scripts.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Returns the kinds that a fixture script makes.
pub(crate) fn kinds(script: &str) -> Vec<String> {
    let out = Command::new(fixtures().join(script)).arg("--list").output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Every byte and every time below a directory, access times left out: name to a text that changes if anything does.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let path = if relative.as_os_str().is_empty() { root.to_owned() } else { root.join(&relative) };
        let m = fs::symlink_metadata(&path).unwrap();
        let contents = if m.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().as_bytes().to_vec()
        } else if m.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        let mut hash = DefaultHasher::new();
        hash.write(&contents);
        let times = [m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()];
        let text = format!("{} {:o} {} {} {times:?} {:x}", m.ino(), m.mode(), m.nlink(), m.size(), hash.finish());
        if m.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| relative.join(entry.unwrap().file_name())));
        }
        seen.insert(relative, text);
    }
    seen
}

/// Returns what differs between two snapshots, for people.
pub(crate) fn difference(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, old) in before {
        match after.get(path) {
            None => lines.push(format!("removed {}", path.display())),
            Some(new) if new != old => lines.push(format!("changed {}: {old} -> {new}", path.display())),
            Some(_) => {}
        }
    }
    lines.extend(after.keys().filter(|path| !before.contains_key(*path)).map(|path| format!("new {}", path.display())));
    lines
}
