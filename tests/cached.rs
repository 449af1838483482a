//! `rehome --cached`: what prompts and editors see.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/home.rs"]
mod home;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use home::{Home, quiet_success};
use rehome::report::Report;

#[test]
fn the_last_answer_is_shown_once_for_each_state_of_the_repository() {
    let home = Home::measured();
    let hint = home.hint();
    assert!(hint.starts_with("rehome: move to ext4; git status 951 ms here"), "{hint}");
    assert_eq!(home.hint(), "");
    fs::write(home.repository().join("another"), "").unwrap();
    home.git(&["add", "."]);
    assert_eq!(home.hint(), "", "the index holds another file, so nothing is known");
    home.store().save(&home.report()).unwrap();
    assert_ne!(home.hint(), "", "a new state was measured");
}

#[test]
fn a_file_with_new_contents_leaves_the_answer_valid() {
    let home = Home::measured();
    fs::write(home.repository().join("web/app/main.js"), "2, and longer than before\n").unwrap();
    home.git(&["add", "."]);
    assert_ne!(home.hint(), "");
}

#[test]
fn the_repository_is_found_from_below_by_path_and_through_a_link() {
    for form in 0..4 {
        let home = Home::measured();
        let below = home.repository().join("web/app");
        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.repository(), &link).unwrap();
        let shown = match form {
            0 => home.prompt(&below, &["--cached", "--format", "oneline"]),
            1 => home.prompt(&home.path(), &["--cached", "--format", "oneline", "Shop/web/../web"]),
            2 => home.prompt(&home.path(), &["check", "--cached", link.to_str().unwrap(), "--format", "oneline"]),
            _ => home.prompt(&home.path(), &["--cached", "7d", "--format", "oneline", "link/web/app/main.js"]),
        };
        assert!(shown.starts_with("rehome: move"), "form {form}: {shown}");
    }
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    let home = Home::new();
    assert_eq!(home.hint(), "");
    assert_eq!(home.prompt(Path::new("/"), &["--cached"]), "");
    assert_eq!(home.prompt(&home.path(), &["--cached", "no/such/place"]), "");
    assert!(!home.state().exists(), "asking leaves nothing behind");
}

#[test]
fn a_repository_within_the_known_one_is_not_mistaken_for_it() {
    let home = Home::measured();
    fs::create_dir_all(home.repository().join("web/app/.git")).unwrap();
    assert_eq!(home.prompt(&home.repository().join("web/app"), &["--cached"]), "");
}

#[test]
fn an_answer_that_is_too_old_is_not_shown() {
    let home = Home::measured();
    assert_eq!(home.prompt(&home.repository(), &["--cached", "0s"]), "");
    assert_ne!(home.prompt(&home.repository(), &["--cached=1h"]), "");
}

#[test]
fn another_mount_at_the_same_path_ends_the_answer() {
    let home = Home::new();
    let mut report = home.report();
    report.facts.site.source = "another".into();
    home.store().save(&report).unwrap();
    assert_eq!(home.hint(), "");
}

#[test]
fn each_way_to_mute_silences_the_hint() {
    let by_environment = Home::measured();
    let mut command = by_environment.command(&by_environment.repository(), &["--cached"]);
    assert_eq!(quiet_success(command.env("REHOME_MUTE", "1").output().unwrap()), "");
    let by_repository = Home::measured();
    by_repository.git(&["config", "rehome.mute", "true"]);
    assert_eq!(by_repository.hint(), "");
    let by_user = Home::measured();
    by_user.git(&["config", "--global", "rehome.mute", "yes"]);
    assert_eq!(by_user.hint(), "");
    let by_file = Home::measured();
    fs::write(by_file.repository().join(".rehome.yaml"), "primary: linux\nmute: true\n").unwrap();
    assert_eq!(by_file.hint(), "");
    let unmuted = Home::measured();
    unmuted.git(&["config", "rehome.mute", "false"]);
    fs::write(unmuted.repository().join(".rehome.yaml"), "mute: false\n").unwrap();
    let mut command = unmuted.command(&unmuted.repository(), &["--cached"]);
    assert_ne!(quiet_success(command.env("REHOME_MUTE", "0").output().unwrap()), "");
}

