//! `rehome fs`: which mount a path is on, and how that is known.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use crate::cli::{FsArgs, PlainFormat};
use crate::error::{EXIT_OK, Error};
use crate::report::place::{self, Place};
use crate::scan::filesystem::System;
use crate::scan::filesystem::rules::FilesystemRuleSet;

/// Looks up every path, writes those that were found, and fails with the first that was not.
///
/// # Errors
///
/// Those of [`System::live`], [`System::from_table`] and [`System::locate`]; [`Error::Usage`] for a saved table without a
/// path.
pub fn run(args: &FsArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let rules = FilesystemRuleSet::builtin()?;
    let system = match &args.mounts {
        None => System::live(rules)?,
        Some(_) if args.paths.is_empty() => {
            return Err(Error::Usage("`--mounts FILE` needs a path to look up in the table".to_owned()));
        }
        Some(file) => {
            let text = fs::read(file).map_err(|error| Error::io("read", file, error))?;
            System::from_table(&text, rules)?
        }
    };
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths[..] };
    let mut places = Vec::new();
    let mut failure = None;
    for path in paths {
        match system.locate(path) {
            Ok(location) => places.push(Place::new(&system, location)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let is_one = paths.len() == 1;
    match args.format {
        _ if is_one && places.is_empty() => {}
        PlainFormat::Text => place::write_text(&places, out).map_err(Error::Output)?,
        PlainFormat::Json if is_one => place::write_json(&places[0], out).map_err(Error::Output)?,
        PlainFormat::Json => place::write_json_list(&places, out).map_err(Error::Output)?,
    }
    failure.map_or(Ok(EXIT_OK), Err)
}
