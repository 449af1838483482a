//! What the program says about itself: the JSON Schema, shell completions, manual pages.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;

use crate::bench::compare::Comparison;
use crate::bench::result::BenchReport;
use crate::cli::{Cli, CompletionsArgs, Document, ManArgs, SchemaArgs};
use crate::commands::move_::MoveReport;
use crate::error::{EXIT_OK, Error};
use crate::report::Report;
use crate::report::place::Place;
use crate::report::schema::write_schema_of;
use crate::report::survey::Finding;

/// Prints the JSON Schema of what a command prints.
///
/// # Errors
///
/// [`Error::Output`] when `out` refuses.
pub fn write_schema(args: SchemaArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let written = match args.document {
        Document::Check => write_schema_of::<Report>(out),
        Document::Fs => write_schema_of::<Place>(out),
        Document::Survey => write_schema_of::<Finding>(out),
        Document::Move => write_schema_of::<MoveReport>(out),
        Document::Bench => write_schema_of::<BenchReport>(out),
        Document::BenchComparison => write_schema_of::<Comparison>(out),
    };
    written.map_err(Error::Output)?;
    Ok(EXIT_OK)
}

/// Prints a completion script.
///
/// # Errors
///
/// [`Error::Output`] when `out` refuses.
pub fn write_completions(args: &CompletionsArgs, out: &mut dyn Write) -> Result<u8, Error> {
    // Into memory first: the generator panics when its writer fails, and a closed pipe is no bug.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut without_hidden(&Cli::command()), "rehome", &mut script);
    out.write_all(&script).map_err(Error::Output)?;
    Ok(EXIT_OK)
}

/// Prints the manual page of `rehome`, or writes it and one page for each command into a directory.
///
/// # Errors
///
/// [`Error::Output`] when `out` refuses, [`Error::Io`] when the directory does.
pub fn write_man(args: &ManArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let pages = pages().map_err(Error::Output)?;
    match &args.dir {
        None => {
            for (_, page) in pages.iter().take(1) {
                out.write_all(page).map_err(Error::Output)?;
            }
        }
        Some(dir) => {
            fs::create_dir_all(dir).map_err(|source| Error::io("create", dir, source))?;
            for (name, page) in &pages {
                write_page(&dir.join(name), page)?;
            }
        }
    }
    Ok(EXIT_OK)
}

fn write_page(path: &Path, page: &[u8]) -> Result<(), Error> {
    fs::write(path, page).map_err(|source| Error::io("write", path, source))
}

/// Returns each manual page with its file name, that of `rehome` first, then those of the commands below it.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = Cli::command();
    // Fills in what subcommands take over from above: their full names and the version.
    command.build();
    let mut pages = Vec::new();
    collect_pages(&command, "rehome", &mut pages)?;
    Ok(pages)
}

fn collect_pages(command: &clap::Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for subcommand in command.get_subcommands().filter(|subcommand| is_shown(subcommand)) {
        collect_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), pages)?;
    }
    Ok(())
}

fn is_shown(command: &clap::Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// Returns a command without the options and commands that are not for people; the generators offer them all.
fn without_hidden(command: &clap::Command) -> clap::Command {
    // Names must live as long as the program; some twenty of them, once, in a run that ends right after.
    let name: &'static str = command.get_name().to_owned().leak();
    let mut shown = clap::Command::new(name);
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if command.get_version().is_some() {
        // It adds `--version`.
        shown = shown.version(env!("CARGO_PKG_VERSION"));
    }
    let options = command.get_arguments().filter(|option| !option.is_hide_set()).cloned();
    shown.args(options).subcommands(command.get_subcommands().filter(|command| is_shown(command)).map(without_hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_that_is_shown_has_its_page_and_its_completion() {
        let names: Vec<String> = pages().unwrap().into_iter().map(|(name, _)| name).collect();
        let mut script = Vec::new();
        write_completions(&CompletionsArgs { shell: clap_complete::Shell::Bash }, &mut script).unwrap();
        let script = String::from_utf8(script).unwrap();
        for command in Cli::command().get_subcommands().filter(|command| is_shown(command)) {
            assert!(names.contains(&format!("rehome-{}.1", command.get_name())), "{names:?}");
            assert!(script.contains(command.get_name()), "{}", command.get_name());
        }
        assert_eq!(names[0], "rehome.1");
    }

    #[test]
    fn what_is_not_for_people_is_not_offered() {
        use clap_complete::Shell;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let mut script = Vec::new();
            write_completions(&CompletionsArgs { shell }, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for hidden in ["__worker", "__probe", "--background", "-l background"] {
                assert!(!script.contains(hidden), "{shell} offers {hidden}");
            }
            assert!(script.contains("budget"), "{shell}");
        }
    }

    #[test]
    fn hidden_commands_have_no_page() {
        assert!(
            pages()
                .unwrap()
                .iter()
                .all(|(name, page)| { !name.contains("__") && !String::from_utf8_lossy(page).contains("__worker") })
        );
    }

    #[test]
    fn pages_are_written_into_a_directory_that_need_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        let args = ManArgs { dir: Some(dir.path().join("man/man1")) };
        write_man(&args, &mut Vec::new()).unwrap();
        assert!(dir.path().join("man/man1/rehome-check.1").exists());
    }
}
