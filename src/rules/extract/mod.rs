//! Typed extractors: each parses one format with a parser of that format and names the values that rules may ask for.

mod cargo;
mod ci;
mod cmake;
mod compose;
mod docker;
mod dotnet;
mod node;
mod python;
mod style;
mod workflow;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reader of one format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extractor {
    /// `*.csproj`, `*.vbproj`, `*.fsproj`, `*.props`.
    Dotnet,
    /// `*.vcxproj`.
    VisualCpp,
    /// GitHub workflows.
    Workflows,
    /// Azure Pipelines.
    Azure,
    /// `AppVeyor`.
    Appveyor,
    /// GitLab CI.
    Gitlab,
    /// Travis, `CircleCI`, Cirrus and sourcehut builds.
    OtherCi,
    /// `Cargo.toml`.
    Cargo,
    /// `.cargo/config.toml`.
    CargoConfig,
    /// `package.json`.
    Node,
    /// `pyproject.toml`.
    Pyproject,
    /// `setup.cfg`.
    SetupCfg,
    /// `setup.py`.
    SetupPy,
    /// `requirements*.txt`.
    Requirements,
    /// `CMakePresets.json`.
    CmakePresets,
    /// `.gitattributes`.
    Attributes,
    /// `.editorconfig`.
    Editorconfig,
    /// `compose.yaml` and its older names.
    Compose,
    /// `Dockerfile`.
    Docker,
    /// `.vscode/tasks.json` and `launch.json`.
    Vscode,
}

/// The values that rules may name, each with the extractors that find it.
pub const VALUE_SOURCES: &[(&str, &[Extractor])] = &[
    ("attributes.eol", &[Extractor::Attributes]),
    ("attributes.filters", &[Extractor::Attributes]),
    ("azure.images", &[Extractor::Azure]),
    ("appveyor.images", &[Extractor::Appveyor]),
    ("cargo.build_target", &[Extractor::Cargo, Extractor::CargoConfig]),
    ("cargo.target_tables", &[Extractor::Cargo]),
    ("cargo.dependencies", &[Extractor::Cargo]),
    ("ci.containers", &[Extractor::Workflows, Extractor::Gitlab, Extractor::OtherCi]),
    (
        "ci.systems",
        &[Extractor::Workflows, Extractor::Azure, Extractor::Appveyor, Extractor::Gitlab, Extractor::OtherCi],
    ),
    ("ci.tools", &[Extractor::Workflows]),
    ("cmake.preset_systems", &[Extractor::CmakePresets]),
    ("compose.services", &[Extractor::Compose]),
    ("docker.bases", &[Extractor::Docker]),
    ("dotnet.flags", &[Extractor::Dotnet]),
    ("dotnet.frameworks", &[Extractor::Dotnet]),
    ("dotnet.kinds", &[Extractor::Dotnet]),
    ("dotnet.output_types", &[Extractor::Dotnet]),
    ("dotnet.styles", &[Extractor::Dotnet]),
    ("editorconfig.end_of_line", &[Extractor::Editorconfig]),
    ("node.dependencies", &[Extractor::Node]),
    ("node.keys", &[Extractor::Node]),
    ("node.os", &[Extractor::Node]),
    ("node.scripts", &[Extractor::Node]),
    ("python.classifiers", &[Extractor::Pyproject, Extractor::SetupCfg, Extractor::SetupPy]),
    ("python.requirements", &[Extractor::Pyproject, Extractor::SetupCfg, Extractor::SetupPy, Extractor::Requirements]),
    ("visual_cpp.kinds", &[Extractor::VisualCpp]),
    ("vscode.types", &[Extractor::Vscode]),
];

/// The names in [`VALUE_SOURCES`].
pub const VALUE_NAMES: &[&str] = &{
    let mut names = [""; VALUE_SOURCES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = VALUE_SOURCES[index].0;
        index += 1;
    }
    names
};

/// One value that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: String,
    /// The file that has it.
    pub path: String,
}

/// What one extractor found, by name of the value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// The values.
    pub items: BTreeMap<&'static str, Vec<Item>>,
    /// Number of values that are there but could not be resolved.
    pub unresolved: BTreeMap<&'static str, u64>,
}

impl Extracted {
    /// Adds a value.
    pub fn add(&mut self, name: &'static str, value: impl Into<String>, path: &str) {
        self.items.entry(name).or_default().push(Item { value: value.into(), path: path.to_owned() });
    }

    /// Adds a value unless the same file gave it already.
    pub fn add_once(&mut self, name: &'static str, value: impl Into<String>, path: &str) {
        let item = Item { value: value.into(), path: path.to_owned() };
        let items = self.items.entry(name).or_default();
        if !items.contains(&item) {
            items.push(item);
        }
    }

    /// Counts a value that could not be resolved.
    pub fn add_unresolved(&mut self, name: &'static str) {
        *self.unresolved.entry(name).or_default() += 1;
    }

    /// Takes over everything that another one holds.
    pub fn merge(&mut self, other: Self) {
        for (name, items) in other.items {
            self.items.entry(name).or_default().extend(items);
        }
        for (name, count) in other.unresolved {
            *self.unresolved.entry(name).or_default() += count;
        }
    }

