//! `rehome rules`: list, explain, check and try the rules.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::cli::{RulesArgs, RulesCommand};
use crate::error::{EXIT_FAILURE, EXIT_OK, Error, printable, printable_text};
use crate::rules::RuleSet;
use crate::rules::example::run_examples;
use crate::rules::load::{Problem, RuleFile, assemble, files, read_file};
use crate::rules::names::nearest;
use crate::rules::schema::schema;
use crate::scan::filesystem::rules::FilesystemRuleSet;

/// Does what the command line asks for and returns the exit status: 1 when a rule file has a problem or an example fails.
///
/// # Errors
///
/// Those of [`RuleSet::load`]; [`Error::Refused`] for an unknown id; [`Error::Output`].
pub fn run(args: &RulesArgs, out: &mut dyn Write) -> Result<u8, Error> {
    match &args.command {
        RulesCommand::List => list(&args.rules, out),
        RulesCommand::Explain { id } => explain(id, &args.rules, out),
        RulesCommand::Check { files } => check(files, &args.rules, out),
        RulesCommand::Test => test(&args.rules, out),
        RulesCommand::Schema => {
            let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
            writeln!(out, "{text}").map(|()| EXIT_OK).map_err(Error::Output)
        }
    }
}

/// One line of the list.
struct Line {
    kind: &'static str,
    id: String,
    counts: String,
    says: String,
}

fn list(dirs: &[PathBuf], out: &mut dyn Write) -> Result<u8, Error> {
    let rules = RuleSet::load(dirs)?;
    let lines = lines(&rules, &rules.filesystem_rules()?);
    let width = lines.iter().map(|line| line.id.len()).max().unwrap_or(0);
    let counts = lines.iter().map(|line| line.counts.len()).max().unwrap_or(0);
    let write = |line: &Line, out: &mut dyn Write| {
        let says = printable_text(&line.says);
        writeln!(out, "{:<11}  {:<width$}  {:<counts$}  {says}", line.kind, line.id, line.counts)
    };
    lines.iter().try_for_each(|line| write(line, out)).map(|()| EXIT_OK).map_err(Error::Output)
}

fn lines(rules: &RuleSet, filesystem: &FilesystemRuleSet) -> Vec<Line> {
    let mut lines = Vec::new();
    for rule in filesystem.iter() {
        let counts = word(&rule.class);
        lines.push(Line { kind: "filesystem", id: rule.id.clone(), counts, says: rule.because.clone() });
    }
    for rule in &rules.evidence {
        let trace = if rule.trace { " trace" } else { "" };
        let counts = format!("{} {} {}{trace}", word(&rule.toolchain), word(&rule.tier), word(&rule.strength));
        lines.push(Line { kind: "evidence", id: rule.id.to_string(), counts, says: rule.because.clone() });
    }
    for rule in &rules.hazards {
        let by_move = if rule.handled_by_move { ", repaired by move" } else { "" };
        let counts = format!("{}{by_move}", word(&rule.severity));
        lines.push(Line { kind: "hazard", id: rule.id.to_string(), counts, says: rule.say.clone() });
    }
    for rule in &rules.rebuildable {
        let counts = rule.directories.join(" ");
        lines.push(Line { kind: "rebuildable", id: rule.id.to_string(), counts, says: rule.because.clone() });
    }
    for rule in &rules.verdicts {
        lines.push(Line {
            kind: "verdict",
            id: rule.id.to_string(),
            counts: word(&rule.verdict),
            says: rule.say.clone(),
        });
    }
    for rule in &rules.alternatives {
        lines.push(Line {
            kind: "alternative",
            id: rule.id.to_string(),
            counts: String::new(),
            says: rule.say.clone(),
        });
    }
    for rule in &rules.settings {
        lines.push(Line { kind: "setting", id: rule.id.to_string(), counts: String::new(), says: rule.say.clone() });
    }
    for rule in &rules.thresholds {
        let counts = rule.value.to_string();
        lines.push(Line { kind: "threshold", id: rule.id.to_string(), counts, says: rule.because.clone() });
    }
    lines
}

/// Writes a word of the rules' vocabulary as rule files do.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn explain(id: &str, dirs: &[PathBuf], out: &mut dyn Write) -> Result<u8, Error> {
    let rules = RuleSet::load(dirs)?;
    let mut files = FilesystemRuleSet::builtin_files();
    files.extend(self::files(dirs)?.into_iter().map(|file| (file.name, file.text)));
    // Of rules with one id the last file's counts, as in loading.
    let found: Vec<(&str, String)> =
        files.iter().rev().filter_map(|(name, text)| Some((name.as_str(), as_written(text, id)?))).collect();
    if found.is_empty() {
        let known: Vec<String> = lines(&rules, &rules.filesystem_rules()?).into_iter().map(|line| line.id).collect();
        return Err(Error::refused(
            format!("there is no rule `{}`{}", printable_text(id), nearest(id, known.iter().map(String::as_str))),
            "run `rehome rules list` for all of them",
        ));
    }
    write_explained(&found, out).map(|()| EXIT_OK).map_err(Error::Output)
}

