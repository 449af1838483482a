//! Running git on the copy and on the source without letting it see the configuration that they hold.
//!
//! A repository's configuration can name programs (`core.fsmonitor`, filters, hooks). So git gets a private git dir,
//! whose configuration is made of values that name none, and whose objects and refs are links to the real ones. It never
//! writes in the repository: its index is a copy, and optional locks are off where the real one would be meant.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, printable, printable_text};
use crate::measure::private_git::cut_off;

/// Keys whose values are taken over as they are: none of them names a program.
const HARMLESS: &[&str] = &[
    "core.repositoryformatversion",
    "core.autocrlf",
    "core.eol",
    "core.checkroundtripencoding",
    "core.trustctime",
    "core.checkstat",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.excludesfile",
    "core.attributesfile",
    "core.bigfilethreshold",
    "core.longpaths",
    "index.sparse",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.partialclone",
    "extensions.compatobjectformat",
];
/// Those of [`HARMLESS`] that name a file.
const FILES: &[&str] = &["core.excludesfile", "core.attributesfile"];
/// Parts of a git dir that the private one links to.
const LINKED: &[&str] = &["objects", "refs", "packed-refs", "logs", "info", "shallow", "reftable"];
/// Parts that belong to one worktree and are copied, so that git may write them.
const COPIED: &[&str] = &["HEAD", "index", "ORIG_HEAD"];
/// How often the wait for a bounded git looks whether it ended.
const POLL: Duration = Duration::from_millis(5);

/// What the private configuration says about the filesystem that the worktree is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// `core.fileMode`.
    pub(super) modes: bool,
    /// `core.symlinks`.
    pub(super) symlinks: bool,
    /// `core.ignoreCase`.
    pub(super) ignores_case: bool,
}

/// A private git dir for one worktree.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    pub(super) dir: PathBuf,
    worktree: PathBuf,
}

/// Where a private git dir takes its parts from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    /// The git dir of the worktree.
    pub(super) git_dir: &'a Path,
    /// The git dir that holds objects and refs.
    pub(super) common_dir: &'a Path,
    /// The worktree that git looks at.
    pub(super) worktree: &'a Path,
    /// The configuration from which harmless values are taken.
    pub(super) config: &'a gix::config::File,
    /// A git dir with the same objects and index on a faster filesystem.
    pub(super) stand_in: Option<&'a Path>,
}

impl Git {
    /// Makes the private git dir at `dir`, which must not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when a part cannot be made.
    pub(super) fn private(program: &Path, dir: &Path, origin: Origin<'_>, can: Abilities) -> Result<Self, Error> {
        let failed = |source| Error::io("create", dir, source);
        std::fs::create_dir_all(dir).map_err(failed)?;
        for name in LINKED {
            let holder = origin.stand_in.filter(|_| *name == "objects").unwrap_or(origin.common_dir);
            let real = holder.join(name);
            if real.symlink_metadata().is_ok() {
                std::os::unix::fs::symlink(real, dir.join(name)).map_err(failed)?;
            }
        }
        for name in COPIED {
            let holder = origin.stand_in.filter(|_| *name == "index").unwrap_or(origin.git_dir);
            copy_if_present(&holder.join(name), &dir.join(name))?;
        }
        let holder = origin.stand_in.unwrap_or(origin.git_dir);
        // The base of a split index is looked for beside HEAD.
        for entry in std::fs::read_dir(holder).map_err(|source| Error::io("read", holder, source))? {
            let name = entry.map_err(|source| Error::io("read", holder, source))?.file_name();
            if name.as_bytes().starts_with(b"sharedindex.") {
                copy_if_present(&holder.join(&name), &dir.join(&name))?;
            }
        }
        if origin.git_dir != origin.common_dir {
            take_worktree_info(origin, dir)?;
        }
        std::fs::create_dir_all(dir.join("refs")).map_err(failed)?;
        let git =
            Self { program: program.to_path_buf(), dir: dir.to_path_buf(), worktree: origin.worktree.to_path_buf() };
        git.configure(can, origin.config)?;
        Ok(git)
    }

