//! Suite `walk`: what `du -s`, a file watcher or a search does: list every directory and stat every entry.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::clock::Stopwatch;
use super::engine::{Outcome, Shrunk, WorkDir, Workload, scaled};
use super::fit::Estimate;
use super::program;
use super::result::{Proof, Setup, Suite};
use super::verify::Mismatch;
use crate::error::Error;
use crate::signals::Interrupt;

/// Files of the two trees that are made.
pub(super) const TREES: [u64; 2] = [4_700, 100_000];
/// Files in a directory and directories in a directory of a made tree; a checkout of Linux has 12 to 15 files in one.
const PER_DIR: u64 = 12;
/// Files of the trials; the second is only made where the first one was quick.
const TRIAL_FILES: [u64; 2] = [24, 480];
/// A trial that took longer than this, in seconds, tells enough.
const TRIAL_ENOUGH_S: f64 = 0.2;
/// Fewest files that a tree is shrunk to.
const MIN_FILES: u64 = 200;
/// Bytes that a file system keeps for an empty file and its name, roughly: an inode and a directory entry.
const BYTES_PER_FILE: u64 = 512;
/// Directories deeper than this hold more descriptors open than a process may have (1024 by default).
const MAX_DEPTH: usize = 900;

/// The workload.
pub(super) struct Walk {
    du: Option<PathBuf>,
    /// When a `du` that still runs is given up.
    until: Option<Instant>,
    what: What,
}

/// What is walked.
enum What {
    /// Trees made in the scratch directory, by their number of files.
    Made(Vec<u64>),
    /// The user's own directories, which are only read. The first pass over each says what the others must see.
    Given(Vec<(PathBuf, Proof)>),
}

/// What a walk saw.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    files: u64,
    dirs: u64,
    bytes: u64,
    blocks: u64,
    names: u64,
}

impl Walk {
    /// Walks trees that are made; a `du` that still runs at the given moment is given up.
    pub(super) fn made(until: Option<Instant>) -> Self {
        Self { du: program::find("du"), until, what: What::Made(TREES.to_vec()) }
    }

    /// Walks directories of the user's.
    pub(super) fn given(until: Option<Instant>) -> Self {
        Self { du: program::find("du"), until, what: What::Given(Vec::new()) }
    }

    /// Walks one tree, with `du` where there is one and by ourselves, and adds what it took and saw.
    fn one(
        &self,
        tree: &Path,
        label: &str,
        phases: &mut Vec<(String, f64)>,
        interrupt: &Interrupt,
    ) -> Result<Seen, Error> {
        let blocks_kib = match &self.du {
            Some(du) => {
                let (elapsed_s, kib) = run_du(du, tree, self.until, interrupt)?;
                phases.push((format!("du{label}"), elapsed_s));
                kib
            }
            None => None,
        };
        let watch = Stopwatch::start();
        let mut seen = walk(tree, interrupt)?;
        phases.push((format!("walk{label}"), watch.stop()));
        // The two walks prove each other: `du` rounds the sum of the blocks up to KiB.
        if let Some(kib) = blocks_kib {
            seen.blocks = if kib == seen.blocks.div_ceil(2) { seen.blocks } else { u64::MAX };
        }
        Ok(seen)
    }

    /// Makes a small tree, walks it as a round would, removes it, and returns what each took.
    fn trial(&self, root: &Path, files: u64, interrupt: &Interrupt) -> Result<Estimate, Error> {
        let began = Instant::now();
        make_tree(root, files, interrupt)?;
        let made_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        walk(root, interrupt)?;
        // `du` does the same once more.
        let round_s = began.elapsed().as_secs_f64() * if self.du.is_some() { 2.0 } else { 1.0 };
        let began = Instant::now();
        std::fs::remove_dir_all(root).map_err(|e| Error::io("delete", root, e))?;
        Ok(Estimate { setup_s: made_s + began.elapsed().as_secs_f64(), round_s, ..Estimate::default() })
    }

    fn walk_made(&self, place: &WorkDir, trees: &[u64], interrupt: &Interrupt) -> Result<Outcome, Error> {
        let mut phases = Vec::new();
        let mut sum = Seen::default();
        let mut mismatch = Mismatch::default();
        for files in trees {
            let label = format!("_{files}");
            let seen = self.one(&place.path.join(tree_name(*files)), &label, &mut phases, interrupt)?;
            mismatch.number("files seen", *files, Some(seen.files));
            mismatch.number("directories seen", dirs_of(*files), Some(seen.dirs));
            mismatch.text("the checksum of the names", &hex(expected_names(*files)), Some(&hex(seen.names)));
            mismatch.truth("`du` and our own walk differ in the blocks", seen.blocks != u64::MAX);
            sum.add(&seen);
        }
        Ok(Outcome { phases, proof: sum.proof(), fault: mismatch.finish(), bytes_written: 0 })
    }

