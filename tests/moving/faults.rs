//! Whatever happens on the way: the source is as it was, and the destination is absent or complete.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::ground::{Ground, REHOME, can, failed, fstype, is_root, partial, picture, text, worktree};
use crate::slow_mount::{Call, Options, SlowMount, available};

/// Ends a test that would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something that happens to a file.
type Change = fn(&Path);

/// A repository of some hundred files, so that there is a middle of the copy.
fn large() -> Ground {
    let ground = Ground::furnished();
    for number in 0..240 {
        ground.write(format!("src/many/d{}/f{number}", number % 12), format!("{number}\n").repeat(50));
    }
    ground.commit("many");
    ground.write("src/many/d1/f1", "changed\n");
    ground
}

fn begin(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The destination is absent, or holds what the source holds.
fn assert_absent_or_complete(ground: &Ground) {
    if ground.dest().exists() {
        assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
        assert_eq!(ground.status(&ground.dest()), ground.status(&ground.source()));
    }
}

#[test]
fn a_run_that_is_killed_at_any_moment_is_completed_by_the_next_one() {
    const MOMENTS: u32 = 24;
    let ground = large();
    let before = picture(&ground.source());
    let begun = Instant::now();
    ground.moved(&[]);
    let whole = begun.elapsed();
    fs::remove_dir_all(ground.dest()).unwrap();
    for moment in 0..MOMENTS {
        let mut child = begin(ground.command(&["--yes"]));
        thread::sleep(whole * moment / MOMENTS);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(picture(&ground.source()), before, "moment {moment}");
        assert_absent_or_complete(&ground);
        let is_done = ground.dest().exists() && !partial(&ground.dest()).exists();
        if !is_done {
            ground.moved(&[]);
        }
        assert!(ground.dest().exists(), "moment {moment}");
        assert_absent_or_complete(&ground);
        assert!(!partial(&ground.dest()).exists());
        assert_eq!(picture(&ground.source()), before);
        fs::remove_dir_all(ground.dest()).unwrap();
    }
}

#[test]
fn a_run_that_is_interrupted_by_the_user_is_continued_by_the_next_one() {
    if !available("a_run_that_is_interrupted_by_the_user_is_continued_by_the_next_one") {
        return;
    }
    let ground = large();
    let options = Options { delay_us: 3_000, parallel: 4, ..Options::default() };
    let mount = SlowMount::new(&ground.source(), options).unwrap();
    let child = begin(ground.command_from(mount.path(), &["--yes"]));
    let many = partial(&ground.dest()).join("tree/many/d3");
    wait_for(|| many.exists());
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(!ground.dest().exists());
    mount.set_delay(0);
    let report = ground.moved_from(mount.path(), &[]);
    assert!(report["result"]["files_continued"].as_u64().unwrap() > 0, "{}", report["result"]);
    assert_eq!(report["plan"]["continues"], true);
    assert_absent_or_complete(&ground);
}

fn wait_for(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited too long");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A small ext4 filesystem in a file; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn new(ground: &Ground, size_bytes: u64) -> Option<Self> {
        let (image, place) = (ground.path("image"), ground.path("disk"));
        fs::File::create(&image).unwrap().set_len(size_bytes).unwrap();
        fs::create_dir(&place).unwrap();
        let run = |program: &str, arguments: &[&Path]| {
            let output = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
            output.is_ok_and(|status| status.success())
        };
        let is_made = run("mkfs.ext4", &["-q".as_ref(), &image]);
        (is_made && run("mount", &["-o".as_ref(), "loop".as_ref(), &image, &place])).then(|| Self(place))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up_leaves_no_destination_and_the_copy_is_continued_when_there_is_room() {
    const NAME: &str = "a_disk_that_fills_up_leaves_no_destination_and_the_copy_is_continued_when_there_is_room";
    if !available(NAME) || !can(NAME, "root", is_root()) {
        return;
    }
    let ground = large();
    for number in 0..40 {
        ground.write(format!("src/big/{number}"), vec![number; 1 << 20]);
    }
    let disk = Disk::new(&ground, 256 << 20);
    if !can(NAME, "loop devices and mkfs.ext4", disk.is_some()) {
        return;
    }
    let disk = disk.unwrap();
    let before = picture(&ground.source());
    let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
    mount.hang("big/7", &[Call::Read]).unwrap();
    let dest = disk.0.join("dest");
    let run = || {
        let mut command = ground.clean(Command::new(REHOME));
        command.arg("move").arg(mount.path()).arg(&dest).args(["--yes", "--format", "json"]);
        command
    };
    let child = begin(run());
    assert!(mount.wait_for_hung(1, PATIENCE));
    let filler = disk.0.join("filler");
    let _ = Command::new("dd")
        .args(["if=/dev/zero", "bs=1M", "status=none"])
        .arg(format!("of={}", filler.display()))
        .stderr(Stdio::null())
        .status();
    mount.heal();
    mount.release();
    let message = failed(&child.wait_with_output().unwrap());
    assert!(message.contains("make room there and run the same command again"), "{message}");
    assert!(!dest.exists());
    assert_eq!(picture(&ground.source()), before);
    fs::remove_file(filler).unwrap();
    let output = run().output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(worktree(&dest), worktree(&ground.source()));
    drop(mount);
}

#[test]
fn faults_of_the_mount_that_stay_are_named_and_those_that_pass_are_waited_out() {
    if !available("faults_of_the_mount_that_stay_are_named_and_those_that_pass_are_waited_out") {
        return;
    }
    for (errno, call) in [(Errno::IO, Call::Read), (Errno::STALE, Call::Open), (Errno::IO, Call::Lookup)] {
        let ground = large();
        let before = picture(&ground.source());
        let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
        mount.fail("many/d3/f3", &[call], errno).unwrap();
        let message = failed(&ground.command_from(mount.path(), &["--yes"]).output().unwrap());
        assert!(message.contains("many/d3/f3"), "{message}");
        assert!(!ground.dest().exists());
        mount.heal();
        mount.fail_times("many/d4/f4", &[call], errno, 2).unwrap();
        ground.moved_from(mount.path(), &[]);
        assert_absent_or_complete(&ground);
        drop(mount);
        assert_eq!(picture(&ground.source()), before);
    }
}

/// Starts a move that hangs in the middle: while it reads `path`.
fn hanging(ground: &Ground, mount: &SlowMount, path: &str) -> Child {
    mount.hang(path, &[Call::Read]).unwrap();
    let child = begin(ground.command_from(mount.path(), &["--yes"]));
    assert!(mount.wait_for_hung(1, PATIENCE));
    child
}

#[test]
fn a_file_that_changes_grows_shrinks_or_vanishes_meanwhile_is_copied_as_it_is_in_the_end() {
    if !available("a_file_that_changes_grows_shrinks_or_vanishes_meanwhile_is_copied_as_it_is_in_the_end") {
        return;
    }
    let changes: [(&str, Change); 5] = [
        ("changes", |path| fs::write(path, "5\n".repeat(50).replace('5', "x")).unwrap()),
        ("grows", |path| fs::write(path, "longer\n".repeat(5000)).unwrap()),
        ("shrinks", |path| fs::write(path, "s").unwrap()),
        ("vanishes", |path| fs::remove_file(path).unwrap()),
        ("becomes a directory", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
            fs::write(path.join("inner"), "i").unwrap();
        }),
    ];
    for (name, change) in changes {
        let ground = large();
        let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
        let child = hanging(&ground, &mount, "many/d5/f5");
        change(&ground.path("src/many/d5/f5"));
        // Beside it, a file that was copied already, or will be: the last look must see it.
        ground.write("src/many/d0/f0", "changed late\n");
        ground.write("src/late-comer", "new\n");
        mount.heal();
        mount.release();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert_eq!(worktree(&ground.dest()), worktree(&ground.source()), "{name}");
        assert_eq!(ground.status(&ground.dest()), ground.status(&ground.source()), "{name}");
    }
}

#[test]
fn a_file_that_is_written_all_the_time_stops_the_move() {
    if !available("a_file_that_is_written_all_the_time_stops_the_move") {
        return;
    }
    let ground = large();
    let mount = SlowMount::new(&ground.source(), Options { delay_us: 500, ..Options::default() }).unwrap();
    let child = begin(ground.command_from(mount.path(), &["--yes"]));
    let path = ground.path("src/many/d5/f5");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::write(&path, format!("{number}")).unwrap();
                number += 1;
                thread::sleep(Duration::from_millis(1));
            }
        });
        let output = child.wait_with_output().unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        output
    });
    let message = failed(&output);
    assert!(message.contains("does not keep still") && message.contains("many/d5/f5"), "{message}");
    assert!(!ground.dest().exists());
    ground.moved_from(mount.path(), &[]);
    assert_absent_or_complete(&ground);
}

