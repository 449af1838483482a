//! `rehome move` and `rehome check` between real filesystems, in both directions: what arrives, what is repaired, what is
//! refused, and that the source stays as it was.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/grounds.rs"]
mod grounds;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grounds::Grounds;
use serde_json::Value;

const EXT4: &[&str] = &["mkfs.ext4", "-q", "-F"];
const XFS: &[&str] = &["mkfs.xfs", "-q"];
const BTRFS: &[&str] = &["mkfs.btrfs", "-q"];
const NTFS: &[&str] = &["mkntfs", "-qQF"];
const VFAT: &[&str] = &["mkfs.vfat", "-F", "32"];
const EXFAT: &[&str] = &["mkfs.exfat"];

/// What a filesystem holds of all that a repository may be made of.
#[derive(Clone, Copy)]
struct Holds {
    modes: bool,
    links: bool,
    hard_links: bool,
    holes: bool,
    /// Two names that differ by case alone.
    case: bool,
    /// Names that Windows refuses.
    any_name: bool,
    /// Names that are no text.
    any_byte: bool,
    /// Times to the nanosecond.
    times: bool,
}

const NATIVE: Holds = Holds {
    modes: true,
    links: true,
    hard_links: true,
    holes: true,
    case: true,
    any_name: true,
    any_byte: true,
    times: true,
};
/// ntfs-3g as it mounts a drive that it knows no users of.
const NTFS_3G: Holds = Holds { modes: false, holes: false, any_byte: false, times: false, ..NATIVE };
/// FAT and its heirs.
const FAT: Holds = Holds { links: false, hard_links: false, case: false, any_name: false, ..NTFS_3G };

/// A small repository with one of everything that can be lost on the way.
struct Repository {
    /// The directory that holds everything; its `home` is the user's.
    ground: PathBuf,
    path: PathBuf,
}

/// A file that a Windows git checked out with CRLF although nothing asks for it: no change of the user.
const ARTEFACT: &str = "windows.txt";
/// Its lines as they are in the index.
const ARTEFACT_TEXT: &str = "one\ntwo\n";
/// A file that is mostly a hole.
const SPARSE: (&str, u64) = ("disk.img", 9 << 20);
/// Room that its data may take: a block on any of these filesystems, and some for their own lists.
const SPARSE_STORED: u64 = 1 << 20;
/// 2001-02-03 04:05:06.789 in the calendar.
const OLD: Duration = Duration::from_millis(981_173_106_789);

impl Repository {
    fn furnish(ground: &Path, place: &str, holds: Holds) -> Self {
        let repository = Self { ground: ground.to_owned(), path: ground.join(place) };
        fs::create_dir_all(ground.join("home")).unwrap();
        repository.git_in(ground, &["init", "-q", "-b", "main", place]);
        repository.tracked(holds);
        repository.git(&["add", "-A"]);
        repository.git(&["update-index", "--chmod=+x", "run.sh"]);
        repository.git(&["commit", "-q", "-m", "first"]);
        repository.git(&["tag", "-a", "-m", "t", "v1"]);
        repository.write("plain.txt", "plain stashed\n");
        repository.git(&["stash", "-q"]);
        repository.changes(holds);
        repository.times();
        repository.git(&["update-index", "-q", "--refresh"]);
        repository
    }

