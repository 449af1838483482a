//! The few objects that `git status` needs, taken over so that the copy does not read the repository's mount.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use gix::index::extension::Tree;

use crate::error::Error;
use crate::measure::private_git::PrivateGit;
use crate::measure::process::{End, run};
use crate::signals::Interrupt;

/// Trees that are taken over at most; more, and the copy gets a commit of its own instead.
const MOST_TREES: usize = 2_000;
/// Bytes of an object that is taken over; the detection of renames leaves larger blobs out of account, mostly.
const MOST_OBJECT_BYTES: u64 = 1 << 20;

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its id, in hex.
    pub id: String,
    /// Its type: `commit`, `tree`, `blob`.
    pub kind: String,
    /// Its content.
    pub data: Vec<u8>,
}

/// A file that HEAD's trees name, as far as they were read.
pub type HeadFile = (Vec<u8>, String);

/// What was taken over.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenHead {
    /// The files that the trees name.
    pub files: Vec<HeadFile>,
    /// Seconds that reading the commit and the root tree took, which every `git status` does.
    pub first_s: f64,
}

/// Takes over HEAD's commit and those of its trees that the index's cache of trees does not cover.
///
/// While the cache is right, git compares tree ids alone and needs the commit and the root tree. Returns `None` when
/// there were too many trees or the time was over: then the copy needs a commit of its own.
///
/// # Errors
///
/// [`Error::Interrupted`], and [`Error::Io`] when the copy cannot be written.
pub fn take_head(
    place: &PrivateGit,
    copy: &PrivateGit,
    head: &str,
    cached: Option<&Tree>,
    limit: Instant,
    interrupt: &Interrupt,
) -> Result<Option<TakenHead>, Error> {
    let mut files = Vec::new();
    let mut taken = 0;
    let specs = vec![head.to_owned(), format!("{head}^{{tree}}")];
    let before = Instant::now();
    let Some(objects) = fetch(place, &specs, limit, interrupt)? else { return Ok(None) };
    let first_s = before.elapsed().as_secs_f64();
    let [commit, root] = &objects[..] else { return Ok(None) };
    store(copy.dir(), commit)?;
    let mut level = vec![(Vec::new(), root.clone(), cached)];
    while !level.is_empty() {
        let mut below = Vec::new();
        for (path, tree, cached) in &level {
            store(copy.dir(), tree)?;
            taken += 1;
            needed_below(path, tree, *cached, &mut below, &mut files);
        }
        if taken + below.len() > MOST_TREES {
            return Ok(None);
        }
        let ids: Vec<String> = below.iter().map(|(_, id, _)| id.clone()).collect();
        if ids.is_empty() {
            break;
        }
        let Some(objects) = fetch(place, &ids, limit, interrupt)? else { return Ok(None) };
        if objects.len() != ids.len() {
            return Ok(None);
        }
        level = below.into_iter().zip(objects).map(|((path, _, cached), tree)| (path, tree, cached)).collect();
    }
    Ok(Some(TakenHead { files, first_s }))
}

/// Lists the subtrees of a tree that git will read, and the files that it names.
fn needed_below<'a>(
    path: &[u8],
    tree: &Object,
    cached: Option<&'a Tree>,
    below: &mut Vec<(Vec<u8>, String, Option<&'a Tree>)>,
    files: &mut Vec<HeadFile>,
) {
    // A valid entry of the same id stands for everything below it.
    if is_covered(cached, &tree.id) {
        return;
    }
    let id_bytes = tree.id.len() / 2;
    let mut rest = &tree.data[..];
    while let Some(nul) = rest.iter().position(|byte| *byte == 0) {
        let Some(id) = rest.get(nul + 1..nul + 1 + id_bytes) else { break };
        let id: String = gix::ObjectId::try_from(id).map(|id| id.to_string()).unwrap_or_default();
        let mut words = rest[..nul].splitn(2, |byte| *byte == b' ');
        let (mode, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let full = if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() };
        if mode == b"40000" {
            let child = cached.and_then(|cached| cached.children.iter().find(|child| child.name[..] == *name));
            if !is_covered(child, &id) {
                below.push((full, id, child));
            }
        } else {
            files.push((full, id));
        }
        rest = &rest[nul + 1 + id_bytes..];
    }
}

fn is_covered(cached: Option<&Tree>, id: &str) -> bool {
    cached.is_some_and(|cached| cached.num_entries.is_some() && cached.id.to_hex().to_string().as_str() == id)
}

/// Takes over objects by id: blobs, which git reads to find renames, and trees; what is missing or large is left out.
///
/// # Errors
///
/// [`Error::Interrupted`], and [`Error::Io`] when the copy cannot be written.
pub fn take(
    place: &PrivateGit,
    copy: &PrivateGit,
    ids: &[String],
    limit: Instant,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let Some(checked) = cat_file(place, "--batch-check", ids, limit, interrupt)? else { return Ok(()) };
    let small: Vec<String> = String::from_utf8_lossy(&checked)
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (id, kind, size) = (words.next()?, words.next()?, words.next()?);
            let is_small = kind != "missing" && size.parse::<u64>().is_ok_and(|size| size <= MOST_OBJECT_BYTES);
            is_small.then(|| id.to_owned())
        })
        .collect();
    if small.is_empty() {
        return Ok(());
    }
    for object in fetch(place, &small, limit, interrupt)?.unwrap_or_default() {
        store(copy.dir(), &object)?;
    }
    Ok(())
}

