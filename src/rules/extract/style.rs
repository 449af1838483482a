//! Settings of style: `.gitattributes`, `.editorconfig`, `.vscode`.

use std::io::Cursor;

use gix_attributes::StateRef;
use gix_attributes::parse::Kind;
use serde_json::Value;

use super::Extracted;

/// Takes `PATTERN crlf`, `PATTERN lf` and the filters out of a `.gitattributes`.
pub(super) fn attributes(path: &str, text: &str, out: &mut Extracted) {
    // A line that git would refuse is no reason to distrust the others; git skips it as well.
    for (kind, assignments, _) in gix_attributes::parse(text.as_bytes()).flatten() {
        let Kind::Pattern(pattern) = kind else { continue };
        for assignment in assignments.flatten() {
            let StateRef::Value(value) = assignment.state else { continue };
            let value = value.as_bstr().to_string();
            match assignment.name.as_str() {
                "eol" => out.add("attributes.eol", format!("{} {value}", pattern.text), path),
                "filter" => out.add("attributes.filters", value, path),
                _ => {}
            }
        }
    }
}

/// Takes `SECTION crlf` or `SECTION lf` out of an `.editorconfig`.
pub(super) fn editorconfig(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let mut parser = ec4rs::ConfigParser::new(Cursor::new(text)).ok()?;
    let mut section_name = String::new();
    let mut names = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    while let Ok(section) = parser.read_section() {
        // The parser keeps a section's pattern compiled and not as text, so the names are read beside it.
        if let Some(name) = names.next() {
            name.clone_into(&mut section_name);
        }
        if let Some(value) = section.props().get_raw_for_key("end_of_line").into_option() {
            out.add("editorconfig.end_of_line", format!("{section_name} {}", value.to_ascii_lowercase()), path);
        }
    }
    Some(())
}

/// Takes the debugger types and the programs of tasks out of files in `.vscode`.
pub(super) fn vscode(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let file = super::json(text)?;
    let entries = |key: &str| file.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    for entry in entries("configurations") {
        if let Some(kind) = entry.get("type").and_then(Value::as_str) {
            out.add("vscode.types", kind, path);
        }
    }
    for entry in entries("tasks") {
        if let Some(command) = entry.get("command").and_then(Value::as_str) {
            out.add("vscode.types", command, path);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(out: &Extracted, name: &str) -> Vec<String> {
        out.items.get(name).into_iter().flatten().map(|item| item.value.clone()).collect()
    }

    #[test]
    fn line_endings_of_attributes_are_named_by_pattern() {
        let mut out = Extracted::default();
        let text = "* text=auto eol=crlf\n*.sh eol=lf\n*.psd filter=lfs -text\n[attr]x eol=lf\n";
        attributes(".gitattributes", text, &mut out);
        assert_eq!(values(&out, "attributes.eol"), ["* crlf", "*.sh lf"]);
        assert_eq!(values(&out, "attributes.filters"), ["lfs"]);
    }

    #[test]
    fn line_endings_of_an_editorconfig_are_named_by_section() {
        let mut out = Extracted::default();
        let text = "root = true\n\n[*]\nindent_size = 4\nend_of_line = CRLF\n[*.sh]\nend_of_line = lf\n";
        editorconfig(".editorconfig", text, &mut out).unwrap();
        assert_eq!(values(&out, "editorconfig.end_of_line"), ["* crlf", "*.sh lf"]);
    }
}
