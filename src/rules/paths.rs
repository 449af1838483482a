//! The index's paths, matched once against every glob of every rule.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

use globset::{GlobSet, GlobSetBuilder};

use super::condition::{Mode, ShareBase, TrackedFields};
use super::evaluate::Truth;
use super::kinds::JudgingFile;
use super::words::PathGlob;

/// All globs of a rule set, compiled into one matcher.
#[derive(Debug, Clone)]
pub struct Globs {
    set: GlobSet,
    by_glob: HashMap<PathGlob, usize>,
    tests: usize,
}

impl Globs {
    /// Notes how many tests of tracked paths the rules have, for as many results to keep.
    #[must_use]
    pub fn with_tests(self, tests: usize) -> Self {
        Self { tests, ..self }
    }

    /// Compiles the globs, each once.
    ///
    /// # Errors
    ///
    /// That of the glob compiler when all together are too large.
    pub fn new<'a>(globs: impl IntoIterator<Item = &'a PathGlob>) -> Result<Self, globset::Error> {
        let mut by_glob = HashMap::new();
        let mut builder = GlobSetBuilder::new();
        for glob in globs {
            if !by_glob.contains_key(glob) {
                by_glob.insert(glob.clone(), by_glob.len());
                builder.add(glob.build()?);
            }
        }
        Ok(Self { set: builder.build()?, by_glob, tests: 0 })
    }
}

/// One entry of the index as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedPath {
    /// The path, with `/` between components.
    pub path: String,
    /// What it is.
    pub mode: Mode,
}

#[derive(Debug)]
struct Entry {
    path: Box<str>,
    /// The path in lower case, where that differs: of large repositories, paths are the largest part of what is held.
    folded: Option<Box<str>>,
    depth: usize,
    mode: Mode,
    is_vendored: bool,
    is_side: bool,
    is_code: bool,
}

impl Entry {
    fn lower(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.path)
    }
}

/// The index's paths with what each glob matched.
#[derive(Debug)]
pub struct PathIndex {
    entries: Vec<Entry>,
    matches: Vec<Vec<u32>>,
    by_glob: HashMap<PathGlob, usize>,
    /// Numbers of the entries in the order of their paths in lower case.
    by_lower: Vec<u32>,
    case_collisions: Vec<String>,
    reserved: Vec<String>,
    results: Vec<OnceLock<(Truth, Option<String>)>>,
    bases: Bases,
}

/// Numbers of files that shares are taken of.
#[derive(Debug, Default, Clone, Copy)]
struct Bases {
    own: u64,
    own_code: u64,
    all: u64,
    all_code: u64,
}

impl PathIndex {
    /// Matches the paths against the globs; symbolic links and submodules take part like files.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = TrackedPath>, globs: &Globs, judging: &JudgingFile) -> Self {
        let vendor = FolderNames::new(&judging.vendor_folders);
        let side = FolderNames::new(&judging.side_folders);
        let code: HashSet<&str> = judging.code.iter().map(String::as_str).collect();
        let mut matches = vec![Vec::new(); globs.by_glob.len()];
        let mut entries = Vec::new();
        let mut found = Vec::new();
        let mut reserved = Vec::new();
        for TrackedPath { path, mode } in paths {
            let lower = path.to_lowercase();
            globs.set.matches_into(&lower, &mut found);
            let index = u32::try_from(entries.len()).unwrap_or(u32::MAX);
            for glob in &found {
                if let Some(list) = matches.get_mut(*glob) {
                    list.push(index);
                }
            }
            if !windows_can_hold(&path) {
                reserved.push(path.clone());
            }
            let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
            let extension = name.rfind('.').map_or("", |dot| &name[dot..]);
            entries.push(Entry {
                depth: lower.matches('/').count(),
                is_vendored: vendor.any(folders),
                is_side: side.any(folders),
                is_code: code.contains(extension) || code.contains(name),
                mode,
                folded: (lower != path).then(|| lower.into_boxed_str()),
                path: path.into_boxed_str(),
            });
        }
        let results = (0..globs.tests).map(|_| OnceLock::new()).collect();
        let bases = Bases::of(&entries);
        let by_lower = by_lower(&entries);
        let case_collisions = case_collisions(&entries, &by_lower);
        let by_glob = globs.by_glob.clone();
        Self { entries, matches, by_glob, by_lower, case_collisions, reserved, results, bases }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether nothing is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the paths that are equal to an earlier one but for case.
    #[must_use]
    pub fn case_collisions(&self) -> &[String] {
        &self.case_collisions
    }

