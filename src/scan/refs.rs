//! HEAD, the branch's upstream and the stash, from a handful of small reads.

use std::path::Path;

use bstr::{BStr, ByteSlice};

use crate::error::{Error, NotAFile};
use crate::scan::access::Access;
use crate::scan::discover::Location;

/// A loose ref holds one object name or one other ref's name.
const MAX_REF_BYTES: usize = 4 * 1024;
/// `packed-refs` of a repository with a hundred thousand refs has some 7 MB.
const MAX_PACKED_REFS_BYTES: usize = 64 << 20;
/// A reflog line has some 150 bytes; who has more stashes than fit here gets a lower bound.
const MAX_STASH_LOG_BYTES: usize = 256 * 1024;
/// What HEAD says in a repository whose refs are in a reftable (Documentation/technical/reftable of git).
const REFTABLE_HEAD: &str = "refs/heads/.invalid";

/// Where HEAD and the branch's upstream are.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Refs {
    /// The branch, without `refs/heads/`; `None` when HEAD is detached or cannot be told.
    pub branch: Option<String>,
    /// The commit of HEAD in hex; `None` when there is none yet or it cannot be told.
    pub head_commit: Option<String>,
    /// Whether the branch's tip differs from its upstream's; `None` without an upstream.
    pub unpushed: Option<bool>,
    /// Number of stashes.
    pub stashes: Option<u64>,
    /// Whether the refs are in a reftable, which only git itself reads.
    pub is_reftable: bool,
}

/// Reads what [`Refs`] names.
///
/// # Errors
///
/// [`Error::Io`] when a ref cannot be read, [`Error::Refused`] when HEAD holds neither a ref nor an object name.
pub fn read(location: &Location, config: &gix::config::File, access: &Access) -> Result<Refs, Error> {
    let head_path = location.git_dir.join("HEAD");
    let head = access.read(&head_path, MAX_REF_BYTES).map_err(|source| Error::io("read", &head_path, source))?;
    let head = head.trim();
    if let Some(name) = head.strip_prefix(b"ref:") {
        let name = name.trim().as_bstr();
        if name == REFTABLE_HEAD {
            return Ok(Refs { is_reftable: true, ..Refs::default() });
        }
        return on_branch(name, location, config, access);
    }
    let Some(commit) = object_name(head) else {
        return Err(Error::refused(
            format!("`{}` holds neither a ref nor an object name", crate::error::printable(&head_path)),
            "git cannot use this repository either; `git fsck` and the reflog in `.git/logs/HEAD` show what it was",
        ));
    };
    let stashes = stashes(&location.common_dir, access)?;
    Ok(Refs { head_commit: Some(commit), stashes, ..Refs::default() })
}

fn on_branch(name: &BStr, location: &Location, config: &gix::config::File, access: &Access) -> Result<Refs, Error> {
    let mut store = Store { common_dir: &location.common_dir, access, packed: None };
    let head_commit = store.resolve(name)?;
    let branch = name.strip_prefix(b"refs/heads/").map(|short| short.to_str_lossy().into_owned());
    let upstream = branch.as_deref().and_then(|branch| upstream_ref(branch, config));
    let unpushed = match upstream {
        Some(upstream) => store.resolve(upstream.as_str().into())?.map(|tip| Some(&tip) != head_commit.as_ref()),
        None => None,
    };
    let stashes = stashes(&location.common_dir, access)?;
    Ok(Refs { branch, head_commit, unpushed, stashes, is_reftable: false })
}

/// Returns the remote-tracking ref of a branch under the default refspec, which is what nearly every clone has.
fn upstream_ref(branch: &str, config: &gix::config::File) -> Option<String> {
    let value = |key: &str| config.string_by("branch", Some(branch.into()), key);
    let remote = value("remote")?;
    let merge = value("merge")?;
    let short = merge.strip_prefix(b"refs/heads/")?.to_str().ok()?;
    if remote == "." {
        return Some(format!("refs/heads/{short}"));
    }
    Some(format!("refs/remotes/{}/{short}", remote.to_str().ok()?))
}

/// Counts the stashes: one line of the stash's reflog each.
fn stashes(common_dir: &Path, access: &Access) -> Result<Option<u64>, Error> {
    let path = common_dir.join("logs/refs/stash");
    let log = access
        .read_head(&path, MAX_STASH_LOG_BYTES)
        .map(|head| Some(head.data))
        .or_else(|error| if crate::scan::access::is_absent(&error) { Ok(None) } else { Err(error) })
        .map_err(|source| Error::io("read", path, source))?;
    Ok(Some(log.map_or(0, |log| log.lines().count() as u64)))
}

struct Store<'a> {
    common_dir: &'a Path,
    access: &'a Access,
    packed: Option<Vec<u8>>,
}

impl Store<'_> {
    /// Returns the object name that a ref holds, loose before packed; `None` when there is no such ref.
    fn resolve(&mut self, name: &BStr) -> Result<Option<String>, Error> {
        // A name that climbs out of the git dir is no ref (git-check-ref-format(1)).
        let Ok(relative) = name.to_path() else { return Ok(None) };
        if !name.starts_with(b"refs/") || gix::validate::reference::name(name).is_err() {
            return Ok(None);
        }
        let path = self.common_dir.join(relative);
        let loose = match self.access.read_if_present(&path, MAX_REF_BYTES) {
            // A directory in the ref's place (`refs/heads/a` beside `refs/heads/a/b`) means that it is not loose.
            Err(error) if NotAFile::of(&error) == Some(NotAFile::Directory) => None,
            other => other.map_err(|source| Error::io("read", path, source))?,
        };
        if let Some(found) = loose.and_then(|text| object_name(text.trim())) {
            return Ok(Some(found));
        }
        self.packed(name)
    }

    fn packed(&mut self, name: &BStr) -> Result<Option<String>, Error> {
        if self.packed.is_none() {
            let path = self.common_dir.join("packed-refs");
            let text = self
                .access
                .read_if_present(&path, MAX_PACKED_REFS_BYTES)
                .map_err(|source| Error::io("read", path, source))?;
            self.packed = Some(text.unwrap_or_default());
        }
        let found = self.packed.as_deref().unwrap_or_default().lines().find_map(|line| {
            let (object, rest) = line.split_once_str(b" ")?;
            (rest == name.as_bytes()).then(|| object_name(object)).flatten()
        });
        Ok(found)
    }
}

/// Returns the text as a full object name in hex (SHA-1 or SHA-256), `None` when it is none.
fn object_name(text: &[u8]) -> Option<String> {
    gix::ObjectId::from_hex(text).ok().map(|id| id.to_string())
}
