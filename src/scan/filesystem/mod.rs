//! Where a path really is: its mount, what kind of place that is, and on which platform.
//!
//! The kernel is asked for the mount of the path (`statx`, else `/proc/self/fdinfo`), and the answer is looked up in
//! `/proc/self/mountinfo`; only where neither tells is the table walked by its text. Nothing is decided by how a path
//! is spelt. Of all mounts only the one that the path is on is touched, since any other may be a server that is gone.

pub mod kernel;
pub mod mount_table;
pub mod platform;
pub mod rules;
pub mod spelling;
pub mod target;
mod wsl;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use self::mount_table::{Lookup, Mount, MountTable, normalize};
use self::platform::{PlatformAnswer, Signs, SystemSigns};
use self::rules::{Classification, FilesystemRuleSet, MountFacts};
use self::spelling::{Untranslated, WindowsPath};
use crate::error::{Error, printable, printable_text};
use crate::facts::{FilesystemClass, Platform, Site};

/// The mounts, the platform and the rules of one run; read once.
#[derive(Debug)]
pub struct System {
    /// The mount table.
    pub table: MountTable,
    /// The platform and what it was told by.
    pub platform: PlatformAnswer,
    rules: FilesystemRuleSet,
    /// Names of WSL's virtiofs shares and the Windows paths behind them.
    shares: BTreeMap<String, String>,
    share_names: BTreeSet<String>,
    distro: Option<String>,
    is_live: bool,
}

/// A place, the mount that it is on, and how that was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// What rules and reports see.
    pub site: Site,
    /// The mount.
    pub mount: Mount,
    /// How the mount was found.
    pub found_by: FoundBy,
    /// Why the mount is of its class, in the rule's words.
    pub because: String,
    /// Whether a repository may be copied there, by its kind alone.
    pub is_target: bool,
    /// What else a reader should know, one sentence each.
    pub notes: Vec<String>,
    /// Calls that resolved a path on that mount.
    pub calls_in_place: u64,
}

/// How the mount of a path was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// The kernel named the mount's id by `statx`.
    Statx,
    /// The kernel named the mount's id in `/proc/self/fdinfo` (before Linux 5.8).
    Fdinfo,
    /// The mounts on the way to the path were followed in the table.
    Table,
}

/// A question to the kernel about a path; [`kernel::find`] or the same put by another process.
pub type Ask<'a> = dyn Fn(&Path) -> io::Result<kernel::Answer> + 'a;

impl System {
    /// Reads the running system.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when neither `/proc/self/mountinfo` nor `/proc/mounts` can be read.
    pub fn live(rules: FilesystemRuleSet) -> Result<Self, Error> {
        let table = kernel::read_mount_table()?;
        let signs = Signs { system: Some(SystemSigns::collect()), ..Signs::of_table(&table) };
        let platform = platform::judge(&signs);
        let shares =
            if platform.platform == Platform::Wsl2 { wsl::read_shares(Path::new(wsl::SHARES)) } else { Vec::new() };
        let distro = std::env::var("WSL_DISTRO_NAME").ok().filter(|name| !name.is_empty());
        Ok(Self {
            table,
            platform,
            rules,
            share_names: shares.iter().map(|(name, _)| name.clone()).collect(),
            shares: shares.into_iter().filter_map(|(name, path)| Some((name, path?))).collect(),
            distro,
            is_live: true,
        })
    }

    /// Takes a saved mount table of either form in place of the running system; paths are then taken as they are.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when not one line can be read.
    pub fn from_table(text: &[u8], rules: FilesystemRuleSet) -> Result<Self, Error> {
        let table = MountTable::parse(text);
        if table.mounts.is_empty() {
            return Err(Error::refused(
                "the saved mount table has no line that can be read",
                "save it with `cat /proc/self/mountinfo > FILE` (or `/proc/mounts`)",
            ));
        }
        let platform = platform::judge(&Signs::of_table(&table));
        Ok(Self {
            table,
            platform,
            rules,
            shares: BTreeMap::new(),
            share_names: BTreeSet::new(),
            distro: None,
            is_live: false,
        })
    }

