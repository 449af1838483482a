//! Plans and makes the reads that the rules need: the decisive ones first, each once, within a budget.

use std::collections::BTreeSet;

use super::RuleSet;
use super::condition::Condition;
use super::evaluate::{ConfigValue, Evaluator, Seen, Subject, Truth, Want};
use super::extract::{Extractor, Input, extract};
use super::kinds::EvidenceRule;
use super::load::{Problem, REPO_FILE, REPO_FILE_BYTES, RepoSettings, repo_settings};
use super::paths::{IndexCounts, PathIndex};
use super::source::{Fetched, Listed, Place, Source};
use super::vocabulary::{Severity, Strength, Tier};
use super::weigh::weigh;
use crate::facts::Toolchain;

/// What may be read on the repository's mount.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Calls that resolve a path.
    pub calls: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Default for Budget {
    /// Some forty small reads, with those for the times of traces: at the 5 ms that a call takes on a slow mount, a fifth
    /// of a second. The scan itself makes about twenty, so that both stay within sixty.
    fn default() -> Self {
        Self { calls: 36, bytes: 2 << 20 }
    }
}

/// Names listed of one directory; a `node_modules/.bin` of a large project holds some hundred.
const MAX_NAMES: usize = 4096;
/// Probability from which committed evidence is decided, so that hints need not be read any more.
const DECIDED: f64 = 0.97;

/// What a working copy is, before anything of it was read for the rules.
#[derive(Debug)]
pub struct Material {
    /// The index's paths, matched against the rules' globs.
    pub paths: PathIndex,
    /// Git's configuration.
    pub config: Vec<ConfigValue>,
    /// Counts of the index.
    pub index: IndexCounts,
    /// The facts as JSON.
    pub facts: serde_json::Value,
}

/// Everything that judging needs: pure data, nothing more is read.
#[derive(Debug)]
pub struct Observations {
    /// What the working copy is.
    pub material: Material,
    /// What was read of it.
    pub seen: Seen,
    /// What the repository's own file says, or the mistake in it; absent when there is none.
    pub settings: Option<Result<RepoSettings, Problem>>,
    /// Modification times of places that traces were found at, in seconds since the epoch.
    pub modified_at: std::collections::BTreeMap<String, i64>,
}

impl Observations {
    /// Evaluates a condition on them.
    #[must_use]
    pub fn test(&self, condition: &Condition) -> super::evaluate::Outcome {
        let (hazards, traces) = (BTreeSet::new(), BTreeSet::new());
        Evaluator::new(&self.subject_with(&self.material.facts, &hazards, &traces)).test(condition)
    }

    /// Returns what conditions are evaluated on, with later facts than those that were known when it was gathered.
    #[must_use]
    pub fn subject_with<'a>(
        &'a self,
        facts: &'a serde_json::Value,
        hazards: &'a BTreeSet<String>,
        traces: &'a BTreeSet<Toolchain>,
    ) -> Subject<'a> {
        Subject { facts, ..subject(&self.material, &self.seen, hazards, traces) }
    }

    /// Returns the evidence rules that fired.
    #[must_use]
    pub fn fired<'r>(&self, rules: &'r [EvidenceRule]) -> Vec<&'r EvidenceRule> {
        rules.iter().filter(|rule| self.test(&rule.when).truth == Truth::True).collect()
    }
}

fn subject<'a>(
    material: &'a Material,
    seen: &'a Seen,
    hazards: &'a BTreeSet<String>,
    traces: &'a BTreeSet<Toolchain>,
) -> Subject<'a> {
    Subject {
        paths: &material.paths,
        facts: &material.facts,
        config: &material.config,
        index: &material.index,
        seen,
        hazards,
        traces,
    }
}

/// What the reads are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    /// Whether local traces and hazards are looked for too, or committed evidence alone.
    pub local: bool,
}

/// Reads what the rules need of a working copy.
///
/// Rounds of evaluating and reading: conditions that paths, facts and configuration decide cost nothing; what is left
/// wants reads, and of these the most decisive rules' come first. Hints are not read when the committed evidence is
/// decided without them.
#[must_use]
pub fn gather(
    rules: &RuleSet,
    material: Material,
    source: &dyn Source,
    budget: Budget,
    purpose: Purpose,
) -> Observations {
    gather_for(rules, material, source, budget, purpose, &|_| true)
}

