//! The command line: types and help text, no behaviour.

mod bench;

pub use bench::{BenchArgs, BenchFormat, SuiteName};

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::units::parse_duration;

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
    /// Copy a repository to where it should live, prove that the copy is right, and leave the old one as it was
    Move(MoveArgs),
    /// Find the repositories below directories and rank them by what moving would save
    Survey(SurveyArgs),
    /// List, explain, check and try the rules that rehome judges by
    Rules(RulesArgs),
    /// Print the JSON Schema of what a command prints with `--format json`
    Schema(SchemaArgs),
    /// Print a script that completes commands and options in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
    /// Do the work of `check` and report it as events, for the process that watches over it
    #[command(name = "__worker", hide = true)]
    Worker(CheckArgs),
    /// Do the work of `bench` and report it as events
    #[command(name = "__bench", hide = true)]
    BenchWorker(BenchArgs),
    /// Do the work of `move` and report it as events
    #[command(name = "__move", hide = true)]
    MoveWorker(MoveArgs),
    /// Look for repositories for `survey` and report them as events
    #[command(name = "__survey", hide = true)]
    SurveyWorker(SurveyArgs),
    /// Remove a scratch directory for a run that was given up
    #[command(name = "__remove-scratch", hide = true)]
    RemoveScratch {
        /// The scratch directory
        path: PathBuf,
    },
    /// Write standard input into a file for a run that was given up
    #[command(name = "__write", hide = true)]
    Write {
        /// The file
        path: PathBuf,
    },
    /// Look one path up for `fs`, and report it to the process that waits for the answer
    #[command(name = "__locate", hide = true)]
    Locate {
        /// The path, as the user gave it
        path: PathBuf,
    },
    /// Make the calls on a repository's mount that another rehome asks for on standard input
    #[command(name = "__probe", hide = true)]
    Probe,
}

/// Options of `rehome schema`.
#[derive(Debug, Args, Clone, Copy)]
pub struct SchemaArgs {
    /// The command whose output it describes
    #[arg(value_enum, value_name = "COMMAND", default_value_t = Document::Check)]
    pub document: Document,
}

/// What a JSON Schema is published of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// The report of `rehome check`
    Check,
    /// A place, as `rehome fs` prints it
    Fs,
    /// One line of `rehome survey`
    Survey,
    /// Plan and result of `rehome move`
    Move,
    /// A run of `rehome bench`
    Bench,
    /// What `rehome bench --compare` prints
    BenchComparison,
}

/// Options of `rehome check`.
#[derive(Debug, Args, Clone)]
pub struct CheckArgs {
    /// A path inside the repository, or a place to clone one to (default: the current directory)
    ///
    /// Where nothing is yet, or an empty directory, the answer is about a clone there: from the kind of place alone, or
    /// with `--writes` from small files that are tried beside it.
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
    /// Answer from the last result of this repository, in milliseconds and without measuring; silent when there is none,
    /// when it is older than `MAX_AGE` (default 30d) or does not fit any more, when it was already shown, or when there is
    /// nothing to do
    ///
    /// `REHOME_MUTE=1`, `git config rehome.mute true` (in one repository or `--global`) and `mute: true` in
    /// `.rehome.yaml` keep it silent for good. Failures are silent, too: it is made for prompts and editors.
    #[arg(long, value_name = "MAX_AGE", num_args = 0..=1, value_parser = max_age_or_path)]
    pub cached: Option<Option<MaxAgeOrPath>>,
    /// With `--cached`: measure in the background, at low priority, when there is no result that fits
    #[arg(long, requires = "cached")]
    pub refresh: bool,
    /// Also create, read, stat and delete small files, in a scratch directory beside the repository and one on the target
    ///
    /// This writes, beside the repository and never inside; the scratch directories are removed at the end. It may take as
    /// long again as `--budget`.
    #[arg(long, conflicts_with_all = ["no_measure", "cached"])]
    pub writes: bool,
    /// Also time a command of your own, in place and in a full copy on the target (may be repeated)
    ///
    /// `/bin/sh` runs it in the repository, so it may write there whatever it likes; each command runs four to seven times
    /// on each side. The copy is made and verified as `rehome move` does it, and removed at the end. `--budget` does not
    /// bound it. Both sides must end with the same exit status.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["no_measure", "cached"])]
    pub run: Vec<String>,
    /// Command that is run before each `--run` without being timed
    #[arg(long, value_name = "COMMAND", requires = "run")]
    pub prepare: Option<String>,
    /// With `--run`: both sides must also print the same on standard output, their own paths left out of the comparison
    #[arg(long, requires = "run")]
    pub same_output: bool,
    /// Measure `git status` alone, as `rehome survey` does
    #[arg(long, hide = true)]
    pub quick: bool,
    /// Be the measurement in the background that `--refresh` starts
    #[arg(long, hide = true)]
    pub background: bool,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Print each phase with its duration on standard error, instead of a progress bar
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// The value of `--cached`; a path that follows it stays a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaxAgeOrPath {
    /// How old the result may be.
    MaxAge(Duration),
    /// A path inside the repository, as in `rehome --cached .`.
    Path(PathBuf),
}