    /// Returns whether this is the running system and not a saved table.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns the Linux path of a path as the user gave it: on WSL, Windows spellings are looked up in the table.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when a Windows spelling leads to a drive that is not mounted, or to another distribution.
    pub fn resolve_spelling(&self, given: &Path) -> Result<PathBuf, Error> {
        let is_wsl = matches!(self.platform.platform, Platform::Wsl1 | Platform::Wsl2);
        match given.to_str().filter(|_| is_wsl).and_then(WindowsPath::parse) {
            Some(windows) => windows
                .to_linux(&self.table, &self.shares, self.distro.as_deref())
                .map_err(|problem| self.untranslated(&windows, problem)),
            None => Ok(given.to_owned()),
        }
    }

    /// Finds the mount of a path and what kind of place it is.
    ///
    /// May never return when the mount's server is gone: call it in a process that can be left behind.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when there is nothing at the path; [`Error::Refused`] when its drive is not mounted, when its mount
    /// is gone or does not answer, and for a relative path with a saved table.
    pub fn locate(&self, given: &Path) -> Result<Location, Error> {
        self.locate_by(given, &kernel::find)
    }

    /// Like [`System::locate`], with the question to the kernel put by `ask`, which may have another process do it.
    ///
    /// # Errors
    ///
    /// As [`System::locate`].
    pub fn locate_by(&self, given: &Path, ask: &Ask<'_>) -> Result<Location, Error> {
        let path = self.resolve_spelling(given)?;
        if !self.is_live {
            if !path.is_absolute() {
                return Err(Error::refused(
                    format!("`{}` is relative, and a saved mount table has no current directory", printable(&path)),
                    "give the whole path",
                ));
            }
            return self.by_table(&self.table, &path, &normalize(&path));
        }
        let absolute = std::path::absolute(&path).map_err(|error| Error::io("find", &path, error))?;
        self.ask_kernel(&absolute, ask)
    }

