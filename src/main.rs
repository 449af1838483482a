//! Parses the command line, runs the command, prints the error, chooses the exit status.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use rehome::cli::Cli;
use rehome::commands;
use rehome::error::{EXIT_OK, Error};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = commands::run(cli, &mut io::stdout());
    ExitCode::from(match result {
        Ok(status) => status,
        // Who closed the pipe (`rehome | head`) has what they wanted.
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => EXIT_OK,
        Err(error) => {
            // With standard error closed there is nobody left to tell.
            let _ = io::stderr().write_all(commands::describe(&error).as_bytes());
            error.exit_code()
        }
    })
}
