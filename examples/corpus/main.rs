//! Runs the committed evidence over labelled repositories and tells how often it is right.
//!
//! ```text
//! corpus --labels dev.tsv --paths DIR [--facts DIR] [--files DIR] [--checkouts DIR] [--rules DIR] [-v]
//! ```
//!
//! `dev.tsv` has a repository (`owner/name`) and its label in the first two columns. Of a repository `owner/name` the parts
//! are called `owner+name`: `<paths>/owner+name.paths.gz` has one tracked path a line (mode, size, path),
//! `<facts>/owner+name.facts.yaml` values that were taken out of its files, `<files>/owner+name/` its files themselves, and
//! `<checkouts>/owner+name` is a repository that git can read, bare or not. `--labels` alone with `--checkouts` is enough.

#![expect(clippy::print_stdout, reason = "this is a command for developers")]

mod contents;
mod facts;
mod score;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rehome::facts::Toolchain;
use rehome::judge::judge;
use rehome::rules::RuleSet;
use rehome::rules::condition::{IndexProperty, Mode};
use rehome::rules::gather::{Budget, Material, Purpose, gather};
use rehome::rules::paths::{IndexCounts, PathIndex, TrackedPath};
use rehome::rules::source::Source;

use contents::{Checkout, Files, Nothing};
use score::{Row, Score};

#[derive(Default)]
struct Options {
    labels: Option<PathBuf>,
    paths: Option<PathBuf>,
    facts: Option<PathBuf>,
    files: Option<PathBuf>,
    checkouts: Option<PathBuf>,
    rules: Vec<PathBuf>,
    verbose: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let labels = options.labels.clone().ok_or("name the labelled repositories with --labels FILE")?;
    let rules = RuleSet::load(&options.rules)?;
    let mut score = Score::default();
    for line in std::fs::read_to_string(&labels)?.lines().skip(1) {
        let mut columns = line.split('\t');
        let (Some(name), Some(label)) = (columns.next(), columns.next()) else { continue };
        let label: Toolchain = serde_json::from_value(serde_json::Value::String(label.to_owned()))?;
        match one(name, &options, &rules) {
            Ok(Some((judgement, reads))) => score.add(Row { name: name.to_owned(), label, judgement, reads }),
            Ok(None) => println!("{name}: nothing found"),
            Err(error) => println!("{name}: {error}"),
        }
    }
    print!("{}", score.text(options.verbose));
    Ok(())
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().map(PathBuf::from).ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--labels" => options.labels = Some(value()?),
            "--paths" => options.paths = Some(value()?),
            "--facts" => options.facts = Some(value()?),
            "--files" => options.files = Some(value()?),
            "--checkouts" => options.checkouts = Some(value()?),
            "--rules" => options.rules.push(value()?),
            "-v" | "--verbose" => options.verbose = true,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}

type Judged = (rehome::judge::Judgement, u64);

fn one(name: &str, options: &Options, rules: &RuleSet) -> Result<Option<Judged>, Box<dyn Error>> {
    let stem = name.replace('/', "+");
    let checkout = options.checkouts.as_ref().map(|dir| dir.join(&stem)).filter(|dir| dir.exists());
    let paths = match (&options.paths, &checkout) {
        (Some(dir), _) if dir.join(format!("{stem}.paths.gz")).exists() => {
            listed_paths(&dir.join(format!("{stem}.paths.gz")))?
        }
        (_, Some(dir)) => checkout_paths(dir)?,
        _ => return Ok(None),
    };
    let facts_file = options.facts.as_ref().map(|dir| dir.join(format!("{stem}.facts.yaml"))).filter(|it| it.exists());
    let files = options.files.as_ref().map(|dir| dir.join(&stem)).filter(|dir| dir.exists());
    let source: Box<dyn Source> = if let Some(dir) = files {
        Box::new(Files::new(dir))
    } else if let Some(dir) = checkout {
        Box::new(Checkout::new(dir))
    } else if let Some(file) = facts_file {
        Box::new(facts::CorpusFacts::read(&file)?)
    } else {
        Box::new(Nothing)
    };
    let paths = PathIndex::new(paths, rules.globs(), &rules.judging);
    let mut index = IndexCounts::new();
    index.insert(IndexProperty::CaseCollisions, paths.case_collisions().len() as u64);
    index.insert(IndexProperty::WindowsReservedNames, paths.reserved().len() as u64);
    let material = Material { paths, config: Vec::new(), index, facts: serde_json::json!({}) };
    let counted = contents::Counted::new(source.as_ref());
    let observations = gather(rules, material, &counted, Budget::default(), Purpose { local: false });
    Ok(Some((judge(&observations, rules, None), counted.count())))
}

fn listed_paths(file: &Path) -> Result<Vec<TrackedPath>, Box<dyn Error>> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file)?).read_to_string(&mut text)?;
    let mut paths = Vec::new();
    for line in text.lines() {
        let mut columns = line.splitn(3, '\t');
        if let (Some(mode), Some(_), Some(path)) = (columns.next(), columns.next(), columns.next()) {
            paths.push(TrackedPath { path: path.to_owned(), mode: mode_of(mode) });
        }
    }
    Ok(paths)
}

/// Lists the tree of the newest commit, which a bare repository has too.
fn checkout_paths(dir: &Path) -> Result<Vec<TrackedPath>, Box<dyn Error>> {
    let output = Command::new("git").arg("-C").arg(dir).args(["ls-tree", "-r", "-z", "HEAD"]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    let mut paths = Vec::new();
    for entry in output.stdout.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        if let Some((head, path)) = entry.split_once('\t') {
            let mode = head.split(' ').next().unwrap_or_default();
            paths.push(TrackedPath { path: path.to_owned(), mode: mode_of(mode) });
        }
    }
    Ok(paths)
}

fn mode_of(mode: &str) -> Mode {
    let known: BTreeMap<&str, Mode> =
        [("100755", Mode::Executable), ("120000", Mode::Symlink), ("160000", Mode::Submodule)].into();
    known.get(mode).copied().unwrap_or(Mode::Plain)
}