    /// Like [`System::locate`], for a path that need not exist yet: the mount of its nearest existing parent counts.
    ///
    /// # Errors
    ///
    /// As [`System::locate`], but for 'no such file'.
    pub fn locate_nearest(&self, given: &Path) -> Result<Location, Error> {
        let is_missing = |error: &Error| {
            let Error::Io { source, .. } = error else { return false };
            matches!(source.kind(), io::ErrorKind::NotFound)
        };
        let first = match self.locate(given) {
            Err(error) if is_missing(&error) => error,
            other => return other,
        };
        let path = normalize(
            &std::path::absolute(self.resolve_spelling(given)?).map_err(|error| Error::io("find", given, error))?,
        );
        for parent in path.ancestors().skip(1) {
            match self.ask_kernel(parent, &kernel::find) {
                Ok(mut location) => {
                    let missing = path.strip_prefix(parent).unwrap_or(Path::new(""));
                    let real = Path::new(&location.site.real_path).join(missing);
                    location.site.windows_path = self.windows_path(&real, &location.mount, location.site.class);
                    location.site.real_path = text(&real);
                    location.site.path = text(&path);
                    return Ok(location);
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(first)
    }

    /// Returns the drive's letter when a path lies in the folder where WSL would mount a drive, and none is mounted.
    ///
    /// For messages only: the folder itself is an ordinary one on the distribution's disk.
    #[must_use]
    pub fn unmounted_drive(&self, path: &Path) -> Option<char> {
        if !self.is_live || !matches!(self.platform.platform, Platform::Wsl1 | Platform::Wsl2) {
            return None;
        }
        let (letter, folder) = wsl::drive_folder(path, &self.automount_root())?;
        let Lookup::Mount(mount) = self.table.lookup(&folder) else { return None };
        let is_mounted =
            mount.mount_point == folder || self.table.mounts.iter().any(|mount| mount.mount_point.starts_with(&folder));
        if is_mounted {
            return None;
        }
        // A folder that holds something is in use as what it is.
        let is_empty = fs::read_dir(&folder).map_or(true, |mut entries| entries.next().is_none());
        is_empty.then_some(letter)
    }

    /// Returns a better error for one that came up at `path`: in the empty folder of a drive that did not come up there is
    /// no repository either, but that is not what is wrong.
    #[must_use]
    pub fn explain(&self, path: &Path, error: Error) -> Error {
        let path = normalize(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        match self.unmounted_drive(&path) {
            Some(letter) => wsl::drive_not_mounted(letter, &printable(&path), &self.automount_root()),
            None => error,
        }
    }

    fn ask_kernel(&self, path: &Path, ask: &Ask<'_>) -> Result<Location, Error> {
        let ask = |path: &Path| ask(path).map_err(|error| self.unreachable(path, error));
        let mut answer = ask(path)?;
        let mut fresh = None;
        let known = answer.mount_id.map(|(id, _)| self.table.by_id(id));
        if let Some(mount) = known
            && mount.is_none_or(|mount| mount.fstype == mount_table::AUTOFS)
        {
            if mount.is_some() {
                // An automount point is entered by whoever looks below it.
                let calls = answer.calls;
                answer = ask(&path.join("."))?;
                answer.calls += calls;
            }
            // The mount is younger than the table.
            fresh = Some(kernel::read_mount_table()?);
        }
        let table = fresh.as_ref().unwrap_or(&self.table);
        let by_id = answer.mount_id.and_then(|(id, found_by)| Some((table.by_id(id)?, found_by)));
        let mut location = match by_id {
            Some((mount, found_by)) => self.describe(path, &answer.real_path, mount, found_by)?,
            None => self.by_table(table, path, &answer.real_path)?,
        };
        location.calls_in_place = answer.calls;
        if let Some(letter) = self.unmounted_drive(Path::new(&location.site.real_path)) {
            location
                .notes
                .push(format!("drive {letter}: is not mounted; this is a folder of the distribution's own disk"));
        }
        Ok(location)
    }

    fn by_table(&self, table: &MountTable, given: &Path, real: &Path) -> Result<Location, Error> {
        match table.lookup(real) {
            Lookup::Mount(mount) => self.describe(given, real, mount, FoundBy::Table),
            Lookup::Automount(mount) => Err(automount(mount)),
            Lookup::Nothing => Err(Error::refused(
                format!("no mount of the table covers `{}`", printable(real)),
                "check that the table is whole, and that the path is of the same system",
            )),
        }
    }

    fn describe(&self, given: &Path, real: &Path, mount: &Mount, found_by: FoundBy) -> Result<Location, Error> {
        if mount.fstype == mount_table::AUTOFS {
            return Err(automount(mount));
        }
        let Classification { class, name, transport, is_target, rule, because } =
            self.classify(mount).ok_or_else(|| {
                Error::refused(
                    format!("no filesystem rule matches the type `{}`", printable_text(&mount.fstype)),
                    "let the last rule of your own set have an empty `when`, so that it always matches",
                )
            })?;
        let site = Site {
            path: text(given),
            real_path: text(real),
            mount_point: text(&mount.mount_point),
            fstype: mount.fstype.clone(),
            source: mount.source.clone(),
            options: mount.options.clone(),
            class,
            name,
            transport,
            read_only: mount.is_read_only,
            windows_path: self.windows_path(real, mount, class),
            rule,
        };
        let mount = mount.clone();
        Ok(Location { site, mount, found_by, because, is_target, notes: Vec::new(), calls_in_place: 0 })
    }

    fn classify(&self, mount: &Mount) -> Option<Classification> {
        let facts = MountFacts { mount, platform: self.platform.platform, shares: &self.share_names };
        self.rules.classify(facts)
    }

    fn windows_path(&self, real: &Path, mount: &Mount, class: FilesystemClass) -> Option<String> {
        let distro = match self.platform.platform {
            Platform::Wsl1 | Platform::Wsl2 => self.distro.as_deref(),
            _ => None,
        };
        let is_windows = matches!(class, FilesystemClass::WindowsDrive | FilesystemClass::Network);
        spelling::windows_path(real, mount, is_windows, &self.shares, distro).map(|path| path.to_string())
    }

    fn automount_root(&self) -> PathBuf {
        wsl::automount_root(&self.table)
    }

    fn untranslated(&self, windows: &WindowsPath, problem: Untranslated) -> Error {
        let spelt = printable_text(&windows.to_string());
        match problem {
            Untranslated::NotMounted => match windows {
                WindowsPath::Drive { letter, .. } => wsl::drive_not_mounted(*letter, &spelt, &self.automount_root()),
                _ => Error::refused(
                    format!("nothing that is mounted here shows `{spelt}`"),
                    format!("mount the share (`sudo mount -t drvfs '{spelt}' DIR`), or give the path on Linux"),
                ),
            },
            Untranslated::Hidden(path) => Error::refused(
                format!("`{spelt}` would be `{}`, but another mount lies over that folder", printable(&path)),
                "run rehome on Windows' side of it, or unmount what lies over it",
            ),
            Untranslated::OtherDistro(name) => {
                let (name, own) = (printable_text(&name), self.distro.as_deref().unwrap_or("this one"));
                Error::refused(
                    format!("`{spelt}` is in the distribution {name}, and rehome runs in {own}"),
                    format!("run rehome there: `wsl -d {name} rehome`"),
                )
            }
        }
    }

    /// Says what is wrong with a path that the kernel could not reach.
    fn unreachable(&self, path: &Path, error: io::Error) -> Error {
        let lookup = self.table.lookup(&normalize(path));
        let is_gone = |errno: Errno| {
            let gone = [Errno::NOTCONN, Errno::CONNABORTED, Errno::STALE, Errno::HOSTDOWN, Errno::TIMEDOUT];
            gone.contains(&errno)
        };
        match (kernel::errno(&error), lookup) {
            (Some(errno), Lookup::Mount(mount)) if is_gone(errno) => Error::refused(
                format!(
                    "the mount at `{}` ({} from `{}`) does not answer: {error}",
                    printable(&mount.mount_point),
                    printable_text(&mount.fstype),
                    printable_text(&mount.source)
                ),
                format!(
                    "unmount it (`sudo umount -l {}`), mount it again, and run rehome again",
                    printable(&mount.mount_point)
                ),
            ),
            (Some(Errno::NOENT), _) => match self.unmounted_drive(&normalize(path)) {
                Some(letter) => wsl::drive_not_mounted(letter, &printable(path), &self.automount_root()),
                None => Error::io("find", path, error),
            },
            _ => Error::io("find", path, error),
        }
    }
}

fn automount(mount: &Mount) -> Error {
    let point = printable(&mount.mount_point);
    Error::refused(
        format!("`{point}` is an automount point, and nothing is mounted there"),
        format!("open it once (`ls {point}/`), see why its mount does not come up, and run rehome again"),
    )
}

/// A path as text; bytes that are no UTF-8 are replaced, which JSON needs.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(table: &str) -> System {
        System::from_table(table.as_bytes(), FilesystemRuleSet::builtin().unwrap()).unwrap()
    }

    fn live() -> System {
        System::live(FilesystemRuleSet::builtin().unwrap()).unwrap()
    }

    #[test]
    fn a_link_is_followed_and_both_spellings_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir(dir.join("real")).unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        let location = live().locate(&dir.join("link")).unwrap();
        assert_eq!(location.site.path, text(&dir.join("link")));
        assert_eq!(location.site.real_path, text(&dir.join("real")));
    }

    #[test]
    fn the_kernel_and_the_table_agree_on_this_system() {
        let system = live();
        for path in ["/", "/proc", "/dev", "/sys"] {
            let location = system.locate(Path::new(path)).unwrap();
            assert_ne!(location.found_by, FoundBy::Table);
            assert_eq!(system.table.lookup(Path::new(path)), Lookup::Mount(&location.mount), "{path}");
            assert_eq!(location.calls_in_place, 1);
        }
    }

    #[test]
    fn a_place_that_does_not_exist_yet_is_on_its_parent_s_mount() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().canonicalize().unwrap().join("a/../b/c");
        let system = live();
        assert!(matches!(system.locate(&missing), Err(Error::Io { .. })));
        let location = system.locate_nearest(&missing).unwrap();
        assert_eq!(location.site.real_path, text(&dir.path().canonicalize().unwrap().join("b/c")));
        assert_eq!(location.mount, system.locate(dir.path()).unwrap().mount);
    }

