//! `rehome bench` from outside: what it leaves, what it says, and what is saved when it is stopped.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/schema.rs"]
mod schema;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use schema::assert_valid;
use serde_json::Value;
use slow_mount::{Call, Options, SlowMount, available};
use tempfile::TempDir;

/// Ends a test that would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(120);

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rehome"));
    command.arg("bench").args(args).env_remove("WSL_DISTRO_NAME");
    command
}

fn rehome(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs quietly, asks for JSON, and checks it against the published schema.
fn json(args: &[&str]) -> Value {
    let output = rehome(&[&["--quiet", "--format", "json"], args].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("bench", &value);
    value
}

fn two_places() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    fs::create_dir(&a).unwrap();
    fs::create_dir(&b).unwrap();
    (dir, a, b)
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

/// Starts a run that takes long, and waits until a round was saved.
fn started(places: &[&Path], saved: &Path) -> Child {
    let places: Vec<&str> = places.iter().map(|place| text(place)).collect();
    let options = ["--suite", "small", "--files", "300", "--rounds", "1000", "--budget", "1h", "--output", text(saved)];
    let mut child =
        command(&[&places[..], &options[..]].concat()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while saved_rounds(saved) == 0 {
        assert!(began.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "no round was saved");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

fn saved_rounds(saved: &Path) -> usize {
    let Ok(bytes) = fs::read(saved) else { return 0 };
    // Written as a whole or not at all: what can be read is always valid.
    let report: Value = serde_json::from_slice(&bytes).unwrap();
    report["suites"].as_array().unwrap().iter().map(|suite| suite["rounds"].as_array().unwrap().len()).sum()
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

/// Returns the processes that a process started.
fn children(parent: u32) -> Vec<rustix::process::Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        if after_name.split_whitespace().nth(1) == Some(&parent.to_string()) {
            found.extend(rustix::process::Pid::from_raw(pid));
        }
    }
    found
}

#[test]
fn places_alternate_every_round_is_proven_and_nothing_is_left() {
    let (_dir, a, b) = two_places();
    let report = json(&[text(&a), text(&b), "--suite", "small", "--files", "60", "--size", "1k", "--dirs", "7"]);
    assert_eq!(report["complete"], true);
    let suite = &report["suites"][0];
    let rounds = suite["rounds"].as_array().unwrap();
    let order: Vec<(u64, u64)> =
        rounds.iter().map(|round| (round["round"].as_u64().unwrap(), round["place"].as_u64().unwrap())).collect();
    let expected: Vec<(u64, u64)> = (0..=6)
        .flat_map(|round| if round % 2 == 0 { [(round, 0), (round, 1)] } else { [(round, 1), (round, 0)] })
        .collect();
    assert_eq!(order, expected);
    for round in rounds {
        assert_eq!(round["counted"], round["round"] != 0);
        assert_eq!((&round["proof"]["bytes_read"], &round["proof"]["stat_bytes"]), (&61_440.into(), &61_440.into()));
        assert_eq!(round["proof"]["crc32"], rounds[0]["proof"]["crc32"]);
        assert_eq!(round["proof"]["gone"], true);
    }
    let phases: Vec<&str> =
        suite["figures"].as_array().unwrap().iter().map(|figure| figure["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["total", "create", "read", "stat", "delete"]);
    assert!(suite["figures"].as_array().unwrap().iter().all(|figure| figure["places"].as_array().unwrap().len() == 2));
    for place in report["places"].as_array().unwrap() {
        assert_eq!((&place["scratch"]["gone"], &place["scratch"]["mode"]), (&true.into(), &"0700".into()));
    }
    assert_eq!((entries(&a), entries(&b)), (0, 0));
}

#[test]
fn every_suite_runs_and_proves_its_work() {
    let (_dir, a, b) = two_places();
    let saved = a.parent().unwrap().join("saved.json");
    let report = json(&[
        text(&a),
        text(&b),
        "--files",
        "20",
        "--bytes",
        "2MiB",
        "--rounds",
        "1",
        "--budget",
        // More than it takes anywhere: what is checked is the work, not the time.
        "10m",
        "--output",
        text(&saved),
    ]);
    let suites = report["suites"].as_array().unwrap();
    let names: Vec<&str> = suites.iter().map(|suite| suite["suite"].as_str().unwrap()).collect();
    assert_eq!(names, ["small", "git", "seq", "stream", "walk"]);
    for suite in suites {
        assert_eq!(suite["failures"], Value::Array(Vec::new()), "{suite}");
        let lost = suite["rounds"].as_array().unwrap().iter().find(|round| round.get("why_not").is_some());
        assert_eq!(lost, None);
    }
    let status = &suites[1]["rounds"][0]["proof"]["output"];
    let files = suites[1]["setup"]["files"].as_u64().unwrap();
    assert_eq!(*status, format!(" M d{:02}/f{:04}.txt\n", files / 3 / 50, files / 3));
    let sha = &suites[3]["rounds"][0]["proof"]["sha256"];
    assert!(suites[3]["rounds"].as_array().unwrap().iter().all(|round| round["proof"]["sha256"] == *sha));
    assert_eq!(suites[3]["figures"].as_array().unwrap().len(), 7);
    let again: Value = serde_json::from_slice(&fs::read(&saved).unwrap()).unwrap();
    assert_eq!(again["suites"], report["suites"], "what was saved is not what was printed");
    assert_eq!((entries(&a), entries(&b)), (0, 0));
}

#[test]
fn a_result_may_go_to_a_descriptor_of_the_run() {
    let (_dir, a, b) = two_places();
    let places = [text(&a), text(&b), "--suite", "small", "--files", "20", "--rounds", "1", "--quiet"];
    for (name, stream) in [("/dev/stdout", stdout as fn(&Output) -> String), ("/dev/stderr", stderr)] {
        let output = rehome(&[&places[..], &["--output", name]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stream(&output);
        assert!(said.contains("\"kind\": \"bench\"") && said.contains("\"complete\": true"), "{name}: {said}");
    }
    assert_eq!((entries(&a), entries(&b)), (0, 0));
}

#[test]
fn a_signal_keeps_what_was_finished_and_removes_the_scratch_directories() {
    for stop in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let (dir, a, b) = two_places();
        let saved = dir.path().join("saved.json");
        let child = started(&[&a, &b], &saved);
        signal(&child, stop);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(stderr(&output).ends_with("rehome: interrupted\n"), "{}", stderr(&output));
        assert!(stdout(&output).contains("removed, and looked for again: nothing is there"), "{}", stdout(&output));
        assert!(saved_rounds(&saved) > 0);
        let report: Value = serde_json::from_slice(&fs::read(&saved).unwrap()).unwrap();
        assert_eq!((&report["complete"], &report["places"][0]["scratch"]["gone"]), (&false.into(), &true.into()));
        assert_eq!((entries(&a), entries(&b)), (0, 0));
    }
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_one_which_says_so() {
    let (dir, a, b) = two_places();
    let mut child = started(&[&a, &b], &dir.path().join("saved.json"));
    // The process that writes, too: it would clean up when the one that watches it is gone.
    for pid in children(child.id()) {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    assert_eq!((entries(&a), entries(&b)), (1, 1));
    let output = rehome(&[text(&a), text(&b), "--suite", "small", "--files", "20", "--rounds", "1"]);
    assert!(output.status.success());
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words.join(" ").matches("removed what a killed run left").count(), 2, "{}", stdout(&output));
    assert_eq!((entries(&a), entries(&b)), (0, 0));
}

#[test]
fn a_tree_of_the_users_is_only_read() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("sub/deeper")).unwrap();
    fs::write(tree.join("sub/file"), b"12345").unwrap();
    let times = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec())
    };
    let before = [times(&tree), times(&tree.join("sub"))];
    let report = json(&["--suite", "walk", "--tree", text(&tree), "--rounds", "2"]);
    assert_eq!([times(&tree), times(&tree.join("sub"))], before);
    assert_eq!(report["places"].as_array().unwrap().len(), 1);
    assert_eq!((&report["places"][0]["role"], report["places"][0].get("scratch")), (&"tree".into(), None));
    let proof = &report["suites"][0]["rounds"][0]["proof"];
    assert_eq!((&proof["files"], &proof["dirs"], &proof["stat_bytes"]), (&1.into(), &3.into(), &5.into()));
}

#[test]
fn git_runs_nothing_of_the_users_configuration() {
    let (dir, a, b) = two_places();
    let home = dir.path().join("home");
    let mark = dir.path().join("mark");
    fs::create_dir_all(home.join("template/hooks")).unwrap();
    let script = format!("#!/bin/sh\necho run >> '{}'\n", mark.display());
    for hook in ["post-commit", "pre-commit", "post-index-change"] {
        fs::write(home.join("template/hooks").join(hook), &script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(home.join("template/hooks").join(hook), mode).unwrap();
    }
    let hook = home.join("template/hooks/post-commit");
    fs::write(
        home.join(".gitconfig"),
        format!(
            "[init]\n\ttemplateDir = {0}/template\n[core]\n\tfsmonitor = {1}\n\thooksPath = {0}/template/hooks\n\
             [commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {1}\n[status]\n\tshort = true\n\tbranch = true\n",
            home.display(),
            hook.display()
        ),
    )
    .unwrap();
    let output = command(&[text(&a), text(&b), "--suite", "git", "--rounds", "1", "--quiet", "--format", "json"])
        .env("HOME", &home)
        .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"))
        .env("GIT_DIR", "/nowhere")
        .env("GIT_TEMPLATE_DIR", home.join("template"))
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["complete"], true, "{report}");
    assert!(!mark.exists(), "a program of the user's configuration was run");
}

#[test]
fn without_git_the_other_suites_still_run() {
    let (_dir, a, b) = two_places();
    let output = command(&[text(&a), text(&b), "--suite", "git,small", "--files", "20", "--rounds", "1"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(stdout(&output).contains("not measured: there is no git on PATH"), "{}", stdout(&output));
    assert!(stdout(&output).contains("20 files of 4 KiB in 20 directories; 1 round"), "{}", stdout(&output));
}

#[test]
fn without_a_terminal_standard_error_has_one_line_and_no_bar() {
    let (_dir, a, b) = two_places();
    let output = rehome(&[text(&a), text(&b), "--suite", "small", "--files", "20", "--rounds", "1"]);
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with(&format!("rehome bench writes in `{}/.rehome-bench-", a.display())), "{said}");
    assert!(!stdout(&output).contains('\u{1b}'));
}

fn failure(args: &[&str]) -> (Option<i32>, String) {
    let output = rehome(args);
    (output.status.code(), stderr(&output))
}

#[test]
fn wrong_input_is_refused_with_what_to_do() {
    let (dir, a, _b) = two_places();
    let file = dir.path().join("file");
    fs::write(&file, b"{}").unwrap();
    let absent = dir.path().join("absent");
    let (code, said) = failure(&[text(&absent)]);
    assert_eq!(code, Some(1));
    assert!(said.contains(&format!("`{}`", absent.display())) && said.contains("hint: "), "{said}");
    assert_eq!(
        failure(&[text(&file)]),
        (
            Some(1),
            format!(
                "rehome: `{}` is no directory\n  hint: name a directory; the scratch directory is made inside\n",
                file.display()
            )
        )
    );
    let twice = format!("{}/../a", a.display());
    assert_eq!(failure(&[text(&a), &twice]), (Some(2), format!("rehome: `{twice}` is named twice\n")));
    let (code, said) = failure(&["--compare", text(&file)]);
    assert_eq!(code, Some(1));
    assert!(said.contains("is no saved result of `rehome bench`: it has no `\"kind\": \"bench\"`"), "{said}");
    for (args, reason) in [
        (&["--size", "4 parsecs"][..], "`4 parsecs` is no size"),
        (&["--suite", "smal"], "invalid value 'smal'"),
        (&["--rounds", "0"], "0 is not in 1..=1000"),
        (&["--size", "1G"], "is no small file"),
        (&["--compare", "x", "--rounds", "3"], "cannot be used with"),
    ] {
        let (code, said) = failure(args);
        assert!(code == Some(2) && said.contains(reason), "{args:?}: {said}");
    }
    assert_eq!(entries(&a), 0);
}

#[test]
fn an_output_that_cannot_be_written_stops_before_anything_is_measured() {
    let (dir, a, b) = two_places();
    let nowhere = dir.path().join("absent/saved.json");
    let (code, said) = failure(&[text(&a), text(&b), "--suite", "small", "--output", text(&nowhere), "--quiet"]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with(&format!("rehome: cannot write `{}`", nowhere.display())), "{said}");
    assert_eq!((entries(&a), entries(&b)), (0, 0));
}

#[test]
fn saved_results_are_compared_in_text_json_and_html() {
    let (dir, a, b) = two_places();
    let saved: Vec<PathBuf> = ["desk", "share"].iter().map(|name| dir.path().join(format!("{name}.json"))).collect();
    for path in &saved {
        json(&[text(&a), text(&b), "--suite", "small", "--files", "20", "--rounds", "3", "--output", text(path)]);
    }
    let files = ["--compare", text(&saved[0]), text(&saved[1])];
    let shown = stdout(&rehome(&files));
    assert!(shown.contains(&format!("A   desk: {}", a.display())), "{shown}");
    assert!(shown.contains(&format!("D   share: {}", b.display())), "{shown}");
    assert_eq!(shown.matches("fastest").count(), 5, "one place is the fastest in each of five phases:\n{shown}");
    let comparison: Value =
        serde_json::from_slice(&rehome(&[&files[..], &["--format", "json"]].concat()).stdout).unwrap();
    assert_valid("bench-comparison", &comparison);
    assert_eq!(comparison["groups"][0]["rows"][0]["figures"].as_array().unwrap().len(), 4);
    let page = dir.path().join("page.html");
    let output = rehome(&[&files[..], &["--format", "html", "--output", text(&page)]].concat());
    assert!(output.status.success() && output.stdout.is_empty());
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 20);
    for outside in ["http://", "https://", "<script", "src=", "url("] {
        assert!(!page.contains(outside), "the page holds `{outside}`");
    }
}

/// A saved mount table cannot be measured, but the advice is a matter of facts alone.
#[test]
fn the_advice_about_redirecting_is_given_only_where_it_holds() {
    let rules = rehome::rules::RuleSet::load(&[]).unwrap();
    let advice = |platform: &str, class: &str, low: Option<f64>| {
        let facts = serde_json::json!({
            "platform": platform,
            "site": { "class": class },
            "measure": { "relay": { "speedup": 8.2, "speedup_low": low } },
        });
        rehome::advise::settings_without_repository(&facts, &rules)
    };
    let given = advice("wsl2", "windows-drive", Some(7.1));
    assert_eq!(given.len(), 1, "{given:?}");
    assert!(given[0].effect.contains("took 8.2 times as long here"), "{given:?}");
    assert_eq!(given[0].command, "wsl.exe --exec sh -c 'COMMAND > FILE'");
    for (platform, class, low) in [
        ("wsl1", "windows-drive", Some(7.1)),
        ("wsl2", "local-native", Some(7.1)),
        ("wsl2", "windows-drive", Some(1.2)),
        ("wsl2", "windows-drive", None),
        ("linux", "network", Some(7.1)),
    ] {
        assert_eq!(advice(platform, class, low), [], "{platform} {class} {low:?}");
    }
}

struct Slow {
    // Dropped first: unmounted before the backing files go.
    mount: SlowMount,
    _backing: TempDir,
}

fn slow(options: Options) -> Slow {
    let backing = tempfile::tempdir().unwrap();
    Slow { mount: SlowMount::new(backing.path(), options).unwrap(), _backing: backing }
}

#[test]
fn a_read_only_place_is_refused_before_anything_is_written() {
    if !available("a_read_only_place_is_refused_before_anything_is_written") {
        return;
    }
    let slow = slow(Options { read_only: true, ..Options::default() });
    let (_dir, a, _b) = two_places();
    let (code, said) = failure(&[text(&a), text(slow.mount.path()), "--suite", "small"]);
    assert_eq!(code, Some(1));
    let place = slow.mount.path().display();
    assert!(
        said.starts_with(&format!(
            "rehome: cannot make a scratch directory in `{place}`: it is on a read-only mount\n"
        )),
        "{said}"
    );
    assert_eq!(entries(&a), 0);
}

#[test]
fn a_place_that_fails_drops_out_and_the_other_one_is_still_measured() {
    if !available("a_place_that_fails_drops_out_and_the_other_one_is_still_measured") {
        return;
    }
    let slow = slow(Options::default());
    // The trial makes 20 files, so that the disk is full in the first full round.
    slow.mount.fail("**/f00030", &[Call::Create], Errno::NOSPC).unwrap();
    let (_dir, a, _b) = two_places();
    let args = [text(slow.mount.path()), text(&a), "--suite", "small", "--files", "60", "--rounds", "2"];
    let report = json(&args);
    assert_eq!(report["complete"], false);
    let suite = &report["suites"][0];
    assert_eq!(suite["failures"].as_array().unwrap().len(), 1);
    let failure = &suite["failures"][0];
    let message = failure["message"].as_str().unwrap();
    assert_eq!(failure["place"], 0);
    assert!(message.contains("/f00030`: No space left on device"), "{message}");
    assert_eq!(suite["figures"][0]["places"].as_array().unwrap().len(), 1);
    assert_eq!(suite["figures"][0]["places"][0]["place"], 1);
    assert_eq!((entries(slow.mount.path()), entries(&a)), (0, 0));
}

#[test]
fn work_that_does_not_fit_the_budget_is_made_smaller_and_that_is_said() {
    if !available("work_that_does_not_fit_the_budget_is_made_smaller_and_that_is_said") {
        return;
    }
    let slow = slow(Options { delay_us: 500, ..Options::default() });
    let (_dir, a, _b) = two_places();
    let report = json(&[text(slow.mount.path()), text(&a), "--suite", "small", "--files", "4000", "--budget", "6s"]);
    let suite = &report["suites"][0];
    assert!(suite["setup"]["files"].as_u64().unwrap() < 4000, "{suite}");
    let said = suite["shrunk"][0].as_str().unwrap();
    assert!(said.contains(" files instead of 4000: the whole would take about "), "{said}");
    assert!(suite["rounds"].as_array().unwrap().iter().any(|round| round["counted"] == true));
}