    /// Returns the paths that Windows cannot hold.
    #[must_use]
    pub fn reserved(&self) -> &[String] {
        &self.reserved
    }

    /// Returns whether exactly this path is tracked, without regard to case.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.contains_lower(&path.to_lowercase())
    }

    fn contains_lower(&self, path: &str) -> bool {
        self.by_lower.binary_search_by(|index| self.entry(*index).lower().cmp(path)).is_ok()
    }

    /// Returns the matching paths, the shallowest first, then by name; vendored ones only when there is no other.
    #[must_use]
    pub fn shallowest(&self, globs: &[PathGlob], at_most: usize) -> Vec<&str> {
        let mut found: Vec<&Entry> = self.matching(globs).map(|index| self.entry(index)).collect();
        found.sort_by_key(|entry| (entry.is_vendored, entry.depth, entry.lower()));
        if found.iter().any(|entry| !entry.is_vendored) {
            found.retain(|entry| !entry.is_vendored);
        }
        found.iter().take(at_most).map(|entry| &*entry.path).collect()
    }

    /// Returns the first paths of one mode.
    #[must_use]
    pub fn of_mode(&self, mode: Mode, at_most: usize) -> Vec<&str> {
        self.entries.iter().filter(|entry| entry.mode == mode).take(at_most).map(|entry| &*entry.path).collect()
    }

    /// Returns the files that an extractor may read, the wanted order first, and whether there are more.
    #[must_use]
    pub fn planned(&self, plan: &super::kinds::ExtractorPlan) -> (Vec<&str>, bool) {
        let skipped: HashSet<u32> = plan.skip.iter().flat_map(|glob| self.hits(glob)).copied().collect();
        let rank = |index: u32| {
            plan.first.iter().position(|glob| self.hits(glob).binary_search(&index).is_ok()).unwrap_or(plan.first.len())
        };
        let mut found: Vec<(bool, usize, usize, &str, u32)> = Vec::new();
        let mut seen = HashSet::new();
        for glob in &plan.files {
            for index in self.hits(glob) {
                let entry = &self.entries[*index as usize];
                let is_file = matches!(entry.mode, Mode::Plain | Mode::Executable);
                if is_file && !skipped.contains(index) && seen.insert(*index) {
                    found.push((entry.is_vendored, rank(*index), entry.depth, &entry.path, *index));
                }
            }
        }
        if found.iter().any(|file| !file.0) {
            found.retain(|file| !file.0);
        }
        found.sort_unstable();
        (found.iter().take(plan.at_most).map(|file| file.3).collect(), found.len() > plan.at_most)
    }

    /// Evaluates a test of tracked paths; the text is the first match.
    ///
    /// The result of a rule set's test is kept, since rules are evaluated again after each round of reading.
    #[must_use]
    pub fn test(&self, test: &TrackedFields) -> (Truth, Option<String>) {
        match test.number.and_then(|number| self.results.get(number)) {
            Some(result) => result.get_or_init(|| self.evaluate(test)).clone(),
            None => self.evaluate(test),
        }
    }

    fn evaluate(&self, test: &TrackedFields) -> (Truth, Option<String>) {
        let mut count = 0_u64;
        let mut first: Option<&Entry> = None;
        for index in self.matching(&test.paths).filter(|index| self.is_wanted(*index, test)) {
            let entry = self.entry(index);
            count += 1;
            if first.is_none_or(|known| (entry.depth, entry.lower()) < (known.depth, known.lower())) {
                first = Some(entry);
            }
        }
        let mut holds = count >= test.needed() && test.at_most.is_none_or(|limit| count <= limit);
        if test.share_at_least.is_some() || test.share_at_most.is_some() {
            let base = self.base(test);
            #[expect(clippy::cast_precision_loss, reason = "an index holds far fewer than 2^53 entries")]
            let share = if base == 0 { None } else { Some(count as f64 / base as f64) };
            holds = holds
                && share.is_some_and(|share| {
                    test.share_at_least.is_none_or(|limit| share >= limit)
                        && test.share_at_most.is_none_or(|limit| share <= limit)
                });
        }
        let matched = first.map(|entry| match count {
            1 => entry.path.to_string(),
            _ => format!("{} ({count} such paths)", entry.path),
        });
        (Truth::from(holds), matched)
    }

    fn base(&self, test: &TrackedFields) -> u64 {
        let is_in_place = |entry: &Entry| test.everywhere || !entry.is_vendored;
        if !test.share_of_paths.is_empty() {
            return self.matching(&test.share_of_paths).filter(|index| is_in_place(self.entry(*index))).count() as u64;
        }
        match (test.share_of, test.everywhere) {
            (ShareBase::Code, false) => self.bases.own_code,
            (ShareBase::Files, false) => self.bases.own,
            (ShareBase::Code, true) => self.bases.all_code,
            (ShareBase::Files, true) => self.bases.all,
        }
    }

    fn is_wanted(&self, index: u32, test: &TrackedFields) -> bool {
        let entry = self.entry(index);
        (test.everywhere || !entry.is_vendored)
            && test.depth.is_none_or(|limit| entry.depth <= limit)
            && test.mode.is_none_or(|mode| entry.mode == mode)
            && test.in_side_folder.is_none_or(|wanted| entry.is_side == wanted)
            && !test.except.iter().any(|glob| self.hits(glob).binary_search(&index).is_ok())
            && (test.sibling.is_empty() || self.has_sibling(entry, &test.sibling))
            && (test.no_sibling.is_empty() || !self.has_sibling(entry, &test.no_sibling))
    }

    fn has_sibling(&self, entry: &Entry, endings: &[String]) -> bool {
        let (folder, name) = entry.lower().rsplit_once('/').unwrap_or(("", entry.lower()));
        let stem = name.rfind('.').map_or(name, |dot| &name[..dot]);
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        // An ending that begins with a slash is a whole name in the same folder.
        endings.iter().any(|ending| match ending.strip_prefix('/') {
            Some(name) => self.contains_lower(&format!("{prefix}{}", name.to_lowercase())),
            None => self.contains_lower(&format!("{prefix}{stem}{ending}")),
        })
    }

    fn entry(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }

    fn matching<'a>(&'a self, globs: &'a [PathGlob]) -> Box<dyn Iterator<Item = u32> + 'a> {
        match globs {
            [] => Box::new(0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)),
            [glob] => Box::new(self.hits(glob).iter().copied()),
            many => {
                let mut all: Vec<u32> = many.iter().flat_map(|glob| self.hits(glob)).copied().collect();
                all.sort_unstable();
                all.dedup();
                Box::new(all.into_iter())
            }
        }
    }

    fn hits(&self, glob: &PathGlob) -> &[u32] {
        self.by_glob.get(glob).and_then(|index| self.matches.get(*index)).map_or(&[], Vec::as_slice)
    }
}

