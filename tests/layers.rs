//! Data flows one way: a module uses only the layers above it in the table below.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Layers from the bottom up; modules on one line may use each other and everything before them.
const LAYERS: &[&[&str]] = &[
    &["units", "format", "error", "facts", "lock", "proc_stat", "progress", "signals"],
    &["scan"],
    &["measure", "bench"],
    &["rules"],
    &["judge"],
    &["advise"],
    &["migrate"],
    &["report"],
    &["state"],
    &["cli"],
    &["commands"],
];

#[test]
fn no_module_uses_a_later_stage() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut violations = Vec::new();
    let mut seen = 0;
    for file in rust_files(&source) {
        let relative = file.strip_prefix(&source).unwrap();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if matches!(module, "lib" | "main") {
            continue;
        }
        let own = layer(module).unwrap_or_else(|| panic!("`{module}` is in no layer: add it to this table"));
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let name: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                seen += 1;
                // `cli` is for the command layer alone, although its types would fit anywhere.
                let is_allowed = layer(&name).is_some_and(|used| used <= own);
                if !is_allowed {
                    violations.push(format!("{}:{}: uses crate::{name}", relative.display(), number + 1));
                }
            }
        }
    }
    assert!(seen > 0, "no `crate::` path was found, so nothing was checked");
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
