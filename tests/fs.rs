//! `rehome fs` from outside: real mount tables with their right answers, odd tables, and this system.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    id: String,
    platform: String,
    proc_mounts: String,
    mountinfo: Option<String>,
    path: String,
    realpath: Option<String>,
    expect: Expected,
}

#[derive(Deserialize)]
struct Expected {
    fstype: String,
    class: String,
}

fn rehome(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rehome")).arg("fs").args(args).env_remove("WSL_DISTRO_NAME").output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = rehome(&[&["--format", "json"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn failure(args: &[&str]) -> (Option<i32>, String) {
    let output = rehome(args);
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Looks a path up in a saved table.
fn by_table(dir: &Path, table: &str, path: &str) -> Value {
    let file = dir.join("table");
    fs::write(&file, table).unwrap();
    json(&["--mounts", file.to_str().unwrap(), path])
}

#[test]
fn every_known_mount_table_is_read_right_in_both_forms() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mounts.yaml")).unwrap();
    let cases: Vec<Case> = serde_yaml::from_str(&text).unwrap();
    assert_eq!(cases.len(), 61);
    let dir = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let path = case.realpath.as_ref().unwrap_or(&case.path);
        for table in [Some(&case.proc_mounts), case.mountinfo.as_ref()].into_iter().flatten() {
            let place = by_table(dir.path(), table, path);
            let site = &place["site"];
            let came = (&place["platform"], &site["fstype"], &site["class"]);
            let right = (case.platform.as_str(), case.expect.fstype.as_str(), case.expect.class.as_str());
            if came != (&right.0.into(), &right.1.into(), &right.2.into()) {
                wrong.push(format!("{}: {came:?} instead of {right:?}", case.id));
            }
            assert_eq!(place["known"]["malformed_lines"], Value::Array(Vec::new()), "{}", case.id);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_malformed_line_elsewhere_is_left_out_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let table = "/dev/sdd / ext4 rw 0 0\n\nrubbish\nC:\\134 /mnt/c 9p rw,aname=drvfs;path=C:\\;uid=0,trans=fd 0 0\n\
                 half /a\n\u{0}\u{1} x y\nsource relative/point ext4 rw 0 0\n";
    let place = by_table(dir.path(), table, "/mnt/c/src");
    assert_eq!(place["site"]["class"], "windows-drive");
    assert_eq!(place["known"]["malformed_lines"], serde_json::json!([3, 5, 6, 7]));
}

#[test]
fn a_table_saved_on_windows_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let table = "\u{feff}/dev/sdd / ext4 rw 0 0\r\n/dev/sde /data xfs rw,ro 0 0\r\n";
    assert_eq!(by_table(dir.path(), table, "/data/x")["site"]["fstype"], "xfs");
}

#[test]
fn a_root_that_is_listed_after_others_hides_none_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let table = "tmpfs /run tmpfs rw 0 0\nudev /dev devtmpfs rw 0 0\n/dev/sda2 / ext4 rw 0 0\n";
    assert_eq!(by_table(dir.path(), table, "/run/user")["site"]["fstype"], "tmpfs");
    assert_eq!(by_table(dir.path(), table, "/home")["site"]["fstype"], "ext4");
}

