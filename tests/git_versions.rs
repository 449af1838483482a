//! What `check` does with the git programs of a machine: an old one, a new one, none.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/repos.rs"]
mod repos;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use repos::{Run, World};
use slow_mount::{Options, SlowMount, available};

/// Where distributions and people put git.
const PLACES: &[&str] = &["/usr/bin/git", "/usr/local/bin/git", "/opt/git/bin/git"];
/// What has changed between versions: formats that an old git reads, and some that it does not.
const KINDS: &[&str] = &["plain", "dirty", "sparse_index", "split_index", "index_v4", "sha256", "reftable"];
/// Ends a test that would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(90);
/// A budget in which everything can be measured, also on a busy machine.
const BUDGET: &str = "20s";

/// Returns one git program of each version on this machine.
fn versions() -> BTreeMap<String, PathBuf> {
    let found = PLACES.iter().filter_map(|place| {
        let out = Command::new(place).arg("version").env_clear().output().ok()?;
        let text = String::from_utf8(out.stdout).ok()?;
        Some((text.trim().strip_prefix("git version ")?.to_owned(), PathBuf::from(place)))
    });
    found.collect()
}

/// Returns a search path that finds this git, and nothing else but what scripts need if `is_for_scripts`.
fn search_path(world: &World, git: &Path, is_for_scripts: bool) -> OsString {
    let only = world.home().with_file_name("only-git");
    std::fs::create_dir_all(&only).unwrap();
    let link = only.join("git");
    let _ = std::fs::remove_file(&link);
    symlink(git, link).unwrap();
    let rest: &[&str] = if is_for_scripts { &["/usr/bin", "/bin"] } else { &[] };
    std::env::join_paths([only].into_iter().chain(rest.iter().map(PathBuf::from))).unwrap()
}

fn mount(world: &World) -> SlowMount {
    let options =
        Options { subtype: Some("sshfs".to_owned()), fsname: Some("host:/srv".to_owned()), ..Options::default() };
    SlowMount::new(&world.ground(), options).unwrap()
}

/// Returns the medians of a workload in place and in the copy, where both were measured.
fn medians(answer: &serde_json::Value, workload: &str) -> Option<(f64, f64)> {
    let measurement = answer["measurements"].as_array()?.iter().find(|m| m["workload"] == workload)?;
    Some((measurement["in_place"]["median"].as_f64()?, measurement["in_copy"]["median"].as_f64()?))
}

#[test]
fn every_git_on_this_machine_reads_what_it_and_others_made() {
    if !available("every_git_on_this_machine_reads_what_it_and_others_made") {
        return;
    }
    let versions = versions();
    assert!(!versions.is_empty(), "git is needed");
    if versions.len() == 1 {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "SKIPPED old and new git: there is only one version here: {versions:?}");
    }
    for (maker, maker_path) in &versions {
        for kind in KINDS {
            let mut world = World::new();
            let mount = mount(&world);
            world.set_path(search_path(&world, maker_path, true));
            let Some(fixture) = world.make("make_repo.sh", kind, mount.path()) else { continue };
            for (user, user_path) in &versions {
                world.set_path(search_path(&world, user_path, false));
                let run = Run::of(world.check(&fixture.places[0], BUDGET, &["--format", "json"]), PATIENCE);
                let what = format!("{kind}, made by git {maker}, checked with git {user}");
                run.assert_civil(&what);
                assert!(run.status.success(), "{what}: {run:?}");
                let answer = run.json();
                assert_eq!(answer["facts"]["git"]["version"], **user, "{what}");
                assert!(medians(&answer, "git_status").is_some(), "{what}: {answer:#}");
            }
        }
    }
}

#[test]
fn without_git_the_repository_is_read_and_stat_is_measured() {
    if !available("without_git_the_repository_is_read_and_stat_is_measured") {
        return;
    }
    let mut world = World::new();
    let mount = mount(&world);
    let fixture = world.make("make_repo.sh", "plain", mount.path()).unwrap();
    world.set_path("/nonexistent");

    let answer = Run::of(world.check(&fixture.places[0], BUDGET, &["--format", "json"]), PATIENCE);
    assert!(answer.status.success(), "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["facts"]["git"], serde_json::Value::Null);
    assert_eq!(answer["facts"]["repo"]["tracked_files"], 7);
    assert!(medians(&answer, "stat").is_some(), "{answer:#}");
    assert!(medians(&answer, "git_status").is_none());

    let text = Run::of(world.check(&fixture.places[0], BUDGET, &[]), PATIENCE);
    text.assert_civil("without git");
    assert!(text.stdout.contains("git") && text.stdout.contains("not found"), "{}", text.stdout);
}