fn by_lower(entries: &[Entry]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(entries.len()).unwrap_or(u32::MAX)).collect();
    let key = |index: &u32| (entries[*index as usize].lower(), *index);
    order.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
    order
}

/// Returns the paths that are equal to an earlier one but for case, in the index's order.
fn case_collisions(entries: &[Entry], by_lower: &[u32]) -> Vec<String> {
    let entry = |index: u32| &entries[index as usize];
    let pairs = by_lower.windows(2).filter(|pair| entry(pair[0]).lower() == entry(pair[1]).lower());
    let mut later: Vec<u32> = pairs.map(|pair| pair[1]).collect();
    later.sort_unstable();
    later.into_iter().map(|index| entry(index).path.to_string()).collect()
}

impl Bases {
    fn of(entries: &[Entry]) -> Self {
        let mut bases = Self::default();
        for entry in entries {
            let (own, code) = (u64::from(!entry.is_vendored), u64::from(entry.is_code));
            bases.own += own;
            bases.own_code += own * code;
            bases.all += 1;
            bases.all_code += code;
        }
        bases
    }
}

/// Names of folders, some with a trailing star.
struct FolderNames<'a> {
    whole: HashSet<&'a str>,
    prefixes: Vec<&'a str>,
}

impl<'a> FolderNames<'a> {
    fn new(names: &'a [String]) -> Self {
        let (prefixes, whole): (Vec<&str>, Vec<&str>) =
            names.iter().map(String::as_str).partition(|name| name.ends_with('*'));
        let prefixes = prefixes.into_iter().map(|name| name.trim_end_matches('*')).collect();
        Self { whole: whole.into_iter().collect(), prefixes }
    }

