//! The kernel's requests, turned into jobs for the waiting room.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileAttr, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags,
    IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, StatVfs};
use rustix::io::{Errno, Result};

use super::calls::Call;
use super::server::Server;
use super::tree::{Changes, Entry, Item, Owner, Tree, opens_for_writing};

/// No attribute and no entry is kept by the kernel: every look at a file is a request, as on 9p without a cache.
const TTL: Duration = Duration::ZERO;
/// Requests that the kernel may have under way in the background (read-ahead, releases), so that only the mount's own
/// limit on concurrency counts.
const MAX_BACKGROUND: u16 = 512;

/// The filesystem of one mount.
pub(crate) struct Passthrough {
    pub(crate) tree: Arc<Tree>,
    pub(crate) server: Arc<Server>,
    pub(crate) readdirplus: bool,
}

/// A reply, and what a successful answer consists of.
trait Answer: Send + 'static {
    type Value;
    fn good(self, value: Self::Value);
    fn bad(self, errno: fuser::Errno);
}

macro_rules! answers {
    ($($reply:ty, $value:ty, |$this:ident, $good:ident| $body:expr;)*) => {$(
        impl Answer for $reply {
            type Value = $value;
            fn good(self, $good: Self::Value) {
                let $this = self;
                $body;
            }
            fn bad(self, errno: fuser::Errno) {
                self.error(errno);
            }
        }
    )*};
}

