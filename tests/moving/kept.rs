//! What is in the source is in the copy.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;

use crate::ground::{Ground, REHOME, can, os, partial, picture, text, worktree};
use crate::slow_mount::{Options, SlowMount, available};

#[test]
fn files_links_times_and_the_state_of_git_are_kept_and_the_source_is_not_touched() {
    let ground = Ground::furnished();
    let before = picture(&ground.source());
    let report = ground.moved(&[]);
    assert_eq!(picture(&ground.source()), before);
    assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
    assert_eq!(ground.status(&ground.dest()), ground.status(&ground.source()));
    for question in [
        vec!["for-each-ref"],
        vec!["stash", "list"],
        vec!["reflog", "--all"],
        vec!["symbolic-ref", "HEAD"],
        vec!["diff", "--cached"],
        vec!["config", "--local", "--list"],
    ] {
        assert_eq!(ground.git(&question, &ground.dest()), ground.git(&question, &ground.source()), "{question:?}");
    }
    assert!(!partial(&ground.dest()).exists());
    let verified = &report["result"]["verified"];
    assert_eq!(verified["stashes"], 1);
    assert_eq!(verified["refs"], 4);
    assert_eq!(verified["real_changes"], 3);
    assert_eq!(verified["artefacts"], 0);
}

#[test]
fn times_are_kept_on_a_mount_that_takes_both_of_them_or_none() {
    if !available("times_are_kept_on_a_mount_that_takes_both_of_them_or_none") {
        return;
    }
    let ground = Ground::furnished();
    fs::create_dir(ground.path("drive")).unwrap();
    let mount = SlowMount::new(&ground.path("drive"), Options::default()).unwrap();
    mount.take_both_times_or_none();
    let mut command = ground.clean(std::process::Command::new(REHOME));
    command.arg("move").arg(ground.source()).arg(mount.path().join("dest")).args(["--yes", "--target-fs", "fuse.slow"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(worktree(&ground.path("drive/dest")), worktree(&ground.source()));
}

#[test]
fn the_first_status_in_the_copy_reads_no_file() {
    let ground = Ground::furnished();
    ground.in_source(&["checkout", "-q", "."]);
    ground.moved(&[]);
    // A plain `diff-files` trusts stat data alone and reports every entry that it would have to read.
    assert_eq!(ground.git(&["diff-files", "--name-only"], &ground.dest()), "");
}

#[test]
fn names_that_are_not_text_and_odd_kinds_of_files_are_kept() {
    let ground = Ground::furnished();
    let odd = ground.source().join(os(b"odd \xff\n\"name' $(touch x)"));
    fs::write(&odd, "odd").unwrap();
    fs::create_dir_all(ground.path("src/empty/inner")).unwrap();
    symlink("/etc/hostname", ground.path("src/absolute")).unwrap();
    symlink("../../outside", ground.path("src/leading-out")).unwrap();
    symlink("nowhere", ground.path("src/dangling")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        ground.path("src/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    ground.mode("src/lib/deep", 0o555);
    let report = ground.moved(&[]);
    ground.mode("src/lib/deep", 0o755);
    ground.mode("dest/lib/deep", 0o755);
    assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
    let links = report["plan"]["links_outside"].as_array().unwrap();
    assert_eq!(links.len(), 2, "{links:?}");
    assert!(links[0].as_str().unwrap().contains("/etc/hostname"));
}

#[test]
fn hard_links_stay_one_file_and_holes_stay_holes() {
    let ground = Ground::furnished();
    ground.write("src/a/first", "shared");
    fs::hard_link(ground.path("src/a/first"), ground.path("src/second")).unwrap();
    fs::hard_link(ground.path("src/a/first"), ground.path("src/a/third")).unwrap();
    let sparse = File::create(ground.path("src/sparse.img")).unwrap();
    sparse.set_len(5 << 30).unwrap();
    sparse.write_all_at(b"in the middle", 3 << 30).unwrap();
    ground.moved(&[]);
    let meta = |path: &str| ground.path(path).metadata().unwrap();
    assert_eq!(meta("dest/a/first").nlink(), 3);
    assert_eq!(meta("dest/a/first").ino(), meta("dest/second").ino());
    assert_eq!(meta("dest/a/first").ino(), meta("dest/a/third").ino());
    let copy = meta("dest/sparse.img");
    assert_eq!(copy.len(), 5 << 30);
    assert!(copy.blocks() * 512 < 1 << 20, "{} blocks", copy.blocks());
    let mut middle = [0; 13];
    File::open(ground.path("dest/sparse.img")).unwrap().read_exact_at(&mut middle, 3 << 30).unwrap();
    assert_eq!(&middle, b"in the middle");
}

#[test]
fn extended_attributes_are_kept_where_both_sides_have_them() {
    let ground = Ground::furnished();
    let set =
        |path: &Path, value: &[u8]| rustix::fs::setxattr(path, "user.note", value, rustix::fs::XattrFlags::empty());
    let is_possible = set(&ground.path("src/two.txt"), b"kept").is_ok();
    if !can("extended_attributes_are_kept_where_both_sides_have_them", "user attributes", is_possible) {
        return;
    }
    set(&ground.path("src/lib"), b"of a directory").unwrap();
    ground.moved(&[]);
    let get = |path: &str| {
        let mut value = [0_u8; 64];
        let length = rustix::fs::getxattr(ground.path(path), "user.note", &mut value).unwrap();
        value[..length].to_vec()
    };
    assert_eq!(get("dest/two.txt"), b"kept");
    assert_eq!(get("dest/lib"), b"of a directory");
}

#[test]
fn large_files_arrive_whole() {
    let ground = Ground::furnished();
    let data: Vec<u8> = (0..40_000_003_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    ground.write("src/large.bin", &data);
    ground.moved(&[]);
    assert!(fs::read(ground.path("dest/large.bin")).unwrap() == data);
}

/// Files that are too large, or too many, for everybody's `cargo test`.
fn is_heavy_wanted(test: &str) -> bool {
    let is_wanted = std::env::var_os("REHOME_REQUIRE_ALL").is_some_and(|value| value == "1");
    can(test, "REHOME_REQUIRE_ALL=1, because it fills gigabytes or makes a hundred thousand files", is_wanted)
}

#[test]
fn five_gigabytes_in_one_file_arrive_whole() {
    const BLOCK_BYTES: usize = 1 << 20;
    const BLOCKS: u64 = 5 << 10;
    if !is_heavy_wanted("five_gigabytes_in_one_file_arrive_whole") {
        return;
    }
    let ground = Ground::furnished();
    let block = |number: u64| {
        let mut block = vec![0_u8; BLOCK_BYTES];
        for (at, word) in block.chunks_exact_mut(8).enumerate() {
            // No two blocks are equal, and none is a hole.
            let word_bytes = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at as u64 + 1)).to_le_bytes();
            word.copy_from_slice(&word_bytes);
        }
        block
    };
    let file = File::create(ground.path("src/.env")).unwrap();
    for number in 0..BLOCKS {
        file.write_all_at(&block(number), number * BLOCK_BYTES as u64).unwrap();
    }
    ground.moved(&[]);
    let copy = File::open(ground.path("dest/.env")).unwrap();
    assert_eq!(copy.metadata().unwrap().len(), BLOCKS * BLOCK_BYTES as u64);
    let mut read = vec![0_u8; BLOCK_BYTES];
    // The copy was compared as a whole by the program; here both sides of every 32-bit boundary are, and the ends.
    for number in [0, 1, 2_047, 2_048, 4_095, 4_096, BLOCKS - 1] {
        copy.read_exact_at(&mut read, number * BLOCK_BYTES as u64).unwrap();
        assert!(read == block(number), "block {number}");
    }
}

#[test]
fn a_hundred_thousand_files_are_moved() {
    if !is_heavy_wanted("a_hundred_thousand_files_are_moved") {
        return;
    }
    let ground = Ground::new();
    for number in 0..100_000_u32 {
        let dir = ground.path(format!("src/d{:02}/e{:03}", number % 50, number % 1_000));
        if number < 1_000 {
            fs::create_dir_all(&dir).unwrap();
        }
        fs::write(dir.join(format!("f{number}")), number.to_string()).unwrap();
    }
    ground.commit("all");
    let report = ground.moved(&[]);
    assert!(report["result"]["files"].as_u64().unwrap() >= 100_000);
    assert_eq!(report["result"]["verified"]["files_read_back"], report["result"]["files"]);
    for number in (0..100_000_u32).step_by(997) {
        let path = format!("dest/d{:02}/e{:03}/f{number}", number % 50, number % 1_000);
        assert_eq!(fs::read_to_string(ground.path(path)).unwrap(), number.to_string());
    }
    assert_eq!(ground.status(&ground.dest()), "");
}

#[test]
fn what_can_be_made_again_is_left_out_and_precious_files_are_not() {
    let ground = Ground::furnished();
    ground.write("src/package.json", "{}");
    ground.write("src/package-lock.json", "{}");
    ground.write("src/node_modules/x/index.js", "x");
    ground.write("src/app/node_modules/y.js", "not beside a package.json");
    let report = ground.moved(&[]);
    assert!(!ground.path("dest/node_modules").exists());
    assert!(ground.path("dest/app/node_modules/y.js").exists());
    assert_eq!(fs::read(ground.path("dest/.env")).unwrap(), b"SECRET=1\n");
    assert!(ground.path("dest/debug.log").exists());
    let left_out = &report["result"]["left_out"][0];
    assert_eq!((&left_out["path"], &left_out["restore"]), (&"node_modules".into(), &"npm ci".into()));
}

#[test]
fn a_directory_that_git_does_not_ignore_or_that_holds_tracked_files_is_never_left_out() {
    let ground = Ground::furnished();
    ground.write("src/app/package.json", "{}");
    ground.write("src/app/node_modules/tracked.js", "t");
    ground.in_source(&["add", "-f", "app"]);
    ground.in_source(&["commit", "-q", "-m", "vendored"]);
    ground.write("src/Cargo.toml", "[package]");
    ground.write("src/target/not-ignored", "t");
    ground.moved(&[]);
    assert!(ground.path("dest/app/node_modules/tracked.js").exists());
    assert!(ground.path("dest/target/not-ignored").exists());
}

#[test]
fn all_takes_everything_and_only_tracked_takes_tracked_files_with_their_changes() {
    let ground = Ground::furnished();
    ground.write("src/package.json", "{}");
    ground.write("src/node_modules/x/index.js", "x");
    ground.moved(&["--all"]);
    assert!(ground.path("dest/node_modules/x/index.js").exists());
    fs::remove_dir_all(ground.dest()).unwrap();
    ground.moved(&["--only-tracked"]);
    for absent in ["node_modules", ".env", "untracked dir", "debug.log", "package.json"] {
        assert!(!ground.path("dest").join(absent).exists(), "{absent}");
    }
    let tracked = |directory: &Path| ground.git(&["status", "--porcelain", "-uno"], directory);
    assert_eq!(tracked(&ground.dest()), tracked(&ground.source()));
    assert_eq!(fs::read(ground.path("dest/two.txt")).unwrap(), b"two changed\n");
}

#[test]
fn a_bare_repository_is_moved_and_checked_too() {
    let ground = Ground::furnished();
    ground.git(&["clone", "-q", "--bare", "src", "bare"], &ground.root());
    let report = ground.moved_from(&ground.path("bare"), &[]);
    assert_eq!(ground.git(&["rev-parse", "main"], &ground.dest()), ground.in_source(&["rev-parse", "main"]));
    assert_eq!(report["result"]["verified"]["repositories_checked"], 1);
}

#[test]
fn a_repository_without_a_commit_is_moved() {
    let ground = Ground::new();
    ground.write("src/a", "a");
    ground.in_source(&["add", "a"]);
    ground.moved(&[]);
    assert_eq!(ground.status(&ground.dest()), "A  a\n");
}

#[test]
fn a_destination_that_is_an_empty_directory_is_filled() {
    let ground = Ground::furnished();
    fs::create_dir(ground.dest()).unwrap();
    ground.moved(&[]);
    assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
}

#[test]
fn split_and_sha256_indexes_are_understood() {
    let ground = Ground::furnished();
    ground.in_source(&["update-index", "--split-index"]);
    ground.write("src/later.txt", "later\n");
    ground.in_source(&["add", "later.txt"]);
    ground.moved(&[]);
    assert_eq!(ground.status(&ground.dest()), ground.status(&ground.source()));
    let other = Ground { dir: tempfile::tempdir().unwrap() };
    fs::create_dir(other.home()).unwrap();
    other.git(&["init", "-q", "--object-format=sha256", "src"], &other.root());
    other.write("src/a", "a\n");
    other.commit("a");
    other.write("src/a", "b\n");
    other.moved(&[]);
    assert_eq!(other.status(&other.dest()), " M a\n");
}
