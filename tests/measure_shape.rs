//! The sample has git's own shape: the calls that it stands for are the calls that git makes, counted on a mount.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/git.rs"]
mod fixture;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use fixture::{commit_all_of_old, git};
use rehome::measure::files::Files;
use rehome::measure::private_git::{Parts, PrivateGit, StatusMode};
use rehome::measure::probe::{fixed, preload, untracked};
use rehome::measure::raw_index::RawIndex;
use rehome::measure::settings::{Settings, Untracked};
use rehome::measure::shape::{Cursor, Shape};
use rehome::measure::skeleton::open_dir;
use rehome::scan::RepoProfile;
use rehome::scan::access::Access;
use rehome::scan::repo::scan;
use slow_mount::{Counts, Options, SlowMount, available};
use tempfile::TempDir;

/// More than any sample here takes, so that each is the whole.
const LONG: Duration = Duration::from_secs(120);
/// How long the kernel may take to close files in the background.
const PATIENCE: Duration = Duration::from_secs(60);
/// The share by which the probe's calls may differ from git's.
const CLOSE: f64 = 0.01;
/// The same for the git dir, where git's versions differ in what they look at, and how often.
const ABOUT: f64 = 0.15;

struct Ground {
    // Dropped first: unmounted before the backing files go.
    mount: SlowMount,
    backing: TempDir,
    private: TempDir,
}

impl Ground {
    /// A repository of some 1,300 files at several depths, with ignored and untracked files, on a mount without delay.
    fn new() -> Ground {
        let backing = tempfile::tempdir().unwrap();
        let root = backing.path();
        for dir in 0..110 {
            let mut path = root.join(format!("top{}", dir % 9));
            for level in 0..dir % 4 {
                path = path.join(format!("level{level}-{}", dir % 5));
            }
            let path = path.join(format!("dir{dir}"));
            fs::create_dir_all(&path).unwrap();
            for file in 0..12 {
                fs::write(path.join(format!("file{file}")), b"content").unwrap();
            }
            if dir % 10 == 0 {
                fs::write(path.join(".gitignore"), b"*.log\n").unwrap();
            }
        }
        fs::write(root.join(".gitignore"), b"/build/\n*.tmp\n").unwrap();
        commit_all_of_old(root);
        for name in ["build/out/x", "top1/a.tmp", "top2/new", "top3/new-dir/deep/x", "top4/only-ignored/a.tmp"] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"x").unwrap();
        }
        let mount = SlowMount::new(root, Options::default()).unwrap();
        git(mount.path(), &["update-index", "-q", "--refresh"]);
        Ground { mount, backing, private: tempfile::tempdir().unwrap() }
    }

    fn profile(&self) -> RepoProfile {
        scan(self.mount.path(), &Access::default()).unwrap()
    }

    /// Makes a private git dir that touches the mount for the worktree alone.
    fn private_git(&self, profile: &RepoProfile, untracked: Untracked) -> PrivateGit {
        let settings = Settings { untracked, ..Settings::of(profile) };
        let program = which_git();
        let parts = Parts {
            program: &program,
            worktree: self.mount.path(),
            settings: &settings,
            info: &profile.info,
            head: profile.head_commit.as_deref(),
            objects: Some(&self.backing.path().join(".git/objects")),
        };
        let git = PrivateGit::create(&self.private.path().join(format!("{untracked:?}")), &parts).unwrap();
        git.write_index(&profile.index.as_ref().unwrap().bytes, SystemTime::now() + Duration::from_secs(2)).unwrap();
        git
    }

    fn count(&self, work: impl FnOnce()) -> Counts {
        assert!(self.mount.wait_until_idle(PATIENCE));
        self.mount.reset_counts();
        work();
        assert!(self.mount.wait_until_idle(PATIENCE));
        self.mount.counts()
    }
}

fn which_git() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|dir| dir.join("git")).find(|file| file.exists()).unwrap()
}

