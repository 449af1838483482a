//! The closed vocabulary of conditions, as rule files write it.

mod walk;

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};

use super::words::{FactName, Limit, PathGlob, Pattern, RuleId, ValueName};
use crate::facts::Toolchain;

/// What must hold for a rule to fire; all keys that are present must hold.
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// All of these hold.
    #[serde(default)]
    pub all: Vec<Condition>,
    /// At least one of these holds.
    #[serde(default)]
    pub any: Vec<Condition>,
    /// This does not hold.
    #[serde(default)]
    pub not: Option<Box<Condition>>,
    /// Paths in the index; free.
    #[serde(default)]
    pub tracked: Option<Tracked>,
    /// What an extractor found in files of one format; some bounded reads.
    #[serde(default)]
    pub value: Option<ValueTest>,
    /// A pattern in small tracked files, or in untracked ones at fixed places; one read a file.
    #[serde(default)]
    pub contains: Option<Contains>,
    /// Something at a fixed place of the working copy, tracked or not; one lookup or one listing a place.
    #[serde(default)]
    pub exists: Option<Exists>,
    /// What the first bytes of a file are; one read.
    #[serde(default)]
    pub file_kind: Option<FileKindTest>,
    /// A key of git's configuration; free.
    #[serde(default)]
    pub git_config: Option<GitConfigTest>,
    /// A property of the index as a whole; free.
    #[serde(default)]
    pub index: Option<IndexTest>,
    /// A fact; free.
    #[serde(default)]
    pub fact: Option<FactTest>,
    /// Ids of hazard rules of which one must have fired; for verdict rules.
    #[serde(default)]
    pub hazard: Vec<RuleId>,
    /// A side of which a strong local trace fired; for hazard rules.
    #[serde(default)]
    pub trace: Option<Toolchain>,
}

/// A test of the paths in the index. Short form: a list of globs, of which one path must match.
#[derive(Debug, Clone, Default, JsonSchema)]
#[schemars(with = "TrackedForm")]
pub struct Tracked(pub TrackedFields);

/// The two forms of [`Tracked`], for the schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum TrackedForm {
    /// One path must match one of these.
    Globs(Vec<PathGlob>),
    /// The long form.
    Fields(TrackedFields),
}

/// The long form of [`Tracked`].
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrackedFields {
    /// Globs of which a path must match one; every path when empty.
    #[serde(default)]
    pub paths: Vec<PathGlob>,
    /// Paths to leave out.
    #[serde(default)]
    pub except: Vec<PathGlob>,
    /// Number of matching paths that is needed; 1 when neither this nor another bound is given.
    #[serde(default)]
    pub at_least: Option<u64>,
    /// Number of matching paths that is allowed.
    #[serde(default)]
    pub at_most: Option<u64>,
    /// Share of the base that must match, 0 to 1.
    #[serde(default)]
    pub share_at_least: Option<f64>,
    /// Share of the base that may match, 0 to 1.
    #[serde(default)]
    pub share_at_most: Option<f64>,
    /// What the share is taken of; files of code when absent.
    #[serde(default)]
    pub share_of: ShareBase,
    /// Globs that the share is taken of, instead of `share_of`.
    #[serde(default)]
    pub share_of_paths: Vec<PathGlob>,
    /// Folders above a path at most; 0 is the root.
    #[serde(default)]
    pub depth: Option<usize>,
    /// Kind of index entry.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Whether paths below a shared list of folders count too; vendored, fixture and sample folders are left out
    /// otherwise.
    #[serde(default)]
    pub everywhere: bool,
    /// Counts only paths below a side folder (`contrib`, `examples`, `msvc`, ...), or only the others.
    #[serde(default)]
    pub in_side_folder: Option<bool>,
    /// What must be tracked beside a matching path: an ending (`.sh`) stands for a file of the same stem, a name behind a
    /// slash (`/CMakeLists.txt`) for that file in the same folder. One of them is enough.
    #[serde(default)]
    pub sibling: Vec<String>,
    /// What must not be tracked beside it, in the same spelling.
    #[serde(default)]
    pub no_sibling: Vec<String>,
    /// Number of this test among all of a rule set, so that its result is kept; given when the rules are loaded.
    #[serde(skip)]
    pub(crate) number: Option<usize>,
}

/// What a share is taken of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShareBase {
    /// Files of a programming, build or markup language, by extension or name.
    #[default]
    Code,
    /// All files.
    Files,
}

/// Kind of index entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, DeriveDeserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A file without the executable bit.
    Plain,
    /// A file with the executable bit.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A submodule.
    Submodule,
}

/// A test of what an extractor found. Values that could not be resolved make the answer unknown where they matter.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueTest {
    /// Which value.
    pub of: ValueName,
    /// Pattern that an item must match; every item counts when absent.
    #[serde(default)]
    pub matches: Option<Pattern>,
    /// Number of matching items that is needed; 1 when no bound is given.
    #[serde(default)]
    pub at_least: Option<u64>,
    /// Number of matching items that is allowed.
    #[serde(default)]
    pub at_most: Option<u64>,
    /// Share of all items that must match, 0 to 1.
    #[serde(default)]
    pub share_at_least: Option<f64>,
    /// Share of all items that may match, 0 to 1.
    #[serde(default)]
    pub share_at_most: Option<f64>,
    /// Files that the items must come from; any when empty.
    #[serde(default)]
    pub files: Vec<PathGlob>,
}

