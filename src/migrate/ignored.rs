//! Which directories git ignores, told while walking, by the rule files on the way.

use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Ignore rules that apply in one directory: its own and those of its ancestors.
#[derive(Debug, Clone)]
pub(super) struct IgnoreChain {
    /// Innermost last.
    files: Arc<Vec<Gitignore>>,
    /// Whether the directory itself is ignored, and so everything in it.
    is_ignored: bool,
}

impl IgnoreChain {
    /// Begins at the root, with the texts of the user's excludes file and of `info/exclude`, in this order.
    pub(super) fn root(texts: &[&[u8]]) -> Self {
        let files = texts.iter().filter_map(|text| parse(Path::new(""), text)).collect();
        Self { files: Arc::new(files), is_ignored: false }
    }

    /// Adds the `.gitignore` of the directory at `path`.
    pub(super) fn with(self, path: &Path, text: &[u8]) -> Self {
        let Some(own) = parse(path, text) else { return self };
        let mut files = self.files.as_ref().clone();
        files.push(own);
        Self { files: Arc::new(files), is_ignored: self.is_ignored }
    }

    /// Returns the chain of a directory below, at the relative `path`.
    pub(super) fn enter(&self, path: &Path) -> Self {
        Self { files: Arc::clone(&self.files), is_ignored: self.is_ignored || self.says_ignored(path) }
    }

    pub(super) fn is_ignored(&self) -> bool {
        self.is_ignored
    }

    /// The innermost file with an opinion wins (gitignore(5)).
    fn says_ignored(&self, directory: &Path) -> bool {
        self.files
            .iter()
            .rev()
            .map(|file| file.matched(directory, true))
            .find(|matched| !matched.is_none())
            .is_some_and(|matched| matched.is_ignore())
    }
}

/// Parses the rules of one file; a line that cannot be parsed is left out, which only makes us copy more.
fn parse(directory: &Path, text: &[u8]) -> Option<Gitignore> {
    // An absolute stand-in: relative roots make the crate consult the working directory.
    let mut builder = GitignoreBuilder::new(directory);
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in String::from_utf8_lossy(text).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|file| file.num_ignores() > 0 || file.num_whitelists() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_rule_file_decides() {
        let root = IgnoreChain::root(&[b"build/\n"]).with(Path::new(""), b"node_modules\n/target\n");
        assert!(root.enter(Path::new("node_modules")).is_ignored());
        assert!(root.enter(Path::new("build")).is_ignored());
        assert!(root.enter(Path::new("target")).is_ignored());
        let app = root.enter(Path::new("app")).with(Path::new("app"), b"!build/\n/dist\n");
        assert!(!app.is_ignored());
        assert!(!app.enter(Path::new("app/build")).is_ignored());
        assert!(app.enter(Path::new("app/dist")).is_ignored());
        assert!(!app.enter(Path::new("app/target")).is_ignored());
        assert!(app.enter(Path::new("app/node_modules")).enter(Path::new("app/node_modules/x")).is_ignored());
    }
}
