//! The promises of `rehome check`: it writes nothing below the repository, runs nothing that the repository names, ends
//! on a mount that hangs, leaves nothing behind, and prints no ratio of unequal work.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/repos.rs"]
mod repos;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use repos::{Fixture, Run, World, difference, kinds, snapshot, wait, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use slow_mount::{Options, SlowMount, available};

/// Ends a test that would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(90);
/// A budget for promises that hold however little was measured.
const SHORT: &str = "1s";
/// A budget in which everything can be measured, also on a busy machine.
const ENOUGH: &str = "20s";
/// Kinds that git itself refuses to work on; `check` may refuse them too.
const BROKEN: &[&str] = &["broken_index", "broken_config", "broken_head", "unknown_extension"];

/// Traps that `check` may refuse: a git dir that is none, a worktree far away, files that git would wait for.
const REFUSED: &[&str] = &["git_file_far_away", "worktree_elsewhere", "pipes_in_info"];
/// Traps in which git has nothing to do, or never ends.
const UNMEASURED: &[&str] = &["bare_inside", "pipes_for_patterns"];
/// A world whose repositories lie on a slow mount that looks like a network mount.
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

    fn make(&self, script: &str, kind: &str) -> Option<Fixture> {
        self.world.make(script, kind, self.mount.path())
    }

    /// Makes an ordinary repository and returns its path.
    fn plain(&self) -> PathBuf {
        self.make("make_repo.sh", "plain").unwrap().places.remove(0)
    }

    /// Runs `check` and looks at what every run must leave alone.
    fn check_leaves_no_trace(&self, place: &Path, budget: &str, options: &[&str]) -> Run {
        let before = snapshot(&self.world.ground());
        self.mount.reset_counts();
        self.mount.start_trace();
        let run = Run::of(self.world.check(place, budget, options), PATIENCE);
        let counts = self.mount.counts();
        let mut calls = self.mount.take_trace();
        run.assert_civil(&place.display().to_string());
        calls.retain(|(call, _)| call.is_write_like());
        assert_eq!(counts.write_like(), 0, "{calls:?}");
        assert_eq!(difference(&before, &snapshot(&self.world.ground())), [""; 0]);
        assert_eq!(self.world.leftovers(), [""; 0].map(PathBuf::from));
        assert_eq!(self.world.processes(), []);
        run
    }
}

/// Makes one test of each name, which calls the function of the module with that name.
macro_rules! one_test_each {
    ($module:ident, $script:literal, $check:path, [$($kind:ident)*]) => {
        mod $module {
            $(
                #[test]
                fn $kind() {
                    if super::available(concat!(stringify!($module), "::", stringify!($kind))) {
                        $check(stringify!($kind));
                    }
                }
            )*

            #[test]
            fn every_kind_has_its_test() {
                assert_eq!(super::kinds($script), [$(stringify!($kind)),*]);
            }
        }
    };
}

one_test_each! { nothing_is_written_in, "make_repo.sh", super::nothing_is_written, [
    plain subdirectory dirty racy stat_dirty conflicted merge_in_progress rebase_in_progress bisect_in_progress sparse
    sparse_index split_index untracked_cache builtin_fsmonitor skip_worktree submodules submodule_old_style
    nested_repository linked_worktree worktree_config git_file bare configured_worktree unborn empty no_index detached
    stash lfs line_endings shallow partial_clone alternates packed non_utf8_names newline_names escape_names
    links_out_of_tree case_collisions sha256 index_v4 index_without_checksum reftable unknown_extension broken_index
    broken_config broken_head unreadable_parts read_only pipes_and_sockets toolchains many_files
] }

/// Checks every place of a repository of this kind, in both forms of the answer.
fn nothing_is_written(kind: &str) {
    let ground = Ground::new();
    let Some(fixture) = ground.make("make_repo.sh", kind) else { return };
    assert!(!fixture.places.is_empty() && fixture.rest.is_empty());
    for place in &fixture.places {
        let run = ground.check_leaves_no_trace(place, ENOUGH, &["--explain"]);
        assert!(run.status.success() || BROKEN.contains(&kind), "{run:?}");
    }
    let run = ground.check_leaves_no_trace(&fixture.places[0], ENOUGH, &["--format", "json"]);
    if run.status.success() {
        assert_eq!(run.json()["schema_version"], 1);
    }
}

one_test_each! { nothing_is_run_by, "make_hostile.sh", super::nothing_is_run, [
    fsmonitor fsmonitor_in_include fsmonitor_in_conditional_include fsmonitor_in_worktree_config
    fsmonitor_of_linked_worktree submodule submodule_summary submodule_update hooks hooks_path configured_hook
    filter_clean filter_smudge filter_process filter_in_info_attributes filter_in_attributes_file pipes_for_patterns pipes_in_info endless_patterns lfs_filter
    diff_external diff_textconv diff_command merge_driver editor pager ssh_command git_proxy credentials
    alternate_refs signing aliases lazy_fetch ext_remote every_other_key git_file git_file_far_away git_link
    worktree_elsewhere bare_inside planted_programs rehome_yaml_tags rehome_yaml_bomb rehome_yaml_deep
    rehome_yaml_huge rehome_yaml_endless rehome_yaml_pipe rehome_yaml_rules poisoned_files other_owner
] }

