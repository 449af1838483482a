//! The options of `rehome bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::bench::result::Suite;
use crate::units::{parse_bytes, parse_duration};

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
