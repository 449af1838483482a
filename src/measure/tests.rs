//! Whole runs on real repositories, with a thread as probe.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::facts::GitFacts;
use crate::measure::testing::{git, profile_of};
use crate::measure::{Outcome, Request, Workload, measure, measure_in_place_only};
use crate::progress::Silent;
use crate::signals::Interrupt;

const ALL: &[Workload] = &[Workload::GitStatus, Workload::Stat, Workload::Walk];

fn git_facts() -> GitFacts {
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|file| file.exists()).unwrap();
    GitFacts { version: String::new(), path: path.to_str().unwrap().to_owned() }
}

fn write(root: &Path, name: &str, content: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Makes every file older than the index, as in a repository that was not cloned just now.
fn age(root: &Path) {
    let old = SystemTime::now() - Duration::from_secs(3600);
    for name in String::from_utf8(git(root, &["ls-files", "-z"])).unwrap().split('\0').filter(|n| !n.is_empty()) {
        let path = root.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir()) {
            set_modified(&path, old);
        }
    }
    git(root, &["update-index", "-q", "--refresh"]);
}

/// Sets the modification time of a file or of a link itself.
fn set_modified(path: &Path, time: SystemTime) {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let time = rustix::fs::Timespec { tv_sec: i64::try_from(seconds).unwrap(), tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    git(root, &["init", "-q"]);
    for number in 0..120 {
        write(root, &format!("src/part{}/file{number}.txt", number % 7), &"x".repeat(number));
    }
    write(root, ".gitignore", "*.log\n/build/\n");
    write(root, "src/part1/.gitignore", "ignored-here\n");
    write(root, "to-modify", "before\n");
    write(root, "same-size", "aaaa\n");
    write(root, "to-delete", "to be deleted\n");
    write(root, "to-rename", "a long line that is found again\nand another one\n");
    write(root, "to-stage-delete", "kept as untracked\n");
    write(root, "to-chmod", "x\n");
    write(root, "to-type-change", "x\n");
    write(root, "assumed", "x\n");
    write(root, "skipped/a", "x\n");
    write(root, "empty", "");
    symlink("to-modify", root.join("link")).unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "first"]);
    age(root);
    dir
}

/// Gives a repository at least one entry of every kind that `git status` tells apart.
fn disturb(root: &Path) {
    git(root, &["checkout", "-qb", "other"]);
    write(root, "src/conflict", "theirs\n");
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "theirs"]);
    git(root, &["checkout", "-q", "-"]);
    write(root, "src/conflict", "ours\n");
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "ours"]);
    age(root);
    let merge = std::process::Command::new("git")
        .current_dir(root)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "merge", "-q", "other"])
        .output()
        .unwrap();
    assert!(!merge.status.success(), "the merge was to stop at a conflict");
    write(root, "to-modify", "after, and longer\n");
    write(root, "same-size", "bbbb\n");
    fs::remove_file(root.join("to-delete")).unwrap();
    git(root, &["mv", "to-rename", "renamed"]);
    git(root, &["rm", "-q", "--cached", "to-stage-delete"]);
    fs::set_permissions(root.join("to-chmod"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(root.join("to-type-change")).unwrap();
    symlink("elsewhere", root.join("to-type-change")).unwrap();
    write(root, "assumed", "changed, but git was told not to look\n");
    git(root, &["update-index", "--assume-unchanged", "assumed"]);
    git(root, &["update-index", "--skip-worktree", "skipped/a"]);
    fs::remove_file(root.join("skipped/a")).unwrap();
    write(root, "intended", "x\n");
    git(root, &["add", "-N", "intended"]);
    write(root, "staged", "x\n");
    git(root, &["add", "staged"]);
    write(root, "untracked file", "x\n");
    write(root, "untracked-dir/deep/a.txt", "x\n");
    write(root, "only-ignored/a.log", "x\n");
    write(root, "nested-ignore/.gitignore", "*\n");
    write(root, "nested-ignore/hidden", "x\n");
    write(root, "build/out", "x\n");
}

fn run(root: &Path, target: &Path) -> Outcome {
    let profile = profile_of(root);
    let git = git_facts();
    let request = Request {
        profile: &profile,
        target,
        cache_home: None,
        budget: Duration::from_secs(60),
        rounds: Some(2),
        workloads: ALL,
        git: Some(&git),
        probe_program: None,
    };
    measure(&request, &Silent, &Interrupt::default()).unwrap()
}

fn assert_same_work(outcome: &Outcome) {
    assert!(outcome.complete, "{outcome:?}");
    let names: Vec<_> = outcome.measurements.iter().map(|m| m.workload.as_str()).collect();
    assert_eq!(names, ["git_status", "stat", "walk"], "{:?}", outcome.notes);
    for measurement in &outcome.measurements {
        assert!(measurement.same_work, "{measurement:?}\n{:?}", outcome.notes);
        assert!(measurement.speedup.is_some(), "{measurement:?}");
    }
}

/// Everything below a directory that a write would change, sorted.
fn snapshot(root: &Path) -> Vec<(std::path::PathBuf, u64, i64, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if meta.is_dir() {
                open.push(path.clone());
            }
            found.push((path, meta.len(), meta.mtime(), meta.mtime_nsec(), content));
        }
    }
    found.sort();
    found
}

