//! The paths that the index puts into the worktree, and the directories that hold them.

use std::ops::Range;

use crate::error::{Error, printable_text};
use crate::measure::raw_index::{Kind, RawIndex};

/// A directory that holds a tracked file at any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dir {
    /// Number of an entry below it, whose name begins with the directory's path.
    entry: u32,
    /// Length of the path in bytes; 0 for the root.
    pub length: u32,
    /// Number of the directory that holds it; the root holds itself.
    pub parent: u32,
    /// Components of its path; 0 for the root.
    pub depth: u32,
    /// Number of tracked directories directly in it.
    pub subdirs: u32,
    files: Range<u32>,
}

impl Dir {
    /// Returns whether one of the first `entries` entries of the index is below it.
    #[must_use]
    pub fn is_before(&self, entries: usize) -> bool {
        (self.entry as usize) < entries
    }
}

/// Files and directories of the worktree as the index has them.
#[derive(Debug)]
pub struct Files {
    /// Numbers of the entries that should be files or links in the worktree, in index order, each path once.
    pub paths: Vec<u32>,
    /// Numbers of the entries that are submodules.
    pub gitlinks: Vec<u32>,
    /// The directories; the root is the first, each stands behind the one that holds it.
    pub dirs: Vec<Dir>,
    by_dir: Vec<u32>,
}

impl Files {
    /// Arranges the entries of an index.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when a path could lead out of the worktree or into its git dir, as only a forged index has.
    pub fn of(index: &RawIndex) -> Result<Self, Error> {
        let root = Dir { entry: 0, length: 0, parent: 0, depth: 0, subdirs: 0, files: 0..0 };
        let mut files = Self { paths: Vec::new(), gitlinks: Vec::new(), dirs: vec![root], by_dir: Vec::new() };
        let mut dir_of: Vec<u32> = Vec::new();
        let mut open: Vec<u32> = vec![0];
        let mut previous: Option<&[u8]> = None;
        for (number, entry) in index.entries.iter().enumerate() {
            let name = index.name(entry);
            if entry.kind() == Kind::SparseDirectory || entry.is_skip_worktree() || previous == Some(name) {
                continue;
            }
            check(name)?;
            previous = Some(name);
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let dir = files.enter(index, name, number, &mut open);
            if entry.kind() == Kind::Gitlink {
                files.gitlinks.push(number);
            } else {
                files.paths.push(number);
                dir_of.push(dir);
            }
        }
        files.group(&dir_of);
        Ok(files)
    }

    /// Makes `open` the chain of directories above `name`, adds new ones, and returns the innermost.
    fn enter(&mut self, index: &RawIndex, name: &[u8], number: u32, open: &mut Vec<u32>) -> u32 {
        while let [.., _, innermost] = open[..] {
            let path = self.path(index, innermost as usize);
            if name.starts_with(path) && name.get(path.len()) == Some(&b'/') {
                break;
            }
            open.pop();
        }
        let mut parent = open.last().copied().unwrap_or(0);
        let mut from = match self.dirs[parent as usize].length as usize {
            0 => 0,
            length => length + 1,
        };
        while let Some(slash) = name[from..].iter().position(|byte| *byte == b'/') {
            let length = from + slash;
            let depth = self.dirs[parent as usize].depth + 1;
            self.dirs[parent as usize].subdirs += 1;
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            self.dirs.push(Dir { entry: number, length, parent, depth, subdirs: 0, files: 0..0 });
            parent = u32::try_from(self.dirs.len() - 1).unwrap_or(u32::MAX);
            open.push(parent);
            from = length as usize + 1;
        }
        parent
    }

    /// Sorts the files by directory, keeping their order within each.
    fn group(&mut self, dir_of: &[u32]) {
        let mut counts = vec![0_u32; self.dirs.len()];
        for dir in dir_of {
            counts[*dir as usize] += 1;
        }
        let mut start = 0;
        for (dir, count) in self.dirs.iter_mut().zip(&counts) {
            dir.files = start..start;
            start += count;
        }
        self.by_dir = vec![0; dir_of.len()];
        for (dir, entry) in dir_of.iter().zip(&self.paths) {
            let files = &mut self.dirs[*dir as usize].files;
            self.by_dir[files.end as usize] = *entry;
            files.end += 1;
        }
    }

