//! The passthrough: nodes that the kernel knows, and the system calls on the backing files.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, Generation, INodeNo, TimeOrNow};
use rustix::fs::{
    self, AtFlags, CWD, Dir, FallocateFlags, Gid, Mode, OFlags, RenameFlags, SeekFrom, StatVfs, Statx, StatxFlags,
    StatxTimestamp, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::{Errno, Result};

use super::server::locked;

/// The node that the kernel starts from.
const ROOT: u64 = 1;
/// Numbers from here on stand for files whose inode number cannot be used: on another filesystem, or equal to `ROOT`.
const FIRST_SYNTHETIC: u64 = 1 << 62;
/// `SEEK_DATA` and `SEEK_HOLE` of Linux; the kernel asks for no other kind.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// A file as the kernel gets it: its attributes and the generation of its inode number.
pub(crate) type Entry = (FileAttr, Generation);

/// One name of a directory listing.
pub(crate) struct Item {
    pub(crate) ino: u64,
    pub(crate) kind: FileType,
    pub(crate) name: OsString,
}

/// Who made a request; new files belong to it.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The attributes that a request changes.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) atime: Option<TimeOrNow>,
    pub(crate) mtime: Option<TimeOrNow>,
}

struct Node {
    /// Parent and name; the one looked up last comes first. More than one for hard links, none once removed.
    names: Vec<(u64, Box<OsStr>)>,
    /// How often the kernel was told of the node and has not forgotten it.
    lookups: u64,
}

struct OpenFile {
    fd: OwnedFd,
    node: u64,
}

#[derive(Default)]
struct State {
    nodes: HashMap<u64, Node>,
    synthetic: HashMap<(u64, u64), u64>,
    files: HashMap<u64, Arc<OpenFile>>,
    listings: HashMap<u64, Arc<Vec<Item>>>,
    lies: HashMap<PathBuf, u64>,
    takes_both_times_or_none: bool,
}

/// The backing directory as the kernel knows it.
pub(crate) struct Tree {
    backing: PathBuf,
    device: u64,
    root_ino: u64,
    state: Mutex<State>,
    next_handle: AtomicU64,
}

impl Tree {
    pub(crate) fn new(backing: &Path) -> std::io::Result<Tree> {
        let backing = backing.canonicalize()?;
        let root = stat(&backing)?;
        Ok(Tree {
            device: device(&root),
            root_ino: root.stx_ino,
            backing,
            state: Mutex::new(State::default()),
            next_handle: AtomicU64::new(1),
        })
    }

    /// Lets attributes of the file at `path` (relative to the mount point) say this size; `None` ends the lie.
    pub(crate) fn lie(&self, path: &Path, size_bytes: Option<u64>) {
        let mut state = locked(&self.state);
        match size_bytes {
            Some(size) => state.lies.insert(path.to_owned(), size),
            None => state.lies.remove(path),
        };
    }

    /// Ignores changes of one of a file's two times from now on, as libfuse 2 does.
    pub(crate) fn take_both_times_or_none(&self) {
        locked(&self.state).takes_both_times_or_none = true;
    }

    /// Returns the path of a node (and a name in it) relative to the mount point; empty for the root and for files
    /// that were removed.
    pub(crate) fn relative(&self, node: u64, name: Option<&OsStr>) -> PathBuf {
        let mut path = locked(&self.state).relative(node).unwrap_or_default();
        if let Some(name) = name {
            path.push(name);
        }
        path
    }

    fn path(&self, node: u64) -> Result<PathBuf> {
        let relative = locked(&self.state).relative(node).ok_or(Errno::STALE)?;
        // Joining nothing would add a slash.
        Ok(if relative.as_os_str().is_empty() { self.backing.clone() } else { self.backing.join(relative) })
    }

    fn child(&self, parent: u64, name: &OsStr) -> Result<PathBuf> {
        Ok(self.path(parent)?.join(name))
    }

    fn file(&self, handle: u64) -> Result<Arc<OpenFile>> {
        locked(&self.state).files.get(&handle).cloned().ok_or(Errno::BADF)
    }

    fn add_file(&self, fd: OwnedFd, node: u64) -> u64 {
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        locked(&self.state).files.insert(handle, Arc::new(OpenFile { fd, node }));
        handle
    }