fn write_explained(found: &[(&str, String)], out: &mut dyn Write) -> io::Result<()> {
    for (index, (file, text)) in found.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "# {}", printable_text(file))?;
        for line in text.lines() {
            writeln!(out, "{}", printable_text(line))?;
        }
    }
    Ok(())
}

/// Takes the lines of one rule out of a file: from its id to the next entry of the same list.
fn as_written(text: &str, id: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_start = |line: &&str| line.trim_start().strip_prefix("- id:").is_some_and(|rest| rest.trim() == id);
    let start = lines.iter().position(is_start)?;
    let indent = lines[start].len() - lines[start].trim_start().len();
    let is_end = |line: &&&str| {
        let content = line.trim_start();
        !content.is_empty() && (line.len() - content.len() < indent || (line.len() - content.len() == indent))
    };
    let length = lines[start + 1..].iter().position(|line| is_end(&line)).unwrap_or(lines.len() - start - 1);
    let rule: Vec<&str> = lines[start..=start + length].iter().map(|line| line.get(indent..).unwrap_or("")).collect();
    Some(rule.join("\n").trim_end().to_owned())
}

fn check(paths: &[PathBuf], dirs: &[PathBuf], out: &mut dyn Write) -> Result<u8, Error> {
    let mut all = files(dirs)?;
    let layer = all.iter().map(|file| file.layer).max().unwrap_or(0) + 1;
    let mut checked: Vec<RuleFile> = Vec::new();
    for path in paths {
        checked.push(read_file(path, layer)?);
    }
    let names: Vec<&str> = checked.iter().map(|file| file.name.as_str()).collect();
    all.extend(checked.iter().cloned());
    let mut problems: Vec<String> = Vec::new();
    match assemble(&all) {
        Ok(rules) => problems.extend(in_rules_of(&rules, &names)),
        Err(found) => {
            let own = |problem: &&Problem| names.contains(&problem.file.as_str()) || found.len() == 1;
            problems.extend(found.iter().filter(own).map(ToString::to_string));
        }
    }
    for problem in &problems {
        writeln!(out, "{}", printable_text(problem)).map_err(Error::Output)?;
    }
    if problems.is_empty() {
        let names: Vec<String> = paths.iter().map(printable).collect();
        writeln!(out, "{}: no problems", names.join(", ")).map_err(Error::Output)?;
        return Ok(EXIT_OK);
    }
    Ok(EXIT_FAILURE)
}

/// Returns the failing examples of the rules that are written in these files.
fn in_rules_of(rules: &RuleSet, names: &[&str]) -> Vec<String> {
    let is_own = |kind: &'static str, id: &str| {
        rules.origins.get(&(kind, id.to_owned())).is_some_and(|file| names.contains(&file.as_str()))
    };
    let outcome = run_examples(rules);
    let failures = outcome.failures.into_iter().filter(|failure| is_own(failure.kind, &failure.rule));
    let mut problems: Vec<String> = failures
        .map(|it| {
            let file = rules.origins.get(&(it.kind, it.rule.clone())).cloned().unwrap_or_default();
            format!("{file}: {} `{}`, example {}: {}", it.kind, it.rule, it.example, it.what)
        })
        .collect();
    for file in rules.filesystem.iter().filter(|file| names.contains(&file.name.as_str())) {
        problems.extend(FilesystemRuleSet::from_yaml(&file.name, &file.text).err().map(|error| error.to_string()));
    }
    problems
}

fn test(dirs: &[PathBuf], out: &mut dyn Write) -> Result<u8, Error> {
    let rules = RuleSet::load(dirs)?;
    let outcome = run_examples(&rules);
    let filesystem = rules.filesystem_rules()?;
    let of_mounts = filesystem.failed_examples();
    for it in &outcome.failures {
        writeln!(out, "{} `{}`, example {}: {}", it.kind, it.rule, it.example, it.what).map_err(Error::Output)?;
    }
    for failed in &of_mounts {
        writeln!(out, "filesystem `{}`: {}", failed.rule, failed.problem).map_err(Error::Output)?;
    }
    let failed = outcome.failures.len() + of_mounts.len();
    let count = outcome.rules + filesystem.iter().count();
    writeln!(out, "{count} rules, {} examples besides those of mounts, {failed} failed", outcome.examples)
        .map_err(Error::Output)?;
    Ok(if failed == 0 { EXIT_OK } else { EXIT_FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_cut_out_of_its_file_as_it_is_written() {
        let text =
            "kind: hazard\nrules:\n  - id: one\n    say: a\n    when:\n      - id: no\n\n  - id: two\n    say: b\n";
        assert_eq!(as_written(text, "one").unwrap(), "- id: one\n  say: a\n  when:\n    - id: no");
        assert_eq!(as_written(text, "two").unwrap(), "- id: two\n  say: b");
        assert_eq!(as_written(text, "three"), None);
    }
}
