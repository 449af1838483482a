//! Names that Windows cannot hold.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::migrate::inventory::Inventory;

/// Names of devices, with or without an extension
/// (<https://learn.microsoft.com/windows/win32/fileio/naming-a-file>).
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];
/// `MAX_PATH` less the end mark; longer paths need each program's consent (same page).
const MAX_PATH_UNITS: usize = 259;
/// NTFS keeps at most this many UTF-16 units in one name.
const MAX_NAME_UNITS: usize = 255;

/// A path that Windows cannot hold, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadName {
    pub(super) path: std::path::PathBuf,
    pub(super) why: String,
}

/// Returns every two paths that differ by case alone.
pub(super) fn case_collisions(inventory: &Inventory) -> Vec<(&Path, &Path)> {
    let mut folded: HashMap<String, &Path> = HashMap::new();
    let paths = inventory.entries.iter().map(|entry| entry.path.as_path());
    paths
        .filter_map(|path| {
            let other = folded.insert(path.to_str()?.to_lowercase(), path)?;
            Some((other, path))
        })
        .collect()
}

/// Returns every path of the inventory that Windows cannot hold below `destination_units` UTF-16 units of path.
pub(super) fn bad_names(inventory: &Inventory, destination_units: usize) -> Vec<BadName> {
    let mut bad = Vec::new();
    let collisions: HashMap<&Path, &Path> =
        case_collisions(inventory).into_iter().map(|(other, path)| (path, other)).collect();
    for entry in &inventory.entries {
        let path = entry.path.as_path();
        let mut report = |why: String| bad.push(BadName { path: path.to_path_buf(), why });
        if let Some(name) = path.file_name()
            && let Some(why) = bad_component(name.as_bytes())
        {
            report(why);
        }
        let Some(text) = path.to_str() else { continue };
        let units = destination_units + 1 + text.encode_utf16().count();
        if units > MAX_PATH_UNITS {
            report(format!("the path would have {units} characters, more than {MAX_PATH_UNITS}"));
        }
        if let Some(other) = collisions.get(path) {
            report(format!("differs from `{}` by case alone", crate::error::printable(other)));
        }
    }
    bad
}

/// Returns why one name cannot be on Windows; `None` when it can.
fn bad_component(name: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(name) else { return Some("is not valid Unicode".to_owned()) };
    if let Some(c) = text.chars().find(|c| c.is_ascii_control() || "<>:\"|?*\\".contains(*c)) {
        return Some(format!("holds `{}`", c.escape_default()));
    }
    if text.ends_with('.') || text.ends_with(' ') {
        return Some("ends with a dot or a space, which Windows drops".to_owned());
    }
    if text.encode_utf16().count() > MAX_NAME_UNITS {
        return Some(format!("is longer than {MAX_NAME_UNITS} characters"));
    }
    let stem = text.split('.').next().unwrap_or(text).trim_end().to_lowercase();
    is_device(&stem).then(|| "is the name of a device".to_owned())
}

fn is_device(stem: &str) -> bool {
    let numbered = ["com", "lpt"].iter().any(|kind| {
        let mut number = stem.strip_prefix(kind).unwrap_or_default().chars();
        // The superscript digits one to three count as digits there.
        let is_digit = number.next().is_some_and(|c| matches!(c, '1'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}'));
        is_digit && number.next().is_none()
    });
    numbered || DEVICES.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_count_with_any_extension_and_case_and_longer_names_do_not() {
        for bad in ["aux", "AUX.c", "nul.tar.gz", "Com1", "lpt\u{b2}.txt", "con .txt"] {
            assert!(bad_component(bad.as_bytes()).is_some(), "{bad}");
        }
        for good in ["auxiliary", "com", "com10", "lpt0", "console.c", ".aux"] {
            assert_eq!(bad_component(good.as_bytes()), None, "{good}");
        }
    }

    #[test]
    fn characters_and_endings_that_windows_drops_or_forbids_are_found() {
        for bad in ["a:b", "what?", "tab\t", "dot.", "space ", "back\\slash"] {
            assert!(bad_component(bad.as_bytes()).is_some(), "{bad}");
        }
        assert!(bad_component(b"\xff").is_some());
        assert_eq!(bad_component("größe (1).txt".as_bytes()), None);
    }
}
