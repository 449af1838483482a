//! Runs the examples beside the rules: small repositories in a few lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::RuleSet;
use super::condition::{IndexProperty, Mode, PlaceKind};
use super::evaluate::{ConfigValue, Evaluator, Subject, Truth};
use super::gather::{Budget, Material, Observations, Purpose, gather_for};
use super::kinds::{Example, Examples};
use super::names::check_fact_name;
use super::paths::{IndexCounts, PathIndex, TrackedPath, expand};
use super::source::{Fetched, Listed, Place, Source};

/// The git dir of an example's repository, where it names none.
const GIT_DIR: &str = "/repo/.git";

/// An example that does not do what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of the rule.
    pub kind: &'static str,
    /// Its id.
    pub rule: String,
    /// Which example: `fires[0]`, `ignores[2]`.
    pub example: String,
    /// What came of it.
    pub what: String,
}

/// What running the examples gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of rules that have examples.
    pub rules: usize,
    /// Number of examples run.
    pub examples: usize,
    /// Those that failed.
    pub failures: Vec<Failure>,
}

/// Runs every example of every rule.
#[must_use]
pub fn run_examples(rules: &RuleSet) -> Outcome {
    let mut outcome = Outcome::default();
    for rule in &rules.evidence {
        outcome.run("evidence", rule.id.as_str(), &rule.examples, |example| {
            observed_for(example, rules, &|id| id == rule.id.as_str())
                .map(|seen| seen.test(&rule.when).truth == Truth::True)
        });
    }
    for rule in &rules.hazards {
        outcome.run("hazard", rule.id.as_str(), &rule.examples, |example| {
            let seen = observed_for(example, rules, &|id| id == rule.id.as_str())?;
            let (hazards, traces) = (BTreeSet::new(), example.traces.iter().copied().collect());
            let subject = seen.subject_with(&seen.material.facts, &hazards, &traces);
            Ok(Evaluator::new(&subject).test(&rule.when).truth == Truth::True)
        });
    }
    for rule in &rules.settings {
        outcome.run("setting", rule.id.as_str(), &rule.examples, |example| holds(example, rules, &rule.when));
    }
    for rule in &rules.verdicts {
        outcome.run("verdict", rule.id.as_str(), &rule.examples, |example| {
            // The first rule that holds is the advice, so an example tests the order too.
            for other in &rules.verdicts {
                if holds(example, rules, &other.when)? {
                    return Ok(other.id == rule.id);
                }
            }
            Ok(false)
        });
    }
    for rule in &rules.rebuildable {
        outcome.rules += 1;
        let all = [("fires", &rule.examples.fires, true), ("ignores", &rule.examples.ignores, false)];
        for (list, examples, expected) in all {
            for (index, example) in examples.iter().enumerate() {
                let beside: Vec<&str> = example.beside.iter().map(String::as_str).collect();
                let found = rule.names(&example.directory, &beside);
                outcome.note("rebuildable", rule.id.as_str(), list, index, expected, Ok(found));
            }
        }
        outcome.demand_both("rebuildable", rule.id.as_str(), rule.examples.fires.len(), rule.examples.ignores.len());
    }
    outcome
}

impl Outcome {
    fn run(
        &mut self,
        kind: &'static str,
        id: &str,
        examples: &Examples,
        fires: impl Fn(&Example) -> Result<bool, String>,
    ) {
        self.rules += 1;
        for (list, examples, expected) in [("fires", &examples.fires, true), ("ignores", &examples.ignores, false)] {
            for (index, example) in examples.iter().enumerate() {
                self.note(kind, id, list, index, expected, fires(example));
            }
        }
        self.demand_both(kind, id, examples.fires.len(), examples.ignores.len());
    }

    fn note(
        &mut self,
        kind: &'static str,
        id: &str,
        list: &str,
        index: usize,
        expected: bool,
        found: Result<bool, String>,
    ) {
        self.examples += 1;
        let what = match found {
            Ok(found) if found == expected => return,
            Ok(true) => "the rule fires".to_owned(),
            Ok(false) => "the rule does not fire".to_owned(),
            Err(what) => what,
        };
        self.failures.push(Failure { kind, rule: id.to_owned(), example: format!("{list}[{index}]"), what });
    }

    fn demand_both(&mut self, kind: &'static str, id: &str, fires: usize, ignores: usize) {
        for (list, count) in [("fires", fires), ("ignores", ignores)] {
            if count == 0 {
                let what = "at least one is needed".to_owned();
                self.failures.push(Failure { kind, rule: id.to_owned(), example: list.to_owned(), what });
            }
        }
    }
}

/// Gathers what the rules would read of an example.
///
/// # Errors
///
/// A sentence about a wrong fact or property in the example.
pub fn observed(example: &Example, rules: &RuleSet) -> Result<Observations, String> {
    observed_for(example, rules, &|_| true)
}

/// The same for some rules alone, which is all that one rule's examples need.
fn observed_for(example: &Example, rules: &RuleSet, is_wanted: &dyn Fn(&str) -> bool) -> Result<Observations, String> {
    let source = ExampleSource::new(example);
    let material = material(example, rules)?;
    Ok(gather_for(rules, material, &source, Budget::default(), Purpose { local: true }, is_wanted))
}