    #[test]
    fn a_saved_table_needs_a_whole_path_that_it_covers() {
        let message = |table: &str, path: &str| saved(table).locate(Path::new(path)).unwrap_err().to_string();
        assert_eq!(
            message("/dev/sda1 / ext4 rw 0 0", "src"),
            "`src` is relative, and a saved mount table has no current directory"
        );
        assert_eq!(message("/dev/sda1 /var ext4 rw 0 0", "/srv"), "no mount of the table covers `/srv`");
        assert_eq!(
            message("/dev/sda1 / ext4 rw 0 0\nsystemd-1 /nas autofs rw,fd=41 0 0", "/nas/app"),
            "`/nas` is an automount point, and nothing is mounted there"
        );
        let error = System::from_table(b"no table\n", FilesystemRuleSet::builtin().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "the saved mount table has no line that can be read");
    }

    #[test]
    fn a_windows_spelling_is_looked_up_in_the_table_on_wsl_only() {
        let wsl = saved("/dev/sdd / ext4 rw 0 0\nD:\\134 /d 9p rw,aname=drvfs;path=D:\\;uid=0,trans=fd 0 0");
        let location = wsl.locate(Path::new(r"D:\src")).unwrap();
        assert_eq!((location.site.path.as_str(), location.site.fstype.as_str()), ("/d/src", "9p"));
        assert_eq!(location.site.windows_path.as_deref(), Some(r"D:\src"));
        let error = wsl.locate(Path::new(r"C:\src")).unwrap_err();
        assert_eq!(error.to_string(), r"cannot find `C:\src`: drive C: is not mounted");
        assert!(error.hint().unwrap().contains("sudo mount -t drvfs C: /mnt/c"));
        let linux = saved("/dev/sda1 / ext4 rw 0 0");
        assert!(linux.locate(Path::new(r"C:\src")).unwrap_err().to_string().contains("relative"));
    }

