//! Windows spellings of a place, and Linux paths for them, by the mount table alone.
//!
//! `C:` is wherever the table says that the drive (or a folder of it) is mounted; `/mnt` is never guessed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::mount_table::{Lookup, Mount, MountTable};

/// A place as Windows programs write it; components are kept as they were spelt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowsPath {
    /// `C:\src\app`.
    Drive {
        /// The drive's letter, in upper case.
        letter: char,
        /// The components below the drive's root.
        parts: Vec<String>,
    },
    /// `\\server\share\src`.
    Share {
        /// The server.
        server: String,
        /// The share.
        share: String,
        /// The components below the share.
        parts: Vec<String>,
    },
    /// `\\wsl.localhost\Ubuntu\home\me` or `\\wsl$\Ubuntu\home\me`.
    Distro {
        /// The distribution's name.
        name: String,
        /// The components below its root.
        parts: Vec<String>,
    },
}

/// Why a Windows spelling has no Linux path here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untranslated {
    /// No mount shows that drive, share or folder.
    NotMounted,
    /// A mount shows it, but another mount lies over the place.
    Hidden(PathBuf),
    /// It is in another distribution than the running one.
    OtherDistro(String),
}

/// The host names under which Windows shows the files of distributions.
const WSL_HOSTS: [&str; 2] = ["wsl.localhost", "wsl$"];
/// Characters that no Windows file name has (besides control characters).
const NOT_IN_WINDOWS_NAMES: &[char] = &['<', '>', ':', '"', '/', '\\', '|', '?', '*'];

impl WindowsPath {
    /// Reads `C:\a`, `C:/a`, `C:`, `\\?\C:\a`, `\\server\share\a` and the spellings of a distribution's files
    /// (`\\wsl.localhost\D\a`, `\\wsl$\D\a`, also with forward slashes); `None` for anything else.
    ///
    /// `C:a` (relative to the drive's own current folder) and `//server/share` (a valid Linux path) are left alone.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_slash = |c: char| c == '\\' || c == '/';
        let verbatim = text.strip_prefix(r"\\?\");
        let unc = verbatim.and_then(|rest| rest.strip_prefix(r"UNC\"));
        let text = verbatim.unwrap_or(text);
        if let Some((letter, rest)) = drive_prefix(text) {
            if !rest.is_empty() && !rest.starts_with(is_slash) {
                return None;
            }
            return Some(Self::Drive { letter, parts: split(rest) });
        }
        let is_backslashed = text.starts_with(r"\\") || unc.is_some();
        if !is_backslashed && !text.starts_with("//") {
            return None;
        }
        let mut fields = unc.unwrap_or_else(|| text.trim_start_matches(is_slash)).splitn(3, is_slash);
        // `?` and `.` introduce device paths, which are no files.
        let host = fields.next().filter(|host| !matches!(*host, "" | "?" | "."))?;
        let share = fields.next().filter(|share| !share.is_empty())?;
        let parts = split(fields.next().unwrap_or_default());
        if WSL_HOSTS.iter().any(|wsl| wsl.eq_ignore_ascii_case(host)) {
            return Some(Self::Distro { name: share.to_owned(), parts });
        }
        is_backslashed.then(|| Self::Share { server: host.to_owned(), share: share.to_owned(), parts })
    }

    /// Returns the Linux path of this place.
    ///
    /// Where several mounts show it, a mount of the drive itself goes before a bind mount, then the one that begins
    /// nearest to the place, then the later one. `distro` is the running distribution's name; with `None` any name is
    /// taken for it.
    ///
    /// # Errors
    ///
    /// See [`Untranslated`].
    pub fn to_linux(
        &self,
        table: &MountTable,
        shares: &BTreeMap<String, String>,
        distro: Option<&str>,
    ) -> Result<PathBuf, Untranslated> {
        if let Self::Distro { name, parts } = self {
            if distro.is_some_and(|own| !own.eq_ignore_ascii_case(name)) {
                return Err(Untranslated::OtherDistro(name.clone()));
            }
            return Ok(Path::new("/").join(parts.iter().collect::<PathBuf>()));
        }
        let mut candidates: Vec<(bool, usize, usize, PathBuf)> = Vec::new();
        let mut hidden = None;
        for (order, mount) in table.mounts.iter().enumerate() {
            let Some(base) = base_of(mount, shares) else { continue };
            let Some(rest) = self.below(&base) else { continue };
            let path = mount.mount_point.join(rest.iter().collect::<PathBuf>());
            if table.lookup(&path) == Lookup::Mount(mount) {
                candidates.push((!is_bind(mount), base.parts().len(), order, path));
            } else {
                hidden = Some(path);
            }
        }
        match (candidates.into_iter().max(), hidden) {
            (Some((.., path)), _) => Ok(path),
            (None, Some(path)) => Err(Untranslated::Hidden(path)),
            (None, None) => Err(Untranslated::NotMounted),
        }
    }

    /// Returns the components below the drive, share or distribution.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        match self {
            Self::Drive { parts, .. } | Self::Share { parts, .. } | Self::Distro { parts, .. } => parts,
        }
    }

