//! The rules that give a mount its class, name and transport: ordered, the first match wins, the last always matches.
//!
//! They live here and not in the rules layer because scanning needs them; the rules layer may hand them on.

use std::collections::{BTreeMap, BTreeSet};

use globset::{Glob, GlobSet, GlobSetBuilder};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mount_table::{Mount, MountTable};
use crate::error::Error;
use crate::facts::{FilesystemClass, Platform};

/// The built-in files in the order in which their rules are tried.
const BUILTIN: &[(&str, &str)] = &[
    ("rules/filesystem/windows-drive.yaml", include_str!("../../../rules/filesystem/windows-drive.yaml")),
    ("rules/filesystem/memory.yaml", include_str!("../../../rules/filesystem/memory.yaml")),
    ("rules/filesystem/overlay.yaml", include_str!("../../../rules/filesystem/overlay.yaml")),
    ("rules/filesystem/vm-shared.yaml", include_str!("../../../rules/filesystem/vm-shared.yaml")),
    ("rules/filesystem/network.yaml", include_str!("../../../rules/filesystem/network.yaml")),
    ("rules/filesystem/local-native.yaml", include_str!("../../../rules/filesystem/local-native.yaml")),
    ("rules/filesystem/unknown.yaml", include_str!("../../../rules/filesystem/unknown.yaml")),
];

/// A file of filesystem rules.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesystemRuleFile {
    /// Always `filesystem`.
    pub kind: FilesystemKind,
    /// The rules, tried from the top.
    pub rules: Vec<FilesystemRule>,
}

/// The word that says which kind of rules a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FilesystemKind {
    /// Rules about mounts.
    Filesystem,
}

/// One rule: what a mount must look like, and what it is then.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesystemRule {
    /// Stable name, in kebab case.
    pub id: String,
    /// What kind of place the mount is.
    pub class: FilesystemClass,
    /// A name that a person knows; the filesystem type where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How requests travel; absent for a local disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// A mount option whose value is appended to `transport` after a slash (`trans` gives `9p/fd`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_option: Option<String>,
    /// Whether a repository may be copied there: a permanent disk with owners, modes and links. Where absent, true for
    /// `local-native` and false for every other class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<bool>,
    /// What the mount must look like.
    pub when: Condition,
    /// Why such a mount is of this class.
    pub because: String,
    /// Where that is documented or was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Mounts that the rule is tried on.
    pub examples: Examples,
}

/// What a mount must look like: every key that is given must hold, and no key at all always holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Globs, one of which matches the filesystem type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fstype: Vec<String>,
    /// A regular expression that is found in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Mount options that must be set, each with a regular expression that is found in its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Platforms, one of which rehome runs on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platform: Vec<Platform>,
    /// A regular expression that is found in the mount's root; never holds where the table does not tell the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Whether the source is one of the shares that WSL lists as Windows folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_share: Option<bool>,
    /// Conditions of which at least one holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<Condition>,
    /// Conditions of which none holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub none: Vec<Condition>,
}

/// Mounts on which a rule fires, and near misses on which it must not.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Examples {
    /// Mounts that get this rule's class, tried against all rules in their order.
    pub fires: Vec<Example>,
    /// Mounts that this rule leaves to a later one.
    pub ignores: Vec<Example>,
}

/// One mount and the system that it is seen from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// A line as `/proc/mounts` or `/proc/self/mountinfo` prints it.
    pub mount: String,
    /// The platform; `linux` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Names of the shares that WSL lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<String>,
}

/// What is known about a mount when its class is looked for.
#[derive(Debug, Clone, Copy)]
pub struct MountFacts<'a> {
    /// The mount.
    pub mount: &'a Mount,
    /// The system.
    pub platform: Platform,
    /// Names of the shares that WSL lists as Windows folders; empty elsewhere.
    pub shares: &'a BTreeSet<String>,
}

/// What the rules say about a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    /// What kind of place it is.
    pub class: FilesystemClass,
    /// A name that a person knows.
    pub name: String,
    /// How requests travel; absent for a local disk.
    pub transport: Option<String>,
    /// Whether a repository may be copied there.
    pub is_target: bool,
    /// Id of the rule that said so.
    pub rule: String,
    /// The rule's reason.
    pub because: String,
}

/// An example that did not come out as its rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedExample {
    /// Id of the rule.
    pub rule: String,
    /// What was expected, and what came.
    pub problem: String,
}

/// An ordered list of rules, ready to be tried.
#[derive(Debug, Clone)]
pub struct FilesystemRuleSet {
    rules: Vec<Compiled>,
}

#[derive(Debug, Clone)]
struct Compiled {
    rule: FilesystemRule,
    when: CompiledCondition,
}

#[derive(Debug, Clone)]
struct CompiledCondition {
    fstype: Option<GlobSet>,
    source: Option<Regex>,
    options: Vec<(String, Regex)>,
    platform: Vec<Platform>,
    root: Option<Regex>,
    listed_share: Option<bool>,
    any: Vec<CompiledCondition>,
    none: Vec<CompiledCondition>,
}

