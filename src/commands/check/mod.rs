//! `rehome check`: scan, measure, judge, recommend.
//!
//! The work itself is in `worker`, a process of its own; see [`crate::commands::supervise`] for the reason.

mod before_clone;
mod extra;
mod worker;

use std::io::Write;
use std::time::Duration;

use crate::advise::Verdict;
use crate::cli::CheckArgs;
use crate::commands::supervise::{self, Outcome, Patience, Terms, no_answer, supervise, this_program_as};
use crate::commands::{apart, cached, output, progress};
use crate::error::{EXIT_OK, Error, printable};
use crate::report::Report;
use crate::signals::Interrupt;
use crate::state::Store;

pub use worker::work;

/// What the worker tells.
type Event = supervise::Event<Report>;

/// Exit status with `--exit-code`: move to the fast local filesystem.
pub const EXIT_MOVE: u8 = 10;
/// Exit status with `--exit-code`: move to the Windows side.
pub const EXIT_MOVE_TO_WINDOWS: u8 = 11;
/// Exit status with `--exit-code`: stay and change settings.
pub const EXIT_TUNE: u8 = 12;
/// Exit status with `--exit-code`: the figures do not carry an answer.
pub const EXIT_INCONCLUSIVE: u8 = 20;

/// What a run may take beyond `--budget` before its mount counts as hung: scanning and judging are outside the budget.
const GRACE: Duration = Duration::from_millis(1_500);

/// Checks one repository and writes the answer.
///
/// # Errors
///
/// Whatever kept the check from answering; [`Error::Interrupted`] when a signal ended it before anything was known.
pub fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<u8, Error> {
    if let Some(wanted) = &args.cached {
        return cached::run(args, wanted.as_ref(), out);
    }
    let store = Store::of_user();
    let _alone = if args.background {
        // Another one is at work already, or there is no place to leave the result.
        let Some(lock) = store.as_ref().and_then(cached::enter_background) else { return Ok(EXIT_OK) };
        Some(lock)
    } else {
        None
    };
    let interrupt = Interrupt::on_signals()?;
    let bars = progress::chosen(args.quiet, args.verbose);
    let mut terms = Terms {
        limit: Some(args.budget + GRACE),
        patience: Patience::None,
        interrupt: &interrupt,
        progress: bars.as_ref(),
        on_partial: &mut no_answer::<Report>,
    };
    let (outcome, rest) = supervise(&mut this_program_as("__worker", "check"), &mut terms)?;
    drop(bars);
    let (report, is_interrupted) = match outcome {
        Outcome::Finished(report) => {
            let is_interrupted = interrupt.is_set() && !report.complete;
            (report, is_interrupted)
        }
        Outcome::Partial { report: Some(mut report), is_interrupted, stuck_at, left } => {
            report.notes.extend(stuck_at.as_deref().map(apart::stopped_answering));
            report
                .notes
                .extend(apart::remove_scratches(&left, stuck_at.as_deref()).into_iter().filter_map(|it| it.note()));
            (report, is_interrupted)
        }
        Outcome::Partial { report: None, is_interrupted: true, .. } => return Err(Error::Interrupted),
        Outcome::Partial { report: None, is_interrupted: false, .. } => return Err(did_not_answer(args)),
    };
    if let Some(store) = store.filter(|_| !args.no_measure) {
        // Only later prompts would miss it, and they measure again.
        let _ = store.save(&report);
    }
    let written = output::write_report(&report, args, out);
    rest.wait();
    written?;
    if is_interrupted {
        return Err(Error::Interrupted);
    }
    Ok(if args.exit_code { exit_code(&report) } else { EXIT_OK })
}

fn did_not_answer(args: &CheckArgs) -> Error {
    let path = args.path.as_deref().map_or_else(|| "the current directory".to_owned(), printable);
    Error::refused(
        format!("`{path}` did not answer within {} s", (args.budget + GRACE).as_secs_f64()),
        "its mount hangs or is very slow: see if `ls` answers there, mount it again (in WSL 2: `wsl --shutdown` from \
         Windows), or give more time with `--budget`",
    )
}

/// Returns what `--exit-code` says of a report.
#[must_use]
pub fn exit_code(report: &Report) -> u8 {
    match report.recommendation.as_ref().map(|recommendation| recommendation.verdict) {
        Some(Verdict::Stay) => EXIT_OK,
        Some(Verdict::Move) => EXIT_MOVE,
        Some(Verdict::MoveToWindows) => EXIT_MOVE_TO_WINDOWS,
        Some(Verdict::Tune) => EXIT_TUNE,
        Some(Verdict::Inconclusive) | None => EXIT_INCONCLUSIVE,
    }
}
