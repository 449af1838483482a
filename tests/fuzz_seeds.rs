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

/// Mutations of every seed that each test run tries; `REHOME_FUZZ_MUTATIONS` asks for more.
const MUTATIONS: u64 = 2;

/// A stable compiler's fuzzing: without feedback, but everywhere.
#[test]
fn mutations_of_the_kept_inputs_pass() {
    let asked = std::env::var("REHOME_FUZZ_MUTATIONS").ok().and_then(|text| text.parse().ok());
    for (name, target) in ALL {
        let mut paths: Vec<_> =
            fs::read_dir(fuzz_dir().join("seeds").join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for round in 0..asked.unwrap_or(MUTATIONS) {
            for (seed, path) in seeds.iter().zip(&paths) {
                let data = mutated(seed, &seeds, &mut dice);
                if std::panic::catch_unwind(|| target(&data)).is_err() {
                    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{round}"));
                    fs::write(&kept, &data).unwrap();
                    panic!("{name} fails on a mutation of {}; it is in {}", path.display(), kept.display());
                }
            }
        }
    }
}

/// A small generator (xorshift): the same inputs in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }
}

/// Changes a seed in one to eight places: bytes, cuts, repetitions, pieces of other seeds, and what parsers stumble on.
fn mutated(seed: &[u8], others: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    const STUMBLING_BLOCKS: [&[u8]; 12] = [
        b"\0",
        b"\xff",
        b"\r\n",
        b"\\",
        b"\"",
        b"\x1b[2J",
        b"*",
        b"&a ",
        b"${",
        b"99999999999999999999",
        b"\xe2\x80\xae",
        b"[",
    ];
    let mut data = seed.to_vec();
    for _ in 0..=dice.below(8) {
        let at = dice.below(data.len() + 1);
        let to = (at + dice.below(16)).min(data.len());
        match dice.below(6) {
            0 if at < data.len() => data[at] ^= 1 << dice.below(8),
            1 => drop(data.drain(at..to)),
            2 => {
                let again = data[at..to].repeat(1 + dice.below(20));
                data.splice(at..at, again);
            }
            3 => {
                let other = &others[dice.below(others.len())];
                let from = dice.below(other.len() + 1);
                let piece = other[from..(from + dice.below(64)).min(other.len())].to_vec();
                data.splice(at..to, piece);
            }
            4 => data.truncate(at),
            _ => drop(data.splice(at..at, STUMBLING_BLOCKS[dice.below(STUMBLING_BLOCKS.len())].iter().copied())),
        }
    }
    data
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
