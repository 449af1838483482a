//! The slow mount itself: it shows and changes the backing files faithfully, counts every call, and delays, limits,
//! fails and hangs as told.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, XattrFlags};
use rustix::io::Errno;
use slow_mount::{Call, Counts, Options, SlowMount, available};
use tempfile::TempDir;

/// How many ask at the same time where that matters.
const THREADS: usize = 16;
/// Ends a test that would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// One way to change something, and what it counts as.
type Change<'a> = (Call, &'a dyn Fn());

struct Ground {
    // Dropped first: unmounted before the backing files go.
    mount: SlowMount,
    backing: TempDir,
}

impl Ground {
    fn new(options: Options) -> Ground {
        let backing = tempfile::tempdir().unwrap();
        let mount = SlowMount::new(backing.path(), options).unwrap();
        Ground { mount, backing }
    }

    fn on_mount(&self, path: impl AsRef<Path>) -> PathBuf {
        self.mount.path().join(path)
    }

    fn behind(&self, path: impl AsRef<Path>) -> PathBuf {
        self.backing.path().join(path)
    }

    fn write_behind(&self, path: &str, contents: &str) {
        let path = self.behind(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// Counts what `work` asks of the mount, what the kernel does in the background included.
    fn count(&self, work: impl FnOnce()) -> Counts {
        self.mount.reset_counts();
        work();
        // The kernel sends releases after `close` has returned.
        thread::sleep(Duration::from_millis(50));
        assert!(self.mount.wait_until_idle(PATIENCE));
        self.mount.counts()
    }
}

/// Everything that `stat`, reading, `readlink` and `listxattr` tell of the files below a directory.
fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(root.join(&dir)).unwrap() {
            let entry = entry.unwrap();
            let relative = dir.join(entry.file_name());
            let path = root.join(&relative);
            let m = fs::symlink_metadata(&path).unwrap();
            let kind = entry.file_type().unwrap();
            assert_eq!(kind, m.file_type(), "the listing agrees with stat on {}", relative.display());
            let mut text = format!(
                "ino {} mode {:o} nlink {} uid {} gid {} size {} rdev {} mtime {}.{:09} ctime {}.{:09}",
                m.ino(),
                m.mode(),
                m.nlink(),
                m.uid(),
                m.gid(),
                m.size(),
                m.rdev(),
                m.mtime(),
                m.mtime_nsec(),
                m.ctime(),
                m.ctime_nsec(),
            );
            if kind.is_symlink() {
                let _ = write!(text, " -> {}", fs::read_link(&path).unwrap().display());
            } else {
                if kind.is_file() {
                    let contents = fs::read(&path).unwrap();
                    let _ = write!(
                        text,
                        " contents {:x}",
                        contents.iter().fold(7u64, |h, b| h.wrapping_mul(31) + u64::from(*b))
                    );
                }
                let mut names = vec![0; 4096];
                let len = rustix::fs::llistxattr(&path, &mut names[..]).unwrap();
                for name in names[..len].split(|b| *b == 0).filter(|n| !n.is_empty()) {
                    let mut value = vec![0; 4096];
                    let len = rustix::fs::lgetxattr(&path, name, &mut value[..]).unwrap();
                    let _ = write!(text, " {}={:?}", name.escape_ascii(), &value[..len]);
                }
            }
            if kind.is_dir() {
                open.push(relative.clone());
            }
            seen.insert(relative, text);
        }
    }
    seen
}

