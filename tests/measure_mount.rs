//! Measuring on a mount that fails, hangs or is slow: what was measured stays, and it says what was not.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/git.rs"]
mod fixture;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fixture::commit_all_of_old;
use rehome::measure::{Method, Outcome, Request, Workload, measure};
use rehome::progress::{Progress, Silent};
use rehome::scan::access::Access;
use rehome::scan::git;
use rehome::scan::repo::scan;
use rehome::signals::Interrupt;
use rustix::io::Errno;
use slow_mount::{Call, Options, SlowMount, available};
use tempfile::TempDir;

const ALL: &[Workload] = &[Workload::GitStatus, Workload::Stat, Workload::Walk];

struct Ground {
    // Dropped first: unmounted before the backing files go.
    mount: SlowMount,
    target: TempDir,
    _backing: TempDir,
}

impl Ground {
    fn new() -> Ground {
        let backing = tempfile::tempdir().unwrap();
        let root = backing.path();
        for number in 0..300 {
            let dir = root.join(format!("d{}/e{}", number % 6, number % 5));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(format!("file{number:03}")), b"content").unwrap();
        }
        commit_all_of_old(root);
        let mount = SlowMount::new(root, Options::default()).unwrap();
        fixture::git(mount.path(), &["update-index", "-q", "--refresh"]);
        Ground { mount, target: tempfile::tempdir().unwrap(), _backing: backing }
    }

    /// Scans, lets `trouble` begin, and measures.
    fn measure(&self, budget: Duration, workloads: &[Workload], trouble: impl FnOnce(&SlowMount)) -> Outcome {
        self.measure_watched(budget, workloads, trouble, &Silent)
    }

    /// As [`Self::measure`], with somebody who hears how far it is.
    fn measure_watched(
        &self,
        budget: Duration,
        workloads: &[Workload],
        trouble: impl FnOnce(&SlowMount),
        progress: &dyn Progress,
    ) -> Outcome {
        let profile = scan(self.mount.path(), &Access::default()).unwrap();
        let git = git::find();
        trouble(&self.mount);
        let request = Request {
            profile: &profile,
            target: self.target.path(),
            cache_home: None,
            budget,
            rounds: Some(3),
            workloads,
            git: git.as_ref(),
            probe_program: Some(Path::new(env!("CARGO_BIN_EXE_rehome"))),
        };
        measure(&request, progress, &Interrupt::default()).unwrap()
    }
}

/// Does something to the mount when a phase has finished so many rounds.
struct After<'a> {
    phase: &'a str,
    rounds: u64,
    is_phase: AtomicBool,
    act: &'a (dyn Fn() + Sync),
}

impl Progress for After<'_> {
    fn begin(&self, phase: &str, _total: Option<u64>) {
        self.is_phase.store(phase == self.phase, Ordering::Relaxed);
    }

    fn advance(&self, done: u64) {
        if self.is_phase.load(Ordering::Relaxed) && done == self.rounds {
            (self.act)();
        }
    }

    fn end(&self) {}
}

#[test]
fn files_that_cannot_be_read_are_counted_and_the_others_measured() {
    if !available("files_that_cannot_be_read_are_counted_and_the_others_measured") {
        return;
    }
    for errno in [Errno::IO, Errno::STALE, Errno::ACCESS] {
        let ground = Ground::new();
        let outcome = ground.measure(Duration::from_secs(60), &[Workload::Stat], |mount| {
            for name in ["d0/e0/file000", "d1/e1/file001", "d2/e2/file002"] {
                mount.fail(name, &[Call::Lookup, Call::Getattr], errno).unwrap();
            }
        });
        assert!(outcome.complete, "{outcome:?}");
        let stat = &outcome.measurements[0];
        assert_eq!((stat.failed, stat.operations), (Some(3), Some(297)), "{errno}: {stat:?}");
        assert!(stat.same_work && stat.speedup.is_some(), "{stat:?}");
        assert!(stat.note.as_ref().unwrap().contains("could not measure 3 of 300 files"), "{stat:?}");
    }
}

#[test]
fn a_mount_that_hangs_from_the_start_ends_the_run_and_leaves_nothing() {
    if !available("a_mount_that_hangs_from_the_start_ends_the_run_and_leaves_nothing") {
        return;
    }
    let ground = Ground::new();
    let outcome = ground.measure(Duration::from_secs(2), ALL, |mount| mount.hang_everything().unwrap());
    assert!(outcome.hung && !outcome.complete, "{outcome:?}");
    assert!(outcome.measurements.is_empty(), "{outcome:?}");
    drop(outcome);
    assert_eq!(fs::read_dir(ground.target.path()).unwrap().count(), 0);
    ground.mount.heal();
}

#[test]
fn what_was_measured_before_a_mount_hangs_is_kept() {
    if !available("what_was_measured_before_a_mount_hangs_is_kept") {
        return;
    }
    let ground = Ground::new();
    // A whole run's calls are counted, so that the next one hangs near its end.
    let calls = {
        ground.mount.reset_counts();
        let outcome = ground.measure(Duration::from_secs(60), ALL, |_| {});
        assert!(outcome.complete, "{outcome:?}");
        ground.mount.counts().total()
    };
    let outcome = ground.measure(Duration::from_secs(20), ALL, |mount| {
        mount.hang_everything_after(calls * 8 / 10).unwrap();
    });
    assert!(outcome.hung && !outcome.complete, "{outcome:?}");
    assert_eq!(outcome.measurements.first().map(|m| m.workload.as_str()), Some("git_status"), "{outcome:?}");
    assert_eq!(outcome.measurements[0].in_place.method, Method::Run);
    ground.mount.heal();
}