    /// Returns a directory's path; empty for the root.
    #[must_use]
    pub fn path<'a>(&self, index: &'a RawIndex, dir: usize) -> &'a [u8] {
        let dir = &self.dirs[dir];
        index.entries.get(dir.entry as usize).map_or(&[], |entry| &index.name(entry)[..dir.length as usize])
    }

    /// Returns the numbers of the entries that are files or links directly in a directory.
    #[must_use]
    pub fn directly_in(&self, dir: usize) -> &[u32] {
        let files = &self.dirs[dir].files;
        &self.by_dir[files.start as usize..files.end as usize]
    }
}

/// Refuses a path that no worktree can have: it could lead anywhere.
fn check(name: &[u8]) -> Result<(), Error> {
    let is_bad = |part: &[u8]| {
        part.is_empty() || part == b"." || part == b".." || part.eq_ignore_ascii_case(b".git") || part.len() > 255
    };
    if name.split(|byte| *byte == b'/').any(is_bad) {
        return Err(Error::refused(
            format!(
                "the index holds `{}`, a path that no worktree can have",
                printable_text(&String::from_utf8_lossy(name))
            ),
            "do not use this repository before you know where it came from; `git fsck` tells more",
        ));
    }
    Ok(())
}

/// Returns the numbers 0 to `count - 1` in bit-reversed (van der Corput) order.
///
/// Wherever one stops, what was taken is spread evenly over the whole
/// (<https://en.wikipedia.org/wiki/Van_der_Corput_sequence>).
#[must_use]
pub fn spread(count: usize) -> Vec<u32> {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = |value: u32| if bits == 0 { 0 } else { value.reverse_bits() >> (32 - bits) };
    let all = u32::try_from(count.next_power_of_two()).unwrap_or(u32::MAX);
    (0..all).map(reversed).filter(|value| (*value as usize) < count).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measure::testing::index_of;

    #[test]
    fn directories_stand_behind_the_one_that_holds_them_and_know_their_files() {
        let bytes = index_of(&["a", "b.x/g", "b/c/d", "b/c/e", "b/f", "z"]);
        let index = RawIndex::parse(&bytes, gix::hash::Kind::Sha1).unwrap();
        let files = Files::of(&index).unwrap();
        let paths: Vec<_> =
            (0..files.dirs.len()).map(|dir| String::from_utf8_lossy(files.path(&index, dir)).into_owned()).collect();
        assert_eq!(paths, ["", "b.x", "b", "b/c"]);
        let names = |dir: usize| -> Vec<_> {
            let name = |e: &u32| String::from_utf8_lossy(index.name(&index.entries[*e as usize])).into_owned();
            files.directly_in(dir).iter().map(name).collect()
        };
        assert_eq!(names(0), ["a", "z"]);
        assert_eq!(names(2), ["b/f"]);
        assert_eq!(names(3), ["b/c/d", "b/c/e"]);
        assert_eq!(files.dirs[3].parent, 2);
        assert_eq!(files.dirs[0].subdirs, 2);
    }

    #[test]
    fn a_path_out_of_the_worktree_is_refused() {
        for bad in ["../x", "a/../x", "/etc/x", ".git/config", "a/.GIT/hooks/x", "a//b"] {
            let bytes = index_of(&[bad]);
            let index = RawIndex::parse(&bytes, gix::hash::Kind::Sha1).unwrap();
            assert!(Files::of(&index).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn spreading_takes_each_number_once(count in 0_usize..3000) {
            let mut order = spread(count);
            order.sort_unstable();
            prop_assert_eq!(order, (0..u32::try_from(count).unwrap()).collect::<Vec<_>>());
        }

        #[test]
        fn the_first_part_is_spread_evenly(count in 64_usize..3000) {
            let taken = &spread(count)[..16];
            let width = count.next_power_of_two() / 16;
            let below = taken.iter().filter(|n| (**n as usize) < count / 2).count();
            // With entries beyond `count` left out, each half keeps its share to within one slot.
            let expected = (count / 2).div_ceil(width);
            prop_assert!(below.abs_diff(expected * 16 / count.div_ceil(width)) <= 2, "{} of 16", below);
        }
    }
}
