//! The shape of git's preload: which thread stats what, in which order; pure.
//!
//! As in git's `preload-index.c` and `symlinks.c`: the entries are shared out in contiguous ranges, and before a file
//! each of its leading directories is looked at that the file before it was not in.

use std::ops::Range;

use crate::measure::raw_index::{Kind, RawEntry, RawIndex};

/// Most threads that git uses (`MAX_PARALLEL`).
const MOST_THREADS: usize = 20;
/// Entries that make another thread worth starting (`THREAD_COST`).
const ENTRIES_A_THREAD: usize = 500;

/// Calls and the path components in them; with a cost per call and one per component, the time of any part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Number of stat calls.
    pub calls: u64,
    /// Sum of the components of their paths.
    pub components: u64,
}

/// Git's division of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Entries of each thread.
    pub ranges: Vec<Range<usize>>,
    /// What each thread has to do, exactly.
    pub work: Vec<Work>,
}

impl Shape {
    /// Divides an index as git does; with `preloads` false (`core.preloadIndex=false`) one thread does it all.
    #[must_use]
    pub fn of(index: &RawIndex, preloads: bool) -> Self {
        let count = index.entries.len();
        let threads = match count / ENTRIES_A_THREAD {
            many if preloads && many >= 2 => many.min(MOST_THREADS),
            _ => 1,
        };
        let each = count.div_ceil(threads).max(1);
        let ranges: Vec<Range<usize>> =
            (0..threads).map(|thread| (thread * each).min(count)..((thread + 1) * each).min(count)).collect();
        let work = ranges
            .iter()
            .map(|range| {
                let mut work = Work::default();
                let mut cursor = Cursor::new(index, range.clone());
                for number in range.clone() {
                    cursor.calls(number, |_, components| {
                        work.calls += 1;
                        work.components += components;
                    });
                }
                work
            })
            .collect();
        Self { ranges, work }
    }
}

/// Walks through a thread's range and tells the calls of each entry.
#[derive(Debug)]
pub struct Cursor<'a> {
    index: &'a RawIndex,
    range: Range<usize>,
    /// The entry whose directory is known, and its number.
    last: Option<usize>,
}

impl<'a> Cursor<'a> {
    /// Starts in a range in which nothing is known yet.
    #[must_use]
    pub fn new(index: &'a RawIndex, range: Range<usize>) -> Self {
        Self { index, range, last: None }
    }

    /// Calls `each` for every stat call of entry `number`: the path, and its number of components.
    ///
    /// The entry before it in the *index* is the one whose directories are known, also when it was not visited: git
    /// would have had it just then.
    pub fn calls(&mut self, number: usize, mut each: impl FnMut(&'a [u8], u64)) {
        let Some(entry) = self.index.entries.get(number).filter(|entry| is_looked_at(entry)) else { return };
        if self.last.is_none_or(|last| last + 1 != number) {
            let before = self.range.start..number.clamp(self.range.start, self.range.end);
            self.last = before.rev().find(|number| self.index.entries.get(*number).is_some_and(is_looked_at));
        }
        let known = self.last.map_or(&[][..], |last| directory(self.index.name(&self.index.entries[last])));
        let name = self.index.name(entry);
        let mut components = 0;
        for (at, byte) in name.iter().enumerate() {
            if *byte == b'/' {
                components += 1;
                let is_known = known.starts_with(&name[..at]) && matches!(known.get(at), None | Some(b'/'));
                if !is_known {
                    each(&name[..at], components);
                }
            }
        }
        each(name, components + 1);
        self.last = Some(number);
    }
}

/// Returns whether git stats the entry in its preload.
fn is_looked_at(entry: &RawEntry) -> bool {
    entry.stage() == 0 && entry.is_in_worktree() && entry.kind() != Kind::Gitlink
}

fn directory(name: &[u8]) -> &[u8] {
    name.iter().rposition(|byte| *byte == b'/').map_or(&[], |slash| &name[..slash])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::index_of;

    fn calls(paths: &[&str], range: Range<usize>) -> Vec<String> {
        let bytes = index_of(paths);
        let index = RawIndex::parse(&bytes, gix::hash::Kind::Sha1).unwrap();
        let mut cursor = Cursor::new(&index, range.clone());
        let mut found = Vec::new();
        for number in range {
            cursor.calls(number, |path, components| {
                let path = String::from_utf8_lossy(path).into_owned();
                assert_eq!(path.split('/').count() as u64, components);
                found.push(path);
            });
        }
        found
    }

    #[test]
    fn leading_directories_are_looked_at_when_they_change() {
        assert_eq!(
            calls(&["a/b/c", "a/b/d", "a/e", "a/f/g", "h"], 0..5),
            ["a", "a/b", "a/b/c", "a/b/d", "a/e", "a/f", "a/f/g", "h"]
        );
        assert_eq!(calls(&["ab/c", "abc/d"], 0..2), ["ab", "ab/c", "abc", "abc/d"]);
    }

    #[test]
    fn a_range_begins_without_knowledge_and_a_jump_knows_the_entry_before() {
        assert_eq!(calls(&["a/b/c", "a/b/d"], 1..2), ["a", "a/b", "a/b/d"]);
        let bytes = index_of(&["a/b/c", "a/b/d", "a/b/e"]);
        let index = RawIndex::parse(&bytes, gix::hash::Kind::Sha1).unwrap();
        let mut cursor = Cursor::new(&index, 0..3);
        let mut found = 0;
        cursor.calls(2, |_, _| found += 1);
        assert_eq!(found, 1);
    }

    #[test]
    fn threads_follow_from_the_number_of_entries() {
        for (count, preloads, threads) in [(999, true, 1), (1000, true, 2), (30_000, true, 20), (30_000, false, 1)] {
            let names: Vec<String> = (0..count).map(|number| format!("f{number:06}")).collect();
            let bytes = index_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let index = RawIndex::parse(&bytes, gix::hash::Kind::Sha1).unwrap();
            let shape = Shape::of(&index, preloads);
            assert_eq!(shape.ranges.len(), threads);
            assert_eq!(shape.work.iter().map(|work| work.calls).sum::<u64>(), count);
            assert_eq!(shape.ranges.last().unwrap().end as u64, count);
        }
    }
}