/// A pattern in small files.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contains {
    /// Tracked files: globs; the shallowest three matches are read.
    #[serde(default)]
    pub files: Vec<PathGlob>,
    /// Files at fixed places of the working copy, tracked or not; below `.git/` the git dir is meant, wherever it is.
    #[serde(default)]
    pub local: Vec<String>,
    /// Tracked paths beside which the local files are looked for; the root when empty.
    #[serde(default)]
    pub beside: Vec<PathGlob>,
    /// What must occur in one of them.
    pub pattern: Pattern,
    /// How often it must occur in one file.
    #[serde(default = "once")]
    pub times: usize,
    /// Bytes read of each file.
    #[serde(default)]
    pub head: Option<usize>,
}

/// Something at a fixed place.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exists {
    /// Places, relative to the worktree; `*` is allowed in a component and lists that folder. Below `.git/` the git dir is
    /// meant.
    pub any_of: Vec<String>,
    /// Tracked paths beside which the places are looked for (the two shallowest); the root when empty.
    #[serde(default)]
    pub beside: Vec<PathGlob>,
    /// What must be there; anything when absent.
    #[serde(default)]
    pub kind: Option<PlaceKind>,
    /// Number of places that is needed.
    #[serde(default = "once")]
    pub at_least: usize,
}

const fn once() -> usize {
    1
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, DeriveDeserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// What the first bytes of one file are.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileKindTest {
    /// Places to look at; the first that is there counts. `*` as in `exists`.
    #[serde(default)]
    pub local: Vec<String>,
    /// Tracked files to look at instead: globs; the shallowest three.
    #[serde(default)]
    pub files: Vec<PathGlob>,
    /// Looks at tracked symbolic links instead: the first three.
    #[serde(default)]
    pub symlinks: bool,
    /// What one of them must be.
    pub is: FileKind,
}

/// What a file is by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, DeriveDeserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A program or library of Linux.
    Elf,
    /// A program or library of Windows.
    Pe,
    /// A program or library of macOS.
    MachO,
    /// Text whose lines end in CRLF.
    CrlfText,
    /// A script that names its interpreter.
    Script,
    /// A regular file where a symbolic link is tracked.
    NoLink,
}

/// A key of git's configuration.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitConfigTest {
    /// The key, as `core.symlinks` or `remote.*.url`; `*` is any subsection.
    pub key: String,
    /// Pattern that a value must match; any value when absent. Booleans are written `true` and `false`.
    #[serde(default)]
    pub matches: Option<Pattern>,
    /// Whether only the repository's own configuration counts; user and system files count too otherwise.
    #[serde(default)]
    pub own: bool,
}

/// A property of the index.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexTest {
    /// Which property.
    pub property: IndexProperty,
    /// The number that it must reach.
    #[serde(default = "once")]
    pub at_least: usize,
    /// The share of the entries that it must reach, 0 to 1.
    #[serde(default)]
    pub share_at_least: Option<f64>,
}

/// Properties of the index that rules may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, DeriveDeserialize, Serialize, JsonSchema, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum IndexProperty {
    /// Paths that differ from another one only in case.
    CaseCollisions,
    /// Paths that Windows cannot hold: reserved names, forbidden characters, a trailing dot or blank.
    WindowsReservedNames,
    /// Entries whose ctime is before their mtime.
    CtimeBeforeMtime,
    /// Entries whose modification time is a multiple of 100 ns.
    CoarseMtime,
    /// Entries of a Windows git (mtime set; inode, user and group zero).
    WindowsEntries,
    /// Entries of a Unix git (inode and device set).
    UnixEntries,
    /// The untracked cache was written by a Windows git.
    UntrackedCacheWindows,
    /// The untracked cache was written by a Linux git.
    UntrackedCacheLinux,
}

/// A test of one fact. A fact that is not known makes the answer false, but for `known`.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactTest {
    /// Which fact.
    pub name: FactName,
    /// The value that it must have.
    #[serde(default)]
    pub is: Option<Scalar>,
    /// Values of which it must have one.
    #[serde(default)]
    pub one_of: Vec<Scalar>,
    /// An item that a list must hold.
    #[serde(default)]
    pub includes: Option<Scalar>,
    /// A pattern that a text must match.
    #[serde(default)]
    pub matches: Option<Pattern>,
    /// The number that it must reach; for a list, the number of items.
    #[serde(default)]
    pub at_least: Option<Limit>,
    /// The number that it must not exceed; for a list, the number of items.
    #[serde(default)]
    pub at_most: Option<Limit>,
    /// The number that it must stay below.
    #[serde(default)]
    pub below: Option<Limit>,
    /// Another fact that it must stay below.
    #[serde(default)]
    pub below_fact: Option<FactName>,
    /// Whether it must be known at all.
    #[serde(default)]
    pub known: Option<bool>,
}

/// A single value in a rule file.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(with = "serde_json::Value")]
pub struct Scalar(pub serde_json::Value);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.is_array() || value.is_object() || value.is_null() {
            return Err(de::Error::custom("expected a text, a number, or true or false"));
        }
        Ok(Self(value))
    }
}

impl<'de> Deserialize<'de> for Tracked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TrackedVisitor)
    }
}

struct TrackedVisitor;

impl<'de> Visitor<'de> for TrackedVisitor {
    type Value = Tracked;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a list of globs, or a map with `paths` and bounds")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Tracked, A::Error> {
        let mut paths = Vec::new();
        while let Some(glob) = sequence.next_element()? {
            paths.push(glob);
        }
        if paths.is_empty() {
            return Err(de::Error::custom("an empty list matches nothing: name at least one glob"));
        }
        Ok(Tracked(TrackedFields { paths, ..TrackedFields::default() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tracked, A::Error> {
        TrackedFields::deserialize(de::value::MapAccessDeserializer::new(map)).map(Tracked)
    }
}
