//! The copy to measure in: the same directories and files of the same sizes, without their data.
//!
//! `git status` looks at names and stat data alone as long as the index matches the files, so a copy of the index
//! with the new files' stat data and files made of holes stand for a true copy: both took the same time to within
//! 2 %. Copying 90,000 contents would take longer than the whole run may.

use std::ffi::CStr;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{
    AtFlags, CWD, IFlags, Mode, OFlags, Stat, fstat, ftruncate, ioctl_getflags, ioctl_setflags, mkdirat, openat,
    statat, symlinkat,
};

use crate::error::Error;
use crate::measure::files::Files;
use crate::measure::raw_index::{EntryStat, Kind, RawEntry, RawIndex};
use crate::measure::settings::Settings;
use crate::measure::sweep::{DIRECTORY, Stop, c_path};

/// Entries that a thread takes at once: enough to stay in few directories, few enough to share out evenly.
const BLOCK: usize = 256;
/// Threads that build: more brought nothing, creating files is bound by the journal's one lock.
const THREADS: usize = 2;
/// Longest target of a symbolic link that Linux takes.
const LONGEST_LINK: usize = 4095;

/// A skeleton that was built, at least in part.
#[derive(Debug)]
pub struct Skeleton {
    /// The index for it: the repository's with the stat data of the new files, all entries included, not sealed yet.
    pub index: Vec<u8>,
    /// Entries at the index's beginning that were built; all of them unless time ran out.
    pub built_entries: usize,
    /// Files and links that were made.
    pub files: u64,
    /// Directories that were made.
    pub dirs: u64,
}

