//! Git configuration, parsed as data.
//!
//! Only values are taken from it; nothing that it names is run. Files of the user and the system are trusted and read
//! the way git does, includes and all. The repository's own files are not: they are read through [`Access`] with a bound
//! on size, as regular files only, and their `include.path` is followed the same way (at most `MAX_INCLUDES` files, so
//! that a FIFO, a device or a loop cannot hold the run up). Included values are taken as if they stood at the end of the
//! including file, and `includeIf` of a repository's own file is left out; both are named in [`Layers::notes`].

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use gix::config::file::init::Options;
use gix::config::file::{Metadata, includes};
use gix::config::{File, Source};

use crate::error::{Error, printable};
use crate::scan::access::Access;

/// The largest configuration file that is read; a long one has some ten kilobytes.
const MAX_CONFIG_BYTES: usize = 1 << 20;
/// How many files a repository's configuration may include; git allows a depth of ten.
const MAX_INCLUDES: usize = 10;

/// The layers of configuration that apply to a repository.
#[derive(Debug)]
pub struct Layers {
    /// System, user and repository, merged; later values win.
    pub merged: File,
    /// The repository's own files alone.
    pub own: File,
    /// What was left out, as sentences.
    pub notes: Vec<String>,
}

/// Reads the configuration that git would use in this repository.
///
/// # Errors
///
/// [`Error::Io`] when `config` cannot be read, [`Error::Refused`] when it is no valid configuration.
pub fn read(git_dir: &Path, common_dir: &Path, access: &Access) -> Result<Layers, Error> {
    let mut notes = Vec::new();
    let mut own = read_own(&common_dir.join("config"), Source::Local, access, &mut notes)?;
    if own.boolean("extensions.worktreeConfig").ok().flatten() == Some(true) {
        let path = git_dir.join("config.worktree");
        let worktree = read_own(&path, Source::Worktree, access, &mut notes)?;
        append(&mut own, worktree, &path)?;
    }
    let mut merged = read_user(git_dir, &mut notes);
    append(&mut merged, own.clone(), common_dir)?;
    Ok(Layers { merged, own, notes })
}

fn read_own(path: &Path, source: Source, access: &Access, notes: &mut Vec<String>) -> Result<File, Error> {
    let read =
        |path: &Path| access.read_if_present(path, MAX_CONFIG_BYTES).map_err(|source| Error::io("read", path, source));
    let mut file = File::new(metadata(path, source));
    let mut queue = vec![path.to_path_buf()];
    let mut seen = 0;
    while let Some(next) = queue.pop() {
        let Some(bytes) = read(&next)? else { continue };
        let parsed = parse(&bytes, &next, source)?;
        seen += 1;
        if seen > MAX_INCLUDES {
            notes.push(format!("`{}` includes more than {MAX_INCLUDES} files; the rest was not read", printable(path)));
            break;
        }
        queue.extend(included(&parsed, &next));
        if parsed.sections_by_name("includeIf").is_some_and(|mut sections| sections.next().is_some()) {
            notes.push(format!("conditional includes of `{}` were left out", printable(&next)));
        }
        append(&mut file, parsed, &next)?;
    }
    Ok(file)
}

fn parse(bytes: &[u8], path: &Path, source: Source) -> Result<File, Error> {
    // A byte-order mark, as some Windows editors write it, is skipped by git too.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    File::from_bytes_no_includes(bytes, metadata(path, source), Options::default())
        .map_err(|error| invalid(path, &error))
}

/// Adds the sections of `from` behind those of `into`; fails only when a file's size is out of all bounds.
fn append(into: &mut File, from: File, path: &Path) -> Result<(), Error> {
    into.append(from).map(|_| ()).map_err(|error| invalid(path, &error))
}

fn invalid(path: &Path, error: &gix::Error) -> Error {
    Error::refused(
        format!("`{}` is no valid git configuration: {error}", printable(path)),
        "git cannot use this repository either; mend the file (`git config --edit`)",
    )
}

