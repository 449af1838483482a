//! Scanning real repositories made by real git: what is found, what is refused and with which words, at what cost.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rehome::error::Error;
use rehome::facts::Side;
use rehome::scan::RepoProfile;
use rehome::scan::access::Access;
use rehome::scan::repo::scan;
use tempfile::TempDir;

/// A directory with its own HOME, so that no configuration of the machine reaches git.
struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    fn git(&self, directory: &Path, arguments: &[&str]) -> String {
        let output = self.try_git(directory, arguments);
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn try_git(&self, directory: &Path, arguments: &[&str]) -> Output {
        Command::new("git")
            .current_dir(directory)
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .env("HOME", self.root.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap()
    }

    /// Makes a repository with two commits' worth of files in two directories.
    fn repo(&self) -> PathBuf {
        let path = self.path().join("repo");
        fs::create_dir_all(path.join("src/deep")).unwrap();
        self.git(&path, &["init", "-q"]);
        for (name, text) in [("a.txt", "one\n"), ("src/b.txt", "two\n"), ("src/deep/c.txt", "three\n")] {
            fs::write(path.join(name), text).unwrap();
        }
        self.git(&path, &["add", "."]);
        self.git(&path, &["commit", "-qm", "first"]);
        path
    }
}

fn profile(path: &Path) -> RepoProfile {
    scan(path, &Access::default()).unwrap()
}

fn refusal(path: &Path) -> (String, String) {
    let error = scan(path, &Access::default()).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    (error.to_string(), error.hint().unwrap_or_default())
}

#[test]
fn a_plain_repository_is_counted_from_its_index() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let found = profile(&path);
    assert_eq!(found.facts.tracked_files, Some(3));
    assert_eq!(found.facts.tracked_bytes, Some(4 + 4 + 6));
    assert_eq!(found.facts.dirs, Some(2));
    assert_eq!(found.facts.index_version, Some(2));
    assert_eq!(found.facts.index_written_by, Some(Side::Linux));
    assert_eq!(found.facts.branch.as_deref(), Some("main"));
    assert_eq!(found.head_commit, Some(sandbox.git(&path, &["rev-parse", "HEAD"])));
    assert_eq!(found.worktree, path);
    assert!(!found.facts.unborn && !found.facts.bare && !found.facts.linked_worktree);
}

#[test]
fn a_path_inside_leads_to_the_same_repository_also_through_a_link() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let link = sandbox.path().join("link");
    std::os::unix::fs::symlink(path.join("src"), &link).unwrap();
    for inside in [path.join("src/deep"), path.join("src/b.txt"), path.join(".git"), path.join(".git/refs"), link] {
        assert_eq!(profile(&inside).worktree, path, "{}", inside.display());
    }
}

#[test]
fn calls_do_not_grow_with_the_repository() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let count = |path: &Path| {
        let access = Access::default();
        scan(path, &access).unwrap();
        access.count().calls
    };
    let small = count(&path);
    for number in 0..2_000 {
        let directory = path.join(format!("d{}", number % 100));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{number}")), "x").unwrap();
    }
    sandbox.git(&path, &["add", "."]);
    assert_eq!(count(&path), small);
    assert!(small <= 20, "{small} calls");
}

#[test]
fn a_bare_repository_has_no_worktree() {
    let sandbox = Sandbox::new();
    let source = sandbox.repo();
    let bare = sandbox.path().join("bare.git");
    sandbox.git(&sandbox.path(), &["clone", "-q", "--bare", source.to_str().unwrap(), bare.to_str().unwrap()]);
    let found = profile(&bare);
    assert!(found.facts.bare);
    assert_eq!(found.facts.worktree, None);
    assert_eq!(found.facts.tracked_files, None);
    assert_eq!(found.head_commit, Some(sandbox.git(&source, &["rev-parse", "HEAD"])), "from packed-refs");
}

#[test]
fn a_repository_without_commits_is_unborn_and_empty() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("new");
    fs::create_dir(&path).unwrap();
    sandbox.git(&path, &["init", "-q"]);
    let found = profile(&path);
    assert!(found.facts.unborn);
    assert_eq!(found.head_commit, None);
    assert_eq!(found.facts.tracked_files, Some(0));
}

#[test]
fn a_linked_worktree_knows_its_main_repository() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let linked = sandbox.path().join("linked");
    sandbox.git(&path, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let found = profile(&linked);
    assert!(found.facts.linked_worktree);
    assert_eq!(found.worktree, linked);
    assert_eq!(found.common_dir, path.join(".git"));
    assert_eq!(found.git_dir, path.join(".git/worktrees/linked"));
    assert_eq!(found.facts.branch.as_deref(), Some("side"));
    assert_eq!(found.facts.worktrees, Some(1));
    assert_eq!(found.facts.tracked_files, Some(3));
    assert_eq!(profile(&path).facts.worktrees, Some(1));
}

