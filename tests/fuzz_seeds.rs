//! Every input that fuzzing starts from, or once failed on, goes through its target.

#[path = "../fuzz/targets.rs"]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use targets::ALL;

fn fuzz_dir() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

#[test]
fn every_kept_input_passes() {
    for (name, target) in ALL {
        let mut tried = 0;
        for entry in fs::read_dir(fuzz_dir().join("seeds").join(name)).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::read(&path).unwrap();
            std::panic::catch_unwind(|| target(&data)).unwrap_or_else(|_| panic!("{} fails", path.display()));
            tried += 1;
        }
        assert!(tried > 0, "{name} has no seeds");
    }
}

#[test]
fn every_target_is_declared() {
    let manifest = fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
    let declared: BTreeSet<&str> =
        manifest.split("[[bin]]").skip(1).map(|bin| bin.split('"').nth(1).unwrap()).collect();
    assert_eq!(declared, ALL.iter().map(|(name, _)| *name).collect());
    for name in declared {
        assert!(fuzz_dir().join("fuzz_targets").join(name).with_extension("rs").exists(), "{name}");
    }
}
