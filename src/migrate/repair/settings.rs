//! Settings that describe the filesystem, in the configuration of every git dir of the copy.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::migrate::fsys::Kind;
use crate::migrate::git::first_line;
use crate::migrate::inventory::Inventory;
use crate::migrate::repair::{Repair, Repairer};
use crate::scan::access::Access;
use crate::scan::config;

impl Repairer<'_> {
    /// Sets what git notes about a filesystem when it makes a repository, as it would be noted on the new one.
    pub(in crate::migrate) fn settings(&mut self, inventory: &Inventory) -> Result<(), Error> {
        let mut changed: Vec<(String, Vec<std::path::PathBuf>)> = Vec::new();
        for git_dir in git_dirs(inventory) {
            for file in ["config", "config.worktree"] {
                let path = git_dir.join(file);
                for (key, value) in self.wanted_settings(&git_dir, &path)? {
                    self.announce([path.as_path()])?;
                    self.edit(&path, key, value)?;
                    let say = match value {
                        Some(value) => format!("`{key}` set to `{value}`"),
                        None => format!("`{key}` removed"),
                    };
                    match changed.iter_mut().find(|(known, _)| *known == say) {
                        Some((_, paths)) => paths.push(path.clone()),
                        None => changed.push((say, vec![path.clone()])),
                    }
                }
            }
        }
        for (say, paths) in changed {
            self.report(Repair::new("settings", say, paths));
        }
        Ok(())
    }

    /// Returns the keys of one file that have to change, with their new value.
    fn wanted_settings(&self, git_dir: &Path, path: &Path) -> Result<Vec<(&'static str, Option<&'static str>)>, Error> {
        // A link may lead out of the copy, and into the source: what it names is not ours to change.
        if !self.tree().join(path).symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Ok(Vec::new());
        }
        let own = own_file(&self.tree().join(path))?;
        let is_main_file = path.file_name().is_some_and(|name| name == "config");
        let get = |key: &str| config::boolean(&own, key);
        let mut wanted = Vec::new();
        let word = |flag: bool| Some(if flag { "true" } else { "false" });
        let side = self.new_side;
        let modes = get("core.fileMode");
        if modes.is_some_and(|value| value != side.modes) || (modes.is_none() && is_main_file && !side.modes) {
            wanted.push(("core.fileMode", word(side.modes)));
        }
        let case = get("core.ignoreCase");
        if case.unwrap_or(false) != side.ignores_case && (case.is_some() || is_main_file) {
            wanted.push(("core.ignoreCase", word(side.ignores_case)));
        }
        let links = get("core.symlinks");
        if links.unwrap_or(true) != side.symlinks && (links.is_some() || is_main_file) {
            wanted.push(("core.symlinks", word(side.symlinks)));
        }
        if get("core.precomposeUnicode") == Some(true) && !cfg!(target_os = "macos") {
            wanted.push(("core.precomposeUnicode", None));
        }
        if self.names_the_source(git_dir, &own) {
            wanted.push(("core.worktree", None));
        }
        Ok(wanted)
    }

    /// `core.worktree` of the main git dir, where it names the source itself, is what git assumes anyway.
    fn names_the_source(&self, git_dir: &Path, own: &gix::config::File) -> bool {
        let value = own.string("core.worktree").map(|value| value.to_string());
        let rest = value.and_then(|value| self.spellings.strip(&value));
        git_dir == Path::new(".git") && rest.is_some_and(|rest| rest.as_os_str().is_empty())
    }

    /// Lets git change one key of one file; no repository's configuration is read for that.
    pub(super) fn edit(&self, path: &Path, key: &str, value: Option<&str>) -> Result<(), Error> {
        let file = self.tree().join(path);
        let mut command = Command::new(self.git_program);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        command.current_dir("/").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.arg("config").arg("--file").arg(&file);
        match value {
            Some(value) => command.args(["--replace-all", key, value]),
            None => command.args(["--unset-all", key]),
        };
        let output =
            command.stdin(Stdio::null()).output().map_err(|source| Error::io("run", self.git_program, source))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::refused(
            format!("cannot set `{key}` in `{}`: {}", crate::error::printable(&file), first_line(&output.stderr)),
            "the source is as it was; correct the file there and run the same command again",
        ))
    }
}

/// Parses one file alone, without what it includes.
pub(super) fn own_file(path: &Path) -> Result<gix::config::File, Error> {
    let directory = path.parent().unwrap_or(path);
    match path.file_name() {
        Some(name) if name == "config" => Ok(config::read(directory, directory, &Access::default())?.own),
        _ => gix::config::File::from_path_no_includes(path.to_path_buf(), gix::config::Source::Worktree).map_err(
            |error| {
                Error::refused(
                    format!("`{}` is no valid git configuration: {error}", crate::error::printable(path)),
                    "git cannot use this repository either; mend the file in the source",
                )
            },
        ),
    }
}

/// Returns every directory of the tree that is a git dir: it holds `HEAD`, `config` and `objects`.
pub(super) fn git_dirs(inventory: &Inventory) -> Vec<std::path::PathBuf> {
    let kinds = inventory.by_path();
    let is = |path: &Path, kind| kinds.get(path).is_some_and(|entry| entry.stat.kind == kind);
    let heads = inventory.entries.iter().filter(|entry| entry.path.file_name().is_some_and(|name| name == "HEAD"));
    heads
        .filter_map(|entry| entry.path.parent())
        .filter(|directory| {
            is(&directory.join("objects"), Kind::Directory) && is(&directory.join("config"), Kind::File)
        })
        .map(Path::to_path_buf)
        .collect()
}
