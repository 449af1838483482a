//! The commands: the only place that joins the stages.

pub mod apart;
pub mod bench;
pub mod cached;
pub mod check;
pub mod documents;
pub mod fs;
pub mod log;
pub mod move_;
pub mod output;
pub mod progress;
pub mod rules;
pub mod supervise;
pub mod survey;

use std::fmt::Write as _;
use std::io::Write;

use crate::cli::{Cli, Command};
use crate::error::{EXIT_OK, Error};
use crate::measure::probe::server::serve_stdin;

/// Runs the command that the command line names and returns the exit status.
///
/// # Errors
///
/// Whatever made the command fail; nothing was printed about it yet.
pub fn run(cli: Cli, out: &mut dyn Write) -> Result<u8, Error> {
    match cli.command {
        None => check::run(&cli.check, out),
        Some(Command::Check(args)) => check::run(&args, out),
        Some(Command::Fs(args)) => fs::run(&args, out),
        Some(Command::Bench(args)) => bench::run(&args, out),
        Some(Command::Move(args)) => move_::run(&args, out),
        Some(Command::Survey(args)) => survey::run(&args, out),
        Some(Command::Rules(args)) => rules::run(&args, out),
        Some(Command::Schema(args)) => documents::write_schema(args, out),
        Some(Command::Completions(args)) => documents::write_completions(&args, out),
        Some(Command::Man(args)) => documents::write_man(&args, out),
        Some(Command::Worker(args)) => check::work(&args, out),
        Some(Command::BenchWorker(args)) => bench::work(&args, out),
        Some(Command::MoveWorker(args)) => move_::work(&args, out),
        Some(Command::SurveyWorker(args)) => survey::work(&args, out),
        Some(Command::RemoveScratch { path }) => apart::remove_scratch(&path, out),
        Some(Command::Write { path }) => apart::write_input(&path, out),
        Some(Command::Locate { path }) => fs::locate(&path, out),
        Some(Command::Probe) => serve_stdin(out).map(|()| EXIT_OK).map_err(Error::Output),
    }
}

/// Returns an error as the lines that a person reads: the message, its causes, one hint.
#[must_use]
pub fn describe(error: &Error) -> String {
    let mut text = format!("rehome: {error}\n");
    for cause in error.causes() {
        let _ = writeln!(text, "  caused by: {cause}");
    }
    if let Some(hint) = error.hint() {
        let _ = writeln!(text, "  hint: {hint}");
    }
    text
}
