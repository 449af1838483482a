//! `rehome check` as a user runs it: answers, refusals with their exact words, exit statuses.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/schema.rs"]
mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory on a disk (the build's own, since the system's may be in memory) with a HOME of its own.
struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        Self { root: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.root.path().join("home")).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C.UTF-8");
        command.current_dir(self.root.path()).stdin(Stdio::null());
        command
    }

    fn git(&self, directory: &Path, arguments: &[&str]) {
        let mut command = self.command("git");
        command.current_dir(directory).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn repo(&self) -> PathBuf {
        let path = self.path().join("repo");
        fs::create_dir_all(path.join("src")).unwrap();
        self.git(&path, &["init", "-q", "-b", "main"]);
        fs::write(path.join("src/a.c"), "int main(void) { return 0; }\n").unwrap();
        fs::write(path.join("README.md"), "# a\n").unwrap();
        self.git(&path, &["add", "."]);
        self.git(&path, &["commit", "-qm", "first"]);
        path
    }

    fn rehome(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_rehome")).args(arguments).output().unwrap()
    }

    /// Runs rehome, which must fail, and returns its exit status and its words.
    fn refusal(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.rehome(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "a failed run prints no half answer");
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn report(&self, arguments: &[&str]) -> Value {
        let output = self.rehome(&[arguments, &["--format", "json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report = serde_json::from_slice(&output.stdout).unwrap();
        schema::assert_valid_report(&report);
        report
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_repository_on_a_local_disk_is_told_to_stay_with_what_status_costs() {
    let world = World::new();
    let repo = world.repo();
    let answer = text(&world.rehome(&[repo.to_str().unwrap()]));
    assert!(answer.contains("STAY here."), "{answer}");
    assert!(answer.contains("It is on a local disk of this system already"), "{answer}");
    assert!(answer.contains("git status"), "{answer}");
    let report = world.report(&[repo.to_str().unwrap()]);
    assert_eq!(report["schema_version"], 1);
    assert_eq!(report["complete"], true);
    assert_eq!(report["facts"]["site"]["class"], "local-native");
    assert_eq!(report["facts"]["repo"]["tracked_files"], 2);
    assert_eq!(report["recommendation"]["reason"], "already-native");
    assert_eq!(report["cost"]["bytes_written_in_place"], 0);
    let workloads: Vec<&str> =
        report["measurements"].as_array().unwrap().iter().map(|m| m["workload"].as_str().unwrap()).collect();
    assert!(workloads.contains(&"git_status") && workloads.contains(&"stat"), "{workloads:?}");
    for measured in report["measurements"].as_array().unwrap() {
        assert!(measured["in_place"]["median"].as_f64().unwrap() > 0.0);
        assert_eq!(measured["in_copy"], Value::Null, "nothing is copied from a disk that is right already");
    }
}

#[test]
fn the_default_command_is_check_of_the_current_directory() {
    let world = World::new();
    let repo = world.repo();
    let run = |arguments: &[&str]| {
        let mut command = world.command(env!("CARGO_BIN_EXE_rehome"));
        text(&command.current_dir(repo.join("src")).args(arguments).output().unwrap())
    };
    for answer in [run(&["--no-measure"]), run(&["check", "--no-measure"]), run(&["check", "--no-measure", "."])] {
        assert!(answer.starts_with(concat!("rehome ", env!("CARGO_PKG_VERSION"), "   ")), "{answer}");
        assert!(answer.contains("STAY here."), "{answer}");
    }
}

#[test]
fn the_scan_stays_within_sixty_calls_whatever_the_size() {
    let world = World::new();
    let repo = world.repo();
    for number in 0..3_000 {
        let directory = repo.join(format!("d{}", number % 300));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("f{number}.c")), "x").unwrap();
    }
    world.git(&repo, &["add", "."]);
    let report = world.report(&[repo.to_str().unwrap(), "--no-measure"]);
    let calls = report["cost"]["scan_calls_in_place"].as_u64().unwrap();
    assert!((1..=60).contains(&calls), "{calls} calls");
}

#[test]
fn outside_a_repository_it_says_so_and_exits_with_one() {
    let world = World::new();
    fs::create_dir(world.path().join("plain")).unwrap();
    // A file system boundary ends the search; here a repository further up would be found, if there were one.
    let root = TempDir::new().unwrap();
    let path = root.path().canonicalize().unwrap();
    fs::write(path.join("notes.txt"), "x").unwrap();
    let (status, words) = world.refusal(&[path.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert_eq!(
        words,
        format!(
            "rehome: `{}` is not in a git repository\n  \
             hint: run rehome inside a repository, or name one: `rehome check PATH`\n",
            path.display()
        )
    );
}

#[test]
fn a_damaged_index_ends_the_run_before_anything_is_measured() {
    let world = World::new();
    let repo = world.repo();
    fs::write(repo.join(".git/index"), "DIRCgarbage").unwrap();
    let (status, words) = world.refusal(&[repo.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(words.starts_with(&format!("rehome: the index `{}` is damaged: ", repo.join(".git/index").display())));
    assert!(words.contains("\n  hint: do not copy this repository before it is mended: run `git fsck`"), "{words}");
}

/// Git itself would wait for ever there; whoever reads the answer has to know which file it is.
#[test]
fn a_pipe_in_the_place_of_a_file_of_git_is_named_with_what_to_do() {
    for name in [
        "HEAD",
        "config",
        "index",
        "packed-refs",
        "refs/heads/main",
        "logs/refs/stash",
        "info/exclude",
        "info/attributes",
        "info/sparse-checkout",
        "objects/info/alternates",
    ] {
        let world = World::new();
        let repo = world.repo();
        if name == "packed-refs" {
            // Otherwise nobody has to look into it.
            world.git(&repo, &["pack-refs", "--all"]);
        }
        let path = repo.join(".git").join(name);
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (status, words) = world.refusal(&[repo.to_str().unwrap()]);
        assert_eq!(status, 1, "{name}: {words}");
        let path = path.display();
        let (what, rest) = words.split_once('\n').unwrap();
        assert!(what.starts_with("rehome: cannot read ") && what.ends_with(&format!("`{path}`")), "{words}");
        assert_eq!(
            rest,
            format!(
                "  caused by: it is a named pipe, not a regular file\n  hint: git keeps a regular file at `{path}`: put \
                 it back, or remove what is there; git waits for ever on a pipe\n"
            )
        );
    }
}

#[test]
fn what_is_no_file_of_git_is_named_for_what_it_is() {
    let world = World::new();
    let repo = world.repo();
    let path = repo.join(".git/info/exclude");
    let _ = fs::remove_file(&path);
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    let (status, words) = world.refusal(&[repo.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(words.contains("exclude` is a link, and none is followed inside a repository"), "{words}");
    fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Socket, mode, 0).unwrap();
    let (_, words) = world.refusal(&[repo.to_str().unwrap()]);
    assert!(words.contains("hint: git keeps a regular file at"), "{words}");
}

#[test]
fn a_wrong_command_line_exits_with_two() {
    let world = World::new();
    for arguments in [
        &["--budget", "10 parsecs"][..],
        &["--rounds", "0"],
        &["--no-such-option"],
        &["--format", "xml"],
        &["--primary", "plan9"],
        &["check", "a", "b"],
    ] {
        let (status, words) = world.refusal(arguments);
        assert_eq!(status, 2, "{arguments:?}: {words}");
        assert!(words.starts_with("error: "), "{words}");
    }
}

#[test]
fn bare_and_empty_repositories_are_answered_without_figures() {
    let world = World::new();
    let bare = world.path().join("bare.git");
    world.git(&world.path(), &["init", "-q", "--bare", bare.to_str().unwrap()]);
    let empty = world.path().join("empty");
    world.git(&world.path(), &["init", "-q", empty.to_str().unwrap()]);
    for (path, is_bare) in [(bare, true), (empty, false)] {
        let report = world.report(&[path.to_str().unwrap()]);
        assert_eq!(report["facts"]["repo"]["bare"], is_bare);
        assert_eq!(report["facts"]["repo"]["unborn"], true);
        assert_eq!(report["measurements"], Value::Array(Vec::new()));
        assert_eq!(report["recommendation"]["verdict"], "stay");
    }
}

#[test]
fn a_target_that_is_not_what_it_should_be_stops_the_run() {
    let world = World::new();
    let repo = world.repo();
    let repo = repo.to_str().unwrap();
    let same = world.path().join("elsewhere");
    fs::create_dir(&same).unwrap();
    let (status, words) = world.refusal(&[repo, "--target", same.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(words.contains("is on the repository's own filesystem"), "{words}");
    assert!(words.contains("\n  hint: "), "{words}");
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let (status, words) = world.refusal(&[repo, "--target", "/dev/shm"]);
    assert_eq!(status, 1);
    assert!(words.contains("`/dev/shm` is") && words.contains("tmpfs"), "{words}");
}

#[test]
fn a_place_that_holds_nothing_yet_is_advised_about_before_a_clone() {
    let world = World::new();
    // Not below this project's own repository, which would be the one that an empty directory is in.
    let root = TempDir::new().unwrap();
    let path = root.path().canonicalize().unwrap();
    let empty = path.join("empty");
    fs::create_dir(&empty).unwrap();
    for place in [empty, path.join("not/yet")] {
        let report = world.report(&[place.to_str().unwrap()]);
        let rule = match report["facts"]["site"]["class"].as_str().unwrap() {
            "local-native" => "clone-on-local-disk",
            "memory" => "clone-not-into-memory",
            other => panic!("the system's temporary directory is of class {other}"),
        };
        assert_eq!(report["recommendation"]["rule"], rule);
        assert_eq!(report["facts"]["site"]["path"], place.to_str().unwrap());
        let answer = text(&world.rehome(&[place.to_str().unwrap()]));
        assert!(answer.contains("  CLONE ") && answer.contains("no repository yet"), "{answer}");
    }
    let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["empty"], "nothing is made by asking");
    if Path::new("/dev/shm").is_dir() {
        let asked = world.rehome(&["/dev/shm/rehome-not-there", "--exit-code", "--format", "oneline"]);
        assert_eq!(asked.status.code(), Some(10));
        let line = String::from_utf8(asked.stdout).unwrap();
        assert!(line.starts_with("rehome: clone to ") && line.ends_with(", not here\n"), "{line}");
    }
}

#[test]
fn what_is_there_but_no_repository_is_no_place_for_a_clone() {
    let world = World::new();
    let root = TempDir::new().unwrap();
    let path = root.path().canonicalize().unwrap();
    let full = path.join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("notes.txt"), "x").unwrap();
    let (status, words) = world.refusal(&[full.to_str().unwrap()]);
    assert!(status == 1 && words.contains("is not in a git repository"), "{words}");
    let dangling = path.join("link");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    let (status, words) = world.refusal(&[dangling.to_str().unwrap()]);
    assert_eq!(status, 1);
    let path = dangling.display();
    assert_eq!(
        words,
        format!(
            "rehome: cannot open `{path}`\n  caused by: No such file or directory (os error 2)\n  \
             hint: check the spelling of `{path}`, and that its drive is mounted\n"
        )
    );
    let below_a_file = full.join("notes.txt/clone");
    let (status, words) = world.refusal(&[below_a_file.to_str().unwrap()]);
    assert!(status == 1 && words.contains("Not a directory"), "{words}");
}

#[test]
fn without_git_the_stat_calls_are_still_measured() {
    let world = World::new();
    let repo = world.repo();
    let mut command = world.command(env!("CARGO_BIN_EXE_rehome"));
    let output =
        command.env("PATH", "/nonexistent").args([repo.to_str().unwrap(), "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema::assert_valid_report(&report);
    assert_eq!(report["facts"]["git"], Value::Null);
    let workloads: Vec<&Value> = report["measurements"].as_array().unwrap().iter().map(|m| &m["workload"]).collect();
    assert!(workloads.contains(&&Value::from("stat")) && !workloads.contains(&&Value::from("git_status")));
    assert!(report["notes"].to_string().contains("git"), "{}", report["notes"]);
}

#[test]
fn the_answer_can_go_to_a_file_as_a_whole_or_not_at_all() {
    let world = World::new();
    let repo = world.repo();
    let repo = repo.to_str().unwrap();
    let file = world.path().join("answer.json");
    let output = world.rehome(&[repo, "--format", "json", "--output", file.to_str().unwrap()]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["complete"], true);
    let nowhere = world.path().join("no/such/directory/answer");
    let (status, words) = world.refusal(&[repo, "--output", nowhere.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(words.starts_with(&format!("rehome: cannot write `{}`\n", nowhere.display())), "{words}");
}

#[test]
fn a_full_output_is_an_error_and_a_closed_one_is_none() {
    let world = World::new();
    let repo = world.repo();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = world.command(env!("CARGO_BIN_EXE_rehome"));
    let output = command.args([repo.to_str().unwrap(), "--no-measure"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("rehome: cannot write the report\n"));
    let script = r#""$0" "$1" --no-measure | true; exit "${PIPESTATUS[0]}""#;
    let mut shell = world.command("bash");
    let output = shell.args(["-c", script, env!("CARGO_BIN_EXE_rehome"), repo.to_str().unwrap()]).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn the_exit_status_tells_the_advice_only_when_asked() {
    let world = World::new();
    let repo = world.repo();
    let repo = repo.to_str().unwrap();
    assert_eq!(world.rehome(&[repo, "--no-measure", "--exit-code"]).status.code(), Some(0));
    assert_eq!(
        world.rehome(&[repo, "--no-measure", "--format", "oneline"]).stdout,
        b"",
        "nothing to do, nothing to say"
    );
}