impl FilesystemRuleSet {
    /// Returns name and text of every built-in file.
    #[must_use]
    pub fn builtin_files() -> Vec<(String, String)> {
        BUILTIN.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    /// Returns the rules that are built into the program.
    ///
    /// # Errors
    ///
    /// As [`FilesystemRuleSet::from_yaml`]; a test keeps the built-in files free of them.
    pub fn builtin() -> Result<Self, Error> {
        let mut all = Self { rules: Vec::new() };
        for (name, text) in BUILTIN {
            all.extend(Self::from_yaml(name, text)?)?;
        }
        Ok(all)
    }

    /// Parses one file of rules; `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] on text that is no such YAML (with line and column), on an unknown key, on a bad glob or
    /// regular expression, and on an id that occurs twice.
    pub fn from_yaml(name: &str, text: &str) -> Result<Self, Error> {
        let file: FilesystemRuleFile =
            serde_yaml::from_str(text).map_err(|error| bad_rules(name, &error.to_string()))?;
        let mut set = Self { rules: Vec::new() };
        for rule in file.rules {
            let when = CompiledCondition::new(&rule.when)
                .map_err(|problem| bad_rules(name, &format!("rule `{}`: {problem}", rule.id)))?;
            if set.ids().any(|id| id == rule.id) {
                return Err(bad_rules(name, &format!("the id `{}` occurs twice", rule.id)));
            }
            set.rules.push(Compiled { rule, when });
        }
        Ok(set)
    }

    /// Puts the rules of `first` before the present ones; a present rule with the same id goes away.
    pub fn prepend(&mut self, mut first: Self) {
        self.rules.retain(|own| first.ids().all(|id| id != own.rule.id));
        first.rules.append(&mut self.rules);
        *self = first;
    }

    /// Appends the rules of `other`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when an id is already taken.
    pub fn extend(&mut self, mut other: Self) -> Result<(), Error> {
        if let Some(id) = other.ids().find(|id| self.ids().any(|own| own == *id)) {
            return Err(Error::refused(
                format!("two filesystem rules have the id `{id}`"),
                "give one of them another id",
            ));
        }
        self.rules.append(&mut other.rules);
        Ok(())
    }

    /// Returns the rules in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &FilesystemRule> {
        self.rules.iter().map(|compiled| &compiled.rule)
    }

    /// Returns the ids in the order in which the rules are tried.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|rule| rule.id.as_str())
    }

    /// Returns what the first matching rule says; `None` when no rule matches, which the built-in last one prevents.
    #[must_use]
    pub fn classify(&self, facts: MountFacts<'_>) -> Option<Classification> {
        let Compiled { rule, .. } = self.rules.iter().find(|compiled| compiled.when.holds(facts))?;
        let detail = rule.transport_option.as_deref().and_then(|key| facts.mount.option(key));
        let transport = rule.transport.as_ref().map(|transport| match detail {
            Some(detail) if !detail.is_empty() => format!("{transport}/{detail}"),
            _ => transport.clone(),
        });
        Some(Classification {
            class: rule.class,
            name: rule.name.clone().unwrap_or_else(|| facts.mount.fstype.clone()),
            transport,
            is_target: rule.target.unwrap_or(rule.class == FilesystemClass::LocalNative),
            rule: rule.id.clone(),
            because: rule.because.clone(),
        })
    }

    /// Tries every rule's examples and returns those that did not come out.
    ///
    /// `fires` is tried against the whole ordered list, so that an earlier rule that takes the mount away shows too.
    #[must_use]
    pub fn failed_examples(&self) -> Vec<FailedExample> {
        let mut failed = Vec::new();
        for rule in self.iter() {
            let examples = &rule.examples;
            if examples.fires.is_empty() || examples.ignores.is_empty() {
                let problem = "needs an example under `fires` and one under `ignores`".to_owned();
                failed.push(FailedExample { rule: rule.id.clone(), problem });
            }
            let fires = examples.fires.iter().map(|example| (example, true));
            for (example, must_fire) in fires.chain(examples.ignores.iter().map(|example| (example, false))) {
                if let Err(problem) = self.try_example(rule, example, must_fire) {
                    failed.push(FailedExample { rule: rule.id.clone(), problem });
                }
            }
        }
        failed
    }

    fn try_example(&self, rule: &FilesystemRule, example: &Example, must_fire: bool) -> Result<(), String> {
        let table = MountTable::parse(example.mount.as_bytes());
        let [mount] = table.mounts.as_slice() else {
            return Err(format!("`{}` is no line of a mount table", example.mount));
        };
        let shares: BTreeSet<String> = example.shares.iter().cloned().collect();
        let platform = example.platform.unwrap_or(Platform::Linux);
        let came = self.classify(MountFacts { mount, platform, shares: &shares });
        let came = came.as_ref().map_or("none", |classification| &classification.rule);
        match (must_fire, came == rule.id) {
            (true, false) => Err(format!("must fire on `{}`, but rule `{came}` does", example.mount)),
            (false, true) => Err(format!("must not fire on `{}`", example.mount)),
            _ => Ok(()),
        }
    }
}

