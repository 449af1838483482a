//! `rehome bench`: synthetic work in any directories, and saved results side by side.
//!
//! The measuring is done by a process of its own ([`work`]), since a mount may stop answering meanwhile; see
//! [`crate::commands::supervise`].

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::advise::settings_without_repository;
use crate::bench::compare::{Comparison, compare};
use crate::bench::result::{BENCH_SCHEMA_VERSION, BenchReport, Failure, Place, Role};
use crate::bench::{self, Environment, Finished, Options, SmallPlan};
use crate::cli::{BenchArgs, BenchFormat};
use crate::commands::apart::{self, Removal};
use crate::commands::supervise::{
    self, Outcome, Patience, Terms, Told, emit, end_with_parent, supervise, this_program_as,
};
use crate::commands::{output, progress};
use crate::error::{EXIT_OK, Error, printable};
use crate::progress::Progress;
use crate::report::bench as report;
use crate::rules::RuleSet;
use crate::scan::filesystem::rules::FilesystemRuleSet;
use crate::scan::filesystem::target::{TargetRequest, choose_target};
use crate::scan::filesystem::{Location, System};
use crate::scan::git;
use crate::signals::Interrupt;

/// What a run may take beyond `--budget` before it is given up as soon as it stands still: the last round and the
/// removal of the scratch directories are outside of the budget.
const GRACE: Duration = Duration::from_secs(2);
/// What helps against a mount that hangs.
const HUNG_HINT: &str = "see if `ls` answers there, and mount it again (in WSL 2: `wsl --shutdown` from Windows)";

/// What the worker tells.
type Event = supervise::Event<BenchReport>;

/// Measures in the named directories, or shows saved results.
///
/// # Errors
///
/// [`Error::Usage`] for options that do not go together; [`Error::Refused`] when no scratch directory can be made, or
/// when nothing could be measured; [`Error::Interrupted`] after a signal, with what was finished already written.
pub fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<u8, Error> {
    if args.compare.is_empty() { measure(args, out) } else { compare_files(args, out) }
}

fn measure(args: &BenchArgs, out: &mut dyn Write) -> Result<u8, Error> {
    if args.format == BenchFormat::Html && args.output.is_some() {
        return Err(Error::Usage(
            "`--output` of a run gets JSON: let the page go to standard output (`--format html > PAGE`), or make it \
             later with `rehome bench --compare FILE --format html --output PAGE`"
                .to_owned(),
        ));
    }
    let interrupt = Interrupt::on_signals()?;
    let bars = progress::for_terminal(args.quiet);
    let mut is_announced = args.quiet;
    let mut on_partial = |report: &BenchReport| {
        if !is_announced {
            announce(report);
            is_announced = true;
        }
        if let Some(path) = own_descriptor(args) {
            output::write_file(path, |file| report::write_json(report, file))?;
        }
        Ok(None)
    };
    let mut terms = Terms {
        limit: Some(args.budget.saturating_add(GRACE)),
        patience: Patience::WhileAlive,
        interrupt: &interrupt,
        progress: bars.as_ref(),
        on_partial: &mut on_partial,
    };
    let (outcome, rest) = supervise(&mut this_program_as("__bench", "bench"), &mut terms)?;
    drop(bars);
    let (mut report, is_interrupted, stuck_at) = match outcome {
        Outcome::Finished(report) => {
            let is_interrupted = interrupt.is_set() && !report.complete;
            (report, is_interrupted, None)
        }
        Outcome::Partial { report, is_interrupted, stuck_at, left } => {
            let removals = apart::remove_scratches(&left, stuck_at.as_deref());
            let Some(mut report) = report else {
                return Err(if is_interrupted { Error::Interrupted } else { did_not_answer(args, stuck_at) });
            };
            record_end(&mut report, stuck_at.as_deref(), &removals);
            (report, is_interrupted, stuck_at)
        }
    };
    rest.wait();
    report.notes.extend(advice(&report, &RuleSet::load(&[])?));
    let saved = save_last(&report, args);
    write_run(&report, args.format, out)?;
    if is_interrupted {
        return Err(Error::Interrupted);
    }
    saved?;
    refuse_if_nothing_counts(&report, stuck_at.as_deref())?;
    Ok(EXIT_OK)
}