    /// Tells the kernel of the file that `parent` calls `name`.
    pub(crate) fn lookup(&self, parent: u64, name: &OsStr) -> Result<Entry> {
        let found = stat(&self.child(parent, name)?)?;
        let mut state = locked(&self.state);
        let id = self.id(&mut state, &found);
        let node = state.nodes.entry(id).or_insert(Node { names: Vec::new(), lookups: 0 });
        node.lookups += 1;
        match node.names.iter().position(|(dir, known)| *dir == parent && **known == *name) {
            Some(place) => node.names.swap(0, place),
            None => node.names.insert(0, (parent, name.into())),
        }
        let lie = state.lie_about(id);
        Ok((attributes(&found, id, lie), Generation(generation(&found))))
    }

    pub(crate) fn forget(&self, id: u64, lookups: u64) {
        let mut state = locked(&self.state);
        if let Some(node) = state.nodes.get_mut(&id) {
            node.lookups = node.lookups.saturating_sub(lookups);
            if node.lookups == 0 {
                state.nodes.remove(&id);
                if id >= FIRST_SYNTHETIC {
                    state.synthetic.retain(|_, known| *known != id);
                }
            }
        }
    }

    fn id(&self, state: &mut State, found: &Statx) -> u64 {
        let device = device(found);
        if device == self.device && (ROOT + 1..FIRST_SYNTHETIC).contains(&found.stx_ino) {
            return found.stx_ino;
        }
        let next = FIRST_SYNTHETIC + self.next_handle.fetch_add(1, Ordering::Relaxed);
        *state.synthetic.entry((device, found.stx_ino)).or_insert(next)
    }

    pub(crate) fn getattr(&self, id: u64, handle: Option<u64>) -> Result<FileAttr> {
        let found = match handle.and_then(|handle| self.file(handle).ok()) {
            Some(file) => stat_fd(&file.fd)?,
            None => match self.path(id).and_then(|path| stat(&path)) {
                Ok(found) => found,
                // A removed file that is still open has no path.
                Err(error) => match self.any_file_of(id) {
                    Some(file) => stat_fd(&file.fd)?,
                    None => return Err(error),
                },
            },
        };
        let shown = if id == ROOT { self.root_ino } else { id };
        let lie = locked(&self.state).lie_about(id);
        Ok(attributes(&found, shown, lie))
    }

    fn any_file_of(&self, id: u64) -> Option<Arc<OpenFile>> {
        locked(&self.state).files.values().find(|file| file.node == id).cloned()
    }