    fn tracked(&self, holds: Holds) {
        self.write(".gitattributes", "*.bat text eol=crlf\n*.bin -text\n");
        self.write(".gitignore", ".env\n*.img\nkept/\n");
        self.write("run.sh", "#!/bin/sh\necho ran\n");
        self.mode("run.sh", 0o755);
        for name in ["plain.txt", "changed.txt", "deep/er/one.txt", "deep/er/gone.txt", "\u{fc} name.txt"] {
            self.write(name, &format!("{name}\n"));
        }
        self.write("do.bat", "one\r\ntwo\r\n");
        self.write("data.bin", "one\r\n\0two\n");
        self.write(ARTEFACT, ARTEFACT_TEXT);
        if holds.links {
            symlink("plain.txt", self.path.join("link")).unwrap();
            symlink("/etc/hostname", self.path.join("absolute")).unwrap();
            symlink("nowhere/at all", self.path.join("deep/dangling")).unwrap();
        }
        if holds.hard_links {
            self.write("pair/first", "pair\n");
            fs::hard_link(self.path.join("pair/first"), self.path.join("pair/second")).unwrap();
        }
        if holds.case {
            self.write("Case", "upper\n");
            self.write("case", "lower\n");
        }
        if holds.any_name {
            for name in ["a:b", "aux.c", "trailing.", "what?"] {
                self.write(name, &format!("{name}\n"));
            }
        }
        if holds.any_byte {
            fs::write(self.path.join(OsStr::from_bytes(b"no text \xff\nat all")), "odd\n").unwrap();
        }
    }

    /// What `git status` names afterwards, and what it does not because it is ignored.
    fn changes(&self, holds: Holds) {
        self.write("staged.txt", "staged\n");
        self.git(&["add", "staged.txt"]);
        self.write("changed.txt", "changed\n");
        fs::remove_file(self.path.join("deep/er/gone.txt")).unwrap();
        self.write(ARTEFACT, &ARTEFACT_TEXT.replace('\n', "\r\n"));
        self.write("new dir/n\u{e9}w.txt", "new\n");
        self.write("new dir/script", "#!/bin/sh\n");
        self.mode("new dir/script", 0o755);
        self.write(".env", "SECRET=1\n");
        self.write("kept/first", "kept\n");
        if holds.hard_links {
            fs::hard_link(self.path.join("kept/first"), self.path.join("kept/second")).unwrap();
        }
        let sparse = File::create(self.path.join(SPARSE.0)).unwrap();
        sparse.set_len(SPARSE.1).unwrap();
        sparse.write_all_at(b"in the middle", SPARSE.1 / 2).unwrap();
        fs::create_dir_all(self.path.join("empty/inner")).unwrap();
    }

    fn times(&self) {
        let set = |name: &str, time: SystemTime| {
            let file = File::open(self.path.join(name)).unwrap();
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        };
        set("plain.txt", UNIX_EPOCH + OLD);
        set("deep/er/one.txt", UNIX_EPOCH + OLD + Duration::from_secs(60));
        // Before the first day that FAT knows.
        set(".env", UNIX_EPOCH + Duration::from_secs(1));
        set("empty", UNIX_EPOCH + OLD);
        set("deep", UNIX_EPOCH + OLD);
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap();
        command.env_clear().env("PATH", path).env("HOME", self.ground.join("home")).env("LC_ALL", "C.UTF-8");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.org");
        }
        command.env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
        command
    }

    fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = self.command("git");
        // Housekeeping in the background would change what is compared.
        command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]).args(arguments).current_dir(directory);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.path, arguments)
    }

    /// Runs `rehome move` to `destination`.
    fn run_move(&self, destination: &Path, options: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_rehome"));
        command.args(["move", "--yes", "--format", "json"]).args(options).arg(&self.path).arg(destination);
        command.output().unwrap()
    }

    /// Moves, expects that the source stays as it was and that the copy is right, and returns what was said of it.
    fn moved(&self, destination: &Path, options: &[&str], from: Holds, to: Holds) -> Value {
        let before = picture(&self.path);
        let output = self.run_move(destination, options);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_untouched(&before, &picture(&self.path));
        assert_same_tree(&before, &picture(destination), from, to);
        assert!(!destination.with_file_name(partial_name(destination)).exists());

        let real = self.real_changes();
        let status = ["--no-optional-locks", "status", "--porcelain", "-uall"];
        assert_eq!(self.git_in(destination, &status), real, "git status");
        for question in [
            &["for-each-ref"][..],
            &["stash", "list"],
            &["reflog", "--all"],
            &["rev-parse", "HEAD"],
            &["ls-files", "--stage"],
            &["diff", "--cached"],
        ] {
            assert_eq!(self.git_in(destination, question), self.git(question), "{question:?}");
        }
        assert_eq!(self.git_in(destination, &["fsck", "--full", "--no-dangling"]), "");

        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let verified = &report["result"]["verified"];
        assert_eq!((&verified["stashes"], &verified["artefacts"]), (&1.into(), &1.into()), "{report:#}");
        assert_eq!(verified["real_changes"], real.lines().count(), "{report:#}");
        assert_eq!(repaired(&report, "line-endings"), [ARTEFACT]);
        report
    }

    /// What `git status` says of the source, without what is an artefact of the side that it is on.
    fn real_changes(&self) -> String {
        let status = self.git(&["--no-optional-locks", "status", "--porcelain", "-uall"]);
        let artefact = format!(" M {ARTEFACT}");
        assert!(status.lines().any(|line| line == artefact), "{status}");
        status.lines().filter(|line| *line != artefact).map(|line| format!("{line}\n")).collect()
    }

    /// Moves, expects a refusal that leaves nothing behind, and returns its words.
    fn refused(&self, destination: &Path, options: &[&str]) -> String {
        let before = picture(&self.path);
        let output = self.run_move(destination, options);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.starts_with("rehome: ") && words.contains("\n  hint: "), "{words}");
        assert_untouched(&before, &picture(&self.path));
        for left in [destination.to_owned(), destination.with_file_name(partial_name(destination))] {
            assert!(!left.exists(), "{}", left.display());
        }
        words
    }
}