/// Writes down why a run ended early, and what became of its scratch directories.
fn record_end(report: &mut BenchReport, stuck_at: Option<&str>, removals: &[Removal]) {
    for place in &mut report.places {
        let Some(scratch) = &mut place.scratch else { continue };
        scratch.gone |= removals.iter().any(|it| it.is_gone && it.path == Path::new(&scratch.path));
    }
    report.notes.extend(removals.iter().filter_map(Removal::note));
    let Some(stuck_at) = stuck_at else { return };
    let given = apart::given_directory(Path::new(stuck_at));
    let place = report.places.iter().position(|place| Path::new(&place.path) == given);
    match report.suites.last_mut().filter(|suite| !suite.complete) {
        Some(suite) => suite.failures.push(Failure {
            place,
            message: apart::stopped_answering(stuck_at),
            hint: Some(HUNG_HINT.to_owned()),
        }),
        None => report.notes.push(apart::stopped_answering(stuck_at)),
    }
}

fn did_not_answer(args: &BenchArgs, stuck_at: Option<String>) -> Error {
    let place = stuck_at.map_or_else(
        || "the run".to_owned(),
        |place| format!("`{}`", printable(apart::given_directory(Path::new(&place)))),
    );
    Error::refused(format!("{place} did not answer within {} s", (args.budget + GRACE).as_secs_f64()), HUNG_HINT)
}

/// Returns where the result goes when that is a device or a descriptor of this process (`/dev/stderr`, `/dev/fd/3`), which
/// means something else to another process, and never hangs.
fn own_descriptor(args: &BenchArgs) -> Option<&Path> {
    args.output.as_deref().filter(|path| path.starts_with("/dev") || path.starts_with("/proc"))
}

/// Saves the report at the end. The file may lie on the mount that hangs, so a process of its own writes it.
fn save_last(report: &BenchReport, args: &BenchArgs) -> Result<(), Error> {
    let Some(path) = &args.output else { return Ok(()) };
    if own_descriptor(args).is_some() {
        return output::write_file(path, |file| report::write_json(report, file));
    }
    let mut text = Vec::new();
    report::write_json(report, &mut text).map_err(Error::Output)?;
    apart::write_file(path, text)
}

/// Does the work of `bench` and writes [`supervise::Event`]s to `out`.
///
/// # Errors
///
/// [`Error::Output`] when the parent is gone; what goes wrong with the benchmark itself is an event.
pub fn work(args: &BenchArgs, out: &mut dyn Write) -> Result<u8, Error> {
    // It removes its scratch directories then.
    end_with_parent(Signal::TERM)?;
    let interrupt = Interrupt::on_signals()?;
    match measure_here(args, &interrupt, out) {
        Ok(report) => emit(out, &Event::Finished { report: Box::new(report) })?,
        Err(Error::Output(error)) => return Err(Error::Output(error)),
        Err(error) => emit(out, &Event::failed(&error))?,
    }
    Ok(EXIT_OK)
}

fn measure_here(args: &BenchArgs, interrupt: &Interrupt, out: &mut dyn Write) -> Result<BenchReport, Error> {
    let system = System::live(FilesystemRuleSet::builtin()?)?;
    emit(out, &Event::Started)?;
    let told = Told::new();
    let ground = Ground { system: &system, progress: &told };
    let options = options(args, &ground)?;
    let is_only_reading = !options.trees.is_empty() && options.suites == [bench::result::Suite::Walk];
    let (places, remark) = if is_only_reading { (Vec::new(), None) } else { places(args, &ground)? };
    let env = Environment { platform: Some(system.platform.platform), git: git::find(), progress: &told, interrupt };
    let mut save = |report: &BenchReport| {
        emit(out, &Event::Partial { report: Box::new(report.clone()) })?;
        match &args.output {
            Some(path) if own_descriptor(args).is_none() => {
                told.at(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")));
                output::write_file(path, |file| report::write_json(report, file))
            }
            _ => Ok(()),
        }
    };
    let Finished { mut report, .. } = bench::run(&options, places, &env, &mut save)?;
    report.notes.extend(remark);
    Ok(report)
}

/// What paths are looked up with.
struct Ground<'a> {
    system: &'a System,
    progress: &'a dyn Progress,
}

