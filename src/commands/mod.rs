//! The commands: the only place that joins the stages.

pub mod fs;
pub mod progress;

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
        Some(Command::Fs(args)) => fs::run(&args, out),
        None | Some(Command::Check(_)) => Err(Error::Usage("only `rehome fs` is there so far".to_owned())),
    }
}

/// Returns an error as the lines that a person reads: the message, its causes, one hint.
#[must_use]
pub fn describe(error: &Error) -> String {
    let mut text = format!("rehome: {error}\n");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let _ = writeln!(text, "  caused by: {inner}");
        cause = inner.source();
    }
    if let Some(hint) = error.hint() {
        let _ = writeln!(text, "  hint: {hint}");
    }
    text
}