/// Runs git with its own home and no configuration of this machine.
fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "a tester")))
        .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "tester@example.org")))
        .output()
        .unwrap();
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn it_shows_the_backing_files_as_they_are() {
    if !available("it_shows_the_backing_files_as_they_are") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("a/b/c/deep.txt", "deep");
    ground.write_behind("a/plain.txt", "plain");
    fs::write(ground.behind("large"), vec![7; 3_000_000]).unwrap();
    fs::write(ground.behind(OsStr::from_bytes(b"a/not \xff utf-8\n\x1b[31m")), "name").unwrap();
    fs::hard_link(ground.behind("a/plain.txt"), ground.behind("a/b/linked.txt")).unwrap();
    symlink("plain.txt", ground.behind("a/to-plain")).unwrap();
    symlink("/nonexistent/target", ground.behind("dangling")).unwrap();
    fs::create_dir(ground.behind("empty")).unwrap();
    rustix::fs::mknodat(CWD, ground.behind("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    fs::set_permissions(ground.behind("a/plain.txt"), fs::Permissions::from_mode(0o4751)).unwrap();
    let odd = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    File::open(ground.behind("large")).unwrap().set_modified(odd).unwrap();
    let before_1970 = SystemTime::UNIX_EPOCH - Duration::new(5, 250_000_000);
    File::open(ground.behind("a/b/c/deep.txt")).unwrap().set_modified(before_1970).unwrap();
    // Not every filesystem has extended attributes; where it has none, both sides show none.
    let _ = rustix::fs::lsetxattr(ground.behind("large"), "user.note", b"kept", XattrFlags::empty());

    let shown = picture(ground.mount.path());
    assert_eq!(shown, picture(ground.backing.path()));
    assert_eq!(shown.len(), 12);
    let root = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(root(ground.mount.path()), root(ground.backing.path()));
    assert_eq!(ground.mount.counts().write_like(), 0, "{}", ground.mount.counts());
}

#[test]
fn a_listing_with_attributes_shows_the_same() {
    if !available("a_listing_with_attributes_shows_the_same") {
        return;
    }
    let ground = Ground::new(Options { readdirplus: true, ..Options::default() });
    for number in 0..300 {
        ground.write_behind(&format!("dir{}/file-with-a-long-name-{number}", number % 3), "x");
    }
    assert_eq!(picture(ground.mount.path()), picture(ground.backing.path()));
    assert!(ground.mount.counts().of(Call::Readdirplus) > 0);
    assert_eq!(ground.mount.counts().of(Call::Readdir), 0);
}

#[test]
fn what_is_done_through_it_is_done_to_the_backing_files() {
    if !available("what_is_done_through_it_is_done_to_the_backing_files") {
        return;
    }
    let ground = Ground::new(Options::default());
    let m = |path: &str| ground.on_mount(path);
    fs::create_dir_all(m("d/e")).unwrap();
    fs::write(m("d/file"), "one").unwrap();
    OpenOptions::new().append(true).open(m("d/file")).unwrap().write_all(b" two").unwrap();
    fs::write(m("d/replaced"), "gone").unwrap();
    fs::rename(m("d/file"), m("d/replaced")).unwrap();
    fs::hard_link(m("d/replaced"), m("d/e/other")).unwrap();
    symlink("../d", m("d/e/up")).unwrap();
    fs::set_permissions(m("d/replaced"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(m("d"), m("renamed")).unwrap();
    let stamp = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 1);
    OpenOptions::new().write(true).open(m("renamed/replaced")).unwrap().set_modified(stamp).unwrap();
    fs::write(m("x"), "x").unwrap();
    fs::write(m("y"), "yy").unwrap();
    rustix::fs::renameat_with(CWD, m("x"), CWD, m("y"), RenameFlags::EXCHANGE).unwrap();
    OpenOptions::new().write(true).open(m("y")).unwrap().set_len(9).unwrap();
    fs::write(m("removed"), "removed").unwrap();
    fs::remove_file(m("removed")).unwrap();
    fs::create_dir(m("gone")).unwrap();
    fs::remove_dir(m("gone")).unwrap();

    assert_eq!(fs::read_to_string(ground.behind("renamed/e/other")).unwrap(), "one two");
    assert_eq!(fs::read(ground.behind("y")).unwrap(), b"x\0\0\0\0\0\0\0\0");
    assert_eq!(fs::read(ground.behind("x")).unwrap(), b"yy");
    assert_eq!(fs::metadata(ground.behind("renamed/replaced")).unwrap().modified().unwrap(), stamp);
    assert_eq!(picture(ground.mount.path()), picture(ground.backing.path()));
}

#[test]
fn an_open_file_outlives_its_name() {
    if !available("an_open_file_outlives_its_name") {
        return;
    }
    let ground = Ground::new(Options::default());
    let path = ground.on_mount("file");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all(b"still here").unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 10);
    file.set_len(5).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still");
    fs::write(&path, "a new file of that name").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a new file of that name");
    assert_eq!(file.metadata().unwrap().len(), 5);
}

#[test]
fn what_changes_behind_it_is_seen_at_once() {
    if !available("what_changes_behind_it_is_seen_at_once") {
        return;
    }
    let ground = Ground::new(Options::default());
    // Filesystems give the inode number of a removed file to the next one.
    for round in 0..50 {
        let text = format!("round {round} {}", "x".repeat(round));
        ground.write_behind("file", &text);
        assert_eq!(fs::read_to_string(ground.on_mount("file")).unwrap(), text);
        assert_eq!(fs::metadata(ground.on_mount("file")).unwrap().len(), text.len() as u64);
        fs::remove_file(ground.behind("file")).unwrap();
        assert!(!ground.on_mount("file").exists());
        fs::create_dir(ground.behind("file")).unwrap();
        assert!(ground.on_mount("file").is_dir());
        fs::remove_dir(ground.behind("file")).unwrap();
    }
}

#[test]
fn git_works_on_it() {
    if !available("git_works_on_it") {
        return;
    }
    let ground = Ground::new(Options { delay_us: 20, ..Options::default() });
    let origin = tempfile::tempdir().unwrap();
    git(origin.path(), &["init", "-q", "-b", "main"]);
    for number in 0..200 {
        let path = origin.path().join(format!("src/{}/file{number}", number % 20));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("contents {number}\n").repeat(number)).unwrap();
    }
    symlink("src/0", origin.path().join("link")).unwrap();
    git(origin.path(), &["add", "-A"]);
    git(origin.path(), &["commit", "-qm", "first"]);

    let source = origin.path().to_str().unwrap();
    git(ground.mount.path(), &["clone", "-q", source, "clone"]);
    let clone = ground.on_mount("clone");
    assert_eq!(git(&clone, &["status", "--porcelain"]), "");
    fs::write(clone.join("src/0/file0"), "changed\n").unwrap();
    fs::write(clone.join("new"), "new\n").unwrap();
    assert_eq!(git(&clone, &["status", "--porcelain"]), " M src/0/file0\n?? new\n");
    git(&clone, &["add", "-A"]);
    git(&clone, &["commit", "-qm", "second"]);
    git(&clone, &["checkout", "-q", "HEAD~1"]);
    git(&clone, &["checkout", "-q", "main"]);
    git(&clone, &["gc", "-q"]);
    git(&clone, &["fsck", "--strict", "--no-progress"]);
    assert_eq!(git(&clone, &["status", "--porcelain"]), "");
    // The index holds inode numbers and times: that it is clean behind the mount too shows that they are the same.
    let behind = ground.behind("clone");
    assert_eq!(git(&behind, &["diff-files", "--name-only"]), "");
    assert_eq!(picture(&clone), picture(&behind));
}

#[test]
fn every_call_is_counted() {
    if !available("every_call_is_counted") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("a/b/file", "contents");
    let file = ground.on_mount("a/b/file");

    for round in 0..3 {
        let counts = ground.count(|| assert!(fs::symlink_metadata(&file).is_ok()));
        assert_eq!(counts.of(Call::Lookup), 3, "one for each part of the path, also in round {round}: {counts}");
        assert_eq!(counts.of(Call::Getattr), 1, "{counts}");
        assert_eq!(counts.total(), 4, "{counts}");
    }

    let counts = ground.count(|| assert!(fs::symlink_metadata(ground.on_mount("a/missing")).is_err()));
    assert_eq!((counts.of(Call::Lookup), counts.total()), (2, 2), "{counts}");

    let counts = ground.count(|| drop(File::open(&file).unwrap()));
    let kinds = [Call::Lookup, Call::Open, Call::Flush, Call::Release].map(|call| counts.of(call));
    assert_eq!(kinds, [3, 1, 1, 1], "{counts}");

    let counts = ground.count(|| assert_eq!(fs::read_dir(ground.on_mount("a")).unwrap().count(), 1));
    let kinds = [Call::Lookup, Call::Opendir, Call::Readdir, Call::Releasedir].map(|call| counts.of(call));
    assert_eq!(kinds, [1, 1, 2, 1], "{counts}");

    ground.mount.start_trace();
    fs::symlink_metadata(&file).unwrap();
    let trace = ground.mount.take_trace();
    let shown: Vec<String> = trace.iter().map(|(call, path)| format!("{} {}", call.name(), path.display())).collect();
    assert_eq!(shown, ["lookup a", "lookup a/b", "lookup a/b/file", "getattr a/b/file"]);
}

#[test]
fn each_delay_belongs_to_its_call() {
    if !available("each_delay_belongs_to_its_call") {
        return;
    }
    let ground = Ground::new(Options { delay_us: 100, ..Options::default() });
    ground.write_behind("a/file", "contents");
    let stat = || assert!(fs::symlink_metadata(ground.on_mount("a/file")).is_ok());
    assert_eq!(ground.count(stat).delayed, Duration::from_micros(300));
    ground.mount.set_delay_of(Call::Getattr, 1_000);
    assert_eq!(ground.count(stat).delayed, Duration::from_micros(1_200));
    ground.mount.set_delay(0);
    let counts = ground.count(stat);
    assert_eq!((counts.delayed, counts.total()), (Duration::ZERO, 3));
}

#[test]
fn no_more_requests_are_served_at_once_than_allowed() {
    if !available("no_more_requests_are_served_at_once_than_allowed") {
        return;
    }
    let ground = Ground::new(Options { delay_us: 5_000, parallel: 4, ..Options::default() });
    // One directory: the kernel must let lookups in it through side by side.
    for number in 0..THREADS {
        ground.write_behind(&format!("dir/file{number}"), "");
    }
    let all_at_once = || {
        thread::scope(|scope| {
            for number in 0..THREADS {
                let path = ground.on_mount(format!("dir/file{number}"));
                scope.spawn(move || fs::symlink_metadata(path).unwrap());
            }
        });
    };
    assert_eq!(ground.count(all_at_once).max_in_service, 4);
    ground.mount.set_parallel(1);
    assert_eq!(ground.count(all_at_once).max_in_service, 1);
    ground.mount.set_parallel(0);
    let max = ground.count(all_at_once).max_in_service;
    assert!(max > 4, "{max}");
}

#[test]
fn requests_wait_side_by_side() {
    if !available("requests_wait_side_by_side") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("dir/file", "");
    ground.mount.hang("dir/*", &[Call::Lookup]).unwrap();
    thread::scope(|scope| {
        for number in 0..50 {
            let path = ground.on_mount(format!("dir/missing{number}"));
            scope.spawn(move || assert!(fs::symlink_metadata(path).is_err()));
        }
        assert!(ground.mount.wait_for_hung(50, PATIENCE));
        // A mount that hangs for some still answers others.
        fs::read_dir(ground.on_mount("dir")).unwrap();
        ground.mount.heal();
    });
    assert_eq!(ground.mount.hung(), 0);
}

#[test]
fn errors_hit_the_paths_and_kinds_they_are_meant_for() {
    if !available("errors_hit_the_paths_and_kinds_they_are_meant_for") {
        return;
    }
    let ground = Ground::new(Options::default());
    for name in ["src/bad.rs", "src/good.rs", "src/deep/bad.rs", "other/bad.rs"] {
        ground.write_behind(name, "text");
    }
    let errno =
        |result: std::io::Result<_>| result.map(|_: fs::Metadata| ()).map_err(|e| Errno::from_io_error(&e).unwrap());
    let stat = |path: &str| errno(fs::symlink_metadata(ground.on_mount(path)));

    ground.mount.fail("src/bad.rs", &[Call::Getattr], Errno::IO).unwrap();
    assert_eq!(stat("src/bad.rs"), Err(Errno::IO));
    for fine in ["src/good.rs", "src/deep/bad.rs", "other/bad.rs"] {
        assert_eq!(stat(fine), Ok(()));
    }
    ground.mount.heal();
    assert_eq!(stat("src/bad.rs"), Ok(()));

    for wanted in [Errno::STALE, Errno::ACCESS, Errno::IO] {
        ground.mount.fail("src/**", &[Call::Lookup], wanted).unwrap();
        assert_eq!(stat("src/deep/bad.rs"), Err(wanted));
        assert_eq!(stat("other/bad.rs"), Ok(()));
        ground.mount.heal();
    }

    ground.mount.fail("**/good.rs", &[Call::Open], Errno::ACCESS).unwrap();
    assert_eq!(stat("src/good.rs"), Ok(()));
    assert_eq!(errno(File::open(ground.on_mount("src/good.rs")).and_then(|f| f.metadata())), Err(Errno::ACCESS));
    ground.mount.heal();

    ground.mount.fail_times("src/good.rs", &[Call::Getattr], Errno::IO, 2).unwrap();
    assert_eq!([(); 3].map(|()| stat("src/good.rs")), [Err(Errno::IO), Err(Errno::IO), Ok(())]);
}

#[test]
fn what_hangs_is_answered_once_released() {
    if !available("what_hangs_is_answered_once_released") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("file", "text");
    ground.mount.hang_everything().unwrap();
    let path = ground.on_mount("file");
    let reader = thread::spawn(move || fs::symlink_metadata(path).unwrap().len());
    // Each released request is followed by the next one, which hangs again.
    for request in 0..2 {
        assert!(ground.mount.wait_for_hung(1, PATIENCE), "request {request}");
        assert!(!reader.is_finished());
        ground.mount.release();
    }
    assert_eq!(reader.join().unwrap(), 4);
    ground.mount.heal();
}

#[test]
fn a_mount_can_stop_answering_in_the_middle() {
    if !available("a_mount_can_stop_answering_in_the_middle") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("file", "text");
    ground.mount.hang_everything_after(3).unwrap();
    let path = ground.on_mount("file");
    let reader = thread::spawn(move || [(); 2].map(|()| fs::symlink_metadata(&path).unwrap().len()));
    assert!(ground.mount.wait_for_hung(1, PATIENCE));
    assert_eq!(ground.mount.counts().total(), 4);
    ground.mount.heal();
    assert_eq!(reader.join().unwrap(), [4, 4]);
}

#[test]
fn unmounting_frees_who_waits_for_a_hung_mount() {
    if !available("unmounting_frees_who_waits_for_a_hung_mount") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("file", "text");
    ground.mount.hang_everything().unwrap();
    let (path, point) = (ground.on_mount("file"), ground.mount.path().to_owned());
    // Another name: the kernel asks once for two that look up the same one at the same time.
    let mut child =
        Command::new("cat").arg(ground.on_mount("other")).stderr(std::process::Stdio::null()).spawn().unwrap();
    let reader = thread::spawn(move || fs::symlink_metadata(path));
    assert!(ground.mount.wait_for_hung(2, PATIENCE));
    drop(ground);
    let error = reader.join().unwrap().unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOTCONN));
    assert!(!child.wait().unwrap().success());
    assert!(!point.exists());
}