fn options(args: &BenchArgs, ground: &Ground<'_>) -> Result<Options, Error> {
    let trees = args.tree.iter().map(|tree| locate(ground, tree, Role::Tree).map(|(place, _)| place));
    Ok(Options {
        suites: args.suite.iter().map(|name| (*name).into()).collect(),
        small: SmallPlan { files: args.files, size_bytes: args.size, dirs: args.dirs, fsync: args.fsync },
        rounds: args.rounds,
        bytes: args.bytes,
        trees: trees.collect::<Result<_, _>>()?,
        budget: args.budget,
    })
}

/// Returns the places, and a remark when there is no second one.
///
/// Without any, the current directory; without a second, the place that a move from the first one would go to.
fn places(args: &BenchArgs, ground: &Ground<'_>) -> Result<(Vec<Place>, Option<String>), Error> {
    let here = [PathBuf::from(".")];
    let given = if args.places.is_empty() { &here[..] } else { &args.places[..] };
    let mut places: Vec<Place> = Vec::new();
    let mut first = None;
    for path in given {
        let (place, location) = locate(ground, path, Role::Scratch)?;
        let is_known = |known: &Place| real_path(known) == real_path(&place);
        if places.iter().any(is_known) {
            return Err(Error::Usage(format!("`{}` is named twice", printable(path))));
        }
        first.get_or_insert(location);
        places.push(place);
    }
    if places.len() > 1 {
        return Ok((places, None));
    }
    match choose_target(ground.system, &TargetRequest::new(None, &[], first.as_ref())) {
        Ok(target) => {
            let existing = Path::new(&target.site.real_path).ancestors().find(|path| path.is_dir());
            let (place, _) = locate(ground, existing.unwrap_or(Path::new("/")), Role::Scratch)?;
            places.push(place);
            Ok((places, None))
        }
        Err(error) => Ok((
            places,
            Some(format!("there is no second place to compare with: {error}; name one on the command line")),
        )),
    }
}

fn real_path(place: &Place) -> &str {
    place.site.as_ref().map_or(&place.path, |site| &site.real_path)
}

fn locate(ground: &Ground<'_>, given: &Path, role: Role) -> Result<(Place, Location), Error> {
    ground.progress.at(given);
    let path = ground.system.resolve_spelling(given)?;
    let location = ground.system.locate(&path)?;
    let metadata = std::fs::metadata(&path).map_err(|error| Error::io("look at", &path, error))?;
    if !metadata.is_dir() {
        return Err(Error::refused(
            format!("`{}` is no directory", printable(given)),
            "name a directory; the scratch directory is made inside",
        ));
    }
    let place = Place { path: location.site.path.clone(), role, site: Some(location.site.clone()), scratch: None };
    Ok((place, location))
}

/// Returns what the rules advise for places where a relay of small writes was measured, one sentence each.
fn advice(report: &BenchReport, rules: &RuleSet) -> Vec<String> {
    let comparison = compare(&[(None, report.clone())]);
    let mut sentences = Vec::new();
    for cost in &comparison.relays {
        let facts = serde_json::json!({
            "platform": report.machine.platform,
            "site": report.places[cost.column].site,
            "measure": { "relay": { "speedup": cost.factor, "speedup_low": cost.low, "speedup_high": cost.high } },
        });
        let tunes = settings_without_repository(&facts, rules);
        sentences.extend(tunes.into_iter().map(|tune| format!("{}: `{}`; {}", tune.say, tune.command, tune.effect)));
    }
    sentences
}

/// Says on standard error where this writes, before anything is written there.
fn announce(report: &BenchReport) {
    let paths: Vec<String> = report
        .places
        .iter()
        .filter_map(|place| place.scratch.as_ref())
        .map(|scratch| format!("`{}`", printable(&scratch.path)))
        .collect();
    if !paths.is_empty() {
        // With standard error closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "rehome bench writes in {}", paths.join(" and "));
    }
}

