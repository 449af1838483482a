//! A commit of exactly what an index holds, for a copy whose HEAD cannot be taken over.
//!
//! Writing the trees with git would make thousands of files. With the ids of all trees in the index's cache of trees,
//! git needs two objects: the commit and the root tree. Format of the cache: git's `Documentation/gitformat-index.txt`.

use crate::error::Error;
use crate::measure::objects::Object;
use crate::measure::raw_index::{Kind, RawEntry, RawIndex};

/// What makes an index look committed.
#[derive(Debug)]
pub struct OwnCommit {
    /// Id of the commit, in hex.
    pub commit: String,
    /// The commit, the root tree, and the trees that the cache cannot vouch for.
    pub objects: Vec<Object>,
    /// The index: the same entries, the cache of trees, no other extension.
    pub index: Vec<u8>,
}

/// Makes a commit of the first `count` entries of an index.
///
/// # Errors
///
/// [`Error::Refused`] when an id cannot be computed.
pub fn make(index: &RawIndex, bytes: &[u8], count: usize) -> Result<OwnCommit, Error> {
    let count = count.min(index.entries.len());
    let mut trees = Trees { index, bytes, objects: Vec::new() };
    let root = trees.tree(0..count, 0, b"")?;
    let id = |kind: &str, data: &[u8]| object_id(index.hash(), kind, data);
    let text = format!("tree {}\nauthor rehome <rehome> 0 +0000\ncommitter rehome <rehome> 0 +0000\n\ncopy\n", root.id);
    let commit = id("commit", text.as_bytes())?.to_string();
    let mut objects = trees.objects;
    objects.push(Object { id: commit.clone(), kind: "commit".to_owned(), data: text.into_bytes() });
    objects.push(Object { id: root.id.to_string(), kind: "tree".to_owned(), data: root.data });
    Ok(OwnCommit { commit, objects, index: index.truncated(bytes, count, Some((*b"TREE", &root.cache))) })
}

struct Trees<'a> {
    index: &'a RawIndex,
    bytes: &'a [u8],
    objects: Vec<Object>,
}

struct Tree {
    id: gix::ObjectId,
    data: Vec<u8>,
    /// Its entry in the cache, with those of its subtrees.
    cache: Vec<u8>,
    /// Whether the cache vouches for it: git does not, once something in it is in conflict or only intended.
    is_valid: bool,
}

impl Trees<'_> {
    /// Makes the tree of entries whose paths begin with the same `prefix` bytes, a directory and its slash.
    fn tree(&mut self, range: std::ops::Range<usize>, prefix: usize, name: &[u8]) -> Result<Tree, Error> {
        let (mut data, mut below) = (Vec::new(), Vec::new());
        let (mut is_valid, mut subtrees, mut at) = (true, 0, range.start);
        while at < range.end {
            let entry = &self.index.entries[at];
            let full = self.index.name(entry);
            let rest = full.get(prefix..).unwrap_or_default();
            let slash = rest.iter().position(|byte| *byte == b'/').filter(|_| entry.kind() != Kind::SparseDirectory);
            let Some(slash) = slash else {
                at += 1;
                if entry.stage() != 0 || entry.is_intent_to_add() {
                    is_valid = false;
                    continue;
                }
                let base = rest.strip_suffix(b"/").unwrap_or(rest);
                push(&mut data, entry.mode, base, self.index.id(self.bytes, entry));
                continue;
            };
            let start = &full[..=prefix + slash];
            let is_below = |entry: &RawEntry| self.index.name(entry).starts_with(start);
            // At least this entry itself, however a damaged index is sorted.
            let end = self.index.entries[at..range.end].partition_point(is_below).max(1);
            let child = self.tree(at..at + end, prefix + slash + 1, &rest[..slash])?;
            at += end;
            subtrees += 1;
            below.extend_from_slice(&child.cache);
            is_valid &= child.is_valid;
            if !child.data.is_empty() {
                push(&mut data, 0o40_000, &rest[..slash], child.id.as_slice());
            }
            if !child.is_valid {
                self.objects.push(Object { id: child.id.to_string(), kind: "tree".to_owned(), data: child.data });
            }
        }
        let id = object_id(self.index.hash(), "tree", &data)?;
        let mut cache = [name, b"\0"].concat();
        let entries = if is_valid { range.len().to_string() } else { "-1".to_owned() };
        cache.extend_from_slice(format!("{entries} {subtrees}\n").as_bytes());
        if is_valid {
            cache.extend_from_slice(id.as_slice());
        }
        cache.extend_from_slice(&below);
        Ok(Tree { id, data, cache, is_valid })
    }
}

fn push(data: &mut Vec<u8>, mode: u32, name: &[u8], id: &[u8]) {
    data.extend_from_slice(format!("{mode:o} ").as_bytes());
    data.extend_from_slice(name);
    data.push(0);
    data.extend_from_slice(id);
}

fn object_id(hash: gix::hash::Kind, kind: &str, data: &[u8]) -> Result<gix::ObjectId, Error> {
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(format!("{kind} {}\0", data.len()).as_bytes());
    hasher.update(data);
    hasher.try_finalize().map_err(|_| Error::refused("the index's trees have no id", "look for damage with `git fsck`"))
}