fn partial_name(destination: &Path) -> String {
    format!(".{}.rehome-partial", destination.file_name().unwrap().to_str().unwrap())
}

/// Returns the paths of one step of repair.
fn repaired<'a>(report: &'a Value, step: &str) -> Vec<&'a str> {
    let repairs = report["result"]["repairs"].as_array().unwrap();
    let found = repairs.iter().filter(|repair| repair["step"] == step);
    found.flat_map(|repair| repair["paths"].as_array().unwrap()).map(|path| path.as_str().unwrap()).collect()
}

/// All that can be told of a path without touching it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    kind: &'static str,
    /// Hash of a file's content, target of a link.
    content: String,
    size: u64,
    stored: u64,
    mode: u32,
    mtime: (i64, i64),
    ctime: (i64, i64),
    ino: u64,
    links: u64,
}

impl Seen {
    fn of(path: &Path) -> Self {
        let found = path.symlink_metadata().unwrap();
        let (kind, content) = if found.is_dir() {
            ("directory", String::new())
        } else if found.is_symlink() {
            ("link", fs::read_link(path).unwrap().to_str().unwrap().to_owned())
        } else {
            ("file", hash_of(&fs::read(path).unwrap()))
        };
        Self {
            kind,
            content,
            size: found.len(),
            stored: found.blocks() * 512,
            mode: found.mode() & 0o7777,
            mtime: (found.mtime(), found.mtime_nsec()),
            ctime: (found.ctime(), found.ctime_nsec()),
            ino: found.ino(),
            links: found.nlink(),
        }
    }
}

fn hash_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

type Picture = BTreeMap<PathBuf, Seen>;

fn picture(root: &Path) -> Picture {
    let mut seen = BTreeMap::from([(PathBuf::new(), Seen::of(root))]);
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(root.join(&directory)).unwrap() {
            let path = directory.join(entry.unwrap().file_name());
            let found = Seen::of(&root.join(&path));
            if found.kind == "directory" {
                open.push(path.clone());
            }
            seen.insert(path, found);
        }
    }
    seen
}

/// Compares two pictures of one place; nothing may differ.
fn assert_untouched(before: &Picture, after: &Picture) {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    // Looking is enough to change these on some filesystems.
    let told =
        |seen: &Seen| Seen { stored: 0, size: if seen.kind == "directory" { 0 } else { seen.size }, ..seen.clone() };
    for path in paths {
        assert_eq!(before.get(path).map(told), after.get(path).map(told), "{} was touched", path.display());
    }
}

