//! rehome in a guest that looks like WSL 2, with a real 9p mount; see `tests/lab/README.md`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_answers_are_right_on_a_real_9p_drive() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab");
    let is_required = std::env::var_os("REHOME_REQUIRE_ALL").is_some_and(|value| value == "1");
    let is_built = Command::new(lab.join("build")).arg("--check").stderr(Stdio::null()).status().unwrap().success();
    if !is_built && !is_required {
        let line = "SKIPPED the_answers_are_right_on_a_real_9p_drive: needs the guest that tests/lab/build makes\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    let output = Command::new(lab.join("check")).arg(env!("CARGO_BIN_EXE_rehome")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // Both boots came to their end.
    assert_eq!(said.matches(", 0 failed").count(), 2, "{said}");
}
