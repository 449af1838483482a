//! The valid names of facts, taken from the schema of [`Facts`], and the nearest one to a wrong name.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::Value;

use crate::facts::Facts;

/// Returns every dotted name; `*` stands for the name of a workload.
#[must_use]
pub fn fact_names() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let schema = schemars::schema_for!(Facts).to_value();
        let mut names = BTreeSet::new();
        collect(&schema, &schema, "", &mut names);
        names
    })
}

/// Checks that a dotted name is that of a fact.
///
/// # Errors
///
/// A sentence with the nearest valid name.
pub fn check_fact_name(name: &str) -> Result<(), String> {
    let known = fact_names();
    if known.contains(name) || known.contains(&with_any_workload(name)) {
        return Ok(());
    }
    let candidates: Vec<String> = match name.split('.').collect::<Vec<_>>()[..] {
        // The workload's name is free, so the field is what must be wrong.
        ["measure", workload, _] => known.iter().map(|known| known.replacen('*', workload, 1)).collect(),
        _ => known.iter().cloned().collect(),
    };
    Err(format!("unknown fact `{name}`{}", nearest(name, candidates.iter().map(String::as_str))))
}

/// Returns `, did you mean ...?` for the known name that is nearest to a wrong one, or a list of the known ones.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    /// Similarity (Jaro-Winkler) from which a name is offered; below it the offer would be a guess.
    const OFFER_FROM: f64 = 0.75;
    /// More names than these are no help in a message.
    const LIST_AT_MOST: usize = 12;
    let known: Vec<&str> = known.into_iter().collect();
    let best = known
        .iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), *name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity >= OFFER_FROM);
    let mut out = String::new();
    if let Some((_, name)) = best {
        let _ = write!(out, ", did you mean `{name}`?");
    } else if known.len() <= LIST_AT_MOST {
        let _ = write!(out, ", known are `{}`", known.join("`, `"));
    }
    out
}

fn with_any_workload(name: &str) -> String {
    match name.split('.').collect::<Vec<_>>()[..] {
        ["measure", workload, field] if !workload.is_empty() => format!("measure.*.{field}"),
        _ => name.to_owned(),
    }
}

fn collect(schema: &Value, root: &Value, prefix: &str, names: &mut BTreeSet<String>) {
    let schema = resolve(schema, root);
    for key in ["allOf", "anyOf", "oneOf"] {
        for part in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect(part, root, prefix, names);
        }
    }
    let join = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let path = join(name);
        if is_object(property, root) {
            collect(property, root, &path, names);
        } else {
            names.insert(path);
        }
    }
    if let Some(any) = schema.get("additionalProperties").filter(|any| any.is_object()) {
        collect(any, root, &join("*"), names);
    }
}

fn is_object(schema: &Value, root: &Value) -> bool {
    let schema = resolve(schema, root);
    let has_parts = |key: &str| {
        let parts = schema.get(key).and_then(Value::as_array);
        parts.into_iter().flatten().any(|part| is_object(part, root))
    };
    schema.get("properties").is_some()
        || schema.get("additionalProperties").is_some_and(Value::is_object)
        || has_parts("allOf")
        || has_parts("anyOf")
}

fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_part_of_the_tree_are_known() {
        for name in [
            "platform",
            "site.class",
            "target.fstype",
            "target.free_bytes",
            "repo.tracked_files",
            "git.version",
            "toolchain.primary",
            "measure.git_status.speedup_low",
            "measure.mine.saved_s",
            "hazards.blocker",
        ] {
            assert_eq!(check_fact_name(name), Ok(()), "{name}");
        }
        assert!(!fact_names().contains("site"), "a part is no fact");
    }

    #[test]
    fn a_wrong_name_brings_the_nearest_right_one() {
        assert!(check_fact_name("repo.traked_files").unwrap_err().contains("did you mean `repo.tracked_files`?"));
        let wrong = check_fact_name("measure.git_status.speedup_lo").unwrap_err();
        assert!(wrong.contains("did you mean `measure.git_status.speedup_low`?"), "{wrong}");
    }
}