    fn any(&self, folders: &str) -> bool {
        folders
            .split('/')
            .any(|name| self.whole.contains(name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix)))
    }
}

/// Returns whether Windows can hold every component of a path.
///
/// Reserved are the names of devices, with or without an extension, the characters `<>:"|?*\` and controls, and a
/// trailing dot or blank (<https://learn.microsoft.com/windows/win32/fileio/naming-a-file>).
#[must_use]
pub fn windows_can_hold(path: &str) -> bool {
    path.split('/').all(|name| {
        let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
        let is_numbered = |prefix: &str| {
            stem.strip_prefix(prefix)
                .is_some_and(|rest| rest.len() == 1 && rest.chars().all(|c| ('1'..='9').contains(&c)))
        };
        let is_device =
            matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || is_numbered("com") || is_numbered("lpt");
        !is_device
            && !name.ends_with(['.', ' '])
            && !name.chars().any(|c| c.is_control() || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\'))
    })
}

/// Writes out `{1..60}` in the paths of an example.
#[must_use]
pub fn expand(pattern: &str) -> Vec<String> {
    let parts = pattern.split_once('{').and_then(|(before, rest)| {
        let (range, after) = rest.split_once('}')?;
        let (first, last) = range.split_once("..")?;
        Some((before, first.parse::<u32>().ok()?, last.parse::<u32>().ok()?, after))
    });
    match parts {
        Some((before, first, last, after)) => {
            (first..=last).flat_map(|number| expand(&format!("{before}{number}{after}"))).collect()
        }
        None => vec![pattern.to_owned()],
    }
}

/// Counts of the index that conditions ask for, by property.
pub type IndexCounts = BTreeMap<super::condition::IndexProperty, u64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_windows_cannot_hold_are_known() {
        for bad in ["aux.c", "src/con", "a:b", "doc/what?.md", "x/trailing.", "blank ", "com1.txt", "nul"] {
            assert!(!windows_can_hold(bad), "{bad}");
        }
        for good in ["auxiliary.c", "console", "com", "com10", "a/.gitignore", "lpt"] {
            assert!(windows_can_hold(good), "{good}");
        }
    }

    #[test]
    fn a_range_in_a_path_is_written_out() {
        assert_eq!(expand("a{1..3}.c"), ["a1.c", "a2.c", "a3.c"]);
        assert_eq!(expand("plain{x}"), ["plain{x}"]);
    }
}