/// The same for the rules whose id is wanted alone; what the others would read stays unknown.
pub(super) fn gather_for(
    rules: &RuleSet,
    material: Material,
    source: &dyn Source,
    budget: Budget,
    purpose: Purpose,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Observations {
    let mut reader = Reader { source, seen: Seen::default(), left: budget, rules };
    if purpose.local {
        // One listing tells of every folder of the root whether it is there, so that most probes cost nothing.
        reader.fetch(Want::List(String::new()), &material);
        reader.fetch(Want::List(".git".to_owned()), &material);
    }
    let settings = reader.settings(&material);
    loop {
        let wants = next_wants(rules, &material, &reader.seen, purpose, is_wanted);
        if wants.is_empty() {
            break;
        }
        for want in wants {
            reader.fetch(want, &material);
        }
    }
    let seen = reader.seen;
    let mut observations = Observations { material, seen, settings, modified_at: std::collections::BTreeMap::new() };
    if purpose.local {
        times_of_conflicting_traces(rules, &mut observations, source);
    }
    observations
}

/// The order in which rules may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Decisive,
    Build,
    Danger,
    Trace,
    Metadata,
    WeakTrace,
    Note,
    Hint,
}

fn turn_of(rule: &EvidenceRule) -> Turn {
    match (rule.trace, rule.tier) {
        (true, _) if rule.strength == Strength::Strong => Turn::Trace,
        (true, _) => Turn::WeakTrace,
        (false, Tier::HostOnly) => Turn::Decisive,
        (false, Tier::Build) => Turn::Build,
        (false, Tier::Metadata) => Turn::Metadata,
        (false, Tier::Hint) => Turn::Hint,
    }
}

/// Returns what the rules of the earliest turn lack, without repetition; nothing when all is decided.
fn next_wants(
    rules: &RuleSet,
    material: &Material,
    seen: &Seen,
    purpose: Purpose,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Vec<Want> {
    let (no_hazards, no_traces) = (BTreeSet::new(), BTreeSet::new());
    let subject = subject(material, seen, &no_hazards, &no_traces);
    let evaluator = Evaluator::new(&subject);
    let mut wanted: Vec<(Turn, Want)> = Vec::new();
    let mut fired = Vec::new();
    for rule in &rules.evidence {
        if (rule.trace && !purpose.local) || !is_wanted(rule.id.as_str()) {
            continue;
        }
        let outcome = evaluator.test(&rule.when);
        let turn = turn_of(rule);
        wanted.extend(evaluator.take_wants().into_iter().map(|want| (turn, want)));
        if outcome.truth == Truth::True && !rule.trace {
            fired.push(rule);
        }
    }
    let hazards = if purpose.local { rules.hazards.as_slice() } else { &[] };
    for rule in hazards.iter().filter(|rule| is_wanted(rule.id.as_str())) {
        let turn = if rule.severity == Severity::Note { Turn::Note } else { Turn::Danger };
        evaluator.test(&rule.when);
        wanted.extend(evaluator.take_wants().into_iter().map(|want| (turn, want)));
    }
    let earliest = wanted.iter().map(|(turn, _)| *turn).min();
    let Some(earliest) = earliest else { return Vec::new() };
    let has_pending_decision = earliest < Turn::Danger;
    let is_decided = !has_pending_decision && {
        let (odds, _) = weigh(&fired, &rules.judging.weights);
        let (side, probability) = odds.best();
        side != Toolchain::Either && probability >= DECIDED
    };
    wanted.retain(|(turn, _)| *turn == earliest && !(is_decided && *turn == Turn::Hint));
    let mut unique = Vec::new();
    for (_, want) in wanted {
        if !unique.contains(&want) {
            unique.push(want);
        }
    }
    unique
}

struct Reader<'a> {
    source: &'a dyn Source,
    seen: Seen,
    left: Budget,
    rules: &'a RuleSet,
}

