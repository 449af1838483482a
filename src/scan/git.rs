//! The git program that the user runs.

use std::path::PathBuf;
use std::process::Command;

use crate::facts::GitFacts;

/// Finds `git` on `PATH` and asks for its version; `None` when there is none that answers.
///
/// It runs in `/` and without `GIT_*` variables, so that no repository's configuration is read.
#[must_use]
pub fn find() -> Option<GitFacts> {
    let path = search_path("git")?;
    let mut command = Command::new(&path);
    command.arg("version").current_dir("/");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("git version ").unwrap_or(text.trim()).to_owned();
    Some(GitFacts { version, path: path.to_string_lossy().into_owned() })
}

/// Returns the first executable file of that name on `PATH`; relative entries are left out, since what they name
/// depends on the directory that one stands in, and that may be the repository.
fn search_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok() && candidate.is_file())
}
