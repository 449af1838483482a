//! Real filesystems for tests: disk images on loop devices and other mounts, in a mount namespace of their own.
//!
//! Nothing of it is seen outside, and all of it goes away with the process that holds the namespace.

#![allow(dead_code, reason = "each test uses its own part")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Set for a test that runs again inside the namespace: the directory that the mounts are below.
const INSIDE: &str = "REHOME_TEST_GROUNDS";
/// Large enough for the smallest filesystem that each `mkfs` makes; the files are sparse.
const IMAGE_BYTES: u64 = 512 * 1024 * 1024;

/// A mount namespace and a directory for its mounts.
pub(crate) struct Grounds {
    holder: Child,
    dir: TempDir,
}

impl Grounds {
    /// Makes an empty namespace; `None`, said aloud, where this machine does not allow it or a program is missing.
    ///
    /// Panics instead when `REHOME_REQUIRE_ALL=1`.
    pub(crate) fn new(test: &str, programs: &[&str]) -> Option<Self> {
        match Self::try_new(programs) {
            Ok(grounds) => Some(grounds),
            Err(reason) => {
                let message = format!("SKIPPED {test}: {reason}");
                assert!(std::env::var_os("REHOME_REQUIRE_ALL").is_none_or(|value| value != "1"), "{message}");
                say(&message);
                None
            }
        }
    }

    fn try_new(programs: &[&str]) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root for mounts".to_owned());
        }
        for program in programs.iter().chain(&["unshare", "nsenter", "mount"]) {
            if !["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists()) {
                return Err(format!("needs the program {program}"));
            }
        }
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", "echo ready; read -r _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "ready\n" {
            holder.wait().unwrap();
            return Err("needs the right to make a mount namespace".to_owned());
        }
        Ok(Self { holder, dir: tempfile::tempdir().unwrap() })
    }

    /// Returns the directory of a test that runs inside, `None` outside.
    pub(crate) fn inside() -> Option<PathBuf> {
        std::env::var_os(INSIDE).map(PathBuf::from)
    }

    /// Returns whether this kernel has a filesystem, and says aloud when it has not.
    ///
    /// Unlike a program, it cannot be installed, so its absence never fails a test.
    pub(crate) fn has_filesystem(&self, fstype: &str) -> bool {
        // Loads the module where there is one; a kernel without it, or without modules, is found out below.
        self.output("sh", ["-c".to_owned(), format!("modprobe {fstype} 2> /dev/null")]);
        let known = std::fs::read_to_string("/proc/filesystems").unwrap();
        let is_known = known.lines().any(|line| line.split_whitespace().last() == Some(fstype));
        if !is_known {
            say(&format!("SKIPPED the part with {fstype}: this kernel does not have it"));
        }
        is_known
    }

    /// Returns a path below the directory for mounts, links resolved.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Runs a program inside and returns what came of it.
    pub(crate) fn output<S: AsRef<OsStr>>(&self, program: &str, args: impl IntoIterator<Item = S>) -> Output {
        let pid = self.holder.id().to_string();
        Command::new("nsenter")
            .args(["--target", &pid, "--mount", "--", program])
            .args(args)
            .env(INSIDE, self.path(""))
            .env_remove("WSL_DISTRO_NAME")
            .output()
            .unwrap()
    }

    /// Runs a program inside that must succeed.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, program: &str, args: impl IntoIterator<Item = S>) {
        let output = self.output(program, args);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a line of shell inside that must succeed; the current directory is the one for mounts.
    pub(crate) fn shell(&self, line: &str) {
        let script = format!("set -e; cd \"$1\"; {line}");
        self.run("sh", ["-c".into(), script, "sh".into(), self.path("").to_str().unwrap().to_owned()]);
    }

    /// Makes a filesystem in a new image and mounts it at `name`.
    pub(crate) fn mount_image(&self, mkfs: &[&str], fstype: &str, name: &str) -> PathBuf {
        let image = self.path(&format!("{name}.img"));
        File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        self.run(mkfs[0], mkfs[1..].iter().map(OsStr::new).chain([image.as_os_str()]));
        let point = self.path(name);
        std::fs::create_dir(&point).unwrap();
        let args = [OsStr::new("-t"), OsStr::new(fstype), OsStr::new("-o"), OsStr::new("loop")];
        self.run("mount", args.into_iter().chain([image.as_os_str(), point.as_os_str()]));
        point
    }

    /// Mounts a filesystem that needs no image at `name`.
    pub(crate) fn mount(&self, fstype: &str, source: &str, name: &str) -> PathBuf {
        let point = self.path(name);
        std::fs::create_dir_all(&point).unwrap();
        self.run("mount", [OsStr::new("-t"), OsStr::new(fstype), OsStr::new(source), point.as_os_str()]);
        point
    }

    /// Runs one test of this very program again, inside.
    pub(crate) fn run_test(&self, name: &str) {
        let program = std::env::current_exe().unwrap();
        let output = self.output(program.to_str().unwrap(), ["--exact", name, "--nocapture"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("1 passed"), "no test has the name {name}: {said}");
    }
}

/// Writes a line straight to the descriptor, so that the test harness does not keep it back.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

impl Drop for Grounds {
    fn drop(&mut self) {
        // The holder ends when its input does; what is mounted in its namespace goes with it.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
