//! Evaluates conditions on what was gathered, with three truth values, and says what else would have to be read.

mod free;
mod reading;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::condition::Condition;
use super::extract::{Extracted, Extractor};
use super::paths::{IndexCounts, PathIndex};
use super::source::{Fetched, Listed, Place};
use crate::facts::Toolchain;

pub use free::lookup;
pub use reading::TEXT_BYTES;

/// Truth of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// It does not hold.
    False,
    /// What was read does not tell.
    Unknown,
    /// It holds.
    True,
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
            Self::True => Self::False,
        }
    }
}

/// Something that has to be read before a condition can be decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Want {
    /// The files of an extractor.
    Values(Extractor),
    /// The first bytes of a file.
    Text(String, usize),
    /// The names in a directory.
    List(String),
    /// What is at a place.
    Look(String),
}

/// What was gathered so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Texts by place, each with the number of bytes that was asked for.
    pub texts: HashMap<String, (usize, Fetched)>,
    /// Directory listings by place.
    pub lists: HashMap<String, Listed>,
    /// What is at a place.
    pub places: HashMap<String, Place>,
    /// Values by extractor.
    pub values: BTreeMap<Extractor, Extracted>,
    /// Wants that were turned down to stay within the budget.
    pub refused: BTreeSet<Want>,
}

/// A configuration value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigValue {
    /// `section.key` or `section.subsection.key`, section and key in lower case.
    pub key: String,
    /// The value; `true` for a key without one.
    pub value: String,
    /// Whether the repository's own file has it.
    pub is_own: bool,
}

/// Everything that conditions are evaluated on.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The index's paths.
    pub paths: &'a PathIndex,
    /// The facts as JSON.
    pub facts: &'a serde_json::Value,
    /// Git's configuration.
    pub config: &'a [ConfigValue],
    /// Counts of the index by property.
    pub index: &'a IndexCounts,
    /// What was gathered.
    pub seen: &'a Seen,
    /// Ids of the hazards that fired.
    pub hazards: &'a BTreeSet<String>,
    /// Sides of which a strong trace fired.
    pub traces: &'a BTreeSet<Toolchain>,
}

/// The result of evaluating one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its truth.
    pub truth: Truth,
    /// The path or value that made it hold.
    pub matched: Option<String>,
    /// The place on disk that made it hold, for the time of a trace.
    pub place: Option<String>,
}

impl Outcome {
    fn of(truth: Truth) -> Self {
        Self { truth, matched: None, place: None }
    }

    fn matching(truth: Truth, matched: Option<String>) -> Self {
        Self { truth, matched: matched.filter(|_| truth == Truth::True), place: None }
    }

    fn at(place: String) -> Self {
        Self { truth: Truth::True, matched: Some(place.clone()), place: Some(place) }
    }
}

/// Evaluates conditions of one subject.
#[derive(Debug)]
pub struct Evaluator<'a> {
    subject: &'a Subject<'a>,
    wants: RefCell<Vec<Want>>,
}

impl<'a> Evaluator<'a> {
    /// Makes an evaluator.
    #[must_use]
    pub fn new(subject: &'a Subject<'a>) -> Self {
        Self { subject, wants: RefCell::default() }
    }

    /// Returns what the evaluations so far lacked, and forgets it.
    pub fn take_wants(&self) -> Vec<Want> {
        self.wants.take()
    }

    /// Evaluates a condition; what can be decided without reading is looked at first.
    pub fn test(&self, condition: &Condition) -> Outcome {
        let mut outcome = Outcome::of(Truth::True);
        for part in Part::ALL {
            let found = self.part(part, condition);
            let Some(found) = found else { continue };
            outcome.truth = outcome.truth.min(found.truth);
            outcome.matched = outcome.matched.or(found.matched);
            outcome.place = found.place.or(outcome.place);
            if outcome.truth == Truth::False || (found.truth == Truth::Unknown && part.may_read()) {
                // Nothing that follows can make it hold now; what it lacks is read before more is asked for.
                break;
            }
        }
        if outcome.truth != Truth::True {
            outcome.matched = None;
            outcome.place = None;
        }
        outcome
    }