    fn walk_given(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Outcome, Error> {
        let mut phases = Vec::new();
        let seen = self.one(&place.path, "", &mut phases, interrupt)?;
        let proof = seen.proof();
        let mut mismatch = Mismatch::default();
        mismatch.truth("`du` and our own walk differ in the blocks", seen.blocks != u64::MAX);
        if let What::Given(known) = &mut self.what {
            match known.iter().find(|(path, _)| *path == place.path) {
                None => known.push((place.path.clone(), proof.clone())),
                Some((_, first)) => mismatch.truth("the tree changed since the first pass", *first == proof),
            }
        }
        Ok(Outcome { phases, proof, fault: mismatch.finish(), bytes_written: 0 })
    }
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.dirs += other.dirs;
        self.bytes += other.bytes;
        self.names = self.names.wrapping_add(other.names);
    }

    fn proof(&self) -> Proof {
        Proof {
            files: Some(self.files),
            dirs: Some(self.dirs),
            stat_bytes: Some(self.bytes),
            names: Some(hex(self.names)),
            ..Proof::default()
        }
    }
}

fn hex(value: u64) -> String {
    format!("{value:016x}")
}

/// Runs `du -sk` and returns its seconds and its sum in KiB; `None` for a number that cannot be read.
fn run_du(du: &Path, tree: &Path, until: Option<Instant>, interrupt: &Interrupt) -> Result<(f64, Option<u64>), Error> {
    let mut command = program::command(du, tree);
    command.args(["-sk", "."]);
    let run = program::run(command, until, interrupt)?;
    if !run.status.success() {
        return Err(Error::refused(
            format!("`du -sk` failed in `{}`: {}", crate::error::printable(tree), program::complaint(&run)),
            "see what it says there by hand; a tree that you may not read cannot be measured",
        ));
    }
    let text = String::from_utf8_lossy(&run.stdout);
    let kib = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    Ok((run.elapsed.as_secs_f64(), kib))
}

/// Lists every directory below `tree` and stats every entry, relative to open directories, as `du` does.
fn walk(tree: &Path, interrupt: &Interrupt) -> Result<Seen, Error> {
    let failed = |action, errno: rustix::io::Errno| Error::io(action, tree, errno.into());
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::open(tree, flags, Mode::empty()).map_err(|e| failed("open", e))?;
    let mut seen = Seen { dirs: 1, ..Seen::default() };
    let mut linked = HashSet::new();
    seen.blocks += blocks(&rustix::fs::fstat(&root).map_err(|e| failed("stat", e))?);
    let mut stack = vec![(Dir::new(root).map_err(|e| failed("list", e))?, 0_u64)];
    loop {
        let depth = stack.len();
        let Some((dir, path_sum)) = stack.last_mut() else { break };
        let Some(entry) = dir.read() else {
            stack.pop();
            continue;
        };
        interrupt.check()?;
        let entry = entry.map_err(|e| failed("list", e))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let fd = dir.fd().map_err(|e| failed("list", e))?;
        let stat =
            rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| failed("stat an entry of", e))?;
        let sum = name_sum(*path_sum, name);
        seen.names = seen.names.wrapping_add(sum);
        // `du` counts a file with several names once.
        if stat.st_nlink <= 1
            || FileType::from_raw_mode(stat.st_mode).is_dir()
            || linked.insert((stat.st_dev, stat.st_ino))
        {
            seen.blocks += blocks(&stat);
        }
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            seen.dirs += 1;
            if depth >= MAX_DEPTH {
                return Err(Error::refused(
                    format!("`{}` has directories nested more than {MAX_DEPTH} deep", crate::error::printable(tree)),
                    "name a tree that is less deep with `--tree DIR`",
                ));
            }
            let child = open_child(fd, name, flags).map_err(|e| failed("open a directory of", e))?;
            stack.push((Dir::new(child).map_err(|e| failed("list", e))?, sum));
        } else {
            seen.files += 1;
            seen.bytes += u64::try_from(stat.st_size).unwrap_or(0);
        }
    }
    Ok(seen)
}

fn open_child(dir: impl AsFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

fn blocks(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0)
}

/// Checksum of a path from its parent's and its own name (FNV-1a with the parent's as the offset).
fn name_sum(parent: u64, name: &CStr) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    name.to_bytes().iter().fold(parent ^ OFFSET, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME))
}

