//! The rules command, and what judging reads of a working copy.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rehome::facts::Toolchain;
use rehome::judge::judge;
use rehome::rules::RuleSet;
use rehome::rules::live::observe;
use rehome::scan::access::Access;
use rehome::scan::repo::scan;

fn rehome(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rehome"))
        .args(arguments)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap()
}

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status()
        .unwrap();
    assert!(status.success(), "git {arguments:?}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const RULE: &str = "kind: evidence\nrules:\n  - id: team-rule\n    toolchain: windows\n    tier: host-only\n    \
                    strength: strong\n    when: { tracked: [team.cfg] }\n    because: our build needs it\n    source: us\n    \
                    examples:\n      fires: [{ tracked: [team.cfg] }]\n      ignores: [{ tracked: [docs/team.cfg] }]\n";

#[test]
fn the_built_in_examples_all_come_out() {
    let home = tempfile::tempdir().unwrap();
    let output = rehome(home.path(), &["rules", "test"]);
    assert!(output.status.success(), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains(" 0 failed"));
}

#[test]
fn a_rule_of_the_users_directory_is_listed_and_explained() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("config/rehome/rules");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("team.yaml"), RULE).unwrap();
    let listed = text(&rehome(home.path(), &["rules", "list"]).stdout);
    assert!(
        listed.lines().any(|line| line.contains("team-rule") && line.contains("windows host-only strong")),
        "{listed}"
    );
    let explained = text(&rehome(home.path(), &["rules", "explain", "team-rule"]).stdout);
    assert!(explained.contains("team.yaml") && explained.contains("because: our build needs it"), "{explained}");
}

#[test]
fn an_unknown_id_brings_the_nearest_one() {
    let home = tempfile::tempdir().unwrap();
    let output = rehome(home.path(), &["rules", "explain", "unity-projct"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("did you mean `unity-project`?"), "{}", text(&output.stderr));
}

#[test]
fn a_wrong_file_is_named_with_line_and_column_by_check_and_by_every_command_that_loads_it() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("mine");
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("bad.yaml");
    fs::write(&file, RULE.replace("toolchain: windows", "toolchian: windows")).unwrap();
    let checked = rehome(home.path(), &["rules", "check", file.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(1));
    let said = text(&checked.stdout);
    assert!(said.contains("bad.yaml:4:5: ") && said.contains("did you mean `toolchain`?"), "{said}");
    let listed = rehome(home.path(), &["rules", "list", "--rules", directory.to_str().unwrap()]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(text(&listed.stderr).contains("bad.yaml:4:5: "), "{}", text(&listed.stderr));
}

#[test]
fn an_example_that_does_not_come_out_is_a_problem_of_its_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("team.yaml");
    fs::write(&file, RULE.replace("docs/team.cfg", "team.cfg, other")).unwrap();
    let checked = rehome(home.path(), &["rules", "check", file.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stdout).contains("example ignores[0]: the rule fires"), "{}", text(&checked.stdout));
    fs::write(&file, RULE).unwrap();
    assert!(rehome(home.path(), &["rules", "check", file.to_str().unwrap()]).status.success());
}

#[test]
fn the_schema_names_every_kind() {
    let home = tempfile::tempdir().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&rehome(home.path(), &["rules", "schema"]).stdout).unwrap();
    let kinds: Vec<&str> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["properties"]["kind"]["const"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["evidence", "filesystem", "hazard", "judging", "rebuildable", "verdict"]);
}

/// Facts of a Windows drive around what a scan found.
fn on_a_drive(repo: &rehome::facts::RepoFacts) -> rehome::facts::Facts {
    serde_json::from_value(serde_json::json!({
        "platform": "wsl2",
        "site": {
            "path": "/mnt/c/a", "real_path": "/mnt/c/a", "mount_point": "/mnt/c", "fstype": "9p", "source": "C:\\",
            "options": "rw", "class": "windows-drive", "name": "WSL 2 DrvFs", "read_only": false, "rule": "drvfs-9p"
        },
        "repo": repo
    }))
    .unwrap()
}