#[test]
fn names_from_a_table_cannot_reach_the_terminal_raw() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("table");
    fs::write(&file, "a\\033[31mred / ext4 rw,x=\u{1b}]0;t\u{7} 0 0\n").unwrap();
    let output = rehome(&["--mounts", file.to_str().unwrap(), "/x\u{1b}[2J\ny"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    assert!(text.starts_with("/x\\u{1b}[2J\\ny\n"), "{text}");
}

#[test]
fn the_text_tells_place_class_and_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("table");
    let table = "/dev/sdd / ext4 rw,relatime 0 0\n\
                 C:\\134 /win/c 9p rw,noatime,aname=drvfs;path=C:\\;uid=1000,trans=fd 0 0\n";
    fs::write(&file, table).unwrap();
    let output = rehome(&["--mounts", file.to_str().unwrap(), "/win/c/src"]);
    let expected = "\
/win/c/src
  on Windows   C:\\src
  mount point  /win/c
  filesystem   9p (WSL 2 DrvFs)
  source       C:\\
  transport    9p/fd
  options      rw,noatime,aname=drvfs;path=C:\\;uid=1000,trans=fd
  class        windows-drive
  platform     wsl2
  how we know  the last mount of the table that covers the path
               rule drvfs-9p: 9p with the attach name drvfs is a Windows drive or folder, wherever it is mounted
               platform: a 9p mount names DrvFs and a Windows path; the root is a whole SCSI disk
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_link_is_followed_on_the_running_system() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    fs::create_dir(real.join("target")).unwrap();
    std::os::unix::fs::symlink(real.join("target"), real.join("link")).unwrap();
    let link = real.join("link");
    let place = json(&[link.to_str().unwrap()]);
    assert_eq!(place["site"]["path"], link.to_str().unwrap());
    assert_eq!(place["site"]["real_path"], real.join("target").to_str().unwrap());
    assert_eq!(place["known"]["mount_by"], "statx");
}

#[test]
fn without_a_path_the_current_directory_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rehome"))
        .args(["fs", "--format", "json"])
        .current_dir(&real)
        .output()
        .unwrap();
    let place: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(place["site"]["path"], real.to_str().unwrap());
}

#[test]
fn several_paths_make_an_array_and_one_that_is_missing_does_not_hide_the_others() {
    let places = json(&["/", "/proc"]);
    assert_eq!(places[1]["site"]["fstype"], "proc");
    let output = rehome(&["--format", "json", "/", "/no/such/place", "/proc"]);
    assert_eq!(output.status.code(), Some(1));
    let places: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(places.as_array().unwrap().len(), 2);
    assert!(String::from_utf8(output.stderr).unwrap().contains("`/no/such/place`"));
}

#[test]
fn bad_input_gets_its_own_message_and_status() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    let (status, message) = failure(&["--mounts", empty, "/"]);
    assert_eq!(status, Some(1));
    assert_eq!(
        message,
        "rehome: the saved mount table has no line that can be read\n  hint: save it with `cat /proc/self/mountinfo > \
         FILE` (or `/proc/mounts`)\n"
    );
    let (status, message) = failure(&["--mounts", empty]);
    assert_eq!((status, message.as_str()), (Some(2), "rehome: `--mounts FILE` needs a path to look up in the table\n"));
    let (status, message) = failure(&["--mounts", "/no/such/table", "/"]);
    assert_eq!(status, Some(1));
    assert!(message.starts_with("rehome: cannot read `/no/such/table`\n  caused by: No such file"), "{message}");
    let (status, message) = failure(&["/no/such/place"]);
    assert_eq!(status, Some(1));
    assert!(message.starts_with("rehome: cannot find `/no/such/place`\n  caused by: No such file"), "{message}");
}

#[test]
fn a_rule_of_the_user_goes_before_the_built_in_ones() {
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("rules");
    fs::create_dir(&rules).unwrap();
    let table = dir.path().join("table");
    fs::write(&table, "/dev/sda1 / ext4 rw 0 0\npool /srv fuse.mergerfs rw 0 0\n").unwrap();
    let file = rules.join("site.yaml");
    let rule = "kind: filesystem\nrules:\n  - id: pool\n    class: local-native\n    name: our pool\n    \
                when: { fstype: [fuse.mergerfs] }\n    because: it is on this machine\n    \
                examples: { fires: [], ignores: [] }\n";
    fs::write(&file, rule).unwrap();
    let args = ["--rules", rules.to_str().unwrap(), "--mounts", table.to_str().unwrap(), "/srv/app"];
    let site = &json(&args)["site"];
    assert_eq!((&site["rule"], &site["name"]), (&"pool".into(), &"our pool".into()));
    assert_eq!(json(&args[2..])["site"]["class"], "fuse");

    fs::write(&file, rule.replace("fstype", "fstipe")).unwrap();
    let (status, message) = failure(&args);
    assert_eq!(status, Some(1));
    assert!(message.contains("site.yaml") && message.contains("fstipe") && message.contains("line 6"), "{message}");
}
