//! The printed script does what the program does.

use std::fs;
use std::process::Command;

use crate::ground::{Ground, os, picture, text, worktree};

fn run_script(ground: &Ground, options: &[&str]) -> String {
    let mut all = vec!["--script"];
    all.extend(options);
    let output = ground.command(&all).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    fs::write(ground.path("move.sh"), &output.stdout).unwrap();
    let before = picture(&ground.source());
    // Only git, coreutils and the shell are there.
    let bin = ground.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let mut names = vec!["git".to_owned()];
    let list = Command::new("sh").arg("-c").arg("dpkg -L coreutils 2>/dev/null | grep -E '^(/usr)?/bin/'").output();
    names.extend(text(&list.unwrap().stdout).lines().map(|path| path.rsplit('/').next().unwrap().to_owned()));
    for name in names {
        let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
        let path = text(&found.stdout).trim().to_owned();
        if path.starts_with('/') {
            let _ = std::os::unix::fs::symlink(path, bin.join(name));
        }
    }
    let mut command = ground.clean(Command::new("/bin/sh"));
    let output = command.arg(ground.path("move.sh")).env("PATH", &bin).output().unwrap();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(picture(&ground.source()), before);
    text(&output.stdout)
}

#[test]
fn the_script_makes_the_same_copy_as_the_program() {
    let ground = Ground::furnished();
    ground.write("src/package.json", "{}");
    ground.write("src/node_modules/x/index.js", "x");
    ground.write("src/app/package.json", "{}");
    ground.write("src/app/node_modules/x/index.js", "x");
    ground.write("src/app/it's \"odd\" $name.txt", "x");
    fs::write(ground.source().join(os(b"\xff\nodd")), "x").unwrap();
    let said = run_script(&ground, &[]);
    assert!(said.contains("restore it with: npm install"), "{said}");
    let by_script = worktree(&ground.dest());
    let status = ground.status(&ground.dest());
    fs::remove_dir_all(ground.dest()).unwrap();
    ground.moved(&[]);
    assert_eq!(by_script, worktree(&ground.dest()));
    assert_eq!(status, ground.status(&ground.dest()));
}

#[test]
fn the_script_repairs_what_the_old_side_did() {
    let ground = Ground::new();
    for name in ["README", "readme"] {
        ground.write(format!("src/{name}"), name);
    }
    ground.write("src/run.sh", "#!/bin/sh\n");
    ground.mode("src/run.sh", 0o755);
    ground.write("src/text.txt", "one\n");
    ground.write("src/real.txt", "one\n");
    std::os::unix::fs::symlink("run.sh", ground.path("src/link")).unwrap();
    ground.commit("all");
    for key in ["core.fileMode", "core.symlinks"] {
        ground.in_source(&["config", key, "false"]);
    }
    ground.in_source(&["config", "core.ignoreCase", "true"]);
    fs::remove_file(ground.path("src/readme")).unwrap();
    fs::remove_file(ground.path("src/link")).unwrap();
    ground.write("src/link", "run.sh");
    ground.write("src/README", "readme");
    ground.write("src/text.txt", "one\r\n");
    ground.write("src/real.txt", "two\n");
    for name in ["run.sh", "text.txt", "real.txt", "README", "link"] {
        ground.mode(format!("src/{name}"), 0o777);
    }
    run_script(&ground, &[]);
    assert_eq!(ground.status(&ground.dest()), " M real.txt\n");
    assert_eq!(fs::read_to_string(ground.path("dest/README")).unwrap(), "README");
    assert_eq!(fs::read_to_string(ground.path("dest/text.txt")).unwrap(), "one\n");
    assert!(ground.path("dest/link").is_symlink());
    let by_script = worktree(&ground.dest());
    fs::remove_dir_all(ground.dest()).unwrap();
    ground.moved(&[]);
    let by_program = worktree(&ground.dest());
    let content = |picture: std::collections::BTreeMap<std::path::PathBuf, String>| {
        picture.into_iter().map(|(path, line)| (path, line.split(' ').next().unwrap().to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(content(by_script), content(by_program));
}

#[test]
fn the_script_of_tracked_files_alone_takes_nothing_else() {
    let ground = Ground::furnished();
    run_script(&ground, &["--only-tracked"]);
    assert!(!ground.path("dest/.env").exists());
    assert!(ground.path("dest/two.txt").exists());
}