/// A working copy that suggests many ecosystems at once, with some thousand files and what builds leave.
fn crowded(root: &Path) {
    git(root, &["init", "-q"]);
    let write = |path: &str, content: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    for index in 0..40 {
        write(&format!("src/App{index}/App{index}.csproj"), "<Project Sdk=\"S\"/>");
        write(&format!(".github/workflows/w{index}.yml"), "on: push\njobs:\n  a: { runs-on: ubuntu-latest }\n");
        write(&format!("crates/c{index}/Cargo.toml"), "[dependencies]\n");
        write(&format!("docker/d{index}/Dockerfile"), "FROM debian\n");
    }
    for index in 0..2000 {
        write(&format!("lib/m{}/f{index}.c", index % 50), "int a;\n");
    }
    for file in [
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
        "CMakeLists.txt",
        "CMakePresets.json",
        ".gitattributes",
        ".editorconfig",
        "compose.yaml",
        "Dockerfile",
        "Makefile",
        "README.md",
        "azure-pipelines.yml",
        "appveyor.yml",
        ".gitlab-ci.yml",
        ".travis.yml",
        "composer.json",
        "a.ps1",
        "a.psd1",
        "metadata.json",
        "artisan",
        "manage.py",
        "app.vcxproj",
        "drv.inf",
        ".vscode/launch.json",
        "run.sh",
    ] {
        write(file, "x\n");
    }
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "a"]);
    for place in [
        "node_modules/.bin/tsc",
        "node_modules/.package-lock.json",
        "node_modules/.modules.yaml",
        "target/debug/app",
        "target/.rustc_info.json",
        ".venv/bin/python",
        ".venv/pyvenv.cfg",
        "build/CMakeCache.txt",
        "vendor/bin/x",
        ".terraform/providers/a/b/c/d/e",
        "local.properties",
        "config.log",
        ".idea/workspace.xml",
        "out/x",
        "result",
    ] {
        write(place, "x\n");
    }
}

#[test]
fn judging_stays_within_some_forty_calls_however_large_and_mixed_the_repository_is() {
    let directory = tempfile::tempdir().unwrap();
    crowded(directory.path());
    let rules = RuleSet::builtin().unwrap();
    let access = Access::default();
    let profile = scan(directory.path(), &access).unwrap();
    let before = access.count().calls;
    let facts = on_a_drive(&profile.facts);
    let observations = observe(&profile, &facts, &rules, &access);
    let own = access.count().calls - before;
    assert!(own <= 40, "{own} calls of judging");
    assert!(access.count().calls <= 60, "{} calls in all", access.count().calls);
    assert!(observations.seen.is_cut(), "the working copy was meant to want more than the budget");
    assert!(judge(&observations, &rules, None).toolchain.confidence > 0.0);
}

#[test]
fn a_small_plain_repository_costs_a_handful_of_calls() {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q"]);
    fs::write(directory.path().join("notes.txt"), "a\n").unwrap();
    git(directory.path(), &["add", "."]);
    let rules = RuleSet::builtin().unwrap();
    let access = Access::default();
    let profile = scan(directory.path(), &access).unwrap();
    let before = access.count().calls;
    let observations = observe(&profile, &on_a_drive(&profile.facts), &rules, &access);
    let own = access.count().calls - before;
    assert!(own <= 12, "{own} calls: {:?}", observations.seen.texts.keys());
}

#[test]
fn the_index_of_a_linux_git_settles_a_project_of_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q"]);
    fs::write(directory.path().join("go.mod"), "module a\n").unwrap();
    git(directory.path(), &["add", "."]);
    let rules = RuleSet::builtin().unwrap();
    let access = Access::default();
    let profile = scan(directory.path(), &access).unwrap();
    let observations = observe(&profile, &on_a_drive(&profile.facts), &rules, &access);
    let judgement = judge(&observations, &rules, None);
    assert_eq!(judgement.committed.primary, Toolchain::Either);
    assert_eq!(judgement.toolchain.primary, Toolchain::Linux);
    let asked = judge(&observations, &rules, Some(Toolchain::Windows));
    assert_eq!(asked.toolchain.primary, Toolchain::Windows);
    assert_eq!(asked.toolchain.overridden_by.as_deref(), Some("--primary"));
}

#[test]
fn an_added_rule_decides_a_repository_that_it_is_made_for() {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q"]);
    fs::write(directory.path().join("team.cfg"), "a\n").unwrap();
    git(directory.path(), &["add", "."]);
    let added = tempfile::tempdir().unwrap();
    fs::write(added.path().join("team.yaml"), RULE).unwrap();
    let rules = RuleSet::load(&[added.path().to_owned()]).unwrap();
    let access = Access::default();
    let profile = scan(directory.path(), &access).unwrap();
    let observations = observe(&profile, &on_a_drive(&profile.facts), &rules, &access);
    let judgement = judge(&observations, &rules, None);
    assert_eq!(judgement.toolchain.primary, Toolchain::Windows);
    assert!(judgement.evidence.iter().any(|evidence| evidence.rule == "team-rule" && evidence.matched == "team.cfg"));
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q"]);
    let secret = directory.path().join("outside.json");
    fs::write(&secret, "{ \"os\": [\"win32\"] }").unwrap();
    fs::write(directory.path().join("package.json"), "{}\n").unwrap();
    git(directory.path(), &["add", "package.json"]);
    fs::remove_file(directory.path().join("package.json")).unwrap();
    std::os::unix::fs::symlink(&secret, directory.path().join("package.json")).unwrap();
    let rules = RuleSet::builtin().unwrap();
    let access = Access::default();
    let profile = scan(directory.path(), &access).unwrap();
    let observations = observe(&profile, &on_a_drive(&profile.facts), &rules, &access);
    assert!(judge(&observations, &rules, None).evidence.iter().all(|evidence| evidence.rule != "npm-os-win32"));
}
