//! `rehome bench` and `rehome check --writes` on a mount that stops answering: they end, say where, and keep the rest.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/repos.rs"]
mod repos;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use repos::{Run, World, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use slow_mount::{Call, Options, SlowMount, available};

/// Ends a test that would otherwise wait for ever; a run that hangs would never end by itself.
const PATIENCE: Duration = Duration::from_secs(90);

/// A slow mount, and a directory on a disk beside it.
struct Ground {
    // Dropped first: unmounted before the backing files go.
    mount: SlowMount,
    world: World,
}

impl Ground {
    fn new() -> Ground {
        let world = World::new();
        let mount = SlowMount::new(&world.ground(), Options::like_a_network()).unwrap();
        Ground { mount, world }
    }

    fn disk(&self) -> PathBuf {
        self.world.home()
    }

    /// `rehome bench` on the mount and on the disk.
    fn bench(&self, options: &[&str]) -> std::process::Command {
        let mut command = self.world.rehome(["bench", "--quiet"]);
        command.arg(self.mount.path()).arg(self.disk()).args(options);
        command
    }

    /// A repository of which the mount answers all that `check` reads, and nothing of what `--writes` makes beside it.
    fn repository_beside_which_writes_hang(&self) -> PathBuf {
        let above = self.mount.path().join("above");
        fs::create_dir(&above).unwrap();
        let repository = self.world.make("make_repo.sh", "plain", &above).unwrap().places.remove(0);
        self.mount.hang("above/.rehome-bench-*/work/**", &[Call::Create, Call::Mkdir]).unwrap();
        repository
    }

    fn saved(&self) -> PathBuf {
        self.world.marks().join("saved.json")
    }

    /// Starts a run that would go on for long, and waits until a figure was saved.
    fn long_bench(&self, budget: &str) -> Child {
        let saved = self.saved();
        let options = ["--suite", "small", "--files", "50", "--rounds", "1000", "--budget", budget, "--output"];
        let mut command = self.bench(&options);
        let mut child = command.arg(&saved).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let has_figures = || read(&saved).is_some_and(|report| figures(&report) > 0);
        assert!(wait_until(PATIENCE, || has_figures() || child.try_wait().unwrap().is_some()));
        child
    }

    fn make_directories(&self) {
        for number in 0..20 {
            fs::create_dir_all(self.world.ground().join(format!("d{number}/e"))).unwrap();
        }
    }