/// Returns the object ids that git names in an error message.
#[must_use]
pub fn ids_in(message: &str) -> Vec<String> {
    let is_id = |word: &&str| matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    message.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_id).map(str::to_owned).collect()
}

/// Returns the objects in the order asked for; `None` when one is missing or the time was over.
fn fetch(
    place: &PrivateGit,
    specs: &[String],
    limit: Instant,
    interrupt: &Interrupt,
) -> Result<Option<Vec<Object>>, Error> {
    Ok(cat_file(place, "--batch", specs, limit, interrupt)?.and_then(|output| parse_batch(&output)))
}

fn cat_file(
    place: &PrivateGit,
    mode: &str,
    specs: &[String],
    limit: Instant,
    interrupt: &Interrupt,
) -> Result<Option<Vec<u8>>, Error> {
    let input = specs.iter().flat_map(|spec| [spec.as_str(), "\n"]).collect::<String>().into_bytes();
    match run(place.command(&["cat-file", mode]), input, limit, interrupt) {
        Ok(End::Done(run)) => Ok(run.status.success().then_some(run.stdout)),
        Ok(End::TimedOut(_)) => Ok(None),
        Ok(End::Interrupted) => Err(Error::Interrupted),
        Err(error) => Err(Error::io("run git in", place.dir(), error)),
    }
}

/// Reads what `git cat-file --batch` wrote: `<id> <type> <size>`, a line feed, the content, a line feed.
fn parse_batch(mut output: &[u8]) -> Option<Vec<Object>> {
    let mut objects = Vec::new();
    while !output.is_empty() {
        let end = output.iter().position(|byte| *byte == b'\n')?;
        let header = std::str::from_utf8(&output[..end]).ok()?;
        let mut words = header.split(' ');
        let (id, kind, size) = (words.next()?, words.next()?, words.next()?.parse::<usize>().ok()?);
        let data = output.get(end + 1..end + 1 + size)?;
        objects.push(Object { id: id.to_owned(), kind: kind.to_owned(), data: data.to_vec() });
        output = output.get(end + 2 + size..)?;
    }
    Some(objects)
}

/// Writes a loose object below a git dir.
///
/// # Errors
///
/// [`Error::Io`] when it cannot be written.
pub fn store(git_dir: &Path, object: &Object) -> Result<(), Error> {
    let (Some(dir), Some(name)) = (object.id.get(..2), object.id.get(2..)) else { return Ok(()) };
    let dir = git_dir.join("objects").join(dir);
    fs::create_dir_all(&dir).map_err(|e| Error::io("create", &dir, e))?;
    let mut content = format!("{} {}\0", object.kind, object.data.len()).into_bytes();
    content.extend_from_slice(&object.data);
    let path = dir.join(name);
    File::create(&path)
        .and_then(|mut file| file.write_all(&zlib_stored(&content)))
        .map_err(|e| Error::io("write", path, e))
}

/// Wraps bytes into a zlib stream of stored blocks (RFC 1950 and 1951, 3.2.4): valid, and nothing has to be compressed.
fn zlib_stored(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = content.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(&(!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in content {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    stream.extend_from_slice(&((b << 16) | a).to_be_bytes());
    stream
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_output_is_read_with_line_feeds_in_the_content() {
        let objects = parse_batch(b"aa blob 3\na\nb\nbb tree 0\n\n").unwrap();
        assert_eq!(objects[0].data, b"a\nb");
        assert_eq!(objects[1].kind, "tree");
        assert_eq!(parse_batch(b"aa missing\n"), None);
    }

    #[test]
    fn ids_are_found_in_messages() {
        let id = "420201136f42027c6f971934cc73615082d65160";
        assert_eq!(ids_in(&format!("fatal: unable to read tree ({id})\n")), [id]);
        assert!(ids_in("fatal: index file corrupt").is_empty());
    }

    #[test]
    fn git_reads_a_stored_object_back() {
        let dir = tempfile::tempdir().unwrap();
        crate::measure::testing::git(dir.path(), &["init", "-q"]);
        let content = vec![b'z'; 200_000];
        fs::write(dir.path().join("f"), &content).unwrap();
        let id = crate::measure::testing::git(dir.path(), &["hash-object", "f"]);
        let id = String::from_utf8(id).unwrap().trim().to_owned();
        store(&dir.path().join(".git"), &Object { id: id.clone(), kind: "blob".to_owned(), data: content.clone() })
            .unwrap();
        assert_eq!(crate::measure::testing::git(dir.path(), &["cat-file", "blob", &id]), content);
    }
}