fn status(git: &PrivateGit) {
    let output = git.status(StatusMode::default()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a private git dir that borrows its objects on the mount, as a run in place does.
fn private_on_mount(ground: &Ground, profile: &RepoProfile) -> PrivateGit {
    let settings = Settings::of(profile);
    let program = which_git();
    let parts = Parts {
        program: &program,
        worktree: ground.mount.path(),
        settings: &settings,
        info: &profile.info,
        head: profile.head_commit.as_deref(),
        objects: Some(&profile.common_dir.join("objects")),
    };
    PrivateGit::create(&ground.private.path().join("on-mount"), &parts).unwrap()
}

/// Reads HEAD's commit and tree, which every status does.
fn read_objects(git: &PrivateGit, profile: &RepoProfile) {
    let head = profile.head_commit.clone().unwrap();
    let output = git.command(&["rev-parse", "--verify", &format!("{head}^{{tree}}")]).output().unwrap();
    assert!(output.status.success());
}

#[track_caller]
fn assert_close(what: &str, probe: u64, git: u64, share: f64, details: &str) {
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let difference = probe as f64 / git as f64 - 1.0;
    assert!(
        difference.abs() <= share,
        "{what}: {probe} calls of the probe, {git} of git ({difference:+.4})\n{details}"
    );
}

#[test]
fn the_preload_makes_gits_calls() {
    if !available("the_preload_makes_gits_calls") {
        return;
    }
    let ground = Ground::new();
    let profile = ground.profile();
    let private = ground.private_git(&profile, Untracked::No);
    let gits = ground.count(|| status(&private));
    let bytes = &profile.index.as_ref().unwrap().bytes;
    let index = RawIndex::parse(bytes, gix::hash::Kind::Sha1).unwrap();
    let shape = Shape::of(&index, true);
    assert!(shape.ranges.len() > 1, "the repository is too small for threads");
    let worktree = open_dir(ground.mount.path()).unwrap();
    let mut calls = 0;
    let ours = ground.count(|| {
        for range in &shape.ranges {
            let mut cursor = Cursor::new(&index, range.clone());
            for number in range.clone() {
                cursor.calls(number, |path, _| {
                    calls += 1;
                    let path = std::ffi::CString::new(path).unwrap();
                    let _ = rustix::fs::statat(&worktree, path.as_c_str(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
                });
            }
        }
    });
    assert_eq!(calls, shape.work.iter().map(|work| work.calls).sum::<u64>());
    assert_close("preload", ours.total(), gits.total(), CLOSE, &format!("{ours:?}\n{gits:?}"));
}

#[test]
fn a_sample_that_is_the_whole_visits_every_entry_of_every_range() {
    if !available("a_sample_that_is_the_whole_visits_every_entry_of_every_range") {
        return;
    }
    let ground = Ground::new();
    let profile = ground.profile();
    let bytes = &profile.index.as_ref().unwrap().bytes;
    let index = RawIndex::parse(bytes, gix::hash::Kind::Sha1).unwrap();
    let shape = Shape::of(&index, true);
    let worktree = open_dir(ground.mount.path()).unwrap();
    let part = preload::sample(worktree.as_fd(), &index, &shape, LONG);
    assert!(part.is_whole);
    let whole: u64 = shape.work.iter().map(|work| work.calls).sum();
    // Two or three passes, each but for the first call of a thread.
    assert!(part.calls >= 2 * (whole - shape.ranges.len() as u64), "{} of {whole}", part.calls);
    assert!(part.mid_s > 0.0 && part.failed == 0, "{part:?}");
}

#[test]
fn the_search_for_untracked_files_makes_gits_calls() {
    if !available("the_search_for_untracked_files_makes_gits_calls") {
        return;
    }
    let ground = Ground::new();
    let profile = ground.profile();
    let without = ground.private_git(&profile, Untracked::No);
    let base = ground.count(|| status(&without)).total();
    let bytes = &profile.index.as_ref().unwrap().bytes;
    let index = RawIndex::parse(bytes, gix::hash::Kind::Sha1).unwrap();
    let files = Files::of(&index).unwrap();
    let worktree = open_dir(ground.mount.path()).unwrap();
    for mode in [Untracked::Normal, Untracked::All] {
        let private = ground.private_git(&profile, mode);
        let gits = ground.count(|| status(&private));
        let search = untracked::Search {
            worktree: worktree.as_fd(),
            index: &index,
            files: &files,
            mode,
            has_cache: false,
            // The backing directory has the tracked .gitignore files too.
            skeleton: Some(ground.backing.path()),
            exclude: profile.info.exclude.as_deref(),
            excludes_file: None,
        };
        let mut passes = 0;
        let ours = ground.count(|| {
            let part = untracked::sample(search, LONG);
            assert!(part.is_whole && !part.is_bounded, "{part:?}");
            passes = part.passes_s.len() as u64;
        });
        let details = format!("{passes} passes {ours:?}\n{gits:?}");
        assert_close(&format!("{mode:?}"), ours.total() / passes, gits.total() - base, CLOSE, &details);
    }
}

#[test]
fn the_fixed_part_makes_about_gits_calls() {
    if !available("the_fixed_part_makes_about_gits_calls") {
        return;
    }
    let ground = Ground::new();
    let profile = ground.profile();
    let private = ground.private_git(&profile, Untracked::Normal);
    let without = ground.count(|| status(&private)).total();
    let whole = ground.count(|| {
        let _ = git(ground.mount.path(), &["--no-optional-locks", "status", "--porcelain"]);
    });
    let worktree = open_dir(ground.mount.path()).unwrap();
    let git_dir = fixed::relative_to(&profile.worktree, &profile.git_dir);
    let head = fixed::head_ref(worktree.as_fd(), &git_dir);
    assert!(head.is_some());
    let ours = ground.count(|| {
        let _ = fixed::run(worktree.as_fd(), &git_dir, &git_dir, head.as_deref(), LONG);
    });
    // Objects are in neither: the private git dir borrows them where they cost nothing here.
    let objects = ground.count(|| read_objects(&private_on_mount(&ground, &profile), &profile)).total();
    let details = format!("ours {ours:?}\nwhole {whole:?}\nwithout {without}, objects {objects}");
    assert_close("fixed", ours.total(), whole.total() - without - objects, ABOUT, &details);
}
