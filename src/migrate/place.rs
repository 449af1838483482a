//! What the two filesystems are and can hold.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::Error;
use crate::facts::FilesystemClass;
use crate::migrate::fsys::{self, Kind};
use crate::migrate::git::Abilities;
use crate::migrate::inventory::Inventory;

/// A filesystem by the name that the kernel gives it, as far as its magic number tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) fstype: String,
    pub(super) class: FilesystemClass,
}

/// Magic numbers of statfs(2) with the type's name and class; what is not here counts as a disk of this system.
const MAGIC: &[(u32, &str, FilesystemClass)] = &[
    (0x0102_1994, "tmpfs", FilesystemClass::Memory),
    (0x8584_58f6, "ramfs", FilesystemClass::Memory),
    (0x794c_7630, "overlay", FilesystemClass::Overlay),
    (0x0102_1997, "9p", FilesystemClass::WindowsDrive),
    (0x6573_5546, "fuse", FilesystemClass::Fuse),
    (0x6969, "nfs", FilesystemClass::Network),
    (0xff53_4d42, "cifs", FilesystemClass::Network),
    (0xfe53_4d42, "smb3", FilesystemClass::Network),
    (0x5346_544e, "ntfs", FilesystemClass::WindowsDrive),
    (0x7366_746e, "ntfs3", FilesystemClass::WindowsDrive),
    (0x4d44, "vfat", FilesystemClass::WindowsDrive),
    (0x2011_bab0, "exfat", FilesystemClass::WindowsDrive),
    (0xef53, "ext4", FilesystemClass::LocalNative),
    (0x9123_683e, "btrfs", FilesystemClass::LocalNative),
    (0x5846_5342, "xfs", FilesystemClass::LocalNative),
];

/// Formats of Windows' own disks, whoever mounts them: without executable bits and owners, and one name in any case.
const WINDOWS_FORMATS: &[&str] = &["ntfs", "ntfs3", "vfat", "msdos", "exfat"];

impl Place {
    /// Returns the place that the mount table told, by what its format means for a move.
    pub(super) fn known(fstype: &str, class: FilesystemClass) -> Self {
        let is_windows = WINDOWS_FORMATS.contains(&fstype);
        let class = if is_windows { FilesystemClass::WindowsDrive } else { class };
        Self { fstype: fstype.to_owned(), class }
    }
}

/// Returns whether modes and owners of files are kept there as they are set.
pub(super) fn is_native(class: FilesystemClass) -> bool {
    matches!(class, FilesystemClass::LocalNative | FilesystemClass::Memory | FilesystemClass::Overlay)
}

/// Asks the kernel for the filesystem that an existing path is on.
pub(super) fn of(path: &Path) -> io::Result<Place> {
    let magic = rustix::fs::statfs(path)?.f_type;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the numbers are defined as 32 bits")]
    let magic = magic as u32;
    let known = MAGIC.iter().find(|(number, ..)| *number == magic);
    Ok(known.map_or_else(
        || Place { fstype: format!("type {magic:#x}"), class: FilesystemClass::LocalNative },
        |(_, name, class)| Place { fstype: (*name).to_owned(), class: *class },
    ))
}

/// Returns the bytes that an unprivileged user can still write at an existing path.
pub(super) fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Finds out what the filesystem of a directory of ours can hold, by the trials that `git init` makes.
pub(super) fn abilities(directory: &Path) -> Result<Abilities, Error> {
    let failed = |source: io::Error| Error::io("try out", directory, source);
    let fd = fsys::open_root(directory).map_err(failed)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let plain = OsStr::new("rehome-Trial");
    let file = rustix::fs::openat(&fd, plain, flags, Mode::from_raw_mode(0o644)).map_err(|e| failed(e.into()))?;
    let mode = || fsys::stat_at(&fd, plain).map(|stat| stat.mode & 0o100);
    let before = mode().map_err(failed)?;
    let set = rustix::fs::fchmod(&file, Mode::from_raw_mode(0o744));
    let modes = before == 0 && set.is_ok() && mode().map_err(failed)? != 0;
    let ignores_case = fsys::stat_at(&fd, OsStr::new("REHOME-tRIAL")).is_ok();
    let link = OsStr::new("rehome-link");
    let symlinks = rustix::fs::symlinkat("rehome-Trial", &fd, link).is_ok()
        && fsys::stat_at(&fd, link).is_ok_and(|stat| stat.kind == Kind::Symlink);
    for name in [plain, link] {
        let _ = rustix::fs::unlinkat(&fd, name, rustix::fs::AtFlags::empty());
    }
    Ok(Abilities { modes, symlinks, ignores_case })
}

/// Returns whether the mode bits of a source mean anything.
///
/// They do not where git was told so (`core.fileMode`), nor where a shared or foreign filesystem shows the same
/// executable bits for every file.
pub(super) fn modes_are_real(inventory: &Inventory, class: FilesystemClass, file_mode: Option<bool>) -> bool {
    if file_mode == Some(false) {
        return false;
    }
    let mut modes = inventory.entries.iter().filter(|entry| entry.stat.kind == Kind::File).map(|entry| entry.stat.mode);
    let first = modes.next().unwrap_or_default();
    let are_all_executable = first & 0o111 == 0o111 && modes.all(|mode| mode == first);
    is_native(class) || !are_all_executable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_in_a_format_of_windows_counts_as_a_windows_drive() {
        assert_eq!(Place::known("vfat", FilesystemClass::LocalNative).class, FilesystemClass::WindowsDrive);
        assert_eq!(Place::known("ntfs3", FilesystemClass::LocalNative).class, FilesystemClass::WindowsDrive);
        assert_eq!(Place::known("xfs", FilesystemClass::LocalNative).class, FilesystemClass::LocalNative);
        assert_eq!(Place::known("fuseblk", FilesystemClass::Fuse).class, FilesystemClass::Fuse);
    }

    #[test]
    fn the_filesystem_of_the_tests_holds_what_its_name_promises() {
        let dir = tempfile::tempdir().unwrap();
        let can = abilities(dir.path()).unwrap();
        assert!(can.modes && can.symlinks && !can.ignores_case);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(free_bytes(dir.path()).unwrap() > 0);
        assert_eq!(of(Path::new("/dev/shm")).unwrap().class, FilesystemClass::Memory);
    }
}
