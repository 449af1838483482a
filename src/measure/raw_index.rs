//! The index file as bytes: where each entry's stat data are, so that they can be replaced and nothing else changes.
//!
//! Patching the bytes keeps the version, the path compression and every extension as git wrote them, which writing the
//! decoded index anew would not (the untracked cache would be lost, for one). Format: git's
//! `Documentation/gitformat-index.txt`.

use std::ffi::CStr;
use std::ops::Range;

use crate::error::Error;

/// Bytes of the header: signature, version, number of entries.
const HEADER: usize = 12;
/// Bytes of an entry's stat data, the mode included.
const STAT: usize = 40;
/// Flag of an entry that has a second flag word.
const EXTENDED: u16 = 0x4000;
/// Flag of an entry that `git update-index --assume-unchanged` marked.
const ASSUME_UNCHANGED: u16 = 0x8000;
/// Bits of the stage in the flags.
const STAGE: u16 = 0x3000;
/// Flag in the second word: outside the sparse checkout.
const SKIP_WORKTREE: u16 = 0x4000;
/// Flag in the second word: added by `git add --intent-to-add`.
const INTENT_TO_ADD: u16 = 0x2000;

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A submodule.
    Gitlink,
    /// A whole directory outside the sparse checkout.
    SparseDirectory,
}

/// Stat data as the index has them; times in seconds and nanoseconds, sizes and numbers cut to 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryStat {
    /// Change time.
    pub ctime: (u32, u32),
    /// Modification time.
    pub mtime: (u32, u32),
    /// Device; git ignores it by default.
    pub dev: u32,
    /// Inode number.
    pub ino: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes, modulo 2^32.
    pub size: u32,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEntry {
    stat_offset: u32,
    end: u32,
    name: Range<u32>,
    /// Mode as git records it (0100644, 0120000, ...).
    pub mode: u32,
    flags: u16,
    flags2: u16,
}

impl RawEntry {
    /// Returns what the entry stands for; an unknown mode counts as a file.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.mode & 0o170_000 {
            0o120_000 => Kind::Symlink,
            0o160_000 => Kind::Gitlink,
            0o040_000 => Kind::SparseDirectory,
            _ => Kind::File,
        }
    }

    /// Returns whether the file is executable.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.kind() == Kind::File && self.mode & 0o111 != 0
    }

    /// Returns the stage: 0, or 1 to 3 in a conflict.
    #[must_use]
    pub fn stage(&self) -> u8 {
        // Two bits, so it fits.
        ((self.flags & STAGE) >> 12) as u8
    }

    /// Returns whether the entry is outside the sparse checkout.
    #[must_use]
    pub fn is_skip_worktree(&self) -> bool {
        self.flags2 & SKIP_WORKTREE != 0
    }

    /// Returns whether only the intention to add it is recorded.
    #[must_use]
    pub fn is_intent_to_add(&self) -> bool {
        self.flags2 & INTENT_TO_ADD != 0
    }

    /// Returns whether git was told to take the file as unchanged.
    #[must_use]
    pub fn is_assume_unchanged(&self) -> bool {
        self.flags & ASSUME_UNCHANGED != 0
    }

    /// Returns whether a file or a link should be in the worktree for it.
    #[must_use]
    pub fn is_in_worktree(&self) -> bool {
        matches!(self.kind(), Kind::File | Kind::Symlink) && !self.is_skip_worktree()
    }
}

/// An index file's layout. Names are kept apart from the bytes, each ended by a NUL, ready for system calls.
#[derive(Debug)]
pub struct RawIndex {
    /// Format version: 2, 3 or 4.
    pub version: u32,
    /// Entries in file order, which is name order.
    pub entries: Vec<RawEntry>,
    names: Vec<u8>,
    extensions: usize,
    hash: gix::hash::Kind,
}

impl RawIndex {
    /// Finds the entries in an index file's bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when the bytes are no index of version 2 to 4 or end too early.
    pub fn parse(bytes: &[u8], hash: gix::hash::Kind) -> Result<Self, Error> {
        parse(bytes, hash).ok_or_else(|| {
            Error::refused("the index cannot be decoded", "run `git status` there to see what git makes of it")
        })
    }

    /// Returns an entry's path as bytes.
    #[must_use]
    pub fn name(&self, entry: &RawEntry) -> &[u8] {
        self.names.get(entry.name.start as usize..entry.name.end as usize).unwrap_or_default()
    }

    /// Returns an entry's path for a system call; empty when it holds a NUL, which no valid path does.
    #[must_use]
    pub fn c_name(&self, entry: &RawEntry) -> &CStr {
        let with_nul = self.names.get(entry.name.start as usize..=entry.name.end as usize).unwrap_or(b"\0");
        CStr::from_bytes_with_nul(with_nul).unwrap_or(c"")
    }

