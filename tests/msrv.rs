//! The oldest compiler that is promised (`rust-version`): nothing that the build takes in asks for a newer one.
//!
//! The compiler itself is not there to try; what a newer standard library alone has is found by clippy
//! (`incompatible_msrv`).

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A version as numbers; what is left out is zero.
fn version(text: &str) -> Vec<u64> {
    let mut parts: Vec<u64> = text.split('.').map(|part| part.parse().unwrap()).collect();
    parts.resize(3, 0);
    parts
}

/// What cargo says about this package and everything that it is built and tested with on this system.
fn packages(manifest: &Path) -> Vec<Value> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", &target])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap()
}

#[test]
fn no_dependency_asks_for_a_newer_compiler_than_this_package_does() {
    let packages = packages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let own = packages.iter().find(|package| text(package, "name") == env!("CARGO_PKG_NAME")).unwrap();
    let promised = version(text(own, "rust_version"));
    let newer: Vec<String> = packages
        .iter()
        .filter(|package| package["rust_version"].as_str().is_some_and(|wanted| version(wanted) > promised))
        .map(|package| {
            format!("{} {} wants {}", text(package, "name"), text(package, "version"), text(package, "rust_version"))
        })
        .collect();
    assert_eq!(newer, [""; 0], "promised is {promised:?}");
    let told = packages.iter().filter(|package| package["rust_version"].is_string()).count();
    assert!(told > packages.len() / 2, "{told} of {} packages say what they want", packages.len());
}

#[test]
fn the_readme_names_the_compiler_that_is_promised() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let promised = env!("CARGO_PKG_RUST_VERSION");
    assert!(readme.contains(&format!("Rust {promised} or later")), "README.md does not say Rust {promised}");
}