impl CompiledCondition {
    fn new(condition: &Condition) -> Result<Self, String> {
        let regex = |pattern: &String| Regex::new(pattern).map_err(|error| error.to_string());
        let nested = |conditions: &[Condition]| conditions.iter().map(Self::new).collect::<Result<Vec<_>, _>>();
        let options = condition.options.iter();
        Ok(Self {
            fstype: if condition.fstype.is_empty() { None } else { Some(globs(&condition.fstype)?) },
            source: condition.source.as_ref().map(regex).transpose()?,
            options: options.map(|(key, value)| Ok((key.clone(), regex(value)?))).collect::<Result<_, String>>()?,
            platform: condition.platform.clone(),
            root: condition.root.as_ref().map(regex).transpose()?,
            listed_share: condition.listed_share,
            any: nested(&condition.any)?,
            none: nested(&condition.none)?,
        })
    }

    fn holds(&self, facts: MountFacts<'_>) -> bool {
        let mount = facts.mount;
        let root = mount.root.as_ref().map(|root| root.to_string_lossy());
        self.fstype.as_ref().is_none_or(|globs| globs.is_match(&mount.fstype))
            && self.source.as_ref().is_none_or(|regex| regex.is_match(&mount.source))
            && self.options.iter().all(|(key, regex)| mount.option(key).is_some_and(|value| regex.is_match(value)))
            && (self.platform.is_empty() || self.platform.contains(&facts.platform))
            && self.root.as_ref().is_none_or(|regex| root.is_some_and(|root| regex.is_match(&root)))
            && self.listed_share.is_none_or(|wanted| facts.shares.contains(&mount.source) == wanted)
            && (self.any.is_empty() || self.any.iter().any(|condition| condition.holds(facts)))
            && !self.none.iter().any(|condition| condition.holds(facts))
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        builder.add(Glob::new(pattern).map_err(|error| error.to_string())?);
    }
    builder.build().map_err(|error| error.to_string())
}

fn bad_rules(name: &str, problem: &str) -> Error {
    Error::refused(
        format!("cannot use the rule file `{name}`: {problem}"),
        format!("mend it, and try it with `rehome rules check {name}`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_built_in_rules_comes_out() {
        let failed = FilesystemRuleSet::builtin().unwrap().failed_examples();
        assert!(failed.is_empty(), "{failed:#?}");
    }

    #[test]
    fn the_last_built_in_rule_matches_anything() {
        let rules = FilesystemRuleSet::builtin().unwrap();
        let table = MountTable::parse(b"x /y neverheardof rw 0 0");
        let shares = BTreeSet::new();
        let facts = MountFacts { mount: &table.mounts[0], platform: Platform::Linux, shares: &shares };
        assert_eq!(rules.classify(facts).unwrap().rule, rules.ids().last().unwrap());
    }

    #[test]
    fn no_rule_names_a_mount_point() {
        // The vocabulary has no condition on it; this keeps it so, since a path says nothing about what is there.
        for rule in FilesystemRuleSet::builtin().unwrap().iter() {
            assert!(!serde_json::to_string(&rule.when).unwrap().contains("/mnt"), "{}", rule.id);
        }
    }

    #[test]
    fn a_misspelt_key_is_refused_with_its_line() {
        let text = "kind: filesystem\nrules:\n  - id: a\n    clas: memory\n";
        let message = FilesystemRuleSet::from_yaml("mine.yaml", text).unwrap_err().to_string();
        assert!(message.contains("mine.yaml") && message.contains("clas") && message.contains("line 4"), "{message}");
    }

    #[test]
    fn a_bad_pattern_is_refused_with_the_rule_s_id() {
        let text = "kind: filesystem\nrules:\n  - id: odd\n    class: memory\n    when: { source: '(' }\n    \
                    because: x\n    examples: { fires: [], ignores: [] }\n";
        let message = FilesystemRuleSet::from_yaml("mine.yaml", text).unwrap_err().to_string();
        assert!(message.contains("`odd`"), "{message}");
    }

    #[test]
    fn a_rule_put_in_front_replaces_the_one_with_its_id() {
        let mut rules = FilesystemRuleSet::builtin().unwrap();
        let count = rules.iter().count();
        let text = "kind: filesystem\nrules:\n  - id: tmpfs\n    class: fuse\n    when: { fstype: [tmpfs] }\n    \
                    because: mine\n    examples: { fires: [], ignores: [] }\n";
        rules.prepend(FilesystemRuleSet::from_yaml("mine.yaml", text).unwrap());
        assert_eq!(rules.iter().count(), count);
        assert_eq!(rules.iter().next().unwrap().because, "mine");
    }
}
