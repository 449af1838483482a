//! Evaluates conditions on what was gathered, with three truth values, and says what else would have to be read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::condition::{
    Condition, Contains, Exists, FactTest, FileKind, FileKindTest, GitConfigTest, IndexTest, Mode, PlaceKind, ValueTest,
};
use super::extract::{Extracted, Extractor, VALUE_SOURCES};
use super::paths::{IndexCounts, PathIndex};
use super::place::{Lookup, find_places, parent_of};
use super::source::{Fetched, Listed, Place};
use super::words::{Limit, PathGlob};
use crate::facts::Toolchain;

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

/// Bytes that `contains` reads of a file when the rule does not say.
pub const TEXT_BYTES: usize = 64 * 1024;
/// Bytes that tell what a file is; the first kilobyte shows its line endings too.
const KIND_BYTES: usize = 1024;
/// Tracked files that one `contains` or `file_kind` looks into.
const FILES_PER_TEST: usize = 3;
/// Folders beside which local places are looked for.
const FOLDERS_PER_TEST: usize = 2;

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

    fn fact(&self, test: &FactTest) -> Outcome {
        let value = lookup(self.subject.facts, test.name.as_str());
        if let Some(known) = test.known {
            if value.is_some() != known {
                return Outcome::of(Truth::False);
            }
            if !known {
                return Outcome::of(Truth::True);
            }
        }
        let Some(value) = value else { return Outcome::of(Truth::False) };
        let number = value.as_f64().or_else(|| {
            #[expect(clippy::cast_precision_loss, reason = "lists of facts are short")]
            value.as_array().map(|list| list.len() as f64)
        });
        let limit = |limit: &Option<Limit>, holds: fn(f64, f64) -> bool| match limit {
            Some(Limit::Number(limit)) => number.is_some_and(|number| holds(number, *limit)),
            Some(Limit::Named(_)) => false,
            None => true,
        };
        let is_below = |name: &super::words::FactName| {
            let other = lookup(self.subject.facts, name.as_str()).and_then(serde_json::Value::as_f64);
            matches!((number, other), (Some(number), Some(other)) if number < other)
        };
        let holds = test.is.as_ref().is_none_or(|wanted| same(value, &wanted.0))
            && (test.one_of.is_empty() || test.one_of.iter().any(|wanted| same(value, &wanted.0)))
            && test.includes.as_ref().is_none_or(|wanted| {
                value.as_array().is_some_and(|list| list.iter().any(|item| same(item, &wanted.0)))
            })
            && test.matches.as_ref().is_none_or(|pattern| match value {
                serde_json::Value::String(value) => pattern.is_match(value),
                serde_json::Value::Array(list) => {
                    list.iter().filter_map(serde_json::Value::as_str).any(|value| pattern.is_match(value))
                }
                _ => false,
            })
            && limit(&test.at_least, |number, limit| number >= limit)
            && limit(&test.at_most, |number, limit| number <= limit)
            && limit(&test.below, |number, limit| number < limit)
            && test.below_fact.as_ref().is_none_or(is_below);
        let matched = format!("{} = {}", test.name.as_str(), plain(value));
        Outcome::matching(Truth::from(holds), Some(matched))
    }

    fn git_config(&self, test: &GitConfigTest) -> Outcome {
        let key = test.key.to_lowercase();
        let found = self.subject.config.iter().find(|entry| {
            (entry.is_own || !test.own)
                && is_key(&entry.key, &key)
                && test.matches.as_ref().is_none_or(|pattern| pattern.is_match(&entry.value))
        });
        Outcome::matching(Truth::from(found.is_some()), found.map(|entry| entry.key.clone()))
    }

    fn index(&self, test: &IndexTest) -> Outcome {
        let count = self.subject.index.get(&test.property).copied().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "an index holds far fewer than 2^53 entries")]
        let share = count as f64 / self.subject.paths.len().max(1) as f64;
        let holds = count >= test.at_least as u64 && test.share_at_least.is_none_or(|limit| share >= limit);
        Outcome::matching(Truth::from(holds), Some(format!("{count} entries of the index")))
    }

    fn value(&self, test: &ValueTest) -> Outcome {
        let sources = VALUE_SOURCES.iter().find(|(name, _)| *name == test.of.as_str()).map_or(&[][..], |it| it.1);
        let (mut total, mut matching, mut unresolved) = (0_u64, 0_u64, 0_u64);
        let mut first = None;
        for extractor in sources {
            let Some(found) = self.subject.seen.values.get(extractor) else {
                self.want(Want::Values(*extractor));
                unresolved += 1;
                continue;
            };
            unresolved += found.unresolved.get(test.of.as_str()).copied().unwrap_or(0);
            for item in found.items.get(test.of.as_str()).into_iter().flatten() {
                if !test.files.is_empty() && !test.files.iter().any(|glob| matches_path(glob, &item.path)) {
                    continue;
                }
                total += 1;
                if test.matches.as_ref().is_none_or(|pattern| pattern.is_match(&item.value)) {
                    matching += 1;
                    first = first.or_else(|| Some(format!("{}: {}", item.path, item.value)));
                }
            }
        }
        let truth = bounds(test, total, matching, unresolved);
        if truth == Truth::Unknown {
            return Outcome::of(truth);
        }
        // A value that is decided without the files that were not read yet needs them no more.
        self.wants.borrow_mut().retain(|want| !matches!(want, Want::Values(it) if sources.contains(it)));
        Outcome::matching(truth, first)
    }

    fn contains(&self, test: &Contains) -> Outcome {
        let max_bytes = test.head.unwrap_or(TEXT_BYTES);
        let mut places: Vec<String> =
            if test.files.is_empty() { Vec::new() } else { self.tracked(&test.files, FILES_PER_TEST) };
        let mut truth = Truth::False;
        for local in &test.local {
            for folder in self.folders(&test.beside) {
                match self.find(&join(&folder, local)) {
                    Lookup::Found(found) => places.extend(found),
                    Lookup::Unknown => truth = Truth::Unknown,
                    Lookup::Wanting(want) => return Outcome::of(self.want(want)),
                }
            }
        }
        for place in places.into_iter().take(FILES_PER_TEST) {
            match self.text(&place, max_bytes) {
                Ok(Some((content, is_truncated))) => {
                    if test.pattern.count(&content) >= test.times {
                        return Outcome::at(place);
                    }
                    if is_truncated {
                        truth = Truth::Unknown;
                    }
                }
                Ok(None) => {}
                Err(None) => truth = Truth::Unknown,
                Err(Some(want)) => return Outcome::of(self.want(want)),
            }
        }
        Outcome::of(truth)
    }

    fn exists(&self, test: &Exists) -> Outcome {
        let mut count = 0;
        let mut truth = Truth::False;
        let mut first = None;
        for folder in self.folders(&test.beside) {
            for place in &test.any_of {
                match self.find(&join(&folder, place)) {
                    Lookup::Found(found) => {
                        let found: Vec<String> =
                            found.into_iter().filter(|place| self.is_kind(place, test.kind)).collect();
                        count += found.len();
                        first = first.or(found.into_iter().next());
                    }
                    Lookup::Unknown => truth = Truth::Unknown,
                    Lookup::Wanting(want) => return Outcome::of(self.want(want)),
                }
                if count >= test.at_least {
                    return first.map_or_else(|| Outcome::of(Truth::True), Outcome::at);
                }
            }
        }
        Outcome::of(truth)
    }

    fn is_kind(&self, place: &str, wanted: Option<PlaceKind>) -> bool {
        let Some(wanted) = wanted else { return true };
        match self.known_kind(place) {
            Some(kind) => kind == wanted,
            // A directory that does not tell what its entries are is rare; the name alone has to do then.
            None => true,
        }
    }

    fn known_kind(&self, place: &str) -> Option<PlaceKind> {
        if let Some(Place::There(kind)) = self.subject.seen.places.get(place) {
            return Some(*kind);
        }
        let (folder, name) = parent_of(place);
        match self.subject.seen.lists.get(folder) {
            Some(Listed::Names(names)) => names.iter().find(|(known, _)| known == name).and_then(|(_, kind)| *kind),
            _ => None,
        }
    }

    fn file_kind(&self, test: &FileKindTest) -> Outcome {
        let mut places: Vec<String> =
            if test.files.is_empty() { Vec::new() } else { self.tracked(&test.files, FILES_PER_TEST) };
        if test.symlinks {
            places.extend(self.subject.paths.of_mode(Mode::Symlink, FILES_PER_TEST).into_iter().map(str::to_owned));
        }
        let mut truth = Truth::False;
        for local in &test.local {
            match self.find(local) {
                Lookup::Found(found) => places.extend(found),
                Lookup::Unknown => truth = Truth::Unknown,
                Lookup::Wanting(want) => return Outcome::of(self.want(want)),
            }
        }
        for place in places.into_iter().take(FILES_PER_TEST) {
            let Some((_, fetched)) = self.subject.seen.texts.get(&place) else {
                let want = Want::Text(place, KIND_BYTES);
                if self.subject.seen.refused.contains(&want) {
                    truth = Truth::Unknown;
                    continue;
                }
                return Outcome::of(self.want(want));
            };
            match fetched {
                Fetched::Bytes { data, .. } if is_file_kind(data, test.is) => return Outcome::at(place),
                Fetched::Unknown => truth = Truth::Unknown,
                _ => {}
            }
        }
        Outcome::of(truth)
    }

    /// Returns a text and whether it was cut; nothing when there is no file; the want that is missing as an error.
    fn text(&self, place: &str, max_bytes: usize) -> Result<Option<(String, bool)>, Option<Want>> {
        match self.subject.seen.texts.get(place) {
            Some((asked, fetched)) => match fetched {
                Fetched::Bytes { is_truncated: true, .. } if *asked < max_bytes => Err(self.missing(place, max_bytes)),
                Fetched::Bytes { data, is_truncated } => {
                    Ok(Some((String::from_utf8_lossy(data).into_owned(), *is_truncated)))
                }
                Fetched::Absent | Fetched::NoFile => Ok(None),
                Fetched::Unknown => Err(None),
            },
            None => Err(self.missing(place, max_bytes)),
        }
    }

    fn missing(&self, place: &str, max_bytes: usize) -> Option<Want> {
        let want = Want::Text(place.to_owned(), max_bytes);
        (!self.subject.seen.refused.contains(&want)).then_some(want)
    }

    fn tracked(&self, globs: &[PathGlob], at_most: usize) -> Vec<String> {
        self.subject.paths.shallowest(globs, at_most).into_iter().map(str::to_owned).collect()
    }

    fn folders(&self, beside: &[PathGlob]) -> Vec<String> {
        if beside.is_empty() {
            return vec![String::new()];
        }
        let mut folders: Vec<String> = Vec::new();
        for path in self.tracked(beside, FOLDERS_PER_TEST) {
            let folder = parent_of(&path).0.to_owned();
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    fn find(&self, place: &str) -> Lookup {
        find_places(place, self.subject.seen)
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

/// Decides the bounds of a value test when some values are not known.
fn bounds(test: &ValueTest, total: u64, matching: u64, unresolved: u64) -> Truth {
    let mut truth = Truth::True;
    let mut limit = |low: bool, high: bool| {
        // `low` holds when no unresolved value matches, `high` when all do.
        let found = match (low, high) {
            (true, true) => Truth::True,
            (false, false) => Truth::False,
            _ => Truth::Unknown,
        };
        truth = truth.min(found);
    };
    let most = matching + unresolved;
    limit(matching >= test.needed(), most >= test.needed());
    if let Some(at_most) = test.at_most {
        limit(matching <= at_most, most <= at_most);
    }
    let all = total + unresolved;
    #[expect(clippy::cast_precision_loss, reason = "counts of values are small")]
    let share = |count: u64| if all == 0 { None } else { Some(count as f64 / all as f64) };
    if let Some(wanted) = test.share_at_least {
        let reaches = |count| share(count).is_some_and(|share| share >= wanted);
        limit(reaches(matching), reaches(most));
    }
    if let Some(wanted) = test.share_at_most {
        let stays = |count| share(count).is_some_and(|share| share <= wanted);
        limit(stays(matching), stays(most));
    }
    truth
}

fn matches_path(glob: &PathGlob, path: &str) -> bool {
    // The globs of values are few and their files too, so they are compiled on use.
    glob.build().is_ok_and(|glob| glob.compile_matcher().is_match(path.to_lowercase()))
}

fn join(folder: &str, place: &str) -> String {
    if folder.is_empty() { place.to_owned() } else { format!("{folder}/{place}") }
}

/// Returns the value of a fact by its dotted name.
#[must_use]
pub fn lookup<'a>(facts: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    name.split('.').try_fold(facts, |value, part| value.get(part)).filter(|value| !value.is_null())
}

fn same(value: &serde_json::Value, wanted: &serde_json::Value) -> bool {
    match (value.as_f64(), wanted.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => value == wanted,
    }
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Compares `remote.*.url` with `remote.origin.url`; a subsection may hold dots.
fn is_key(key: &str, wanted: &str) -> bool {
    match wanted.split_once(".*.") {
        Some((section, name)) => {
            let inner = key.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
            inner.and_then(|rest| rest.strip_suffix(name)).is_some_and(|rest| rest.ends_with('.'))
        }
        None => key == wanted,
    }
}

fn is_file_kind(data: &[u8], kind: FileKind) -> bool {
    /// Magic numbers of Mach-O: 32 and 64 bits in both orders, and the universal form.
    const MACH_O: [[u8; 4]; 5] = [
        [0xfe, 0xed, 0xfa, 0xce],
        [0xfe, 0xed, 0xfa, 0xcf],
        [0xce, 0xfa, 0xed, 0xfe],
        [0xcf, 0xfa, 0xed, 0xfe],
        [0xca, 0xfe, 0xba, 0xbe],
    ];
    match kind {
        FileKind::Elf => data.starts_with(b"\x7fELF"),
        FileKind::Pe => data.starts_with(b"MZ"),
        FileKind::MachO => data.get(..4).is_some_and(|head| MACH_O.iter().any(|magic| magic == head)),
        FileKind::Script => data.starts_with(b"#!"),
        FileKind::CrlfText => !data.contains(&0) && data.windows(2).any(|pair| pair == b"\r\n"),
        // Reading does not follow links, so that bytes are there only when it is a regular file.
        FileKind::NoLink => true,
    }
}