#[test]
fn a_clean_repository_gives_the_same_work_on_both_sides() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    let outcome = run(repository.path(), target.path());
    assert_same_work(&outcome);
    assert_eq!(outcome.racy, Some(0));
    assert_eq!(outcome.stat_dirty, Some(0));
    assert!(!outcome.copy.as_ref().unwrap().has_own_commit, "{outcome:?}");
}

#[test]
fn every_kind_of_entry_gives_the_same_answer_in_the_copy() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    disturb(repository.path());
    let status = String::from_utf8(git(repository.path(), &["status", "--porcelain=v1"])).unwrap();
    for part in
        [" M to-modify", " M same-size", " D to-delete", "R  to-rename -> renamed", "D  to-stage-delete", " M to-chmod"]
    {
        assert!(status.contains(part), "{part} is missing in\n{status}");
    }
    for part in [" T to-type-change", "AA src/conflict", " A intended", "A  staged", "?? untracked-dir/"] {
        assert!(status.contains(part), "{part} is missing in\n{status}");
    }
    assert_same_work(&run(repository.path(), target.path()));
}

#[test]
fn every_kind_of_entry_gives_the_same_answer_with_untracked_files_shown_in_full() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    disturb(repository.path());
    git(repository.path(), &["config", "status.showUntrackedFiles", "all"]);
    assert_same_work(&run(repository.path(), target.path()));
}

#[test]
fn index_version_four_an_untracked_cache_and_a_split_index_give_the_same_answer() {
    for args in [
        &["update-index", "--index-version", "4"][..],
        &["update-index", "--force-untracked-cache"],
        &["update-index", "--split-index"],
    ] {
        let (repository, target) = (repository(), tempfile::tempdir().unwrap());
        git(repository.path(), args);
        disturb(repository.path());
        assert_same_work(&run(repository.path(), target.path()));
    }
}

#[test]
fn a_sparse_checkout_gives_the_same_answer() {
    for index in ["--sparse-index", "--no-sparse-index"] {
        let (repository, target) = (repository(), tempfile::tempdir().unwrap());
        git(repository.path(), &["sparse-checkout", "set", "--cone", index, "src/part1", "src/part3"]);
        assert_same_work(&run(repository.path(), target.path()));
    }
}