    pub(crate) fn setattr(&self, id: u64, handle: Option<u64>, changes: &Changes) -> Result<FileAttr> {
        let file = handle.and_then(|handle| self.file(handle).ok()).or_else(|| self.any_file_of(id));
        let path = self.path(id);
        if let Some(mode) = changes.mode {
            match (&path, &file) {
                (Ok(path), _) => fs::chmod(path, Mode::from_raw_mode(mode))?,
                (_, Some(file)) => fs::fchmod(&file.fd, Mode::from_raw_mode(mode))?,
                (Err(error), None) => return Err(*error),
            }
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            let (uid, gid) = (changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw));
            fs::chownat(CWD, path.as_ref().map_err(|error| *error)?, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if let Some(size) = changes.size {
            match handle.and_then(|handle| self.file(handle).ok()) {
                Some(file) => fs::ftruncate(&file.fd, size)?,
                None => fs::ftruncate(
                    fs::open(
                        path.as_ref().map_err(|error| *error)?,
                        OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                        Mode::empty(),
                    )?,
                    size,
                )?,
            }
        }
        let is_one_alone = changes.atime.is_some() != changes.mtime.is_some();
        let is_ignored = is_one_alone && locked(&self.state).takes_both_times_or_none;
        if (changes.atime.is_some() || changes.mtime.is_some()) && !is_ignored {
            let times = Timestamps { last_access: timespec(changes.atime), last_modification: timespec(changes.mtime) };
            match (&path, &file) {
                (Ok(path), _) => fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?,
                (_, Some(file)) => fs::futimens(&file.fd, &times)?,
                (Err(error), None) => return Err(*error),
            }
        }
        self.getattr(id, handle)
    }

    pub(crate) fn readlink(&self, id: u64) -> Result<Vec<u8>> {
        Ok(fs::readlinkat(CWD, self.path(id)?, Vec::new())?.into_bytes())
    }

    pub(crate) fn mknod(&self, parent: u64, name: &OsStr, mode: u32, rdev: u32, owner: Owner) -> Result<Entry> {
        let path = self.child(parent, name)?;
        fs::mknodat(CWD, &path, fs::FileType::from_raw_mode(mode), Mode::from_raw_mode(mode), rdev.into())?;
        self.adopt(parent, name, &path, Some(mode), owner)
    }

    pub(crate) fn mkdir(&self, parent: u64, name: &OsStr, mode: u32, owner: Owner) -> Result<Entry> {
        let path = self.child(parent, name)?;
        fs::mkdirat(CWD, &path, Mode::from_raw_mode(mode))?;
        let inherited = Mode::from_raw_mode(stat(&path)?.stx_mode.into()) & Mode::SGID;
        self.adopt(parent, name, &path, Some(mode | inherited.as_raw_mode()), owner)
    }

    pub(crate) fn symlink(&self, parent: u64, name: &OsStr, target: &Path, owner: Owner) -> Result<Entry> {
        let path = self.child(parent, name)?;
        fs::symlinkat(target, CWD, &path)?;
        self.adopt(parent, name, &path, None, owner)
    }

    /// Gives a new file to whoever asked for it, with the mode it asked for whatever the umask of this process is.
    fn adopt(&self, parent: u64, name: &OsStr, path: &Path, mode: Option<u32>, owner: Owner) -> Result<Entry> {
        if rustix::process::geteuid().is_root() && (owner.uid != 0 || owner.gid != 0) {
            let parent_mode = u32::from(stat(&self.path(parent)?)?.stx_mode);
            let inherits_group = Mode::from_raw_mode(parent_mode).contains(Mode::SGID);
            let gid = (!inherits_group).then(|| Gid::from_raw(owner.gid));
            fs::chownat(CWD, path, Some(Uid::from_raw(owner.uid)), gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if let Some(mode) = mode {
            fs::chmod(path, Mode::from_raw_mode(mode))?;
        }
        self.lookup(parent, name)
    }

    pub(crate) fn remove(&self, parent: u64, name: &OsStr, flags: AtFlags) -> Result<()> {
        let path = self.child(parent, name)?;
        let found = stat(&path)?;
        fs::unlinkat(CWD, &path, flags)?;
        let mut state = locked(&self.state);
        let id = self.id(&mut state, &found);
        state.unname(id, parent, name);
        Ok(())
    }

    pub(crate) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: u32,
    ) -> Result<()> {
        let flags = RenameFlags::from_bits_retain(flags);
        let (from, to) = (self.child(parent, name)?, self.child(new_parent, new_name)?);
        let moved = stat(&from)?;
        let replaced = stat(&to).ok();
        fs::renameat_with(CWD, &from, CWD, &to, flags)?;
        let mut state = locked(&self.state);
        let moved = self.id(&mut state, &moved);
        if let Some(replaced) = replaced {
            let replaced = self.id(&mut state, &replaced);
            // Renaming onto a hard link of the same file does nothing.
            if replaced == moved {
                return Ok(());
            }
            state.unname(replaced, new_parent, new_name);
            if flags.contains(RenameFlags::EXCHANGE) {
                state.name(replaced, parent, name);
            }
        }
        state.unname(moved, parent, name);
        state.name(moved, new_parent, new_name);
        Ok(())
    }

    pub(crate) fn link(&self, id: u64, parent: u64, name: &OsStr) -> Result<Entry> {
        fs::linkat(CWD, self.path(id)?, CWD, self.child(parent, name)?, AtFlags::empty())?;
        self.lookup(parent, name)
    }

    pub(crate) fn open(&self, id: u64, flags: i32) -> Result<u64> {
        let fd = fs::open(self.path(id)?, backing_flags(flags), Mode::empty())?;
        Ok(self.add_file(fd, id))
    }

    pub(crate) fn create(
        &self,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: i32,
        owner: Owner,
    ) -> Result<(Entry, u64)> {
        let path = self.child(parent, name)?;
        let is_new = stat(&path).is_err();
        let flags = backing_flags(flags) | OFlags::CREATE;
        let fd = fs::open(&path, flags, Mode::from_raw_mode(mode))?;
        let entry =
            if is_new { self.adopt(parent, name, &path, Some(mode), owner)? } else { self.lookup(parent, name)? };
        let handle = self.add_file(fd, entry.0.ino.0);
        Ok((entry, handle))
    }

    pub(crate) fn read(&self, handle: u64, offset: u64, size: u32) -> Result<Vec<u8>> {
        let file = self.file(handle)?;
        let mut data = vec![0; size as usize];
        let mut filled = 0;
        while filled < data.len() {
            match rustix::io::pread(&file.fd, &mut data[filled..], offset + filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        data.truncate(filled);
        Ok(data)
    }

    pub(crate) fn write(&self, handle: u64, offset: u64, data: &[u8]) -> Result<usize> {
        let file = self.file(handle)?;
        let mut written = 0;
        while written < data.len() {
            written += rustix::io::pwrite(&file.fd, &data[written..], offset + written as u64)?;
        }
        Ok(written)
    }

    pub(crate) fn release(&self, handle: u64) {
        locked(&self.state).files.remove(&handle);
    }

    pub(crate) fn fsync(&self, handle: u64, data_only: bool) -> Result<()> {
        let file = self.file(handle)?;
        if data_only { fs::fdatasync(&file.fd) } else { fs::fsync(&file.fd) }
    }

    pub(crate) fn fallocate(&self, handle: u64, offset: u64, len: u64, mode: i32) -> Result<()> {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        fs::fallocate(&self.file(handle)?.fd, mode, offset, len)
    }

    pub(crate) fn lseek(&self, handle: u64, offset: i64, whence: i32) -> Result<i64> {
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let target = match whence {
            SEEK_DATA => SeekFrom::Data(offset),
            SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        fs::seek(&self.file(handle)?.fd, target).map(u64::cast_signed)
    }

    pub(crate) fn copy_file_range(
        &self,
        (from, mut from_offset): (u64, u64),
        (to, mut to_offset): (u64, u64),
        len: u64,
    ) -> Result<usize> {
        let (from, to) = (self.file(from)?, self.file(to)?);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        fs::copy_file_range(&from.fd, Some(&mut from_offset), &to.fd, Some(&mut to_offset), len)
    }

    /// Reads a directory once; later calls of the same handle get parts of this listing.
    pub(crate) fn opendir(&self, id: u64) -> Result<u64> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = Dir::new(fs::open(self.path(id)?, flags, Mode::empty())?)?;
        let mut items = Vec::new();
        for entry in dir {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            let kind = match entry.file_type() {
                fs::FileType::Unknown => stat(&self.child(id, &name)?).map_or(FileType::RegularFile, |s| kind(&s)),
                known => file_type(known),
            };
            items.push(Item { ino: entry.ino(), kind, name });
        }
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        locked(&self.state).listings.insert(handle, Arc::new(items));
        Ok(handle)
    }

    pub(crate) fn listing(&self, handle: u64) -> Result<Arc<Vec<Item>>> {
        locked(&self.state).listings.get(&handle).cloned().ok_or(Errno::BADF)
    }

    pub(crate) fn releasedir(&self, handle: u64) {
        locked(&self.state).listings.remove(&handle);
    }

    pub(crate) fn statfs(&self) -> Result<StatVfs> {
        fs::statvfs(&self.backing)
    }

    pub(crate) fn setxattr(&self, id: u64, name: &OsStr, value: &[u8], flags: i32) -> Result<()> {
        fs::lsetxattr(self.path(id)?, name, value, XattrFlags::from_bits_retain(flags.cast_unsigned()))
    }

    pub(crate) fn getxattr(&self, id: u64, name: &OsStr) -> Result<Vec<u8>> {
        let path = self.path(id)?;
        let mut value = vec![0; fs::lgetxattr_query(&path, name)?];
        let len = fs::lgetxattr(&path, name, &mut value)?;
        value.truncate(len);
        Ok(value)
    }

    pub(crate) fn listxattr(&self, id: u64) -> Result<Vec<u8>> {
        let path = self.path(id)?;
        let mut names = vec![0; fs::llistxattr_query(&path)?];
        let len = fs::llistxattr(&path, &mut names)?;
        names.truncate(len);
        Ok(names)
    }

    pub(crate) fn removexattr(&self, id: u64, name: &OsStr) -> Result<()> {
        fs::lremovexattr(self.path(id)?, name)
    }
}

impl State {
    fn relative(&self, id: u64) -> Option<PathBuf> {
        let mut names = Vec::new();
        let mut at = id;
        while at != ROOT {
            let (parent, name) = self.nodes.get(&at)?.names.first()?;
            names.push(&**name);
            at = *parent;
        }
        let mut path = PathBuf::new();
        path.extend(names.iter().rev());
        Some(path)
    }

    fn lie_about(&self, id: u64) -> Option<u64> {
        if self.lies.is_empty() { None } else { self.lies.get(&self.relative(id)?).copied() }
    }

    fn name(&mut self, id: u64, parent: u64, name: &OsStr) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.names.insert(0, (parent, name.into()));
        }
    }

    fn unname(&mut self, id: u64, parent: u64, name: &OsStr) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.names.retain(|(dir, known)| *dir != parent || **known != *name);
        }
    }
}