#[expect(clippy::unnecessary_wraps, reason = "a value parser returns a result")]
fn max_age_or_path(text: &str) -> Result<MaxAgeOrPath, String> {
    Ok(parse_duration(text).map_or_else(|_| MaxAgeOrPath::Path(PathBuf::from(text)), MaxAgeOrPath::MaxAge))
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
    /// A page with plots that needs no network
    Html,
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
    /// Directory with further rule files (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
    /// Saved `/proc/self/mountinfo` or `/proc/mounts` to read instead of the kernel's; paths are then taken as they are
    #[arg(long, value_name = "FILE")]
    pub mounts: Option<PathBuf>,
    /// Form of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlainFormat,
}

/// Options of `rehome rules`.
#[derive(Debug, Args, Clone)]
pub struct RulesArgs {
    /// What to do with them
    #[command(subcommand)]
    pub command: RulesCommand,
    /// Directory with further rule files (may be repeated)
    #[arg(long, value_name = "DIR", global = true)]
    pub rules: Vec<PathBuf>,
}

/// What to do with the rules.
#[derive(Debug, Subcommand, Clone)]
pub enum RulesCommand {
    /// List every rule with its kind, what it says and how much that counts
    List,
    /// Show one rule as it is written, with the file that it is in
    Explain {
        /// Id of the rule, as the report names it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Check rule files and list every problem with its place
    Check {
        /// The files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Run the examples beside the rules
    Test,
    /// Print the JSON Schema of rule files
    Schema,
}

/// Options of `rehome completions`.
#[derive(Debug, Args, Clone)]
pub struct CompletionsArgs {
    /// The shell that will run the script
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Options of `rehome man`.
#[derive(Debug, Args, Clone)]
pub struct ManArgs {
    /// Directory to write `rehome.1` and one page for each command into, instead of printing the first
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Options of `rehome survey`.
#[derive(Debug, Args, Clone)]
pub struct SurveyArgs {
    /// Directories to search (default: the current directory)
    #[arg(value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Time for all repositories together, for example 55s or 5m
    #[arg(long, value_name = "DURATION", default_value = "55s", value_parser = parse_duration)]
    pub budget: Duration,
    /// How many directories below each DIR to look into
    #[arg(long, value_name = "N", default_value = "5")]
    pub depth: usize,
    /// Directory that copies are made in and that moves would go to (default: as `rehome check` chooses)
    #[arg(long, value_name = "DIR")]
    pub target: Option<PathBuf>,
    /// Filesystem types that the target may have, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub target_fs: Vec<String>,
    /// Form of the answer; `json` writes one line a repository as soon as it is measured
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlainFormat,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Options of `rehome move`.
#[derive(Debug, Args, Clone)]
pub struct MoveArgs {
    /// A path inside the repository (default: the current directory)
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,
    /// Where the copy is to be; must not exist, or be empty (default: a directory of the same name in the home
    /// directory)
    #[arg(value_name = "DEST")]
    pub destination: Option<PathBuf>,
    /// Show the plan and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask; needed where there is no terminal
    #[arg(long, short)]
    pub yes: bool,
    /// Print the move as a shell script that needs only git and coreutils, and change nothing
    #[arg(long, conflicts_with_all = ["yes", "dry_run"])]
    pub script: bool,
    /// Copy everything, also what can be made again (`node_modules`, `target`, ...)
    #[arg(long, conflicts_with = "only_tracked")]
    pub all: bool,
    /// Copy the git dir and tracked files with their local changes, and nothing else
    #[arg(long)]
    pub only_tracked: bool,
    /// Move to a Windows drive, by the rules of that side
    #[arg(long)]
    pub to_windows: bool,
    /// Filesystem types that the destination may have, separated by commas (default: local disks; with `--to-windows`
    /// Windows drives)
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub target_fs: Vec<String>,
    /// Directory with further rule files, for directories that can be made again (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
    /// Form of plan and result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlainFormat,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
}
