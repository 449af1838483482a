//! The source is only read.

use std::process::Command;

use crate::ground::{Ground, can, is_root, picture, text, worktree};
use crate::slow_mount::{Options, SlowMount, available};

#[test]
fn a_source_that_cannot_be_written_is_moved() {
    let ground = Ground::furnished();
    let script = format!(
        "mount --bind '{0}' '{0}' && mount -o remount,bind,ro '{0}' && ! touch '{0}/probe' 2>/dev/null && exec \"$@\"",
        ground.source().display()
    );
    let works = Command::new("unshare").args(["-m", "sh", "-c", &script, "sh", "true"]).output();
    let is_possible = is_root() && works.is_ok_and(|output| output.status.success());
    if !can("a_source_that_cannot_be_written_is_moved", "mount namespaces", is_possible) {
        return;
    }
    let before = picture(&ground.source());
    let inner = ground.command(&["--yes"]);
    let mut command = ground.clean(Command::new("unshare"));
    command.args(["-m", "sh", "-c", &script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(picture(&ground.source()), before);
    assert_eq!(worktree(&ground.dest()), worktree(&ground.source()));
}

#[test]
fn no_call_that_writes_reaches_the_source() {
    if !available("no_call_that_writes_reaches_the_source") {
        return;
    }
    let ground = Ground::furnished();
    let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
    mount.reset_counts();
    let report = ground.moved_from(mount.path(), &[]);
    let counts = mount.counts();
    assert_eq!(counts.write_like(), 0, "{:?}", counts.to_json());
    assert!(counts.total() > 100);
    assert_eq!(ground.status(&ground.dest()), ground.status(&ground.source()));
    assert!(report["result"]["status_old_s"].as_f64().is_some());
}

#[test]
fn a_file_costs_a_handful_of_requests() {
    if !available("a_file_costs_a_handful_of_requests") {
        return;
    }
    let ground = Ground::new();
    for number in 0..400 {
        ground.write(format!("src/d{}/f{number}", number % 20), format!("{number}\n"));
    }
    ground.commit("many");
    ground.in_source(&["gc", "-q"]);
    let mount = SlowMount::new(&ground.source(), Options::default()).unwrap();
    mount.reset_counts();
    ground.moved_from(mount.path(), &[]);
    let total = mount.counts().total();
    // Two looks, an open with its look-up, one read, one stat, the close, git's own look: some fifteen at most.
    assert!(total < 400 * 16 + 2000, "{total} requests for 400 files");
}
