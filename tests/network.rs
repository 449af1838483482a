//! A real network mount on this machine's loopback: sshfs, with a server of its own that ends with the test.
//!
//! NFS and SMB need a client in the kernel, which test machines lack; they are tried in the 9p machine (`tests/lab`),
//! whose kernel has both.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/repos.rs"]
mod repos;

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use repos::{Run, World, difference, snapshot, wait, wait_until};
use rustix::process::{Pid, Signal, kill_process};

/// Ends a test that would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(90);
/// Where Debian installs the server; it insists on being called by its whole path.
const SSHD: &str = "/usr/sbin/sshd";
/// A directory that the server wants to exist, and that its service would make.
const SSHD_RUN: &str = "/run/sshd";

/// A server on a free port of 127.0.0.1 with keys of its own, and a mount of a directory that it serves.
struct Share {
    server: Child,
    mount_point: PathBuf,
    keys: tempfile::TempDir,
    world: World,
}

impl Share {
    /// Serves and mounts; `None`, said aloud, where the programs are missing, which fails where everything is required.
    fn new(test: &str) -> Option<Share> {
        let has = |program: &str| {
            Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
        };
        let is_possible = rustix::process::geteuid().is_root()
            && Path::new(SSHD).exists()
            && has("sshfs")
            && has("ssh")
            && Path::new("/dev/fuse").exists();
        if !is_possible {
            // Past the test harness's capture, which hides what a passing test prints.
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: needs root, /dev/fuse, sshd and sshfs");
            assert!(std::env::var_os("REHOME_REQUIRE_ALL").is_none_or(|value| value != "1"), "{test} needs sshfs");
            return None;
        }
        let keys = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = serve(keys.path(), port);
        let world = World::new();
        let mount_point = keys.path().join("mount");
        fs::create_dir(&mount_point).unwrap();
        let share = Share { server, mount_point, keys, world };
        assert!(wait_until(PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok()), "{}", share.log());
        share.mount(port);
        Some(share)
    }

    fn mount(&self, port: u16) {
        let known = self.keys.path().join("known_hosts");
        let options = [
            format!("port={port}"),
            format!("IdentityFile={}", self.keys.path().join("user").display()),
            format!("UserKnownHostsFile={}", known.display()),
            "StrictHostKeyChecking=accept-new,BatchMode=yes,IdentitiesOnly=yes".to_owned(),
        ];
        let output = Command::new("sshfs")
            .args(["-F", "/dev/null", "-o", &options.join(",")])
            .arg(format!("root@127.0.0.1:{}", self.world.ground().display()))
            .arg(&self.mount_point)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stderr), self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.keys.path().join("log")).unwrap_or_default()
    }

    /// Makes a repository on the share and returns its path there.
    fn repository(&self) -> PathBuf {
        self.world.make("make_repo.sh", "plain", &self.mount_point).unwrap().places.remove(0)
    }

    /// Runs rehome and returns its JSON.
    fn json(&self, args: &[&str]) -> serde_json::Value {
        let run = Run::of(self.world.rehome(args), PATIENCE);
        assert!(run.status.success(), "{run:?}");
        run.json()
    }

    /// Sends a signal to the processes that serve the mount, but not to the one that listens.
    fn signal_sessions(&self, signal: Signal) {
        let sessions = descendants(self.server.id());
        assert!(!sessions.is_empty(), "nobody serves the mount");
        for session in sessions {
            // One may end while others are told.
            let _ = kill_process(session, signal);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let sessions = descendants(self.server.id());
        for session in &sessions {
            let _ = kill_process(*session, Signal::CONT);
        }
        let _ = Command::new("fusermount3").arg("-uz").arg(&self.mount_point).status();
        for session in sessions {
            let _ = kill_process(session, Signal::TERM);
        }
        let _ = self.server.kill();
        let _ = wait(&mut self.server, PATIENCE);
    }
}

