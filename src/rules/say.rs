//! Fills the sentences of rules with facts, in plain words.

use serde_json::Value;

use super::evaluate::lookup;
use crate::format;

/// Fills a template: `{fact.name}` becomes the fact in words; a part in brackets is left out when a fact in it is absent.
///
/// A fact that is absent outside brackets becomes `unknown`: no number is ever made up.
#[must_use]
pub fn fill(template: &str, facts: &Value) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find(']') else { break };
        out.push_str(&filled(&rest[..open], facts).0);
        let (part, is_complete) = filled(&rest[open + 1..open + close], facts);
        if is_complete {
            out.push_str(&part);
        }
        rest = &rest[open + close + 1..];
    }
    out.push_str(&filled(rest, facts).0);
    out.trim().to_owned()
}

fn filled(text: &str, facts: &Value) -> (String, bool) {
    let mut out = String::new();
    let mut is_complete = true;
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        out.push_str(&rest[..open]);
        let name = &rest[open + 1..open + close];
        if let Some(value) = lookup(facts, name) {
            out.push_str(&in_words(name, value));
        } else {
            is_complete = false;
            out.push_str("unknown");
        }
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    (out, is_complete)
}

/// Writes a fact as a person would say it; the unit is told by the end of its name.
fn in_words(name: &str, value: &Value) -> String {
    let field = name.rsplit('.').next().unwrap_or(name);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if field.ends_with("_s") {
                format::seconds(number)
            } else if field.ends_with("_bytes") {
                value.as_u64().map_or_else(|| plain(number), format::bytes)
            } else if field.starts_with("speedup") {
                format::ratio_number(number)
            } else {
                plain(number)
            }
        }
        Value::String(text) => crate::error::printable_text(text),
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(|item| in_words(name, item)).collect();
            words.join(", ")
        }
        Value::Bool(flag) => (if *flag { "yes" } else { "no" }).to_owned(),
        Value::Null | Value::Object(_) => "unknown".to_owned(),
    }
}

fn plain(number: f64) -> String {
    if number.fract() == 0.0 { format::whole(number) } else { format!("{number:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_written_in_plain_words() {
        let facts = serde_json::json!({
            "measure": { "git_status": { "in_place_s": 0.951, "in_copy_s": 0.0053, "speedup_low": 171.2 } },
            "repo": { "tracked_files": 1284, "tracked_bytes": 38_400_000 }
        });
        let say = "`git status` takes {measure.git_status.in_place_s}, {measure.git_status.in_copy_s} in the copy, at least \
                   {measure.git_status.speedup_low} times faster; {repo.tracked_files} files, {repo.tracked_bytes}";
        assert_eq!(
            fill(say, &facts),
            "`git status` takes 951 ms, 5.3 ms in the copy, at least 171 times faster; 1,284 files, 38 MB"
        );
    }

    #[test]
    fn a_bracket_with_an_absent_fact_is_left_out() {
        let facts = serde_json::json!({ "repo": { "tracked_files": 3 } });
        assert_eq!(
            fill("Stay[, it saves {measure.stat.saved_s}]. {repo.tracked_files} files[ ({site.name})].", &facts),
            "Stay. 3 files."
        );
        assert_eq!(fill("In {site.name}", &facts), "In unknown");
    }
}
