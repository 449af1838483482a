//! What the old side made of the files is made right, and nothing else is.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::ground::{Ground, picture};

/// Makes the source look as if Git for Windows had checked it out on a drive that shows mode 0777 for everything.
fn as_on_windows(ground: &Ground) {
    ground.in_source(&["config", "core.fileMode", "false"]);
    ground.in_source(&["config", "core.ignoreCase", "true"]);
    ground.in_source(&["config", "core.symlinks", "false"]);
    for (path, _) in picture(&ground.source()) {
        let full = ground.source().join(path);
        if !full.is_symlink() {
            ground.mode(full, 0o777);
        }
    }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o777
}

fn step<'a>(report: &'a serde_json::Value, name: &str) -> Vec<&'a str> {
    let repairs = report["result"]["repairs"].as_array().unwrap();
    let found = repairs.iter().filter(|repair| repair["step"] == name);
    found.flat_map(|repair| repair["paths"].as_array().unwrap()).map(|path| path.as_str().unwrap()).collect()
}

#[test]
fn modes_come_from_the_index_and_those_of_untracked_files_from_their_content() {
    let ground = Ground::furnished();
    ground.write("src/new-script", "#!/bin/sh\n");
    ground.write("src/new-program", b"\x7fELF.....");
    as_on_windows(&ground);
    let before = ground.status(&ground.source());
    let report = ground.moved(&[]);
    for (path, wanted) in [
        ("run.sh", 0o755),
        ("two.txt", 0o644),
        (".env", 0o644),
        ("new-script", 0o755),
        ("new-program", 0o755),
        ("lib", 0o755),
        (".git/config", 0o644),
    ] {
        assert_eq!(mode(&ground.path("dest").join(path)), wanted, "{path}");
    }
    assert_eq!(ground.status(&ground.dest()), before);
    assert_eq!(ground.git(&["config", "core.fileMode"], &ground.dest()), "true\n");
    assert!(step(&report, "modes").contains(&"two.txt"));
    assert_eq!(step(&report, "modes-by-content"), Vec::<&str>::new());
}

#[test]
fn settings_describe_the_new_filesystem() {
    let ground = Ground::furnished();
    as_on_windows(&ground);
    ground.in_source(&["config", "core.precomposeUnicode", "true"]);
    ground.in_source(&["config", "core.worktree", ground.source().to_str().unwrap()]);
    ground.moved(&[]);
    let get = |key: &str| ground.git(&["config", "--default", "absent", key], &ground.dest());
    assert_eq!(get("core.ignoreCase"), "false\n");
    assert_eq!(get("core.symlinks"), "true\n");
    assert_eq!(get("core.precomposeUnicode"), "absent\n");
    assert_eq!(get("core.worktree"), "absent\n");
}

#[test]
fn crlf_alone_is_no_change_and_real_changes_beside_it_stay() {
    let ground = Ground::new();
    ground.write("src/.gitattributes", "*.bat text eol=crlf\n*.bin -text\n");
    for name in ["plain.txt", "edited.txt", "data.bin"] {
        ground.write(format!("src/{name}"), "one\ntwo\n");
    }
    ground.write("src/do.bat", "one\r\n");
    ground.commit("lf");
    ground.write("src/plain.txt", "one\r\ntwo\r\n");
    ground.write("src/edited.txt", "one\r\nTWO\r\n");
    ground.write("src/data.bin", "one\r\ntwo\r\n");
    ground.write("src/do.bat", "one\n");
    assert!(ground.status(&ground.source()).contains(" M do.bat"));
    let stamp = ground.path("src/plain.txt").metadata().unwrap();
    let report = ground.moved(&[]);
    let read = |name: &str| fs::read(ground.path("dest").join(name)).unwrap();
    assert_eq!(read("plain.txt"), b"one\ntwo\n");
    assert_eq!(read("edited.txt"), b"one\r\nTWO\r\n");
    assert_eq!(read("data.bin"), b"one\r\ntwo\r\n");
    assert_eq!(ground.status(&ground.dest()), " M data.bin\n M edited.txt\n");
    // Git reports a file whose size alone differs, although it would commit the same.
    assert_eq!(read("do.bat"), b"one\r\n");
    assert_eq!(step(&report, "line-endings"), ["do.bat", "plain.txt"]);
    assert_eq!(report["result"]["verified"]["artefacts"], 2);
    let now = ground.path("dest/plain.txt").metadata().unwrap();
    assert_eq!((now.mtime(), now.mtime_nsec()), (stamp.mtime(), stamp.mtime_nsec()));
}