    /// Returns the same place with `more` components appended; `None` when one cannot be a Windows name.
    #[must_use]
    pub fn join(&self, more: &Path) -> Option<Self> {
        let mut out = self.clone();
        let (Self::Drive { parts, .. } | Self::Share { parts, .. } | Self::Distro { parts, .. }) = &mut out;
        for component in more.components() {
            match component {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => parts.push(windows_name(name.to_str()?)?.to_owned()),
                Component::ParentDir | Component::Prefix(_) => return None,
            }
        }
        Some(out)
    }

    /// The components of `self` below `base`; `None` when it is not below. Windows compares without case.
    fn below(&self, base: &Self) -> Option<&[String]> {
        let is_same_root = match (self, base) {
            (Self::Drive { letter: own, .. }, Self::Drive { letter, .. }) => own == letter,
            (Self::Share { server: own, share: own_share, .. }, Self::Share { server, share, .. }) => {
                is_same_name(own, server) && is_same_name(own_share, share)
            }
            _ => false,
        };
        let (own, base) = (self.parts(), base.parts());
        let is_below =
            is_same_root && own.len() >= base.len() && own.iter().zip(base).all(|(own, base)| is_same_name(own, base));
        is_below.then(|| &own[base.len()..])
    }
}

impl fmt::Display for WindowsPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drive { letter, parts } => write!(out, "{letter}:\\{}", parts.join("\\")),
            Self::Share { server, share, parts } => write_unc(out, server, share, parts),
            Self::Distro { name, parts } => write_unc(out, WSL_HOSTS[0], name, parts),
        }
    }
}

fn write_unc(out: &mut fmt::Formatter<'_>, host: &str, share: &str, parts: &[String]) -> fmt::Result {
    write!(out, "\\\\{host}\\{share}")?;
    parts.iter().try_for_each(|part| write!(out, "\\{part}"))
}

/// Returns the Windows place that the root of a mount shows, `None` for a mount that shows none (or does not say).
///
/// `shares` maps the names of WSL's virtiofs shares to Windows paths.
#[must_use]
pub fn base_of(mount: &Mount, shares: &BTreeMap<String, String>) -> Option<WindowsPath> {
    let root = mount.root.as_deref().unwrap_or_else(|| Path::new("/"));
    let parse_base = |text: &str| WindowsPath::parse(&text.replace('/', "\\"));
    match mount.fstype.as_str() {
        "drvfs" => parse_base(&mount.source)?.join(root),
        "9p" if mount.option("aname") == Some("drvfs") => {
            drvfs_path(&mount.options).and_then(parse_base).or_else(|| parse_base(&mount.source))?.join(root)
        }
        "virtiofs" => {
            if let Some(path) = shares.get(&mount.source) {
                return parse_base(path)?.join(root);
            }
            let name = mount.source.strip_prefix("drvfsa").or_else(|| mount.source.strip_prefix("drvfs"))?;
            let mut chars = name.chars();
            if let Some(letter) = chars.next() {
                let number = chars.as_str();
                let is_numbered = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
                let is_drive = letter.is_ascii_alphabetic() && is_numbered;
                return is_drive.then(|| drive(letter))?.join(root);
            }
            // One share for all drives: the first component of the root names the drive's own share.
            let mut components = root.strip_prefix("/").ok()?.components();
            let own = components.next()?.as_os_str().to_str()?;
            parse_base(shares.get(own)?)?.join(components.as_path())
        }
        _ => None,
    }
}

