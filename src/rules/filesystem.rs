//! The filesystem rules of a run: the built-in ones, and before them those of the user.

use std::path::PathBuf;

use serde::Deserialize;

use super::RuleSet;
use super::load::{RuleFile, read_dir, user_rules_dir};
use crate::error::Error;
use crate::scan::filesystem::rules::FilesystemRuleSet;

/// What every rule file says first; one that does not is reported by whoever loads all kinds.
#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

impl RuleSet {
    /// Returns the rules that give a mount its class: the files of later directories are tried before earlier ones, and
    /// all of them before the built-in rules; one with the id of an earlier rule replaces it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a mistake in a file of kind `filesystem`.
    pub fn filesystem_rules(&self) -> Result<FilesystemRuleSet, Error> {
        with_files(&self.filesystem)
    }
}

/// Loads the filesystem rules alone, as [`RuleSet::load`] and [`RuleSet::filesystem_rules`] would, in a fraction of the
/// time.
///
/// # Errors
///
/// [`Error::Refused`] for a mistake in a file of kind `filesystem`, [`Error::Io`] when a directory cannot be read.
pub fn load(dirs: &[PathBuf]) -> Result<FilesystemRuleSet, Error> {
    let mut files = Vec::new();
    let user = user_rules_dir().filter(|dir| dir.is_dir());
    for (layer, dir) in user.iter().chain(dirs).enumerate() {
        read_dir(dir, layer + 1, &mut files)?;
    }
    files.retain(|file| serde_yaml::from_str::<KindOnly>(&file.text).is_ok_and(|file| file.kind == "filesystem"));
    with_files(&files)
}

fn with_files(files: &[RuleFile]) -> Result<FilesystemRuleSet, Error> {
    let mut rules = FilesystemRuleSet::builtin()?;
    for file in files {
        rules.prepend(FilesystemRuleSet::from_yaml(&file.name, &file.text)?);
    }
    Ok(rules)
}
