//! `package.json`.

use serde_json::Value;

use super::Extracted;

/// Keys that say what kind of package it is.
const TELLING_KEYS: [&str; 4] = ["unity", "workspaces", "vcpkg", "os"];

/// Takes the operating systems, scripts, dependencies and telling keys out of a `package.json`.
pub(super) fn package(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let package = super::json(text)?;
    let package = package.as_object()?;
    for key in TELLING_KEYS {
        if package.contains_key(key) {
            out.add("node.keys", key, path);
        }
    }
    for system in package.get("os").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        out.add("node.os", system, path);
    }
    for (name, script) in package.get("scripts").and_then(Value::as_object).into_iter().flatten() {
        // Scripts around releases are run by a maintainer, on whatever system that one has.
        let is_for_maintainers = ["release", "publish", "version", "deploy"].iter().any(|word| name.contains(word));
        if let Some(script) = script.as_str().filter(|_| !is_for_maintainers) {
            out.add("node.scripts", script, path);
        }
    }
    for table in ["dependencies", "devDependencies", "optionalDependencies"] {
        for name in package.get(table).and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys) {
            out.add("node.dependencies", name, path);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_scripts_are_left_out() {
        let mut out = Extracted::default();
        let text = r#"{ "os": ["!win32"], "scripts": { "build": "tsc", "release": "rm -rf dist" } }"#;
        package("package.json", text, &mut out).unwrap();
        assert_eq!(out.items["node.scripts"].len(), 1);
        assert_eq!(out.items["node.os"][0].value, "!win32");
    }
}