/// Returns how Windows programs write a Linux path that is on `mount`, `None` where they cannot reach it.
///
/// `distro` is the running distribution's name. The files of a drive are named by the drive and not through
/// `\\wsl.localhost`, which does not serve them.
#[must_use]
pub fn windows_path(
    path: &Path,
    mount: &Mount,
    is_windows_class: bool,
    shares: &BTreeMap<String, String>,
    distro: Option<&str>,
) -> Option<WindowsPath> {
    if let Some(base) = base_of(mount, shares) {
        return base.join(path.strip_prefix(&mount.mount_point).ok()?);
    }
    if is_windows_class {
        return None;
    }
    WindowsPath::Distro { name: distro?.to_owned(), parts: Vec::new() }.join(path)
}

/// Returns the value of `path=` in the options of a DrvFs mount.
///
/// It is printed without escapes, so it may itself hold commas, semicolons and blanks; it ends before the next option
/// that DrvFs or the 9p client is known to print, or at the end.
fn drvfs_path(options: &str) -> Option<&str> {
    const NEXT: &[&str] = &[
        ";uid=",
        ";gid=",
        ";umask=",
        ";fmask=",
        ";dmask=",
        ";metadata",
        ";case=",
        ";symlinkroot=",
        ";ro",
        ";rw",
        ";fallback=",
        ",cache=",
        ",access=",
        ",msize=",
        ",trans=",
        ",mmap",
        ",dirsync",
        ",loose",
        ",fscache",
        ",uname=",
        ",dfltuid=",
        ",rfd=",
        ",posixacl",
        ",debug=",
        ",version=",
        ",noextend",
        ",nodevmap",
        ",sync",
    ];
    let start = options.find("aname=drvfs;path=")? + "aname=drvfs;path=".len();
    let value = &options[start..];
    let ends = |key: &&str| {
        value.match_indices(*key).map(|(at, _)| at).find(|at| {
            let after = value[at + key.len()..].chars().next();
            key.ends_with('=') || matches!(after, None | Some(',' | ';'))
        })
    };
    let end = NEXT.iter().filter_map(ends).min().unwrap_or(value.len());
    Some(&value[..end])
}

fn drive(letter: char) -> WindowsPath {
    WindowsPath::Drive { letter: letter.to_ascii_uppercase(), parts: Vec::new() }
}

fn is_bind(mount: &Mount) -> bool {
    mount.fstype != "virtiofs" && mount.root.as_deref().is_some_and(|root| root != Path::new("/"))
}

fn drive_prefix(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    let letter = chars.next().filter(char::is_ascii_alphabetic)?;
    (chars.next()? == ':').then(|| (letter.to_ascii_uppercase(), chars.as_str()))
}