#[test]
fn a_target_that_takes_nothing_in_time_is_replaced_by_memory_and_that_is_said() {
    if !available("a_target_that_takes_nothing_in_time_is_replaced_by_memory_and_that_is_said") {
        return;
    }
    assert!(Path::new("/dev/shm").is_dir(), "every Linux has it");
    let mut ground = Ground::new();
    let backing = tempfile::tempdir().unwrap();
    let slow = SlowMount::new(backing.path(), Options::default()).unwrap();
    slow.set_delay_of(Call::Create, 500_000);
    let kept = std::mem::replace(&mut ground.target, TempDir::new_in(slow.path()).unwrap());
    let outcome = ground.measure(Duration::from_secs(20), &[Workload::GitStatus], |_| {});
    let copy = outcome.copy.as_ref().unwrap();
    assert!(copy.is_in_memory && copy.is_whole, "{outcome:?}");
    assert!(outcome.notes.iter().any(|note| note.contains("made in memory")), "{:?}", outcome.notes);
    assert!(outcome.measurements[0].same_work && outcome.measurements[0].speedup.is_some(), "{outcome:?}");
    let in_memory = outcome.memory_dir.as_ref().unwrap().path().to_owned();
    drop(outcome);
    assert!(!in_memory.exists());
    assert_eq!(fs::read_dir(ground.target.path()).unwrap().count(), 0);
    drop((ground, kept));
}

#[test]
fn a_status_that_does_not_fit_is_predicted_and_says_from_how_long_a_sample() {
    if !available("a_status_that_does_not_fit_is_predicted_and_says_from_how_long_a_sample") {
        return;
    }
    let ground = Ground::new();
    // 300 files at four or more calls each, in series: far beyond the budget.
    let outcome = ground.measure(Duration::from_secs(4), ALL, |mount| mount.set_delay(10_000));
    let status = &outcome.measurements[0];
    assert_eq!(status.in_place.method, Method::Predicted, "{outcome:?}");
    assert!(status.in_place.runs.is_empty() && status.in_place.sampled_s.is_some(), "{status:?}");
    let (low, high) = (status.in_place.low.unwrap(), status.in_place.high.unwrap());
    assert!(low <= status.in_place.median && status.in_place.median <= high, "{status:?}");
    // Every call waits 10 ms and there are some 1,800 of them.
    assert!(status.in_place.median > 10.0, "{status:?}");
    assert!(status.speedup.is_some() && status.in_copy.as_ref().unwrap().method == Method::Run, "{status:?}");
}

/// The file that lies, and the size that it then has.
const LIAR: (&str, u64) = ("d2/e2/file002", 4_000);

#[test]
fn a_mount_that_begins_to_lie_between_two_rounds_loses_the_ratio_of_that_workload_alone() {
    if !available("a_mount_that_begins_to_lie_between_two_rounds_loses_the_ratio_of_that_workload_alone") {
        return;
    }
    let liar = Path::new(LIAR.0);
    // In the order in which they are measured.
    let phases = [("git status", "git_status"), ("stat", "stat"), ("walk", "walk")];
    for (at, (phase, workload)) in phases.iter().enumerate() {
        for rounds in [1, 2] {
            let ground = Ground::new();
            let act = || ground.mount.lie_about_size(liar, LIAR.1);
            let after = After { phase, rounds, is_phase: AtomicBool::new(false), act: &act };
            let outcome = ground.measure_watched(Duration::from_secs(60), ALL, |_| {}, &after);
            let what = format!("{phase}, round {rounds}: {:#?}", outcome.measurements);
            assert!(outcome.complete, "{what}");
            let measured = outcome.measurements.iter().find(|one| one.workload == *workload).unwrap();
            assert!(measured.speedup.is_none() && measured.saved_s.is_none() && !measured.same_work, "{what}");
            assert!(measured.note.as_ref().unwrap().contains(LIAR.0), "{what}");
            for (_, earlier) in &phases[..at] {
                let measured = outcome.measurements.iter().find(|one| one.workload == *earlier).unwrap();
                assert!(measured.same_work && measured.speedup.is_some(), "{what}");
            }
        }
    }
}

/// What was wrong at first and is right later is no better.
#[test]
fn a_mount_that_ends_its_lie_between_two_rounds_has_no_ratio_either() {
    if !available("a_mount_that_ends_its_lie_between_two_rounds_has_no_ratio_either") {
        return;
    }
    for (phase, workload) in [("git status", "git_status"), ("walk", "walk")] {
        let ground = Ground::new();
        let act = || ground.mount.tell_the_truth(Path::new(LIAR.0));
        let after = After { phase, rounds: 1, is_phase: AtomicBool::new(false), act: &act };
        let lie = |mount: &SlowMount| mount.lie_about_size(Path::new(LIAR.0), LIAR.1);
        let outcome = ground.measure_watched(Duration::from_secs(60), ALL, lie, &after);
        let measured = outcome.measurements.iter().find(|one| one.workload == workload).unwrap();
        assert!(measured.speedup.is_none() && !measured.same_work, "{phase}: {measured:#?}");
    }
}
