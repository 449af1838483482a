//! `check --writes` and `check --run`: what they measure, what they leave, and when they give no ratio.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/repos.rs"]
mod repos;
#[path = "support/schema.rs"]
mod schema;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use repos::{Run, World, difference, snapshot};
use serde_json::Value;
use slow_mount::{Options, SlowMount, available};

/// Ends a test that would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(240);

struct Ground {
    // Dropped first: unmounted before the backing files go.
    mount: SlowMount,
    world: World,
    repository: PathBuf,
}

impl Ground {
    fn new() -> Ground {
        let world = World::new();
        let mount = SlowMount::new(&world.ground(), Options::like_a_network()).unwrap();
        // One directory down, so that there is room beside it.
        let above = mount.path().join("above");
        fs::create_dir(&above).unwrap();
        let repository = world.make("make_repo.sh", "plain", &above).unwrap().places.remove(0);
        Ground { mount, world, repository }
    }

    fn check(&self, options: &[&str]) -> Value {
        let options = [&["--format", "json"], options].concat();
        let run = Run::of(self.world.check(&self.repository, "10s", &options), PATIENCE);
        assert!(run.status.success(), "{}", run.stderr);
        let report = run.json();
        schema::assert_valid_report(&report);
        assert_eq!(self.world.leftovers(), [""; 0].map(PathBuf::from));
        report
    }
}

fn workload<'a>(report: &'a Value, name: &str) -> &'a Value {
    let found = report["measurements"].as_array().unwrap().iter().find(|it| it["workload"] == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {}", report["measurements"]))
}

