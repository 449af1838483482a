//! `rehome move`: shows the plan, asks, carries it out, says what is to be done after.
//!
//! A move takes as long as it takes, but a signal must end it also when a mount stopped answering. So the work is done by
//! a process of its own ([`work`]); see [`crate::commands::supervise`].

mod hazards;
mod text;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cli::{MoveArgs, PlainFormat};
use crate::commands::progress;
use crate::commands::supervise::{
    self, Outcome, Patience, Terms, emit, end_with_parent, is_told_to_go_on, supervise, this_program_as,
};
use crate::error::{EXIT_INTERRUPTED, EXIT_OK, Error, printable};
use crate::facts::Target;
use crate::migrate::{self, Moved, Plan, Request, SCHEMA_VERSION, Scope};
use crate::progress::Progress;
use crate::report;
use crate::rules::RuleSet;
use crate::scan::access::Access;
use crate::scan::filesystem::rules::FilesystemRuleSet;
use crate::scan::filesystem::target::{TargetRequest, choose_target};
use crate::scan::filesystem::{Location, System};
use crate::scan::git;
use crate::scan::repo::scan;
use crate::signals::Interrupt;

/// What `--format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MoveReport {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the program that made it.
    pub rehome_version: String,
    /// What was planned; absent when an earlier run had finished the move already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// How it ended; absent with `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Moved>,
}

/// What the worker tells: the plan, then how it ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Told {
    plan: Option<Plan>,
    result: Option<Moved>,
    script: Option<Vec<u8>>,
}

type Event = supervise::Event<Told>;

/// Moves one repository.
///
/// # Errors
///
/// Whatever kept the move from being done; [`Error::Usage`] when it may not ask and was not told to go on.
pub fn run(args: &MoveArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let is_told = args.yes || args.dry_run || args.script;
    let may_ask = io::stdin().is_terminal() && io::stderr().is_terminal() && args.format == PlainFormat::Text;
    if !is_told && !may_ask {
        return Err(Error::Usage(
            "`rehome move` asks before it copies, and cannot ask here: pass `--yes`, or `--dry-run` to see the plan"
                .to_owned(),
        ));
    }
    let interrupt = Interrupt::on_signals()?;
    let progress = progress::for_terminal(args.quiet);
    let mut on_plan = |told: &Told| decide(args, told, out).map(Some);
    let mut terms = Terms {
        limit: None,
        patience: Patience::WhileAlive,
        interrupt: &interrupt,
        progress: progress.as_ref(),
        on_partial: &mut on_plan,
    };
    let (outcome, rest) = supervise(&mut this_program_as("__move", "move"), &mut terms)?;
    drop(progress);
    rest.wait();
    match outcome {
        Outcome::Finished(told) => finish(args, *told, out),
        Outcome::Partial { report, stuck_at: Some(_), .. } => Err(stuck(report.as_deref())),
        Outcome::Partial { .. } => Err(Error::Interrupted),
    }
}

/// Shows the plan and returns whether it is to be carried out; the parent's side.
fn decide(args: &MoveArgs, told: &Told, out: &mut dyn Write) -> Result<bool, Error> {
    let Some(plan) = &told.plan else { return Ok(false) };
    if args.format == PlainFormat::Text {
        text::write_plan(plan, out).and_then(|()| out.flush()).map_err(Error::Output)?;
    }
    if args.dry_run {
        return Ok(false);
    }
    refuse_blocked(plan)?;
    Ok(args.yes || ask()?)
}

fn finish(args: &MoveArgs, told: Told, out: &mut dyn Write) -> Result<u8, Error> {
    match (told, args.format) {
        (Told { script: Some(script), .. }, _) => out.write_all(&script).map_err(Error::Output)?,
        (Told { result: Some(moved), plan, .. }, PlainFormat::Text) => {
            // What was printed with the plan a moment ago needs no second time.
            let shown = plan.as_ref().map_or(&[][..], |plan| &plan.notes);
            text::write_moved(&moved, shown, out).and_then(|()| out.flush()).map_err(Error::Output)?;
        }
        (told, PlainFormat::Json) => write_json(told.plan, told.result, out)?,
        _ if args.dry_run => {}
        _ => writeln!(out, "Nothing was done.").map_err(Error::Output)?,
    }
    Ok(EXIT_OK)
}

/// Says that a signal ended a move whose mount does not answer.
fn stuck(told: Option<&Told>) -> Error {
    let kept = told.and_then(|told| told.plan.as_ref()).map_or_else(
        || "nothing was copied yet".to_owned(),
        |plan| format!("what was copied is kept in `{}`, and the same command goes on from there", plan.partial),
    );
    Error::Reported {
        message: "interrupted while a mount did not answer".to_owned(),
        causes: Vec::new(),
        hint: Some(format!("mount it again (in WSL 2: `wsl --shutdown` from Windows); {kept}")),
        exit_code: EXIT_INTERRUPTED,
    }
}

