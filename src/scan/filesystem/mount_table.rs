//! Reading a mount table and finding the mount that a path is on.
//!
//! The kernel prints two forms, `/proc/self/mountinfo` and `/proc/mounts`; a saved table may be either. The parser is
//! our own because the `procfs` crate (0.18) gives up the whole table at the first line that it cannot read, and cuts
//! the options of a 9p mount at their first blank: 9p prints its options unescaped, so that they hold blanks,
//! backslashes, semicolons and ` - `. Each line is therefore taken apart from both ends.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Which of the kernel's two forms a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `/proc/self/mountinfo`: mount ids, parents, device numbers and the root of each mount.
    MountInfo,
    /// `/proc/mounts`: none of these, so that only the order tells what hides what.
    Mounts,
}

/// A mount as one line of the table tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's id of the mount; absent in a `/proc/mounts` table, like the three that follow.
    pub id: Option<u64>,
    /// Id of the mount that this one is mounted on; may be missing in the table (the parent of `/`).
    pub parent: Option<u64>,
    /// Device number of the superblock, `(major, minor)`; equal for two mounts of one filesystem.
    pub device: Option<(u32, u32)>,
    /// The directory of the filesystem that is seen at the mount point; `/` but for bind mounts and subvolumes.
    pub root: Option<PathBuf>,
    /// Where the mount begins.
    pub mount_point: PathBuf,
    /// Filesystem type as the kernel names it.
    pub fstype: String,
    /// What was mounted; may be empty.
    pub source: String,
    /// Options of the mount and of the superblock, separated by commas, none twice.
    pub options: String,
    /// Whether the mount or its superblock refuses writes.
    pub is_read_only: bool,
}

/// A parsed mount table, in the kernel's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountTable {
    /// The form of its lines.
    pub form: Form,
    /// The mounts, the oldest first.
    pub mounts: Vec<Mount>,
    /// Numbers of the lines that could not be read, from 1; they are left out and change nothing else.
    pub malformed_lines: Vec<usize>,
}

