//! A home directory with one repository in it, measured or not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rehome::report::Report;
use rehome::scan::filesystem::System;
use rehome::scan::filesystem::rules::FilesystemRuleSet;
use rehome::state::Store;

/// A home directory with a repository in it, and no configuration from outside.
pub(crate) struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self { dir: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        fs::create_dir_all(home.repository().join("web/app")).unwrap();
        fs::write(home.repository().join("web/app/main.js"), "1\n").unwrap();
        home.git(&["init", "--quiet"]);
        home.git(&["add", "."]);
        home
    }

    /// A home in which the repository was measured, with the advice to move.
    pub(crate) fn measured() -> Self {
        let home = Self::new();
        home.store().save(&home.report()).unwrap();
        home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.path().join("Shop")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(self.state().join("rehome"))
    }

    pub(crate) fn report(&self) -> Report {
        let mut report: Report = serde_json::from_str(include_str!("../reports/moving.json")).unwrap();
        let system = System::live(FilesystemRuleSet::builtin().unwrap()).unwrap();
        report.facts.site = system.locate(&self.repository()).unwrap().site;
        let git_dir = self.repository().join(".git");
        let repo = report.facts.repo.as_mut().unwrap();
        repo.index_bytes = Some(fs::metadata(git_dir.join("index")).unwrap().len());
        repo.worktree = Some(self.repository().to_str().unwrap().to_owned());
        git_dir.to_str().unwrap().clone_into(&mut repo.git_dir);
        report
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(self.repository()).env("HOME", self.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(command.args(arguments).status().unwrap().success(), "git {arguments:?}");
    }

    pub(crate) fn command(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rehome"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path());
        command.env("XDG_STATE_HOME", self.state()).env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.current_dir(directory).args(arguments);
        command
    }

    /// What a prompt would print; anything but success and silence on standard error is a failure of the test.
    pub(crate) fn prompt(&self, directory: &Path, arguments: &[&str]) -> String {
        quiet_success(self.command(directory, arguments).output().unwrap())
    }

    pub(crate) fn hint(&self) -> String {
        self.prompt(&self.repository(), &["--cached", "--format", "oneline"])
    }
}

/// Returns what was printed by a program that succeeded and said nothing on standard error.
pub(crate) fn quiet_success(output: Output) -> String {
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}
