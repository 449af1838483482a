//! Helpers of this layer's tests.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::facts::RepoFacts;
use crate::scan::{Index, InfoFiles, RepoProfile};

/// Returns the bytes of a version 2 index with empty stat data for these paths, which must be sorted.
pub(crate) fn index_of(paths: &[&str]) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(paths.len()).unwrap().to_be_bytes());
    for path in paths {
        let start = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([0; 12 + 20]);
        bytes.extend(u16::try_from(path.len()).unwrap().to_be_bytes());
        bytes.extend(path.as_bytes());
        bytes.push(0);
        while !(bytes.len() - start).is_multiple_of(8) {
            bytes.push(0);
        }
    }
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&bytes);
    bytes.extend(hasher.try_finalize().unwrap().as_slice());
    bytes
}

/// Runs git in a directory, cut off from the user's configuration, and returns its output.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Reads a repository as the scan would, as far as measuring needs it.
pub(crate) fn profile_of(worktree: &Path) -> RepoProfile {
    let worktree = worktree.canonicalize().unwrap();
    let text = |args: &[&str]| String::from_utf8(git(&worktree, args)).unwrap().trim_end().to_owned();
    let git_dir = worktree.join(text(&["rev-parse", "--git-dir"]));
    let common_dir = worktree.join(text(&["rev-parse", "--git-common-dir"]));
    let mut config_text = std::fs::read_to_string(common_dir.join("config")).unwrap();
    config_text += &std::fs::read_to_string(git_dir.join("config.worktree")).unwrap_or_default();
    let own_config = gix::config::File::try_from(config_text.as_str());
    let own_config = own_config.unwrap();
    let index = std::fs::read(git_dir.join("index")).ok().map(|bytes| {
        let file = gix::index::File::at(
            git_dir.join("index"),
            gix::hash::Kind::Sha1,
            true,
            gix::index::decode::Options::default(),
        );
        let file = file.unwrap();
        let meta = std::fs::metadata(git_dir.join("index")).unwrap();
        let nanos = u32::try_from(meta.mtime_nsec()).unwrap();
        let shared = std::fs::read_dir(&git_dir).unwrap().flatten().find_map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with("sharedindex.").then(|| (name, std::fs::read(entry.path()).unwrap()))
        });
        Index { bytes, shared, state: file.into_parts().0, mtime: (meta.mtime(), nanos) }
    });
    let head =
        Command::new("git").current_dir(&worktree).args(["rev-parse", "-q", "--verify", "HEAD"]).output().unwrap();
    RepoProfile {
        facts: RepoFacts { object_format: "sha1".to_owned(), ..RepoFacts::default() },
        info: InfoFiles {
            exclude: std::fs::read(common_dir.join("info/exclude")).ok(),
            attributes: std::fs::read(common_dir.join("info/attributes")).ok(),
            sparse_checkout: std::fs::read(git_dir.join("info/sparse-checkout")).ok(),
            alternates: None,
        },
        git_dir_entries: Vec::new(),
        notes: Vec::new(),
        config: own_config.clone(),
        own_config,
        head_commit: head.status.success().then(|| String::from_utf8(head.stdout).unwrap().trim().to_owned()),
        worktree,
        git_dir,
        common_dir,
        index,
    }
}
