//! A sample of git's search for untracked files: directory after directory, in series.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, fstat, openat, statat};

use crate::measure::files::{Files, spread};
use crate::measure::model::{Cost, Draws, Part, RESAMPLES, Sums, counting};
use crate::measure::raw_index::RawIndex;
use crate::measure::settings::Untracked;
use crate::measure::shape::Work;
use crate::measure::sweep::{DIRECTORY, DIRECTORY_BUFFER, c_path};

/// Share of the time for the first pass, which may be cold; the second one over the same directories takes as long.
const FIRST_SHARE: f64 = 0.45;
/// Children of the root that are always in the sample: a large untracked directory is mostly one of the root's.
const MOST_FORCED: usize = 32;
/// Untracked directories that are entered in all; a tree without bound must not eat the sample.
const MOST_UNTRACKED_DIRS: u32 = 200;
/// Depth to which untracked directories are followed.
const MOST_DEPTH: u32 = 32;
/// Fewest directories besides the forced ones.
const FEWEST: usize = 4;

/// What the search works on.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The open worktree.
    pub worktree: BorrowedFd<'a>,
    /// The index.
    pub index: &'a RawIndex,
    /// Its directories.
    pub files: &'a Files,
    /// The user's `status.showUntrackedFiles`.
    pub mode: Untracked,
    /// The index has a valid untracked cache: git then only stats each directory.
    pub has_cache: bool,
    /// The skeleton, which has every tracked `.gitignore`.
    pub skeleton: Option<&'a Path>,
    /// Text of `info/exclude`.
    pub exclude: Option<&'a [u8]>,
    /// The user's own exclude file, where one is set.
    pub excludes_file: Option<&'a Path>,
}

/// Samples the search for about `limit` and predicts the whole.
#[must_use]
pub fn sample(search: Search, limit: Duration) -> Part {
    if search.mode == Untracked::No {
        return Part { is_whole: true, ..Part::default() };
    }
    let started = Instant::now();
    let order = order(search.files);
    let forced = forced(search.files);
    let mut walker = Walker::new(search);
    let deadline = started + limit.mul_f64(FIRST_SHARE);
    let left = || limit.saturating_sub(started.elapsed());
    let mut first = Vec::new();
    for (turn, dir) in order.iter().enumerate() {
        if turn >= FEWEST && Instant::now() >= deadline {
            break;
        }
        first.push(walker.timed(*dir as usize));
    }
    // A mount so slow that the time was over with the first children: they stand for all others.
    let forced = if first.len() < forced + FEWEST { 1 } else { forced };
    let mut passes = vec![first];
    passes.push(walker.again(&order, passes[0].len(), left()));
    let others = others(search.files, &order[forced.min(order.len())..]);
    let whole = Whole { dirs: order.len(), forced, others };
    let times: Vec<f64> = passes.iter().map(|pass| whole.predict(pass)).collect();
    if counting(&times).len() < 2 {
        passes.push(walker.again(&order, passes[0].len(), left()));
    }
    let mut part = evaluate(&whole, &passes);
    part.is_bounded = walker.is_bounded;
    part.calls = walker.calls;
    part.failed = walker.failed;
    part.is_whole = passes[0].len() == search.files.dirs.len();
    part.sampled_s = started.elapsed().as_secs_f64();
    part
}

/// Returns the directories in sampling order: the root, its first children, then all others spread evenly.
fn order(files: &Files) -> Vec<u32> {
    let count = forced(files);
    let is_child = |dir: u32| dir != 0 && files.dirs[dir as usize].parent == 0;
    let all = u32::try_from(files.dirs.len()).unwrap_or(u32::MAX);
    let mut order = vec![0];
    order.extend((1..all).filter(|dir| is_child(*dir)).take(count - 1));
    let rest: Vec<u32> = (1..all).filter(|dir| !order.contains(dir)).collect();
    order.extend(spread(rest.len()).into_iter().map(|turn| rest[turn as usize]));
    order
}

fn forced(files: &Files) -> usize {
    1 + (files.dirs[0].subdirs as usize).min(MOST_FORCED)
}

/// One directory: what it costs is fitted on the components of the paths that git opens in it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Visit {
    components: f64,
    seconds: f64,
}

fn evaluate(whole: &Whole, passes: &[Vec<Visit>]) -> Part {
    let passes_s: Vec<f64> = passes.iter().map(|pass| whole.predict(pass)).collect();
    let counting = counting(&passes_s);
    let used = &passes[passes.len() - counting.len()..];
    #[expect(clippy::cast_precision_loss, reason = "there are two or three passes")]
    let mid_s = counting.iter().sum::<f64>() / counting.len().max(1) as f64;
    let mut random = Draws::new(2);
    let resampled_s = (0..RESAMPLES)
        .map(|_| {
            let pass = &used[random.below(used.len())];
            let (fixed, rest) = pass.split_at(whole.forced.min(pass.len()));
            let drawn = (0..rest.len()).map(|_| rest[random.below(rest.len())]);
            whole.predict(&fixed.iter().copied().chain(drawn).collect::<Vec<_>>())
        })
        .collect();
    Part { mid_s, passes_s, resampled_s, ..Part::default() }
}

