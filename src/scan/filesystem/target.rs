//! Choosing the place where a copy is measured and a move would go.

use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::{Location, System, kernel, spelling};
use crate::error::{Error, printable, printable_text};
use crate::facts::{FilesystemClass, Platform, Target};

/// The filesystem that is taken where there is one: what WSL and most distributions give to home directories.
const PREFERRED: &str = "ext4";
/// The drive on which Windows keeps a distribution's disk image unless it was moved.
const HOST_DRIVE: char = 'C';

/// What is wanted of a target.
#[derive(Debug, Clone, Default)]
pub struct TargetRequest<'a> {
    /// `--target DIR`; nothing else is looked at then.
    pub explicit: Option<&'a Path>,
    /// `--target-fs TYPES`; empty for ext4 where there is one, else any local disk filesystem.
    pub allowed_fs: &'a [String],
    /// Where the repository is; absent when the target is looked for on its own.
    pub repository: Option<&'a Location>,
    /// The places that are tried in their order when no explicit one is given.
    pub places: Vec<PathBuf>,
}

impl<'a> TargetRequest<'a> {
    /// Makes a request with the default places: the home directory, then `$XDG_CACHE_HOME` (`~/.cache`).
    #[must_use]
    pub fn new(explicit: Option<&'a Path>, allowed_fs: &'a [String], repository: Option<&'a Location>) -> Self {
        let home = etcetera::home_dir().ok();
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = cache.or_else(|| home.as_ref().map(|home| home.join(".cache")));
        Self { explicit, allowed_fs, repository, places: home.into_iter().chain(cache).collect() }
    }
}

/// Why a place cannot be the target.
struct Refusal {
    message: String,
    hint: String,
}

/// Returns the place for the copy; it need not exist yet.
///
/// # Errors
///
/// [`Error::Refused`] when the place (or every default place) is in memory, in a container's layer, shared, on a
/// network, read-only, of a type that is not allowed, or on the repository's own filesystem; the hint says what to do.
pub fn choose_target(system: &System, request: &TargetRequest<'_>) -> Result<Target, Error> {
    if let Some(explicit) = request.explicit {
        let location = system.locate_nearest(explicit)?;
        return match refusal(system, request, &location) {
            Some(Refusal { message, hint }) => Err(Error::refused(message, hint)),
            None => Ok(target(system, location)),
        };
    }
    let mut suitable = Vec::new();
    let mut refusals = Vec::new();
    for place in &request.places {
        match system.locate_nearest(place) {
            Ok(location) => match refusal(system, request, &location) {
                None => suitable.push(location),
                Some(refusal) => refusals.push(refusal),
            },
            Err(error) => refusals.push(Refusal {
                message: error.to_string(),
                hint: error.hint().unwrap_or_else(|| name_a_directory(system)),
            }),
        }
    }
    let preferred = suitable.iter().position(|location| location.site.fstype == PREFERRED).unwrap_or(0);
    if preferred < suitable.len() {
        return Ok(target(system, suitable.swap_remove(preferred)));
    }
    let Some(first) = refusals.first() else {
        return Err(Error::refused("there is no home directory to make the copy in", name_a_directory(system)));
    };
    let mut messages: Vec<&str> = refusals.iter().map(|refusal| refusal.message.as_str()).collect();
    messages.dedup();
    Err(Error::refused(format!("no place for the copy: {}", messages.join("; ")), first.hint.clone()))
}

fn target(system: &System, location: Location) -> Target {
    let existing = Path::new(&location.site.real_path).ancestors().find(|path| path.exists());
    let free_bytes = existing.and_then(|path| kernel::free_bytes(path).ok());
    let host_free_bytes = host_free_bytes(system, &location);
    Target { site: location.site, free_bytes, host_free_bytes }
}

/// Free bytes of the drive that the distribution's disk image grows on.
///
/// Best effort: an image is on `C:` unless it was moved there by hand, which nothing in the distribution tells; `None`
/// where `C:` is not mounted, and for a disk that is not the distribution's own.
fn host_free_bytes(system: &System, location: &Location) -> Option<u64> {
    let is_own_disk = system.table.root().is_some_and(|root| root.is_same_filesystem(&location.mount));
    if system.platform.platform != Platform::Wsl2 || !system.is_live || !is_own_disk {
        return None;
    }
    let drive = spelling::WindowsPath::Drive { letter: HOST_DRIVE, parts: Vec::new() };
    let root = drive.to_linux(&system.table, &system.shares, None).ok()?;
    kernel::free_bytes(&root).ok()
}