    /// Writes the private configuration anew.
    pub(super) fn configure(&self, can: Abilities, config: &gix::config::File) -> Result<(), Error> {
        let path = self.dir.join("config");
        std::fs::write(&path, configuration(can, config)).map_err(|source| Error::io("write", path, source))
    }

    /// Returns a command that sees the private git dir and nothing of the repository's configuration.
    pub(super) fn command(&self) -> Command {
        let mut command = cut_off(&self.program, &self.dir, &self.worktree);
        command
            .current_dir(&self.worktree)
            .args(["-c", "core.untrackedCache=false"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs git with these arguments and this input, and returns what it printed.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with git's own words when it fails.
    pub(super) fn run<S: AsRef<OsStr>>(&self, arguments: &[S], input: &[u8]) -> Result<Vec<u8>, Error> {
        let output = self.output(arguments, input)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let words: Vec<&str> = arguments.iter().filter_map(|one| one.as_ref().to_str()).take(2).collect();
        Err(Error::refused(
            format!("`git {}` failed: {}", words.join(" "), first_line(&output.stderr)),
            "the source is as it was; run git there to see whether the repository itself is damaged",
        ))
    }

    /// Runs git and returns status and output, whatever the status is.
    pub(super) fn output<S: AsRef<OsStr>>(&self, arguments: &[S], input: &[u8]) -> Result<Output, Error> {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::piped());
        let failed = |source| Error::io("run", &self.program, source);
        let mut child = command.spawn().map_err(failed)?;
        let feed = child.stdin.take();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if let Some(mut feed) = feed {
                    // A git that stopped reading says why by its status.
                    let _ = feed.write_all(input);
                }
            });
            child.wait_with_output().map_err(failed)
        })
    }

    /// Runs git for at most `bound`; returns the time it took and its output, `None` when it did not end in time.
    pub(super) fn timed<S: AsRef<OsStr>>(
        &self,
        arguments: &[S],
        bound: Duration,
    ) -> Result<Option<(Duration, Output)>, Error> {
        let failed = |source| Error::io("run", &self.program, source);
        let mut command = self.command();
        command.args(arguments).stderr(Stdio::null());
        let begun = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        let mut pipe = child.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut out = Vec::new();
            if let Some(pipe) = &mut pipe {
                let _ = std::io::Read::read_to_end(pipe, &mut out);
            }
            out
        });
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if begun.elapsed() > bound {
                // A git that hangs on a dead mount cannot be waited for either.
                let _ = child.kill();
                return Ok(None);
            }
            std::thread::sleep(POLL);
        };
        let took = begun.elapsed();
        let stdout = reader.join().unwrap_or_default();
        Ok(Some((took, Output { status, stdout, stderr: Vec::new() })))
    }
}

/// The parts of a linked worktree's own git dir that stand beside the common ones.
fn take_worktree_info(origin: Origin<'_>, dir: &Path) -> Result<(), Error> {
    let own = origin.git_dir.join("info/sparse-checkout");
    if own.exists() {
        let info = dir.join("info");
        // The link to the common one makes way for a directory with both.
        let _ = std::fs::remove_file(&info);
        std::fs::create_dir_all(&info).map_err(|source| Error::io("create", &info, source))?;
        for name in ["exclude", "attributes"] {
            copy_if_present(&origin.common_dir.join("info").join(name), &info.join(name))?;
        }
        copy_if_present(&own, &info.join("sparse-checkout"))?;
    }
    Ok(())
}

fn copy_if_present(from: &Path, to: &Path) -> Result<(), Error> {
    match std::fs::read(from) {
        Ok(bytes) => std::fs::write(to, bytes).map_err(|source| Error::io("write", to, source)),
        Err(error) if crate::scan::access::is_absent(&error) => Ok(()),
        Err(source) => Err(Error::io("read", from, source)),
    }
}

