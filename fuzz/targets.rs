//! What is fuzzed, as plain functions: the fuzz targets call them with new inputs, `tests/fuzz_seeds.rs` with the kept
//! ones, so that an input that once broke something stays tried by every `cargo test`.
//!
//! Each function holds more than "does not panic" where there is something to hold.

#![allow(dead_code, reason = "each target is a crate of its own")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};
use std::sync::OnceLock;

use rehome::error::printable_text;
use rehome::measure::raw_index::RawIndex;
use rehome::measure::settings::Settings;
use rehome::report::html::write_html;
use rehome::report::{Report, Style, write_human, write_json, write_oneline};
use rehome::rules::builtin;
use rehome::rules::extract::{Extractor, Input, extract};
use rehome::rules::load::{self, RuleFile};
use rehome::scan::access::Access;
use rehome::scan::filesystem::System;
use rehome::scan::filesystem::mount_table::{Lookup, MountTable, normalize};
use rehome::scan::filesystem::rules::FilesystemRuleSet;
use rehome::scan::filesystem::spelling::{WindowsPath, windows_path};
use tempfile::TempDir;

/// A target: it takes any input, and panics if something is wrong.
pub(crate) type Target = fn(&[u8]);

/// The targets by name, which is also the name of their directory of seeds.
pub(crate) const ALL: &[(&str, Target)] = &[
    ("mount_table", mount_table),
    ("filesystem_rules", filesystem_rules),
    ("path_spelling", path_spelling),
    ("config", config),
    ("index", index),
    ("rule_file", rule_file),
    ("rehome_yaml", rehome_yaml),
    ("extractors", extractors),
    ("report_writers", report_writers),
];

/// A mount table of either form, and every path that it names: each has an answer, and the whole `fs` stage has too.
pub(crate) fn mount_table(data: &[u8]) {
    let table = MountTable::parse(data);
    let lines = data.split(|byte| *byte == b'\n').count();
    assert!(table.mounts.len() + table.malformed_lines.len() <= lines);
    for mount in table.mounts.iter().take(64) {
        let path = normalize(&mount.mount_point);
        assert!(!path.components().any(|part| part == Component::ParentDir));
        match table.lookup(&path) {
            Lookup::Mount(found) | Lookup::Automount(found) => {
                assert!(path.starts_with(&found.mount_point), "`{}` is not on {found:?}", path.display());
            }
            Lookup::Nothing => {}
        }
    }
    let Ok(system) = System::from_table(data, builtin_filesystems().clone()) else { return };
    for mount in table.mounts.iter().take(64) {
        // Whatever the table says, a path below it has an answer or an error.
        let _ = system.locate(&mount.mount_point.join("src/app"));
        let _ = system.resolve_spelling(Path::new("C:\\src\\app"));
    }
}

fn builtin_filesystems() -> &'static FilesystemRuleSet {
    static RULES: OnceLock<FilesystemRuleSet> = OnceLock::new();
    RULES.get_or_init(|| FilesystemRuleSet::builtin().unwrap_or_else(|error| panic!("{error}")))
}

/// A file of filesystem rules: accepted or refused, and what is accepted classifies.
pub(crate) fn filesystem_rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if is_alias_bomb(&text) {
        return;
    }
    match FilesystemRuleSet::from_yaml("fuzz.yaml", &text) {
        Ok(rules) => {
            let _ = rules.failed_examples();
            let table = b"/dev/sda1 / ext4 rw 0 0\nC:\\134 /mnt/c 9p rw,aname=drvfs;path=C:\\;uid=0 0 0\n";
            if let Ok(system) = System::from_table(table, rules) {
                let _ = system.locate(Path::new("/mnt/c/src"));
            }
        }
        Err(error) => assert_printable(&printable_text(&error.to_string())),
    }
}

/// Of how many inputs one is also tried the slow way.
const SLOW_ONE_OF: usize = 8;

/// A rule file of any kind: accepted, alone or together with the built-in ones, or refused with a place.
pub(crate) fn rule_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    if is_alias_bomb(&text) {
        return;
    }
    // Reading all the built-in files takes a hundred times as long.
    let mut files = if data.len().is_multiple_of(SLOW_ONE_OF) { builtin::files() } else { Vec::new() };
    files.push(RuleFile { name: "fuzz.yaml".to_owned(), text, layer: 1 });
    if let Err(problems) = load::assemble(&files) {
        assert!(!problems.is_empty());
        for problem in problems {
            assert_eq!(problem.file, "fuzz.yaml", "{problem}");
        }
    }
}

/// The file that a repository brings along. It comes from strangers, so nothing is spared here.
pub(crate) fn rehome_yaml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(problem) = load::repo_settings(&text) {
        assert_printable(&printable_text(&problem.to_string()));
    }
}