fn refusal(system: &System, request: &TargetRequest<'_>, location: &Location) -> Option<Refusal> {
    let site = &location.site;
    let path = printable(&site.path);
    let (fstype, name) = (printable_text(&site.fstype), printable_text(&site.name));
    let refuse = |reason: String, hint: String| Some(Refusal { message: format!("`{path}` {reason}"), hint });
    let elsewhere = || name_a_directory(system);
    match site.class {
        FilesystemClass::Memory => {
            return refuse(format!("is in memory ({fstype}) and gone at the next restart"), elsewhere());
        }
        FilesystemClass::Overlay => {
            return refuse(format!("is in a layer that is thrown away ({fstype})"), elsewhere());
        }
        FilesystemClass::Network => {
            return refuse(format!("is on a network filesystem ({fstype}, {name})"), elsewhere());
        }
        FilesystemClass::VmShared => {
            return refuse(format!("is a folder of the host ({fstype}, {name})"), elsewhere());
        }
        FilesystemClass::WindowsDrive => {
            return refuse(format!("is on a Windows drive ({fstype})"), elsewhere());
        }
        FilesystemClass::Fuse | FilesystemClass::LocalNative => {}
    }
    if site.read_only {
        return refuse(format!("is on a filesystem that is mounted read-only ({fstype})"), elsewhere());
    }
    let is_named = request.allowed_fs.contains(&site.fstype);
    if !request.allowed_fs.is_empty() && !is_named {
        let wanted = printable_text(&request.allowed_fs.join(", "));
        let hint = format!("name a directory on {wanted} with `--target DIR`, or add {fstype} to `--target-fs`");
        return refuse(format!("is on {fstype}, and `--target-fs` allows {wanted}"), hint);
    }
    if !is_named && !location.is_target {
        let hint = format!("{}; `--target-fs {fstype}` takes it all the same", elsewhere());
        return refuse(format!("is on {fstype} ({name}), which is no place for a repository"), hint);
    }
    if request.repository.is_some_and(|repository| repository.mount.is_same_filesystem(&location.mount)) {
        let source = printable_text(&site.source);
        let hint = "nothing can be gained there; name a directory on another disk with `--target DIR`".to_owned();
        return refuse(format!("is on the repository's own filesystem ({fstype}, {source})"), hint);
    }
    if is_attached_for_now(system, location) {
        return refuse("is on a disk that is only attached while WSL runs".to_owned(), elsewhere());
    }
    let existing = Path::new(&site.real_path).ancestors().find(|path| path.exists());
    if system.is_live && existing.is_some_and(|path| rustix::fs::access(path, Access::WRITE_OK).is_err()) {
        let hint = "name a directory of your own with `--target DIR`".to_owned();
        return refuse("cannot be written by you".to_owned(), hint);
    }
    None
}

/// On WSL 2, disks of other distributions and shared views appear below a memory filesystem and go away with it.
fn is_attached_for_now(system: &System, location: &Location) -> bool {
    let Some(parent) = location.mount.mount_point.parent() else { return false };
    let super::Lookup::Mount(below) = system.table.lookup(parent) else { return false };
    system.platform.platform == Platform::Wsl2
        && system.classify(below).is_some_and(|kind| kind.class == FilesystemClass::Memory)
}

