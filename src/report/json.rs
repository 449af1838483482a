//! What is printed as JSON: every value unrounded, under the names of its type.

use std::io::{self, Write};

use serde::Serialize;

/// Writes a value as indented JSON with a newline at its end.
///
/// Control characters arrive as JSON escapes, so that the file is safe to show on a terminal, too.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    write_escaped(&text, out)
}

/// Writes JSON text and a newline; what a terminal would act on is written as its escape.
///
/// JSON itself asks only for the first 32 characters to be escaped; a terminal also acts on DEL, C1 and bidi marks, which
/// can only stand in strings.
pub(super) fn write_escaped(text: &str, out: &mut dyn Write) -> io::Result<()> {
    for c in text.chars() {
        if c != '\n' && crate::error::printable_text(c.encode_utf8(&mut [0; 4])).len() != c.len_utf8() {
            write!(out, "\\u{:04x}", u32::from(c))?;
        } else {
            write!(out, "{c}")?;
        }
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::super::{Report, sample};
    use super::*;

    #[test]
    fn a_report_survives_the_way_through_json() {
        for (name, report) in sample::all() {
            let mut out = Vec::new();
            write_json(&report, &mut out).unwrap();
            assert_eq!(serde_json::from_slice::<Report>(&out).unwrap(), report, "{name}");
        }
    }

    #[test]
    fn json_is_safe_on_a_terminal() {
        let mut report = sample::hostile();
        report.facts.site.path.push_str("\u{7f}\u{9b}31m");
        let mut out = Vec::new();
        write_json(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}'), None);
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
