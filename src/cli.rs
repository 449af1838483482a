//! The command line: types and help text, no behaviour.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::result::Suite;
use crate::units::{parse_bytes, parse_duration};

/// Tell where a git repository should live, with numbers measured on it
///
/// Without a command, `rehome` checks the repository that the current directory is in.
#[derive(Debug, Parser)]
#[command(name = "rehome", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; `check` when absent.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `check`, for the short form without a command.
    #[command(flatten)]
    pub check: CheckArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Scan, measure, judge and recommend (the default command)
    Check(CheckArgs),
    /// Show which mount and filesystem a path is on, what kind of place that is, and how that is known
    Fs(FsArgs),
    /// Measure synthetic work in directories side by side: small files, bulk data, streams, trees, git
    Bench(BenchArgs),
    /// Do the work of `check` and report it as events, for the process that watches over it
    #[command(name = "__worker", hide = true)]
    Worker(CheckArgs),
}

/// Options of `rehome check`.
#[derive(Debug, Args, Clone)]
pub struct CheckArgs {
    /// A path inside the repository (default: the current directory)
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// Time that measuring may take, for example 10s or 500ms
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub budget: Duration,
    /// Rounds of each workload after the warm-up (default: as many as fit, 3 to 12)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Directory that the copy is made in and that a move would go to (default: the home directory, else the cache
    /// directory, whichever is on ext4)
    #[arg(long, value_name = "DIR")]
    pub target: Option<PathBuf>,
    /// Filesystem types that the target may have, separated by commas (default: ext4 where there is one, else any local
    /// disk filesystem)
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub target_fs: Vec<String>,
    /// Judge without measuring
    #[arg(long)]
    pub no_measure: bool,
    /// Toolchain that works on this repository; overrides the rules
    #[arg(long, value_name = "SIDE")]
    pub primary: Option<Primary>,
    /// Directory with further rule files (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
    /// Form of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
    /// File to write the answer to instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show every rule that fired, the losing ones included, and what the scan cost
    #[arg(long)]
    pub explain: bool,
    /// Tell the advice by the exit status: 0 stay, 10 move to ext4, 11 move to the Windows side, 12 stay and tune,
    /// 20 inconclusive
    #[arg(long)]
    pub exit_code: bool,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Say more about what is done (may be repeated)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// A side that the user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Primary {
    /// Programs of the Linux side
    Linux,
    /// Native Windows programs
    Windows,
    /// Works as well on one side as on the other
    Either,
}

/// Form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a person
    Text,
    /// For a program; the names are a contract
    Json,
    /// One line, or nothing when there is nothing to do
    Oneline,
}

/// Form of an answer that is no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// For a person
    Text,
    /// For a program; the names are a contract
    Json,
}

/// Options of `rehome fs`.
#[derive(Debug, Args, Clone)]
pub struct FsArgs {
    /// Paths to look up (default: the current directory); with several, `--format json` prints an array
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Saved `/proc/self/mountinfo` or `/proc/mounts` to read instead of the kernel's; paths are then taken as they are
    #[arg(long, value_name = "FILE")]
    pub mounts: Option<PathBuf>,
    /// Form of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlainFormat,
}

/// Options of `rehome bench`.
///
/// This writes: in a scratch directory of its own in each DIR, which is removed at the end.
#[derive(Debug, Args, Clone)]
#[command(
    after_help = "A scratch directory is made in each DIR and removed at the end, also after Ctrl-C; its path is printed."
)]
pub struct BenchArgs {
    /// Directories to compare, any number (default: the current directory and the place that a move would go to)
    #[arg(value_name = "DIR")]
    pub places: Vec<PathBuf>,
    /// Suites to run, separated by commas (default: all)
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub suite: Vec<SuiteName>,
    /// Files of the suite `small`
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub files: u64,
    /// Size of each small file, for example 4096 or 4KiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = parse_small_size)]
    pub size: u64,
    /// Directories that the small files are spread over
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub dirs: u64,
    /// Rounds that count, after one to warm up (default: 6, and 3 for `seq` and `stream`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Write each small file through to the disk before the next
    #[arg(long)]
    pub fsync: bool,
    /// Length of the large file of `seq` and of the streams of `stream` (default: 512MiB and 64MiB)
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub bytes: Option<u64>,
    /// Directory that `walk` reads instead of trees that it makes; nothing is written there (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub tree: Vec<PathBuf>,
    /// Time that the whole run may take, for example 2m; what does not fit is made smaller, and that is said
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    pub budget: Duration,
    /// Show saved results side by side instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = ["places", "suite", "files", "size", "dirs", "rounds", "fsync", "bytes", "tree", "budget"]
    )]
    pub compare: Vec<PathBuf>,
    /// Form of the answer on standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: BenchFormat,
    /// File that gets the result as JSON, as each round ends; with `--compare`, the answer itself
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print neither progress nor where the scratch directories are
    #[arg(long, short)]
    pub quiet: bool,
}

/// A suite of `rehome bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SuiteName {
    /// Create, read, stat and delete small files
    Small,
    /// Write and read one large file, create 2,000 small ones
    Seq,
    /// One writer fed by a pipe, in writes of 4 KiB to 4 MiB
    Stream,
    /// `du -s` over trees of 4,700 and 100,000 files
    Walk,
    /// `git status` in a repository of 1,000 files
    Git,
}

impl From<SuiteName> for Suite {
    fn from(name: SuiteName) -> Self {
        match name {
            SuiteName::Small => Self::Small,
            SuiteName::Seq => Self::Seq,
            SuiteName::Stream => Self::Stream,
            SuiteName::Walk => Self::Walk,
            SuiteName::Git => Self::Git,
        }
    }
}

/// Form of the answer of `rehome bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// For a person
    Text,
    /// For a program; the names are a contract
    Json,
    /// One self-contained page
    Html,
}

/// Parses the size of a small file; a file is held in memory, so there is a limit.
fn parse_small_size(text: &str) -> Result<u64, String> {
    const MAX_BYTES: u64 = 256 << 20;
    let bytes = parse_bytes(text)?;
    if bytes > MAX_BYTES {
        return Err(format!(
            "`{text}` is no small file: at most 256MiB; `--suite seq --bytes {text}` writes a large one"
        ));
    }
    Ok(bytes)
}