#[test]
fn a_submodule_is_a_repository_of_its_own_and_one_entry_of_its_parent() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let other = sandbox.path().join("other");
    sandbox.git(&sandbox.path(), &["clone", "-q", path.to_str().unwrap(), other.to_str().unwrap()]);
    sandbox.git(&path, &["submodule", "--quiet", "add", other.to_str().unwrap(), "sub"]);
    assert_eq!(profile(&path).facts.submodules, 1);
    let sub = profile(&path.join("sub"));
    assert_eq!(sub.worktree, path.join("sub"));
    assert_eq!(sub.git_dir, path.join(".git/modules/sub"));
    assert!(!sub.facts.linked_worktree);
    assert_eq!(profile(&path.join(".git/modules/sub")).worktree, path.join("sub"), "core.worktree is followed");
}

#[test]
fn operations_stashes_remotes_and_unpushed_commits_are_seen() {
    let sandbox = Sandbox::new();
    let origin = sandbox.repo();
    let path = sandbox.path().join("clone");
    sandbox.git(&sandbox.path(), &["clone", "-q", origin.to_str().unwrap(), path.to_str().unwrap()]);
    let fresh = profile(&path);
    assert_eq!(fresh.facts.remotes, ["origin"]);
    assert_eq!(fresh.facts.unpushed, Some(false));
    assert_eq!(fresh.facts.stashes, Some(0));
    assert_eq!(fresh.facts.in_progress, None);

    fs::write(path.join("a.txt"), "changed\n").unwrap();
    sandbox.git(&path, &["stash", "-q"]);
    fs::write(path.join("a.txt"), "ours\n").unwrap();
    sandbox.git(&path, &["commit", "-qam", "ours"]);
    fs::write(origin.join("a.txt"), "theirs\n").unwrap();
    sandbox.git(&origin, &["commit", "-qam", "theirs"]);
    sandbox.git(&path, &["fetch", "-q"]);
    assert!(!sandbox.try_git(&path, &["merge", "-q", "origin/main"]).status.success(), "the merge must conflict");
    let found = profile(&path);
    assert_eq!(found.facts.stashes, Some(1));
    assert_eq!(found.facts.unpushed, Some(true));
    assert_eq!(found.facts.in_progress.as_deref(), Some("merge"));
    assert_eq!(found.facts.conflicts, 1);
    assert_eq!(found.facts.tracked_files, Some(3), "a conflict's stages are one file");
}

#[test]
fn sparse_split_and_skip_worktree_indexes_are_told_apart() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    sandbox.git(&path, &["update-index", "--split-index"]);
    let split = profile(&path);
    assert!(split.facts.split_index);
    assert_eq!(split.facts.tracked_files, Some(3), "a split index is joined with its shared part");
    sandbox.git(&path, &["update-index", "--no-split-index"]);
    sandbox.git(&path, &["update-index", "--index-version", "4"]);
    sandbox.git(&path, &["update-index", "--skip-worktree", "a.txt"]);
    fs::write(path.join("new"), "").unwrap();
    sandbox.git(&path, &["add", "-N", "new"]);
    let found = profile(&path);
    assert_eq!(found.facts.index_version, Some(4));
    assert_eq!((found.facts.skip_worktree, found.facts.intent_to_add), (1, 1));
    sandbox.git(&path, &["update-index", "--no-skip-worktree", "a.txt"]);
    sandbox.git(&path, &["sparse-checkout", "set", "--cone", "--sparse-index", "nothing"]);
    let sparse = profile(&path);
    assert!(sparse.facts.sparse_checkout && sparse.facts.sparse_index);
    assert!(sparse.info.sparse_checkout.is_some());
}

#[test]
fn sha256_names_are_read_with_their_own_length() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("long");
    fs::create_dir(&path).unwrap();
    sandbox.git(&path, &["init", "-q", "--object-format=sha256"]);
    fs::write(path.join("a"), "a").unwrap();
    sandbox.git(&path, &["add", "."]);
    sandbox.git(&path, &["commit", "-qm", "a"]);
    let found = profile(&path);
    assert_eq!(found.facts.object_format, "sha256");
    assert_eq!(found.head_commit.unwrap().len(), 64);
    assert_eq!(found.facts.tracked_files, Some(1));
}

#[test]
fn an_index_of_the_windows_git_is_recognised_by_its_empty_stat_data() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let index = path.join(".git/index");
    let mut bytes = fs::read(&index).unwrap();
    blank_stat_data(&mut bytes);
    fs::write(&index, bytes).unwrap();
    assert_eq!(profile(&path).facts.index_written_by, Some(Side::Windows));
}