fn notes(report: &Value) -> String {
    let notes = report["notes"].as_array().unwrap();
    notes.iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn writes_are_made_beside_the_repository_and_never_inside() {
    if !available("writes_are_made_beside_the_repository_and_never_inside") {
        return;
    }
    let ground = Ground::new();
    let before = snapshot(&ground.repository);
    ground.mount.start_trace();
    let report = ground.check(&["--writes"]);
    let inside = ground.repository.strip_prefix(ground.mount.path()).unwrap();
    let written = ground.mount.take_trace().into_iter().filter(|(call, _)| call.is_write_like());
    let (within, beside): (Vec<_>, Vec<_>) = written.partition(|(_, path)| path.starts_with(inside));
    assert!(within.is_empty(), "{within:?}");
    assert!(beside.iter().any(|(_, path)| path.to_string_lossy().contains("above/.rehome-bench-")), "{beside:?}");
    assert_eq!(difference(&before, &snapshot(&ground.repository)), [""; 0]);
    for name in ["small_files", "small_create", "small_read", "small_stat", "small_delete"] {
        let measured = workload(&report, name);
        assert_eq!(measured["same_work"], true);
        assert!(measured["in_copy"]["median"].as_f64().unwrap() > 0.0);
    }
    assert!(report["facts"]["measure"]["small_files"]["in_place_s"].as_f64().unwrap() > 0.0);
    assert!(report["cost"]["bytes_written_in_place"].as_u64().unwrap() >= 200 * 4096);
    assert!(notes(&report).contains("it is gone"), "{}", notes(&report));
    let names: Vec<_> = fs::read_dir(ground.repository.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_place_for_a_clone_is_judged_by_its_kind_or_tried_with_small_files_that_go_away() {
    if !available("a_place_for_a_clone_is_judged_by_its_kind_or_tried_with_small_files_that_go_away") {
        return;
    }
    let ground = Ground::new();
    let place = ground.mount.path().join("not/yet");
    let check = |options: &[&str]| {
        let options = [&["--format", "json"], options].concat();
        let run = Run::of(ground.world.check(&place, "10s", &options), PATIENCE);
        assert!(run.status.success(), "{}", run.stderr);
        let report = run.json();
        schema::assert_valid_report(&report);
        report
    };
    ground.mount.start_trace();
    let report = check(&[]);
    let written = ground.mount.take_trace().into_iter().filter(|(call, _)| call.is_write_like());
    assert_eq!(written.count(), 0);
    assert_eq!(report["recommendation"]["rule"], "clone-elsewhere-by-kind");
    assert_eq!((&report["measurements"], &report["facts"]["repo"]), (&Value::Array(Vec::new()), &Value::Null));
    assert_eq!(report["facts"]["site"]["path"], place.to_str().unwrap());

    let tried = check(&["--writes"]);
    let measured = workload(&tried, "small_files");
    assert_eq!(measured["same_work"], true);
    // Which one depends on the figures, but it is one that looks at them.
    let rule = tried["recommendation"]["rule"].as_str().unwrap();
    let measured = ["clone-elsewhere-as-measured", "clone-here-as-measured", "clone-elsewhere-though-noisy"];
    assert!(measured.contains(&rule), "{rule}");
    assert!(notes(&tried).contains("it is gone"), "{}", notes(&tried));
    assert!(!place.exists() && !place.parent().unwrap().exists());
    assert_eq!(fs::read_dir(ground.mount.path()).unwrap().count(), 1, "only the repository's parent");

    let options = ["--run", "true"];
    let run = Run::of(ground.world.check(&place, "10s", &options), PATIENCE);
    assert_eq!(run.status.code(), Some(1));
    assert!(run.stderr.contains("there is no repository at"), "{}", run.stderr);
}

#[test]
fn a_command_is_timed_in_place_and_in_a_full_copy_that_goes_away() {
    if !available("a_command_is_timed_in_place_and_in_a_full_copy_that_goes_away") {
        return;
    }
    let ground = Ground::new();
    let log = ground.world.marks().join("log");
    let command = format!("pwd >> '{}'; git log --oneline | wc -l; sleep 0.3", log.display());
    let report = ground.check(&["--run", &command, "--run", "true", "--same-output", "--rounds", "3"]);
    let first = workload(&report, "run_1");
    assert_eq!(first["same_work"], true, "{first}");
    assert!(first["speedup"]["low"].as_f64().is_some() && first["note"].as_str().unwrap().contains("pwd >> "));
    assert_eq!(workload(&report, "run_2")["in_place"]["runs"].as_array().unwrap().len(), 3);
    let told = fs::read_to_string(&log).unwrap();
    let (in_place, in_copy): (Vec<&str>, Vec<&str>) =
        told.lines().partition(|line| Path::new(line).starts_with(ground.mount.path()));
    assert_eq!((in_place.len(), in_copy.len()), (4, 4), "{told}");
    assert!(!Path::new(in_copy[0]).exists(), "the copy is still there");
    assert!(report["facts"]["measure"]["run"]["saved_s"].as_f64().is_some());
    assert!(notes(&report).contains("files, each read back and compared"), "{}", notes(&report));
}

#[test]
fn another_exit_status_or_output_in_the_copy_takes_the_ratio_away() {
    if !available("another_exit_status_or_output_in_the_copy_takes_the_ratio_away") {
        return;
    }
    let ground = Ground::new();
    let only_here = format!("case $PWD in {}*) exit 0;; *) exit 4;; esac", ground.mount.path().display());
    let by_place = format!("case $PWD in {}*) echo here;; *) echo there;; esac", ground.mount.path().display());
    let report = ground.check(&["--run", &only_here, "--run", &by_place, "--same-output", "--rounds", "1"]);
    for (name, reason) in [
        ("run_1", "no ratio, because the work differs: exit status 0 at first, and exit status 4 in the copy"),
        ("run_2", "no ratio, because the work differs: another output in the copy than at first in place"),
    ] {
        let measured = workload(&report, name);
        assert_eq!((measured["same_work"].as_bool(), measured.get("speedup")), (Some(false), None), "{measured}");
        assert!(measured["note"].as_str().unwrap().contains(reason), "{measured}");
    }
}

#[test]
fn preparing_happens_before_each_run_and_its_failure_is_said() {
    if !available("preparing_happens_before_each_run_and_its_failure_is_said") {
        return;
    }
    let ground = Ground::new();
    let log = ground.world.marks().join("log");
    let prepare = format!("echo x >> '{}'", log.display());
    ground.check(&["--run", "true", "--prepare", &prepare, "--rounds", "2"]);
    assert_eq!(lines(&log), 6, "once before each of three runs on both sides");
    let report = ground.check(&["--run", "true", "--prepare", "echo nonsense >&2; exit 7"]);
    assert_eq!(report["complete"], false);
    assert!(notes(&report).contains("exit status: 7 (nonsense)"), "{}", notes(&report));
}

#[test]
fn options_that_need_one_another_say_so() {
    let world = World::new();
    for args in [&["--prepare", "x"][..], &["--same-output"], &["--run", "x", "--no-measure"]] {
        let run = Run::of(world.check(&world.ground(), "1s", args), PATIENCE);
        assert_eq!(run.status.code(), Some(2), "{args:?}: {}", run.stderr);
    }
}
