//! What the facts and the rules say together; pure.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{CommittedFacts, HazardFacts, Toolchain, ToolchainFacts};
use crate::rules::RuleSet;
use crate::rules::evaluate::{Evaluator, Truth};
use crate::rules::gather::Observations;
use crate::rules::kinds::EvidenceRule;
use crate::rules::load::REPO_FILE;
use crate::rules::say::fill;
pub use crate::rules::vocabulary::{Severity, Strength, Tier};
use crate::rules::weigh::{Odds, Weighed, weigh};

/// Which toolchain is primary, why, and what a move would break.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The primary toolchain.
    pub toolchain: ToolchainFacts,
    /// What the committed files alone say, without the traces of use in this working copy.
    pub committed: CommittedFacts,
    /// Every evidence rule that fired, strongest first, the losing ones included.
    pub evidence: Vec<Evidence>,
    /// Every hazard that was found, blockers first.
    pub hazards: Vec<Hazard>,
    /// Whether the repository's own file asks for silence.
    pub muted: bool,
    /// What was wrong with the repository's own file; it was passed over then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_problem: Option<String>,
}

impl Judgement {
    /// Returns the ids of the hazards by severity, as rules and reports see them.
    #[must_use]
    pub fn hazard_facts(&self) -> HazardFacts {
        let ids = |severity| {
            let found = self.hazards.iter().filter(|hazard| hazard.severity == severity);
            found.map(|hazard| hazard.rule.clone()).collect()
        };
        HazardFacts { blocker: ids(Severity::Blocker), warning: ids(Severity::Warning), note: ids(Severity::Note) }
    }
}

/// One evidence rule that fired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Id of the rule.
    pub rule: String,
    /// The side that it speaks for.
    pub toolchain: Toolchain,
    /// How decisive its kind is.
    pub tier: Tier,
    /// How decisive it is within its tier.
    pub strength: Strength,
    /// What it means, as half a sentence.
    pub because: String,
    /// The file or value that it fired on.
    pub matched: String,
    /// Whether it counts in the sum: no other rule cancelled it, and no stronger one of its group counts instead.
    pub counted: bool,
    /// Share of the result that it carries, 0 to 1; absent when it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// Something that a move would break or lose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hazard {
    /// Id of the rule.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is the matter.
    pub say: String,
    /// What to do about it.
    pub fix: String,
    /// Whether `rehome move` repairs it.
    pub handled_by_move: bool,
}

/// Probability from which the committed files are a clear verdict that traces of use do not flip.
const CLEAR: f64 = 0.9;
/// Difference of log-odds that traces need to settle anything: more than one weak trace.
const TRACES_SETTLE: f64 = 1.0;
/// Difference in age from which the newer of two contradicting traces wins; younger, both sides are in use.
const OLD_TRACE_S: i64 = 30 * 24 * 3600;

/// Judges what was gathered of a working copy.
///
/// `asked` is the toolchain that the user named; it overrides the rules, as the repository's own file does after it.
#[must_use]
pub fn judge(observations: &Observations, rules: &RuleSet, asked: Option<Toolchain>) -> Judgement {
    let fired = observations.fired(&rules.evidence);
    let (traces, committed): (Vec<&EvidenceRule>, Vec<&EvidenceRule>) = fired.into_iter().partition(|rule| rule.trace);
    let (odds, weighed) = weigh(&committed, &rules.judging.weights);
    let trace_weights = weigh_traces(&traces, rules);
    let (side, confidence) = odds.best();
    let committed_facts = CommittedFacts { primary: side, confidence };
    let settled = settle(odds, &traces, &trace_weights, observations);
    let (settings, settings_problem) = match &observations.settings {
        Some(Ok(settings)) => (settings.clone(), None),
        Some(Err(problem)) => (crate::rules::load::RepoSettings::default(), Some(problem.to_string())),
        None => (crate::rules::load::RepoSettings::default(), None),
    };
    let (primary, confidence, overridden_by) = match (asked, settings.primary) {
        (Some(asked), _) => (asked, 1.0, Some("--primary".to_owned())),
        (None, Some(named)) => (named.into(), 1.0, Some(REPO_FILE.to_owned())),
        (None, None) => (settled.0, settled.1, None),
    };
    let toolchain = ToolchainFacts { primary, confidence, overridden_by, committed: Some(committed_facts) };
    let mut evidence = listed(&committed, &weighed, observations);
    evidence.extend(listed(&traces, &trace_weights, observations));
    evidence.sort_by(|a, b| {
        (!a.counted, a.tier, std::cmp::Reverse(a.strength), &a.rule).cmp(&(
            !b.counted,
            b.tier,
            std::cmp::Reverse(b.strength),
            &b.rule,
        ))
    });
    let hazards = find_hazards(observations, rules, &toolchain, &traces);
    Judgement { toolchain, committed: committed_facts, evidence, hazards, muted: settings.mute, settings_problem }
}