#[test]
fn settings_that_ask_for_crlf_are_obeyed() {
    let ground = Ground::new();
    ground.in_source(&["config", "core.autocrlf", "true"]);
    ground.write("src/a.txt", "one\r\n");
    ground.commit("a");
    ground.moved(&[]);
    assert_eq!(fs::read(ground.path("dest/a.txt")).unwrap(), b"one\r\n");
    assert_eq!(ground.status(&ground.dest()), "");
}

#[test]
fn links_that_were_checked_out_as_text_are_links_again() {
    let ground = Ground::furnished();
    ground.in_source(&["config", "core.symlinks", "false"]);
    fs::remove_file(ground.path("src/link")).unwrap();
    ground.write("src/link", "two.txt");
    let report = ground.moved(&[]);
    assert_eq!(fs::read_link(ground.path("dest/link")).unwrap(), Path::new("two.txt"));
    assert_eq!(step(&report, "links"), ["link"]);
    assert!(!ground.status(&ground.dest()).contains("link"));
}

#[test]
fn a_file_that_took_the_place_of_a_link_is_a_real_change() {
    let ground = Ground::furnished();
    fs::remove_file(ground.path("src/link")).unwrap();
    ground.write("src/link", "something else");
    ground.moved(&[]);
    assert_eq!(fs::read(ground.path("dest/link")).unwrap(), b"something else");
    assert!(ground.status(&ground.dest()).contains(" T link"));
}

#[test]
fn files_that_collided_by_case_come_from_the_object_database() {
    let ground = Ground::new();
    ground.write("src/README", "upper\n");
    ground.write("src/readme", "lower\n");
    ground.write("src/Other", "other\n");
    ground.commit("both");
    // What a checkout on a drive that ignores case leaves: one name, with what was written last.
    ground.in_source(&["config", "core.ignoreCase", "true"]);
    fs::remove_file(ground.path("src/readme")).unwrap();
    ground.write("src/README", "lower\n");
    let report = ground.moved(&[]);
    assert_eq!(fs::read(ground.path("dest/README")).unwrap(), b"upper\n");
    assert_eq!(fs::read(ground.path("dest/readme")).unwrap(), b"lower\n");
    assert_eq!(ground.status(&ground.dest()), "");
    let mut paths = step(&report, "case-collisions");
    paths.sort_unstable();
    assert_eq!(paths, ["README", "readme"]);
}

#[test]
fn deleted_files_stay_deleted() {
    let ground = Ground::furnished();
    fs::remove_file(ground.path("src/lib/deep/er/one.txt")).unwrap();
    ground.moved(&[]);
    assert!(ground.status(&ground.dest()).contains(" D lib/deep/er/one.txt"));
}

fn with_submodule(ground: &Ground) {
    ground.git(&["init", "-q", "-b", "main", "library"], &ground.root());
    ground.write("library/l.txt", "l\n");
    ground.git(&["add", "-A"], &ground.path("library"));
    ground.git(&["commit", "-q", "-m", "l"], &ground.path("library"));
    ground.in_source(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "sub/lib"]);
    ground.commit("submodule");
}

#[test]
fn submodules_find_their_git_dir_whatever_the_old_spelling() {
    for spelling in ["C:/Work/src", "/mnt/q/work/src", "SOURCE"] {
        let ground = Ground::furnished();
        with_submodule(&ground);
        let root = spelling.replace("SOURCE", ground.source().to_str().unwrap());
        ground.write("src/sub/lib/.git", format!("gitdir: {root}/.git/modules/sub/lib\n"));
        let config = ground.path("src/.git/modules/sub/lib/config");
        let file = config.to_str().unwrap();
        ground.git(&["config", "--file", file, "core.worktree", &format!("{root}/sub/lib")], &ground.root());
        ground.write("src/sub/lib/l.txt", "changed\n");
        ground.moved(&[]);
        assert_eq!(ground.status(&ground.path("dest/sub/lib")), " M l.txt\n", "{spelling}");
        let top = ground.git(&["rev-parse", "--show-toplevel"], &ground.path("dest/sub/lib"));
        assert_eq!(top.trim(), ground.path("dest/sub/lib").to_str().unwrap());
        assert!(ground.status(&ground.dest()).contains(" M sub/lib"), "{spelling}");
    }
}

