//! Reads rule files strictly: every mistake is an error with file, line, column and the nearest valid name.

mod builder;
mod problem;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

pub use self::builder::assemble;
pub use self::problem::Problem;
use self::problem::parse;
use super::{RuleSet, builtin};
use crate::error::{Error, printable};
use crate::facts::Toolchain;

/// Kinds of rule files; `filesystem` belongs to the scan and is only passed over here.
pub const KINDS: [&str; 6] = ["evidence", "filesystem", "hazard", "judging", "rebuildable", "verdict"];
/// Size that a rule file may have; the largest built-in one is a tenth of it.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Name of the file in a repository that may set the toolchain and mute the advice.
pub const REPO_FILE: &str = ".rehome.yaml";
/// Size that this file may have; two lines are enough for all it can say.
pub const REPO_FILE_BYTES: usize = 4096;

/// A rule file as text.
#[derive(Debug, Clone)]
pub struct RuleFile {
    /// Its name for messages.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Where it came from; a rule of a later layer replaces one of the same id.
    pub layer: usize,
}

/// What a repository's own file may say; it is data and never adds rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepoSettings {
    /// The toolchain that works on it: `linux`, `windows` or `either`.
    #[serde(default)]
    pub primary: Option<RepoPrimary>,
    /// Whether nothing shall be said about it.
    #[serde(default)]
    pub mute: bool,
}

/// The toolchains that a repository's own file may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepoPrimary {
    /// Programs of the Linux side.
    Linux,
    /// Native Windows programs.
    Windows,
    /// Works as well on one side as on the other.
    Either,
}

impl From<RepoPrimary> for Toolchain {
    fn from(primary: RepoPrimary) -> Self {
        match primary {
            RepoPrimary::Linux => Self::Linux,
            RepoPrimary::Windows => Self::Windows,
            RepoPrimary::Either => Self::Either,
        }
    }
}

impl RuleSet {
    /// Returns the built-in rules.
    ///
    /// # Errors
    ///
    /// Never with the rules of a release, which a test loads.
    pub fn builtin() -> Result<Self, Error> {
        assemble(&builtin::files()).map_err(|problems| failure(&problems))
    }

    /// Loads the built-in rules, those of the user's configuration directory, and those of the given directories; of rules
    /// with the same id, the later one counts.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with the first mistake, or [`Error::Io`] when a directory cannot be read.
    pub fn load(dirs: &[PathBuf]) -> Result<Self, Error> {
        assemble(&files(dirs)?).map_err(|problems| failure(&problems))
    }
}

/// Returns every rule file of a run: the built-in ones, the user's own, and those of the given directories.
///
/// # Errors
///
/// [`Error::Io`] or [`Error::Refused`] when a directory or file cannot be read.
pub fn files(dirs: &[PathBuf]) -> Result<Vec<RuleFile>, Error> {
    let mut files = builtin::files();
    let user = user_rules_dir().filter(|dir| dir.is_dir());
    for (layer, dir) in user.iter().chain(dirs).enumerate() {
        read_dir(dir, layer + 1, &mut files)?;
    }
    Ok(files)
}

/// Returns where a user's own rules are: `rehome/rules` below `$XDG_CONFIG_HOME`, `~/.config` when that is not set.
#[must_use]
pub fn user_rules_dir() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("rehome").join("rules"))
}

fn failure(problems: &[Problem]) -> Error {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    let file = problems.first().map(|problem| problem.file.clone()).unwrap_or_default();
    Error::refused(
        format!("cannot use a rule file: {first}"),
        format!("mend it, and run `rehome rules check {}` to list every problem", shell_words::quote(&file)),
    )
}

/// Reads every `*.yaml` and `*.yml` below a directory, in the order of their names.
pub(super) fn read_dir(dir: &Path, layer: usize, files: &mut Vec<RuleFile>) -> Result<(), Error> {
    /// Depth of folders that is followed; rules are kept in folders by kind.
    const MAX_DEPTH: usize = 4;
    let walk = ignore::WalkBuilder::new(dir)
        .standard_filters(false)
        .max_depth(Some(MAX_DEPTH))
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build();
    for entry in walk {
        let entry = entry.map_err(|error| {
            Error::refused(
                format!("cannot read rules in `{}`: {error}", printable(dir)),
                "check the directory that `--rules` names",
            )
        })?;
        let path = entry.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && entry.file_type().is_some_and(|kind| kind.is_file()) {
            files.push(read_file(path, layer)?);
        }
    }
    Ok(())
}