/// Compares two worktrees, each thing as far as both filesystems hold it.
fn assert_same_tree(source: &Picture, copy: &Picture, from: Holds, to: Holds) {
    let names = |picture: &Picture| -> BTreeSet<PathBuf> {
        picture.keys().filter(|path| !path.starts_with(".git")).cloned().collect()
    };
    assert_eq!(names(copy), names(source));
    for path in names(source) {
        let (old, new) = (&source[&path], &copy[&path]);
        let what = format!("{}: {old:?} became {new:?}", path.display());
        if old.kind == "link" && !to.links {
            assert_eq!((new.kind, &new.content), ("file", &hash_of(old.content.as_bytes())), "{what}");
        } else {
            let content =
                if path == Path::new(ARTEFACT) { hash_of(ARTEFACT_TEXT.as_bytes()) } else { old.content.clone() };
            assert_eq!((new.kind, &new.content), (old.kind, &content), "{what}");
        }
        assert_same_time(old.mtime, new.mtime, from.times && to.times, &what);
        if to.modes && old.kind != "link" {
            assert_mode(&path, old, new, from, &what);
        }
        if from.hard_links && to.hard_links && old.kind == "file" {
            assert_eq!(new.links, old.links, "{what}");
        }
    }
    if from.hard_links && to.hard_links {
        for (one, other) in [("pair/first", "pair/second"), ("kept/first", "kept/second")] {
            assert_eq!(copy[Path::new(one)].ino, copy[Path::new(other)].ino, "{one}");
        }
    }
    if from.holes && to.holes {
        let sparse = &copy[Path::new(SPARSE.0)];
        assert!(sparse.stored < SPARSE_STORED, "{sparse:?}");
    }
}

fn assert_same_time(old: (i64, i64), new: (i64, i64), is_exact: bool, what: &str) {
    /// 1980-01-01: FAT knows nothing older.
    const FAT_EPOCH_S: i64 = 315_532_800;
    if is_exact {
        assert_eq!(new, old, "{what}");
    } else if old.0 > FAT_EPOCH_S {
        // FAT keeps every second one only.
        assert!((new.0 - old.0).abs() < 2, "{what}");
    }
}

fn assert_mode(path: &Path, old: &Seen, new: &Seen, from: Holds, what: &str) {
    if from.modes {
        assert_eq!(new.mode, old.mode, "{what}");
    } else if new.kind == "file" {
        let is_program = [Path::new("run.sh"), Path::new("new dir/script")].contains(&path);
        assert_eq!(new.mode & 0o111 != 0, is_program, "{what}");
        assert_eq!(new.mode & 0o022, 0, "{what}");
    }
}

/// Mounts, then runs the test again where the mounts are.
fn inside(name: &str, programs: &[&str], mount: impl FnOnce(&Grounds), check: impl FnOnce(&Path)) {
    if let Some(dir) = Grounds::inside() {
        return check(&dir);
    }
    let Some(grounds) = Grounds::new(name, programs) else { return };
    mount(&grounds);
    grounds.run_test(name);
}

fn setting(repository: &Repository, directory: &Path, key: &str) -> String {
    repository.git_in(directory, &["config", "--default", "absent", key]).trim().to_owned()
}

/// Moves a repository that is at `old` to ext4.
fn from_elsewhere_to_ext4(dir: &Path, from: Holds) {
    let repository = Repository::furnish(dir, "old/app", from);
    let destination = dir.join("ext4/src/app");
    let report = repository.moved(&destination, &[], from, NATIVE);
    assert_eq!(report["plan"]["destination_fstype"], "ext4");
    assert_eq!(setting(&repository, &destination, "core.fileMode"), "true");
    if !from.modes {
        let modes = repaired(&report, "modes");
        assert!(modes.contains(&"plain.txt") && !modes.contains(&"run.sh"), "{modes:?}");
        let notes = report["result"]["notes"].to_string();
        assert!(notes.contains("got the permissions of the new side"), "{notes}");
    }
}