/// What a table says about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// The mount that the path is on.
    Mount(&'a Mount),
    /// An automount point on which nothing is mounted yet.
    Automount(&'a Mount),
    /// No mount of the table covers the path.
    Nothing,
}

/// Filesystem type of an automount point: a trigger, never the place where files are.
pub(super) const AUTOFS: &str = "autofs";

impl MountTable {
    /// Parses a table of either form, told apart by its first readable line; never fails.
    ///
    /// Lines of the other form, and lines that are neither, are left out and counted. Blank lines do not count.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut form = None;
        let mut mounts = Vec::new();
        let mut malformed_lines = Vec::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match parse_line(line, form) {
                Some((line_form, mount)) => {
                    form = Some(line_form);
                    mounts.push(mount);
                }
                None => malformed_lines.push(index + 1),
            }
        }
        Self { form: form.unwrap_or(Form::MountInfo), mounts, malformed_lines }
    }

    /// Returns the mount with the kernel's id `id`.
    #[must_use]
    pub fn by_id(&self, id: u64) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.id == Some(id))
    }

    /// Returns the mount on which `path` is visible; `path` is absolute, without links, `.` and `..`.
    ///
    /// With ids this is the kernel's own walk: from the root mount, at each component, onto what is mounted there on
    /// the mount that one is on. Without ids the last listed mount that covers the path wins, except that a mount at
    /// `/` is below all others wherever it is listed: a system that starts from an initial ramdisk lists its root
    /// after `/proc` and `/dev`.
    #[must_use]
    pub fn lookup(&self, path: &Path) -> Lookup<'_> {
        match self.form {
            Form::MountInfo => self.walk(path),
            Form::Mounts => self.last_covering(path),
        }
    }

    /// Returns the mount at `/`, the uppermost where there are several.
    #[must_use]
    pub fn root(&self) -> Option<&Mount> {
        match self.lookup(Path::new("/")) {
            Lookup::Mount(mount) => Some(mount),
            Lookup::Automount(_) | Lookup::Nothing => None,
        }
    }

    fn walk(&self, path: &Path) -> Lookup<'_> {
        let mut current: Option<&Mount> = None;
        // A parent may be cut out of a saved table; such a mount is taken for a child of whatever it lies on.
        let is_orphan = |mount: &Mount| mount.parent == mount.id || !mount.parent.is_some_and(|id| self.knows(id));
        let mut steps_left = self.mounts.len();
        let mut prefixes: Vec<&Path> = path.ancestors().collect();
        prefixes.reverse();
        for prefix in prefixes {
            let mut entered = current;
            loop {
                let children = self.mounts.iter().filter(|mount| {
                    mount.mount_point == prefix
                        && mount.id != entered.and_then(|mount| mount.id)
                        && (if is_orphan(mount) {
                            // An orphan is entered from below only, so that two of them cannot call each other.
                            entered.is_none_or(|on| on.mount_point != prefix)
                        } else {
                            entered.is_some_and(|on| mount.parent == on.id)
                        })
                });
                let child = children.fold(None, |best: Option<&Mount>, mount| match best {
                    Some(best) if mount.fstype == AUTOFS && best.fstype != AUTOFS => Some(best),
                    _ => Some(mount),
                });
                match child {
                    // The count only ends the loop on a table whose parents run in a circle.
                    Some(child) if steps_left > 0 => {
                        steps_left -= 1;
                        entered = Some(child);
                    }
                    _ => break,
                }
            }
            current = entered;
        }
        match current {
            None => Lookup::Nothing,
            Some(mount) if mount.fstype == AUTOFS => Lookup::Automount(mount),
            Some(mount) => Lookup::Mount(mount),
        }
    }

    fn knows(&self, id: u64) -> bool {
        self.mounts.iter().any(|mount| mount.id == Some(id))
    }

    fn last_covering(&self, path: &Path) -> Lookup<'_> {
        let is_root = |mount: &&Mount| mount.mount_point == Path::new("/");
        let covering: Vec<&Mount> = self.mounts.iter().filter(|mount| path.starts_with(&mount.mount_point)).collect();
        let last = |only_root: bool, autofs: bool| {
            covering.iter().copied().rfind(|mount| is_root(mount) == only_root && (mount.fstype == AUTOFS) == autofs)
        };
        let found = last(false, false).or_else(|| last(true, false));
        let trigger = last(false, true);
        match (found, trigger) {
            // A real mount at or below the trigger is what the trigger led to.
            (Some(mount), Some(trigger)) if mount.mount_point.starts_with(&trigger.mount_point) => Lookup::Mount(mount),
            (_, Some(trigger)) => Lookup::Automount(trigger),
            (Some(mount), None) => Lookup::Mount(mount),
            (None, None) => Lookup::Nothing,
        }
    }
}

impl Mount {
    /// Returns the value of an option; an empty text for one without a value, `None` where it is not set.
    ///
    /// What DrvFs packs into `aname=drvfs;path=C:\;uid=1000` is found like the options around it.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.split([',', ';']).find_map(|option| match option.split_once('=') {
            Some((name, value)) => (name == key).then_some(value),
            None => (option == key).then_some(""),
        })
    }

    /// Returns whether both are mounts of one filesystem: the same superblock, or the same block device.
    #[must_use]
    pub fn is_same_filesystem(&self, other: &Mount) -> bool {
        match (self.device, other.device) {
            (Some(own), Some(other)) => own == other,
            _ => self.source == other.source && self.fstype == other.fstype && self.source.starts_with('/'),
        }
    }
}

