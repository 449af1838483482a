//! What `rehome fs` asks of a slow mount, and that a mount that does not answer cannot hold it up.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use slow_mount::{Call, Options, SlowMount, available};

fn rehome(path: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rehome")).arg("fs").arg(path).output().unwrap()
}

#[test]
fn finding_a_place_costs_one_lookup_a_component() {
    if !available("finding_a_place_costs_one_lookup_a_component") {
        return;
    }
    let backing = tempfile::tempdir().unwrap();
    fs::create_dir_all(backing.path().join("a/b/c")).unwrap();
    let mount = SlowMount::new(backing.path(), Options::default()).unwrap();

    mount.reset_counts();
    let output = rehome(&mount.path().join("a/b/c"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts = mount.counts();
    assert_eq!((counts.of(Call::Lookup), counts.total()), (3, 3), "{counts}");

    mount.reset_counts();
    for elsewhere in [Path::new("/"), backing.path(), mount.path().parent().unwrap()] {
        assert!(rehome(elsewhere).status.success());
    }
    assert_eq!(mount.counts().total(), 0, "{}", mount.counts());
}

#[test]
fn a_mount_that_does_not_answer_is_named_and_waited_for_no_longer() {
    if !available("a_mount_that_does_not_answer_is_named_and_waited_for_no_longer") {
        return;
    }
    let backing = tempfile::tempdir().unwrap();
    fs::create_dir(backing.path().join("src")).unwrap();
    let options =
        Options { fsname: Some("host:/srv".to_owned()), subtype: Some("sshfs".to_owned()), ..Options::default() };
    let mount = SlowMount::new(backing.path(), options).unwrap();
    mount.hang_everything().unwrap();

    let output = rehome(&mount.path().join("src"));
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "rehome: the mount at `{}` (fuse.sshfs from `host:/srv`) does not answer: Connection timed out (os error 110)\n",
        mount.path().display()
    );
    assert!(message.starts_with(&expected), "{message}");
}