/// Builds the skeleton of an index at `root`, which must not exist, until `stop`.
///
/// # Errors
///
/// [`Error::Io`] when the first file cannot be made; [`Error::Interrupted`] when asked to stop.
pub fn build(
    root: &Path,
    index: &RawIndex,
    bytes: &[u8],
    files: &Files,
    settings: &Settings,
    stop: Stop,
) -> Result<Skeleton, Error> {
    let io = |action, e: io::Error| Error::io(action, root, e);
    if let Some(parent) = root.parent() {
        spread_directories(parent);
    }
    DirBuilder::new().mode(0o700).create(root).map_err(|e| io("create", e))?;
    let root_fd = open_dir(root).map_err(|e| io("open", e))?;
    for gitlink in &files.gitlinks {
        make_dirs(root_fd.as_fd(), index.name(&index.entries[*gitlink as usize])).map_err(|e| io("create", e))?;
    }
    let next = AtomicUsize::new(0);
    let finished: Mutex<Vec<(usize, Vec<EntryStat>)>> = Mutex::new(Vec::new());
    let failure: Mutex<Option<io::Error>> = Mutex::new(None);
    let has_failed = AtomicBool::new(false);
    let work = || {
        let mut builder = Builder { root: root_fd.as_fd(), index, bytes, settings, dir: None };
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            let Some(list) = files.paths.chunks(BLOCK).nth(block) else { break };
            if stop.is_now() || has_failed.load(Ordering::Relaxed) {
                break;
            }
            // On a slow target a single file may take as long as the whole should.
            let until_stop = list.iter().take_while(|_| !stop.is_now());
            match until_stop.map(|number| builder.make(*number as usize)).collect::<io::Result<Vec<_>>>() {
                Ok(stats) => lock(&finished).push((block, stats)),
                Err(error) => {
                    has_failed.store(true, Ordering::Relaxed);
                    lock(&failure).get_or_insert(error);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..THREADS {
            scope.spawn(work);
        }
        work();
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(io("fill", error));
    }
    if stop.flag.is_set() {
        return Err(Error::Interrupted);
    }
    let mut finished = finished.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    finished.sort_unstable_by_key(|(block, _)| *block);
    Ok(finish(index, bytes, files, &finished))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Puts the new stat data of the unbroken run of blocks from the beginning into a copy of the index.
fn finish(index: &RawIndex, bytes: &[u8], files: &Files, finished: &[(usize, Vec<EntryStat>)]) -> Skeleton {
    let mut patched = bytes.to_vec();
    let mut made = 0;
    for (expected, (block, stats)) in finished.iter().enumerate() {
        if *block != expected {
            break;
        }
        for (number, stat) in files.paths[expected * BLOCK..].iter().zip(stats) {
            let entry = &index.entries[*number as usize];
            if is_patched(entry) {
                index.set_stat(&mut patched, entry, stat);
            }
        }
        made += stats.len();
        if stats.len() < BLOCK {
            break;
        }
    }
    let is_whole = made == files.paths.len();
    let built_entries = if is_whole {
        index.entries.len()
    } else {
        // Everything before the first path that was not made.
        files.paths.get(made).map_or(0, |number| *number as usize)
    };
    let dirs = files.dirs.iter().filter(|dir| dir.length > 0 && dir.is_before(built_entries)).count();
    Skeleton { index: patched, built_entries, files: made as u64, dirs: dirs as u64 }
}

/// Returns whether git compares the entry's stat data with the file; in a conflict and for a mere intention it does not.
fn is_patched(entry: &RawEntry) -> bool {
    entry.stage() == 0 && !entry.is_intent_to_add()
}

struct Builder<'a> {
    root: BorrowedFd<'a>,
    index: &'a RawIndex,
    bytes: &'a [u8],
    settings: &'a Settings,
    dir: Option<(&'a [u8], OwnedFd)>,
}

impl Builder<'_> {
    fn make(&mut self, number: usize) -> io::Result<EntryStat> {
        let index = self.index;
        let entry = &index.entries[number];
        let name = index.name(entry);
        let cut = name.iter().rposition(|byte| *byte == b'/');
        let dir = cut.map_or(&name[..0], |cut| &name[..cut]);
        let base = cut.map_or(0, |cut| cut + 1);
        if self.dir.as_ref().is_none_or(|(open, _)| *open != dir) {
            self.dir = Some((dir, make_dirs(self.root, dir)?));
        }
        let parent = self.dir.as_ref().map_or(self.root, |(_, fd)| fd.as_fd());
        let c_name = index.c_name(entry).to_bytes_with_nul();
        let c_base = CStr::from_bytes_with_nul(c_name.get(base..).unwrap_or(b"\0")).unwrap_or(c"");
        let size = self.size(entry);
        let stat = if entry.kind() == Kind::Symlink && self.settings.symlinks {
            let target = vec![b'x'; (size as usize).clamp(1, LONGEST_LINK)];
            symlinkat(target.as_slice(), parent, c_base)?;
            statat(parent, c_base, AtFlags::SYMLINK_NOFOLLOW)?
        } else {
            let mode = Mode::from_raw_mode(if entry.is_executable() { 0o755 } else { 0o644 });
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(parent, c_base, flags, mode)?;
            if size > 0 {
                ftruncate(&file, u64::from(size))?;
            }
            fstat(&file)?
        };
        Ok(entry_stat(&stat))
    }

    /// Returns the size that the file gets.
    ///
    /// Git records size 0 for an entry that it was not sure of; a file of size 0 with such an entry would be read, so
    /// it gets one byte, and the patched entry with it.
    fn size(&self, entry: &RawEntry) -> u32 {
        let size = self.index.stat(self.bytes, entry).size;
        let is_unsure = size == 0 && is_patched(entry) && !self.index.is_empty_blob(self.bytes, entry);
        if is_unsure { 1 } else { size }
    }
}

/// Returns stat data as the index keeps them.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::allow_attributes,
    reason = "the index keeps the lower 32 bits of everything"
)]
#[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
pub fn entry_stat(stat: &Stat) -> EntryStat {
    EntryStat {
        ctime: (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
        mtime: (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
        dev: stat.st_dev as u32,
        ino: stat.st_ino as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size as u32,
    }
}

/// Opens a directory.
///
/// # Errors
///
/// Those of `open(2)`.
pub fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, DIRECTORY, Mode::empty())?)
}

