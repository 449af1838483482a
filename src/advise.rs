//! The recommendation; pure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::judge::{Hazard, Judgement, Severity};
use crate::rules::RuleSet;
use crate::rules::evaluate::{Evaluator, Seen, Subject, Truth};
use crate::rules::gather::Observations;
use crate::rules::kinds::{AlternativeRule, VerdictRule};
use crate::rules::paths::{IndexCounts, PathIndex};
use crate::rules::say::fill;
pub use crate::rules::vocabulary::Verdict;

/// The advice of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// What to do.
    pub verdict: Verdict,
    /// Why, as a stable word: `linux-primary-and-faster`, `already-native`, ...
    pub reason: String,
    /// Id of the verdict rule.
    pub rule: String,
    /// The reason as one sentence for a person.
    pub say: String,
    /// The command that does it, argument by argument; absent when there is nothing to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The same, quoted for a POSIX shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// Other choices, the best first.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
}

/// A choice besides the recommended one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// What could be done.
    pub say: String,
    /// What that would bring or cost.
    pub effect: String,
}

/// A setting that helps in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tune {
    /// Id of the rule.
    pub rule: String,
    /// What to set.
    pub say: String,
    /// The command that sets it.
    pub command: String,
    /// The expected effect.
    pub effect: String,
    /// Where the effect is documented or was measured.
    pub source: String,
}

/// Everything that a run says at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// What to do.
    pub recommendation: Recommendation,
    /// Settings that help in place, whatever the verdict.
    pub tune: Vec<Tune>,
}

/// Returns where a move would put a repository: a directory of the same name below the target.
#[must_use]
pub fn destination(target: &Path, worktree: &Path) -> PathBuf {
    worktree.file_name().map_or_else(|| target.to_owned(), |name| target.join(name))
}

/// Recommends what to do, from facts with the measurements in them.
///
/// The first verdict rule that holds decides; its command and sentences are filled with facts. Hazards that block a move
/// and are not repaired by it are named before the command.
#[must_use]
pub fn advise(facts: &Facts, judgement: &Judgement, rules: &RuleSet, observations: &Observations) -> Advice {
    let mut facts = facts.clone();
    facts.toolchain = Some(judgement.toolchain.clone());
    facts.hazards = Some(judgement.hazard_facts());
    let mut json = serde_json::to_value(&facts).unwrap_or_default();
    add_destination(&mut json, &facts);
    let hazards: BTreeSet<String> = judgement.hazards.iter().map(|hazard| hazard.rule.clone()).collect();
    let sides = BTreeSet::new();
    let subject = observations.subject_with(&json, &hazards, &sides);
    let evaluator = Evaluator::new(&subject);
    decide(rules, &judgement.hazards, &json, &evaluator)
}

/// Recommends where a repository should be cloned to, from facts without a repository in them.
#[must_use]
pub fn advise_before_clone(facts: &Facts, rules: &RuleSet) -> Advice {
    let mut json = serde_json::to_value(facts).unwrap_or_default();
    add_destination(&mut json, facts);
    with_facts_alone(&json, rules, |evaluator| decide(rules, &[], &json, evaluator))
}

/// Returns the settings whose conditions hold on facts alone, without a repository.
#[must_use]
pub fn settings_without_repository(facts: &serde_json::Value, rules: &RuleSet) -> Vec<Tune> {
    with_facts_alone(facts, rules, |evaluator| settings(facts, rules, evaluator))
}

/// Runs `ask` with an evaluator for which nothing but facts is known.
fn with_facts_alone<T>(facts: &serde_json::Value, rules: &RuleSet, ask: impl FnOnce(&Evaluator) -> T) -> T {
    let paths = PathIndex::new(std::iter::empty(), &rules.globs, &rules.judging);
    let (seen, index) = (Seen::default(), IndexCounts::new());
    let (hazards, traces) = (BTreeSet::new(), BTreeSet::new());
    let subject =
        Subject { paths: &paths, facts, config: &[], index: &index, seen: &seen, hazards: &hazards, traces: &traces };
    ask(&Evaluator::new(&subject))
}

