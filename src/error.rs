//! What can go wrong, in words for the person who has to mend it.
//!
//! `Display` is one line that says what happened and where; `source()` is the cause; [`Error::hint`] says what to do
//! next.

use std::io;
use std::path::{Path, PathBuf};

/// Exit status of a run that gave its answer, whatever the answer is.
pub const EXIT_OK: u8 = 0;
/// Exit status of a run that failed; the message says what, where and what next.
pub const EXIT_FAILURE: u8 = 1;
/// Exit status of a command line that could not be understood.
pub const EXIT_USAGE: u8 = 2;
/// Exit status of a run that a signal ended: 128 + SIGINT, as shells report it.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Everything that makes a command fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call on a path failed.
    #[error("cannot {action} `{}`", printable(path))]
    Io {
        /// What was tried, an infinitive (`read`, `create`).
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something is wrong with the command line beyond what the parser can see.
    #[error("{0}")]
    Usage(String),
    /// A failure with a message and a hint of its own.
    #[error("{message}")]
    Refused {
        /// What happened and where, lower case, no full stop.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// A failure that another process of the same run described.
    #[error("{message}")]
    Reported {
        /// Its one line.
        message: String,
        /// The lines of its causes, the nearest first.
        causes: Vec<String>,
        /// What to do next.
        hint: Option<String>,
        /// The exit status that it stands for.
        exit_code: u8,
    },
    /// The user, or a signal, asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Writing the report failed.
    #[error("cannot write the report")]
    Output(#[source] io::Error),
}

/// What lies where a regular file has to be; the cause of an [`io::Error`] of a read that never began.
///
/// Reading a pipe can wait for ever, and a device need not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAFile {
    /// A directory.
    #[error("it is a directory, not a regular file")]
    Directory,
    /// A named pipe.
    #[error("it is a named pipe, not a regular file")]
    Pipe,
    /// A device.
    #[error("it is a device, not a regular file")]
    Device,
}

impl NotAFile {
    /// Returns what an error says of the place, where it was made of one of these.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|cause| cause.downcast_ref()).copied()
    }
}

impl From<NotAFile> for io::Error {
    fn from(what: NotAFile) -> Self {
        Self::new(io::ErrorKind::InvalidInput, what)
    }
}

impl Error {
    /// Wraps a failed system call on a path; `action` completes the sentence 'cannot ... `path`'.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// Makes an error with its own message and hint.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: hint.into() }
    }

    /// Returns what to do next, where there is something better to say than the message.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { hint, .. } => Some(hint.clone()),
            Self::Io { source, path, .. } => io_hint(source, path),
            Self::Reported { hint, .. } => hint.clone(),
            Self::Usage(_) | Self::Interrupted | Self::Output(_) => None,
        }
    }

    /// Returns one line for each cause behind the message, the nearest first.
    #[must_use]
    pub fn causes(&self) -> Vec<String> {
        if let Self::Reported { causes, .. } = self {
            return causes.clone();
        }
        let mut causes = Vec::new();
        let mut next = std::error::Error::source(self);
        while let Some(cause) = next {
            causes.push(printable_text(&cause.to_string()));
            next = cause.source();
        }
        causes
    }

    /// Returns the exit status of a run that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => EXIT_USAGE,
            Self::Reported { exit_code, .. } => *exit_code,
            Self::Interrupted => EXIT_INTERRUPTED,
            _ => EXIT_FAILURE,
        }
    }
}

/// Says what helps against the system errors that mounts are known for.
fn io_hint(source: &io::Error, path: &Path) -> Option<String> {
    let path = printable(path);
    let not_a_file = || {
        format!(
            "git keeps a regular file at `{path}`: put it back, or remove what is there; git waits for ever on a pipe"
        )
    };
    if NotAFile::of(source).is_some() {
        return Some(not_a_file());
    }
    match source.raw_os_error().map(rustix::io::Errno::from_raw_os_error)? {
        rustix::io::Errno::NOENT => Some(format!("check the spelling of `{path}`, and that its drive is mounted")),
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => {
            Some(format!("run as the owner of `{path}`, or give yourself the right to read it"))
        }
        rustix::io::Errno::NOTCONN | rustix::io::Errno::STALE | rustix::io::Errno::HOSTDOWN => {
            Some(format!("the mount that holds `{path}` does not answer; mount it again and run rehome again"))
        }
        rustix::io::Errno::IO => {
            Some(format!("the filesystem reported a fault at `{path}`; check the drive before you copy anything"))
        }
        // A socket cannot be opened.
        rustix::io::Errno::NXIO => Some(not_a_file()),
        rustix::io::Errno::LOOP => {
            Some(format!("`{path}` is a link, and none is followed inside a repository: put the file itself there"))
        }
        rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT => {
            Some("make room there, or choose another place with `--target DIR`".to_owned())
        }
        _ => None,
    }
}

/// Returns a path as text that is safe on a terminal: control characters and invalid UTF-8 are escaped.
///
/// A name may hold escape sequences that would change the terminal's state or forge a line of the report.
#[must_use]
pub fn printable(path: impl AsRef<Path>) -> String {
    printable_text(&path.as_ref().to_string_lossy())
}

/// Returns text that is safe on a terminal: every control character is written as its escape.
///
/// Bidirectional controls (U+202A to U+202E, U+2066 to U+2069) count too: they reorder what follows on the line.
#[must_use]
pub fn printable_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_in_a_name_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(printable_text("x\u{202e}y"), "x\\u{202e}y");
    }

    #[test]
    fn what_is_no_file_is_named_with_what_to_do() {
        let error = Error::io("read", "/r/.git/HEAD", NotAFile::Pipe.into());
        assert_eq!(error.to_string(), "cannot read `/r/.git/HEAD`");
        assert_eq!(error.causes(), ["it is a named pipe, not a regular file"]);
        assert!(error.hint().unwrap().contains("git keeps a regular file at `/r/.git/HEAD`"));
        let socket = Error::io("read", "/s", rustix::io::Errno::NXIO.into());
        assert!(socket.hint().unwrap().contains("regular file"));
    }

    #[test]
    fn a_usage_error_exits_with_two_and_any_other_with_one() {
        assert_eq!(Error::Usage(String::new()).exit_code(), EXIT_USAGE);
        assert_eq!(Error::refused("a", "b").exit_code(), EXIT_FAILURE);
    }
}