/// Sets device, inode, uid and gid of every entry of a version 2 index to zero and renews the checksum.
fn blank_stat_data(bytes: &mut Vec<u8>) {
    let entries = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
    let mut at = 12;
    for _ in 0..entries {
        bytes[at + 16..at + 24].fill(0);
        bytes[at + 28..at + 36].fill(0);
        let length = usize::from(u16::from_be_bytes(bytes[at + 60..at + 62].try_into().unwrap()) & 0xfff);
        at += (62 + length + 8) / 8 * 8;
    }
    let end = bytes.len() - 20;
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&bytes[..end]);
    let checksum = hasher.try_finalize().unwrap();
    bytes.truncate(end);
    bytes.extend_from_slice(checksum.as_bytes());
}

#[test]
fn outside_a_repository_the_message_says_what_to_do() {
    let sandbox = Sandbox::new();
    let (message, hint) = refusal(&sandbox.path());
    assert_eq!(message, format!("`{}` is not in a git repository", sandbox.path().display()));
    assert_eq!(hint, "run rehome inside a repository, or name one: `rehome check PATH`");
}

#[test]
fn a_missing_path_is_named_with_the_advice_to_look_at_the_drive() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("nowhere");
    let (message, hint) = refusal(&path);
    assert_eq!(message, format!("cannot open `{}`", path.display()));
    assert!(hint.contains("check the spelling") && hint.contains("its drive is mounted"));
}

#[test]
fn a_git_file_that_leads_nowhere_or_is_none_is_named() {
    let sandbox = Sandbox::new();
    let path = sandbox.path();
    fs::write(path.join(".git"), "gitdir: C:/src/shop/.git/worktrees/x\n").unwrap();
    let (message, hint) = refusal(&path);
    assert_eq!(
        message,
        format!("`{}/.git` names the git dir `C:/src/shop/.git/worktrees/x`, and there is none", path.display())
    );
    assert!(hint.contains("git worktree repair"));
    fs::write(path.join(".git"), "something else").unwrap();
    let (message, _) = refusal(&path);
    assert!(message.contains("is a file, but none that git wrote"), "{message}");
}

#[test]
fn a_damaged_index_stops_the_run_and_says_how_to_mend_it() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let index = path.join(".git/index");
    let good = fs::read(&index).unwrap();
    let mut flipped = good.clone();
    flipped[20] ^= 1;
    for bad in [&flipped[..], &good[..40], b"garbage", b""] {
        fs::write(&index, bad).unwrap();
        let (message, hint) = refusal(&path);
        assert!(message.starts_with(&format!("the index `{}` is damaged: ", index.display())), "{message}");
        assert!(hint.contains("git fsck") && hint.contains("do not copy"), "{hint}");
    }
    fs::write(&index, &flipped).unwrap();
    assert!(refusal(&path).0.ends_with("its checksum does not match its content"));
}

#[test]
fn an_unreadable_index_is_an_error_of_its_own() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let index = path.join(".git/index");
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    let error = scan(&path, &Access::default()).unwrap_err();
    assert!(matches!(error, Error::Io { action: "read the index", .. }));
    assert_eq!(error.to_string(), format!("cannot read the index `{}`", index.display()));
}

#[test]
fn a_damaged_configuration_or_head_is_named() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    let head = fs::read(path.join(".git/HEAD")).unwrap();
    fs::write(path.join(".git/HEAD"), "nonsense\n").unwrap();
    assert!(refusal(&path).0.ends_with("holds neither a ref nor an object name"));
    fs::write(path.join(".git/HEAD"), head).unwrap();
    fs::write(path.join(".git/config"), "[core\n").unwrap();
    assert!(refusal(&path).0.contains("is no valid git configuration"));
}

#[test]
fn included_configuration_is_read_as_data_and_a_pipe_in_its_place_does_not_hang() {
    let sandbox = Sandbox::new();
    let path = sandbox.repo();
    fs::write(path.join("shared.config"), "[core]\n\tautocrlf = input\n[include]\n\tpath = shared.config\n").unwrap();
    sandbox.git(&path, &["config", "include.path", "../shared.config"]);
    let found = profile(&path);
    assert_eq!(found.config.string("core.autocrlf").unwrap(), "input");
    assert!(found.notes.iter().any(|note| note.contains("includes more than")), "a loop is cut: {:?}", found.notes);
    fs::remove_file(path.join("shared.config")).unwrap();
    assert!(Command::new("mkfifo").arg(path.join("shared.config")).status().unwrap().success());
    assert!(scan(&path, &Access::default()).unwrap_err().to_string().contains("shared.config"));
}
