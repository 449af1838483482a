//! Fills the sentences of rules with facts, in plain words.

use serde_json::Value;

use super::evaluate::lookup;

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
                duration(number)
            } else if field.ends_with("_bytes") {
                bytes(number)
            } else if field.starts_with("speedup") {
                ratio(number)
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

/// Writes seconds with the unit that leaves two or three digits.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let magnitude = seconds.abs();
    if magnitude >= 120.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if magnitude >= 1.0 {
        format!("{} s", digits(seconds))
    } else if magnitude >= 1e-3 {
        format!("{} ms", digits(seconds * 1e3))
    } else if magnitude >= 1e-6 {
        format!("{} µs", digits(seconds * 1e6))
    } else {
        format!("{} ns", digits(seconds * 1e9))
    }
}

/// Writes a ratio: `2.1`, `47`, `2,087` times.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    if ratio >= 10.0 { plain(ratio.round()) } else { format!("{ratio:.1}") }
}

fn bytes(bytes: f64) -> String {
    /// Steps of 1000, as disks and `ls --si` count.
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let mut value = bytes;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if unit == "bytes" { format!("{value:.0} bytes") } else { format!("{} {unit}", digits(value)) }
}

fn digits(value: f64) -> String {
    if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn plain(number: f64) -> String {
    if number.fract() != 0.0 {
        return format!("{number:.2}");
    }
    let text = format!("{:.0}", number.abs());
    let mut out = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0.0 { format!("-{out}") } else { out }
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
            "`git status` takes 951 ms, 5.30 ms in the copy, at least 171 times faster; 1,284 files, 38.4 MB"
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
