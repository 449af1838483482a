//! `rehome survey` as a user runs it.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/schema.rs"]
mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rehome::report::survey::Finding;
use tempfile::TempDir;

/// Two good repositories, one whose index is broken, and one that only a tool could have made.
struct Projects {
    root: TempDir,
}

impl Projects {
    fn new() -> Self {
        let projects = Self { root: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        for name in ["one", "group/two", "broken", "one/node_modules/inner"] {
            let repository = projects.src().join(name);
            fs::create_dir_all(&repository).unwrap();
            fs::write(repository.join("Makefile"), "all:\n\ttrue\n").unwrap();
            for arguments in [&["init", "--quiet"][..], &["add", "Makefile"]] {
                let status = Command::new("git").current_dir(&repository).args(arguments).status().unwrap();
                assert!(status.success());
            }
        }
        fs::write(projects.src().join("broken/.git/index"), "no index").unwrap();
        projects
    }

    fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    fn src(&self) -> PathBuf {
        self.path().join("src")
    }

    fn survey(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rehome"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path());
        command.current_dir(self.path()).args(["survey"]).args(arguments).output().unwrap()
    }
}

fn names(findings: &[Finding], projects: &Projects) -> Vec<String> {
    let name = |finding: &Finding| Path::new(&finding.path).strip_prefix(projects.src()).unwrap().display().to_string();
    findings.iter().map(name).collect()
}

#[test]
fn each_repository_is_one_line_of_json_with_a_valid_report() {
    let projects = Projects::new();
    let output = projects.survey(&["src", "--format", "json", "--budget", "30s"]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    let text = String::from_utf8(output.stdout).unwrap();
    let findings: Vec<Finding> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(names(&findings, &projects), ["broken", "group/two", "one"]);
    for finding in &findings {
        match &finding.report {
            Some(report) => schema::assert_valid_report(&serde_json::to_value(report).unwrap()),
            None => assert!(finding.path.ends_with("broken"), "{:?}", finding.error),
        }
    }
    assert!(findings[0].error.as_ref().unwrap().contains("index"), "{:?}", findings[0].error);
}

#[test]
fn the_table_names_every_repository_and_the_one_that_failed() {
    let projects = Projects::new();
    let output = projects.survey(&["src", "src/one", "--budget", "30s"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("3 repositories below "), "{text}");
    for name in ["one", "group/two", "broken"] {
        let line_end = format!("{}\n", projects.src().join(name).display());
        assert_eq!(text.matches(&line_end).count(), 1, "{name}: {text}");
    }
    assert!(text.contains("failed"), "{text}");
}

#[test]
fn time_that_is_over_leaves_repositories_out_and_says_so() {
    let projects = Projects::new();
    let output = projects.survey(&["src", "--budget", "500ms"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("3 repositories were found and not measured"), "{text}");
}

#[test]
fn a_directory_that_is_not_there_is_a_failure() {
    let projects = Projects::new();
    let output = projects.survey(&["no/such/place"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no/such/place"));
}
