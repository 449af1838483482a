//! The filesystem rules of a run: the built-in ones, and before them those of the user.

use std::path::PathBuf;

use serde::Deserialize;

use super::load::{RuleFile, read_dir, user_rules_dir};
use crate::error::Error;
use crate::scan::filesystem::rules::FilesystemRuleSet;

/// The word that every rule file begins with; a file without it is reported by whoever loads the other kinds.
#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

/// Loads the built-in filesystem rules, those of the user's configuration directory, and those of the given directories.
///
/// The rules of a later directory are tried before all earlier ones; one with the id of an earlier rule replaces it.
///
/// # Errors
///
/// [`Error::Refused`] for a mistake in such a file, [`Error::Io`] when a directory cannot be read.
pub fn load(dirs: &[PathBuf]) -> Result<FilesystemRuleSet, Error> {
    let mut rules = FilesystemRuleSet::builtin()?;
    let user = user_rules_dir().filter(|dir| dir.is_dir());
    for (layer, dir) in user.iter().chain(dirs).enumerate() {
        let mut files: Vec<RuleFile> = Vec::new();
        read_dir(dir, layer, &mut files)?;
        // From the last file to the first, so that within a directory the first file is tried first.
        for file in files.iter().rev() {
            let kind = serde_yaml::from_str::<KindOnly>(&file.text).map(|file| file.kind);
            if kind.is_ok_and(|kind| kind == "filesystem") {
                rules.prepend(FilesystemRuleSet::from_yaml(&file.name, &file.text)?);
            }
        }
    }
    Ok(rules)
}
