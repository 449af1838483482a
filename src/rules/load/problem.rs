//! Mistakes in rule files: where they are and what would be right.

use std::fmt;

use serde::de::DeserializeOwned;

use super::RuleFile;
use crate::rules::names::nearest;

/// A mistake in a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// Line and column, counted from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// What is wrong, with the nearest valid name where there is one.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(formatter, "{}:{line}:{column}: {}", self.file, self.what),
            None => write!(formatter, "{}: {}", self.file, self.what),
        }
    }
}

/// Parses YAML into a type, with the place of a mistake and the nearest valid name.
pub(super) fn parse<T: DeserializeOwned>(file: &RuleFile) -> Result<T, Problem> {
    serde_yaml::from_str(&file.text).map_err(|error| Problem {
        file: file.name.clone(),
        place: error.location().map(|location| (location.line(), location.column())),
        what: reworded(&error.to_string()),
    })
}

/// Takes the place out of a message, which is printed before it, and names the nearest of the expected words.
fn reworded(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(what, _)| what);
    let Some((what, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let wrong = what.rsplit('`').nth(1);
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    match wrong {
        Some(wrong) if what.contains("unknown") && !known.is_empty() => {
            let offer = nearest(wrong, known.iter().copied());
            if offer.is_empty() {
                format!("{what}, known are `{}`", known.join("`, `"))
            } else {
                format!("{what}{offer}")
            }
        }
        _ => message.to_owned(),
    }
}

pub(super) fn lines_of(text: &str, wanted: &str) -> Vec<usize> {
    let is_wanted = |line: &str| line.trim_start().trim_start_matches("- ").trim_start_matches("{ ").trim() == wanted;
    text.lines().enumerate().filter(|(_, line)| is_wanted(line)).map(|(number, _)| number + 1).collect()
}

pub(super) fn line_of(text: &str, wanted: &str) -> Option<usize> {
    lines_of(text, wanted).first().copied()
}