/// Checks a hostile repository, from outside and from inside it, then shows that its trap works for git.
fn nothing_is_run(trap: &str) {
    let mut ground = Ground::new();
    let fixture = ground.make("make_hostile.sh", trap).unwrap();
    let place = &fixture.places[0];
    ground.world.take_marks();

    let run = ground.check_leaves_no_trace(place, ENOUGH, &["--format", "json"]);
    assert_eq!(ground.world.take_marks(), [""; 0]);
    // A run that never came to git, or gave up before, would prove nothing.
    assert!(run.status.success() || REFUSED.contains(&trap), "{run:?}");
    if run.status.success() && !UNMEASURED.contains(&trap) {
        let answer = run.json();
        let measurements = answer["measurements"].as_array().unwrap();
        let status = measurements.iter().find(|measurement| measurement["workload"] == "git_status").unwrap();
        assert_eq!(status["in_place"]["method"], "run", "{answer:#}");
        assert_eq!(answer["facts"]["repo"]["foreign_owner"], trap == "other_owner");
    }

    // A search path that holds the current directory must not lead to programs of the repository.
    let path = std::env::var_os("PATH").unwrap();
    let mut planted = std::ffi::OsString::from(".::");
    planted.push(&path);
    ground.world.set_path(planted);
    let mut command = ground.world.rehome(["--budget", "1s", "--explain"]);
    command.current_dir(place);
    Run::of(command, PATIENCE).assert_civil(trap);
    assert_eq!(ground.world.take_marks(), [""; 0]);
    ground.world.set_path(path);

    moving_runs_nothing_either(&ground, place, trap);

    if let Some(spring) = fixture.rest.first() {
        ground.world.shell(ground.mount.path(), spring);
        assert_ne!(ground.world.take_marks(), [""; 0], "the trap does not work: {spring}");
    }
}

/// Moves a hostile repository, which git looks at in its new place with its own configuration neutralised.
fn moving_runs_nothing_either(ground: &Ground, place: &Path, trap: &str) {
    let destination = ground.world.home().join("destination");
    let before = snapshot(&ground.world.ground());
    ground.mount.reset_counts();
    let mut command = ground.world.rehome(["move", "--yes"]);
    command.arg(place).arg(&destination);
    let run = Run::of(command, PATIENCE);
    run.assert_civil(trap);
    assert_eq!(ground.world.take_marks(), [""; 0]);
    assert_eq!(ground.mount.counts().write_like(), 0);
    assert_eq!(difference(&before, &snapshot(&ground.world.ground())), [""; 0]);
    // A copy that did not pass verification is kept under a name of its own, to go on from.
    for made in [destination, ground.world.home().join(".destination.rehome-partial")] {
        if made.exists() {
            std::fs::remove_dir_all(made).unwrap();
        }
    }
    assert_eq!(ground.world.leftovers(), [""; 0].map(PathBuf::from), "{run:?}");
}

#[test]
fn a_mount_that_hangs_does_not_hold_up_the_answer() {
    if !available("a_mount_that_hangs_does_not_hold_up_the_answer") {
        return;
    }
    let ground = Ground::new();
    let place = ground.plain();
    for calls in [0, 1, 10, 40, 100, 200, 400, 1_000, 3_000] {
        ground.mount.hang_everything_after(calls).unwrap();
        let run = Run::of(ground.world.check(&place, SHORT, &[]), PATIENCE);
        let what = format!("a mount that answers {calls} calls");
        run.assert_civil(&what);
        // Those that were abandoned are gone once the mount answers them.
        ground.mount.heal();
        assert!(wait_until(PATIENCE, || ground.world.processes().is_empty()), "{what}");
        assert_eq!(ground.world.leftovers(), [""; 0].map(PathBuf::from), "{what}");
    }
}

