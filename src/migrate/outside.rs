//! What outside of the repository still points to its old place; a bounded search in the home directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::printable;
use crate::migrate::partial;
use crate::migrate::plan::OutsidePointer;
use crate::migrate::spelling::{Spellings, normalized};

/// Directory levels below the home directory that are looked at: `~/work/client/project/.idea` is the deepest usual.
const MAX_DEPTH: usize = 5;
/// Names that are looked at before the search stops; a home directory without caches has some thousand.
const MAX_NAMES: usize = 50_000;
/// The search is a courtesy and must not be felt.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Files that point somewhere are small; a larger one is a database.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Directories that hold no pointers written by people or editors, and many names.
const SKIPPED: &[&str] = &[
    ".cache",
    ".git",
    ".cargo",
    ".rustup",
    ".npm",
    ".nvm",
    ".pyenv",
    ".local",
    "node_modules",
    "target",
    ".vscode-server",
    ".m2",
    ".gradle",
    "go",
    ".venv",
    "venv",
    "__pycache__",
];
/// Shell start-up files, by their path below the home directory.
const SHELL_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".config/fish/config.fish",
];
/// The user's git configuration, by its path below the home directory.
const GIT_FILES: &[&str] = &[".gitconfig", ".config/git/config"];

struct Search<'a> {
    spellings: &'a Spellings,
    source: &'a Path,
    destination: &'a Path,
    begun: Instant,
    names: usize,
    found: Vec<OutsidePointer>,
}

/// Looks for pointers to `source` in the home directory and beside the source; what lies in either copy is left out.
pub(super) fn search(
    home: Option<&Path>,
    source: &Path,
    destination: &Path,
    spellings: &Spellings,
) -> Vec<OutsidePointer> {
    let mut search = Search { spellings, source, destination, begun: Instant::now(), names: 0, found: Vec::new() };
    if let Some(home) = home {
        for name in SHELL_FILES {
            search.text(&home.join(name), "shell start-up file");
        }
        for name in GIT_FILES {
            search.text(&home.join(name), "git configuration");
        }
        search.directory(home, MAX_DEPTH);
    }
    if let Some(parent) = source.parent().filter(|parent| Some(*parent) != home) {
        search.directory(parent, 1);
    }
    search.found.dedup();
    search.found
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.names >= MAX_NAMES || self.begun.elapsed() >= MAX_TIME
    }

    fn directory(&mut self, directory: &Path, depth: usize) {
        // The partial directory beside the destination links to the source's git dir, and goes away with the move.
        let own = [self.source, self.destination, &partial::place(self.destination)];
        let is_own = own.iter().any(|own| directory.starts_with(own));
        if is_own || self.is_over() {
            return;
        }
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        let mut below = Vec::new();
        for entry in entries.flatten() {
            self.names += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_symlink() {
                self.link(&path);
            } else if kind.is_file() {
                self.file(&path);
            } else if kind.is_dir() && !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                below.push(path);
            }
            if self.is_over() {
                return;
            }
        }
        if depth > 1 {
            for path in below {
                self.directory(&path, depth - 1);
            }
        }
    }

    fn link(&mut self, path: &Path) {
        let Ok(target) = std::fs::read_link(path) else { return };
        let base = path.parent().unwrap_or(Path::new("/"));
        let Some(target) = normalized(&base.join(target)) else { return };
        if let Some(rest) = self.spellings.strip(&target.to_string_lossy()) {
            let new = self.new_place(&rest);
            let fix = format!("ln -sfn {} {}", quoted(&new), quoted(path));
            self.report(path, "link", fix);
        }
    }

    fn file(&mut self, path: &Path) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_in = |directory: &str| path.parent().is_some_and(|parent| parent.ends_with(directory));
        if name.ends_with(".code-workspace") {
            self.text(path, "editor workspace");
        } else if name == ".envrc" {
            self.text(path, "direnv file");
        } else if is_in(".idea") {
            self.text(path, "editor project");
        } else if name == ".git" {
            self.text(path, "worktree or submodule");
        }
    }

    fn text(&mut self, path: &Path, kind: &str) {
        let is_small = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_FILE_BYTES);
        if !is_small {
            return;
        }
        let text = std::fs::read(path).unwrap_or_default();
        if self.spellings.is_mentioned(&String::from_utf8_lossy(&text)) {
            self.report(path, kind, "replace the old path in it".to_owned());
        }
    }

    fn report(&mut self, path: &Path, kind: &str, fix: String) {
        self.found.push(OutsidePointer { path: printable(path), kind: kind.to_owned(), fix });
    }

    fn new_place(&self, rest: &Path) -> PathBuf {
        if rest.as_os_str().is_empty() { self.destination.to_path_buf() } else { self.destination.join(rest) }
    }
}

fn quoted(path: &Path) -> String {
    shell_words::quote(&printable(path)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_files_that_hold_the_old_path_are_found_and_others_are_not() {
        let home = tempfile::tempdir().unwrap();
        let source = home.path().join("src/shop");
        let destination = home.path().join("new/shop");
        std::fs::create_dir_all(source.join("sub")).unwrap();
        std::os::unix::fs::symlink("src/shop/sub", home.path().join("short")).unwrap();
        std::os::unix::fs::symlink("/usr", home.path().join("other")).unwrap();
        std::fs::write(home.path().join(".bashrc"), format!("cd {}\n", source.display())).unwrap();
        std::fs::write(home.path().join(".zshrc"), format!("cd {}2\n", source.display())).unwrap();
        std::fs::write(home.path().join("a.code-workspace"), format!("{{\"path\": \"{}\"}}", source.display()))
            .unwrap();
        // The move's own work, which it removes itself.
        let own = partial::place(&destination).join("work");
        std::fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(&source, own.join("refs")).unwrap();
        let spellings = Spellings::of(&source, None);
        let mut found = search(Some(home.path()), &source, &destination, &spellings);
        found.sort_by(|a, b| a.kind.cmp(&b.kind));
        let kinds: Vec<&str> = found.iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(kinds, ["editor workspace", "link", "shell start-up file"]);
        assert!(found[1].fix.contains("new/shop/sub"), "{}", found[1].fix);
    }
}