fn write_run(report: &BenchReport, format: BenchFormat, out: &mut dyn Write) -> Result<(), Error> {
    let mut out = BufWriter::new(out);
    let written = match format {
        BenchFormat::Text => report::write_run(report, &output::terminal_style(false), &mut out),
        BenchFormat::Json => report::write_json(report, &mut out),
        BenchFormat::Html => {
            let runs = [(None, report.clone())];
            report::write_html(&compare(&runs), &report::remarks(&runs), &mut out)
        }
    };
    written.and_then(|()| out.flush()).map_err(Error::Output)
}

fn refuse_if_nothing_counts(report: &BenchReport, stuck_at: Option<&str>) -> Result<(), Error> {
    if report.suites.iter().any(|suite| !suite.figures.is_empty()) {
        return Ok(());
    }
    if let Some(place) = stuck_at {
        return Err(Error::refused(apart::stopped_answering(place), HUNG_HINT));
    }
    let hint = report.suites.iter().flat_map(|suite| &suite.failures).find_map(|failure| failure.hint.clone());
    Err(Error::refused(
        "nothing could be measured: no round counts",
        hint.unwrap_or_else(|| "the reasons are above; name other directories".to_owned()),
    ))
}

fn compare_files(args: &BenchArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let runs = args.compare.iter().map(|path| load(path)).collect::<Result<Vec<_>, _>>()?;
    let comparison = compare(&runs);
    let remarks = report::remarks(&runs);
    match &args.output {
        None => {
            let mut out = BufWriter::new(out);
            let written = write_comparison(&comparison, &remarks, args.format, true, &mut out);
            written.and_then(|()| out.flush()).map_err(Error::Output)?;
        }
        Some(path) => {
            output::write_file(path, |file| write_comparison(&comparison, &remarks, args.format, false, file))?;
        }
    }
    Ok(EXIT_OK)
}

fn write_comparison(
    comparison: &Comparison,
    remarks: &[String],
    format: BenchFormat,
    is_terminal: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let style = if is_terminal { output::terminal_style(false) } else { crate::report::Style::default() };
    match format {
        BenchFormat::Text => report::write_comparison(comparison, remarks, &style, out),
        BenchFormat::Json => report::write_json(comparison, out),
        BenchFormat::Html => report::write_html(comparison, remarks, out),
    }
}

/// Reads a saved run and names it by its file.
fn load(path: &Path) -> Result<(Option<String>, BenchReport), Error> {
    let text = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| not_a_result(path, &error.to_string()))?;
    if value.get("kind").and_then(serde_json::Value::as_str) != Some("bench") {
        return Err(not_a_result(path, "it has no `\"kind\": \"bench\"`"));
    }
    let version = value.get("schema_version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(BENCH_SCHEMA_VERSION)) {
        let found = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        return Err(not_a_result(
            path,
            &format!("its schema_version is {found}, and this program reads {BENCH_SCHEMA_VERSION}"),
        ));
    }
    let report: BenchReport = serde_json::from_value(value).map_err(|error| not_a_result(path, &error.to_string()))?;
    check_positions(&report).map_err(|problem| not_a_result(path, &problem))?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok((Some(name), report))
}

/// A file may be made by hand: positions that lead nowhere and times that are none must not get further.
fn check_positions(report: &BenchReport) -> Result<(), String> {
    for suite in &report.suites {
        for figure in suite.figures.iter().flat_map(|figure| &figure.places) {
            if figure.place >= report.places.len() {
                return Err(format!("a figure names place {}, and there are {}", figure.place, report.places.len()));
            }
            if figure.runs.iter().any(|run| !run.is_finite() || *run < 0.0) {
                return Err("a run is no time".to_owned());
            }
        }
    }
    Ok(())
}

fn not_a_result(path: &Path, problem: &str) -> Error {
    Error::refused(
        format!(
            "`{}` is no saved result of `rehome bench`: {}",
            printable(path),
            crate::error::printable_text(problem)
        ),
        "save one with `rehome bench --output FILE`",
    )
}
