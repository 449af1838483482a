//! The values of a benchmark run: what is saved as it comes in, compared later, and shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Platform, Site};

/// Version of the JSON that a benchmark is saved as; it changes when a name changes its meaning or goes away.
pub const BENCH_SCHEMA_VERSION: u32 = 1;

/// One run of `rehome bench`; the same names as in the JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchReport {
    /// What this file is, so that it is not taken for the answer of another command.
    pub kind: BenchKind,
    /// See [`BENCH_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the program that made it.
    pub rehome_version: String,
    /// Whether every suite finished at every place; parts are missing when not.
    pub complete: bool,
    /// When the run began, in seconds since 1970-01-01 UTC.
    pub started_at_unix_s: u64,
    /// The machine.
    pub machine: Machine,
    /// What the whole run was allowed to take, in seconds.
    pub budget_s: f64,
    /// The places compared; rounds and figures name them by their position here.
    pub places: Vec<Place>,
    /// One entry a suite, in the order they were run.
    pub suites: Vec<SuiteResult>,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
    /// What the run itself cost.
    pub cost: BenchCost,
}

/// Tells a saved benchmark from other JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BenchKind {
    /// The result of `rehome bench`.
    Bench,
}

/// The machine that a benchmark ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The system; absent when it could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Processors that this process may use; absent when the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// What `git version` says, without the leading words; absent when there is no git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_version: Option<String>,
}

/// A directory that took part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The directory as it was given, made absolute.
    pub path: String,
    /// What it is used for.
    pub role: Role,
    /// The mount that it is on; absent when that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<Site>,
    /// The scratch directory in it; absent when nothing was written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<ScratchRecord>,
}

/// What a place is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Suites write in a scratch directory here.
    Scratch,
    /// A tree of the user's that is only read (`--tree`).
    Tree,
}

/// A scratch directory: where it was, and the proof that it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScratchRecord {
    /// Where it was.
    pub path: String,
    /// Its permission bits as the filesystem kept them, in octal; `0700` where modes are kept.
    pub mode: String,
    /// Whether it was looked for after the removal and nothing was there.
    pub gone: bool,
    /// Scratch directories of killed runs that were found here and removed.
    pub reaped: Vec<String>,
}

/// The kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Suite {
    /// Create, read, stat and delete many small files.
    Small,
    /// Write and read one large file, create many small ones.
    Seq,
    /// One writer fed by a pipe, with different sizes of its writes.
    Stream,
    /// `du -s` over trees of files.
    Walk,
    /// `git status` in a repository with one modified file.
    Git,
}

impl Suite {
    /// Every suite, in the order they are run: the quick ones that most people ask for come first.
    pub const ALL: [Self; 5] = [Self::Small, Self::Git, Self::Seq, Self::Stream, Self::Walk];

    /// Returns the name on the command line and in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Seq => "seq",
            Self::Stream => "stream",
            Self::Walk => "walk",
            Self::Git => "git",
        }
    }
}

/// One suite at all places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteResult {
    /// Which.
    pub suite: Suite,
    /// How much work a round is, after any shrinking.
    pub setup: Setup,
    /// Rounds that were to count, after any shrinking; each place also ran one before them, to warm up.
    pub rounds_planned: u32,
    /// What was made smaller to fit the budget, one sentence each; empty when nothing was.
    pub shrunk: Vec<String>,
    /// Every round, in the order they were run, the ones that do not count included.
    pub rounds: Vec<Round>,
    /// The figures, one entry a phase; made from the rounds that count.
    pub figures: Vec<Figure>,
    /// What could not be measured.
    pub failures: Vec<Failure>,
    /// What a reader must know about these figures, one sentence each.
    pub notes: Vec<String>,
    /// Whether it came to its end at every place.
    pub complete: bool,
}

/// How much work one round of a suite is; what does not apply is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// Files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Size of each of them, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Directories that they are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirs: Option<u64>,
    /// Size of the large file, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Files of each tree that is walked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree_files: Vec<u64>,
    /// Whether each small file is written through to the disk (`fsync`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync: Option<bool>,
}

/// One pass of a suite at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Position in [`BenchReport::places`].
    pub place: usize,
    /// Number of the round from 1 on; 0 is the warm-up.
    pub round: u32,
    /// Time of each phase, in the order they were run.
    pub phases: Vec<PhaseTime>,
    /// What the work was proven by.
    pub proof: Proof,
    /// Whether the round counts; never for the warm-up.
    pub counted: bool,
    /// Why it does not count although it was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// The time of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTime {
    /// Its name: `create`, `read`, `write_4k`, ...
    pub phase: String,
    /// Wall-clock time in seconds.
    pub elapsed_s: f64,
}

/// What a round saw of its own work, so that places can be compared; what does not apply is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Files worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Directories seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirs: Option<u64>,
    /// Bytes read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
    /// Sum of the sizes that `stat` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stat_bytes: Option<u64>,
    /// CRC-32 (IEEE) of everything read, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<String>,
    /// SHA-256 of everything read, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Checksum of the names seen, in hex; the order does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
    /// What the program printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether the round's directory was gone at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<bool>,
}

/// One phase at all places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The phase; `total` is the sum of a suite's phases.
    pub phase: String,
    /// Whether it is what the suite is about; the other phases stand beside it.
    pub headline: bool,
    /// Operations in it (files, or 1), for a time per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Bytes moved in it, for a throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// One entry a place that has a counted round.
    pub places: Vec<PlaceFigure>,
}

/// One phase at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceFigure {
    /// Position in [`BenchReport::places`].
    pub place: usize,
    /// One entry a counted round, in seconds, in order.
    pub runs: Vec<f64>,
    /// Their median, in seconds.
    pub median: f64,
    /// Lower end of the median's 95 % interval; absent with a single round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the median's 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Median over the fastest place's median, without unit: 1 for the fastest itself.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval; absent for the fastest place and with a single round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_high: Option<f64>,
}

/// Something that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Position in [`BenchReport::places`]; absent when it concerns all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// What happened, one line, its causes included.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchCost {
    /// Wall-clock time so far, in seconds.
    pub wall_s: f64,
    /// Bytes of file contents written in the scratch directories.
    pub bytes_written: u64,
}