/// A check that runs for some seconds on a delayed mount.
fn long_check(ground: &Ground, place: &Path) -> std::process::Child {
    let mut command = ground.world.rehome(["check"]);
    command.arg(place).args(["--budget", "5s"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn signal(pid: u32, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
}

#[test]
fn a_signal_at_any_moment_leaves_nothing_behind() {
    if !available("a_signal_at_any_moment_leaves_nothing_behind") {
        return;
    }
    let ground = Ground::new();
    let place = ground.make("make_repo.sh", "many_files").unwrap().places.remove(0);
    ground.mount.set_delay(100);
    let before = snapshot(&ground.world.ground());
    // Moments that are not the same in every run: the clock decides.
    let mut seed = u64::from(std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos()) | 1;
    for round in 0..16 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let moment = Duration::from_millis(seed % 4_000);
        let sent = if round % 2 == 0 { Signal::INT } else { Signal::TERM };
        let what = format!("{sent:?} after {moment:?}");
        let mut child = long_check(&ground, &place);
        thread::sleep(moment);
        signal(child.id(), sent);
        assert!(wait(&mut child, PATIENCE).is_some(), "{what}: still runs");
        assert!(wait_until(PATIENCE, || ground.world.processes().is_empty()), "{what}: {:?}", ground.world.processes());
        assert_eq!(ground.world.leftovers(), [""; 0].map(PathBuf::from), "{what}");
    }
    assert_eq!(difference(&before, &snapshot(&ground.world.ground())), [""; 0]);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    if !available("what_a_killed_run_left_is_removed_by_the_next") {
        return;
    }
    let ground = Ground::new();
    let place = ground.make("make_repo.sh", "many_files").unwrap().places.remove(0);
    ground.mount.set_delay(100);
    let mut child = long_check(&ground, &place);
    let left = wait_until(PATIENCE, || ground.world.leftovers().len() > 100 || child.try_wait().unwrap().is_some());
    assert!(left && child.try_wait().unwrap().is_none(), "the run ended before it made anything to leave behind");
    for (pid, _) in ground.world.processes() {
        signal(pid.cast_unsigned(), Signal::KILL);
    }
    wait(&mut child, PATIENCE).unwrap();
    assert!(wait_until(PATIENCE, || ground.world.processes().is_empty()));
    assert_ne!(ground.world.leftovers(), [""; 0].map(PathBuf::from));
    ground.check_leaves_no_trace(&place, SHORT, &[]);
}

/// Two runs at the same time must not take each other's copies for leftovers.
#[test]
fn a_run_does_not_remove_what_another_one_uses() {
    if !available("a_run_does_not_remove_what_another_one_uses") {
        return;
    }
    let ground = Ground::new();
    let place = ground.plain();
    let checks: Vec<_> = (0..3)
        .map(|_| ground.world.check(&place, ENOUGH, &["--format", "json"]).stdout(Stdio::piped()).spawn().unwrap())
        .collect();
    for check in checks {
        let out = check.wait_with_output().unwrap();
        assert!(out.status.success());
        let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(answer["complete"], true, "{answer:#}");
        assert!(!speedups(&answer).is_empty(), "{answer:#}");
    }
    assert_eq!(ground.world.leftovers(), [""; 0].map(PathBuf::from));
}

/// Returns the workloads that have a ratio.
fn speedups(answer: &serde_json::Value) -> Vec<&str> {
    let measurements = answer["measurements"].as_array().unwrap();
    let with_ratio = measurements.iter().filter(|measurement| measurement["speedup"].is_object());
    with_ratio.map(|measurement| measurement["workload"].as_str().unwrap()).collect()
}

#[test]
fn unequal_work_has_no_ratio() {
    if !available("unequal_work_has_no_ratio") {
        return;
    }
    let ground = Ground::new();
    let place = ground.plain();
    let honest = ground.check_leaves_no_trace(&place, ENOUGH, &["--format", "json"]).json();
    assert!(speedups(&honest).contains(&"stat") && speedups(&honest).contains(&"git_status"), "{honest:#}");

    ground.mount.lie_about_size(Path::new("repo/docs/one.md"), 4_000);
    let lied_to = ground.check_leaves_no_trace(&place, ENOUGH, &["--format", "json"]).json();
    assert!(!speedups(&lied_to).contains(&"git_status"), "{lied_to:#}");
    let about = |workload: &str| {
        let measurements = lied_to["measurements"].as_array().unwrap();
        measurements.iter().find(|m| m["workload"] == workload).unwrap()["note"].to_string()
    };
    assert!(about("git_status").contains("docs/one.md"), "{lied_to:#}");
    // The one file is left out on both sides, which the report says, or there is no ratio.
    assert!(!speedups(&lied_to).contains(&"stat") || about("stat").contains("6 of 7 files"), "{lied_to:#}");
}

#[test]
fn a_file_that_cannot_be_measured_is_counted_and_named() {
    if !available("a_file_that_cannot_be_measured_is_counted_and_named") {
        return;
    }
    let ground = Ground::new();
    let place = ground.plain();
    for errno in [rustix::io::Errno::IO, rustix::io::Errno::STALE, rustix::io::Errno::ACCESS] {
        ground.mount.fail("repo/docs/one.md", &[], errno).unwrap();
        let run = ground.check_leaves_no_trace(&place, ENOUGH, &[]);
        assert!(run.status.success(), "{run:?}");
        assert!(run.stdout.contains("could not measure 1 of"), "{run:?}");
        ground.mount.heal();
    }
}

#[test]
fn a_deleted_file_is_no_error_of_the_mount() {
    if !available("a_deleted_file_is_no_error_of_the_mount") {
        return;
    }
    let ground = Ground::new();
    let place = ground.plain();
    std::fs::remove_file(place.join("docs/one.md")).unwrap();
    let answer = ground.check_leaves_no_trace(&place, ENOUGH, &["--format", "json"]).json();
    let stat = answer["measurements"].as_array().unwrap().iter().find(|m| m["workload"] == "stat").unwrap();
    assert_eq!(stat["failed"], serde_json::Value::Null, "{stat:#}");
    assert!(stat["note"].to_string().contains("6 of 7 files"), "{stat:#}");
    assert!(!stat["note"].to_string().contains("error"), "{stat:#}");
}