fn name_a_directory(system: &System) -> String {
    match system.platform.platform {
        Platform::Container => {
            "mount a volume into the container (`docker volume create`, then `-v NAME:/DIR`) and name \
                                it with `--target /DIR`"
                .to_owned()
        }
        _ => "name a directory on a local disk (ext4 is best) with `--target DIR`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::FilesystemRuleSet;
    use super::*;

    fn system(table: &str) -> System {
        System::from_table(table.as_bytes(), FilesystemRuleSet::builtin().unwrap()).unwrap()
    }

    fn choose(table: &str, repository: &str, places: &[&str], allowed_fs: &[&str]) -> Result<Target, Error> {
        let system = system(table);
        let repository = system.locate(Path::new(repository)).unwrap();
        let allowed_fs: Vec<String> = allowed_fs.iter().map(|&fstype| fstype.to_owned()).collect();
        let places = places.iter().map(PathBuf::from).collect();
        let request = TargetRequest { explicit: None, allowed_fs: &allowed_fs, repository: Some(&repository), places };
        choose_target(&system, &request)
    }

    const WSL: &str = "/dev/sdd / ext4 rw,discard,errors=remount-ro 0 0\n\
        C:\\134 /mnt/c 9p rw,aname=drvfs;path=C:\\;uid=0,trans=fd 0 0\n";

    #[test]
    fn the_home_directory_is_taken_where_it_is_on_ext4() {
        let target = choose(WSL, "/mnt/c/app", &["/home/me", "/home/me/.cache"], &[]).unwrap();
        assert_eq!((target.site.path.as_str(), target.site.fstype.as_str()), ("/home/me", "ext4"));
    }

    #[test]
    fn the_cache_is_taken_where_only_it_is_on_ext4() {
        let table = "/dev/sda1 / xfs rw 0 0\n/dev/sdb1 /cache ext4 rw 0 0\nsrv:/x /w nfs rw 0 0";
        let places = ["/home/me", "/cache/me"];
        assert_eq!(choose(table, "/w/app", &places, &[]).unwrap().site.path, "/cache/me");
        assert_eq!(choose(table, "/w/app", &places, &["xfs"]).unwrap().site.path, "/home/me");
    }

    #[test]
    fn another_disk_filesystem_is_taken_under_its_own_name() {
        let table = "/dev/sda1 / btrfs rw,subvol=/@ 0 0\nsrv:/x /w nfs rw 0 0";
        assert_eq!(choose(table, "/w/app", &["/home/me"], &[]).unwrap().site.fstype, "btrfs");
    }

    #[test]
    fn every_unfit_place_is_refused_in_its_own_words() {
        for (line, reason) in [
            ("tmpfs /t tmpfs rw 0 0", "`/t` is in memory (tmpfs) and gone at the next restart"),
            ("none /t ramfs rw 0 0", "`/t` is in memory (ramfs) and gone at the next restart"),
            ("overlay /t overlay rw 0 0", "`/t` is in a layer that is thrown away (overlay)"),
            ("srv:/t /t nfs4 rw 0 0", "`/t` is on a network filesystem (nfs4, NFS)"),
            ("mount0 /t virtiofs rw 0 0", "`/t` is a folder of the host (virtiofs, virtiofs share of the host)"),
            (r"D:\134 /t 9p rw,aname=drvfs;path=D:\,trans=fd 0 0", "`/t` is on a Windows drive (9p)"),
            ("/dev/sdb1 /t ext4 ro 0 0", "`/t` is on a filesystem that is mounted read-only (ext4)"),
            ("/dev/sdb1 /t ntfs3 rw 0 0", "`/t` is on ntfs3 (ntfs3), which is no place for a repository"),
            (
                "/dev/sdb1 /t fuseblk rw 0 0",
                "`/t` is on fuseblk (disk filesystem over FUSE), which is no place for a repository",
            ),
            ("/dev/sdz9 /t ext4 rw 0 0", "`/t` is on the repository's own filesystem (ext4, /dev/sdz9)"),
        ] {
            let table = format!("/dev/sda1 / ext4 rw 0 0\n/dev/sdz9 /repo ext4 rw 0 0\n{line}\n");
            let error = choose(&table, "/repo/app", &["/t"], &[]).unwrap_err();
            assert_eq!(error.to_string(), format!("no place for the copy: {reason}"));
            assert!(error.hint().unwrap().contains("--target DIR"), "{:?}", error.hint());
        }
    }

    #[test]
    fn a_type_that_is_not_allowed_is_refused_by_name() {
        let error = choose(WSL, "/mnt/c/app", &["/home/me"], &["xfs", "btrfs"]).unwrap_err().to_string();
        assert_eq!(error, "no place for the copy: `/home/me` is on ext4, and `--target-fs` allows xfs, btrfs");
        let ntfs = "/dev/sda1 / ntfs3 rw 0 0\nsrv:/x /w nfs rw 0 0";
        assert_eq!(choose(ntfs, "/w/app", &["/home/me"], &["ntfs3"]).unwrap().site.fstype, "ntfs3");
    }

    #[test]
    fn a_container_without_a_disk_is_told_about_volumes() {
        let table = "overlay / overlay rw 0 0\n/run/host_mark/Users /w fakeowner rw,fakeowner 0 0";
        let error = choose(table, "/w/app", &["/root", "/root/.cache"], &[]).unwrap_err();
        assert!(error.hint().unwrap().contains("volume"), "{:?}", error.hint());
    }

    #[test]
    fn a_disk_of_another_distribution_is_no_target() {
        let table = format!("{WSL}none /mnt/wsl tmpfs rw 0 0\n/dev/sde /mnt/wsl/rancher/data ext4 rw 0 0\n");
        let error = choose(&table, "/mnt/c/app", &["/mnt/wsl/rancher/data/me"], &[]).unwrap_err().to_string();
        assert!(error.contains("only attached while WSL runs"), "{error}");
    }

    #[test]
    fn two_subvolumes_are_one_filesystem() {
        let table = "1 0 0:30 /@ / rw - btrfs /dev/sda1 rw,subvol=/@\n\
            2 1 0:30 /@home /home rw - btrfs /dev/sda1 rw,subvol=/@home\n";
        let error = choose(table, "/srv/app", &["/home/me"], &[]).unwrap_err().to_string();
        assert!(error.contains("the repository's own filesystem"), "{error}");
    }

    #[test]
    fn free_space_is_that_of_the_place_on_a_running_system() {
        let system = System::live(FilesystemRuleSet::builtin().unwrap()).unwrap();
        let location = system.locate(Path::new("/")).unwrap();
        let target = target(&system, location);
        assert!(target.free_bytes.is_some());
    }
}