/// Returns the flags that a backing file is opened with.
///
/// The kernel places appended data itself, and has already created, resolved and cached on its own side.
fn backing_flags(flags: i32) -> OFlags {
    let dropped = OFlags::APPEND | OFlags::DIRECT | OFlags::NOCTTY;
    (OFlags::from_bits_retain(flags.cast_unsigned()) - dropped) | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME
}

fn stat(path: &Path) -> Result<Statx> {
    fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted())
}

fn stat_fd(fd: impl AsFd) -> Result<Statx> {
    fs::statx(fd, "", AtFlags::EMPTY_PATH, wanted())
}

fn device(found: &Statx) -> u64 {
    fs::makedev(found.stx_dev_major, found.stx_dev_minor)
}

/// Returns a number that differs between two files that get the same inode number one after the other.
fn generation(found: &Statx) -> u64 {
    // The kernel keeps 32 bits; the birth time is 0 where the filesystem has none.
    let btime = found.stx_btime;
    (btime.tv_sec.cast_unsigned() << 30 ^ u64::from(btime.tv_nsec)) & u64::from(u32::MAX)
}

fn attributes(found: &Statx, ino: u64, size_lie: Option<u64>) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: size_lie.unwrap_or(found.stx_size),
        blocks: found.stx_blocks,
        atime: time(found.stx_atime),
        mtime: time(found.stx_mtime),
        ctime: time(found.stx_ctime),
        crtime: time(found.stx_btime),
        kind: kind(found),
        perm: found.stx_mode & 0o7777,
        nlink: found.stx_nlink,
        uid: found.stx_uid,
        gid: found.stx_gid,
        // The kernel's 32-bit form is the low half of the C library's.
        rdev: u32::try_from(fs::makedev(found.stx_rdev_major, found.stx_rdev_minor)).unwrap_or(0),
        blksize: found.stx_blksize,
        flags: 0,
    }
}

