//! The plan, what stands in its way, and when it is asked for.

use std::fs;
use std::process::Command;

use crate::ground::{Ground, REHOME, partial, picture, text};

/// Its name, how it is made, and what is said about it.
type Trouble = (&'static str, fn(&Ground), &'static str, &'static str);

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let ground = Ground::furnished();
    let before = picture(&ground.root());
    let output = ground.command(&["--dry-run", "--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema_version"], 1);
    assert_eq!(report["plan"]["blockers"], serde_json::json!([]));
    assert!(report["plan"]["files"].as_u64().unwrap() > 10);
    assert!(report.get("result").is_none());
    let shown = text(&ground.command(&["--dry-run"]).output().unwrap().stdout);
    assert!(shown.contains("The source is only read"), "{shown}");
    assert_eq!(picture(&ground.root()), before);
}

#[test]
fn without_a_terminal_it_neither_asks_nor_begins() {
    let ground = Ground::furnished();
    let output = ground.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("pass `--yes`"), "{}", text(&output.stderr));
    assert!(!ground.dest().exists());
}

#[test]
fn whatever_must_be_solved_first_is_named_with_what_to_do() {
    let troubles: [Trouble; 10] = [
        ("merge", |g| g.write("src/.git/MERGE_HEAD", "0"), "a merge is in progress", "git merge --abort"),
        ("rebase", |g| fs::create_dir(g.path("src/.git/rebase-merge")).unwrap(), "a rebase is", "git rebase --abort"),
        ("lock", |g| g.write("src/.git/index.lock", ""), "`.git/index.lock`", "remove the file"),
        ("ref lock", |g| g.write("src/.git/refs/heads/x.lock", ""), "x.lock", "remove the file"),
        ("pipe", |g| pipe(&g.path("src/.git/logs/HEAD")), "named pipe", "put the file back"),
        ("pipe of patterns", |g| pipe(&g.path("src/lib/.gitignore")), "`lib/.gitignore`", "put the file back"),
        ("stray", |g| g.write("src/.git/refs/heads/desktop.ini", "[x]"), "desktop.ini", "delete them"),
        ("not empty", |g| g.write("dest/a", "a"), "no empty directory", "nothing is ever overwritten"),
        ("a file", |g| g.write("dest", "a"), "no empty directory", "nothing is ever overwritten"),
        (
            "dangling",
            |g| std::os::unix::fs::symlink("no", g.dest()).unwrap(),
            "is a link to nothing",
            "remove the link",
        ),
    ];
    for (name, make, say, fix) in troubles {
        let ground = Ground::furnished();
        make(&ground);
        let before = picture(&ground.source());
        let message = ground.refused(&[]);
        assert!(message.contains(say), "{name}: {message}");
        assert!(message.contains("hint: ") && message.contains(fix), "{name}: {message}");
        assert_eq!(picture(&ground.source()), before);
        assert!(!partial(&ground.dest()).exists(), "{name}");
    }
}

/// Puts a named pipe in the place of whatever is there.
fn pipe(path: &std::path::Path) {
    let _ = fs::remove_file(path);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn places_that_lie_in_each_other_are_refused() {
    let ground = Ground::furnished();
    let try_to = |dest: &str| {
        let mut command = ground.clean(Command::new(REHOME));
        let output = command.arg("move").arg(ground.source()).arg(ground.path(dest)).arg("--yes").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{dest}");
        text(&output.stderr)
    };
    assert!(try_to("src").contains("same directory"));
    assert!(try_to("src/lib/copy").contains("inside the source"));
    assert!(try_to("").contains("source lies inside"));
    std::os::unix::fs::symlink(ground.source(), ground.path("alias")).unwrap();
    assert!(try_to("alias/copy").contains("inside the source"));
}

#[test]
fn memory_is_no_place_to_move_to_unless_it_is_named() {
    let ground = Ground::furnished();
    let shm = std::path::Path::new("/dev/shm").join(format!("rehome-test-{}", std::process::id()));
    let run = |more: &[&str]| {
        let mut command = ground.clean(Command::new(REHOME));
        command.arg("move").arg(ground.source()).arg(&shm).arg("--dry-run").args(["--format", "json"]).args(more);
        let output = command.output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["plan"]["blockers"].to_string()
    };
    assert!(run(&[]).contains("gone at the next restart"), "{}", run(&[]));
    assert_eq!(run(&["--target-fs", "tmpfs"]), "[]");
}

#[test]
fn a_linked_worktree_is_not_moved_alone() {
    let ground = Ground::furnished();
    ground.in_source(&["worktree", "add", "-q", "../tree", "other"]);
    let output = ground.command_from(&ground.path("tree"), &["--yes"]).output().unwrap();
    let message = text(&output.stderr);
    assert!(message.contains("linked worktree") && message.contains("git worktree move"), "{message}");
}

#[test]
fn names_that_windows_cannot_hold_stop_a_move_to_windows() {
    let ground = Ground::new();
    for name in ["aux.c", "a:b", "trailing.", "Case", "case", "fine.txt"] {
        ground.write(format!("src/{name}"), "x\n");
    }
    ground.write(format!("src/{}/{}", "d".repeat(150), "f".repeat(150)), "x");
    ground.commit("names");
    let output = ground.command(&["--dry-run", "--to-windows", "--format", "json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let blockers = report["plan"]["blockers"].to_string();
    for wanted in ["`aux.c` is the name of a device", "`a:b` holds `:`", "`trailing.` ends with", "by case alone"] {
        assert!(blockers.contains(wanted), "{wanted}: {blockers}");
    }
    assert!(blockers.contains("more than 259") && !blockers.contains("fine.txt"), "{blockers}");
}

#[test]
fn escape_sequences_in_names_do_not_reach_the_terminal() {
    let ground = Ground::furnished();
    std::os::unix::fs::symlink("/etc/\u{1b}[31mx", ground.path("src/red\u{1b}[31m")).unwrap();
    let output = ground.command(&["--yes"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!output.stdout.contains(&0x1b), "{}", text(&output.stdout));
}