#[test]
fn a_submodule_is_not_entered() {
    let (repository, inner, target) = (repository(), repository(), tempfile::tempdir().unwrap());
    let inner = inner.path().to_str().unwrap();
    git(repository.path(), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub"]);
    git(repository.path(), &["commit", "-qm", "sub"]);
    write(&repository.path().join("sub"), "new-in-submodule", "x");
    assert_same_work(&run(repository.path(), target.path()));
}

#[test]
fn a_repository_without_commits_and_one_with_a_detached_head_are_measured() {
    let (repository, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    git(repository.path(), &["init", "-q"]);
    for number in 0..5 {
        write(repository.path(), &format!("f{number}"), "x");
    }
    git(repository.path(), &["add", "."]);
    age(repository.path());
    assert_same_work(&run(repository.path(), target.path()));
    git(repository.path(), &["commit", "-qm", "x"]);
    git(repository.path(), &["checkout", "-q", "--detach"]);
    assert_same_work(&run(repository.path(), target.path()));
}

#[test]
fn nothing_below_the_repository_changes_and_nothing_is_left_in_the_target() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    disturb(repository.path());
    let before = snapshot(repository.path());
    let outcome = run(repository.path(), target.path());
    assert!(outcome.complete);
    assert_eq!(before, snapshot(repository.path()));
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
    drop(outcome);
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}

#[test]
fn a_hostile_repository_leaves_no_mark() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    let root = repository.path();
    let mark = target.path().join("mark");
    let evil = format!("touch '{}'; cat", mark.display());
    let script = root.join(".git/evil");
    fs::write(&script, format!("#!/bin/sh\n{evil}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::copy(&script, root.join(".git/hooks/post-index-change")).unwrap();
    write(root, ".gitattributes", "* filter=evil diff=evil\n");
    git(root, &["add", ".gitattributes"]);
    git(root, &["commit", "-qm", "attributes"]);
    let script = script.to_str().unwrap();
    write(root, ".git/included", &format!("[core]\n\tfsmonitor = {script}\n"));
    for (key, value) in [
        ("include.path", "included"),
        ("core.fsmonitor", script),
        ("core.hooksPath", ".git/hooks"),
        ("core.pager", script),
        ("core.sshCommand", script),
        ("core.editor", script),
        ("filter.evil.clean", &evil),
        ("filter.evil.smudge", &evil),
        ("filter.evil.process", script),
        ("filter.evil.required", "true"),
        ("diff.evil.textconv", script),
        ("diff.evil.command", script),
        ("diff.external", script),
        ("alias.status", &format!("!{evil}")),
        ("trace2.eventTarget", mark.to_str().unwrap()),
        ("core.alternateRefsCommand", script),
        ("uploadpack.packObjectsHook", script),
    ] {
        git_config(root, key, value);
    }
    // Same size, other time: git has to read it, and would filter it.
    write(root, "same-size", "cccc\n");
    let profile_first = fs::read(root.join(".git/config")).unwrap();
    let _ = fs::remove_file(&mark);
    let outcome = run(root, target.path());
    assert!(!mark.exists(), "a program of the repository ran");
    assert!(outcome.complete);
    assert_eq!(profile_first, fs::read(root.join(".git/config")).unwrap());
}

/// Writes a key without running git in a repository whose configuration names programs.
fn git_config(root: &Path, key: &str, value: &str) {
    git(root.parent().unwrap(), &["config", "--file", root.join(".git/config").to_str().unwrap(), key, value]);
}

#[test]
fn a_stat_dirty_index_is_told_from_a_clean_one_and_measured_as_after_a_status() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    // Times that the index does not have, in every file: what another git leaves behind looks the same.
    let other = SystemTime::now() - Duration::from_secs(7200);
    for entry in fs::read_dir(repository.path().join("src/part1")).unwrap() {
        fs::File::options().write(true).open(entry.unwrap().path()).unwrap().set_modified(other).unwrap();
    }
    let outcome = run(repository.path(), target.path());
    assert!(outcome.stat_dirty.unwrap() > 0, "{outcome:?}");
    let status = &outcome.measurements[0];
    assert!(status.now.is_some(), "{status:?}");
}

#[test]
fn a_fresh_clone_is_racy() {
    let (origin, target) = (repository(), tempfile::tempdir().unwrap());
    let clone = tempfile::tempdir().unwrap();
    git(clone.path(), &["clone", "-q", origin.path().to_str().unwrap(), "c"]);
    let root = clone.path().join("c");
    // All in one second, as a fast clone is.
    let now = SystemTime::now();
    for name in String::from_utf8(git(&root, &["ls-files", "-z"])).unwrap().split('\0').filter(|n| !n.is_empty()) {
        if !fs::symlink_metadata(root.join(name)).unwrap().is_symlink() {
            fs::File::options().write(true).open(root.join(name)).unwrap().set_modified(now).unwrap();
        }
    }
    git(&root, &["update-index", "-q", "--refresh"]);
    fs::File::options().write(true).open(root.join(".git/index")).unwrap().set_modified(now).unwrap();
    let outcome = run(&root, target.path());
    assert!(outcome.racy.unwrap() > 100, "{outcome:?}");
    assert_same_work(&outcome);
    assert!(outcome.measurements[0].now.is_some());
}

#[test]
fn without_git_the_rest_is_measured() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    let profile = profile_of(repository.path());
    let request = Request {
        profile: &profile,
        target: target.path(),
        cache_home: None,
        budget: Duration::from_secs(60),
        rounds: Some(2),
        workloads: ALL,
        git: None,
        probe_program: None,
    };
    let outcome = measure(&request, &Silent, &Interrupt::default()).unwrap();
    let names: Vec<_> = outcome.measurements.iter().map(|m| m.workload.as_str()).collect();
    assert_eq!(names, ["stat", "walk"]);
    assert!(outcome.notes.iter().any(|note| note.contains("git was not found")), "{:?}", outcome.notes);
    let native = measure_in_place_only(&request, &Silent, &Interrupt::default()).unwrap();
    assert!(native.measurements.iter().all(|m| m.in_copy.is_none() && m.speedup.is_none()), "{native:?}");
    assert!(native.copy.is_none());
}

#[test]
fn an_interrupt_is_no_error_and_leaves_nothing() {
    let (repository, target) = (repository(), tempfile::tempdir().unwrap());
    let profile = profile_of(repository.path());
    let git = git_facts();
    let request = Request {
        profile: &profile,
        target: target.path(),
        cache_home: None,
        budget: Duration::from_secs(60),
        rounds: None,
        workloads: ALL,
        git: Some(&git),
        probe_program: None,
    };
    let interrupt = Interrupt::default();
    interrupt.set();
    let outcome = measure(&request, &Silent, &interrupt).unwrap();
    assert!(outcome.interrupted && !outcome.complete);
    drop(outcome);
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}
