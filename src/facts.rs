//! Everything that is known about a repository and its place, as one typed tree.
//!
//! The same dotted names (`site.class`, `repo.tracked_files`, ...) are used in rules, in `--format json` and by
//! `--explain`. A fact that is not known is absent (`None`), never 0 or an empty text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// The system that rehome runs on.
    pub platform: Platform,
    /// Where the repository is.
    pub site: Site,
    /// Where a copy would live; absent when no target was looked for or none was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The repository itself; absent where there is none yet, for advice before a clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepoFacts>,
    /// The git program on `PATH`; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitFacts>,
    /// Which toolchain is primary; absent before judging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolchain: Option<ToolchainFacts>,
    /// What was measured, by workload (`stat`, `git_status`, ...).
    #[serde(default)]
    pub measure: BTreeMap<String, WorkloadFacts>,
    /// Ids of the hazards found, by severity; absent before judging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hazards: Option<HazardFacts>,
}

/// The system that rehome runs on, told by several signs and never by one name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Linux on hardware or in a virtual machine.
    Linux,
    /// Windows Subsystem for Linux 1: system calls translated by Windows, files are NTFS's own.
    Wsl1,
    /// Windows Subsystem for Linux 2: a virtual machine, Windows drives over 9p or virtiofs.
    Wsl2,
    /// A container, whatever kernel it runs on.
    Container,
    /// macOS.
    Macos,
}

/// What kind of place a mount is; the vocabulary of the verdict rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilesystemClass {
    /// A disk filesystem of this kernel (ext4, xfs, btrfs, ...; on WSL 1 also its own root).
    LocalNative,
    /// A Windows drive seen from WSL or from a container on it.
    WindowsDrive,
    /// A folder of the host, shared into a virtual machine or a container.
    VmShared,
    /// Another machine's storage.
    Network,
    /// Gone at the next restart (tmpfs, ramfs).
    Memory,
    /// A container's own layer or another union mount.
    Overlay,
    /// A FUSE filesystem of unknown speed: measure.
    Fuse,
}

/// One place in the filesystem and the mount that it is really on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// The path as it was given, made absolute.
    pub path: String,
    /// The path with every symbolic link resolved.
    pub real_path: String,
    /// Where the mount begins.
    pub mount_point: String,
    /// Filesystem type as the kernel names it (`9p`, `ext4`, `fuse.sshfs`, ...).
    pub fstype: String,
    /// The mount's source (`/dev/sdd`, `C:\`, `server:/export`, ...), unescaped.
    pub source: String,
    /// Mount and superblock options, separated by commas, without repetition.
    pub options: String,
    /// What kind of place this is.
    pub class: FilesystemClass,
    /// A name that a person knows (`WSL 2 DrvFs`, `ext4`, ...).
    pub name: String,
    /// How requests travel (`9p/fd`, `9p/virtio`, `virtiofs`, `smb`, ...); absent for a local disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Whether the mount refuses writes.
    pub read_only: bool,
    /// The same place as Windows programs write it (`C:\src\app`, `\\wsl.localhost\Ubuntu\home\me\app`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_path: Option<String>,
    /// Id of the rule that gave class, name and transport.
    pub rule: String,
}

/// Where a copy is measured and a move would go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The place.
    #[serde(flatten)]
    pub site: Site,
    /// Bytes that an unprivileged user can still write there (`f_bavail * f_frsize` of statvfs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Free bytes of the drive that the target's disk image grows on (WSL 2), where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_free_bytes: Option<u64>,
}

/// Which git wrote something, told by the stat data that it left in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Git of the Linux side (or another Unix): real inode numbers.
    Linux,
    /// Git for Windows: device, inode, uid and gid are zero.
    Windows,
    /// Entries of both kinds.
    Mixed,
}