    /// Marks every value of an extractor as unknown, for a file that could not be read or parsed.
    pub(super) fn mark_unknown(&mut self, extractor: Extractor) {
        for (name, sources) in VALUE_SOURCES {
            if sources.contains(&extractor) {
                self.add_unresolved(name);
            }
        }
    }
}

/// A file that an extractor shall read.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Its path in the repository.
    pub path: &'a str,
    /// Its text; `None` when it could not be read whole.
    pub text: Option<&'a str>,
}

/// Parses the files of one extractor; a file that cannot be read or parsed makes its values unknown.
///
/// Jobs and workflows of CI that are named by one of `chores` are skipped.
#[must_use]
pub fn extract(extractor: Extractor, inputs: &[Input], chores: &[String]) -> Extracted {
    let mut out = Extracted::default();
    for input in inputs {
        let text = input.text.map(|text| text.trim_start_matches('\u{feff}'));
        let parsed = text.and_then(|text| parse(extractor, input.path, text, chores));
        match parsed {
            Some(found) => out.merge(found),
            None => out.mark_unknown(extractor),
        }
    }
    if extractor == Extractor::Dotnet {
        dotnet::resolve(&mut out);
    }
    out
}

fn parse(extractor: Extractor, path: &str, text: &str, chores: &[String]) -> Option<Extracted> {
    let mut out = Extracted::default();
    match extractor {
        Extractor::Dotnet => dotnet::project(path, text, &mut out),
        Extractor::VisualCpp => dotnet::visual_cpp(path, text, &mut out),
        Extractor::Workflows => workflow::workflow(path, text, chores, &mut out),
        Extractor::Azure => ci::azure(path, text, &mut out),
        Extractor::Appveyor => ci::appveyor(path, text, &mut out),
        Extractor::Gitlab => ci::gitlab(path, text, &mut out),
        Extractor::OtherCi => ci::other(path, text, &mut out),
        Extractor::Cargo => cargo::manifest(path, text, &mut out),
        Extractor::CargoConfig => cargo::config(path, text, &mut out),
        Extractor::Node => node::package(path, text, &mut out),
        Extractor::Pyproject => python::pyproject(path, text, &mut out),
        Extractor::SetupCfg => python::setup_cfg(path, text, &mut out),
        Extractor::SetupPy => python::setup_py(path, text, &mut out),
        Extractor::Requirements => {
            python::requirements(path, text, &mut out);
            Some(())
        }
        Extractor::CmakePresets => cmake::presets(path, text, &mut out),
        Extractor::Attributes => {
            style::attributes(path, text, &mut out);
            Some(())
        }
        Extractor::Editorconfig => style::editorconfig(path, text, &mut out),
        Extractor::Compose => compose::compose(path, text, &mut out),
        Extractor::Docker => {
            docker::dockerfile(path, text, &mut out);
            Some(())
        }
        Extractor::Vscode => style::vscode(path, text, &mut out),
    }?;
    Some(out)
}

/// Names the system of a CI image or runner label; `None` when the label does not tell.
#[must_use]
pub fn system_of(label: &str) -> Option<&'static str> {
    let label = label.trim().to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
    if has(&["windows", "win-", "vs20", "visual studio", "win32", "win64"]) || label == "win" {
        Some("windows")
    } else if has(&["macos", "mac-", "osx", "xcode"]) || label == "mac" {
        Some("macos")
    } else if has(&["ubuntu", "linux", "debian", "fedora", "centos", "alpine", "rhel", "rocky", "nixos", "arch"])
        && !label.contains("darwin")
    {
        Some("linux")
    } else {
        None
    }
}

/// Parses YAML as data; `None` when it is none.
fn yaml(text: &str) -> Option<serde_yaml::Value> {
    serde_yaml::from_str(text).ok()
}

/// Parses JSON that may have comments and trailing commas, as editors' and build tools' files have.
fn json(text: &str) -> Option<serde_json::Value> {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default()).ok()
}

/// Returns a YAML scalar or list of scalars as texts.
fn texts(value: &serde_yaml::Value) -> Vec<String> {
    match value {
        serde_yaml::Value::Sequence(items) => items.iter().flat_map(texts).collect(),
        serde_yaml::Value::String(text) => vec![text.clone()],
        serde_yaml::Value::Number(number) => vec![number.to_string()],
        serde_yaml::Value::Bool(flag) => vec![flag.to_string()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_their_system() {
        assert_eq!(system_of("windows-2022"), Some("windows"));
        assert_eq!(system_of("Visual Studio 2019"), Some("windows"));
        assert_eq!(system_of("macos-14-arm64"), Some("macos"));
        assert_eq!(system_of("ubuntu-24.04"), Some("linux"));
        assert_eq!(system_of("self-hosted"), None);
        assert_eq!(system_of("x86_64-apple-darwin"), None);
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_unknown_and_not_empty() {
        let broken = [Input { path: "package.json", text: Some("{") }];
        let found = extract(Extractor::Node, &broken, &[]);
        assert_eq!(found.unresolved.get("node.os"), Some(&1));
        assert!(found.items.is_empty());
    }
}