fn holds(example: &Example, rules: &RuleSet, condition: &super::condition::Condition) -> Result<bool, String> {
    let material = material(example, rules)?;
    let seen = super::evaluate::Seen::default();
    let hazards: BTreeSet<String> = example.hazards.iter().map(|id| id.as_str().to_owned()).collect();
    let traces = BTreeSet::new();
    let subject = Subject {
        paths: &material.paths,
        facts: &material.facts,
        config: &material.config,
        index: &material.index,
        seen: &seen,
        hazards: &hazards,
        traces: &traces,
    };
    Ok(Evaluator::new(&subject).test(condition).truth == Truth::True)
}

fn material(example: &Example, rules: &RuleSet) -> Result<Material, String> {
    let mut tracked: BTreeMap<String, Mode> = BTreeMap::new();
    for path in example.tracked.iter().chain(example.files.keys()).flat_map(|pattern| expand(pattern)) {
        tracked.insert(path, Mode::Plain);
    }
    for (pattern, mode) in &example.modes {
        for path in expand(pattern) {
            tracked.insert(path, *mode);
        }
    }
    let paths = tracked.into_iter().map(|(path, mode)| TrackedPath { path, mode });
    let paths = PathIndex::new(paths, &rules.globs, &rules.judging);
    let mut index = IndexCounts::new();
    index.insert(IndexProperty::CaseCollisions, paths.case_collisions().len() as u64);
    index.insert(IndexProperty::WindowsReservedNames, paths.reserved().len() as u64);
    for (name, count) in &example.index {
        let property: IndexProperty = serde_json::from_value(Value::String(name.clone()))
            .map_err(|error| format!("index property `{name}`: {error}"))?;
        index.insert(property, *count);
    }
    let config = example.git_config.iter().map(|(key, value)| ConfigValue {
        key: key.clone(),
        value: value.clone(),
        is_own: true,
    });
    // An example is about a repository unless it says that there is none yet.
    let mut facts = serde_json::json!({ "repo": { "git_dir": GIT_DIR } });
    for (name, value) in &example.facts {
        check_fact_name(name)?;
        set(&mut facts, name, value.clone());
    }
    Ok(Material { paths, config: config.collect(), index, facts })
}

/// Sets a fact by its dotted name.
fn set(facts: &mut Value, name: &str, value: Value) {
    let mut parts = name.split('.').peekable();
    let mut place = facts;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            place[part] = value;
            return;
        }
        if !place[part].is_object() {
            place[part] = serde_json::json!({});
        }
        place = &mut place[part];
    }
}

/// The files of an example, in memory.
#[derive(Debug)]
pub struct ExampleSource {
    places: BTreeMap<String, (PlaceKind, Option<String>)>,
}

impl ExampleSource {
    /// Lays out an example's files.
    #[must_use]
    pub fn new(example: &Example) -> Self {
        let mut places: BTreeMap<String, (PlaceKind, Option<String>)> = BTreeMap::new();
        places.insert(".git".to_owned(), (PlaceKind::Directory, None));
        let mut put = |path: &str, kind: PlaceKind, text: Option<&String>| {
            for (slash, _) in path.match_indices('/') {
                places.insert(path[..slash].to_owned(), (PlaceKind::Directory, None));
            }
            places.insert(path.to_owned(), (kind, text.cloned()));
        };
        for path in example.tracked.iter().chain(example.modes.keys()).flat_map(|pattern| expand(pattern)) {
            put(&path, PlaceKind::File, None);
        }
        for (path, text) in example.files.iter().chain(&example.local) {
            put(path, PlaceKind::File, Some(text));
        }
        for path in &example.folders {
            put(path, PlaceKind::Directory, None);
        }
        for path in &example.links {
            put(path, PlaceKind::Symlink, None);
        }
        Self { places }
    }
}

impl Source for ExampleSource {
    fn read(&self, place: &str, max_bytes: usize) -> Fetched {
        match self.places.get(place) {
            None => Fetched::Absent,
            Some((PlaceKind::File, text)) => {
                let mut data = text.clone().unwrap_or_default().into_bytes();
                let is_truncated = data.len() > max_bytes;
                data.truncate(max_bytes);
                Fetched::Bytes { data, is_truncated }
            }
            Some(_) => Fetched::NoFile,
        }
    }

    fn list(&self, place: &str, _max_names: usize) -> Listed {
        let prefix = if place.is_empty() { String::new() } else { format!("{place}/") };
        let is_there = place.is_empty() || matches!(self.places.get(place), Some((PlaceKind::Directory, _)));
        if !is_there {
            return Listed::Absent;
        }
        let inside = self.places.iter().filter_map(|(path, (kind, _))| {
            let name = path.strip_prefix(&prefix)?;
            (!name.is_empty() && !name.contains('/')).then(|| (name.to_owned(), Some(*kind)))
        });
        Listed::Names(inside.collect())
    }

    fn look(&self, place: &str) -> Place {
        self.places.get(place).map_or(Place::Absent, |(kind, _)| Place::There(*kind))
    }

    fn modified_at(&self, _place: &str) -> Option<i64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_built_in_rules_does_what_it_says() {
        let rules = RuleSet::builtin().unwrap();
        let outcome = run_examples(&rules);
        let failures: Vec<String> =
            outcome.failures.iter().map(|it| format!("{} {} {}: {}", it.kind, it.rule, it.example, it.what)).collect();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(outcome.examples > outcome.rules, "{outcome:?}");
    }
}