impl Reader<'_> {
    fn fetch(&mut self, want: Want, material: &Material) {
        if let Want::Values(extractor) = want {
            // Never refused as a whole: the files that do not fit are unknown.
            let values = self.values(extractor, material);
            self.seen.values.insert(extractor, values);
            return;
        }
        if !self.take_call() {
            self.seen.refused.insert(want);
            return;
        }
        match want {
            Want::Text(place, max_bytes) => {
                let fetched = self.source.read(&place, max_bytes.min(self.bytes_left()));
                self.count_bytes(&fetched);
                self.seen.texts.insert(place, (max_bytes, fetched));
            }
            Want::List(place) => {
                let listed = self.source.list(&place, MAX_NAMES);
                self.seen.lists.insert(place, listed);
            }
            Want::Look(place) => {
                let found = self.source.look(&place);
                self.seen.places.insert(place, found);
            }
            Want::Values(_) => {}
        }
    }

    /// Reads the repository's own file, where the index or the listing of the root has one.
    fn settings(&mut self, material: &Material) -> Option<Result<RepoSettings, Problem>> {
        let is_listed = match self.seen.lists.get("") {
            Some(Listed::Names(names)) => names.iter().any(|(name, _)| name == REPO_FILE),
            _ => false,
        };
        if !is_listed && !material.paths.contains(REPO_FILE) {
            return None;
        }
        self.fetch(Want::Text(REPO_FILE.to_owned(), REPO_FILE_BYTES), material);
        let problem = |what: &str| Problem { file: REPO_FILE.to_owned(), place: None, what: what.to_owned() };
        match self.seen.texts.get(REPO_FILE).map(|(_, fetched)| fetched) {
            Some(Fetched::Bytes { data, is_truncated: false }) => Some(repo_settings(&String::from_utf8_lossy(data))),
            Some(Fetched::Bytes { .. }) => Some(Err(problem("it is too large for the two lines that it may hold"))),
            Some(Fetched::Unknown) => Some(Err(problem("it could not be read"))),
            Some(Fetched::Absent | Fetched::NoFile) | None => None,
        }
    }

    fn values(&mut self, extractor: Extractor, material: &Material) -> super::extract::Extracted {
        let mut found = super::extract::Extracted::default();
        let Some(plan) = self.rules.judging.extractors.iter().find(|plan| plan.extractor == extractor) else {
            return found;
        };
        let mut texts: Vec<(String, Option<String>)> = Vec::new();
        let (paths, is_cut) = material.paths.planned(plan);
        if is_cut && !plan.sample {
            found.mark_unknown(extractor);
        }
        for path in paths {
            if let Some(values) = self.source.values(extractor, path) {
                found.merge(values);
                continue;
            }
            let text = if self.take_call() {
                let fetched = self.source.read(path, plan.max_bytes.min(self.bytes_left()));
                self.count_bytes(&fetched);
                match fetched {
                    // A tracked file that was deleted in the working copy has no values.
                    Fetched::Absent | Fetched::NoFile => continue,
                    Fetched::Bytes { data, is_truncated: false } => Some(String::from_utf8_lossy(&data).into_owned()),
                    Fetched::Bytes { .. } | Fetched::Unknown => None,
                }
            } else {
                None
            };
            texts.push((path.to_owned(), text));
        }
        let inputs: Vec<Input> = texts.iter().map(|(path, text)| Input { path, text: text.as_deref() }).collect();
        found.merge(extract(extractor, &inputs, &self.rules.judging.chores));
        found
    }

    fn take_call(&mut self) -> bool {
        let is_left = self.left.calls > 0 && self.left.bytes > 0;
        self.left.calls = self.left.calls.saturating_sub(1);
        is_left
    }

    fn bytes_left(&self) -> usize {
        usize::try_from(self.left.bytes).unwrap_or(usize::MAX)
    }

    fn count_bytes(&mut self, fetched: &Fetched) {
        if let Fetched::Bytes { data, .. } = fetched {
            self.left.bytes = self.left.bytes.saturating_sub(data.len() as u64);
        }
    }
}

/// Looks up when the strong traces of both sides were made, since the newest one wins.
fn times_of_conflicting_traces(rules: &RuleSet, observations: &mut Observations, source: &dyn Source) {
    /// Traces a side whose time is looked up.
    const TIMES_PER_SIDE: usize = 2;
    let mut places: [Vec<String>; 2] = [Vec::new(), Vec::new()];
    for rule in rules.evidence.iter().filter(|rule| rule.trace && rule.strength == Strength::Strong) {
        let outcome = observations.test(&rule.when);
        let side = match rule.toolchain {
            Toolchain::Linux => 0,
            Toolchain::Windows => 1,
            _ => continue,
        };
        places[side].extend(outcome.place);
    }
    if places.iter().any(Vec::is_empty) {
        return;
    }
    for place in places.iter().flat_map(|side| side.iter().take(TIMES_PER_SIDE)) {
        if let Some(time) = source.modified_at(place) {
            observations.modified_at.insert(place.clone(), time);
        }
    }
}

impl Seen {
    /// Returns whether anything was turned down to stay within the budget.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        !self.refused.is_empty()
            || self.lists.values().any(|listed| *listed == Listed::Unknown)
            || self.places.values().any(|place| *place == Place::Unknown)
    }
}