/// Adds a name of its own for templates: it is made of two facts and is none itself.
fn add_destination(json: &mut serde_json::Value, facts: &Facts) {
    let Some(target) = &facts.target else { return };
    let root = match &facts.repo {
        Some(repo) => repo.worktree.as_deref().unwrap_or(&repo.git_dir),
        None => &facts.site.path,
    };
    let place = destination(Path::new(&target.site.path), Path::new(root));
    json["destination"] = serde_json::Value::String(place.to_string_lossy().into_owned());
}

/// The first verdict rule that holds decides.
fn decide(rules: &RuleSet, hazards: &[Hazard], facts: &serde_json::Value, evaluator: &Evaluator) -> Advice {
    let holds = |rule: &&VerdictRule| evaluator.test(&rule.when).truth == Truth::True;
    let tune = settings(facts, rules, evaluator);
    let is_offered = |rule: &AlternativeRule| {
        !(rule.needs_settings && tune.is_empty()) && evaluator.test(&rule.when).truth == Truth::True
    };
    let recommendation = match rules.verdicts.iter().find(holds) {
        Some(rule) => recommend(rule, rules, hazards, facts, is_offered),
        None => no_rule(),
    };
    Advice { recommendation, tune }
}

fn settings(facts: &serde_json::Value, rules: &RuleSet, evaluator: &Evaluator) -> Vec<Tune> {
    let holds = rules.settings.iter().filter(|rule| evaluator.test(&rule.when).truth == Truth::True);
    let tune = holds.map(|rule| Tune {
        rule: rule.id.as_str().to_owned(),
        say: fill(&rule.say, facts),
        command: command_line(&words(&rule.command, facts)),
        effect: fill(&rule.effect, facts),
        source: rule.source.clone(),
    });
    tune.collect()
}

fn recommend(
    rule: &VerdictRule,
    rules: &RuleSet,
    hazards: &[Hazard],
    facts: &serde_json::Value,
    is_offered: impl Fn(&AlternativeRule) -> bool,
) -> Recommendation {
    let mut say = fill(&rule.say, facts);
    let is_move = matches!(rule.verdict, Verdict::Move | Verdict::MoveToWindows);
    let blockers: Vec<&str> = hazards
        .iter()
        .filter(|hazard| hazard.severity == Severity::Blocker && !hazard.handled_by_move)
        .map(|hazard| hazard.fix.as_str())
        .collect();
    if is_move && !blockers.is_empty() {
        say = format!("{say} Before that: {}.", blockers.join("; "));
    }
    let offered = rule.alternatives.iter().filter_map(|id| rules.alternatives.iter().find(|it| it.id == *id));
    let alternatives = offered
        .filter(|it| is_offered(it))
        .map(|it| Alternative { say: fill(&it.say, facts), effect: fill(&it.effect, facts) });
    let command: Vec<String> = rule.command.iter().map(|word| fill(word, facts)).collect();
    let command = (!command.is_empty() && is_filled(&rule.command, facts)).then_some(command);
    Recommendation {
        verdict: rule.verdict,
        reason: rule.reason.clone(),
        rule: rule.id.as_str().to_owned(),
        say,
        command_line: command.as_deref().map(command_line),
        command,
        alternatives: alternatives.collect(),
    }
}

/// Returns whether every fact that a command names is known; a command with a gap in it must not be shown.
fn is_filled(templates: &[String], facts: &serde_json::Value) -> bool {
    // A bracketed part vanishes exactly when one of its facts is absent.
    templates.iter().all(|template| !fill(&format!("[x{template}]"), facts).is_empty())
}

fn words(template: &str, facts: &serde_json::Value) -> Vec<String> {
    let words = shell_words::split(template).unwrap_or_else(|_| vec![template.to_owned()]);
    words.iter().map(|word| fill(word, facts)).collect()
}

fn command_line(words: &[String]) -> String {
    shell_words::join(words)
}

/// The advice when no rule holds, which only a rule set without its last rule can bring about.
fn no_rule() -> Recommendation {
    Recommendation {
        verdict: Verdict::Inconclusive,
        reason: "no-rule".to_owned(),
        rule: "none".to_owned(),
        say: "No verdict rule holds for these facts; the rule set lacks its last rule.".to_owned(),
        command: None,
        command_line: None,
        alternatives: Vec::new(),
    }
}
