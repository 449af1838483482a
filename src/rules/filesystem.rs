//! The filesystem rules of a run: the built-in ones, and before them those of the user.

use super::RuleSet;
use crate::error::Error;
use crate::scan::filesystem::rules::FilesystemRuleSet;

impl RuleSet {
    /// Returns the rules that give a mount its class: the files of later directories are tried before earlier ones, and
    /// all of them before the built-in rules; one with the id of an earlier rule replaces it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a mistake in a file of kind `filesystem`.
    pub fn filesystem_rules(&self) -> Result<FilesystemRuleSet, Error> {
        let mut rules = FilesystemRuleSet::builtin()?;
        for file in &self.filesystem {
            rules.prepend(FilesystemRuleSet::from_yaml(&file.name, &file.text)?);
        }
        Ok(rules)
    }
}