#[test]
fn a_repository_arrives_on_ext4_from_xfs() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(XFS, "xfs", "old");
        grounds.mount_image(EXT4, "ext4", "ext4");
    };
    let name = "a_repository_arrives_on_ext4_from_xfs";
    inside(name, &["mkfs.xfs", "mkfs.ext4", "git"], mount, |dir| from_elsewhere_to_ext4(dir, NATIVE));
}

#[test]
fn a_repository_arrives_on_ext4_from_btrfs() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(BTRFS, "btrfs", "old");
        grounds.mount_image(EXT4, "ext4", "ext4");
    };
    let name = "a_repository_arrives_on_ext4_from_btrfs";
    inside(name, &["mkfs.btrfs", "mkfs.ext4", "git"], mount, |dir| from_elsewhere_to_ext4(dir, NATIVE));
}

#[test]
fn a_repository_arrives_on_ext4_from_memory() {
    let mount = |grounds: &Grounds| {
        grounds.mount("tmpfs", "tmpfs", "old");
        grounds.mount_image(EXT4, "ext4", "ext4");
    };
    let name = "a_repository_arrives_on_ext4_from_memory";
    inside(name, &["mkfs.ext4", "git"], mount, |dir| from_elsewhere_to_ext4(dir, NATIVE));
}

#[test]
fn a_repository_arrives_on_ext4_from_an_overlay() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(EXT4, "ext4", "ext4");
        grounds.mount_image(EXT4, "ext4", "layers");
        grounds.shell("mkdir layers/lower layers/upper layers/work old");
        grounds
            .shell("mount -t overlay overlay -o lowerdir=layers/lower,upperdir=layers/upper,workdir=layers/work old");
    };
    let name = "a_repository_arrives_on_ext4_from_an_overlay";
    inside(name, &["mkfs.ext4", "git"], mount, |dir| from_elsewhere_to_ext4(dir, NATIVE));
}

#[test]
fn a_repository_arrives_on_ext4_from_an_ntfs_drive() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(NTFS, "ntfs-3g", "old");
        grounds.mount_image(EXT4, "ext4", "ext4");
    };
    let name = "a_repository_arrives_on_ext4_from_an_ntfs_drive";
    inside(name, &["mkntfs", "ntfs-3g", "mkfs.ext4", "git"], mount, |dir| from_elsewhere_to_ext4(dir, NTFS_3G));
}

#[test]
fn a_repository_arrives_on_ext4_from_an_exfat_stick() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(EXFAT, "exfat-fuse", "old");
        grounds.mount_image(EXT4, "ext4", "ext4");
    };
    let name = "a_repository_arrives_on_ext4_from_an_exfat_stick";
    inside(name, &["mkfs.exfat", "mount.exfat-fuse", "mkfs.ext4", "git"], mount, |dir| {
        from_elsewhere_to_ext4(dir, FAT);
    });
}

#[test]
fn a_repository_arrives_on_ext4_from_a_vfat_stick() {
    let name = "a_repository_arrives_on_ext4_from_a_vfat_stick";
    let mount = |grounds: &Grounds| {
        if grounds.has_filesystem("vfat") {
            grounds.mount_image(VFAT, "vfat", "old");
            grounds.mount_image(EXT4, "ext4", "ext4");
        }
    };
    inside(name, &["mkfs.vfat", "mkfs.ext4", "git"], mount, |dir| {
        if dir.join("old").exists() {
            from_elsewhere_to_ext4(dir, FAT);
        }
    });
}

