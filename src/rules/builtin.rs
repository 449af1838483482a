//! The rules that are part of the program.

use super::load::RuleFile;

macro_rules! rule_files {
    ($($name:literal),* $(,)?) => {
        &[$((concat!("rules/", $name), include_str!(concat!("../../rules/", $name)))),*]
    };
}

/// Name and text of every built-in file; a test compares the list with the directory.
#[rustfmt::skip]
const FILES: &[(&str, &str)] = rule_files![
    "judging.yaml",
    "evidence/ci.yaml",
    "evidence/containers.yaml",
    "evidence/dotnet.yaml",
    "evidence/engines.yaml",
    "evidence/line-endings.yaml",
    "evidence/native-build.yaml",
    "evidence/python-node.yaml",
    "evidence/readme.yaml",
    "evidence/rust-go.yaml",
    "evidence/traces-builds.yaml",
    "evidence/traces-git.yaml",
    "evidence/traces-packages.yaml",
    "evidence/unix.yaml",
    "evidence/visual-studio.yaml",
    "evidence/web.yaml",
    "evidence/windows-languages.yaml",
    "hazard/content.yaml",
    "hazard/git-dir.yaml",
    "hazard/place.yaml",
    "rebuildable/common.yaml",
    "rebuildable/ecosystems.yaml",
    // Verdicts are tried in the order of these files.
    "verdict/before-clone.yaml",
    "verdict/verdicts.yaml",
    "verdict/reports.yaml",
];

/// Returns the built-in rule files.
#[must_use]
pub fn files() -> Vec<RuleFile> {
    let file = |(name, text): &(&str, &str)| RuleFile { name: (*name).to_owned(), text: (*text).to_owned(), layer: 0 };
    FILES.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_rule_file_is_built_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut missing = Vec::new();
        for entry in ignore::WalkBuilder::new(root.join("rules")).standard_filters(false).build() {
            let entry = entry.unwrap();
            let name = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let is_rule_file = Path::new(&name).extension().is_some_and(|extension| extension == "yaml")
                && !name.starts_with("rules/filesystem/");
            if is_rule_file && !super::FILES.iter().any(|(known, _)| *known == name) {
                missing.push(name);
            }
        }
        assert_eq!(missing, Vec::<String>::new(), "add them to `FILES`");
    }
}
