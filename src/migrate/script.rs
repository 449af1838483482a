//! The same move as a POSIX shell script, for people who want to read before they run.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::index::entry::Stage;

use crate::error::printable_text;
use crate::migrate::git::{Abilities, configuration};
use crate::migrate::select::Scope;
use crate::migrate::spelling::{is_absolute, relative};
use crate::migrate::unit::{UnitKind, find};
use crate::migrate::{Prepared, partial};
use crate::scan::config;

/// The script with marks where a move's own values belong.
const TEMPLATE: &str = include_str!("script.sh");

/// Returns the script that does what carrying the plan out would do, with git and coreutils alone.
///
/// One file at a time, and what only this program knows is not in it: resuming, many requests at once, filters that
/// convert content, submodules' own modes and line endings.
#[must_use]
pub fn script(prepared: &Prepared<'_>) -> Vec<u8> {
    let plan = &prepared.plan;
    let place = partial::place(&prepared.destination).with_extension("rehome-script");
    let is_only_tracked = plan.scope == Scope::OnlyTracked;
    let values: Vec<(&str, Vec<u8>)> = vec![
        ("SOURCE", quote(prepared.source.path.as_os_str().as_bytes())),
        ("DESTINATION", quote(prepared.destination.as_os_str().as_bytes())),
        ("PARTIAL", quote(place.as_os_str().as_bytes())),
        ("LEFT_OUT", cases(prepared.inventory.left_out.iter().map(|one| one.raw.as_path()))),
        ("LEADING", leading(prepared)),
        ("CONFIG", configuration(old_side(prepared), &prepared.profile.config)),
        ("CLEAN", if is_only_tracked { b"g clean -ffdxq".to_vec() } else { Vec::new() }),
        ("UNTRACKED", if is_only_tracked { b"no".to_vec() } else { b"all".to_vec() }),
        ("COLLISIONS", collisions(prepared)),
        ("LINKS_ARE_TEXT", links_are_text(prepared).to_vec()),
        ("MODES", modes(prepared).to_vec()),
        ("SETTINGS", settings(prepared)),
        ("NEW_CORE", new_core(prepared).to_vec()),
        ("ROOT_MODE", root_mode(prepared)),
        ("RESTORE", restore(prepared)),
    ];
    fill(TEMPLATE.as_bytes(), &values)
}

/// Puts each value in the place of its mark; values are not looked at again, whatever they hold.
fn fill(template: &[u8], values: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.iter().position(|byte| *byte == b'@') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let name_end = rest.iter().position(|byte| *byte == b'@').unwrap_or(0);
        let value = values.iter().find(|(name, _)| name.as_bytes() == &rest[..name_end]);
        match value {
            Some((_, value)) => {
                out.extend_from_slice(value);
                rest = &rest[name_end + 1..];
            }
            // `"$@"` of the shell itself.
            None => out.push(b'@'),
        }
    }
    out.extend_from_slice(rest);
    out
}

/// Quotes bytes as one word of a POSIX shell, whatever they are.
fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            other => out.push(*other),
        }
    }
    out.push(b'\'');
    out
}

fn quoted(path: &Path) -> Vec<u8> {
    quote(path.as_os_str().as_bytes())
}

/// Returns one branch of a `case` for each path.
fn cases<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<u8> {
    let mut out = Vec::new();
    for path in paths {
        out.extend_from_slice(b"    ");
        out.extend(quoted(path));
        out.extend_from_slice(b") return 0 ;;\n");
    }
    out.pop();
    out
}

fn leading(prepared: &Prepared<'_>) -> Vec<u8> {
    let left_out = prepared.inventory.left_out.iter();
    let ancestors: BTreeSet<&Path> = left_out
        .flat_map(|one| one.raw.ancestors().skip(1))
        .filter(|ancestor| !ancestor.as_os_str().is_empty())
        .collect();
    cases(ancestors.into_iter())
}

fn old_side(prepared: &Prepared<'_>) -> Abilities {
    let own = |key| config::boolean(&prepared.profile.config, key);
    Abilities {
        modes: prepared.modes_are_real && own("core.fileMode") != Some(false),
        symlinks: own("core.symlinks") != Some(false),
        ignores_case: prepared.plan.to_windows,
    }
}

/// Names that differ by case alone, each with the object that belongs to another one of them.
fn collisions(prepared: &Prepared<'_>) -> Vec<u8> {
    let is_wanted = config::boolean(&prepared.profile.config, "core.ignoreCase") == Some(true);
    let Some(index) = prepared.profile.index.as_ref().filter(|_| is_wanted && !prepared.plan.to_windows) else {
        return Vec::new();
    };
    let mut groups: std::collections::BTreeMap<String, Vec<(&[u8], String)>> = std::collections::BTreeMap::new();
    for entry in index.state.entries().iter().filter(|entry| entry.stage() == Stage::Unconflicted) {
        let path: &[u8] = entry.path(&index.state);
        let key = String::from_utf8_lossy(path).to_lowercase();
        groups.entry(key).or_default().push((path, entry.id.to_string()));
    }
    let mut out = Vec::new();
    for group in groups.into_values().filter(|group| group.len() > 1) {
        for (at, (path, _)) in group.iter().enumerate() {
            let (_, other) = &group[(at + 1) % group.len()];
            out.extend_from_slice(b"collided ");
            out.extend(quote(path));
            out.extend_from_slice(format!(" {other}\n").as_bytes());
        }
    }
    out.pop();
    out
}