/// Starts a server that lets the user in with a key that is made here, and listens on the loopback alone.
fn serve(keys: &Path, port: u16) -> Child {
    fs::create_dir_all(SSHD_RUN).unwrap();
    for name in ["host", "user"] {
        let status =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(keys.join(name)).status();
        assert!(status.unwrap().success());
    }
    fs::copy(keys.join("user.pub"), keys.join("authorized")).unwrap();
    fs::set_permissions(keys, fs::Permissions::from_mode(0o700)).unwrap();
    let keys_shown = keys.display();
    let config = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {keys_shown}/host\nAuthorizedKeysFile {keys_shown}/authorized\n\
         PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n\
         AllowTcpForwarding no\nSubsystem sftp internal-sftp\n"
    );
    fs::write(keys.join("config"), config).unwrap();
    let log = fs::File::create(keys.join("log")).unwrap();
    let mut command = Command::new(SSHD);
    command.args(["-D", "-e", "-f"]).arg(keys.join("config"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// Returns the processes below a process, the nearest first.
fn descendants(root: u32) -> Vec<Pid> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(1)?.parse::<i32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut found = vec![root.cast_signed()];
    let mut at = 0;
    while at < found.len() {
        found
            .extend(parents.iter().filter(|(_, parent)| *parent == found[at]).map(|(pid, _)| *pid).collect::<Vec<_>>());
        at += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

#[test]
fn a_repository_on_sshfs_is_found_measured_and_moved() {
    let Some(share) = Share::new("a_repository_on_sshfs_is_found_measured_and_moved") else { return };
    let repository = share.repository();
    let place = repository.to_str().unwrap();
    let site = share.json(&["fs", "--format", "json", place])["site"].clone();
    assert_eq!((&site["fstype"], &site["class"]), (&"fuse.sshfs".into(), &"network".into()), "{site:#}");
    assert_eq!(
        (&site["transport"], &site["mount_point"]),
        (&"sshfs".into(), &share.mount_point.to_str().unwrap().into())
    );

    let before = snapshot(&share.world.ground());
    let report = share.json(&["check", "--budget", "20s", "--format", "json", place]);
    assert_eq!(report["complete"], true, "{report:#}");
    assert_eq!(report["facts"]["site"]["class"], "network");
    assert!(report["recommendation"]["verdict"].is_string(), "{report:#}");
    let measurements = report["measurements"].as_array().unwrap();
    let compared: Vec<_> = measurements.iter().filter(|it| it["in_copy"].is_object()).collect();
    assert!(compared.iter().any(|it| it["workload"] == "git_status"), "{report:#}");
    assert!(compared.iter().all(|it| it["same_work"] == true), "{report:#}");

    let destination = share.world.home().join("moved");
    let moved = share.json(&["move", "--yes", "--format", "json", place, destination.to_str().unwrap()]);
    assert_eq!(moved["plan"]["source_fstype"], "fuse.sshfs");
    assert_eq!(moved["plan"]["files"], moved["result"]["verified"]["files_read_back"], "{moved:#}");
    assert_eq!(difference(&before, &snapshot(&share.world.ground())), [""; 0]);
    let status = |dir: &Path| {
        let output = share.world.git(dir).args(["--no-optional-locks", "status", "--porcelain"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        status(&destination),
        status(&share.world.ground().join(repository.strip_prefix(&share.mount_point).unwrap()))
    );
    let fsck = share.world.git(&destination).args(["fsck", "--strict", "--no-progress"]).output().unwrap();
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
}

#[test]
fn a_server_that_stands_still_holds_neither_check_nor_bench_nor_move_up() {
    let test = "a_server_that_stands_still_holds_neither_check_nor_bench_nor_move_up";
    let Some(share) = Share::new(test) else { return };
    let repository = share.repository();
    let destination = share.world.home().join("moved");
    share.signal_sessions(Signal::STOP);
    for budget in ["500ms", "1s"] {
        Run::of(share.world.check(&repository, budget, &[]), PATIENCE).assert_civil("check");
    }
    let mut bench = share.world.rehome(["bench", "--suite", "small", "--budget", "1s"]);
    bench.arg(&share.mount_point).arg(share.world.home());
    let run = Run::of(bench, PATIENCE);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(run.stderr.contains("did not answer"), "{run:?}");

    let mut command = share.world.rehome(["move", "--yes"]);
    let mut moving =
        command.arg(&repository).arg(&destination).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&moving), Signal::INT).unwrap();
    assert_eq!(wait(&mut moving, PATIENCE).and_then(|status| status.code()), Some(130));

    share.signal_sessions(Signal::CONT);
    assert!(wait_until(PATIENCE, || share.world.processes().is_empty()), "{:?}", share.world.processes());
    share.json(&["move", "--yes", "--format", "json", repository.to_str().unwrap(), destination.to_str().unwrap()]);
    assert!(destination.join(".git").is_dir());
}
