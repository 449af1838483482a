//! The recipes of docs/recipes.md, run as they stand there by the programs that they are for.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/home.rs"]
#[expect(dead_code, reason = "only tests/cached.rs needs all of it")]
mod home;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use home::Home;

const RECIPES: &str = include_str!("../docs/recipes.md");
const HINT: &str = "rehome: move to ext4; git status 951 ms here";

/// Returns the code below a heading.
fn recipe(heading: &str) -> String {
    let section = RECIPES.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let fenced = section.split("```").nth(1).unwrap();
    fenced.split_once('\n').unwrap().1.to_owned()
}

/// Returns whether a program is there; says so, or fails where everything is required, if not.
fn has(program: &str, test: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        assert!(std::env::var_os("REHOME_REQUIRE_ALL").is_none_or(|value| value != "1"), "{program} is missing");
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: needs {program}");
    }
    is_there
}

/// Runs a program in a directory with `rehome` on its search path; `first` goes before it.
fn run(home: &Home, directory: &Path, first: Option<&Path>, program: &str, arguments: &[&str]) -> Output {
    let mut path = OsString::new();
    if let Some(first) = first {
        path.push(first);
        path.push(":");
    }
    path.push(Path::new(env!("CARGO_BIN_EXE_rehome")).parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command = Command::new(program);
    command.env_clear().env("PATH", path).env("HOME", home.path()).env("XDG_STATE_HOME", home.state());
    command.env("TERM", "dumb").env("LC_ALL", "C.UTF-8").current_dir(directory).args(arguments);
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn bash_shows_the_hint_when_the_directory_changes() {
    if !has("bash", "bash_shows_the_hint_when_the_directory_changes") {
        return;
    }
    let home = Home::measured();
    let prompt = "eval \"$PROMPT_COMMAND\"";
    let script = format!("{}\n{prompt}; cd {}; {prompt}; {prompt}", recipe("bash"), home.repository().display());
    let output = run(&home, &home.path(), None, "bash", &["--norc", "-c", &script]);
    assert_eq!((stdout(&output).matches(HINT).count(), stderr(&output)), (1, String::new()));
}

#[test]
fn zsh_shows_the_hint_when_the_directory_changes() {
    if !has("zsh", "zsh_shows_the_hint_when_the_directory_changes") {
        return;
    }
    let home = Home::measured();
    let script = format!("{}\ncd {}; cd web; cd ..", recipe("zsh"), home.repository().display());
    let output = run(&home, &home.path(), None, "zsh", &["-f", "-c", &script]);
    assert_eq!((stdout(&output).matches(HINT).count(), stderr(&output)), (1, String::new()));
}

#[test]
fn fish_shows_the_hint_when_the_directory_changes() {
    if !has("fish", "fish_shows_the_hint_when_the_directory_changes") {
        return;
    }
    let home = Home::measured();
    let script = format!("{}\ncd {}; cd web; cd ..", recipe("fish"), home.repository().display());
    let output = run(&home, &home.path(), None, "fish", &["--no-config", "-c", &script]);
    assert_eq!((stdout(&output).matches(HINT).count(), stderr(&output)), (1, String::new()));
}

#[test]
fn the_line_of_the_vscode_task_matches_its_problem_matcher() {
    let home = Home::measured();
    let task: serde_json::Value = serde_json::from_str(&recipe("Visual Studio Code")).unwrap();
    let task = &task["tasks"][0];
    let output = run(&home, &home.repository(), None, "sh", &["-c", task["command"].as_str().unwrap()]);
    let pattern = &task["problemMatcher"]["pattern"];
    let matcher = regex::Regex::new(pattern["regexp"].as_str().unwrap()).unwrap();
    let text = stdout(&output);
    let problem = matcher.captures(text.trim_end()).unwrap_or_else(|| panic!("no problem in {text}"));
    assert_eq!(&problem[1], ".git/config");
    assert!(problem[3].starts_with("move to ext4"));
    let again = run(&home, &home.repository(), None, "sh", &["-c", task["command"].as_str().unwrap()]);
    assert_eq!(stdout(&again), "", "nothing to say is no problem");
}

#[test]
fn neovim_notifies_when_a_folder_is_opened() {
    if !has("nvim", "neovim_notifies_when_a_folder_is_opened") {
        return;
    }
    let home = Home::measured();
    fs::write(home.path().join("init.lua"), recipe("Neovim")).unwrap();
    // `VimEnter` comes after the commands of the command line, so that the end has to be put off.
    let quit = "lua vim.defer_fn(function() vim.cmd('qall!') end, 3000)";
    let arguments = ["--headless", "-u", "../init.lua", "-c", quit];
    let output = run(&home, &home.repository(), None, "nvim", &arguments);
    assert!(stderr(&output).contains(HINT), "{}{}", stdout(&output), stderr(&output));
}

/// A stand-in that says 'move', so that the step that stops can be tried on any disk.
fn moving_stub(home: &Home) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let bin = home.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("rehome"), "#!/bin/sh\necho 'rehome: move to ext4'\nexit 10\n").unwrap();
    fs::set_permissions(bin.join("rehome"), fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

fn onboarding(home: &Home, program: &str, arguments: &[&str]) {
    let stub = moving_stub(home);
    let stopped = run(home, &home.repository(), Some(&stub), program, arguments);
    assert!(!stopped.status.success(), "{}", stdout(&stopped));
    assert!(stdout(&stopped).contains("move the repository first"), "{}", stdout(&stopped));
    // Here the real program measures a real repository: on a local disk it says nothing and the step goes on.
    let passed = run(home, &home.repository(), None, program, arguments);
    let is_native = !stdout(&passed).contains("rehome: move");
    assert_eq!(passed.status.success(), is_native, "{}{}", stdout(&passed), stderr(&passed));
}

#[test]
fn the_make_step_stops_where_the_repository_should_move() {
    if !has("make", "the_make_step_stops_where_the_repository_should_move") {
        return;
    }
    let home = Home::new();
    fs::write(home.repository().join("Makefile"), recipe("make")).unwrap();
    onboarding(&home, "make", &["--silent", "setup"]);
}

#[test]
fn the_just_step_stops_where_the_repository_should_move() {
    if !has("just", "the_just_step_stops_where_the_repository_should_move") {
        return;
    }
    let home = Home::new();
    fs::write(home.repository().join("justfile"), recipe("just")).unwrap();
    onboarding(&home, "just", &["setup"]);
}

#[test]
fn the_dev_containers_command_succeeds_with_and_without_the_program() {
    let container: serde_json::Value = serde_json::from_str(&recipe("Dev container")).unwrap();
    let command = container["postCreateCommand"].as_str().unwrap();
    let home = Home::new();
    assert!(run(&home, &home.repository(), None, "sh", &["-c", command]).status.success());
    let without =
        Command::new("/bin/sh").env_clear().env("PATH", "/nonexistent").args(["-c", command]).output().unwrap();
    assert!(without.status.success());
}

#[test]
fn direnv_shows_the_hint_on_entering() {
    if !has("direnv", "direnv_shows_the_hint_on_entering") {
        return;
    }
    let home = Home::measured();
    fs::write(home.repository().join(".envrc"), recipe("direnv")).unwrap();
    assert!(run(&home, &home.repository(), None, "direnv", &["allow", "."]).status.success());
    let output = run(&home, &home.repository(), None, "direnv", &["exec", ".", "true"]);
    assert!(output.status.success() && stderr(&output).contains(HINT), "{}", stderr(&output));
}

#[test]
fn the_pre_commit_hook_shows_the_hint_and_passes() {
    if !has("pre-commit", "the_pre_commit_hook_shows_the_hint_and_passes") {
        return;
    }
    let home = Home::new();
    fs::write(home.repository().join(".pre-commit-config.yaml"), recipe("pre-commit")).unwrap();
    home.git(&["add", "."]);
    home.store().save(&home.report()).unwrap();
    let output = run(&home, &home.repository(), None, "pre-commit", &["run", "--all-files"]);
    assert!(output.status.success() && stdout(&output).contains(HINT), "{}{}", stdout(&output), stderr(&output));
}
