//! Python metadata: classifiers and requirements.

use std::sync::OnceLock;

use regex::Regex;
use toml::{Table, Value};

use super::Extracted;

/// What every classifier about systems begins with.
const SYSTEM_CLASSIFIER: &str = "Operating System ::";

/// Takes classifiers and requirements out of a `pyproject.toml` (standard tables, Poetry).
pub(super) fn pyproject(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let file: Table = text.parse().ok()?;
    let poetry = file.get("tool").and_then(|tool| tool.get("poetry"));
    for table in [file.get("project"), poetry].into_iter().flatten() {
        for classifier in table.get("classifiers").and_then(Value::as_array).into_iter().flatten() {
            add_classifier(classifier.as_str().unwrap_or_default(), path, out);
        }
        match table.get("dependencies") {
            Some(Value::Array(requirements)) => {
                requirements.iter().filter_map(Value::as_str).for_each(|text| add_requirement(text, path, out));
            }
            Some(Value::Table(requirements)) => {
                for (name, requirement) in requirements {
                    let is_marked = requirement.get("markers").is_some() || requirement.get("platform").is_some();
                    let is_optional = requirement.get("optional").is_some();
                    add_requirement(&format!("{name}{}", if is_marked || is_optional { ";" } else { "" }), path, out);
                }
            }
            _ => {}
        }
    }
    Some(())
}

/// Takes classifiers and requirements out of a `setup.cfg`.
pub(super) fn setup_cfg(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let mut file = configparser::ini::Ini::new();
    file.set_multiline(true);
    file.read(text.to_owned()).ok()?;
    for line in file.get("metadata", "classifiers").unwrap_or_default().lines() {
        add_classifier(line.trim(), path, out);
    }
    for line in file.get("options", "install_requires").unwrap_or_default().lines() {
        add_requirement(line, path, out);
    }
    Some(())
}

/// Takes classifiers and quoted requirements out of a `setup.py`.
///
/// It is a program, so its text is searched for literals; what it computes stays unknown.
pub(super) fn setup_py(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    static CLASSIFIER: OnceLock<Option<Regex>> = OnceLock::new();
    static REQUIREMENT: OnceLock<Option<Regex>> = OnceLock::new();
    let classifier = CLASSIFIER.get_or_init(|| Regex::new(r#"['"](Operating System ::[^'"]+)['"]"#).ok()).as_ref()?;
    for found in classifier.captures_iter(text) {
        add_classifier(&found[1], path, out);
    }
    // Names of packages as they stand in `install_requires`: a quoted name with an optional version and marker.
    let requirement = REQUIREMENT
        .get_or_init(|| Regex::new(r#"['"]([A-Za-z][A-Za-z0-9._-]*\s*(?:[<>=!~]=?[^'";]*)?(?:;[^'"]*)?)['"]"#).ok())
        .as_ref()?;
    let lists = text.split("install_requires").skip(1).filter_map(|rest| rest.split(']').next());
    for list in lists {
        for found in requirement.captures_iter(list) {
            add_requirement(&found[1], path, out);
        }
    }
    Some(())
}

/// Takes the lines of a requirements file.
pub(super) fn requirements(path: &str, text: &str, out: &mut Extracted) {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '-']));
    lines.for_each(|line| add_requirement(line, path, out));
}

fn add_classifier(text: &str, path: &str, out: &mut Extracted) {
    if let Some(system) = text.trim().strip_prefix(SYSTEM_CLASSIFIER) {
        out.add_once("python.classifiers", system.trim(), path);
    }
}

/// Adds the name of a requirement, with `;` behind it when a marker limits it.
fn add_requirement(text: &str, path: &str, out: &mut Extracted) {
    let text = text.split('#').next().unwrap_or_default();
    let name: String =
        text.trim().chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')).collect();
    if !name.is_empty() {
        let name = name.to_ascii_lowercase().replace('_', "-");
        let marker = if text.contains(';') { ";" } else { "" };
        out.add_once("python.requirements", format!("{name}{marker}"), path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(out: &Extracted, name: &str) -> Vec<String> {
        out.items.get(name).into_iter().flatten().map(|item| item.value.clone()).collect()
    }

    #[test]
    fn a_marked_requirement_is_told_from_a_plain_one() {
        let mut out = Extracted::default();
        let text = "[project]\nclassifiers = ['Operating System :: POSIX', 'Topic :: X']\n\
                    dependencies = ['uvloop>=1', 'pywin32; sys_platform == \"win32\"']\n";
        pyproject("pyproject.toml", text, &mut out).unwrap();
        assert_eq!(values(&out, "python.classifiers"), ["POSIX"]);
        assert_eq!(values(&out, "python.requirements"), ["uvloop", "pywin32;"]);
    }

    #[test]
    fn setup_files_are_read() {
        let mut out = Extracted::default();
        setup_cfg("setup.cfg", "[metadata]\nclassifiers =\n    Operating System :: Microsoft :: Windows\n", &mut out)
            .unwrap();
        setup_py("setup.py", "setup(install_requires=['comtypes>=1', \"six\"], x=['no'])", &mut out).unwrap();
        assert_eq!(values(&out, "python.classifiers"), ["Microsoft :: Windows"]);
        assert_eq!(values(&out, "python.requirements"), ["comtypes", "six"]);
    }
}