/// The names of the extractors; the first byte of an input picks one.
const EXTRACTORS: &[&str] = &[
    "dotnet",
    "visual-cpp",
    "workflows",
    "azure",
    "appveyor",
    "gitlab",
    "other-ci",
    "cargo",
    "cargo-config",
    "node",
    "pyproject",
    "setup-cfg",
    "setup-py",
    "requirements",
    "cmake-presets",
    "attributes",
    "editorconfig",
    "compose",
    "docker",
    "vscode",
];

/// A file that an extractor reads: it yields values or none, and no value is longer than what was read.
pub(crate) fn extractors(data: &[u8]) {
    let Some((pick, text)) = data.split_first() else { return };
    let name = EXTRACTORS[usize::from(*pick) % EXTRACTORS.len()];
    let extractor: Extractor = serde_json::from_value(name.into()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = String::from_utf8_lossy(text);
    let inputs = [Input { path: "dir/file", text: Some(&text) }, Input { path: "other", text: None }];
    let _ = extract(extractor, &inputs, &["chore".to_owned()]);
}

/// Rule files come from the user: one that multiplies its own anchors harms nobody else, but would stop the fuzzer.
fn is_alias_bomb(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'*').count() > 32
}

/// Windows spellings: what was read from one is written and read again as the same place, and its Linux path stays
/// below the mount that shows it.
pub(crate) fn path_spelling(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (spelling, table_text) = text.split_once('\n').unwrap_or((&text, DRIVES));
    let table = MountTable::parse(table_text.as_bytes());
    let shares = BTreeMap::from([("drvfsaC".to_owned(), "C:\\".to_owned())]);
    let Some(place) = WindowsPath::parse(spelling) else { return };
    assert!(place.parts().iter().all(|part| !part.is_empty() && part != "." && part != ".."));
    let written = place.to_string();
    let again = WindowsPath::parse(&written);
    assert_eq!(again.as_ref(), Some(&place), "`{written}` is not the same place as `{spelling}`");
    let Ok(path) = place.to_linux(&table, &shares, Some("Debian")) else { return };
    assert!(!path.components().any(|part| part == Component::ParentDir), "`{}`", path.display());
    if let Lookup::Mount(mount) = table.lookup(&path) {
        assert!(path.starts_with(&mount.mount_point));
        let _ = windows_path(&path, mount, false, &shares, Some("Debian"));
    }
}

const DRIVES: &str = "/dev/sdc / ext4 rw 0 0\nC:\\134 /mnt/c 9p rw,aname=drvfs;path=C:\\;uid=1000 0 0\n";

/// A repository's configuration: it is read or refused, and git is handed nothing but allowed keys.
pub(crate) fn config(data: &[u8]) {
    let repository = Repository::new();
    repository.write("config", data);
    let access = Access::default();
    let Ok(profile) = rehome::scan::repo::scan(repository.worktree(), &access) else { return };
    let settings = Settings::of(&profile);
    let metadata = gix::config::file::Metadata::api();
    let options = gix::config::file::init::Options::default();
    let handed = gix::config::File::from_bytes_no_includes(&settings.config, metadata, options)
        .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&settings.config)));
    for section in handed.sections() {
        let name = section.header().name().to_string().to_ascii_lowercase();
        let known = ["core", "index", "status", "extensions", "sparse", "diff", "feature"];
        assert!(known.contains(&name.as_str()), "section `{name}` reaches git");
        assert!(section.header().subsection_name().is_none());
        for key in section.value_names() {
            let key = key.to_ascii_lowercase();
            let names_a_program = [
                "fsmonitor",
                "hookspath",
                "pager",
                "editor",
                "sshcommand",
                "askpass",
                "gitproxy",
                "external",
                "alternaterefscommand",
                "worktree",
                "command",
                "textconv",
                "partialclone",
            ];
            assert!(!names_a_program.contains(&key.as_str()), "`{name}.{key}` reaches git");
        }
    }
}

/// An index file: gix's decoder and the one that keeps the bytes agree on what they accept.
pub(crate) fn index(data: &[u8]) {
    for hash in [gix::hash::Kind::Sha1, gix::hash::Kind::Sha256] {
        let Ok(raw) = RawIndex::parse(data, hash) else { continue };
        for entry in raw.entries.iter().take(1_000) {
            let _ = (raw.name(entry), raw.c_name(entry), raw.id(data, entry), raw.stat(data, entry));
            let _ = (entry.kind(), entry.stage(), raw.is_empty_blob(data, entry));
        }
        let _ = raw.extension(data, *b"TREE");
        let half = raw.truncated(data, raw.entries.len() / 2, None);
        let again = RawIndex::parse(&half, hash).unwrap_or_else(|error| panic!("a cut index: {error}"));
        assert_eq!(again.entries.len(), raw.entries.len() / 2);
    }
    let repository = Repository::new();
    repository.write("index", data);
    let _ = rehome::scan::index::read(&repository.git_dir(), gix::hash::Kind::Sha1, &Access::default());
}