#[test]
fn broken_files_of_ours_do_not_disturb_the_caller() {
    let home = Home::measured();
    for file in fs::read_dir(home.state().join("rehome/reports")).unwrap() {
        fs::write(file.unwrap().path(), "{ \"state_version\": 1, \"key\": ").unwrap();
    }
    assert_eq!(home.hint(), "");
    fs::remove_dir_all(home.state()).unwrap();
    fs::write(home.state(), "a file where the directory should be").unwrap();
    assert_eq!(home.hint(), "");
}

#[test]
fn a_state_directory_that_cannot_be_written_still_answers() {
    let home = Home::measured();
    let reports = home.state().join("rehome/reports");
    let marker = fs::read_dir(&reports).unwrap().next().unwrap().unwrap().path().with_extension("shown");
    // A directory in the marker's place cannot be replaced by a file, not even by root.
    fs::create_dir(&marker).unwrap();
    fs::write(marker.join("x"), "").unwrap();
    assert_ne!(home.hint(), "");
}

#[test]
fn a_program_gets_the_whole_report_as_often_as_it_asks() {
    let home = Home::measured();
    for _ in 0..2 {
        let json = home.prompt(&home.repository(), &["--cached", "--format", "json"]);
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), home.report());
    }
}

#[test]
fn the_exit_status_tells_the_advice_only_on_request() {
    let home = Home::measured();
    for _ in 0..2 {
        let mut command = home.command(&home.repository(), &["--cached", "--exit-code", "--format", "oneline"]);
        assert_eq!(command.output().unwrap().status.code(), Some(10));
    }
    let unknown = Home::new();
    let mut command = unknown.command(&unknown.repository(), &["--cached", "--exit-code"]);
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}

#[test]
fn two_paths_are_a_mistake_of_the_caller() {
    let home = Home::measured();
    let output = home.command(&home.path(), &["--cached", "one", "two"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("`one` is no duration"));
}

#[test]
fn a_windows_drive_has_one_entry_whatever_the_case_of_the_path() {
    let home = Home::new();
    let mut report = home.report();
    report.facts.site.class = rehome::facts::FilesystemClass::WindowsDrive;
    home.store().save(&report).unwrap();
    let other_case = home.repository().to_str().unwrap().replace("/Shop", "/sHOP");
    assert_ne!(home.prompt(Path::new("/"), &["--cached", &other_case]), "");
}

#[test]
fn a_measurement_in_the_background_leaves_an_answer_for_the_next_prompt() {
    let home = Home::new();
    assert_eq!(home.prompt(&home.repository(), &["--cached", "--refresh", "--budget", "2s"]), "");
    let deadline = Instant::now() + Duration::from_secs(120);
    let answer = loop {
        let answer = home.prompt(&home.repository(), &["--cached", "--format", "json"]);
        if !answer.is_empty() || Instant::now() > deadline {
            break answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let report: Report = serde_json::from_str(&answer).unwrap();
    assert!(report.recommendation.is_some());
    let lines = fs::read_dir(home.repository()).unwrap().count();
    assert_eq!(lines, 2, "nothing was left in the repository");
}

/// Counts with `strace` what a prompt asks of the repository; system calls on open descriptors are not counted.
#[test]
fn an_answer_takes_at_most_three_calls_on_the_repositorys_mount() {
    if Command::new("strace").arg("-V").output().is_err() {
        assert!(std::env::var_os("REHOME_REQUIRE_ALL").is_none(), "strace is missing");
        let line = "SKIPPED an_answer_takes_at_most_three_calls_on_the_repositorys_mount: needs strace";
        let _ = writeln!(std::io::stderr(), "{line}");
        return;
    }
    for directory in ["", "web/app"] {
        let home = Home::measured();
        let trace = home.path().join("trace");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=%file,%%stat", "-o"]).arg(&trace);
        command.arg(env!("CARGO_BIN_EXE_rehome")).args(["--cached", "--format", "oneline"]);
        command.env("HOME", home.path()).env("XDG_STATE_HOME", home.state()).env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = command.current_dir(home.repository().join(directory)).output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().starts_with("rehome: move"), "from {directory:?}");
        let repository = format!("\"{}", home.repository().display());
        let text = fs::read_to_string(&trace).unwrap();
        let calls: Vec<&str> =
            text.lines().filter(|line| line.contains(&repository) && !line.contains("execve")).collect();
        let paths = calls.iter().filter(|line| !line.contains("getcwd")).count();
        assert!((1..=3).contains(&paths), "from {directory:?}:\n{}", calls.join("\n"));
    }
}