    /// The running system, taken for WSL 2 with its drives below `root`.
    fn live_wsl(root: &Path) -> System {
        let mut system = live();
        let id = system.table.root().unwrap().id.unwrap();
        let drive = format!(
            "999999 {id} 0:999 / {}/d rw - 9p D:\\134 rw,aname=drvfs;path=D:\\;symlinkroot={}/,trans=fd\n",
            root.display(),
            root.display()
        );
        system.table.mounts.extend(MountTable::parse(drive.as_bytes()).mounts);
        system.platform.platform = Platform::Wsl2;
        system.distro = Some("Ubuntu".to_owned());
        system
    }

    #[test]
    fn the_empty_folder_of_a_drive_that_did_not_come_up_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("c")).unwrap();
        fs::create_dir_all(root.join("e/linux-files")).unwrap();
        let system = live_wsl(&root);

        let error = system.locate(&root.join("c/src/app")).unwrap_err();
        assert!(error.to_string().ends_with("drive C: is not mounted"), "{error}");
        let other = || Error::refused("not a git repository", "");
        assert!(system.explain(&root.join("c"), other()).to_string().ends_with("drive C: is not mounted"));
        assert_eq!(system.explain(&root.join("e"), other()).to_string(), "not a git repository");
        let folder = system.locate(&root.join("c")).unwrap();
        assert_ne!(folder.site.class, FilesystemClass::WindowsDrive);
        assert_eq!(folder.notes.len(), 1);

        // A folder with something in it is a folder, and so is one whose name is no letter.
        for path in ["e/linux-files", "e/missing", "cache/app", "d/src"] {
            assert_eq!(system.unmounted_drive(&root.join(path)), None, "{path}");
        }
        assert!(matches!(system.locate(&root.join("e/missing")), Err(Error::Io { .. })));
    }

    #[test]
    fn a_place_in_another_distribution_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let system = live_wsl(&dir.path().canonicalize().unwrap());
        let error = system.locate(Path::new(r"\\wsl$\Debian\home")).unwrap_err();
        assert_eq!(
            error.to_string(),
            r"`\\wsl.localhost\Debian\home` is in the distribution Debian, and rehome runs in Ubuntu"
        );
        let location = system.locate(Path::new("//wsl.localhost/Ubuntu/proc")).unwrap();
        assert_eq!(location.site.path, "/proc");
    }
}