/// Moves a repository from ext4 to the Windows side at `drive`.
fn from_ext4_to_windows(dir: &Path, to: Holds) {
    // As much as Windows holds of it.
    let can = Holds { case: false, any_name: false, any_byte: false, ..NATIVE };
    let repository = Repository::furnish(dir, "ext4/app", can);
    let destination = dir.join("drive/src/app");
    let words = repository.refused(&destination, &[]);
    assert!(words.contains("the destination is on "), "{words}");
    let report = repository.moved(&destination, &["--to-windows"], can, to);
    assert_eq!(report["plan"]["to_windows"], true);
    assert_eq!(setting(&repository, &destination, "core.fileMode"), "false");
    // Windows' own git will be the one that works there.
    assert_eq!(setting(&repository, &destination, "core.ignoreCase"), "true");
    let notes = report["result"]["notes"].to_string();
    assert!(notes.contains("holds no executable bits"), "{notes}");
    let staged = repository.git_in(&destination, &["ls-files", "--stage", "run.sh"]);
    assert!(staged.starts_with("100755 "), "{staged}");
    if to.links {
        assert_eq!(setting(&repository, &destination, "core.symlinks"), "absent");
        assert_eq!(repaired(&report, "links-as-text"), Vec::<&str>::new());
    } else {
        assert_eq!(setting(&repository, &destination, "core.symlinks"), "false");
        assert_eq!(repaired(&report, "links-as-text"), ["absolute", "deep/dangling", "link"]);
    }
    and_back_again(&repository, &destination, dir, to);
}

/// What went to the Windows side comes back as it was.
fn and_back_again(repository: &Repository, there: &Path, dir: &Path, via: Holds) {
    let back = dir.join("ext4/back");
    let returning = Repository { ground: dir.to_owned(), path: there.to_owned() };
    let output = returning.run_move(&back, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let status = ["--no-optional-locks", "status", "--porcelain", "-uall"];
    assert_eq!(repository.git_in(&back, &status), repository.real_changes());
    assert_eq!(fs::read_link(back.join("link")).unwrap(), Path::new("plain.txt"));
    assert_eq!(back.join("run.sh").metadata().unwrap().mode() & 0o777, 0o755);
    assert_eq!(back.join("plain.txt").metadata().unwrap().mode() & 0o777, 0o644);
    assert_eq!(setting(repository, &back, "core.ignoreCase"), "false");
    assert_eq!(setting(repository, &back, "core.fileMode"), "true");
    if !via.links {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(repaired(&report, "links"), ["absolute", "deep/dangling", "link"]);
    }
}

#[test]
fn a_repository_goes_from_ext4_to_an_ntfs_drive_and_back() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(EXT4, "ext4", "ext4");
        grounds.mount_image(NTFS, "ntfs-3g", "drive");
    };
    let name = "a_repository_goes_from_ext4_to_an_ntfs_drive_and_back";
    inside(name, &["mkntfs", "ntfs-3g", "mkfs.ext4", "git"], mount, |dir| from_ext4_to_windows(dir, NTFS_3G));
}

#[test]
fn a_repository_goes_from_ext4_to_an_exfat_stick_and_back() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(EXT4, "ext4", "ext4");
        grounds.mount_image(EXFAT, "exfat-fuse", "drive");
    };
    let name = "a_repository_goes_from_ext4_to_an_exfat_stick_and_back";
    inside(name, &["mkfs.exfat", "mount.exfat-fuse", "mkfs.ext4", "git"], mount, |dir| from_ext4_to_windows(dir, FAT));
}

#[test]
fn a_repository_goes_from_ext4_to_a_vfat_stick_and_back() {
    let name = "a_repository_goes_from_ext4_to_a_vfat_stick_and_back";
    let mount = |grounds: &Grounds| {
        if grounds.has_filesystem("vfat") {
            grounds.mount_image(EXT4, "ext4", "ext4");
            grounds.mount_image(VFAT, "vfat", "drive");
        }
    };
    inside(name, &["mkfs.vfat", "mkfs.ext4", "git"], mount, |dir| {
        if dir.join("drive").exists() {
            from_ext4_to_windows(dir, FAT);
        }
    });
}

