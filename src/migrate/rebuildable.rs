//! Ignored directories that a tool makes again, so that they need not be copied.

use std::ffi::OsStr;

use globset::{Glob, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::rules::kinds::RebuildableRule;
use crate::rules::words::PathGlob;

/// A rule that names a directory and how to make it again.
#[derive(Debug, Clone)]
pub struct Rebuildable {
    /// Stable name of the rule.
    pub id: String,
    /// Pattern of the directory's own name.
    pub directory: GlobMatcher,
    /// Patterns of files of which one must stand beside the directory; none means that the name says enough.
    pub beside: Vec<GlobMatcher>,
    /// Commands that make it again, run where the directory stood, with the name that must be beside it.
    pub restore: Vec<(String, Option<GlobMatcher>)>,
}

/// A directory that is not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftOut {
    /// Where, relative to the repository.
    pub path: String,
    /// Id of the rule that named it.
    pub rule: String,
    /// The command that makes it again.
    pub restore: String,
    /// The path's bytes, for the copy itself.
    #[serde(skip)]
    pub raw: std::path::PathBuf,
}

impl Rebuildable {
    /// Compiles the rules of a rule set, one for each directory that they name.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when a pattern is no valid glob, which loading the rules rules out.
    pub fn of_rules(rules: &[RebuildableRule]) -> Result<Vec<Self>, Error> {
        let mut compiled = Vec::new();
        for rule in rules {
            let beside: Vec<&str> = rule.beside.iter().map(PathGlob::as_str).collect();
            let restore: Vec<(&str, Option<&str>)> =
                rule.restore.iter().map(|one| (one.run.as_str(), one.when.as_ref().map(PathGlob::as_str))).collect();
            for directory in &rule.directories {
                compiled.push(Self::new(rule.id.as_str(), directory, &beside, &restore)?);
            }
        }
        Ok(compiled)
    }

    /// Makes a rule out of patterns.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when a pattern is no valid glob.
    pub fn new(id: &str, directory: &str, beside: &[&str], restore: &[(&str, Option<&str>)]) -> Result<Self, Error> {
        let glob = |pattern: &str| {
            Glob::new(pattern).map(|glob| glob.compile_matcher()).map_err(|error| {
                Error::refused(
                    format!("rule `{id}` holds an invalid pattern: {error}"),
                    "correct the rule file, then check it with `rehome rules check`",
                )
            })
        };
        Ok(Self {
            id: id.to_owned(),
            directory: glob(directory)?,
            beside: beside.iter().map(|pattern| glob(pattern)).collect::<Result<_, _>>()?,
            restore: restore
                .iter()
                .map(|(command, when)| Ok(((*command).to_owned(), when.map(glob).transpose()?)))
                .collect::<Result<_, Error>>()?,
        })
    }

    /// Returns the command that makes the directory again, given the names beside it.
    #[must_use]
    pub fn command(&self, beside: &[impl AsRef<OsStr>]) -> String {
        let applies = |when: &Option<GlobMatcher>| {
            when.as_ref().is_none_or(|glob| beside.iter().any(|name| glob.is_match(name.as_ref())))
        };
        self.restore.iter().find(|(_, when)| applies(when)).map(|(command, _)| command.clone()).unwrap_or_default()
    }

    /// Returns whether the rule names this directory, given the names beside it.
    #[must_use]
    pub fn names(&self, directory: &OsStr, beside: &[impl AsRef<OsStr>]) -> bool {
        self.directory.is_match(directory)
            && (self.beside.is_empty()
                || beside.iter().any(|name| self.beside.iter().any(|glob| glob.is_match(name.as_ref()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NPM: [(&str, Option<&str>); 2] = [("npm ci", Some("package-lock.json")), ("npm install", None)];

    #[test]
    fn the_restore_command_depends_on_what_is_beside_the_directory() {
        let rule = Rebuildable::new("node-modules", "node_modules", &["package.json"], &NPM).unwrap();
        assert_eq!(rule.command(&["package.json", "package-lock.json"]), "npm ci");
        assert_eq!(rule.command(&["package.json"]), "npm install");
    }

    #[test]
    fn the_built_in_rules_are_valid_and_know_the_usual_directories() {
        let rules = Rebuildable::of_rules(crate::rules::RuleSet::builtin().unwrap().rebuildable()).unwrap();
        for (directory, beside) in [("node_modules", "package.json"), ("target", "Cargo.toml"), (".venv", "uv.lock")] {
            let rule = rules.iter().find(|rule| rule.names(OsStr::new(directory), &[beside]));
            assert!(rule.is_some_and(|rule| !rule.command(&[beside]).is_empty()), "{directory}");
        }
    }

    #[test]
    fn a_directory_counts_only_beside_the_file_that_rebuilds_it() {
        let rule = Rebuildable::new("node-modules", "node_modules", &["package.json"], &NPM).unwrap();
        assert!(rule.names(OsStr::new("node_modules"), &["package.json", "src"]));
        assert!(!rule.names(OsStr::new("node_modules"), &["src"]));
        assert!(!rule.names(OsStr::new("modules"), &["package.json"]));
    }
}