    /// What a run must leave alone, and that nothing of it is at work any more once the mount answers.
    fn assert_clean(&self, what: &str) {
        let left: Vec<_> = fs::read_dir(self.disk()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert_eq!(left, [""; 0].map(PathBuf::from), "{what}");
        self.mount.heal();
        assert!(wait_until(PATIENCE, || self.world.processes().is_empty()), "{what}: {:?}", self.world.processes());
    }
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn figures(report: &Value) -> usize {
    report["suites"].as_array().unwrap().iter().map(|suite| suite["figures"].as_array().unwrap().len()).sum()
}

/// Waits for the end of a run and returns its exit status with what it printed.
fn end_of(child: Child) -> (Option<i32>, String, String) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    let output = receiver
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|_| panic!("it does not end, or something holds its output open"));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Words without the line breaks of a narrow terminal.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_benchmark_ends_when_a_mount_hangs_and_keeps_the_rounds_that_were_finished() {
    if !available("a_benchmark_ends_when_a_mount_hangs_and_keeps_the_rounds_that_were_finished") {
        return;
    }
    let ground = Ground::new();
    let child = ground.long_bench("8s");
    ground.mount.hang_everything().unwrap();
    let (code, stdout, stderr) = end_of(child);
    assert_eq!(code, Some(0), "{stderr}");
    let place = ground.mount.path().display();
    let said = words(&stdout);
    assert!(said.contains(&format!("`{place}` stopped answering")), "{stdout}");
    let report = read(&ground.saved()).unwrap();
    assert!(figures(&report) > 0 && report["complete"] == false, "{report:#}");
    assert_eq!(report["suites"][0]["failures"][0]["place"], 0, "{report:#}");
    let gone = |place: usize| report["places"][place]["scratch"]["gone"].as_bool().unwrap();
    assert_eq!((gone(0), gone(1)), (false, true), "{report:#}");
    ground.assert_clean("after the hang");

    // What it had to leave on the mount, the next run removes.
    let run = Run::of(ground.bench(&["--suite", "small", "--files", "20", "--rounds", "1"]), PATIENCE);
    assert!(words(&run.stdout).contains("removed what a killed run left"), "{run:?}");
    assert_eq!(fs::read_dir(ground.world.ground()).unwrap().count(), 0);
}

#[test]
fn a_benchmark_ends_wherever_it_meets_a_mount_that_hangs() {
    if !available("a_benchmark_ends_wherever_it_meets_a_mount_that_hangs") {
        return;
    }
    let ground = Ground::new();
    for calls in [0, 12, 60, 250] {
        let what = format!("a mount that answers {calls} calls");
        ground.mount.hang_everything_after(calls).unwrap();
        let run = Run::of(ground.bench(&["--suite", "small,git", "--files", "40", "--budget", "1s"]), PATIENCE);
        run.assert_civil(&what);
        let place = format!("`{}`", ground.mount.path().display());
        assert!(words(&run.stdout).contains(&place) || run.stderr.contains(&place), "{what}: {run:?}");
        ground.assert_clean(&what);
    }
}

#[test]
fn a_git_that_hangs_is_given_up_with_the_budget() {
    if !available("a_git_that_hangs_is_given_up_with_the_budget") {
        return;
    }
    let ground = Ground::new();
    // Only the program hangs: what rehome itself asks of the mount is answered.
    ground.mount.hang("**/.git/index.lock", &[]).unwrap();
    let run = Run::of(ground.bench(&["--suite", "git", "--budget", "2s"]), PATIENCE);
    run.assert_civil("a git that hangs");
    assert!(words(&run.stdout).contains("did not end within"), "{run:?}");
    ground.assert_clean("a git that hangs");
}

#[test]
fn a_signal_ends_a_benchmark_that_hangs() {
    if !available("a_signal_ends_a_benchmark_that_hangs") {
        return;
    }
    for sent in [Signal::INT, Signal::TERM] {
        let ground = Ground::new();
        let child = ground.long_bench("1h");
        ground.mount.hang_everything().unwrap();
        assert!(ground.mount.wait_for_hung(1, PATIENCE));
        kill_process(Pid::from_child(&child), sent).unwrap();
        let (code, stdout, stderr) = end_of(child);
        assert_eq!(code, Some(130), "{stderr}");
        assert!(stderr.ends_with("rehome: interrupted\n"), "{stderr}");
        assert!(words(&stdout).contains("stopped answering"), "{stdout}");
        assert!(figures(&read(&ground.saved()).unwrap()) > 0);
        ground.assert_clean("after a signal");
    }
}

#[test]
fn a_result_that_should_go_to_the_mount_that_hangs_holds_nothing_up() {
    if !available("a_result_that_should_go_to_the_mount_that_hangs_holds_nothing_up") {
        return;
    }
    let ground = Ground::new();
    ground.mount.hang("**/.rehome-*", &[Call::Create]).unwrap();
    let mut command = ground.bench(&["--suite", "small", "--files", "20", "--budget", "1s", "--output", "saved.json"]);
    command.current_dir(ground.mount.path());
    let run = Run::of(command, PATIENCE);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    ground.assert_clean("a result on the mount");
}

#[test]
fn a_search_for_repositories_ends_when_a_mount_hangs_and_names_it() {
    if !available("a_search_for_repositories_ends_when_a_mount_hangs_and_names_it") {
        return;
    }
    let ground = Ground::new();
    ground.make_directories();
    let survey = || {
        let mut command = ground.world.rehome(["survey", "--budget", "5s"]);
        command.arg(ground.mount.path());
        command
    };
    for calls in [0, 20] {
        ground.mount.hang_everything_after(calls).unwrap();
        let run = Run::of(survey(), PATIENCE);
        assert_eq!(run.status.code(), Some(1), "{calls}: {run:?}");
        let place = ground.mount.path().display();
        assert!(run.stderr.starts_with(&format!("rehome: `{place}` did not answer")), "{calls}: {run:?}");
        ground.assert_clean("a search");
    }
    ground.mount.hang_everything().unwrap();
    let child = survey().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // That something hangs does not tell that it is this run: the kernel may still close what an earlier one had open.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let has_begun = || fs::read_to_string(&children).is_ok_and(|pids| !pids.trim().is_empty());
    assert!(wait_until(PATIENCE, has_begun), "it starts a process that searches, and listens for signals by then");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(end_of(child).0, Some(130));
    ground.assert_clean("a search");
}

#[test]
fn a_check_that_writes_ends_when_the_mount_hangs_and_keeps_the_advice() {
    if !available("a_check_that_writes_ends_when_the_mount_hangs_and_keeps_the_advice") {
        return;
    }
    let ground = Ground::new();
    let repository = ground.repository_beside_which_writes_hang();
    let above = repository.parent().unwrap();
    let run = Run::of(ground.world.check(&repository, "3s", &["--writes", "--format", "json"]), PATIENCE);
    assert!(run.status.success(), "{run:?}");
    let report = run.json();
    assert_eq!(report["complete"], false);
    assert!(report["recommendation"]["verdict"].is_string(), "{report:#}");
    let measured = report["measurements"].as_array().unwrap();
    assert!(measured.iter().any(|it| it["workload"] == "git_status" && it["speedup"].is_object()), "{report:#}");
    let notes = report["notes"].to_string();
    assert!(notes.contains(&format!("`{}` stopped answering", above.display())), "{notes}");
    ground.mount.heal();
    assert!(wait_until(PATIENCE, || ground.world.processes().is_empty()));
    assert_eq!(ground.world.leftovers(), [""; 0].map(PathBuf::from));
}

#[test]
fn a_signal_ends_a_check_that_writes_on_a_mount_that_hangs() {
    if !available("a_signal_ends_a_check_that_writes_on_a_mount_that_hangs") {
        return;
    }
    let ground = Ground::new();
    let repository = ground.repository_beside_which_writes_hang();
    let mut command = ground.world.check(&repository, "60s", &["--writes", "--rounds", "3", "--format", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(ground.mount.wait_for_hung(1, PATIENCE));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, stdout, stderr) = end_of(child);
    assert_eq!(code, Some(130), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert!(!report["measurements"].as_array().unwrap().is_empty(), "{report:#}");
    ground.mount.heal();
    assert!(wait_until(PATIENCE, || ground.world.processes().is_empty()));
    assert_eq!(ground.world.leftovers(), [""; 0].map(PathBuf::from));
}
