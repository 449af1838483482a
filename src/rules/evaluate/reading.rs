//! Conditions that read: values, texts, places and kinds of files.

use super::{Evaluator, Outcome, Truth, Want};
use crate::rules::condition::{Contains, Exists, FileKind, FileKindTest, Mode, PlaceKind, ValueTest};
use crate::rules::extract::VALUE_SOURCES;
use crate::rules::place::{Lookup, find_places, parent_of};
use crate::rules::source::{Fetched, Listed, Place};
use crate::rules::words::PathGlob;

/// Bytes that `contains` reads of a file when the rule does not say.
pub const TEXT_BYTES: usize = 64 * 1024;
/// Bytes that tell what a file is; the first kilobyte shows its line endings too.
const KIND_BYTES: usize = 1024;
/// Tracked files that one `contains` or `file_kind` looks into.
const FILES_PER_TEST: usize = 3;
/// Folders beside which local places are looked for.
const FOLDERS_PER_TEST: usize = 2;

/// Values that files may hold which were not read yet: more than any rule counts up to.
const UNREAD: u64 = 1 << 32;

impl Evaluator<'_> {
    pub(super) fn value(&self, test: &ValueTest) -> Outcome {
        let sources = VALUE_SOURCES.iter().find(|(name, _)| *name == test.of.as_str()).map_or(&[][..], |it| it.1);
        let (mut total, mut matching, mut unresolved) = (0_u64, 0_u64, 0_u64);
        let mut first = None;
        for extractor in sources {
            let Some(found) = self.subject.seen.values.get(extractor) else {
                self.want(Want::Values(*extractor));
                unresolved += UNREAD;
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

    pub(super) fn contains(&self, test: &Contains) -> Outcome {
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

    pub(super) fn exists(&self, test: &Exists) -> Outcome {
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

    pub(super) fn file_kind(&self, test: &FileKindTest) -> Outcome {
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