/// Makes a directory with all above it and opens it, without following a symbolic link on the way.
///
/// # Errors
///
/// Those of `mkdir(2)` and `open(2)`.
pub fn make_dirs(root: BorrowedFd, path: &[u8]) -> io::Result<OwnedFd> {
    let no_follow = DIRECTORY | OFlags::NOFOLLOW;
    let mut open = openat(root, c".", DIRECTORY, Mode::empty())?;
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        let part = c_path(part)?;
        open = match openat(&open, part.as_c_str(), no_follow, Mode::empty()) {
            Ok(next) => next,
            Err(rustix::io::Errno::NOENT) => {
                match mkdirat(&open, part.as_c_str(), Mode::from_raw_mode(0o755)) {
                    // The other thread may have been faster.
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&open, part.as_c_str(), no_follow, Mode::empty())?
            }
            Err(error) => return Err(error.into()),
        };
    }
    Ok(open)
}

/// Asks ext4 to put each directory made in `dir` into a part of the disk of its own.
///
/// Without a journal, ext4 does not reuse inodes that were deleted in the last minutes, and searches past each of them
/// for every new file: a skeleton built where an earlier one was removed took twenty times as long. The 'top directory'
/// flag makes ext4 choose the block group by the new directory's name, which is random.
fn spread_directories(dir: &Path) {
    // Other filesystems do not know the flag, and need it no more.
    if let Ok(fd) = open_dir(dir)
        && let Ok(flags) = ioctl_getflags(&fd)
    {
        let _ = ioctl_setflags(&fd, flags | IFlags::TOPDIR);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::measure::own_commit;
    use crate::measure::private_git::{Parts, PrivateGit, StatusMode, ahead_of_now};
    use crate::measure::testing::{git, profile_of};
    use crate::signals::Interrupt;

    #[test]
    fn the_finished_part_of_a_skeleton_is_clean_against_a_commit_of_its_own() {
        let (repository, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        git(repository.path(), &["init", "-q"]);
        for number in 0..3 * BLOCK {
            let dir = repository.path().join(format!("d{}/e{}", number % 5, number % 3));
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join(format!("f{number:04}")), vec![b'x'; number % 50]).unwrap();
        }
        git(repository.path(), &["add", "."]);
        let profile = profile_of(repository.path());
        let settings = Settings::of(&profile);
        for version in ["2", "4"] {
            git(repository.path(), &["update-index", "--index-version", version]);
            let bytes = std::fs::read(repository.path().join(".git/index")).unwrap();
            let index = RawIndex::parse(&bytes, gix::hash::Kind::Sha1).unwrap();
            let files = Files::of(&index).unwrap();
            let root = target.path().join(version);
            let interrupt = Interrupt::default();
            let stop = Stop { at: Instant::now() + Duration::from_secs(60), flag: &interrupt };
            let whole = build(&root, &index, &bytes, &files, &settings, stop).unwrap();
            assert_eq!(whole.files, 3 * BLOCK as u64);
            let stats = |block: usize| -> Vec<EntryStat> {
                let list = &files.paths[block * BLOCK..(block + 1) * BLOCK];
                list.iter().map(|number| index.stat(&whole.index, &index.entries[*number as usize])).collect()
            };
            // The second block is missing, so only the first counts.
            let part = finish(&index, &bytes, &files, &[(0, stats(0)), (2, stats(2))]);
            assert_eq!((part.files, part.built_entries), (BLOCK as u64, BLOCK));
            for number in &files.paths[BLOCK..] {
                let name = std::str::from_utf8(index.name(&index.entries[*number as usize])).unwrap();
                std::fs::remove_file(root.join(name)).unwrap();
            }
            let own = own_commit::make(&index, &part.index, part.built_entries).unwrap();
            let parts = Parts {
                program: &git_program(),
                worktree: &root,
                settings: &settings,
                info: &profile.info,
                head: Some(&own.commit),
                objects: None,
            };
            let private = PrivateGit::create(&target.path().join(format!("{version}.git")), &parts).unwrap();
            for object in &own.objects {
                crate::measure::objects::store(private.dir(), object).unwrap();
            }
            private.write_index(&own.index, ahead_of_now()).unwrap();
            let answer = private.status(StatusMode::default()).output().unwrap();
            assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
            assert_eq!(String::from_utf8_lossy(&answer.stdout), "", "version {version}");
            let listed = private.command(&["ls-files"]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), BLOCK);
        }
    }

    fn git_program() -> PathBuf {
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path).map(|dir| dir.join("git")).find(|file| file.exists()).unwrap()
    }

    /// What a tracked path is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Made {
        Plain,
        Executable,
        Link,
    }

    /// Paths with what is there and how long it is; none leads through another one.
    fn trees() -> impl Strategy<Value = BTreeMap<Vec<String>, (Made, usize)>> {
        let name = "[a-c. '\"\\\\é\n-]{1,4}"
            .prop_filter("no name of git's own", |name| !matches!(name.as_str(), "." | "..") && name.len() < 10);
        let path = prop::collection::vec(name, 1..4);
        let made = prop::sample::select(vec![Made::Plain, Made::Executable, Made::Link]);
        let size = prop_oneof![Just(0_usize), 1_usize..5_000];
        prop::collection::btree_map(path, (made, size), 1..20).prop_map(|mut tree| {
            let paths: Vec<Vec<String>> = tree.keys().cloned().collect();
            tree.retain(|path, _| !paths.iter().any(|other| other.len() > path.len() && other.starts_with(path)));
            tree
        })
    }

    fn write_tree(root: &Path, tree: &BTreeMap<Vec<String>, (Made, usize)>) {
        for (path, (made, size)) in tree {
            let full = path.iter().fold(root.to_owned(), |full, name| full.join(name));
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            if *made == Made::Link {
                std::os::unix::fs::symlink("x".repeat((*size).clamp(1, LONGEST_LINK)), &full).unwrap();
                continue;
            }
            std::fs::write(&full, vec![b'x'; *size]).unwrap();
            let mode = if *made == Made::Executable { 0o755 } else { 0o644 };
            std::fs::set_permissions(&full, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    proptest! {
        // Each case runs git some ten times.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn git_reads_out_of_the_skeletons_index_what_it_wrote_into_the_repositorys(
            tree in trees(),
            version in prop::sample::select(vec!["2", "4"]),
        ) {
            let (repository, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let here = repository.path();
            git(here, &["init", "-q"]);
            write_tree(here, &tree);
            git(here, &["add", "-A"]);
            git(here, &["update-index", "--index-version", version]);
            git(here, &["commit", "-q", "-m", "all"]);
            let profile = profile_of(here);
            let settings = Settings::of(&profile);
            let bytes = std::fs::read(here.join(".git/index")).unwrap();
            let index = RawIndex::parse(&bytes, gix::hash::Kind::Sha1).unwrap();
            let files = Files::of(&index).unwrap();
            let interrupt = Interrupt::default();
            let stop = Stop { at: Instant::now() + Duration::from_secs(60), flag: &interrupt };
            let root = target.path().join("skeleton");
            let mut skeleton = build(&root, &index, &bytes, &files, &settings, stop).unwrap();
            prop_assert_eq!((skeleton.files, skeleton.built_entries), (tree.len() as u64, tree.len()));
            index.seal(&mut skeleton.index);
            prop_assert_eq!(&RawIndex::parse(&skeleton.index, gix::hash::Kind::Sha1).unwrap().entries, &index.entries);

            let parts = Parts {
                program: &git_program(),
                worktree: &root,
                settings: &settings,
                info: &profile.info,
                head: profile.head_commit.as_deref(),
                objects: Some(&profile.git_dir.join("objects")),
            };
            let private = PrivateGit::create(&target.path().join("private.git"), &parts).unwrap();
            private.write_index(&skeleton.index, ahead_of_now()).unwrap();
            let listing = ["ls-files", "--stage", "-z"];
            let listed = private.command(&listing).output().unwrap();
            prop_assert_eq!(&listed.stdout, &git(here, &listing));
            // The stat data alone say that nothing changed; contents, which are not there, would say otherwise.
            for question in [&["diff-files", "--name-only"][..], &["fsck", "--cache", "--no-dangling"]] {
                let answer = private.command(question).output().unwrap();
                prop_assert!(answer.status.success() && answer.stdout.is_empty(), "{:?}: {:?}", question, answer);
            }
            let status = private.status(StatusMode::default()).output().unwrap();
            prop_assert!(status.status.success() && status.stdout.is_empty(), "{:?}", status);
        }
    }
}