/// Weighs traces as one tier of their own.
fn weigh_traces(traces: &[&EvidenceRule], rules: &RuleSet) -> Vec<Weighed> {
    weigh(traces, &rules.judging.trace_weights()).1
}

/// Lets traces of use settle what the committed files leave open.
///
/// With a clear committed answer they change nothing. Otherwise the newest strong trace wins, and strong traces of both
/// sides from about the same time mean that both are in use.
fn settle(odds: Odds, traces: &[&EvidenceRule], weights: &[Weighed], observations: &Observations) -> (Toolchain, f64) {
    let (side, confidence) = odds.best();
    if side != Toolchain::Either && confidence >= CLEAR {
        return (side, confidence);
    }
    let weight_of = |side| {
        let of_side = traces.iter().zip(weights).filter(|(rule, _)| rule.toolchain == side);
        of_side.map(|(_, weighed)| weighed.weight).sum::<f64>()
    };
    let is_strong = |side| traces.iter().any(|rule| rule.toolchain == side && rule.strength == Strength::Strong);
    let (mut linux, mut windows) = (weight_of(Toolchain::Linux), weight_of(Toolchain::Windows));
    if is_strong(Toolchain::Linux) && is_strong(Toolchain::Windows) {
        let newest = |side| newest_trace(traces, side, observations);
        match (newest(Toolchain::Linux), newest(Toolchain::Windows)) {
            (Some(a), Some(b)) if a - b > OLD_TRACE_S => windows = 0.0,
            (Some(a), Some(b)) if b - a > OLD_TRACE_S => linux = 0.0,
            _ => return (Toolchain::Mixed, mixed_confidence(linux.min(windows))),
        }
    }
    if traces.iter().any(|rule| rule.toolchain == Toolchain::Either && rule.strength >= Strength::Medium) {
        return (Toolchain::Mixed, mixed_confidence(weight_of(Toolchain::Either)));
    }
    if (linux - windows).abs() < TRACES_SETTLE {
        return (side, confidence);
    }
    // What is bound to neither side is equally likely to be used on both before the traces are looked at.
    let linux = (odds.linux + odds.either / 2.0) * linux.exp();
    let windows = (odds.windows + odds.either / 2.0) * windows.exp();
    let sum = linux + windows;
    if linux >= windows { (Toolchain::Linux, linux / sum) } else { (Toolchain::Windows, windows / sum) }
}

/// Turns the log-odds of the weaker side into the probability that both are in use.
fn mixed_confidence(weight: f64) -> f64 {
    1.0 / (1.0 + (-weight).exp())
}

fn newest_trace(traces: &[&EvidenceRule], side: Toolchain, observations: &Observations) -> Option<i64> {
    let strong = traces.iter().filter(|rule| rule.toolchain == side && rule.strength == Strength::Strong);
    strong.filter_map(|rule| observations.modified_at.get(&observations.test(&rule.when).place?).copied()).max()
}

fn listed(rules: &[&EvidenceRule], weighed: &[Weighed], observations: &Observations) -> Vec<Evidence> {
    let total: f64 = weighed.iter().map(|weighed| weighed.weight).sum();
    let entry = |(rule, weighed): (&&EvidenceRule, &Weighed)| Evidence {
        rule: rule.id.as_str().to_owned(),
        toolchain: rule.toolchain,
        tier: rule.tier,
        strength: rule.strength,
        because: rule.because.clone(),
        matched: observations.test(&rule.when).matched.unwrap_or_default(),
        counted: weighed.counted,
        share: (weighed.counted && total > 0.0).then(|| weighed.weight / total),
    };
    rules.iter().zip(weighed).map(entry).collect()
}

fn find_hazards(
    observations: &Observations,
    rules: &RuleSet,
    toolchain: &ToolchainFacts,
    traces: &[&EvidenceRule],
) -> Vec<Hazard> {
    let mut facts = observations.material.facts.clone();
    if let Ok(value) = serde_json::to_value(toolchain) {
        facts["toolchain"] = value;
    }
    let strong = traces.iter().filter(|rule| rule.strength == Strength::Strong);
    let sides: BTreeSet<Toolchain> = strong.map(|rule| rule.toolchain).collect();
    let fired = BTreeSet::new();
    let subject = observations.subject_with(&facts, &fired, &sides);
    let evaluator = Evaluator::new(&subject);
    let mut hazards = Vec::new();
    for rule in &rules.hazards {
        let outcome = evaluator.test(&rule.when);
        if outcome.truth == Truth::True {
            let matched = crate::error::printable_text(outcome.matched.as_deref().unwrap_or_default());
            hazards.push(Hazard {
                rule: rule.id.as_str().to_owned(),
                severity: rule.severity,
                say: fill(&rule.say, &facts).replace("<matched>", &matched),
                fix: fill(&rule.fix, &facts).replace("<matched>", &matched),
                handled_by_move: rule.handled_by_move,
            });
        }
    }
    hazards.sort_by_key(|hazard| hazard.severity);
    hazards
}
