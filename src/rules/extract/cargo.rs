//! Cargo manifests and configuration.

use toml::{Table, Value};

use super::Extracted;

/// Dependency tables that count as unconditional.
const TABLES: [&str; 2] = ["dependencies", "build-dependencies"];

/// Takes unconditional dependencies, target tables and the default target out of a `Cargo.toml`.
///
/// A workspace's own table only names versions that members may ask for, so it does not count; nor do optional ones.
pub(super) fn manifest(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let manifest: Table = text.parse().ok()?;
    for table in TABLES {
        for (name, dependency) in manifest.get(table).and_then(Value::as_table).into_iter().flatten() {
            let is_optional = dependency.get("optional").and_then(Value::as_bool).unwrap_or(false);
            if !is_optional {
                let package = dependency.get("package").and_then(Value::as_str).unwrap_or(name);
                out.add("cargo.dependencies", package, path);
            }
        }
    }
    for (condition, table) in manifest.get("target").and_then(Value::as_table).into_iter().flatten() {
        let has_dependencies = TABLES.iter().any(|name| table.get(*name).is_some());
        if has_dependencies {
            out.add("cargo.target_tables", family(condition), path);
        }
    }
    let docs = ["package", "metadata", "docs", "rs", "default-target"];
    let target = docs.iter().try_fold(&Value::Table(manifest.clone()), |value, key| value.get(*key)).cloned();
    if let Some(Value::String(target)) = target {
        out.add("cargo.build_target", target, path);
    }
    Some(())
}

/// Takes the default target out of a `.cargo/config.toml`.
pub(super) fn config(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let config: Table = text.parse().ok()?;
    match config.get("build").and_then(|build| build.get("target")) {
        Some(Value::String(target)) => out.add("cargo.build_target", target.clone(), path),
        Some(Value::Array(targets)) => {
            targets.iter().filter_map(Value::as_str).for_each(|target| out.add("cargo.build_target", target, path));
        }
        _ => {}
    }
    Some(())
}

/// Names the family that a `[target.'...']` table is for.
fn family(condition: &str) -> &'static str {
    let condition = condition.to_ascii_lowercase().replace(' ', "");
    let is_negated = condition.contains("not(");
    if condition.contains("windows") {
        if is_negated { "unix" } else { "windows" }
    } else if ["unix", "linux", "macos", "apple", "bsd"].iter().any(|word| condition.contains(word)) {
        if is_negated { "other" } else { "unix" }
    } else {
        "other"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_and_conditional_dependencies_are_not_unconditional() {
        let text = r#"
[dependencies]
serde = "1"
windows = { version = "0.6", optional = true }
win = { package = "winapi", version = "0.3" }
[target.'cfg(windows)'.dependencies]
winreg = "1"
[target."cfg(not(windows))".dependencies]
nix = "1"
[workspace.dependencies]
windows-sys = "1"
[package.metadata.docs.rs]
default-target = "x86_64-pc-windows-msvc"
"#;
        let mut out = Extracted::default();
        manifest("Cargo.toml", text, &mut out).unwrap();
        let values = |name: &str| out.items[name].iter().map(|item| item.value.as_str()).collect::<Vec<_>>();
        assert_eq!(values("cargo.dependencies"), ["serde", "winapi"]);
        assert_eq!(values("cargo.target_tables"), ["unix", "windows"]);
        assert_eq!(values("cargo.build_target"), ["x86_64-pc-windows-msvc"]);
    }
}