fn tree_name(files: u64) -> String {
    format!("tree-{files}")
}

/// Directories of a made tree, its root included: each holds [`PER_DIR`] files and up to as many directories.
fn dirs_of(files: u64) -> u64 {
    files.div_ceil(PER_DIR).max(1)
}

/// Returns the path of a directory of a made tree: directory `n` lies in directory `(n - 1) / PER_DIR`.
fn dir_path(mut number: u64) -> Vec<String> {
    let mut names = Vec::new();
    while number > 0 {
        names.push(format!("d{number}"));
        number = (number - 1) / PER_DIR;
    }
    names.reverse();
    names
}

fn expected_names(files: u64) -> u64 {
    let name = |text: &str| std::ffi::CString::new(text).unwrap_or_default();
    let mut sums = vec![0_u64];
    let mut total = 0_u64;
    for dir in 0..dirs_of(files) {
        if dir > 0 {
            // Parents come before their children.
            let parent = usize::try_from((dir - 1) / PER_DIR).unwrap_or(0);
            sums.push(name_sum(sums[parent], &name(&format!("d{dir}"))));
            total = total.wrapping_add(sums[sums.len() - 1]);
        }
        for file in dir * PER_DIR..((dir + 1) * PER_DIR).min(files) {
            total = total.wrapping_add(name_sum(sums[sums.len() - 1], &name(&format!("f{file}"))));
        }
    }
    total
}

fn make_tree(root: &Path, files: u64, interrupt: &Interrupt) -> Result<(), Error> {
    for dir in 0..dirs_of(files) {
        let path = dir_path(dir).iter().fold(root.to_owned(), |path, name| path.join(name));
        std::fs::create_dir(&path).map_err(|e| Error::io("create", path.clone(), e))?;
        for file in dir * PER_DIR..((dir + 1) * PER_DIR).min(files) {
            let path = path.join(format!("f{file}"));
            File::create_new(&path).map_err(|e| Error::io("create", path, e))?;
        }
        interrupt.check()?;
    }
    Ok(())
}

impl Workload for Walk {
    fn suite(&self) -> Suite {
        Suite::Walk
    }

    fn setup(&self) -> Setup {
        match &self.what {
            What::Made(trees) => Setup { tree_files: trees.clone(), ..Setup::default() },
            What::Given(known) => {
                Setup { tree_files: known.iter().filter_map(|(_, proof)| proof.files).collect(), ..Setup::default() }
            }
        }
    }

    fn needed_bytes(&self) -> u64 {
        match &self.what {
            What::Made(trees) => trees.iter().sum::<u64>() * BYTES_PER_FILE,
            What::Given(_) => 0,
        }
    }