#[test]
fn an_open_file_does_not_keep_it_mounted() {
    if !available("an_open_file_does_not_keep_it_mounted") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("file", "text");
    let point = ground.mount.path().to_owned();
    let mut file = File::open(ground.on_mount("file")).unwrap();
    drop(ground);
    assert!(!point.exists());
    assert!(file.read(&mut [0]).is_err());
}

#[test]
fn whatever_may_change_something_counts_as_a_write() {
    if !available("whatever_may_change_something_counts_as_a_write") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("dir/file", "text");
    let m = |path: &str| ground.on_mount(path);
    let reading = ground.count(|| {
        fs::read(m("dir/file")).unwrap();
        fs::read_dir(m("dir")).unwrap().count();
        fs::read_link(m("dir/file")).unwrap_err();
    });
    assert_eq!(reading.write_like(), 0, "{reading}");

    let writes: [Change<'_>; 11] = [
        (Call::OpenForWriting, &|| drop(OpenOptions::new().write(true).open(m("dir/file")).unwrap())),
        (Call::Create, &|| drop(File::create_new(m("new")).unwrap())),
        (Call::Mkdir, &|| fs::create_dir(m("newdir")).unwrap()),
        (Call::Symlink, &|| symlink("x", m("symlink")).unwrap()),
        (Call::Link, &|| fs::hard_link(m("dir/file"), m("link")).unwrap()),
        (Call::Rename, &|| fs::rename(m("new"), m("renamed")).unwrap()),
        (Call::Unlink, &|| fs::remove_file(m("renamed")).unwrap()),
        (Call::Rmdir, &|| fs::remove_dir(m("newdir")).unwrap()),
        (Call::Setattr, &|| fs::set_permissions(m("link"), fs::Permissions::from_mode(0o600)).unwrap()),
        (Call::Mknod, &|| {
            rustix::fs::mknodat(CWD, m("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        }),
        // What the backing filesystem says to it does not matter.
        (Call::Setxattr, &|| {
            let _ = rustix::fs::lsetxattr(m("link"), "user.a", b"b", XattrFlags::empty());
        }),
    ];
    for (call, write) in writes {
        let counts = ground.count(write);
        assert_eq!((counts.of(call), counts.write_like()), (1, 1), "{call:?}: {counts}");
    }
    let counts = ground.count(|| fs::write(m("dir/file"), "longer text").unwrap());
    assert!(counts.of(Call::Write) == 1 && counts.write_like() >= 2, "{counts}");
}

#[test]
fn a_read_only_mount_refuses_writes() {
    if !available("a_read_only_mount_refuses_writes") {
        return;
    }
    let ground = Ground::new(Options { read_only: true, ..Options::default() });
    ground.write_behind("file", "text");
    let error = fs::write(ground.on_mount("file"), "other").unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::ROFS));
    assert_eq!(fs::read_to_string(ground.on_mount("file")).unwrap(), "text");
    assert_eq!(ground.mount.counts().write_like(), 0);
}

#[test]
fn a_lie_about_a_size_is_told_of_one_file() {
    if !available("a_lie_about_a_size_is_told_of_one_file") {
        return;
    }
    let ground = Ground::new(Options::default());
    ground.write_behind("dir/one", "four");
    ground.write_behind("dir/two", "four");
    let sizes = || ["dir/one", "dir/two"].map(|path| fs::metadata(ground.on_mount(path)).unwrap().len());
    ground.mount.lie_about_size(Path::new("dir/one"), 1_000);
    assert_eq!(sizes(), [1_000, 4]);
    ground.mount.tell_the_truth(Path::new("dir/one"));
    assert_eq!(sizes(), [4, 4]);
}

#[test]
fn the_mount_table_shows_the_names_it_was_given() {
    if !available("the_mount_table_shows_the_names_it_was_given") {
        return;
    }
    let options = |fsname: Option<&str>, subtype: Option<&str>| Options {
        fsname: fsname.map(str::to_owned),
        subtype: subtype.map(str::to_owned),
        ..Options::default()
    };
    let cases = [
        (options(Some("server:/home"), Some("sshfs")), "fuse.sshfs", "server:/home"),
        (options(Some("C:\\"), None), "fuse", "C:\\134"),
    ];
    for (options, fstype, source) in cases {
        let ground = Ground::new(options);
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let point = ground.mount.path().to_str().unwrap();
        let line = table.lines().find(|line| line.split(' ').nth(4) == Some(point)).unwrap();
        let (_, filesystem) = line.split_once(" - ").unwrap();
        let shown: Vec<&str> = filesystem.split(' ').take(2).collect();
        assert_eq!(shown, [fstype, source]);
    }
}