    fn part(&self, part: Part, condition: &Condition) -> Option<Outcome> {
        match part {
            Part::Fact => condition.fact.as_ref().map(|test| self.fact(test)),
            Part::Hazard => (!condition.hazard.is_empty()).then(|| {
                let fired = condition.hazard.iter().find(|id| self.subject.hazards.contains(id.as_str()));
                Outcome::matching(Truth::from(fired.is_some()), fired.map(ToString::to_string))
            }),
            Part::Trace => condition.trace.map(|side| Outcome::of(Truth::from(self.subject.traces.contains(&side)))),
            Part::GitConfig => condition.git_config.as_ref().map(|test| self.git_config(test)),
            Part::Index => condition.index.as_ref().map(|test| self.index(test)),
            Part::Tracked => condition.tracked.as_ref().map(|test| {
                let (truth, matched) = self.subject.paths.test(&test.0);
                Outcome::matching(truth, matched)
            }),
            Part::FreeParts => self.parts(condition, false),
            Part::Exists => condition.exists.as_ref().map(|test| self.exists(test)),
            Part::FileKind => condition.file_kind.as_ref().map(|test| self.file_kind(test)),
            Part::Value => condition.value.as_ref().map(|test| self.value(test)),
            Part::Contains => condition.contains.as_ref().map(|test| self.contains(test)),
            Part::ReadingParts => self.parts(condition, true),
        }
    }

    /// Evaluates `all`, `any` and `not`; first with the parts that read nothing, then with the others.
    fn parts(&self, condition: &Condition, reading: bool) -> Option<Outcome> {
        let mut outcome: Option<Outcome> = None;
        let mut join = |found: Outcome| {
            let known = outcome.get_or_insert(Outcome::of(Truth::True));
            known.truth = known.truth.min(found.truth);
            known.matched = known.matched.take().or(found.matched);
            known.place = found.place.or(known.place.take());
            known.truth
        };
        for inner in condition.all.iter().filter(|inner| reads(inner) == reading) {
            if join(self.test(inner)) < Truth::True {
                return outcome;
            }
        }
        if let Some(inner) = condition.not.as_deref().filter(|inner| reads(inner) == reading) {
            let inner = self.test(inner);
            if join(Outcome::of(!inner.truth)) < Truth::True {
                return outcome;
            }
        }
        let any_reads = condition.any.iter().any(reads);
        if !condition.any.is_empty() && any_reads == reading {
            join(self.any(&condition.any));
        }
        outcome
    }

    fn any(&self, conditions: &[Condition]) -> Outcome {
        let (free, reading): (Vec<_>, Vec<_>) = conditions.iter().partition(|inner| !reads(inner));
        let mut best = Outcome::of(Truth::False);
        for inner in free.into_iter().chain(reading) {
            let wants_before = self.wants.borrow().len();
            let found = self.test(inner);
            if found.truth == Truth::True {
                return found;
            }
            let has_wants = self.wants.borrow().len() > wants_before;
            if found.truth == Truth::Unknown {
                best = found;
                if has_wants {
                    // The next alternative is read only when this one turns out not to hold.
                    return best;
                }
            }
        }
        best
    }

    fn want(&self, want: Want) -> Truth {
        if !self.subject.seen.refused.contains(&want) {
            self.wants.borrow_mut().push(want);
        }
        Truth::Unknown
    }
}

/// The parts of a condition, the free ones first.
#[derive(Debug, Clone, Copy)]
enum Part {
    Fact,
    Hazard,
    Trace,
    GitConfig,
    Index,
    Tracked,
    FreeParts,
    Exists,
    FileKind,
    Value,
    Contains,
    ReadingParts,
}

impl Part {
    const ALL: [Self; 12] = [
        Self::Fact,
        Self::Hazard,
        Self::Trace,
        Self::GitConfig,
        Self::Index,
        Self::Tracked,
        Self::FreeParts,
        Self::Exists,
        Self::FileKind,
        Self::Value,
        Self::Contains,
        Self::ReadingParts,
    ];

    fn may_read(self) -> bool {
        matches!(self, Self::Exists | Self::FileKind | Self::Value | Self::Contains | Self::ReadingParts)
    }
}

/// Returns whether deciding a condition may need a read.
#[must_use]
pub fn reads(condition: &Condition) -> bool {
    let mut found = false;
    condition.visit(&mut |inner| {
        found |=
            inner.exists.is_some() || inner.file_kind.is_some() || inner.value.is_some() || inner.contains.is_some();
    });
    found
}