    /// Returns the number of the first entry with this path.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        let number = self.entries.partition_point(|entry| self.name(entry) < path);
        (self.entries.get(number).map(|entry| self.name(entry)) == Some(path)).then_some(number)
    }

    /// Returns whether an entry is below this directory.
    #[must_use]
    pub fn holds_below(&self, dir: &[u8]) -> bool {
        let with_slash = [dir, b"/"].concat();
        let number = self.entries.partition_point(|entry| self.name(entry) < with_slash.as_slice());
        self.entries.get(number).is_some_and(|entry| self.name(entry).starts_with(&with_slash))
    }

    /// Returns an entry's stat data.
    #[must_use]
    pub fn stat(&self, bytes: &[u8], entry: &RawEntry) -> EntryStat {
        let word = |index: usize| read_u32(bytes, entry.stat_offset as usize + 4 * index).unwrap_or(0);
        EntryStat {
            ctime: (word(0), word(1)),
            mtime: (word(2), word(3)),
            dev: word(4),
            ino: word(5),
            // Word 6 is the mode.
            uid: word(7),
            gid: word(8),
            size: word(9),
        }
    }

    /// Writes an entry's stat data into the bytes; the mode stays.
    pub fn set_stat(&self, bytes: &mut [u8], entry: &RawEntry, stat: &EntryStat) {
        let words = [
            Some(stat.ctime.0),
            Some(stat.ctime.1),
            Some(stat.mtime.0),
            Some(stat.mtime.1),
            Some(stat.dev),
            Some(stat.ino),
            None,
            Some(stat.uid),
            Some(stat.gid),
            Some(stat.size),
        ];
        let from = entry.stat_offset as usize;
        if let Some(place) = bytes.get_mut(from..from + STAT) {
            for (slot, word) in place.chunks_exact_mut(4).zip(words) {
                if let Some(word) = word {
                    slot.copy_from_slice(&word.to_be_bytes());
                }
            }
        }
    }

    /// Returns the object id of an entry's content.
    #[must_use]
    pub fn id<'a>(&self, bytes: &'a [u8], entry: &RawEntry) -> &'a [u8] {
        let start = entry.stat_offset as usize + STAT;
        bytes.get(start..start + self.hash.len_in_bytes()).unwrap_or_default()
    }

    /// Returns whether an entry's content is the empty blob.
    #[must_use]
    pub fn is_empty_blob(&self, bytes: &[u8], entry: &RawEntry) -> bool {
        self.id(bytes, entry) == gix::ObjectId::empty_blob(self.hash).as_slice()
    }

    /// Returns the hash that names objects.
    #[must_use]
    pub fn hash(&self) -> gix::hash::Kind {
        self.hash
    }

    /// Returns the content of an extension (`TREE`, `UNTR`, ...); `None` when the file has none of this signature.
    #[must_use]
    pub fn extension<'a>(&self, bytes: &'a [u8], signature: [u8; 4]) -> Option<&'a [u8]> {
        let end = bytes.len().checked_sub(self.hash.len_in_bytes())?;
        let mut at = self.extensions;
        while at + 8 <= end {
            let length = read_u32(bytes, at + 4)? as usize;
            if bytes.get(at..at + 4) == Some(&signature[..]) {
                return bytes.get(at + 8..at + 8 + length);
            }
            at += 8 + length;
        }
        None
    }

    /// Returns an index with the first `count` entries alone and at most one extension, its trailer included.
    #[must_use]
    pub fn truncated(&self, bytes: &[u8], count: usize, extension: Option<([u8; 4], &[u8])>) -> Vec<u8> {
        let end = match count.checked_sub(1) {
            None => HEADER,
            Some(last) => self.entries.get(last).map_or(self.extensions, |entry| entry.end as usize),
        };
        let mut cut = bytes.get(..end).unwrap_or(bytes).to_vec();
        let count = u32::try_from(count.min(self.entries.len())).unwrap_or(u32::MAX);
        if let Some(place) = cut.get_mut(8..HEADER) {
            place.copy_from_slice(&count.to_be_bytes());
        }
        if let Some((signature, data)) = extension {
            cut.extend_from_slice(&signature);
            cut.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
            cut.extend_from_slice(data);
        }
        cut.extend(std::iter::repeat_n(0, self.hash.len_in_bytes()));
        self.seal(&mut cut);
        cut
    }

    /// Writes the trailing checksum anew after the bytes were changed.
    pub fn seal(&self, bytes: &mut [u8]) {
        let Some(end) = bytes.len().checked_sub(self.hash.len_in_bytes()) else { return };
        let mut hasher = gix::hash::hasher(self.hash);
        hasher.update(&bytes[..end]);
        // An all-zero trailer means 'not hashed' to git, and is right too.
        match hasher.try_finalize() {
            Ok(id) => bytes[end..].copy_from_slice(id.as_slice()),
            Err(_) => bytes[end..].fill(0),
        }
    }
}