fn links_are_text(prepared: &Prepared<'_>) -> &'static [u8] {
    let is_text = config::boolean(&prepared.profile.config, "core.symlinks") == Some(false);
    if is_text && !prepared.plan.to_windows { b"true" } else { b"false" }
}

fn modes(prepared: &Prepared<'_>) -> &'static [u8] {
    if prepared.modes_are_real || prepared.plan.to_windows {
        return b"";
    }
    b"chmod -R a-x,u=rwX,go=rX -- \"$TREE\"
g -c core.quotePath=false ls-files --stage | while IFS='\t' read -r entry name; do
    case $entry in 100755*) if [ -f \"$TREE/$name\" ]; then chmod 755 -- \"$TREE/$name\"; fi ;; esac
done
g -c core.quotePath=false ls-files --others | while IFS= read -r name; do
    case $(head -c 2 -- \"$TREE/$name\" 2>/dev/null | tr -d '\\0') in '#!') chmod 755 -- \"$TREE/$name\" ;; esac
done"
}

fn new_core(prepared: &Prepared<'_>) -> &'static [u8] {
    if prepared.plan.to_windows { b"'filemode = false'" } else { b"'filemode = true' 'symlinks = true'" }
}

fn settings(prepared: &Prepared<'_>) -> Vec<u8> {
    let own = |key| config::boolean(&prepared.profile.own_config, key);
    let wanted = !prepared.plan.to_windows;
    let mut out = Vec::new();
    for (key, is_now, should_be) in [
        ("core.fileMode", own("core.fileMode").unwrap_or(true), wanted),
        ("core.ignoreCase", own("core.ignoreCase").unwrap_or(false), !wanted),
        ("core.symlinks", own("core.symlinks").unwrap_or(true), wanted || own("core.symlinks").unwrap_or(true)),
    ] {
        if is_now != should_be {
            out.extend_from_slice(format!("git config --file \"$TREE/.git/config\" {key} {should_be}\n").as_bytes());
        }
    }
    out.extend(pointers(prepared));
    out.pop();
    out
}

/// Rewrites the absolute paths by which submodules and worktrees in the tree and their git dirs find each other.
fn pointers(prepared: &Prepared<'_>) -> Vec<u8> {
    let is_bare = prepared.profile.facts.bare;
    let mut out = Vec::new();
    let mut write = |text: Vec<u8>, path: &Path| {
        out.extend_from_slice(b"printf '%s\\n' ");
        out.extend(quote(&text));
        out.extend_from_slice(b" >\"$TREE\"/");
        out.extend(quoted(path));
        out.push(b'\n');
    };
    for unit in find(&prepared.source.path, &prepared.inventory, is_bare, &prepared.spellings) {
        if !unit.pointer.as_deref().is_some_and(is_absolute) {
            continue;
        }
        let file = unit.worktree.join(".git");
        let gitdir = |path: &Path| [b"gitdir: ", path.as_os_str().as_bytes()].concat();
        match unit.kind {
            UnitKind::Submodule => write(gitdir(&relative(&unit.worktree, &unit.git_dir)), &file),
            UnitKind::Worktree => {
                write(gitdir(&prepared.destination.join(&unit.git_dir)), &file);
                let back = prepared.destination.join(&file);
                write(back.as_os_str().as_bytes().to_vec(), &unit.git_dir.join("gitdir"));
            }
            UnitKind::Main | UnitKind::Nested => {}
        }
    }
    out
}

fn root_mode(prepared: &Prepared<'_>) -> Vec<u8> {
    let root = prepared.inventory.entries.first().map_or(0o755, |entry| entry.stat.mode);
    let mode = if prepared.modes_are_real { root } else { 0o777 & !crate::migrate::fsys::umask() };
    format!("{mode:o}").into_bytes()
}

fn restore(prepared: &Prepared<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for one in &prepared.inventory.left_out {
        let line = format!("Left out: {}   restore it with: {}", one.path, printable_text(&one.restore));
        out.extend_from_slice(b"printf '%s\\n' ");
        out.extend(quote(line.as_bytes()));
        out.push(b'\n');
    }
    out.pop();
    out
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_stay_what_they_are_in_the_script() {
        assert_eq!(quote(b"it's\n$HOME"), b"'it'\\''s\n$HOME'");
        let filled = fill(b"A=@ONE@ \"$@\" @TWO@", &[("ONE", b"@TWO@".to_vec()), ("TWO", b"2".to_vec())]);
        assert_eq!(filled, b"A=@TWO@ \"$@\" 2");
    }

    /// Any byte that an argument can hold, those that a shell reads as its own more often.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let special = prop::sample::select(b"'\"\\$`!*?[]{}()<>|&;~#=%-^ \t\r\n".to_vec());
        prop::collection::vec(prop_oneof![1_u8..=255, special], 0..40)
    }

    proptest! {
        #[test]
        fn quoted_words_reach_a_program_byte_for_byte(words in prop::collection::vec(bytes(), 1..6)) {
            let mut line = b"printf '%s\\0'".to_vec();
            for word in &words {
                line.push(b' ');
                line.extend(quote(word));
            }
            let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&line)).output().unwrap();
            let expected: Vec<u8> = words.iter().flat_map(|word| word.iter().copied().chain([0])).collect();
            prop_assert_eq!(output.stdout, expected);
        }
    }
}
