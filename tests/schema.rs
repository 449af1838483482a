//! The published JSON Schema is the one that the program writes, and reports match it.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/schema.rs"]
mod schema;

use schema::{SCHEMA_PATH, assert_valid_report};

/// A report with every optional part, as `--format json` writes it.
const FULL: &str = include_str!("reports/moving.json");

#[test]
fn the_published_schema_is_current() {
    let mut current = Vec::new();
    rehome::report::write_schema(&mut current).unwrap();
    let current = String::from_utf8(current).unwrap();
    if std::env::var_os("REHOME_UPDATE").is_some() {
        std::fs::write(SCHEMA_PATH, &current).unwrap();
    }
    let published = std::fs::read_to_string(SCHEMA_PATH).unwrap();
    assert!(published == current, "schema/report.schema.json is old: run `REHOME_UPDATE=1 cargo test --test schema`");
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
