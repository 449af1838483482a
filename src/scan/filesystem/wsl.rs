//! What is particular to WSL: where it mounts drives, and what its virtiofs shares are called.
//!
//! All of it serves messages and Windows spellings; the class of a mount is never told by where it is.

use std::fs;
use std::path::{Path, PathBuf};

use super::mount_table::MountTable;
use crate::error::{Error, printable};

/// Where WSL links each virtiofs share's name to the Windows path that it shows.
pub(super) const SHARES: &str = "/run/wsl/virtiofs";
/// Where WSL mounts drives unless `/etc/wsl.conf` says otherwise; used in hints, never to classify.
const DEFAULT_AUTOMOUNT_ROOT: &str = "/mnt/";

/// Where WSL mounts drives: what its own mounts say, else its configuration, else its default.
pub(super) fn automount_root(table: &MountTable) -> PathBuf {
    let of_mounts = table.mounts.iter().find_map(|mount| mount.option("symlinkroot")).map(PathBuf::from);
    let of_config = || automount_root_of(&fs::read_to_string("/etc/wsl.conf").unwrap_or_default());
    of_mounts.or_else(of_config).unwrap_or_else(|| PathBuf::from(DEFAULT_AUTOMOUNT_ROOT))
}

pub(super) fn drive_not_mounted(letter: char, path: &str, automount_root: &Path) -> Error {
    let folder = automount_root.join(letter.to_ascii_lowercase().to_string());
    Error::refused(
        format!("cannot find `{path}`: drive {letter}: is not mounted"),
        format!(
            "mount it with `sudo mount -t drvfs {letter}: {}`; if WSL should have done so, look at `[automount]` in \
             /etc/wsl.conf and at `virtiofs` in .wslconfig",
            printable(folder)
        ),
    )
}

/// Returns the drive letter and the drive's folder, when `path` is at or below `<root>/<letter>`.
pub(super) fn drive_folder(path: &Path, root: &Path) -> Option<(char, PathBuf)> {
    let name = path.strip_prefix(root).ok()?.components().next()?.as_os_str().to_str()?;
    let mut chars = name.chars();
    let letter = chars.next().filter(char::is_ascii_alphabetic)?;
    chars.next().is_none().then(|| (letter.to_ascii_uppercase(), root.join(name)))
}

/// Returns `root` of the section `[automount]` of a wsl.conf.
fn automount_root_of(config: &str) -> Option<PathBuf> {
    let mut is_automount = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_automount = line.eq_ignore_ascii_case("[automount]");
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_automount)
            && key.trim() == "root"
        {
            return Some(PathBuf::from(value.trim().trim_matches('"')));
        }
    }
    None
}

/// Lists WSL's virtiofs shares: name, and the Windows path where the entry is a link to one.
pub(super) fn read_shares(dir: &Path) -> Vec<(String, Option<String>)> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let share = |entry: fs::DirEntry| {
        let path = fs::read_link(entry.path()).ok().and_then(|path| path.to_str().map(str::to_owned));
        Some((entry.file_name().to_str()?.to_owned(), path))
    };
    entries.filter_map(Result::ok).filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_drive_is_told_by_the_automount_root() {
        let folder = |path: &str, root: &str| drive_folder(Path::new(path), Path::new(root));
        assert_eq!(folder("/mnt/c/src/app", "/mnt/"), Some(('C', "/mnt/c".into())));
        assert_eq!(folder("/c", "/"), Some(('C', "/c".into())));
        assert_eq!(folder("/mnt/cache/app", "/mnt/"), None);
        assert_eq!(folder("/home/c", "/mnt/"), None);
        let config = "[boot]\nroot = /no\n[automount]\nenabled = true\nroot = \"/win/\"\n";
        assert_eq!(automount_root_of(config), Some("/win/".into()));
        assert_eq!(automount_root_of("[boot]\nroot=/x\n"), None);
    }

    #[test]
    fn shares_are_read_with_the_paths_that_they_link_to() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(r"C:\", dir.path().join("3f2b")).unwrap();
        fs::write(dir.path().join("tag"), "").unwrap();
        let mut shares = read_shares(dir.path());
        shares.sort();
        assert_eq!(shares, [("3f2b".to_owned(), Some(r"C:\".to_owned())), ("tag".to_owned(), None)]);
        assert!(read_shares(&dir.path().join("missing")).is_empty());
    }
}