answers! {
    ReplyEmpty, (), |reply, _nothing| reply.ok();
    ReplyEntry, Entry, |reply, entry| reply.entry(&TTL, &entry.0, entry.1);
    ReplyAttr, FileAttr, |reply, attributes| reply.attr(&TTL, &attributes);
    ReplyData, Vec<u8>, |reply, data| reply.data(&data);
    ReplyOpen, u64, |reply, handle| reply.opened(FileHandle(handle), FopenFlags::empty());
    ReplyWrite, usize, |reply, written| reply.written(u32::try_from(written).unwrap_or(u32::MAX));
    ReplyCreate, (Entry, u64), |reply, made| {
        reply.created(&TTL, &made.0.0, made.0.1, FileHandle(made.1), FopenFlags::empty());
    };
    ReplyLseek, i64, |reply, offset| reply.offset(offset);
    ReplyStatfs, StatVfs, |reply, fs| reply.statfs(
        fs.f_blocks, fs.f_bfree, fs.f_bavail, fs.f_files, fs.f_ffree, small(fs.f_bsize), small(fs.f_namemax),
        small(fs.f_frsize)
    );
    ReplyXattr, (u32, Vec<u8>), |reply, value| match value {
        (0, data) => reply.size(u32::try_from(data.len()).unwrap_or(u32::MAX)),
        (size, data) if data.len() > size as usize => reply.error(fuser::Errno::ERANGE),
        (_, data) => reply.data(&data),
    };
    ReplyDirectory, (Arc<Vec<Item>>, usize), |reply, listing| {
        let mut reply = reply;
        for (place, item) in listing.0.iter().enumerate().skip(listing.1) {
            if reply.add(INodeNo(item.ino), place as u64 + 1, item.kind, &item.name) {
                break;
            }
        }
        reply.ok();
    };
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn errno(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

fn owner(request: &Request) -> Owner {
    Owner { uid: request.uid(), gid: request.gid() }
}

impl Passthrough {
    /// Has `work` answer a call on a node, or on the file that it calls `name`.
    fn serve<R: Answer>(
        &self,
        call: Call,
        (node, name): (INodeNo, Option<&OsStr>),
        reply: R,
        work: impl FnOnce(&Tree) -> Result<R::Value> + Send + 'static,
    ) {
        let tree = Arc::clone(&self.tree);
        let answer = Box::new(move |refusal: Option<Errno>| match refusal.map_or_else(|| work(&tree), Err) {
            Ok(value) => reply.good(value),
            Err(error) => reply.bad(errno(error)),
        });
        self.server.submit(call, || self.tree.relative(node.0, name), answer);
    }
}

impl Filesystem for Passthrough {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without this the kernel lets one request a directory through at a time.
        let mut wanted = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_AUTO_INVAL_DATA;
        if self.readdirplus {
            wanted |= InitFlags::FUSE_DO_READDIRPLUS;
        }
        config
            .add_capabilities(wanted)
            .map_err(|missing| io::Error::other(format!("the kernel's FUSE lacks {missing:?}")))?;
        // Both setters fail on zero only.
        let _ = config.set_max_background(MAX_BACKGROUND);
        let _ = config.set_congestion_threshold(MAX_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name_owned = name.to_owned();
        self.serve(Call::Lookup, (parent, Some(name)), reply, move |tree| tree.lookup(parent.0, &name_owned));
    }

    fn forget(&self, _request: &Request, ino: INodeNo, lookups: u64) {
        self.tree.forget(ino.0, lookups);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        self.serve(Call::Getattr, (ino, None), reply, move |tree| tree.getattr(ino.0, fh.map(u64::from)));
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = Changes { mode, uid, gid, size, atime, mtime };
        self.serve(Call::Setattr, (ino, None), reply, move |tree| tree.setattr(ino.0, fh.map(u64::from), &changes));
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        self.serve(Call::Readlink, (ino, None), reply, move |tree| tree.readlink(ino.0));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let (name_owned, owner) = (name.to_owned(), owner(request));
        self.serve(Call::Mknod, (parent, Some(name)), reply, move |tree| {
            tree.mknod(parent.0, &name_owned, mode, rdev, owner)
        });
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let (name_owned, owner) = (name.to_owned(), owner(request));
        self.serve(Call::Mkdir, (parent, Some(name)), reply, move |tree| {
            tree.mkdir(parent.0, &name_owned, mode, owner)
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name_owned = name.to_owned();
        self.serve(Call::Unlink, (parent, Some(name)), reply, move |tree| {
            tree.remove(parent.0, &name_owned, AtFlags::empty())
        });
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name_owned = name.to_owned();
        self.serve(Call::Rmdir, (parent, Some(name)), reply, move |tree| {
            tree.remove(parent.0, &name_owned, AtFlags::REMOVEDIR)
        });
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (name_owned, target, owner) = (name.to_owned(), target.to_owned(), owner(request));
        self.serve(Call::Symlink, (parent, Some(name)), reply, move |tree| {
            tree.symlink(parent.0, &name_owned, &target, owner)
        });
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (name.to_owned(), new_name.to_owned());
        self.serve(Call::Rename, (parent, Some(name)), reply, move |tree| {
            tree.rename((parent.0, &from), (new_parent.0, &to), flags.bits())
        });
    }

    fn link(&self, _request: &Request, ino: INodeNo, new_parent: INodeNo, new_name: &OsStr, reply: ReplyEntry) {
        let name_owned = new_name.to_owned();
        self.serve(Call::Link, (new_parent, Some(new_name)), reply, move |tree| {
            tree.link(ino.0, new_parent.0, &name_owned)
        });
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let call = if opens_for_writing(flags.0) { Call::OpenForWriting } else { Call::Open };
        self.serve(call, (ino, None), reply, move |tree| tree.open(ino.0, flags.0));
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.serve(Call::Read, (ino, None), reply, move |tree| tree.read(fh.into(), offset, size));
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = data.to_vec();
        self.serve(Call::Write, (ino, None), reply, move |tree| tree.write(fh.into(), offset, &data));
    }

    fn flush(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        self.serve(Call::Flush, (ino, None), reply, |_| Ok(()));
    }

    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.serve(Call::Release, (ino, None), reply, move |tree| {
            tree.release(fh.into());
            Ok(())
        });
    }

    fn fsync(&self, _request: &Request, ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        self.serve(Call::Fsync, (ino, None), reply, move |tree| tree.fsync(fh.into(), datasync));
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.serve(Call::Opendir, (ino, None), reply, move |tree| tree.opendir(ino.0));
    }

    fn readdir(&self, _request: &Request, ino: INodeNo, fh: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.serve(Call::Readdir, (ino, None), reply, move |tree| {
            Ok((tree.listing(fh.into())?, usize::try_from(offset).unwrap_or(usize::MAX)))
        });
    }

    fn readdirplus(&self, _request: &Request, ino: INodeNo, fh: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        let tree = Arc::clone(&self.tree);
        let answer =
            Box::new(move |refusal: Option<Errno>| match refusal.map_or_else(|| tree.listing(fh.into()), Err) {
                Ok(listing) => list_plus(&tree, ino, &listing, offset, reply),
                Err(error) => reply.error(errno(error)),
            });
        self.server.submit(Call::Readdirplus, || self.tree.relative(ino.0, None), answer);
    }

    fn releasedir(&self, _request: &Request, ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        self.serve(Call::Releasedir, (ino, None), reply, move |tree| {
            tree.releasedir(fh.into());
            Ok(())
        });
    }

    fn fsyncdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.serve(Call::Fsyncdir, (ino, None), reply, |_| Ok(()));
    }

    fn statfs(&self, _request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.serve(Call::Statfs, (ino, None), reply, Tree::statfs);
    }

    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value) = (name.to_owned(), value.to_vec());
        self.serve(Call::Setxattr, (ino, None), reply, move |tree| tree.setxattr(ino.0, &name, &value, flags));
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.serve(Call::Getxattr, (ino, None), reply, move |tree| Ok((size, tree.getxattr(ino.0, &name)?)));
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.serve(Call::Listxattr, (ino, None), reply, move |tree| Ok((size, tree.listxattr(ino.0)?)));
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.serve(Call::Removexattr, (ino, None), reply, move |tree| tree.removexattr(ino.0, &name));
    }

    /// Everything may be accessed; with the option `default_permissions` the kernel decides and never asks.
    fn access(&self, _request: &Request, ino: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        self.serve(Call::Access, (ino, None), reply, |_| Ok(()));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (name_owned, owner) = (name.to_owned(), owner(request));
        self.serve(Call::Create, (parent, Some(name)), reply, move |tree| {
            tree.create(parent.0, &name_owned, mode, flags, owner)
        });
    }

    /// No file of the mount has a control call; most programs that try one go on without.
    fn ioctl(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _flags: IoctlFlags,
        _command: u32,
        _input: &[u8],
        _output_size: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(fuser::Errno::ENOTTY);
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.serve(Call::Fallocate, (ino, None), reply, move |tree| tree.fallocate(fh.into(), offset, length, mode));
    }

    fn lseek(&self, _request: &Request, ino: INodeNo, fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        self.serve(Call::Lseek, (ino, None), reply, move |tree| tree.lseek(fh.into(), offset, whence));
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        self.serve(Call::CopyFileRange, (ino_out, None), reply, move |tree| {
            tree.copy_file_range((fh_in.into(), offset_in), (fh_out.into(), offset_out), len)
        });
    }
}

/// Fills a listing with attributes; each name that fits counts as looked up.
fn list_plus(tree: &Tree, dir: INodeNo, listing: &[Item], offset: u64, mut reply: ReplyDirectoryPlus) {
    let first = usize::try_from(offset).unwrap_or(usize::MAX);
    for (place, item) in listing.iter().enumerate().skip(first) {
        let is_dot = item.name == "." || item.name == "..";
        let found = if is_dot {
            tree.getattr(dir.0, None).map(|attributes| (attributes, fuser::Generation(0)))
        } else {
            tree.lookup(dir.0, &item.name)
        };
        // A file that went away since the listing was read is left out.
        let Ok((attributes, generation)) = found else { continue };
        if reply.add(attributes.ino, place as u64 + 1, &item.name, &TTL, &attributes, generation) {
            if !is_dot {
                tree.forget(attributes.ino.0, 1);
            }
            break;
        }
    }
    reply.ok();
}
