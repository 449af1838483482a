//! The checked words of a rule file: globs, patterns, names of facts and values, thresholds.
//!
//! Each is checked while it is read, so that an error carries the line and column where it stands.

use std::borrow::Cow;
use std::fmt;

use globset::{Glob, GlobBuilder};
use regex::{Regex, RegexBuilder};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Visitor};

use super::extract::VALUE_NAMES;
use super::names::{check_fact_name, nearest};

/// Deserializes a text and checks it while the deserializer still knows where it stands.
fn checked<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    check: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Checked { expected, check })
}

struct Checked<F> {
    expected: &'static str,
    check: F,
}

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Checked<F> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<T, E> {
        (self.check)(value).map_err(E::custom)
    }
}

/// A glob over whole paths of the repository: `*` stops at a slash, `**/` is any number of folders.
///
/// Matching ignores case: the same file is `Makefile`, `makefile` and `MAKEFILE` on different systems.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathGlob(String);

impl PathGlob {
    /// Parses a glob.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.starts_with('/') || text.starts_with("./") {
            return Err(format!("bad glob `{text}`: write it relative to the repository, as `src/**/*.c`"));
        }
        let glob = Self(text.to_lowercase());
        glob.build().map_err(|error| format!("bad glob `{text}`: {}", error.kind()))?;
        Ok(glob)
    }

    /// Returns the glob in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compiles it.
    pub(super) fn build(&self) -> Result<Glob, globset::Error> {
        GlobBuilder::new(&self.0).literal_separator(true).build()
    }
}

impl<'de> Deserialize<'de> for PathGlob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, "a glob", Self::parse)
    }
}

impl JsonSchema for PathGlob {
    fn schema_name() -> Cow<'static, str> {
        "PathGlob".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A glob over whole paths of the repository, without regard to case; `*` stops at a slash, `**/` is any number of folders."
        })
    }
}

/// A regular expression, searched for anywhere in the text; `^` and `$` match at lines.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// Size that a compiled pattern may have; the default of the regex crate would allow ten times as much.
const PATTERN_BYTES: usize = 1 << 20;

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        RegexBuilder::new(text).multi_line(true).size_limit(PATTERN_BYTES).build().map(Self).map_err(|error| {
            let what = error.to_string();
            let last = what.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
            format!("bad pattern `{text}`: {last}")
        })
    }

    /// Returns whether it occurs in the text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns how often it occurs in the text, without overlap.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.0.find_iter(text).count()
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, "a regular expression", Self::parse)
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "format": "regex",
            "description": "A regular expression in the syntax of Rust's regex crate, searched for anywhere; `^` and `$` match at lines."
        })
    }
}

/// The dotted name of a fact (`site.class`, `measure.git_status.speedup_low`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactName(String);

impl FactName {
    /// Returns the dotted name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for FactName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, "the name of a fact", |text| {
            check_fact_name(text)?;
            Ok(Self(text.to_owned()))
        })
    }
}

impl JsonSchema for FactName {
    fn schema_name() -> Cow<'static, str> {
        "FactName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "anyOf": [
                { "enum": super::names::fact_names() },
                { "pattern": "^measure\\.[a-z0-9_]+\\.[a-z_]+$" }
            ],
            "description": "The dotted name of a fact, as `rehome check --format json` prints it below `facts`."
        })
    }
}

/// The name of a value that an extractor takes out of files (`dotnet.frameworks`, `ci.systems`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueName(&'static str);

impl ValueName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl<'de> Deserialize<'de> for ValueName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, "the name of a value", |text| {
            let known = VALUE_NAMES.iter().find(|known| **known == text);
            let nearest = || nearest(text, VALUE_NAMES.iter().copied());
            known.map(|known| Self(known)).ok_or_else(|| format!("unknown value `{text}`{}", nearest()))
        })
    }
}

impl JsonSchema for ValueName {
    fn schema_name() -> Cow<'static, str> {
        "ValueName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "enum": VALUE_NAMES,
            "description": "A value that an extractor takes out of files of one format."
        })
    }
}

/// A number, or the name of a threshold that is defined once with its reason.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// The number itself.
    Number(f64),
    /// The id of a threshold; replaced by its number when all files are loaded.
    Named(String),
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LimitVisitor)
    }
}

struct LimitVisitor;

impl Visitor<'_> for LimitVisitor {
    type Value = Limit;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a number or the id of a threshold")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Limit, E> {
        #[expect(clippy::cast_precision_loss, reason = "limits in rule files are far below 2^53")]
        Ok(Limit::Number(value as f64))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Limit, E> {
        #[expect(clippy::cast_precision_loss, reason = "limits in rule files are far below 2^53")]
        Ok(Limit::Number(value as f64))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Limit, E> {
        if value.is_finite() { Ok(Limit::Number(value)) } else { Err(E::custom("a limit must be a finite number")) }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Limit, E> {
        check_id(value).map_err(E::custom)?;
        Ok(Limit::Named(value.to_owned()))
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "description": "A number, or the id of a threshold." })
    }
}

/// The id of a rule: lower-case words joined by hyphens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(String);

impl RuleId {
    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RuleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, "an id", |text| {
            check_id(text)?;
            Ok(Self(text.to_owned()))
        })
    }
}

impl JsonSchema for RuleId {
    fn schema_name() -> Cow<'static, str> {
        "RuleId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "description": "Lower-case words joined by hyphens." })
    }
}

fn check_id(text: &str) -> Result<(), String> {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if text.split('-').all(is_word) {
        Ok(())
    } else {
        Err(format!("bad id `{text}`: write lower-case words joined by hyphens, as `msbuild-solution`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stops_at_a_slash() {
        let matcher = PathGlob::parse("*.SLN").unwrap().build().unwrap().compile_matcher();
        assert!(matcher.is_match("shop.sln"));
        assert!(!matcher.is_match("src/shop.sln"));
    }

    #[test]
    fn a_bad_glob_or_pattern_says_which_and_why() {
        assert!(PathGlob::parse("src/[a").unwrap_err().contains("src/[a"));
        assert!(PathGlob::parse("/etc/*").unwrap_err().contains("relative to the repository"));
        assert!(Pattern::parse("a(").unwrap_err().contains("unclosed group"));
    }

    #[test]
    fn ids_are_kebab_case() {
        assert!(check_id("net-4-only").is_ok());
        for bad in ["", "Net", "a--b", "a_b", "-a"] {
            assert!(check_id(bad).is_err(), "{bad}");
        }
    }
}