/// What the visits stand for.
struct Whole {
    dirs: usize,
    forced: usize,
    /// The directories besides the forced ones.
    others: Work,
}

impl Whole {
    /// Returns the time of the whole search: the forced directories as they were, the others by what those visited cost.
    fn predict(&self, visits: &[Visit]) -> f64 {
        if visits.len() >= self.dirs {
            return visits.iter().map(|visit| visit.seconds).sum();
        }
        let (fixed, rest) = visits.split_at(self.forced.min(visits.len()));
        let fixed_s: f64 = fixed.iter().map(|visit| visit.seconds).sum();
        let mut sums = Sums::default();
        for visit in rest {
            sums.add(visit.components, visit.seconds);
        }
        fixed_s + Cost::fit(&sums).unwrap_or_default().of(self.others)
    }
}

fn others(files: &Files, dirs: &[u32]) -> Work {
    let components = dirs.iter().map(|dir| components_of(files, *dir as usize)).sum();
    Work { calls: dirs.len() as u64, components }
}

/// Returns the components of the paths that git resolves in a directory: its own, and that of its `.gitignore`.
///
/// Git looks for a `.gitignore` once it meets a directory (or an untracked file, which the index does not tell).
#[must_use]
pub fn components_of(files: &Files, dir: usize) -> u64 {
    let dir = &files.dirs[dir];
    let own = u64::from(dir.depth) + 1;
    if dir.subdirs > 0 { own + u64::from(dir.depth) + 1 } else { own }
}

struct Walker<'a> {
    search: Search<'a>,
    ignores: HashMap<PathBuf, Option<Gitignore>>,
    base: Vec<Gitignore>,
    buffer: Vec<MaybeUninit<u8>>,
    entered: u32,
    is_bounded: bool,
    calls: u64,
    failed: u64,
}

impl<'a> Walker<'a> {
    fn new(search: Search<'a>) -> Self {
        let mut base = Vec::new();
        if let Some(text) = search.exclude {
            let mut builder = GitignoreBuilder::new("/");
            for line in String::from_utf8_lossy(text).lines() {
                // A pattern that makes no sense matches nothing, as with git.
                let _ = builder.add_line(None, line);
            }
            base.extend(builder.build().ok());
        }
        if let Some(file) = search.excludes_file {
            let mut builder = GitignoreBuilder::new("/");
            let _ = builder.add(file);
            base.extend(builder.build().ok());
        }
        let buffer = vec![MaybeUninit::uninit(); DIRECTORY_BUFFER];
        Self { search, ignores: HashMap::new(), base, buffer, entered: 0, is_bounded: false, calls: 0, failed: 0 }
    }

    fn again(&mut self, order: &[u32], count: usize, limit: Duration) -> Vec<Visit> {
        let deadline = Instant::now() + limit;
        self.entered = 0;
        let mut visits = Vec::with_capacity(count);
        for dir in order.iter().take(count) {
            if Instant::now() >= deadline && visits.len() >= FEWEST {
                break;
            }
            visits.push(self.timed(*dir as usize));
        }
        visits
    }

    fn timed(&mut self, dir: usize) -> Visit {
        let path = self.search.files.path(self.search.index, dir);
        let before = Instant::now();
        let result = if self.search.has_cache { self.look(path) } else { self.tracked(path) };
        let seconds = before.elapsed().as_secs_f64();
        self.failed += u64::from(result.is_err());
        #[expect(clippy::cast_precision_loss, reason = "paths have few components")]
        Visit { components: components_of(self.search.files, dir) as f64, seconds }
    }