/// Splits at either slash; `.` and `..` are resolved as Windows does, by the text alone.
fn split(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for part in text.split(['\\', '/']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

fn windows_name(name: &str) -> Option<&str> {
    let is_odd = name.contains(NOT_IN_WINDOWS_NAMES) || name.chars().any(char::is_control);
    (!is_odd && !name.ends_with(['.', ' '])).then_some(name)
}

fn is_same_name(one: &str, other: &str) -> bool {
    one == other || one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WSL: &str = "/dev/sdd / ext4 rw 0 0\n\
        C:\\134 /mnt/c 9p rw,noatime,aname=drvfs;path=C:\\;uid=1000;symlinkroot=/mnt/,cache=5,trans=fd 0 0\n\
        D:\\134 /d 9p rw,noatime,aname=drvfs;path=D:\\;uid=1000;symlinkroot=/,cache=5,trans=fd 0 0\n\
        c:/Users/dev/work /work 9p rw,aname=drvfs;path=e:/Users/dev/work;symlinkroot=/mnt/,trans=fd 0 0\n\
        \\134\\134server\\134share /nas 9p rw,aname=drvfs;path=UNC\\server\\share;uid=0,trans=fd 0 0\n\
        /dev/sdb1 /mnt/c/linuxdisk ext4 rw 0 0\n";

    fn linux(text: &str) -> Result<PathBuf, Untranslated> {
        let table = MountTable::parse(WSL.as_bytes());
        WindowsPath::parse(text).unwrap().to_linux(&table, &BTreeMap::new(), Some("Ubuntu"))
    }

    #[test]
    fn drives_are_found_where_they_are_mounted() {
        for (windows, expected) in [
            (r"C:\src\app", "/mnt/c/src/app"),
            ("C:/src/app", "/mnt/c/src/app"),
            (r"c:\", "/mnt/c"),
            ("C:", "/mnt/c"),
            (r"\\?\C:\src", "/mnt/c/src"),
            (r"D:\x\..\y\.\z", "/d/y/z"),
            (r"E:\users\Dev\WORK\app", "/work/app"),
            (r"\\SERVER\Share\a b", "/nas/a b"),
        ] {
            assert_eq!(linux(windows), Ok(PathBuf::from(expected)), "{windows}");
        }
    }

    #[test]
    fn the_distribution_s_own_files_are_found() {
        for text in [
            r"\\wsl.localhost\Ubuntu\home\me\app",
            r"\\wsl$\ubuntu\home\me\app",
            "//wsl.localhost/Ubuntu/home/me/app",
            "//wsl$/Ubuntu/home/me/app",
            r"\\?\UNC\wsl.localhost\Ubuntu\home\me\app",
        ] {
            assert_eq!(linux(text), Ok(PathBuf::from("/home/me/app")), "{text}");
        }
        assert_eq!(linux(r"\\wsl$\Debian\home"), Err(Untranslated::OtherDistro("Debian".to_owned())));
    }

    #[test]
    fn what_is_not_mounted_or_is_hidden_has_no_linux_path() {
        assert_eq!(linux(r"Z:\src"), Err(Untranslated::NotMounted));
        assert_eq!(linux(r"E:\Users\other"), Err(Untranslated::NotMounted));
        assert_eq!(linux(r"C:\linuxdisk\app"), Err(Untranslated::Hidden(PathBuf::from("/mnt/c/linuxdisk/app"))));
    }

    #[test]
    fn linux_paths_are_left_alone() {
        for text in ["/mnt/c/src", "src/app", "C:src", "//server/share", "c", "", r"a\b", "1:/x", r"\a"] {
            assert_eq!(WindowsPath::parse(text), None, "{text}");
        }
    }

    #[test]
    fn virtiofs_shares_are_followed_to_their_drive() {
        let table = "1 0 8:1 / / rw - ext4 /dev/sdd rw\n\
            2 1 0:50 / /mnt/c rw - virtiofs drvfsC0 rw\n\
            3 1 0:51 / /mnt/d rw - virtiofs 3f2b7c10-5d6e-4f81-9a0b-1c2d3e4f5a6b rw\n\
            4 1 0:52 /11111111-5d6e-4f81-9a0b-1c2d3e4f5a6b /mnt/e rw - virtiofs drvfsa rw\n\
            5 1 0:52 /11111111-5d6e-4f81-9a0b-1c2d3e4f5a6b/src /src rw - virtiofs drvfsa rw\n";
        let table = MountTable::parse(table.as_bytes());
        let shares = BTreeMap::from([
            ("3f2b7c10-5d6e-4f81-9a0b-1c2d3e4f5a6b".to_owned(), r"D:\".to_owned()),
            ("11111111-5d6e-4f81-9a0b-1c2d3e4f5a6b".to_owned(), r"E:\".to_owned()),
        ]);
        let bases: Vec<Option<String>> =
            table.mounts.iter().map(|mount| base_of(mount, &shares).map(|base| base.to_string())).collect();
        let expected = [None, Some(r"C:\"), Some(r"D:\"), Some(r"E:\"), Some(r"E:\src")];
        assert_eq!(bases, expected.map(|base| base.map(str::to_owned)));
        assert_eq!(WindowsPath::parse(r"D:\x").unwrap().to_linux(&table, &shares, None), Ok("/mnt/d/x".into()));
    }

    #[test]
    fn a_drive_s_own_mount_goes_before_a_bind_mount_of_it() {
        let table = "1 0 8:1 / / rw - ext4 /dev/sdd rw\n\
            2 1 0:50 / /mnt/c rw - 9p C:\\134 rw,aname=drvfs;path=C:\\;uid=0,trans=fd\n\
            3 1 0:50 /src /home/me/src rw - 9p C:\\134 rw,aname=drvfs;path=C:\\;uid=0,trans=fd\n";
        let table = MountTable::parse(table.as_bytes());
        let path = WindowsPath::parse(r"C:\src\app").unwrap();
        assert_eq!(path.to_linux(&table, &BTreeMap::new(), None), Ok("/mnt/c/src/app".into()));
        let bound = windows_path(Path::new("/home/me/src/app"), &table.mounts[2], true, &BTreeMap::new(), None);
        assert_eq!(bound.unwrap().to_string(), r"C:\src\app");
    }

    #[test]
    fn the_path_option_may_hold_commas_and_semicolons() {
        let options = r"rw,aname=drvfs;path=C:\Program Files, Inc;uid\a - b;uid=1000;gid=1000,cache=5,trans=fd";
        assert_eq!(drvfs_path(options), Some(r"C:\Program Files, Inc;uid\a - b"));
        assert_eq!(drvfs_path("rw,aname=drvfs;path=G:;symlinkroot=/mnt/,trans=fd"), Some("G:"));
        assert_eq!(drvfs_path("rw,aname=drvfs;path=c:/x/.vscode;ro;symlinkroot=/mnt/"), Some("c:/x/.vscode"));
        assert_eq!(drvfs_path(r"rw,aname=drvfs;path=C:\roots;root,sync-x"), Some(r"C:\roots;root,sync-x"));
    }

    #[test]
    fn a_name_that_windows_cannot_have_gives_no_windows_path() {
        let table = MountTable::parse(WSL.as_bytes());
        let windows = |path: &str, mount: usize| {
            windows_path(Path::new(path), &table.mounts[mount], mount == 1, &BTreeMap::new(), Some("Ubuntu"))
                .map(|path| path.to_string())
        };
        assert_eq!(windows("/mnt/c/src", 1).as_deref(), Some(r"C:\src"));
        assert_eq!(windows("/mnt/c", 1).as_deref(), Some(r"C:\"));
        assert_eq!(windows("/home/me/app", 0).as_deref(), Some(r"\\wsl.localhost\Ubuntu\home\me\app"));
        assert_eq!(windows("/home/me/a:b", 0), None);
        assert_eq!(windows("/home/me/dot.", 0), None);
    }

    proptest! {
        #[test]
        fn a_linux_path_comes_back_from_its_windows_spelling(
            parts in prop::collection::vec("[a-zA-Z0-9_äß €+-]{0,8}[a-z0-9]", 0..6),
            mount in prop::sample::select(vec![0_usize, 1, 2, 3, 4]),
        ) {
            let table = MountTable::parse(WSL.as_bytes());
            let mount = &table.mounts[mount];
            let path = mount.mount_point.join(parts.iter().collect::<PathBuf>());
            prop_assume!(table.lookup(&path) == Lookup::Mount(mount));
            let windows = windows_path(&path, mount, false, &BTreeMap::new(), Some("Ubuntu")).unwrap();
            let parsed = WindowsPath::parse(&windows.to_string()).unwrap();
            prop_assert_eq!(&parsed, &windows);
            prop_assert_eq!(parsed.to_linux(&table, &BTreeMap::new(), Some("Ubuntu")).unwrap(), path);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
            if let Some(path) = WindowsPath::parse(&text) {
                prop_assert!(WindowsPath::parse(&path.to_string()).is_some());
            }
        }
    }
}