#[test]
fn a_destination_that_appears_meanwhile_is_not_touched() {
    if !available("a_destination_that_appears_meanwhile_is_not_touched") {
        return;
    }
    let ground = large();
    let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
    for is_empty in [true, false] {
        let child = hanging(&ground, &mount, "many/d5/f5");
        fs::create_dir(ground.dest()).unwrap();
        if !is_empty {
            ground.write("dest/theirs", "theirs");
        }
        mount.heal();
        mount.release();
        let message = failed(&child.wait_with_output().unwrap());
        assert!(message.contains("appeared while the copy was made"), "{message}");
        assert_eq!(ground.path("dest/theirs").exists(), !is_empty);
        assert_eq!(fs::read_dir(ground.dest()).unwrap().count(), usize::from(!is_empty));
        fs::remove_dir_all(ground.dest()).unwrap();
        fs::File::options()
            .append(true)
            .open(ground.path("src/many/d5/f5"))
            .unwrap()
            .set_modified(std::time::SystemTime::now())
            .unwrap();
    }
    ground.moved_from(mount.path(), &[]);
    assert_absent_or_complete(&ground);
}

#[test]
fn the_second_of_two_runs_at_once_is_refused_and_the_first_completes() {
    if !available("the_second_of_two_runs_at_once_is_refused_and_the_first_completes") {
        return;
    }
    let ground = large();
    let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
    let first = hanging(&ground, &mount, "many/d5/f5");
    let message = failed(&ground.command_from(&ground.source(), &["--yes"]).output().unwrap());
    assert!(message.contains("another `rehome move` is working"), "{message}");
    mount.heal();
    mount.release();
    let output = first.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_absent_or_complete(&ground);
}

