//! The JSON Schema of rule files, made from the types that read them.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use super::kinds::{EvidenceFile, HazardFile, JudgingFile, RebuildableFile, VerdictFile};
use crate::scan::filesystem::rules::FilesystemRuleFile;

/// Returns the schema of a rule file of any kind, told apart by `kind`.
#[must_use]
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let files = [
        file::<EvidenceFile>("evidence", &mut generator),
        file::<FilesystemRuleFile>("filesystem", &mut generator),
        file::<HazardFile>("hazard", &mut generator),
        file::<JudgingFile>("judging", &mut generator),
        file::<RebuildableFile>("rebuildable", &mut generator),
        file::<VerdictFile>("verdict", &mut generator),
    ];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rehome rule file",
        "oneOf": files,
        "$defs": generator.take_definitions(true),
    })
}

/// Returns the schema of one kind of file, with `kind` fixed to its word.
fn file<T: JsonSchema>(kind: &str, generator: &mut SchemaGenerator) -> Value {
    let mut schema = T::json_schema(generator).to_value();
    schema["properties"]["kind"] = json!({ "const": kind });
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_rule_file_is_valid_by_the_schema() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        for file in super::super::builtin::files() {
            let value: Value = serde_yaml::from_str(&file.text).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&value).map(|error| format!("{} at {}", error, error.instance_path())).collect();
            assert!(errors.is_empty(), "{}: {}", file.name, errors.join("; "));
        }
    }

    #[test]
    fn a_wrong_key_is_invalid_by_the_schema() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        assert!(!validator.is_valid(&json!({ "kind": "evidence", "rules": [], "more": 1 })));
        assert!(!validator.is_valid(&json!({ "kind": "evidense", "rules": [] })));
    }
}
