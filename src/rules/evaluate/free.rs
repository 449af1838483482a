//! Conditions that read nothing: facts, configuration, the index as a whole.

use super::{Evaluator, Outcome, Truth};
use crate::rules::condition::{FactTest, GitConfigTest, IndexTest};
use crate::rules::words::{FactName, Limit};

impl Evaluator<'_> {
    pub(super) fn fact(&self, test: &FactTest) -> Outcome {
        let value = lookup(self.subject.facts, test.name.as_str());
        if let Some(known) = test.known {
            if value.is_some() != known {
                return Outcome::of(Truth::False);
            }
            if !known {
                return Outcome::of(Truth::True);
            }
        }
        let Some(value) = value else { return Outcome::of(Truth::False) };
        let number = value.as_f64().or_else(|| {
            #[expect(clippy::cast_precision_loss, reason = "lists of facts are short")]
            value.as_array().map(|list| list.len() as f64)
        });
        let limit = |limit: &Option<Limit>, holds: fn(f64, f64) -> bool| match limit {
            Some(Limit::Number(limit)) => number.is_some_and(|number| holds(number, *limit)),
            Some(Limit::Named(_)) => false,
            None => true,
        };
        let is_below = |name: &FactName| {
            let other = lookup(self.subject.facts, name.as_str()).and_then(serde_json::Value::as_f64);
            matches!((number, other), (Some(number), Some(other)) if number < other)
        };
        let holds = test.is.as_ref().is_none_or(|wanted| same(value, &wanted.0))
            && (test.one_of.is_empty() || test.one_of.iter().any(|wanted| same(value, &wanted.0)))
            && test.includes.as_ref().is_none_or(|wanted| {
                value.as_array().is_some_and(|list| list.iter().any(|item| same(item, &wanted.0)))
            })
            && test.matches.as_ref().is_none_or(|pattern| match value {
                serde_json::Value::String(value) => pattern.is_match(value),
                serde_json::Value::Array(list) => {
                    list.iter().filter_map(serde_json::Value::as_str).any(|value| pattern.is_match(value))
                }
                _ => false,
            })
            && limit(&test.at_least, |number, limit| number >= limit)
            && limit(&test.at_most, |number, limit| number <= limit)
            && limit(&test.below, |number, limit| number < limit)
            && test.below_fact.as_ref().is_none_or(is_below);
        let matched = format!("{} = {}", test.name.as_str(), plain(value));
        Outcome::matching(Truth::from(holds), Some(matched))
    }

    pub(super) fn git_config(&self, test: &GitConfigTest) -> Outcome {
        let key = test.key.to_lowercase();
        let found = self.subject.config.iter().find(|entry| {
            (entry.is_own || !test.own)
                && is_key(&entry.key, &key)
                && test.matches.as_ref().is_none_or(|pattern| pattern.is_match(&entry.value))
        });
        Outcome::matching(Truth::from(found.is_some()), found.map(|entry| entry.key.clone()))
    }

    pub(super) fn index(&self, test: &IndexTest) -> Outcome {
        let count = self.subject.index.get(&test.property).copied().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "an index holds far fewer than 2^53 entries")]
        let share = count as f64 / self.subject.paths.len().max(1) as f64;
        let holds = count >= test.at_least as u64 && test.share_at_least.is_none_or(|limit| share >= limit);
        Outcome::matching(Truth::from(holds), Some(format!("{count} entries of the index")))
    }
}

/// Returns the value of a fact by its dotted name.
#[must_use]
pub fn lookup<'a>(facts: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    name.split('.').try_fold(facts, |value, part| value.get(part)).filter(|value| !value.is_null())
}

fn same(value: &serde_json::Value, wanted: &serde_json::Value) -> bool {
    match (value.as_f64(), wanted.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => value == wanted,
    }
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Compares `remote.*.url` with `remote.origin.url`; a subsection may hold dots.
fn is_key(key: &str, wanted: &str) -> bool {
    match wanted.split_once(".*.") {
        Some((section, name)) => {
            let inner = key.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
            inner.and_then(|rest| rest.strip_suffix(name)).is_some_and(|rest| rest.ends_with('.'))
        }
        None => key == wanted,
    }
}