    fn estimate(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Estimate, Error> {
        let What::Made(trees) = &self.what else {
            // The warm-up tells: a part of an unknown tree says nothing about the whole.
            return Ok(Estimate::default());
        };
        #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
        let times = |files: u64| trees.iter().sum::<u64>() as f64 / files as f64;
        let root = place.path.join("trial");
        let mut estimate = Estimate::default();
        for files in TRIAL_FILES {
            let trial = self.trial(&root, files, interrupt)?;
            let (setup_s, round_s) = (trial.setup_s * times(files), trial.round_s * times(files));
            estimate = Estimate { setup_s, round_s, ..Estimate::default() };
            if trial.setup_s + trial.round_s > TRIAL_ENOUGH_S {
                break;
            }
        }
        Ok(estimate)
    }

    fn shrink(&mut self, factor: f64) -> Result<Option<Shrunk>, Error> {
        let What::Made(trees) = &mut self.what else { return Ok(None) };
        let wanted = trees.iter().sum::<u64>();
        let affordable = scaled(wanted, factor, MIN_FILES);
        if affordable >= wanted {
            return Ok(None);
        }
        // The large tree shrinks first; when it would not be larger than the small one, that is all there is.
        let small = trees.iter().min().copied().unwrap_or(0);
        let new = if trees.len() > 1 && affordable >= 2 * small {
            vec![small, affordable - small]
        } else {
            vec![affordable.min(small)]
        };
        let list = |trees: &[u64]| trees.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
        let said = format!("trees of {} files instead of {}", list(&new), list(trees));
        let shrunk = Shrunk::new(said, wanted, new.iter().sum());
        *trees = new;
        Ok(Some(shrunk))
    }

    fn prepare(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<u64, Error> {
        if let What::Made(trees) = &self.what {
            for files in trees {
                make_tree(&place.path.join(tree_name(*files)), *files, interrupt)?;
            }
        }
        Ok(0)
    }

    fn round(&mut self, place: &WorkDir, interrupt: &Interrupt) -> Result<Outcome, Error> {
        match &self.what {
            What::Made(trees) => {
                let trees = trees.clone();
                self.walk_made(place, &trees, interrupt)
            }
            What::Given(_) => self.walk_given(place, interrupt),
        }
    }

    fn is_standing(&self) -> bool {
        true
    }

    fn operations(&self, phase: &str) -> Option<u64> {
        match &self.what {
            What::Made(_) => phase.rsplit('_').next()?.parse().ok(),
            What::Given(known) => match known.as_slice() {
                [(_, proof)] => proof.files,
                _ => None,
            },
        }
    }

    fn bytes(&self, _phase: &str) -> Option<u64> {
        None
    }

    fn is_side_phase(&self, phase: &str) -> bool {
        self.du.is_some() && phase.starts_with("walk")
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![match &self.du {
            Some(_) => {
                "du: `du -sk`; walk: the same calls without starting a program; both must see the same".to_owned()
            }
            None => "there is no `du` here, so only our own walk, which makes the same calls, was timed".to_owned(),
        }];
        if let What::Given(known) = &self.what {
            let first = known.first().map(|(_, proof)| (proof.files, &proof.names));
            if known.iter().any(|(_, proof)| Some((proof.files, &proof.names)) != first) {
                notes.push(
                    "the trees differ, so their ratio compares their contents, too, and not only the places".to_owned(),
                );
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scratch::Scratch;

    #[test]
    fn a_made_tree_has_exactly_the_files_and_names_that_are_expected() {
        let dir = tempfile::tempdir().unwrap();
        for files in [1, 12, 13, 500, 2_000] {
            let root = dir.path().join(tree_name(files));
            make_tree(&root, files, &Interrupt::default()).unwrap();
            let seen = walk(&root, &Interrupt::default()).unwrap();
            assert_eq!((seen.files, seen.dirs, seen.names), (files, dirs_of(files), expected_names(files)));
        }
    }

    #[test]
    fn du_and_our_own_walk_agree_with_links_and_data() {
        let Some(du) = program::find("du") else { return };
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), vec![1; 100_000]).unwrap();
        std::fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        let (_, kib) = run_du(&du, dir.path(), None, &Interrupt::default()).unwrap();
        let seen = walk(dir.path(), &Interrupt::default()).unwrap();
        assert_eq!(kib, Some(seen.blocks.div_ceil(2)));
        assert_eq!((seen.files, seen.dirs), (3, 2));
    }

    #[test]
    fn a_missing_file_or_a_renamed_one_is_noticed() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let place = WorkDir::open(&scratch).unwrap();
        let mut suite = Walk { du: None, until: None, what: What::Made(vec![50]) };
        suite.prepare(&place, &Interrupt::default()).unwrap();
        assert_eq!(suite.round(&place, &Interrupt::default()).unwrap().fault, None);
        let tree = place.path.join(tree_name(50));
        std::fs::rename(tree.join("f0"), tree.join("g0")).unwrap();
        let fault = suite.round(&place, &Interrupt::default()).unwrap().fault.unwrap();
        assert!(fault.starts_with("the checksum of the names is "), "{fault}");
        std::fs::remove_file(tree.join("g0")).unwrap();
        let fault = suite.round(&place, &Interrupt::default()).unwrap().fault.unwrap();
        assert!(fault.starts_with("files seen is 49 instead of 50"), "{fault}");
    }

    #[test]
    fn a_given_tree_that_changes_makes_the_round_not_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), b"1").unwrap();
        let place = WorkDir::open_tree(dir.path().to_owned()).unwrap();
        let mut suite = Walk::given(None);
        for _ in 0..2 {
            assert_eq!(suite.round(&place, &Interrupt::default()).unwrap().fault, None);
        }
        std::fs::write(dir.path().join("b"), b"1").unwrap();
        let fault = suite.round(&place, &Interrupt::default()).unwrap().fault;
        assert_eq!(fault.as_deref(), Some("the tree changed since the first pass"));
    }

    #[test]
    fn the_large_tree_shrinks_before_the_small_one() {
        let mut suite = Walk { du: None, until: None, what: What::Made(TREES.to_vec()) };
        let said = |shrunk: Option<Shrunk>| shrunk.map(|shrunk| shrunk.said);
        assert_eq!(
            said(suite.shrink(0.5).unwrap()).as_deref(),
            Some("trees of 4700 and 47650 files instead of 4700 and 100000")
        );
        assert_eq!(said(suite.shrink(0.05).unwrap()).as_deref(), Some("trees of 2617 files instead of 4700 and 47650"));
    }
}