    /// What git does for a directory of a valid untracked cache.
    fn look(&mut self, path: &[u8]) -> io::Result<()> {
        self.calls += 1;
        statat(self.search.worktree, c_path(path)?.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        let ignore = join(path, b".gitignore");
        if self.search.index.find(&ignore).is_some() {
            self.read(&ignore);
        }
        Ok(())
    }

    /// What git does for a directory that holds tracked files.
    fn tracked(&mut self, path: &[u8]) -> io::Result<()> {
        let mut has_looked = false;
        let mut unknown = Vec::new();
        self.list(path, |walker, name, kind| {
            let full = join(path, name.to_bytes());
            let kind = if kind == FileType::Unknown { walker.kind(&full) } else { kind };
            let is_tracked = walker.is_tracked(&full, kind);
            if (kind == FileType::Directory || !is_tracked) && !has_looked {
                has_looked = true;
                walker.read(&join(path, b".gitignore"));
            }
            if kind == FileType::Directory && !is_tracked {
                unknown.push(full);
            }
        })?;
        for dir in unknown {
            if !self.is_ignored(&dir, true) {
                self.untracked(&dir, 0)?;
            }
        }
        Ok(())
    }

    /// What git does for an untracked directory; returns whether it found a file that is not ignored.
    fn untracked(&mut self, path: &[u8], depth: u32) -> io::Result<bool> {
        if self.entered >= MOST_UNTRACKED_DIRS || depth > MOST_DEPTH {
            self.is_bounded = true;
            return Ok(true);
        }
        self.entered += 1;
        // Git looks whether it is a repository of its own.
        self.calls += 1;
        if statat(self.search.worktree, c_path(&join(path, b".git"))?.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Ok(true);
        }
        let mut has_looked = false;
        let mut found = false;
        let mut dirs = Vec::new();
        self.list(path, |walker, name, kind| {
            let full = join(path, name.to_bytes());
            if !has_looked {
                has_looked = true;
                walker.read(&join(path, b".gitignore"));
            }
            if kind == FileType::Directory {
                dirs.push(full);
            } else {
                found |= !walker.is_ignored(&full, false);
            }
        })?;
        for dir in dirs {
            if self.is_ignored(&dir, true) {
                continue;
            }
            // Shown as one line, a directory needs only one file to be shown.
            if found && self.search.mode == Untracked::Normal {
                break;
            }
            found |= self.untracked(&dir, depth + 1)?;
        }
        Ok(found)
    }

    /// Opens, reads and closes a directory with git's calls, and hands out its entries.
    fn list(&mut self, path: &[u8], mut each: impl FnMut(&mut Self, &CStr, FileType)) -> io::Result<()> {
        let with_slash = if path.is_empty() { b".".to_vec() } else { join(path, b"") };
        let open = openat(self.search.worktree, c_path(&with_slash)?.as_c_str(), DIRECTORY, Mode::empty())?;
        // glibc's opendir asks once.
        fstat(&open)?;
        self.calls += 2;
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut listing = RawDir::new(open.as_fd(), &mut buffer);
        let mut result = Ok(());
        while let Some(entry) = listing.next() {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b".." | b".git") => {}
                Ok(entry) => each(self, entry.file_name(), entry.file_type()),
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            }
        }
        self.buffer = buffer;
        result
    }

    /// Reads a `.gitignore` as git does: no link is followed, nothing there is fine.
    fn read(&mut self, path: &[u8]) {
        self.calls += 1;
        let Ok(c_path) = c_path(path) else { return };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(fd) = openat(self.search.worktree, c_path.as_c_str(), flags, Mode::empty())
            && let Ok(stat) = fstat(&fd)
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        {
            let mut text = Vec::new();
            // What it says was taken from the skeleton; here only the time counts.
            let _ = File::from(fd).take(u64::try_from(stat.st_size).unwrap_or(0)).read_to_end(&mut text);
        }
    }

    fn kind(&mut self, path: &[u8]) -> FileType {
        if self.is_tracked(path, FileType::RegularFile) {
            return FileType::RegularFile;
        }
        if self.is_tracked(path, FileType::Directory) {
            return FileType::Directory;
        }
        self.calls += 1;
        c_path(path)
            .ok()
            .and_then(|path| statat(self.search.worktree, path.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).ok())
            .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
    }

    fn is_tracked(&self, path: &[u8], kind: FileType) -> bool {
        let index = self.search.index;
        if kind != FileType::Directory {
            return index.find(path).is_some();
        }
        // A submodule, or a directory with something tracked in it.
        index.find(path).is_some() || index.holds_below(path)
    }

    fn is_ignored(&mut self, path: &[u8], is_dir: bool) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let full = Path::new(std::ffi::OsStr::from_bytes(path));
        for dir in full.ancestors().skip(1) {
            let skeleton = self.search.skeleton;
            let ignore = self.ignores.entry(dir.to_owned()).or_insert_with(|| {
                let file = skeleton?.join(dir).join(".gitignore");
                file.is_file().then(|| {
                    let mut builder = GitignoreBuilder::new(Path::new("/").join(dir));
                    let _ = builder.add(&file);
                    builder.build().ok()
                })?
            });
            if let Some(ignore) = ignore {
                let found = ignore.matched(Path::new("/").join(full), is_dir);
                if !found.is_none() {
                    return found.is_ignore();
                }
            }
        }
        let rooted = Path::new("/").join(full);
        let found = self.base.iter().map(|ignore| ignore.matched(&rooted, is_dir)).find(|found| !found.is_none());
        found.is_some_and(|found| found.is_ignore())
    }
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}