/// Reads one rule file.
///
/// # Errors
///
/// [`Error::Io`] when it cannot be read, [`Error::Refused`] when it is too large or no text.
pub fn read_file(path: &Path, layer: usize) -> Result<RuleFile, Error> {
    let size = std::fs::metadata(path).map_err(|error| Error::io("read", path, error))?.len();
    if size > MAX_FILE_BYTES {
        return Err(Error::refused(
            format!("the rule file `{}` has {size} bytes, more than {MAX_FILE_BYTES}", printable(path)),
            "split it, or check that it is a rule file",
        ));
    }
    let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    Ok(RuleFile { name: printable(path), text, layer })
}

/// Parses the repository's own file.
///
/// # Errors
///
/// The mistake in it.
pub fn repo_settings(text: &str) -> Result<RepoSettings, Problem> {
    if text.trim().is_empty() {
        return Ok(RepoSettings::default());
    }
    parse(&RuleFile { name: REPO_FILE.to_owned(), text: text.to_owned(), layer: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "kind: evidence\nrules:\n  - id: one\n    toolchain: windows\n    tier: build\n    strength: weak\n    \
                        when: { tracked: [\"*.sln\"] }\n    because: b\n    source: s\n    examples: { fires: [], ignores: [] }\n";

    fn problems(text: &str) -> String {
        let file = RuleFile { name: "team/a.yaml".to_owned(), text: text.to_owned(), layer: 0 };
        match assemble(&[file]) {
            Ok(_) => String::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        }
    }

    #[test]
    fn a_right_file_loads() {
        assert_eq!(problems(RULE), "");
    }

    #[test]
    fn each_mistake_has_its_place_and_the_nearest_name() {
        let cases = [
            (RULE.replace("strength", "stength"), "team/a.yaml:6:5: ", "did you mean `strength`?"),
            (RULE.replace("tier: build", "tier: bild"), "team/a.yaml:5:11: ", "did you mean `build`?"),
            (RULE.replace("*.sln", "[x"), "team/a.yaml:7:23: ", "bad glob `[x`"),
            (
                RULE.replace("tracked: [\"*.sln\"]", "trackd: [\"*.sln\"]"),
                "team/a.yaml:7:13: ",
                "did you mean `tracked`?",
            ),
            (
                RULE.replace("tracked: [\"*.sln\"]", "fact: { name: repo.traked_files, is: 1 }"),
                "team/a.yaml:7:27: ",
                "did you mean `repo.tracked_files`?",
            ),
            (
                RULE.replace("tracked: [\"*.sln\"]", "contains: { files: [a], pattern: '(' }"),
                "team/a.yaml:7:",
                "bad pattern `(`",
            ),
            (
                RULE.replace("tracked: [\"*.sln\"]", "value: { of: dotnet.framework }"),
                "team/a.yaml:7:",
                "did you mean `dotnet.frameworks`?",
            ),
            (RULE.replace("kind: evidence", "kind: evidense"), "team/a.yaml:1:1: ", "did you mean `evidence`?"),
            (RULE.replace("id: one", "id: One"), "team/a.yaml:3:9: ", "bad id `One`"),
        ];
        for (text, place, what) in cases {
            let found = problems(&text);
            assert!(found.starts_with(place) && found.contains(what), "{found}\nwanted {place}...{what}");
        }
    }

    #[test]
    fn an_id_twice_in_one_place_is_a_mistake_and_in_a_later_layer_an_override() {
        let second = RULE.split_once("rules:\n").unwrap().1;
        let found = problems(&format!("{RULE}{second}"));
        assert!(found.starts_with("team/a.yaml:11:1: ") && found.contains("defined twice"), "{found}");
        let base = RuleFile { name: "base".to_owned(), text: RULE.to_owned(), layer: 0 };
        let text = RULE.replace("toolchain: windows", "toolchain: linux");
        let over = RuleFile { name: "over".to_owned(), text, layer: 1 };
        let rules = assemble(&[base, over]).unwrap();
        assert_eq!(rules.evidence.len(), 1);
        assert_eq!(rules.evidence[0].toolchain, Toolchain::Linux);
        assert_eq!(rules.origins[&("evidence", "one".to_owned())], "over");
    }

    #[test]
    fn an_unknown_reference_is_found_at_its_line() {
        let found = problems(&RULE.replace("    because", "    cancels: [tow]\n    because"));
        assert!(found.starts_with("team/a.yaml:8:1: ") && found.contains("unknown rule `tow`"), "{found}");
    }

    #[test]
    fn a_repositorys_own_file_may_say_two_things_and_no_more() {
        assert_eq!(
            repo_settings("primary: windows\nmute: true\n").unwrap(),
            RepoSettings { primary: Some(RepoPrimary::Windows), mute: true }
        );
        assert_eq!(repo_settings("").unwrap(), RepoSettings::default());
        assert!(repo_settings("rules: []\n").unwrap_err().what.contains("unknown field `rules`"));
        assert!(repo_settings("primary: mixed\n").is_err());
    }
}
