//! The repositories below a directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder};

use crate::error::Error;
use crate::scan::access::Access;

/// Directories that hold what tools made or fetched: many files, and repositories only by accident.
const PASSED_OVER: [&str; 16] = [
    "node_modules",
    "bower_components",
    "jspm_packages",
    "vendor",
    "target",
    "venv",
    "__pycache__",
    "site-packages",
    "Pods",
    "DerivedData",
    "$RECYCLE.BIN",
    "System Volume Information",
    "AppData",
    "Windows",
    "Program Files",
    "Program Files (x86)",
];

/// How far and how long to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Directories below the first one; a repository directly in it is at depth 1.
    pub max_depth: usize,
    /// Directories to look into, all in all.
    pub max_directories: usize,
    /// Time to look for.
    pub limit: Duration,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Roots of worktrees, in the order of their paths.
    pub repositories: Vec<PathBuf>,
    /// Directories that were looked into.
    pub directories: usize,
    /// Directories that could not be read.
    pub unreadable: usize,
    /// Whether a bound ended the search before everything was seen.
    pub is_cut: bool,
}

/// Finds the repositories below `start`, itself included, without looking into them.
///
/// Links are not followed, other mounts not entered (any of them may hang), and of hidden directories and of those that
/// tools fill (`PASSED_OVER`) nothing is read. Each directory costs one `lstat` and one listing.
///
/// # Errors
///
/// [`Error::Io`] when `start` cannot be read; below it, unreadable directories are counted.
pub fn find(start: &Path, bounds: Bounds, access: &Arc<Access>) -> Result<Found, Error> {
    access.list(start, 1).map_err(|source| Error::io("read", start, source))?;
    let mut found = Found { directories: 1, ..Found::default() };
    if is_repository(start, access) {
        found.repositories.push(start.to_owned());
        return Ok(found);
    }
    let search =
        Arc::new(Search { bounds, started: Instant::now(), access: Arc::clone(access), found: Mutex::new(found) });
    let mut walk = WalkBuilder::new(start);
    // Ignore files speak about the contents of repositories; between them there are none that count.
    walk.standard_filters(false).follow_links(false).same_file_system(true).max_depth(Some(bounds.max_depth));
    let filter = Arc::clone(&search);
    // A directory is judged before it is listed, so that a repository never is.
    walk.sort_by_file_name(std::cmp::Ord::cmp).filter_entry(move |entry| entry.depth() == 0 || filter.enters(entry));
    let unreadable = walk.build().filter(Result::is_err).count();
    let mut found = std::mem::take(&mut *search.found.lock().unwrap_or_else(PoisonError::into_inner));
    found.unreadable = unreadable;
    found.repositories.sort();
    Ok(found)
}

struct Search {
    bounds: Bounds,
    started: Instant,
    access: Arc<Access>,
    found: Mutex<Found>,
}

impl Search {
    /// Returns whether to look into a directory; one that is a repository is noted instead.
    fn enters(&self, entry: &DirEntry) -> bool {
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !is_directory || is_passed_over(&entry.file_name().to_string_lossy()) {
            return false;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.directories >= self.bounds.max_directories || self.started.elapsed() >= self.bounds.limit {
            found.is_cut = true;
            return false;
        }
        found.directories += 1;
        let is_repository = is_repository(entry.path(), &self.access);
        if is_repository {
            found.repositories.push(entry.path().to_owned());
        }
        !is_repository
    }
}

fn is_repository(directory: &Path, access: &Access) -> bool {
    access.exists(&directory.join(".git")).unwrap_or(false)
}

fn is_passed_over(name: &str) -> bool {
    name.starts_with('.') || PASSED_OVER.iter().any(|passed_over| name.eq_ignore_ascii_case(passed_over))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Bounds = Bounds { max_depth: 8, max_directories: 1_000, limit: Duration::from_secs(60) };

    fn tree(repositories: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for repository in repositories {
            std::fs::create_dir_all(dir.path().join(repository).join(".git")).unwrap();
        }
        dir
    }

    fn names(dir: &tempfile::TempDir, bounds: Bounds) -> Vec<String> {
        let found = find(dir.path(), bounds, &Arc::default()).unwrap();
        let name = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
        found.repositories.iter().map(name).collect()
    }

    #[test]
    fn repositories_are_found_and_not_looked_into() {
        let dir = tree(&["b", "a/one", "a/two", "b/sub/module"]);
        assert_eq!(names(&dir, WIDE), ["a/one", "a/two", "b"]);
    }

    #[test]
    fn a_worktree_whose_git_is_a_file_counts() {
        let dir = tree(&[]);
        std::fs::create_dir(dir.path().join("w")).unwrap();
        std::fs::write(dir.path().join("w/.git"), "gitdir: /elsewhere\n").unwrap();
        assert_eq!(names(&dir, WIDE), ["w"]);
    }

    #[test]
    fn what_tools_fill_is_passed_over() {
        let dir = tree(&["app/node_modules/x", ".cache/y", "Vendor/z", "real"]);
        assert_eq!(names(&dir, WIDE), ["real"]);
    }

    #[test]
    fn the_start_itself_may_be_a_repository() {
        let dir = tree(&[""]);
        assert_eq!(names(&dir, WIDE), [""]);
    }

    #[test]
    fn links_are_not_followed_and_a_loop_ends() {
        let dir = tree(&["a"]);
        std::os::unix::fs::symlink("..", dir.path().join("up")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("again")).unwrap();
        assert_eq!(names(&dir, WIDE), ["a"]);
    }

    #[test]
    fn bounds_end_the_search_and_say_so() {
        let dir = tree(&["a/b/c/d", "e"]);
        assert_eq!(names(&dir, Bounds { max_depth: 1, ..WIDE }), ["e"]);
        let found = find(dir.path(), Bounds { max_directories: 2, ..WIDE }, &Arc::default()).unwrap();
        assert!(found.is_cut && found.directories == 2, "{found:?}");
        let found = find(dir.path(), Bounds { limit: Duration::ZERO, ..WIDE }, &Arc::default()).unwrap();
        assert!(found.is_cut);
    }

    #[test]
    fn a_start_that_is_not_there_is_an_error() {
        assert!(find(Path::new("/no/such/place"), WIDE, &Arc::default()).is_err());
    }
}