/// Returns whether a value names a regular file: git would wait for ever on a pipe, and read a device without end.
fn is_file(value: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(value));
    let path = match (path.strip_prefix("~"), etcetera::home_dir()) {
        (Ok(rest), Ok(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    path.is_file()
}

/// Returns the text of a configuration that holds only values which name no program.
pub(super) fn configuration(can: Abilities, config: &gix::config::File) -> Vec<u8> {
    let mut out = Vec::new();
    let mut set = |key: &str, value: &[u8]| {
        if let Some((section, name)) = key.split_once('.') {
            out.extend_from_slice(format!("[{section}]\n\t{name} = ").as_bytes());
            out.extend_from_slice(&quote(value));
            out.push(b'\n');
        }
    };
    for key in HARMLESS {
        if let Some(value) = config.string(*key)
            && (!FILES.contains(key) || is_file(&value))
        {
            set(key, &value);
        }
    }
    set("core.bare", b"false");
    let word = |flag: bool| if flag { b"true".as_slice() } else { b"false" };
    set("core.filemode", word(can.modes));
    set("core.symlinks", word(can.symlinks));
    set("core.ignorecase", word(can.ignores_case));
    for section in config.sections_by_name("remote").into_iter().flatten() {
        // fsck takes missing objects of a partial clone for lost unless it knows the promisor; its URL is left out.
        if section.value("promisor").is_some()
            && let Some(name) = section.header().subsection_name()
        {
            out.extend_from_slice(b"[remote ");
            out.extend_from_slice(&quote(name));
            out.extend_from_slice(b"]\n\tpromisor = true\n");
        }
    }
    out
}

fn quote(value: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in value {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            other => out.push(*other),
        }
    }
    out.push(b'"');
    out
}

/// Returns the first line that git printed, safe for a terminal.
pub(super) fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    printable_text(text.lines().next().unwrap_or("it printed nothing"))
}

/// Joins paths with the byte that no path holds, as git's `-z --stdin` wants them.
pub(super) fn nul_separated<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Vec<u8> {
    let mut out = Vec::new();
    for path in paths {
        out.extend_from_slice(path.as_os_str().as_bytes());
        out.push(0);
    }
    out
}

/// Splits what git printed with `-z`.
pub(super) fn split_nul(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// Returns the path that git printed.
pub(super) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from(OsStr::from_bytes(bytes)))
}

/// Checks the objects, refs and reflogs of a private git dir's repository.
///
/// Returns what is odd but was so before (old commits in a form that git no longer writes), as sentences.
///
/// # Errors
///
/// [`Error::Refused`] when something is missing or damaged.
pub(super) fn fsck(git: &Git, name: &Path) -> Result<Vec<String>, Error> {
    let output = git.output(&["fsck", "--full", "--no-dangling", "--no-progress"], b"")?;
    if output.status.success() {
        return Ok(Vec::new());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| is_complaint(line)).collect();
    let damage: Vec<&&str> = lines.iter().filter(|line| !is_old_form(line)).collect();
    if damage.is_empty() && !lines.is_empty() {
        return Ok(vec![format!(
            "`git fsck` finds {} objects in a form that git no longer writes, as in the source; first: {}",
            lines.len(),
            printable_text(lines[0])
        )]);
    }
    let first = damage.first().map_or("it printed nothing", |line| **line);
    // The repository itself has no name below itself.
    let place = if name.as_os_str().is_empty() {
        "the repository".to_owned()
    } else {
        format!("the submodule `{}`", printable(name))
    };
    Err(Error::refused(
        format!("`git fsck` finds {place} damaged: {}", printable_text(first)),
        "the copy holds the same bytes as the source, so the source is damaged too; run `git fsck` there, fetch or \
         restore what is missing, and run the same command again",
    ))
}

fn is_complaint(line: &str) -> bool {
    let chatter = ["notice:", "dangling ", "Checking ", "warning in ", "unreachable "];
    !line.trim().is_empty() && !chatter.iter().any(|start| line.starts_with(start))
}

/// `error in commit 1234: missingSpaceBeforeDate: ...` is readable, only not by today's rules; a reflog may name
/// commits that were pruned long ago.
fn is_old_form(line: &str) -> bool {
    line.contains("invalid reflog entry")
        || ["commit", "tree", "tag", "blob"].iter().any(|kind| line.starts_with(&format!("error in {kind} ")))
}