fn kind(found: &Statx) -> FileType {
    file_type(fs::FileType::from_raw_mode(found.stx_mode.into()))
}

fn file_type(kind: fs::FileType) -> FileType {
    match kind {
        fs::FileType::Directory => FileType::Directory,
        fs::FileType::Symlink => FileType::Symlink,
        fs::FileType::Fifo => FileType::NamedPipe,
        fs::FileType::Socket => FileType::Socket,
        fs::FileType::CharacterDevice => FileType::CharDevice,
        fs::FileType::BlockDevice => FileType::BlockDevice,
        fs::FileType::RegularFile | fs::FileType::Unknown => FileType::RegularFile,
    }
}

fn time(stamp: StatxTimestamp) -> SystemTime {
    let nanos = Duration::from_nanos(stamp.tv_nsec.into());
    let whole = Duration::from_secs(stamp.tv_sec.unsigned_abs());
    if stamp.tv_sec < 0 { UNIX_EPOCH - whole + nanos } else { UNIX_EPOCH + whole + nanos }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        None => special(fs::UTIME_OMIT),
        Some(TimeOrNow::Now) => special(fs::UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Timespec { tv_sec: after.as_secs().cast_signed(), tv_nsec: after.subsec_nanos().into() },
            Err(error) => {
                let before = error.duration();
                let borrow = i64::from(before.subsec_nanos() > 0);
                Timespec {
                    tv_sec: -before.as_secs().cast_signed() - borrow,
                    tv_nsec: borrow * 1_000_000_000 - i64::from(before.subsec_nanos()),
                }
            }
        },
    }
}

/// Whether a file opened with these flags may be written, emptied or created.
pub(crate) fn opens_for_writing(flags: i32) -> bool {
    let flags = OFlags::from_bits_retain(flags.cast_unsigned());
    flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC | OFlags::CREATE)
}