/// Does the work of `move` and writes [`supervise::Event`]s to `out`.
///
/// # Errors
///
/// [`Error::Output`] when the parent is gone; what goes wrong with the move itself is an event.
pub fn work(args: &MoveArgs, out: &mut dyn Write) -> Result<u8, Error> {
    // What was copied is kept whatever ends it, and the next run must not find it still at work.
    end_with_parent(Signal::KILL)?;
    let interrupt = Interrupt::on_signals()?;
    match carry_out(args, &interrupt, out) {
        Ok(told) => emit(out, &Event::Finished { report: Box::new(told) })?,
        Err(Error::Output(error)) => return Err(Error::Output(error)),
        Err(error) => emit(out, &Event::failed(&error))?,
    }
    Ok(EXIT_OK)
}

fn carry_out(args: &MoveArgs, interrupt: &Interrupt, out: &mut dyn Write) -> Result<Told, Error> {
    let system = System::live(FilesystemRuleSet::builtin()?)?;
    emit(out, &Event::Started)?;
    let given = args.source.clone().unwrap_or_else(|| PathBuf::from("."));
    let access = Access::default();
    let progress = supervise::Told::new();
    progress.at(&given);
    let path = system.resolve_spelling(&given)?;
    let profile = scan(&path, &access).map_err(|error| system.explain(&path, error))?;
    let location = system.locate(&profile.worktree)?;
    let destination = destination(args, &system, &location, &profile.worktree)?;
    if let Some(moved) = migrate::finished_before(&destination) {
        return Ok(Told { result: Some(moved), ..Told::default() });
    }
    let mut request = request(args, &system, &location, destination)?;
    if let Some(target) = &request.target {
        let rules = RuleSet::load(&args.rules)?;
        let hazards = hazards::ask(&rules, &system, &profile, &location.site, target, &access);
        request.blockers = hazards.blockers;
        request.notes = hazards.notes;
        request.rebuildable = rules.rebuildable().to_vec();
    }
    let prepared = migrate::prepare(&profile, &request, interrupt, &progress)?;
    if args.script {
        if let Some(blocker) = prepared.plan.blockers.first() {
            return Err(Error::refused(blocker.say.clone(), blocker.fix.clone()));
        }
        return Ok(Told { script: Some(migrate::script(&prepared)), ..Told::default() });
    }
    let mut told = Told { plan: Some(prepared.plan.clone()), ..Told::default() };
    emit(out, &Event::Partial { report: Box::new(told.clone()) })?;
    if is_told_to_go_on() {
        told.result = Some(migrate::execute(prepared, interrupt, &progress)?);
    }
    Ok(told)
}

fn write_json(plan: Option<Plan>, result: Option<Moved>, out: &mut dyn Write) -> Result<(), Error> {
    let report = MoveReport {
        schema_version: SCHEMA_VERSION,
        rehome_version: env!("CARGO_PKG_VERSION").to_owned(),
        plan,
        result,
    };
    report::write_json(&report, out).map_err(Error::Output)
}

/// Returns where the copy is to be, as an absolute path.
fn destination(args: &MoveArgs, system: &System, location: &Location, worktree: &Path) -> Result<PathBuf, Error> {
    let Some(given) = &args.destination else {
        let name = worktree.file_name().unwrap_or("repository".as_ref());
        let target = choose_target(system, &TargetRequest::new(None, &args.target_fs, Some(location)))?;
        return Ok(PathBuf::from(target.site.real_path).join(name));
    };
    let path = system.resolve_spelling(given)?;
    std::path::absolute(&path).map_err(|source| Error::io("find", path, source))
}

fn request(args: &MoveArgs, system: &System, location: &Location, destination: PathBuf) -> Result<Request, Error> {
    let chosen = choose_target(system, &TargetRequest::new(Some(&destination), &args.target_fs, None));
    // The direction decides what suits; here only what is known about the place is wanted.
    let target = if let Ok(target) = chosen {
        target
    } else {
        let site = system.locate_nearest(&destination)?.site;
        Target { site, free_bytes: None, host_free_bytes: None }
    };
    let scope = match (args.all, args.only_tracked) {
        (true, _) => Scope::All,
        (_, true) => Scope::OnlyTracked,
        _ => Scope::Precious,
    };
    let Some(git) = git::find() else {
        return Err(Error::refused("there is no git on PATH", "install git: the copy is checked with it"));
    };
    Ok(Request {
        destination,
        scope,
        to_windows: args.to_windows,
        target_fs: args.target_fs.clone(),
        rebuildable: Vec::new(),
        site: Some(location.site.clone()),
        target: Some(target),
        blockers: Vec::new(),
        notes: Vec::new(),
        git: PathBuf::from(git.path),
        home: etcetera::home_dir().ok(),
    })
}

fn refuse_blocked(plan: &Plan) -> Result<(), Error> {
    let Some(first) = plan.blockers.first() else { return Ok(()) };
    let more = plan.blockers.len() - 1;
    let rest = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Err(Error::refused(
        format!("cannot move `{}`: {}{rest}", printable(Path::new(&plan.source)), first.say),
        first.fix.clone(),
    ))
}

/// Asks on the terminal; anything but a yes is a no.
fn ask() -> Result<bool, Error> {
    let mut err = io::stderr();
    write!(err, "Copy now? [y/N] ").and_then(|()| err.flush()).map_err(Error::Output)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|source| Error::io("read", "/dev/stdin", source))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
