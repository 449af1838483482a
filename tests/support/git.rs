//! Git on a fixture, without the settings of whoever runs the tests.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Age of the files of a fixture: older than its index, so that none of them is racy.
const AGE: Duration = Duration::from_secs(3600);

/// Runs git in a directory, where it has to succeed, and returns what it prints.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Makes a commit of everything below `root`, a repository from now on, and makes the tracked files old.
pub(crate) fn commit_all_of_old(root: &Path) {
    git(root, &["init", "-q"]);
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "x"]);
    let old = SystemTime::now() - AGE;
    for name in String::from_utf8(git(root, &["ls-files", "-z"])).unwrap().split('\0').filter(|n| !n.is_empty()) {
        fs::File::options().write(true).open(root.join(name)).unwrap().set_modified(old).unwrap();
    }
}
