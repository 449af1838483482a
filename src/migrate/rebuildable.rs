//! Ignored directories that a tool makes again, so that they need not be copied.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::printable;
use crate::rules::kinds::RebuildableRule;

/// A directory that is not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Where, relative to the repository.
    pub path: String,
    /// Id of the rule that named it.
    pub rule: String,
    /// The command that makes it again, run beside it; empty when tools do so by themselves.
    pub restore: String,
    /// The path's bytes, for the copy itself.
    #[serde(skip)]
    pub(super) raw: PathBuf,
}

/// Returns the directory as one that is left out, if a rule names it; `beside` are the names in its parent.
///
/// Names that are no text are nobody's build output: such a directory is copied.
pub(super) fn named_by(rules: &[RebuildableRule], path: &Path, beside: &[OsString]) -> Option<LeftOut> {
    let directory = path.to_str()?;
    let beside: Vec<&str> = beside.iter().filter_map(|name| name.to_str()).collect();
    let rule = rules.iter().find(|rule| rule.names(directory, &beside))?;
    Some(LeftOut {
        path: printable(path),
        rule: rule.id.as_str().to_owned(),
        restore: rule.restore_command(&beside).unwrap_or_default().to_owned(),
        raw: path.to_path_buf(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RuleSet;

    #[test]
    fn the_rules_decide_by_what_is_beside_a_directory_and_say_how_to_restore_it() {
        let rules = RuleSet::load(&[]).unwrap();
        let ask = |directory: &str, beside: &[&str]| {
            let beside: Vec<OsString> = beside.iter().map(OsString::from).collect();
            named_by(rules.rebuildable(), Path::new(directory), &beside).map(|left_out| left_out.restore)
        };
        assert_eq!(ask("app/node_modules", &["package.json", "package-lock.json"]).as_deref(), Some("npm ci"));
        assert_eq!(ask("app/node_modules", &["package.json"]).as_deref(), Some("npm install"));
        assert_eq!(ask("node_modules", &["README.md"]), None);
        assert_eq!(ask("src", &["package.json", "Cargo.toml"]), None);
    }
}
