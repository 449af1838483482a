//! What is already copied, kept beside the copy so that an interrupted move continues where it stopped.
//!
//! One line a file, only ever appended. A torn last line is dropped; a line promises nothing about the data, which is
//! read back and compared before the copy gets its name.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::migrate::fsys::{FileStat, Kind};

/// Changes when lines of older programs can no longer be understood.
const HEADER: &str = "rehome-move-journal 1";
/// Lines that may be lost to a kill; each costs one file's copy.
const LINES_PER_FLUSH: usize = 32;

/// A file as it was when it was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copied {
    /// BLAKE3 of what was read from the source.
    pub(super) hash: blake3::Hash,
    pub(super) size: u64,
    pub(super) mtime: (i64, i64),
    pub(super) ctime: (i64, i64),
}

impl Copied {
    pub(super) fn new(hash: blake3::Hash, stat: &FileStat) -> Self {
        Self { hash, size: stat.size, mtime: stat.mtime, ctime: stat.ctime }
    }

    /// Returns whether the source's file is still the one that was copied.
    pub(super) fn is_current(&self, stat: &FileStat) -> bool {
        stat.kind == Kind::File && (self.size, self.mtime, self.ctime) == (stat.size, stat.mtime, stat.ctime)
    }
}

/// The open journal.
#[derive(Debug)]
pub(super) struct Journal {
    out: Mutex<(BufWriter<File>, usize)>,
}

impl Journal {
    /// Opens the journal at `path` and returns what it holds for this source; begins anew when it is of another one.
    ///
    /// The flag tells whether there was one to continue.
    pub(super) fn open(path: &Path, source: &Path) -> io::Result<(Self, HashMap<PathBuf, Copied>, bool)> {
        let header = format!("{HEADER} {}", escape(source));
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(mut file) => {
                file.read_to_end(&mut bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let known = parse(&bytes, &header);
        let is_continued = known.is_some();
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        if !is_continued {
            file.set_len(0)?;
        }
        let mut out = BufWriter::new(file);
        if is_continued {
            // Ends a torn line, so that the next one is whole.
            out.write_all(b"\n")?;
        } else {
            writeln!(out, "{header}")?;
        }
        out.flush()?;
        Ok((Self { out: Mutex::new((out, 0)) }, known.unwrap_or_default(), is_continued))
    }

    /// Notes that a file is copied.
    pub(super) fn copied(&self, path: &Path, file: &Copied) -> io::Result<()> {
        let (mtime, ctime) = (file.mtime, file.ctime);
        self.line(&format!(
            "F {} {} {} {} {} {} {}\n",
            file.hash.to_hex(),
            file.size,
            mtime.0,
            mtime.1,
            ctime.0,
            ctime.1,
            escape(path)
        ))
    }

    /// Notes that the file in the copy is about to differ from the source's, so that a rerun copies it again.
    pub(super) fn changed(&self, path: &Path) -> io::Result<()> {
        self.line(&format!("X {}\n", escape(path)))
    }

    /// Writes out what is buffered; must come before the change that [`Journal::changed`] announces.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner).0.flush()
    }

    fn line(&self, line: &str) -> io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.0.write_all(line.as_bytes())?;
        out.1 += 1;
        if out.1.is_multiple_of(LINES_PER_FLUSH) { out.0.flush() } else { Ok(()) }
    }
}

/// Reads the lines; `None` when there is no journal of this source.
fn parse(bytes: &[u8], header: &str) -> Option<HashMap<PathBuf, Copied>> {
    let whole = &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)];
    let text = std::str::from_utf8(whole).ok()?;
    let mut lines = text.lines();
    if lines.next()? != header {
        return None;
    }
    let mut known = HashMap::new();
    for line in lines {
        if let Some(path) = line.strip_prefix("X ") {
            known.remove(&unescape(path));
        } else if let Some((path, file)) = line.strip_prefix("F ").and_then(parse_file) {
            known.insert(path, file);
        }
    }
    Some(known)
}

fn parse_file(line: &str) -> Option<(PathBuf, Copied)> {
    let mut words = line.split(' ');
    let hash = blake3::Hash::from_hex(words.next()?).ok()?;
    let size = words.next()?.parse().ok()?;
    let mut number = || words.next()?.parse::<i64>().ok();
    let mtime = (number()?, number()?);
    let ctime = (number()?, number()?);
    let path = unescape(words.next()?);
    words.next().is_none().then_some((path, Copied { hash, size, mtime, ctime }))
}

/// Writes a path as one word of ASCII: every byte that could end the word or the line as `%xx`.
fn escape(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_graphic() && *byte != b'%' {
            out.push(char::from(*byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

fn unescape(word: &str) -> PathBuf {
    let bytes = word.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| word.get(at + 1..at + 3)).flatten();
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(size: u64) -> Copied {
        Copied { hash: blake3::hash(b"x"), size, mtime: (-1, 5), ctime: (3, 4) }
    }

    #[test]
    fn what_was_noted_is_known_at_the_next_run_and_a_torn_line_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let odd = PathBuf::from(OsString::from_vec(b"new\nline %41 \xff".to_vec()));
        let (journal, known, is_continued) = Journal::open(&path, Path::new("/s")).unwrap();
        assert!(known.is_empty() && !is_continued);
        journal.copied(&odd, &copied(1)).unwrap();
        journal.copied(Path::new("b"), &copied(2)).unwrap();
        journal.changed(Path::new("b")).unwrap();
        journal.flush().unwrap();
        drop(journal);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"F torn").unwrap();
        let (journal, known, is_continued) = Journal::open(&path, Path::new("/s")).unwrap();
        assert!(is_continued);
        assert_eq!(known, HashMap::from([(odd, copied(1))]));
        journal.copied(Path::new("c"), &copied(3)).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path, Path::new("/s")).unwrap().1.len(), 2);
    }

    #[test]
    fn the_journal_of_another_source_is_not_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        Journal::open(&path, Path::new("/s")).unwrap().0.copied(Path::new("a"), &copied(1)).unwrap();
        let (_, known, is_continued) = Journal::open(&path, Path::new("/t")).unwrap();
        assert!(known.is_empty() && !is_continued);
    }
}
