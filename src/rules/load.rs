//! Reads rule files strictly: every mistake is an error with file, line, column and the nearest valid name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::RuleSet;
use super::builtin;
use super::condition::Condition;
use super::kinds::{
    AlternativeRule, EvidenceFile, EvidenceRule, HazardFile, HazardRule, JudgingFile, RebuildableFile, RebuildableRule,
    SettingRule, Threshold, VerdictFile, VerdictRule,
};
use super::names::nearest;
use super::paths::Globs;
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

/// A mistake in a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// Line and column, counted from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// What is wrong, with the nearest valid name where there is one.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(formatter, "{}:{line}:{column}: {}", self.file, self.what),
            None => write!(formatter, "{}: {}", self.file, self.what),
        }
    }
}

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

/// Builds a rule set of files.
///
/// # Errors
///
/// Every mistake that was found; of one file's text only the first.
pub fn assemble(files: &[RuleFile]) -> Result<RuleSet, Vec<Problem>> {
    let mut builder = Builder::default();
    for file in files {
        if let Err(problem) = builder.add(file) {
            builder.problems.push(problem);
        }
    }
    builder.finish(files)
}

#[derive(Default)]
struct Builder {
    evidence: Vec<EvidenceRule>,
    hazards: Vec<HazardRule>,
    rebuildable: Vec<RebuildableRule>,
    verdicts: Vec<VerdictRule>,
    added_verdicts: Vec<VerdictRule>,
    alternatives: Vec<AlternativeRule>,
    settings: Vec<SettingRule>,
    thresholds: Vec<Threshold>,
    judging: Option<JudgingFile>,
    filesystem: Vec<RuleFile>,
    origins: BTreeMap<(&'static str, String), String>,
    layers: BTreeMap<(&'static str, String), usize>,
    problems: Vec<Problem>,
}

/// The part of a rule file that tells how to read the rest.
#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

impl Builder {
    fn add(&mut self, file: &RuleFile) -> Result<(), Problem> {
        let kind = parse::<KindOnly>(file)?.kind;
        match kind.as_str() {
            "evidence" => {
                for rule in parse::<EvidenceFile>(file)?.rules {
                    self.claim("evidence", rule.id.as_str(), file);
                    put(&mut self.evidence, rule, |rule| &rule.id);
                }
            }
            "hazard" => {
                for rule in parse::<HazardFile>(file)?.rules {
                    self.claim("hazard", rule.id.as_str(), file);
                    put(&mut self.hazards, rule, |rule| &rule.id);
                }
            }
            "rebuildable" => {
                for rule in parse::<RebuildableFile>(file)?.rules {
                    self.claim("rebuildable", rule.id.as_str(), file);
                    put(&mut self.rebuildable, rule, |rule| &rule.id);
                }
            }
            "verdict" => self.add_verdicts(file, parse(file)?),
            "judging" => self.add_judging(parse(file)?),
            // The scan has built-in ones of its own.
            "filesystem" if file.layer > 0 => self.filesystem.push(file.clone()),
            "filesystem" => {}
            other => {
                let line = line_of(&file.text, &format!("kind: {other}"));
                return Err(Problem {
                    file: file.name.clone(),
                    place: line.map(|line| (line, 1)),
                    what: format!("unknown kind `{other}`{}", nearest(other, KINDS)),
                });
            }
        }
        Ok(())
    }

    fn add_verdicts(&mut self, file: &RuleFile, verdicts: VerdictFile) {
        for threshold in verdicts.thresholds {
            self.claim("threshold", threshold.id.as_str(), file);
            put(&mut self.thresholds, threshold, |rule| &rule.id);
        }
        for alternative in verdicts.alternatives {
            self.claim("alternative", alternative.id.as_str(), file);
            put(&mut self.alternatives, alternative, |rule| &rule.id);
        }
        for setting in verdicts.settings {
            self.claim("setting", setting.id.as_str(), file);
            put(&mut self.settings, setting, |rule| &rule.id);
        }
        for rule in verdicts.rules {
            self.claim("verdict", rule.id.as_str(), file);
            // The built-in list ends with a rule that always matches, so that added ones have to come before it.
            let is_known = self.verdicts.iter().any(|known| known.id == rule.id);
            let list = if file.layer == 0 || is_known { &mut self.verdicts } else { &mut self.added_verdicts };
            put(list, rule, |rule| &rule.id);
        }
    }

    fn add_judging(&mut self, mut file: JudgingFile) {
        let Some(known) = &mut self.judging else {
            self.judging = Some(file);
            return;
        };
        known.vendor_folders.append(&mut file.vendor_folders);
        known.side_folders.append(&mut file.side_folders);
        known.code.append(&mut file.code);
        known.chores.append(&mut file.chores);
        known.traces = file.traces.or(known.traces);
        for weights in file.weights {
            known.weights.retain(|known| known.tier != weights.tier);
            known.weights.push(weights);
        }
        for plan in file.extractors {
            known.extractors.retain(|known| known.extractor != plan.extractor);
            known.extractors.push(plan);
        }
    }

    /// Notes where a rule is written; two of one id in one layer are a mistake.
    fn claim(&mut self, kind: &'static str, id: &str, file: &RuleFile) {
        let key = (kind, id.to_owned());
        if self.layers.insert(key.clone(), file.layer) == Some(file.layer) {
            let other = self.origins.get(&key).cloned().unwrap_or_default();
            let lines = lines_of(&file.text, &format!("id: {id}"));
            self.problems.push(Problem {
                file: file.name.clone(),
                place: lines.last().map(|line| (*line, 1)),
                what: format!("the {kind} `{id}` is defined twice, also in {other}"),
            });
        }
        self.origins.insert(key, file.name.clone());
    }

    fn finish(mut self, files: &[RuleFile]) -> Result<RuleSet, Vec<Problem>> {
        self.added_verdicts.append(&mut self.verdicts);
        self.verdicts = std::mem::take(&mut self.added_verdicts);
        self.check_references(files);
        self.resolve_thresholds(files);
        let mut tests = 0;
        self.conditions_mut().1.for_each(|condition| condition.number_tests(&mut tests));
        let judging = self.judging.take().unwrap_or_else(|| JudgingFile {
            kind: "judging".to_owned(),
            vendor_folders: Vec::new(),
            side_folders: Vec::new(),
            code: Vec::new(),
            chores: Vec::new(),
            weights: Vec::new(),
            traces: None,
            extractors: Vec::new(),
        });
        let mut globs = Vec::new();
        self.conditions().for_each(|condition| condition.globs(&mut globs));
        for plan in &judging.extractors {
            globs.extend(plan.files.iter().chain(&plan.skip).chain(&plan.first));
        }
        let globs = Globs::new(globs);
        match globs {
            Ok(globs) if self.problems.is_empty() => Ok(RuleSet {
                evidence: self.evidence,
                hazards: self.hazards,
                rebuildable: self.rebuildable,
                verdicts: self.verdicts,
                alternatives: self.alternatives,
                settings: self.settings,
                thresholds: self.thresholds,
                judging,
                filesystem: self.filesystem,
                origins: self.origins,
                globs: globs.with_tests(tests),
            }),
            Ok(_) => Err(self.problems),
            Err(error) => {
                let what = format!("all globs together: {error}");
                self.problems.push(Problem { file: "rules".to_owned(), place: None, what });
                Err(self.problems)
            }
        }
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let evidence = self.evidence.iter().map(|rule| &rule.when);
        let hazards = self.hazards.iter().map(|rule| &rule.when);
        let verdicts = self.verdicts.iter().map(|rule| &rule.when);
        let alternatives = self.alternatives.iter().map(|rule| &rule.when);
        let settings = self.settings.iter().map(|rule| &rule.when);
        evidence.chain(hazards).chain(verdicts).chain(alternatives).chain(settings)
    }

    /// Checks that every id that a rule names is that of a rule.
    fn check_references(&mut self, files: &[RuleFile]) {
        let evidence: BTreeSet<&str> = self.evidence.iter().map(|rule| rule.id.as_str()).collect();
        let alternatives: BTreeSet<&str> = self.alternatives.iter().map(|rule| rule.id.as_str()).collect();
        let hazards: BTreeSet<&str> = self.hazards.iter().map(|rule| rule.id.as_str()).collect();
        let mut problems = Vec::new();
        let mut check = |owner: &str, kind: &'static str, named: &str, what: &str, known: &BTreeSet<&str>| {
            if !known.contains(named) {
                let file = self.origins.get(&(kind, owner.to_owned())).cloned().unwrap_or_default();
                let text = files.iter().find(|it| it.name == file).map(|it| it.text.as_str()).unwrap_or_default();
                let own = line_of(text, &format!("id: {owner}")).unwrap_or(1);
                let below = text.lines().skip(own).position(|line| line.contains(named));
                let line = below.map_or(own, |offset| own + offset + 1);
                problems.push(Problem {
                    file,
                    place: Some((line, 1)),
                    what: format!(
                        "`{owner}` names the unknown {what} `{named}`{}",
                        nearest(named, known.iter().copied())
                    ),
                });
            }
        };
        for rule in &self.evidence {
            rule.cancels.iter().for_each(|id| check(rule.id.as_str(), "evidence", id.as_str(), "rule", &evidence));
        }
        for rule in &self.verdicts {
            let owner = rule.id.as_str();
            rule.alternatives.iter().for_each(|id| check(owner, "verdict", id.as_str(), "alternative", &alternatives));
            rule.when.visit(&mut |condition| {
                condition.hazard.iter().for_each(|id| check(owner, "verdict", id.as_str(), "hazard", &hazards));
            });
        }
        self.problems.append(&mut problems);
    }

    /// Returns every condition for changing, and the list of problems beside it.
    fn conditions_mut(&mut self) -> (&mut Vec<Problem>, impl Iterator<Item = &mut Condition>) {
        let conditions = (self.evidence.iter_mut().map(|rule| &mut rule.when))
            .chain(self.hazards.iter_mut().map(|rule| &mut rule.when))
            .chain(self.verdicts.iter_mut().map(|rule| &mut rule.when))
            .chain(self.alternatives.iter_mut().map(|rule| &mut rule.when))
            .chain(self.settings.iter_mut().map(|rule| &mut rule.when));
        (&mut self.problems, conditions)
    }

    fn resolve_thresholds(&mut self, files: &[RuleFile]) {
        let numbers: BTreeMap<String, f64> =
            self.thresholds.iter().map(|it| (it.id.as_str().to_owned(), it.value)).collect();
        let (problems, conditions) = self.conditions_mut();
        for condition in conditions {
            if let Err(name) = condition.resolve_limits(&numbers) {
                let found = files.iter().find_map(|file| {
                    let line = file.text.lines().position(|line| line.contains(&format!(": {name}")))?;
                    Some((file.name.clone(), line + 1))
                });
                let (file, line) = found.unwrap_or_else(|| ("rules".to_owned(), 1));
                problems.push(Problem {
                    file,
                    place: Some((line, 1)),
                    what: format!("unknown threshold `{name}`{}", nearest(&name, numbers.keys().map(String::as_str))),
                });
            }
        }
    }
}

/// Puts a rule in the place of one with the same id, or behind all others.
fn put<T, I: PartialEq>(list: &mut Vec<T>, rule: T, id: impl Fn(&T) -> &I) {
    match list.iter().position(|known| id(known) == id(&rule)) {
        Some(index) => list[index] = rule,
        None => list.push(rule),
    }
}

/// Parses YAML into a type, with the place of a mistake and the nearest valid name.
fn parse<T: DeserializeOwned>(file: &RuleFile) -> Result<T, Problem> {
    serde_yaml::from_str(&file.text).map_err(|error| Problem {
        file: file.name.clone(),
        place: error.location().map(|location| (location.line(), location.column())),
        what: reworded(&error.to_string()),
    })
}

/// Takes the place out of a message, which is printed before it, and names the nearest of the expected words.
fn reworded(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(what, _)| what);
    let Some((what, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let wrong = what.rsplit('`').nth(1);
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    match wrong {
        Some(wrong) if what.contains("unknown") && !known.is_empty() => {
            let offer = nearest(wrong, known.iter().copied());
            if offer.is_empty() {
                format!("{what}, known are `{}`", known.join("`, `"))
            } else {
                format!("{what}{offer}")
            }
        }
        _ => message.to_owned(),
    }
}

fn lines_of(text: &str, wanted: &str) -> Vec<usize> {
    let is_wanted = |line: &str| line.trim_start().trim_start_matches("- ").trim_start_matches("{ ").trim() == wanted;
    text.lines().enumerate().filter(|(_, line)| is_wanted(line)).map(|(number, _)| number + 1).collect()
}

fn line_of(text: &str, wanted: &str) -> Option<usize> {
    lines_of(text, wanted).first().copied()
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