/// A user without rights, as far as the test can be one.
fn as_nobody(ground: &Ground, mut command: Command) -> Command {
    const NOBODY: &str = "65534";
    if !is_root() {
        return command;
    }
    ground.mode("", 0o755);
    Command::new("chown").args(["-R", NOBODY]).arg(ground.root()).status().unwrap();
    let mut outer = ground.clean(Command::new("setpriv"));
    outer.args(["--reuid", NOBODY, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]);
    outer.arg(command.get_program()).args(command.get_args());
    command.stdin(Stdio::null());
    outer
}

#[test]
fn files_that_may_not_be_read_are_named_and_nothing_is_left_behind_silently() {
    const NAME: &str = "files_that_may_not_be_read_are_named_and_nothing_is_left_behind_silently";
    // A copy that the other user may run, wherever the build directory is.
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = program.path().join("rehome");
    fs::copy(REHOME, &binary).unwrap();
    let has_setpriv = !is_root() || Command::new("setpriv").arg("--version").output().is_ok();
    if !can(NAME, "setpriv", has_setpriv) {
        return;
    }
    for (path, mode) in [("src/many/d5/f5", 0o000), ("src/many/d6", 0o000)] {
        let ground = large();
        let before = picture(&ground.source());
        let real = ground.path(path).metadata().unwrap().permissions();
        ground.mode(path, mode);
        let run = || {
            let mut command = ground.clean(Command::new(&binary));
            command.arg("move").arg(ground.source()).arg(ground.dest()).arg("--yes");
            command.args(["--target-fs", &fstype(&ground.root())]);
            as_nobody(&ground, command)
        };
        let message = failed(&run().output().unwrap());
        assert!(message.contains(&path[4..]) && message.contains("make them readable"), "{message}");
        assert!(!ground.dest().exists());
        fs::set_permissions(ground.path(path), real).unwrap();
        let output = run().output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
        assert_eq!(picture(&ground.source()), before);
    }
}

#[test]
fn a_damaged_repository_is_not_called_moved() {
    let ground = Ground::furnished();
    let pack = fs::read_dir(ground.path("src/.git/objects/pack")).unwrap();
    let pack = pack.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "pack"));
    let pack = pack.unwrap();
    ground.mode(&pack, 0o644);
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&pack, bytes).unwrap();
    let before = picture(&ground.source());
    let message = ground.refused(&[]);
    assert!(message.contains("damaged") || message.contains("failed"), "{message}");
    assert!(!ground.dest().exists());
    assert_eq!(picture(&ground.source()), before);
}

#[test]
fn a_copy_that_reads_back_differently_is_made_again() {
    if !available("a_copy_that_reads_back_differently_is_made_again") {
        return;
    }
    let ground = large();
    let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
    let child = hanging(&ground, &mount, "many/d5/f5");
    // What was copied already is spoiled behind the program's back.
    let copied = partial(&ground.dest()).join("tree/two.txt");
    wait_for(|| fs::read(&copied).is_ok_and(|text| text == b"two changed\n"));
    fs::write(&copied, "twO changed\n").unwrap();
    mount.heal();
    mount.release();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
}

#[test]
fn the_partial_directory_of_another_source_is_begun_anew() {
    let ground = large();
    ground.git(&["clone", "-q", "src", "elsewhere"], &ground.root());
    ground.write("elsewhere/only-here", "x");
    let mut child = begin(ground.command(&["--yes"]));
    wait_for(|| partial(&ground.dest()).join("journal").exists());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    if ground.dest().exists() {
        return;
    }
    ground.moved_from(&ground.path("elsewhere"), &[]);
    assert_eq!(worktree(&ground.dest()), worktree(&ground.path("elsewhere")));
}