/// The repository. Counts are entries of the index unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepoFacts {
    /// Absolute path of the worktree; absent in a bare repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Absolute path of the git dir.
    pub git_dir: String,
    /// Whether it has no worktree.
    pub bare: bool,
    /// Whether this is a linked worktree (`git worktree add`).
    pub linked_worktree: bool,
    /// Whether HEAD has no commit yet.
    pub unborn: bool,
    /// The branch that HEAD is on; absent when detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Hash of the object names: `sha1` or `sha256`.
    pub object_format: String,
    /// How refs are kept: `files` or `reftable`.
    pub ref_format: String,
    /// Files in the index, stage 0 or the first stage of a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked_files: Option<u64>,
    /// Sum of their sizes as the index has them, in bytes; entries never refreshed count 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked_bytes: Option<u64>,
    /// Directories that hold a tracked file, at any depth, the root left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirs: Option<u64>,
    /// Size of the index file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_bytes: Option<u64>,
    /// Version of the index format (2, 3 or 4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_version: Option<u32>,
    /// Which git wrote the index last; absent when the entries do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_written_by: Option<Side>,
    /// Entries of the index that a `git status` would read because their stat data differ; from a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stat_dirty: Option<u64>,
    /// Entries as new as the index file, which `git status` reads to be sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub racy: Option<u64>,
    /// Whether the index is split (`sharedindex.*`).
    pub split_index: bool,
    /// Whether the index holds whole directories outside the sparse checkout.
    pub sparse_index: bool,
    /// Whether `core.sparseCheckout` is on.
    pub sparse_checkout: bool,
    /// Whether the index has an untracked cache.
    pub untracked_cache: bool,
    /// Whether the index has data of a file system monitor.
    pub fsmonitor: bool,
    /// Entries outside the sparse checkout.
    pub skip_worktree: u64,
    /// Entries added by `git add --intent-to-add`.
    pub intent_to_add: u64,
    /// Paths with a merge conflict.
    pub conflicts: u64,
    /// Tracked symbolic links.
    pub symlinks: u64,
    /// Tracked files with the executable bit.
    pub executables: u64,
    /// Submodules in the index.
    pub submodules: u64,
    /// Linked worktrees of this repository, besides the main one; absent when they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktrees: Option<u64>,
    /// Names of the configured remotes.
    pub remotes: Vec<String>,
    /// Operation that is under way: `merge`, `rebase`, `am`, `cherry-pick`, `revert`, `bisect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,
    /// Whether `refs/stash` exists; absent when that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_stash: Option<bool>,
    /// Number of stashes; absent when that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stashes: Option<u64>,
    /// Whether the branch's tip is not the tip of its upstream; absent without an upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpushed: Option<bool>,
    /// Whether it is a shallow clone.
    pub shallow: bool,
    /// Whether it is a partial clone (`extensions.partialClone` or a promisor remote).
    pub partial_clone: bool,
    /// Whether `.gitattributes` at the root names the LFS filter; absent when there is no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lfs: Option<bool>,
    /// Owner of the worktree is another user than the one who runs rehome.
    pub foreign_owner: bool,
}

/// The git program that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitFacts {
    /// What `git version` says, without the leading words.
    pub version: String,
    /// Where it is.
    pub path: String,
}

/// The toolchain that works on this repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Toolchain {
    /// Programs of the Linux side.
    Linux,
    /// Native Windows programs.
    Windows,
    /// Works as well on one side as on the other.
    Either,
    /// Both sides are in use on this very copy.
    Mixed,
}

/// Which toolchain is primary, and how sure that is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolchainFacts {
    /// The answer.
    pub primary: Toolchain,
    /// Probability of the answer, 0 to 1.
    pub confidence: f64,
    /// What set the answer aside (`--primary`, `.rehome.yaml`); absent when the rules decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<String>,
    /// What the committed files alone say, without the traces of use in this working copy; absent where nothing was
    /// judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<CommittedFacts>,
}

/// The toolchain that the committed files speak for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommittedFacts {
    /// The answer.
    pub primary: Toolchain,
    /// Probability of the answer, 0 to 1.
    pub confidence: f64,
}

/// The figures of one workload that rules may look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadFacts {
    /// Median time in place, in seconds: of the whole work, so for `stat` of one call on every tracked file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_s: Option<f64>,
    /// What the time in place is at least, in seconds, where the work did not end in time; `in_place_s` is absent then, so
    /// that no rule takes a bound for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_s: Option<f64>,
    /// Median time in the copy, in seconds, of the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_copy_s: Option<f64>,
    /// Ratio of the medians, in place over copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
    /// Lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_low: Option<f64>,
    /// Upper end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_high: Option<f64>,
    /// Difference of the medians, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_s: Option<f64>,
    /// Whether the measuring finished.
    pub complete: bool,
}

/// Ids of the hazards that fired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HazardFacts {
    /// Must be solved before a move.
    pub blocker: Vec<String>,
    /// Would surprise after a move.
    pub warning: Vec<String>,
    /// Good to know.
    pub note: Vec<String>,
}