#[test]
fn what_the_windows_side_cannot_hold_is_refused_by_name() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(EXT4, "ext4", "ext4");
        grounds.mount_image(NTFS, "ntfs-3g", "ntfs");
        grounds.mount_image(EXFAT, "exfat-fuse", "exfat");
        grounds.mount("tmpfs", "tmpfs", "memory");
    };
    let name = "what_the_windows_side_cannot_hold_is_refused_by_name";
    let programs = ["mkntfs", "ntfs-3g", "mkfs.exfat", "mount.exfat-fuse", "mkfs.ext4", "git"];
    inside(name, &programs, mount, |dir| {
        let odd = Repository::furnish(dir, "ext4/odd", NATIVE);
        for drive in ["ntfs", "exfat"] {
            let words = odd.refused(&dir.join(drive).join("odd"), &["--to-windows"]);
            for wanted in
                ["`a:b` holds `:`", "`aux.c` is the name of a device", "`trailing.` ends with", "`what?` holds"]
            {
                assert!(words.contains(wanted), "{drive}: {wanted}: {words}");
            }
            assert!(words.contains("differs from `Case` by case alone"), "{drive}: {words}");
            assert!(words.contains("is not valid Unicode"), "{drive}: {words}");
            assert!(!words.contains("plain.txt"), "{drive}: {words}");
        }

        // Taken as a disk like another, by force: what it cannot hold stops it all the same.
        let force = ["--target-fs", "fuseblk"];
        let cases = Repository::furnish(dir, "ext4/cases", Holds { any_name: false, any_byte: false, ..NATIVE });
        let words = cases.refused(&dir.join("exfat/cases"), &force);
        assert!(words.contains("differ by case alone") && words.contains("`Case`, `case`"), "{words}");
        let names = Repository::furnish(dir, "ext4/names", Holds { case: false, any_byte: false, ..NATIVE });
        let output = names.run_move(&dir.join("exfat/names"), &force);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains("may not hold such a name"), "{words}");
        assert!(!dir.join("exfat/names").exists());

        // A git dir of links cannot be one without them.
        let plain = Holds { case: false, any_name: false, any_byte: false, ..NATIVE };
        let linked = Repository::furnish(dir, "ext4/linked", plain);
        fs::rename(linked.path.join(".git/logs"), dir.join("ext4/logs")).unwrap();
        symlink(dir.join("ext4/logs"), linked.path.join(".git/logs")).unwrap();
        let words = linked.refused(&dir.join("exfat/linked"), &["--to-windows"]);
        assert!(words.contains("holds no links") && words.contains("`.git/logs`"), "{words}");

        // Nor is memory, or a disk of Linux, the Windows side.
        for (place, reason) in
            [("memory/app", "gone at the next restart"), ("ext4/app", "Windows programs do not work")]
        {
            let words = linked.refused(&dir.join(place), &["--to-windows"]);
            assert!(words.contains(reason), "{place}: {words}");
        }
    });
}

