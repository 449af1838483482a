//! Real mounts of many kinds: what `rehome fs` says about them, and which of them may be a target.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/grounds.rs"]
mod grounds;

use std::fs;
use std::path::{Path, PathBuf};

use grounds::Grounds;
use rehome::facts::{FilesystemClass, Target};
use rehome::scan::filesystem::System;
use rehome::scan::filesystem::rules::FilesystemRuleSet;
use rehome::scan::filesystem::target::{TargetRequest, choose_target};
use serde_json::Value;

const EXT4: &[&str] = &["mkfs.ext4", "-q", "-F"];
const XFS: &[&str] = &["mkfs.xfs", "-q"];
const BTRFS: &[&str] = &["mkfs.btrfs", "-q"];
const VFAT: &[&str] = &["mkfs.vfat"];
const NTFS: &[&str] = &["mkntfs", "-qQF"];
const DISKS: &[&str] = &["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mkfs.vfat", "mkntfs", "ntfs-3g"];

/// What `rehome fs` says about a path inside.
fn place(grounds: &Grounds, path: &Path) -> Value {
    let args = ["fs", "--format", "json", path.to_str().unwrap()];
    let output = grounds.output(env!("CARGO_BIN_EXE_rehome"), args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let place: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(place["known"]["mount_by"], "statx");
    place
}

fn site(grounds: &Grounds, path: &Path) -> (String, String, PathBuf) {
    let place = place(grounds, path);
    let word = |key: &str| place["site"][key].as_str().unwrap().to_owned();
    (word("fstype"), word("class"), word("mount_point").into())
}

#[test]
fn every_kind_of_filesystem_has_its_class() {
    let Some(grounds) = Grounds::new("every_kind_of_filesystem_has_its_class", DISKS) else { return };
    let expect = |path: PathBuf, fstype: &str, class: &str| {
        fs::create_dir_all(path.join("dir")).ok();
        let inside = path.join(if path.ends_with("overlay") { "" } else { "." });
        assert_eq!(site(&grounds, &inside), (fstype.to_owned(), class.to_owned(), path));
    };
    expect(grounds.mount_image(EXT4, "ext4", "ext4"), "ext4", "local-native");
    expect(grounds.mount_image(XFS, "xfs", "xfs"), "xfs", "local-native");
    expect(grounds.mount_image(BTRFS, "btrfs", "btrfs"), "btrfs", "local-native");
    if grounds.has_filesystem("vfat") {
        expect(grounds.mount_image(VFAT, "vfat", "vfat"), "vfat", "local-native");
    }
    expect(grounds.mount_image(NTFS, "ntfs-3g", "ntfs"), "fuseblk", "fuse");
    expect(grounds.mount("tmpfs", "tmpfs", "tmpfs"), "tmpfs", "memory");
    expect(grounds.mount("ramfs", "none", "ramfs"), "ramfs", "memory");
    grounds.shell("mkdir tmpfs/lower tmpfs/upper tmpfs/work overlay");
    grounds.shell("mount -t overlay overlay -o lowerdir=tmpfs/lower,upperdir=tmpfs/upper,workdir=tmpfs/work overlay");
    expect(grounds.path("overlay"), "overlay", "overlay");
}

#[test]
fn a_bind_mount_a_link_and_a_cover_lead_to_what_is_really_there() {
    let name = "a_bind_mount_a_link_and_a_cover_lead_to_what_is_really_there";
    let Some(grounds) = Grounds::new(name, &["mkfs.ext4"]) else { return };
    let disk = grounds.mount_image(EXT4, "ext4", "disk");
    let memory = grounds.mount("tmpfs", "tmpfs", "memory");
    grounds.shell("mkdir -p memory/src/app disk/bound disk/covered/below && ln -s ../memory/src disk/link");
    grounds.shell("mount --bind memory/src disk/bound");
    let memory_at = |point: &Path| ("tmpfs".to_owned(), "memory".to_owned(), point.to_owned());

    assert_eq!(site(&grounds, &disk.join("bound/app")), memory_at(&disk.join("bound")));
    assert_eq!(site(&grounds, &disk.join("link/app")), memory_at(&memory));
    let linked = place(&grounds, &disk.join("link/app"));
    assert_eq!(linked["site"]["path"], disk.join("link/app").to_str().unwrap());
    assert_eq!(linked["site"]["real_path"], memory.join("src/app").to_str().unwrap());

    // First a disk at the longer path, then memory over its parent: the disk is hidden.
    grounds.shell("mount --bind disk/bound disk/covered/below && mount -t tmpfs cover disk/covered");
    grounds.shell("mkdir -p disk/covered/below/app");
    assert_eq!(site(&grounds, &disk.join("covered/below/app")), memory_at(&disk.join("covered")));
    // Two at one point: the later one is seen.
    grounds.shell("mount -t ramfs later disk/covered && mkdir disk/covered/x");
    assert_eq!(site(&grounds, &disk.join("covered/x")).0, "ramfs");
}

#[test]
fn a_mount_point_may_have_any_name() {
    let Some(grounds) = Grounds::new("a_mount_point_may_have_any_name", &[]) else { return };
    for name in ["with blank", "new\nline", "tab\there", r"back\slash", r"\040", "#hash", "ü - 9p", "\u{1b}[31m"] {
        let point = grounds.mount("tmpfs", "a source", name);
        assert_eq!(site(&grounds, &point), ("tmpfs".to_owned(), "memory".to_owned(), point.clone()));
        assert_eq!(place(&grounds, &point)["site"]["source"], "a source");
    }
}

#[test]
fn a_mount_that_refuses_writes_is_told() {
    let Some(grounds) = Grounds::new("a_mount_that_refuses_writes_is_told", &["mkfs.ext4"]) else { return };
    let disk = grounds.mount_image(EXT4, "ext4", "disk");
    grounds.shell("mkdir view && mount --bind disk view && mount -o remount,bind,ro view");
    assert_eq!(place(&grounds, &disk)["site"]["read_only"], false);
    assert_eq!(place(&grounds, &grounds.path("view"))["site"]["read_only"], true);
    grounds.shell("mount -o remount,ro disk");
    assert_eq!(place(&grounds, &disk)["site"]["read_only"], true);
}

#[test]
fn a_subvolume_is_on_the_mount_of_its_filesystem() {
    let Some(grounds) = Grounds::new("a_subvolume_is_on_the_mount_of_its_filesystem", &["mkfs.btrfs", "btrfs"]) else {
        return;
    };
    let disk = grounds.mount_image(BTRFS, "btrfs", "disk");
    grounds.shell("btrfs -q subvolume create disk/home && mkdir disk/home/app");
    assert_eq!(site(&grounds, &disk.join("home/app")), ("btrfs".to_owned(), "local-native".to_owned(), disk));
}

#[test]
fn a_mount_whose_server_died_is_named() {
    let name = "a_mount_whose_server_died_is_named";
    let Some(grounds) = Grounds::new(name, &["mkntfs", "ntfs-3g"]) else { return };
    let point = grounds.mount_image(NTFS, "ntfs-3g", "drive");
    kill_server(&point);
    let output = grounds.output(env!("CARGO_BIN_EXE_rehome"), ["fs", point.join("src").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    let expected = format!("rehome: the mount at `{}` (fuseblk from `/dev/loop", point.display());
    assert!(message.starts_with(&expected) && message.contains("does not answer"), "{message}");
    assert!(message.contains("hint: unmount it"), "{message}");
}

/// Kills the program that serves the mount at `point`, found by its own command line.
fn kill_server(point: &Path) {
    let point = point.to_str().unwrap().as_bytes();
    let mut killed = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_str().unwrap().parse() else { continue };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_server =
            command.split(|byte| *byte == 0).any(|word| word == point) && command.starts_with(b"/sbin/mount");
        if is_server {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            killed += 1;
        }
    }
    assert_eq!(killed, 1, "servers of the mount");
}

#[test]
fn targets_are_checked_on_real_mounts() {
    let name = "targets_are_checked_on_real_mounts";
    if let Some(dir) = Grounds::inside() {
        return check_targets(&dir);
    }
    let Some(grounds) = Grounds::new(name, DISKS) else { return };
    grounds.mount_image(EXT4, "ext4", "ext4");
    grounds.mount_image(EXT4, "ext4", "repo");
    grounds.mount_image(XFS, "xfs", "xfs");
    if grounds.has_filesystem("vfat") {
        grounds.mount_image(VFAT, "vfat", "vfat");
    }
    grounds.mount_image(NTFS, "ntfs-3g", "ntfs");
    grounds.mount_image(BTRFS, "btrfs", "btrfs");
    grounds.mount("tmpfs", "tmpfs", "tmpfs");
    grounds.shell("mkdir tmpfs/lower tmpfs/upper tmpfs/work overlay view readonly repo/app btrfs/app");
    grounds.shell("mount -t overlay overlay -o lowerdir=tmpfs/lower,upperdir=tmpfs/upper,workdir=tmpfs/work overlay");
    grounds.shell("mount --bind repo view && mount --bind ext4 readonly && mount -o remount,bind,ro readonly");
    grounds.shell("btrfs -q subvolume create btrfs/home");
    grounds.run_test(name);
}

fn check_targets(dir: &Path) {
    let system = System::live(FilesystemRuleSet::builtin().unwrap()).unwrap();
    let at = |name: &str| dir.join(name);
    let choose = |repository: &str, target: &str, allowed_fs: &[&str]| {
        let repository = system.locate(&at(repository)).unwrap();
        let allowed_fs: Vec<String> = allowed_fs.iter().map(|&fstype| fstype.to_owned()).collect();
        let target = at(target);
        let request = TargetRequest { explicit: Some(&target), allowed_fs: &allowed_fs, ..TargetRequest::default() };
        choose_target(&system, &TargetRequest { repository: Some(&repository), ..request })
    };
    let refused = |repository: &str, target: &str| {
        let error = choose(repository, target, &[]).unwrap_err();
        assert!(error.hint().unwrap().contains("--target DIR"), "{error}");
        error.to_string().replace(dir.to_str().unwrap().trim_end_matches('/'), "")
    };
    let taken = |target: Target| (target.site.fstype, target.site.class, target.free_bytes.is_some());
    let local = FilesystemClass::LocalNative;

    assert_eq!(taken(choose("repo/app", "ext4/not/there/yet", &[]).unwrap()), ("ext4".to_owned(), local, true));
    assert_eq!(taken(choose("repo/app", "xfs", &[]).unwrap()), ("xfs".to_owned(), local, true));
    if at("vfat").exists() {
        assert_eq!(refused("repo/app", "vfat"), "`/vfat` is on vfat (vfat), which is no place for a repository");
        assert_eq!(taken(choose("repo/app", "vfat", &["vfat"]).unwrap()), ("vfat".to_owned(), local, true));
    }
    let by_force = choose("repo/app", "ntfs", &["ext4", "fuseblk"]).unwrap();
    assert_eq!(taken(by_force), ("fuseblk".to_owned(), FilesystemClass::Fuse, true));

    assert_eq!(refused("repo/app", "tmpfs/x"), "`/tmpfs/x` is in memory (tmpfs) and gone at the next restart");
    assert_eq!(refused("repo/app", "overlay"), "`/overlay` is in a layer that is thrown away (overlay)");
    let ntfs = "`/ntfs` is on fuseblk (disk filesystem over FUSE), which is no place for a repository";
    assert_eq!(refused("repo/app", "ntfs"), ntfs);
    assert_eq!(refused("repo/app", "readonly"), "`/readonly` is on a filesystem that is mounted read-only (ext4)");
    // The same disk under another name, and another subvolume of the same disk.
    assert!(refused("repo/app", "view/elsewhere").contains("is on the repository's own filesystem (ext4"));
    assert!(refused("btrfs/app", "btrfs/home").contains("is on the repository's own filesystem (btrfs"));

    let places = [at("tmpfs"), at("xfs"), at("ext4")].to_vec();
    let request = TargetRequest { places, ..TargetRequest::default() };
    assert_eq!(choose_target(&system, &request).unwrap().site.fstype, "ext4");
    let request = TargetRequest { places: [at("tmpfs"), at("xfs")].to_vec(), ..TargetRequest::default() };
    assert_eq!(choose_target(&system, &request).unwrap().site.fstype, "xfs");
}

/// FUSE keeps an open file that is deleted under another name, so that its directory cannot be removed before it is closed.
#[test]
fn a_benchmark_leaves_nothing_on_a_filesystem_that_hides_open_files() {
    let name = "a_benchmark_leaves_nothing_on_a_filesystem_that_hides_open_files";
    let Some(grounds) = Grounds::new(name, &["mkntfs", "ntfs-3g"]) else { return };
    let point = grounds.mount_image(NTFS, "ntfs-3g", "ntfs");
    let other = tempfile::tempdir().unwrap();
    let places = [point.to_str().unwrap(), other.path().to_str().unwrap()];
    let options = ["--suite", "small", "--files", "40", "--rounds", "1", "--format", "json"];
    let output = grounds.output(env!("CARGO_BIN_EXE_rehome"), ["bench"].iter().chain(&places).chain(&options));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["places"][0]["site"]["fstype"], "fuseblk");
    assert_eq!(report["places"][0]["scratch"]["gone"], true, "{}", report["notes"]);
    let left = grounds.output("ls", ["-A", places[0]]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn check_copies_to_ext4_only_and_says_why_elsewhere_not() {
    let name = "check_copies_to_ext4_only_and_says_why_elsewhere_not";
    let Some(grounds) = Grounds::new(name, &["mkfs.ext4", "mkntfs", "ntfs-3g", "git"]) else { return };
    grounds.mount_image(EXT4, "ext4", "ext4");
    let drive = grounds.mount_image(NTFS, "ntfs-3g", "drive");
    grounds.mount("tmpfs", "tmpfs", "memory");
    grounds.shell("mkdir home && git init -q drive/app && cd drive/app && mkdir src && touch src/a src/b src/c");
    grounds.shell("cd drive/app && git add . && git -c user.name=a -c user.email=a@b commit -q -m all");
    grounds.shell("git clone -q drive/app ext4/app");
    let check = |repository: &Path, target: Option<&str>| {
        let home = grounds.path("home");
        let target = target.map(|target| format!("--target={}", grounds.path(target).display()));
        let rehome = env!("CARGO_BIN_EXE_rehome").to_owned();
        let args = ["-u", "XDG_CACHE_HOME", "-u", "XDG_CONFIG_HOME", "-u", "XDG_STATE_HOME"].map(str::to_owned);
        let home = format!("HOME={}", home.display());
        let check = [home, rehome, "check".to_owned(), "--format=json".to_owned(), "--rounds=3".to_owned()];
        let repository = repository.to_str().unwrap().to_owned();
        grounds.output("env", args.into_iter().chain(check).chain(target).chain([repository]))
    };
    let report = |output: std::process::Output| -> Value {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };

    let moved = report(check(&drive.join("app"), Some("ext4")));
    assert_eq!(
        (&moved["facts"]["site"]["fstype"], &moved["facts"]["site"]["class"]),
        (&"fuseblk".into(), &"fuse".into())
    );
    assert_eq!(moved["facts"]["target"]["fstype"], "ext4");
    let measurements = moved["measurements"].as_array().unwrap();
    assert!(measurements.iter().any(|one| one["workload"] == "git_status" && one["same_work"] == true), "{moved}");

    let stays = report(check(&grounds.path("ext4/app"), None));
    assert_eq!(stays["recommendation"]["verdict"], "stay");
    assert_eq!(stays["recommendation"]["reason"], "already-native");

    for (target, reason) in [
        ("memory", "is in memory (tmpfs) and gone at the next restart"),
        ("drive/elsewhere", "is on fuseblk (disk filesystem over FUSE), which is no place for a repository"),
    ] {
        let refused = check(&drive.join("app"), Some(target));
        assert_eq!(refused.status.code(), Some(1));
        let message = String::from_utf8(refused.stderr).unwrap();
        let expected = format!("rehome: `{}` {reason}\n  hint: ", grounds.path(target).display());
        assert!(message.starts_with(&expected), "{message}");
    }
}
