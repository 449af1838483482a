//! The user's settings that decide what `git status` does, read as data.

use gix::bstr::{BString, ByteSlice};

use serde::{Deserialize, Serialize};

use crate::scan::RepoProfile;

/// Keys that may reach git: each only switches a behaviour or names a file of patterns, none names a program.
///
/// Everything else stays out, `core.fsmonitor`, `core.hooksPath`, `filter.*`, `diff.*.textconv` and every include
/// among it. A list of what is let through stays right when git learns new keys.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "preloadIndex",
            "untrackedCache",
            "fileMode",
            "ignoreCase",
            "symlinks",
            "autocrlf",
            "eol",
            "checkStat",
            "trustctime",
            "sparseCheckout",
            "sparseCheckoutCone",
            "excludesFile",
            "attributesFile",
            "bigFileThreshold",
        ],
    ),
    ("index", &["threads", "sparse"]),
    ("sparse", &["expectFilesOutsideOfPatterns"]),
    ("status", &["showUntrackedFiles", "renames", "renameLimit"]),
    ("diff", &["renames", "renameLimit"]),
    ("feature", &["manyFiles"]),
];

/// What `status.showUntrackedFiles` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Untracked {
    /// Do not look for untracked files.
    No,
    /// Show untracked files and directories.
    Normal,
    /// Show every file in untracked directories.
    All,
}

impl Untracked {
    /// Returns the word for the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Normal => "normal",
            Self::All => "all",
        }
    }
}

/// The settings, with git's defaults where nothing is set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Text of a configuration file with the allowed keys alone.
    pub config: Vec<u8>,
    /// How untracked files are shown.
    pub untracked: Untracked,
    /// Whether git stats the index's entries in several threads.
    pub preload_index: bool,
    /// Whether the executable bit counts.
    pub file_mode: bool,
    /// Whether symbolic links are checked out as links.
    pub symlinks: bool,
    /// Whether names are compared without regard to case.
    pub ignore_case: bool,
    /// Whether only size and whole seconds of mtime are compared.
    pub check_stat_minimal: bool,
    /// Whether the change time is compared.
    pub trust_ctime: bool,
    /// Whether git may use the index's untracked cache.
    pub untracked_cache: bool,
    /// Whether a file system monitor is configured, which measuring has to leave out.
    pub has_fsmonitor: bool,
}

impl Settings {
    /// Reads the settings of a repository.
    #[must_use]
    pub fn of(profile: &RepoProfile) -> Self {
        let config = &profile.config;
        let flag = |key: &str, default: bool| config.boolean(key).ok().flatten().unwrap_or(default);
        let text = |key: &str| config.string(key).map(|value| value.to_str_lossy().to_ascii_lowercase());
        let untracked = match text("status.showUntrackedFiles").as_deref() {
            Some("all") => Untracked::All,
            Some("no" | "false" | "off" | "0") => Untracked::No,
            _ => Untracked::Normal,
        };
        Self {
            config: allowed_config(config, &profile.facts.object_format),
            untracked,
            preload_index: flag("core.preloadIndex", true),
            file_mode: flag("core.fileMode", true),
            symlinks: flag("core.symlinks", true),
            ignore_case: flag("core.ignoreCase", false),
            check_stat_minimal: text("core.checkStat").as_deref() == Some("minimal"),
            trust_ctime: flag("core.trustctime", true),
            // `keep`, the default, uses a cache that is there.
            untracked_cache: text("core.untrackedCache").is_none_or(|value| value == "keep")
                || flag("core.untrackedCache", true),
            has_fsmonitor: config
                .string("core.fsmonitor")
                .is_some_and(|value| !matches!(value.as_slice(), b"" | b"false" | b"no" | b"off" | b"0")),
        }
    }
}

fn allowed_config(config: &gix::config::File, object_format: &str) -> Vec<u8> {
    let mut text = b"[core]\n\tbare = false\n\tlogAllRefUpdates = false\n".to_vec();
    if object_format == "sha256" {
        text.extend_from_slice(b"\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n");
    } else {
        text.extend_from_slice(b"\trepositoryFormatVersion = 0\n");
    }
    for (section, keys) in ALLOWED {
        text.extend_from_slice(format!("[{section}]\n").as_bytes());
        for key in *keys {
            let value = match config.string_implicit(&*format!("{section}.{key}")) {
                Some(Some(value)) => value,
                // A key without `=` is true.
                Some(None) => BString::from("true"),
                None => continue,
            };
            if value.contains(&0) {
                continue;
            }
            text.extend_from_slice(format!("\t{key} = ").as_bytes());
            text.extend_from_slice(&quote(&value));
            text.push(b'\n');
        }
    }
    text
}

/// Quotes a value so that git reads exactly these bytes back.
fn quote(value: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in value {
        match byte {
            b'"' => quoted.extend_from_slice(b"\\\""),
            b'\\' => quoted.extend_from_slice(b"\\\\"),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'\t' => quoted.extend_from_slice(b"\\t"),
            0x08 => quoted.extend_from_slice(b"\\b"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> String {
        let config = gix::config::File::try_from(text).unwrap();
        String::from_utf8(allowed_config(&config, "sha1")).unwrap()
    }

    #[test]
    fn keys_that_name_programs_do_not_pass() {
        let text = allowed(
            "[core]\n fsmonitor = evil\n hooksPath = evil\n pager = evil\n preloadIndex = false\n[filter \"x\"]\n clean = \
             evil\n[diff \"x\"]\n textconv = evil\n[include]\n path = evil\n[alias]\n status = !evil\n",
        );
        assert!(!text.contains("evil"), "{text}");
        assert!(text.contains("preloadIndex = \"false\""), "{text}");
    }

    #[test]
    fn a_value_cannot_break_out_of_its_line() {
        let text = allowed("[core]\n excludesFile = \"a\\n[core]\\nfsmonitor = evil\\\"\"\n");
        let read_back = gix::config::File::try_from(text.as_str()).unwrap();
        assert_eq!(read_back.string("core.fsmonitor"), None);
        assert_eq!(read_back.string("core.excludesFile").unwrap(), "a\n[core]\nfsmonitor = evil\"");
    }
}