fn metadata(path: &Path, source: Source) -> Metadata {
    Metadata { path: Some(path.to_path_buf()), source, level: 0, trust: gix::sec::Trust::Full }
}

/// Returns the files that `include.path` of one file names, last first, so that a stack yields them in order.
fn included(file: &File, path: &Path) -> Vec<PathBuf> {
    let base = path.parent().unwrap_or(Path::new("/"));
    let paths = file.strings("include.path").unwrap_or_default();
    paths.iter().rev().filter_map(|named| resolve(named.as_bstr(), base)).collect()
}

fn resolve(named: &BStr, base: &Path) -> Option<PathBuf> {
    if let Some(below_home) = named.strip_prefix(b"~/") {
        return Some(home()?.join(below_home.to_path().ok()?));
    }
    Some(base.join(named.to_path().ok()?))
}

fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}

/// Reads the system's and the user's files; one that cannot be read or parsed is left out with a note, since git's own
/// word on it comes when git runs.
fn read_user(git_dir: &Path, notes: &mut Vec<String>) -> File {
    let mut merged = File::new(Metadata::from(Source::System));
    for (path, source) in user_files() {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let home = home();
        let interpolate = gix::config::path::interpolate::Context {
            git_install_dir: None,
            home_dir: home.as_deref(),
            home_for_user: Some(gix::config::path::interpolate::home_for_user),
        };
        let conditional = includes::conditional::Context { git_dir: Some(git_dir), branch_name: None };
        let options = Options { includes: includes::Options::follow(interpolate, conditional), ..Options::default() };
        let mut buffer = bytes.clone();
        let parsed = File::from_bytes_owned(&mut buffer, metadata(&path, source), options)
            // An include that cannot be resolved (`onbranch:` needs HEAD) must not lose the rest of the file.
            .or_else(|_| File::from_bytes_no_includes(&bytes, metadata(&path, source), Options::default()));
        match parsed {
            Ok(parsed) => {
                if let Err(error) = append(&mut merged, parsed, &path) {
                    notes.push(error.to_string());
                }
            }
            Err(error) => notes.push(format!("`{}` was left out: {error}", printable(&path))),
        }
    }
    merged
}

/// Returns the files of system and user in the order in which git reads them.
///
/// Git's own rules: `GIT_CONFIG_NOSYSTEM`, `GIT_CONFIG_SYSTEM` and `GIT_CONFIG_GLOBAL` replace or drop them
/// (git-config(1), FILES and ENVIRONMENT).
fn user_files() -> Vec<(PathBuf, Source)> {
    let mut files = Vec::new();
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    if !is_set("GIT_CONFIG_NOSYSTEM") {
        let system =
            std::env::var_os("GIT_CONFIG_SYSTEM").map_or_else(|| PathBuf::from("/etc/gitconfig"), PathBuf::from);
        files.push((system, Source::System));
    }
    if let Some(global) = std::env::var_os("GIT_CONFIG_GLOBAL") {
        files.push((PathBuf::from(global), Source::User));
        return files;
    }
    let home = home();
    let xdg = std::env::var_os("XDG_CONFIG_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| home.as_ref().map(|home| home.join(".config")));
    files.extend(xdg.map(|xdg| (xdg.join("git/config"), Source::Git)));
    files.extend(home.map(|home| (home.join(".gitconfig"), Source::User)));
    files
}

/// Returns the names of the configured remotes, each once, in order.
#[must_use]
pub fn remotes(config: &File) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for section in config.sections_by_name("remote").into_iter().flatten() {
        let Some(name) = section.header().subsection_name().map(BString::from) else { continue };
        let name = name.to_string();
        if section.value("url").is_some() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns a boolean key, `None` when absent or when its value is no boolean.
#[must_use]
pub fn boolean(config: &File, key: &str) -> Option<bool> {
    config.boolean(key).ok().flatten()
}
