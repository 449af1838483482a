//! A mount that stops answering: a signal still ends the move, and a later run completes it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::ground::{Ground, partial, picture, text, worktree};
use crate::slow_mount::{Call, Options, SlowMount, available};

/// Ends a test that would otherwise wait for ever; a run that hangs would never end by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Files that are noted at least before the move is stopped; they are written down 32 at a time.
const NOTED: usize = 64;

/// A repository of some hundred files, so that most of it is copied when one file hangs.
fn large() -> Ground {
    let ground = Ground::furnished();
    for number in 0..240 {
        ground.write(format!("src/many/d{}/f{number}", number % 12), format!("{number}\n").repeat(50));
    }
    ground.commit("many");
    ground
}

fn begin(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited too long");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal and waits for the end.
fn stopped(child: Child, signal: Signal) -> Output {
    kill_process(Pid::from_child(&child), signal).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not end, or something holds its output open"))
}

fn noted(dest: &Path) -> usize {
    fs::read_to_string(partial(dest).join("journal")).unwrap_or_default().lines().count()
}

/// Starts a move that hangs at one file, with much of the rest copied.
fn hanging(ground: &Ground, mount: &SlowMount) -> Child {
    mount.hang("many/d5/f5", &[Call::Read]).unwrap();
    let child = begin(ground.command_from(mount.path(), &["--yes"]));
    assert!(mount.wait_for_hung(1, PATIENCE));
    wait_for(|| noted(&ground.dest()) > NOTED);
    child
}

#[test]
fn a_signal_ends_a_move_whose_mount_hangs_and_the_next_run_completes_it() {
    if !available("a_signal_ends_a_move_whose_mount_hangs_and_the_next_run_completes_it") {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let ground = large();
        let before = picture(&ground.source());
        let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
        let output = stopped(hanging(&ground, &mount), signal);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.starts_with("rehome: interrupted while a mount did not answer\n"), "{said}");
        assert!(said.contains(partial(&ground.dest()).to_str().unwrap()), "{said}");
        assert!(!ground.dest().exists());
        mount.heal();
        let report = ground.moved_from(mount.path(), &[]);
        assert_eq!(report["plan"]["continues"], true);
        assert!(report["result"]["files_continued"].as_u64().unwrap() >= 32, "{}", report["result"]);
        assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
        assert!(!partial(&ground.dest()).exists());
        drop(mount);
        assert_eq!(picture(&ground.source()), before);
    }
}

#[test]
fn a_run_that_was_killed_and_still_hangs_does_not_keep_the_next_one_out() {
    if !available("a_run_that_was_killed_and_still_hangs_does_not_keep_the_next_one_out") {
        return;
    }
    let ground = large();
    let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
    let output = stopped(hanging(&ground, &mount), Signal::INT);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(mount.hung(), 1, "the process that was given up still waits for its answer");
    ground.moved_from(&ground.source(), &[]);
    assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
    mount.heal();
}

#[test]
fn a_signal_ends_a_move_that_hangs_before_anything_was_copied() {
    if !available("a_signal_ends_a_move_that_hangs_before_anything_was_copied") {
        return;
    }
    let ground = large();
    for calls in [0, 20, 200] {
        let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
        mount.hang_everything_after(calls).unwrap();
        let child = begin(ground.command_from(mount.path(), &["--yes"]));
        assert!(mount.wait_for_hung(1, PATIENCE));
        let output = stopped(child, Signal::INT);
        assert_eq!(output.status.code(), Some(130), "{calls}: {}", text(&output.stderr));
        assert!(!ground.dest().exists());
    }
    ground.moved(&[]);
    assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
}
