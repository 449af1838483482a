//! The commands: the only place that joins the stages.

pub mod bench;
pub mod check;
pub mod fs;
pub mod output;
pub mod progress;
pub mod supervise;

use std::fmt::Write as _;
use std::io::Write;

use crate::cli::{Cli, Command};
use crate::error::Error;

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
        Some(Command::Worker(args)) => check::work(&args, out),
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
