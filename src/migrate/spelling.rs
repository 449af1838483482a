//! Absolute paths that files hold: recognised in either side's spelling.

use std::path::{Component, Path, PathBuf};

/// The spellings under which a directory is known, for finding it in configuration and in link targets.
#[derive(Debug, Clone)]
pub(super) struct Spellings {
    /// With `/` between components and without one at the end; the Linux path first.
    forms: Vec<String>,
}

impl Spellings {
    /// Collects the spellings of a directory: its path, and as Windows programs write it where that is known.
    ///
    /// `/mnt/c/...` is taken for `C:/...` too: a wrong guess only finds nothing.
    pub(super) fn of(path: &Path, windows_path: Option<&str>) -> Self {
        let linux = path.to_string_lossy().trim_end_matches('/').to_owned();
        let mut forms = vec![linux.clone()];
        if let Some(windows) = windows_path {
            forms.push(windows.replace('\\', "/").trim_end_matches('/').to_owned());
        }
        if let Some((letter, rest)) = automount(&linux) {
            forms.push(format!("{}:{rest}", letter.to_ascii_uppercase()));
        }
        forms.dedup();
        Self { forms }
    }

    /// Returns what follows the directory in an absolute path of any spelling; `None` when it leads elsewhere.
    pub(super) fn strip(&self, text: &str) -> Option<PathBuf> {
        let text = text.replace('\\', "/");
        self.forms.iter().enumerate().find_map(|(at, form)| {
            let (head, rest) = (text.get(..form.len())?, text.get(form.len()..)?);
            // Windows does not tell upper from lower case.
            let is_same = if at == 0 { head == form } else { head.eq_ignore_ascii_case(form) };
            let is_whole = rest.is_empty() || rest.starts_with('/');
            (is_same && is_whole).then(|| PathBuf::from(rest.trim_start_matches('/')))
        })
    }

    /// Returns whether the text mentions the directory, in any spelling, backslashes doubled or not.
    pub(super) fn is_mentioned(&self, text: &str) -> bool {
        let text = text.replace("\\\\", "/").replace('\\', "/");
        let lower = text.to_ascii_lowercase();
        self.forms.iter().enumerate().any(|(at, form)| {
            let (haystack, needle) = if at == 0 { (&text, form.clone()) } else { (&lower, form.to_ascii_lowercase()) };
            haystack.match_indices(&needle).any(|(found, _)| {
                // `/src/shop` is not meant by `/src/shop2`.
                haystack[found + needle.len()..].chars().next().is_none_or(|next| !is_name_character(next))
            })
        })
    }
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Splits `/mnt/c/rest` into `c` and `/rest`.
fn automount(path: &str) -> Option<(char, &str)> {
    let rest = path.strip_prefix("/mnt/")?;
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = &rest[1..];
    (rest.is_empty() || rest.starts_with('/')).then_some((letter, rest))
}

/// Returns whether the text is an absolute path of Linux or of Windows.
pub(super) fn is_absolute(text: &str) -> bool {
    text.starts_with('/') || is_windows(text)
}

/// Returns whether the text is an absolute path as Windows writes it: `C:/...`, `C:\...` or `\\server\share`.
pub(super) fn is_windows(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_drive = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && b"/\\".contains(&bytes[2]);
    has_drive || text.starts_with("\\\\")
}

/// Returns where a Windows path is seen on this system, if it is there under the usual mount point.
pub(super) fn to_local(text: &str) -> Option<PathBuf> {
    if !is_windows(text) || text.starts_with("\\\\") {
        return None;
    }
    let letter = text.chars().next()?.to_ascii_lowercase();
    let path = PathBuf::from(format!("/mnt/{letter}{}", text[2..].replace('\\', "/")));
    path.symlink_metadata().is_ok().then_some(path)
}

/// Resolves `.` and `..` by the text alone; `None` when the path leads above its beginning.
pub(super) fn normalized(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}

/// Returns the way from one directory to a path, both relative to the same root.
pub(super) fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let mut way: PathBuf = from.components().skip(common).map(|_| Component::ParentDir).collect();
    way.extend(to.components().skip(common));
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_recognised_in_either_spelling_and_its_neighbour_is_not() {
        let shop = Spellings::of(Path::new("/mnt/c/src/shop"), None);
        assert_eq!(shop.strip("c:\\Src\\shop\\.git"), Some(PathBuf::from(".git")));
        assert_eq!(shop.strip("/mnt/c/src/shop"), Some(PathBuf::new()));
        assert_eq!(shop.strip("/mnt/c/Src/shop"), None);
        assert_eq!(shop.strip("C:/src/shop2/.git"), None);
        assert!(shop.is_mentioned("cd /mnt/c/src/shop; ls"));
        assert!(shop.is_mentioned("\"path\": \"C:\\\\src\\\\shop\\\\app\""));
        assert!(!shop.is_mentioned("cd /mnt/c/src/shop-old"));
        let given = Spellings::of(Path::new("/media/x/shop"), Some("D:\\shop"));
        assert_eq!(given.strip("d:/shop/a/b"), Some(PathBuf::from("a/b")));
    }

    #[test]
    fn ways_between_directories_go_through_their_common_parent() {
        assert_eq!(relative(Path::new("lib/sub"), Path::new(".git/modules/sub")), Path::new("../../.git/modules/sub"));
        assert_eq!(relative(Path::new("a/b"), Path::new("a/c")), Path::new("../c"));
        assert_eq!(normalized(Path::new("a/../b/./c")), Some(PathBuf::from("b/c")));
        assert_eq!(normalized(Path::new("a/../../b")), None);
    }
}
