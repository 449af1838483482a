//! The published JSON Schema is the one that the program writes, and reports match it.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/schema.rs"]
mod schema;

use std::process::Command;

use schema::{SCHEMA_PATH, assert_valid_report};

/// A report with every optional part, as `--format json` writes it.
const FULL: &str = include_str!("reports/moving.json");

/// The commands that print JSON, and the file that describes it.
const PUBLISHED: [(&str, &str); 6] = [
    ("check", "report"),
    ("fs", "place"),
    ("survey", "survey-finding"),
    ("move", "move"),
    ("bench", "bench"),
    ("bench-comparison", "bench-comparison"),
];

#[test]
fn the_published_schemas_are_current() {
    for (command, name) in PUBLISHED {
        let output = Command::new(env!("CARGO_BIN_EXE_rehome")).args(["schema", command]).output().unwrap();
        assert!(output.status.success());
        let current = String::from_utf8(output.stdout).unwrap();
        let path = format!("{}/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("REHOME_UPDATE").is_some() {
            std::fs::write(&path, &current).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap();
        assert!(published == current, "{path} is old: run `REHOME_UPDATE=1 cargo test --test schema`");
    }
}

#[test]
fn the_schema_of_a_check_is_printed_when_no_command_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_rehome")).arg("schema").output().unwrap();
    assert!(output.stdout == std::fs::read(SCHEMA_PATH).unwrap(), "`rehome schema` prints another one");
}

#[test]
fn a_saved_report_of_this_version_matches_and_is_read_back() {
    let report: serde_json::Value = serde_json::from_str(FULL).unwrap();
    assert_valid_report(&report);
    let read: rehome::report::Report = serde_json::from_str(FULL).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), report);
}

#[test]
#[should_panic(expected = "does not match its schema")]
fn a_report_without_its_version_does_not_match() {
    let mut report: serde_json::Value = serde_json::from_str(FULL).unwrap();
    report.as_object_mut().unwrap().remove("schema_version");
    assert_valid_report(&report);
}

#[test]
fn a_property_that_a_later_version_adds_is_no_violation() {
    let mut report: serde_json::Value = serde_json::from_str(FULL).unwrap();
    report["facts"]["site"]["colour"] = "green".into();
    assert_valid_report(&report);
}
