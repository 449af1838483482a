//! `CMakePresets.json`.

use serde_json::Value;

use super::Extracted;

/// Names the system that each visible configure preset is for: `windows`, `unix` or `any`.
pub(super) fn presets(path: &str, text: &str, out: &mut Extracted) -> Option<()> {
    let presets = super::json(text)?;
    let presets = presets.get("configurePresets").and_then(Value::as_array)?;
    for preset in presets {
        let is_hidden = preset.get("hidden").and_then(Value::as_bool).unwrap_or(false);
        if !is_hidden {
            out.add("cmake.preset_systems", system(preset, presets, 0), path);
        }
    }
    Some(())
}

/// Depth of `inherits` that is followed; `CMake` forbids cycles, a broken file may have one.
const MAX_INHERITANCE: usize = 8;

fn system(preset: &Value, all: &[Value], depth: usize) -> &'static str {
    let own = own_system(preset);
    if own != "any" || depth == MAX_INHERITANCE {
        return own;
    }
    let parents: Vec<&str> = match preset.get("inherits") {
        Some(Value::String(parent)) => vec![parent.as_str()],
        Some(Value::Array(parents)) => parents.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let named = |name: &str| all.iter().find(|preset| preset.get("name").and_then(Value::as_str) == Some(name));
    let inherited = parents.into_iter().filter_map(named).map(|parent| system(parent, all, depth + 1));
    inherited.into_iter().find(|system| *system != "any").unwrap_or("any")
}

fn own_system(preset: &Value) -> &'static str {
    let text = |key: &str| preset.get(key).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let condition = preset.get("condition");
    let part = |key: &str| condition.and_then(|it| it.get(key)).and_then(Value::as_str).unwrap_or_default();
    let is_for = |system: &str| {
        part("type") == "equals" && part("lhs") == "${hostSystemName}" && part("rhs").eq_ignore_ascii_case(system)
    };
    let name = text("name");
    let cache = |key: &str| {
        let value = preset.get("cacheVariables").and_then(|all| all.get(key));
        let value = value.and_then(|value| value.get("value").or(Some(value))).and_then(Value::as_str);
        value.unwrap_or_default().to_ascii_lowercase()
    };
    let compiler = cache("CMAKE_CXX_COMPILER");
    if is_for("Windows")
        || text("generator").starts_with("visual studio")
        || ["msvc", "windows", "win32", "win64", "vs20"].iter().any(|word| name.contains(word))
        || ["cl", "cl.exe", "clang-cl", "clang-cl.exe"].contains(&compiler.as_str())
    {
        "windows"
    } else if is_for("Linux")
        || is_for("Darwin")
        || text("generator") == "unix makefiles"
        || ["linux", "macos", "unix", "gcc"].iter().any(|word| name.contains(word))
    {
        "unix"
    } else {
        "any"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_takes_the_system_of_its_parent() {
        let text = r#"{ "version": 3, "configurePresets": [
            { "name": "base", "hidden": true,
              "condition": { "type": "equals", "lhs": "${hostSystemName}", "rhs": "Windows" } },
            { "name": "debug", "inherits": "base" }, // comments are met in practice
            { "name": "plain", "generator": "Ninja" } ] }"#;
        let mut out = Extracted::default();
        presets("CMakePresets.json", text, &mut out).unwrap();
        let systems: Vec<_> = out.items["cmake.preset_systems"].iter().map(|item| item.value.as_str()).collect();
        assert_eq!(systems, ["windows", "any"]);
    }
}