fn parse(bytes: &[u8], hash: gix::hash::Kind) -> Option<RawIndex> {
    if bytes.get(..4)? != b"DIRC" || u32::try_from(bytes.len()).is_err() {
        return None;
    }
    let version = read_u32(bytes, 4)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = read_u32(bytes, 8)? as usize;
    // No entry is shorter than its stat data, id and flags, so that a forged count cannot ask for memory.
    if count > bytes.len() / (STAT + hash.len_in_bytes()) {
        return None;
    }
    let mut index = RawIndex {
        version,
        entries: Vec::with_capacity(count),
        names: Vec::with_capacity(bytes.len() / 2),
        extensions: HEADER,
        hash,
    };
    let mut previous = 0..0;
    for _ in 0..count {
        let entry = parse_entry(bytes, &mut index, &previous)?;
        previous = entry.name.start as usize..entry.name.end as usize;
        index.entries.push(entry);
    }
    (index.extensions + hash.len_in_bytes() <= bytes.len()).then_some(index)
}

/// Reads the entry at `index.extensions`, adds its name and moves on behind it.
fn parse_entry(bytes: &[u8], index: &mut RawIndex, previous: &Range<usize>) -> Option<RawEntry> {
    let start = index.extensions;
    let mode = read_u32(bytes, start + 24)?;
    let mut at = start + STAT + index.hash.len_in_bytes();
    let flags = read_u16(bytes, at)?;
    at += 2;
    let mut flags2 = 0;
    if flags & EXTENDED != 0 {
        flags2 = read_u16(bytes, at)?;
        at += 2;
    }
    let name_start = index.names.len();
    if index.version == 4 {
        let (strip, next) = read_varint(bytes, at)?;
        at = next;
        let keep = previous.len().checked_sub(strip)?;
        index.names.extend_from_within(previous.start..previous.start + keep);
    }
    let rest = bytes.get(at..)?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    index.names.extend_from_slice(&rest[..length]);
    let name_end = index.names.len();
    index.names.push(0);
    at += length + 1;
    if index.version < 4 {
        // One to eight NULs end the name, so that the entry's length is a multiple of eight.
        at = start + (at - start).next_multiple_of(8);
    }
    if at > bytes.len() {
        return None;
    }
    index.extensions = at;
    Some(RawEntry {
        stat_offset: u32::try_from(start).ok()?,
        end: u32::try_from(at).ok()?,
        name: u32::try_from(name_start).ok()?..u32::try_from(name_end).ok()?,
        mode,
        flags,
        flags2,
    })
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Reads git's offset-style variable-length number; returns it and where it ends.
fn read_varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measure::files::Files;
    use crate::measure::testing::index_of;

    const SHA1: gix::hash::Kind = gix::hash::Kind::Sha1;

    #[test]
    fn entries_are_found_by_name_and_their_stat_data_replaced() {
        let mut bytes = index_of(&["a", "b/c", "b/d"]);
        let index = RawIndex::parse(&bytes, SHA1).unwrap();
        assert_eq!(index.find(b"b/c"), Some(1));
        assert_eq!(index.find(b"b"), None);
        assert!(index.holds_below(b"b") && !index.holds_below(b"a"));
        let stat = EntryStat { ctime: (1, 2), mtime: (3, 4), dev: 5, ino: 6, uid: 7, gid: 8, size: 9 };
        let before = bytes.clone();
        index.set_stat(&mut bytes, &index.entries[1], &stat);
        index.seal(&mut bytes);
        assert_eq!(index.stat(&bytes, &index.entries[1]), stat);
        assert_eq!(index.stat(&bytes, &index.entries[0]), EntryStat::default());
        assert_eq!(bytes.len(), before.len());
        let again = RawIndex::parse(&bytes, SHA1).unwrap();
        assert_eq!(again.entries, index.entries);
    }

    #[test]
    fn an_index_cut_short_or_of_another_kind_is_refused() {
        let bytes = index_of(&["a", "b/c"]);
        for cut in [0, 11, 12, 40, 80, bytes.len() - 30] {
            assert!(RawIndex::parse(&bytes[..cut], SHA1).is_err(), "{cut}");
        }
        assert!(RawIndex::parse(b"not an index at all, and long enough to be one", SHA1).is_err());
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            version in 2_u8..5,
            count in 0_usize..5,
        ) {
            let mut bytes = index_of(&["a", "b/c", "b/d", "e/f/g"]);
            bytes[7] = version;
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if let Ok(index) = RawIndex::parse(&bytes, SHA1) {
                let _ = Files::of(&index);
                let cut = index.truncated(&bytes, count, None);
                prop_assert!(RawIndex::parse(&cut, SHA1).is_ok());
                let _ = index.extension(&bytes, *b"TREE");
                let _ = crate::measure::own_commit::make(&index, &bytes, count);
            }
        }
    }
}
