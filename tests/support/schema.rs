//! Checks JSON against the published schema.

use serde_json::Value;

/// Where the schema is in the repository.
#[allow(dead_code, reason = "only the test of the schema itself compares the file")]
pub(crate) const SCHEMA_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/report.schema.json");

/// Panics with every violation when a report in JSON does not match the published schema.
#[allow(dead_code, reason = "not every test has a report")]
pub(crate) fn assert_valid_report(report: &Value) {
    assert_valid("report", report);
}

/// Panics with every violation when JSON does not match the published schema of this name.
pub(crate) fn assert_valid(name: &str, report: &Value) {
    let path = format!("{}/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let violations: Vec<String> =
        validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(violations.is_empty(), "the report does not match its schema:\n{}", violations.join("\n"));
}