#[test]
fn a_pipe_that_cannot_be_there_is_named_and_the_rest_arrives() {
    let mount = |grounds: &Grounds| {
        grounds.mount_image(EXT4, "ext4", "ext4");
        grounds.mount_image(EXFAT, "exfat-fuse", "drive");
    };
    let name = "a_pipe_that_cannot_be_there_is_named_and_the_rest_arrives";
    inside(name, &["mkfs.exfat", "mount.exfat-fuse", "mkfs.ext4", "git"], mount, |dir| {
        let can = Holds { case: false, any_name: false, any_byte: false, ..NATIVE };
        let repository = Repository::furnish(dir, "ext4/app", can);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, repository.path.join("kept/pipe"), kind, mode, 0).unwrap();
        let output = repository.run_move(&dir.join("drive/app"), &["--to-windows"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let notes = report["result"]["notes"].to_string();
        assert!(notes.contains("holds no pipes") && notes.contains("`kept/pipe`"), "{notes}");
        assert_eq!(fs::read_to_string(dir.join("drive/app/kept/first")).unwrap(), "kept\n");
    });
}

/// Runs `rehome check --exit-code` on a repository; returns the exit status and the report.
fn check(repository: &Repository) -> (i32, Value) {
    let mut command = repository.command(env!("CARGO_BIN_EXE_rehome"));
    command
        .args(["check", "--exit-code", "--format", "json", "--rounds", "3", "--budget", "20s"])
        .arg(&repository.path);
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {words}"));
    (output.status.code().unwrap(), report)
}

#[test]
fn every_kind_of_filesystem_has_its_verdict() {
    let mount = |grounds: &Grounds| {
        // The home, and so the target.
        grounds.mount_image(EXT4, "ext4", "home");
        grounds.mount_image(EXT4, "ext4", "ext4");
        grounds.mount_image(XFS, "xfs", "xfs");
        grounds.mount_image(BTRFS, "btrfs", "btrfs");
        grounds.mount_image(NTFS, "ntfs-3g", "ntfs");
        grounds.mount_image(EXFAT, "exfat-fuse", "exfat");
        grounds.mount("tmpfs", "tmpfs", "tmpfs");
        grounds.mount("ramfs", "none", "ramfs");
        grounds.shell("mkdir ext4/lower ext4/upper ext4/work overlay");
        grounds.shell("mount -t overlay overlay -o lowerdir=ext4/lower,upperdir=ext4/upper,workdir=ext4/work overlay");
    };
    let name = "every_kind_of_filesystem_has_its_verdict";
    let programs =
        ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mkntfs", "ntfs-3g", "mkfs.exfat", "mount.exfat-fuse", "git"];
    inside(name, &programs, mount, |dir| {
        let checked = |place: &str, holds: Holds| {
            let repository = Repository::furnish(dir, &format!("{place}/app"), holds);
            let before = picture(&repository.path);
            let (status, report) = check(&repository);
            assert_untouched(&before, &picture(&repository.path));
            assert_eq!(report["complete"], true, "{place}: {report:#}");
            let advice = &report["recommendation"];
            let word = |key: &str| advice[key].as_str().unwrap().to_owned();
            ((word("verdict"), word("reason"), status), report)
        };
        let expected = |verdict: &str, reason: &str, status| (verdict.to_owned(), reason.to_owned(), status);
        for place in ["ext4", "xfs", "btrfs"] {
            let (advice, report) = checked(place, NATIVE);
            assert_eq!(advice, expected("stay", "already-native", 0), "{place}: {report:#}");
            assert_eq!(report["recommendation"]["command"], Value::Null, "{place}");
        }
        for place in ["tmpfs", "ramfs"] {
            let (advice, report) = checked(place, NATIVE);
            assert_eq!(advice, expected("move", "data-at-risk", 10), "{place}: {report:#}");
            let command = &report["recommendation"]["command"];
            assert_eq!(command[2], dir.join(place).join("app").to_str().unwrap());
            assert_eq!(command[3], dir.join("home/app").to_str().unwrap());
        }
        let (advice, report) = checked("overlay", NATIVE);
        assert_eq!(advice, expected("stay", "layered", 0), "{report:#}");
        let say = report["recommendation"]["say"].as_str().unwrap();
        assert!(!say.contains("container's own"), "{say}");
        // How fast they are is this machine's matter; that they are measured against ext4 is not.
        for (place, holds) in [("ntfs", NTFS_3G), ("exfat", FAT)] {
            let ((_, reason, _), report) = checked(place, holds);
            assert_ne!(reason, "already-native", "{report:#}");
            assert_eq!(report["facts"]["site"]["class"], "fuse", "{report:#}");
            assert_eq!(report["facts"]["target"]["fstype"], "ext4", "{report:#}");
            let measured = report["measurements"].as_array().unwrap();
            let status = measured.iter().find(|one| one["workload"] == "git_status").unwrap();
            assert_eq!(status["same_work"], true, "{place}: {status:#}");
        }
    });
}