/// A repository with an empty `main`, made without git.
struct Repository {
    dir: TempDir,
}

impl Repository {
    fn new() -> Repository {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let repository = Repository { dir };
        for name in ["objects", "refs/heads", "info"] {
            fs::create_dir_all(repository.git_dir().join(name)).unwrap_or_else(|error| panic!("{error}"));
        }
        repository.write("HEAD", b"ref: refs/heads/main\n");
        repository.write("config", b"[core]\n\trepositoryFormatVersion = 0\n");
        repository
    }

    fn worktree(&self) -> &Path {
        self.dir.path()
    }

    fn git_dir(&self) -> std::path::PathBuf {
        self.dir.path().join(".git")
    }

    fn write(&self, name: &str, data: &[u8]) {
        fs::write(self.git_dir().join(name), data).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A report whose texts and numbers come from the input: no writer fails, none prints what a terminal or a browser would
/// obey, and the JSON is the same report again.
pub(crate) fn report_writers(data: &[u8]) {
    let base = base_report();
    let mut value = base.value.clone();
    for (place, piece) in
        base.free.iter().cycle().skip(usize::from(data.first().copied().unwrap_or(0))).zip(pieces(data))
    {
        let Some(leaf) = value.pointer_mut(place) else { continue };
        *leaf = match leaf {
            serde_json::Value::String(_) => String::from_utf8_lossy(piece).into_owned().into(),
            _ => number(piece).into(),
        };
    }
    // Numbers that a field cannot hold (negative counts) are refused by the reader, not by the writers.
    let Ok(report) = serde_json::from_value::<Report>(value) else { return };

    // One style an input: all of them take long enough to leave no time for other inputs.
    let width = [20, 80, 200][data.len() % 3];
    let explain = data.len().is_multiple_of(2);
    let style = Style { color: false, width, explain, unicode: !explain };
    assert_printable(&written(|out| write_human(&report, &style, out)));
    assert_printable(&written(|out| write_oneline(&report, out)));
    if data.len().is_multiple_of(SLOW_ONE_OF) {
        let page = written(|out| write_html(&report, out));
        assert_printable(&page);
        for tag in ["<script", "<img", "<iframe", "<object", "<embed", "<link", "<base", "<form"] {
            assert!(!page.contains(tag), "{tag} in the page");
        }
    }
    let json = written(|out| write_json(&report, out));
    assert_printable(&json);
    let again: Report = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(again, report);
}

/// Splits the input at bytes that no UTF-8 text holds.
fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    data.split(|byte| *byte == 0xff)
}

fn number(piece: &[u8]) -> f64 {
    let mut bytes = [0; 8];
    for (byte, from) in bytes.iter_mut().zip(piece) {
        *byte = *from;
    }
    let number = f64::from_le_bytes(bytes);
    if number.is_finite() { number } else { 0.0 }
}

fn written(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(out).unwrap_or_else(|error| panic!("{error}"))
}

fn assert_printable(text: &str) {
    let obeyed = text
        .chars()
        .find(|c| (c.is_control() && *c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    assert_eq!(obeyed, None, "{text:?}");
}

struct BaseReport {
    value: serde_json::Value,
    /// Places that take any text, or any number.
    free: Vec<String>,
}

fn base_report() -> &'static BaseReport {
    static BASE: OnceLock<BaseReport> = OnceLock::new();
    BASE.get_or_init(|| {
        let value: serde_json::Value =
            serde_json::from_str(include_str!("report.json")).unwrap_or_else(|error| panic!("{error}"));
        let mut leaves = Vec::new();
        collect_leaves(&value, String::new(), &mut leaves);
        let free = leaves.into_iter().filter(|place| {
            let mut changed = value.clone();
            let Some(leaf) = changed.pointer_mut(place) else { return false };
            *leaf = if leaf.is_string() { "free text".into() } else { 1.5.into() };
            serde_json::from_value::<Report>(changed).is_ok()
        });
        let free = free.collect();
        BaseReport { value, free }
    })
}

fn collect_leaves(value: &serde_json::Value, place: String, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_leaves(value, format!("{place}/{key}"), into);
            }
        }
        serde_json::Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                collect_leaves(value, format!("{place}/{number}"), into);
            }
        }
        serde_json::Value::String(_) | serde_json::Value::Number(_) => into.push(place),
        serde_json::Value::Bool(_) | serde_json::Value::Null => {}
    }
}