fn parse_line(line: &[u8], form: Option<Form>) -> Option<(Form, Mount)> {
    let as_mountinfo = || parse_mountinfo(line).map(|mount| (Form::MountInfo, mount));
    let as_mounts = || parse_mounts(line).map(|mount| (Form::Mounts, mount));
    let parsed = match form {
        Some(Form::MountInfo) => as_mountinfo(),
        Some(Form::Mounts) => as_mounts(),
        None => as_mountinfo().or_else(as_mounts),
    };
    // A pasted table is often indented; only a line that cannot be read as it is loses its first blanks, since an
    // empty source also begins with one.
    parsed.or_else(|| {
        let trimmed = line.trim_ascii_start();
        if trimmed.len() < line.len() { parse_line(trimmed, form) } else { None }
    })
}

/// `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`, see `proc_pid_mountinfo(5)`.
fn parse_mountinfo(line: &[u8]) -> Option<Mount> {
    let mut rest = line;
    let id = number(take_field(&mut rest)?)?;
    let parent = number(take_field(&mut rest)?)?;
    let device = std::str::from_utf8(take_field(&mut rest)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let root = unescape_path(take_field(&mut rest)?);
    let mount_point = absolute(take_field(&mut rest)?)?;
    let mount_options = take_field(&mut rest)?;
    // Optional fields up to the first lone hyphen; a later ` - ` belongs to the options.
    while take_field(&mut rest)? != b"-" {}
    let fstype = text(&unescape(take_field(&mut rest)?));
    let source = text(&unescape(take_field(&mut rest).unwrap_or_default()));
    if fstype.is_empty() {
        return None;
    }
    let mount_options = text(mount_options);
    let super_options = text(rest.trim_ascii_end());
    let is_read_only = has_flag(&mount_options, "ro") || has_flag(&super_options, "ro");
    Some(Mount {
        id: Some(id),
        parent: Some(parent),
        device: Some(device),
        root: Some(root),
        mount_point,
        fstype,
        source,
        options: join_options(&mount_options, &super_options, is_read_only),
        is_read_only,
    })
}

/// `/dev/sda1 / ext4 rw,relatime 0 0`, see `fstab(5)`; three fields from the left, two from the right.
fn parse_mounts(line: &[u8]) -> Option<Mount> {
    let mut rest = line.trim_ascii_end();
    let source = text(&unescape(take_field(&mut rest)?));
    let mount_point = absolute(take_field(&mut rest)?)?;
    let fstype = text(&unescape(take_field(&mut rest)?));
    for _ in 0..2 {
        let blank = rest.iter().rposition(|byte| is_blank(*byte))?;
        number(&rest[blank + 1..])?;
        rest = rest[..blank].trim_ascii_end();
    }
    if fstype.is_empty() {
        return None;
    }
    let options = text(rest);
    let is_read_only = has_flag(&options, "ro");
    Some(Mount { id: None, parent: None, device: None, root: None, mount_point, fstype, source, options, is_read_only })
}

/// Cuts the next field off; an empty field (a mount without source) is one between two blanks.
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let end = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
    let field = &rest[..end];
    *rest = rest.get(end + 1..).unwrap_or_default();
    Some(field)
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn absolute(field: &[u8]) -> Option<PathBuf> {
    field.starts_with(b"/").then(|| unescape_path(field))
}

fn unescape_path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Undoes the kernel's `\ooo` escapes of blank, tab, newline, backslash and `#`; any other backslash stays.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|digits| digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
        match digits {
            Some(digits) if *first == b'\\' && digits[0] <= b'3' => {
                out.push(digits.iter().fold(0_u8, |value, digit| value * 8 + (digit - b'0')));
                rest = &tail[3..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

fn has_flag(options: &str, flag: &str) -> bool {
    options.split(',').any(|option| option == flag)
}

/// Joins the two option lists of a mountinfo line as `/proc/mounts` would show them.
fn join_options(mount: &str, superblock: &str, is_read_only: bool) -> String {
    let mode = if is_read_only { "ro" } else { "rw" };
    let mut joined: Vec<&str> = vec![mode];
    for option in mount.split(',').chain(superblock.split(',')) {
        if !option.is_empty() && !matches!(option, "rw" | "ro") && !joined.contains(&option) {
            joined.push(option);
        }
    }
    joined.join(",")
}

/// Returns `path` without `.`, `..` and repeated slashes, by its text alone; links are not looked at.
#[must_use]
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(table: &str, path: &str) -> Option<String> {
        match MountTable::parse(table.as_bytes()).lookup(Path::new(path)) {
            Lookup::Mount(mount) => Some(mount.source.clone()),
            Lookup::Automount(_) => Some("automount".to_owned()),
            Lookup::Nothing => None,
        }
    }

    #[test]
    fn both_forms_are_taken_apart_from_both_ends() {
        let with_ids = r"56 52 0:52 /sub\040dir /mnt/a\040b rw,noatime shared:2 master:1 - 9p C:\134 ro,aname=drvfs;path=C:\a - b c,trans=fd";
        let table = MountTable::parse(with_ids.as_bytes());
        assert_eq!(table.form, Form::MountInfo);
        assert_eq!(
            table.mounts,
            [Mount {
                id: Some(56),
                parent: Some(52),
                device: Some((0, 52)),
                root: Some("/sub dir".into()),
                mount_point: "/mnt/a b".into(),
                fstype: "9p".to_owned(),
                source: r"C:\".to_owned(),
                options: r"ro,noatime,aname=drvfs;path=C:\a - b c,trans=fd".to_owned(),
                is_read_only: true,
            }]
        );
        let without = r"C:\134 /mnt/a\040b 9p rw,aname=drvfs;path=C:\a 0 0 b,trans=fd 0 0";
        let mount = &MountTable::parse(without.as_bytes()).mounts[0];
        assert_eq!(mount.options, r"rw,aname=drvfs;path=C:\a 0 0 b,trans=fd");
        assert_eq!(mount.option("path"), Some(r"C:\a 0 0 b"));
        assert_eq!(mount.option("trans"), Some("fd"));
        assert_eq!((mount.option("aname"), mount.option("absent")), (Some("drvfs"), None));
    }

    #[test]
    fn a_source_may_be_empty_and_a_table_indented() {
        let table = MountTable::parse(b" /a fuse rw 0 0\n1 2 0:3 / /b rw - fuse  rw\n   /dev/sda1 / ext4 rw 0 0\n");
        let points: Vec<_> =
            table.mounts.iter().map(|mount| (mount.source.as_str(), mount.mount_point.as_path())).collect();
        assert_eq!(points, [("", Path::new("/a")), ("/dev/sda1", Path::new("/"))]);
        // A line of the other form does not join in.
        assert_eq!(table.malformed_lines, [2]);
        let table = MountTable::parse(b"1 2 0:3 / /b rw - fuse  rw\n");
        assert_eq!((table.mounts[0].source.as_str(), table.mounts[0].options.as_str()), ("", "rw"));
    }

    #[test]
    fn parents_decide_what_is_seen_and_not_the_order() {
        // The child is listed before its parent, and a hidden mount has the longer mount point.
        let table = "3 2 0:3 / /a/b rw - xfs inner rw\n1 0 0:1 / / rw - ext4 root rw\n\
            2 1 0:2 / /a rw - xfs outer rw\n4 1 0:4 / /a/b rw - xfs hidden rw\n";
        assert_eq!(found(table, "/a/b/c").as_deref(), Some("inner"));
        assert_eq!(found(table, "/a/x").as_deref(), Some("outer"));
        assert_eq!(found(table, "/ab").as_deref(), Some("root"));
    }

    #[test]
    fn the_uppermost_of_stacked_mounts_is_seen() {
        let table = "1 0 0:1 / / rw - rootfs rootfs rw\n2 1 0:2 / / rw - ext4 disk rw\n3 2 0:3 / /a rw - xfs one rw\n\
            4 3 0:4 / /a rw - xfs two rw\n5 4 0:5 / /a rw - xfs three rw\n";
        assert_eq!(found(table, "/").as_deref(), Some("disk"));
        assert_eq!(found(table, "/a/x").as_deref(), Some("three"));
        let without = "rootfs / rootfs rw 0 0\ndisk / ext4 rw 0 0\none /a xfs rw 0 0\ntwo /a xfs rw 0 0\n";
        assert_eq!(found(without, "/").as_deref(), Some("disk"));
        assert_eq!(found(without, "/a").as_deref(), Some("two"));
    }

    #[test]
    fn a_table_whose_parents_are_cut_out_or_run_in_a_circle_still_answers() {
        assert_eq!(found("9 8 0:9 / /a rw - xfs orphan rw\n", "/a/b").as_deref(), Some("orphan"));
        assert_eq!(found("9 8 0:9 / /a rw - xfs orphan rw\n", "/b"), None);
        let circle = "1 2 0:1 / / rw - ext4 one rw\n2 1 0:2 / / rw - ext4 two rw\n3 3 0:3 / /a rw - xfs own rw\n";
        assert_eq!(found(circle, "/a").as_deref(), Some("own"));
        let twice = "7 1 0:1 / /a rw - xfs one rw\n7 1 0:2 / /a rw - xfs two rw\n1 0 0:3 / / rw - ext4 root rw\n";
        assert_eq!(found(twice, "/a").as_deref(), Some("two"));
    }

    #[test]
    fn an_automount_point_is_never_the_answer() {
        let with_ids =
            "1 0 0:1 / / rw - ext4 root rw\n2 1 0:2 / /nas rw - autofs systemd-1 rw\n3 2 0:3 / /nas rw - nfs4 srv rw\n";
        assert_eq!(found(with_ids, "/nas/x").as_deref(), Some("srv"));
        let (trigger, real) = ("systemd-1 /nas autofs rw 0 0\n", "srv /nas nfs4 rw 0 0\n");
        assert_eq!(found(&format!("{trigger}{real}"), "/nas/x").as_deref(), Some("srv"));
        assert_eq!(found(&format!("{real}{trigger}"), "/nas/x").as_deref(), Some("srv"));
        assert_eq!(found(&format!("root / ext4 rw 0 0\n{trigger}"), "/nas/x").as_deref(), Some("automount"));
        assert_eq!(found(&format!("root / ext4 rw 0 0\n{trigger}"), "/nasty").as_deref(), Some("root"));
        let indirect = "root / ext4 rw 0 0\nauto.home /home autofs rw 0 0\nsrv:/me /home/me nfs rw 0 0\n";
        assert_eq!(found(indirect, "/home/me/app").as_deref(), Some("srv:/me"));
    }

    /// As the kernel escapes the source and the mount point.
    fn escape(text: &str) -> String {
        text.bytes().fold(String::new(), |out, byte| match byte {
            b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("{out}\\{byte:03o}"),
            _ => out + &char::from(byte).to_string(),
        })
    }

    proptest! {
        #[test]
        fn no_table_makes_the_parser_or_the_lookup_panic(
            lines in prop::collection::vec("([0-4] [0-4] [0-9]:[0-9] / )?/?[a-b/]{0,3} ?[ -~]{0,30}( 0 0)?", 0..8),
            path in "(/[a-b]){0,3}",
        ) {
            let table = MountTable::parse(lines.join("\n").as_bytes());
            let _ = table.lookup(Path::new(&path));
        }

        #[test]
        fn what_the_kernel_escapes_comes_back(source in "[ -~\t\n]{0,20}", point in "/[ -~\t\n]{0,20}") {
            let line = format!("{} {} 9p rw 0 0", escape(&source), escape(&point));
            let table = MountTable::parse(line.as_bytes());
            prop_assert_eq!(&table.mounts[0].source, &source);
            prop_assert_eq!(&table.mounts[0].mount_point, Path::new(&point));
        }

        #[test]
        fn options_of_9p_are_kept_whatever_they_hold(options in "[!-~]([ -~]{0,40}[!-~])?") {
            let mounts = MountTable::parse(format!("s /p 9p {options} 0 0").as_bytes());
            prop_assert_eq!(&mounts.mounts[0].options, &options);
        }
    }
}
