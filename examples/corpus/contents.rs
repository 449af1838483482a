//! Files of a repository from a directory or from git's objects, and a counter around any source.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;

use rehome::rules::extract::{Extracted, Extractor};
use rehome::rules::source::{Fetched, Listed, Place, Source};

/// A repository of which only the paths are known.
pub(crate) struct Nothing;

impl Source for Nothing {
    fn read(&self, _place: &str, _max_bytes: usize) -> Fetched {
        Fetched::Unknown
    }

    fn list(&self, _place: &str, _max_names: usize) -> Listed {
        Listed::Unknown
    }

    fn look(&self, _place: &str) -> Place {
        Place::Unknown
    }

    fn modified_at(&self, _place: &str) -> Option<i64> {
        None
    }
}

/// Files in a directory; those that are not there are unknown, since a corpus may hold a part of them.
pub(crate) struct Files {
    root: PathBuf,
}

impl Files {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }
}

impl Source for Files {
    fn read(&self, place: &str, max_bytes: usize) -> Fetched {
        match std::fs::read(self.root.join(place)) {
            Ok(data) => cut(data, max_bytes),
            Err(_) => Fetched::Unknown,
        }
    }

    fn list(&self, _place: &str, _max_names: usize) -> Listed {
        Listed::Unknown
    }

    fn look(&self, _place: &str) -> Place {
        Place::Unknown
    }

    fn modified_at(&self, _place: &str) -> Option<i64> {
        None
    }
}

/// Blobs of the newest commit.
pub(crate) struct Checkout {
    repository: PathBuf,
}

impl Checkout {
    pub(crate) fn new(repository: PathBuf) -> Self {
        Self { repository }
    }
}

impl Source for Checkout {
    fn read(&self, place: &str, max_bytes: usize) -> Fetched {
        let object = format!("HEAD:{place}");
        let output = Command::new("git").arg("-C").arg(&self.repository).args(["cat-file", "blob", &object]).output();
        match output {
            Ok(output) if output.status.success() => cut(output.stdout, max_bytes),
            _ => Fetched::Unknown,
        }
    }

    fn list(&self, _place: &str, _max_names: usize) -> Listed {
        Listed::Unknown
    }

    fn look(&self, _place: &str) -> Place {
        Place::Unknown
    }

    fn modified_at(&self, _place: &str) -> Option<i64> {
        None
    }
}

fn cut(mut data: Vec<u8>, max_bytes: usize) -> Fetched {
    let is_truncated = data.len() > max_bytes;
    data.truncate(max_bytes);
    Fetched::Bytes { data, is_truncated }
}

/// Counts the files that are read.
pub(crate) struct Counted<'a> {
    inner: &'a dyn Source,
    reads: Cell<u64>,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(inner: &'a dyn Source) -> Self {
        Self { inner, reads: Cell::new(0) }
    }

    pub(crate) fn count(&self) -> u64 {
        self.reads.get()
    }
}

impl Source for Counted<'_> {
    fn read(&self, place: &str, max_bytes: usize) -> Fetched {
        self.reads.set(self.reads.get() + 1);
        self.inner.read(place, max_bytes)
    }

    fn list(&self, place: &str, max_names: usize) -> Listed {
        self.inner.list(place, max_names)
    }

    fn look(&self, place: &str) -> Place {
        self.inner.look(place)
    }

    fn modified_at(&self, place: &str) -> Option<i64> {
        self.inner.modified_at(place)
    }

    fn values(&self, extractor: Extractor, path: &str) -> Option<Extracted> {
        let values = self.inner.values(extractor, path)?;
        self.reads.set(self.reads.get() + 1);
        Some(values)
    }
}