#[test]
fn worktrees_inside_are_repaired_and_those_outside_are_named() {
    let ground = Ground::furnished();
    ground.in_source(&["worktree", "add", "-q", ".trees/inner", "other"]);
    ground.in_source(&["worktree", "add", "-q", "-b", "third", "../outer"]);
    // As Git for Windows would have written the inner one.
    ground.write("src/.trees/inner/.git", "gitdir: C:/w/src/.git/worktrees/inner\n");
    ground.write("src/.git/worktrees/inner/gitdir", "C:/w/src/.trees/inner/.git\n");
    ground.write("src/.trees/inner/two.txt", "inner change\n");
    let before = picture(&ground.path("outer"));
    let report = ground.moved(&[]);
    assert_eq!(ground.status(&ground.path("dest/.trees/inner")), " M two.txt\n");
    let list = ground.git(&["worktree", "list", "--porcelain"], &ground.dest());
    assert!(list.contains(&format!("worktree {}\n", ground.path("dest/.trees/inner").display())), "{list}");
    assert_eq!(picture(&ground.path("outer")), before);
    let notes = report["result"]["notes"].to_string();
    assert!(notes.contains("worktree repair") && notes.contains("/outer"), "{notes}");
}

#[test]
fn borrowed_objects_are_found_from_the_new_place() {
    let ground = Ground::furnished();
    ground.in_source(&["stash", "drop", "-q"]);
    ground.git(&["clone", "-q", "--shared", "src", "borrower"], &ground.root());
    ground.write("borrower/.git/objects/info/alternates", "../../../src/.git/objects\n");
    ground.moved_from(&ground.path("borrower"), &[]);
    assert_eq!(ground.status(&ground.dest()), "");
    ground.git(&["fsck"], &ground.dest());
}

#[test]
fn files_with_a_filter_are_taken_for_unchanged_as_git_did_and_their_program_is_not_run() {
    let ground = Ground::new();
    let mark = ground.path("ran");
    let filter = format!("touch {}; tr a-z A-Z", mark.display());
    ground.in_source(&["config", "filter.shout.clean", &filter]);
    ground.in_source(&["config", "filter.shout.smudge", "tr A-Z a-z"]);
    ground.write("src/.gitattributes", "*.big filter=shout\n");
    ground.write("src/a.big", "quiet\n");
    ground.commit("a");
    // Git trusts an entry only when the file is older than the index.
    let old = fs::File::options().append(true).open(ground.path("src/a.big")).unwrap();
    old.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
    ground.in_source(&["update-index", "-q", "--refresh"]);
    fs::remove_file(&mark).unwrap();
    let report = ground.moved(&[]);
    assert!(!mark.exists(), "the filter ran");
    assert_eq!(fs::read(ground.path("dest/a.big")).unwrap(), b"quiet\n");
    assert_eq!(ground.git(&["diff-files", "--name-only"], &ground.dest()), "");
    assert!(report["result"]["notes"].to_string().contains("filter"));
}

#[test]
fn nothing_that_the_repository_names_is_run() {
    let ground = Ground::furnished();
    let mark = ground.path("ran");
    let trap = ground.path("trap.sh");
    ground.write("trap.sh", format!("#!/bin/sh\ntouch {}\n", mark.display()));
    ground.mode("trap.sh", 0o755);
    let trap = trap.to_str().unwrap();
    ground.write("src/.gitattributes", "* filter=f diff=d merge=m\n");
    for key in ["filter.f.clean", "filter.f.smudge", "filter.f.process", "diff.d.textconv", "diff.d.command"] {
        ground.write(".empty", "");
        ground.git(&["config", "--file", "src/.git/config", key, trap], &ground.root());
    }
    for key in ["core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "alias.status"] {
        ground.git(&["config", "--file", "src/.git/config", key, trap], &ground.root());
    }
    for hook in ["post-checkout", "post-index-change", "pre-commit", "reference-transaction"] {
        ground.write(format!("src/.git/hooks/{hook}"), fs::read(trap).unwrap());
        ground.mode(format!("src/.git/hooks/{hook}"), 0o755);
    }
    ground.moved(&[]);
    assert!(!mark.exists());
}

#[test]
fn what_the_user_has_to_look_at_is_named() {
    let ground = Ground::furnished();
    ground.write("src/.git/hooks/pre-push", "#!/bin/sh\r\nexit 0\r\n");
    ground.in_source(&["config", "credential.helper", "/mnt/c/Program Files/Git/git-credential-manager.exe"]);
    ground.write("src/.envrc", format!("export ROOT={}\n", ground.source().display()));
    symlink(ground.source(), ground.home().join("shortcut")).unwrap();
    ground.write("home/.bashrc", format!("alias s='cd {}'\n", ground.source().display()));
    let report = ground.moved(&[]);
    let notes = report["result"]["notes"].to_string();
    for wanted in ["pre-push", "git-credential-manager.exe", "`.envrc` still names the old place"] {
        assert!(notes.contains(wanted), "{wanted}: {notes}");
    }
    let outside = report["result"]["outside"].to_string();
    assert!(outside.contains("shortcut") && outside.contains(".bashrc"), "{outside}");
}
