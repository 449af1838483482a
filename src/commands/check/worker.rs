//! The process that touches the repository: joins the stages and reports as it goes.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::Signal;

use crate::cli::CheckArgs;
use crate::commands::supervise::{Event, emit};
use crate::error::{EXIT_OK, Error};
use crate::facts::Facts;
use crate::report::{Cost, Report, SCHEMA_VERSION};
use crate::scan::access::Access;
use crate::scan::filesystem::System;
use crate::scan::filesystem::rules::FilesystemRuleSet;
use crate::scan::git;
use crate::scan::repo::scan;
use crate::signals::Interrupt;

/// Does the work of `check` and writes [`Event`]s to `out`.
///
/// # Errors
///
/// [`Error::Output`] when the parent is gone; what goes wrong with the check itself is an event.
pub fn work(args: &CheckArgs, out: &mut dyn Write) -> Result<u8, Error> {
    // Without the parent nobody reads the answer, and nobody would end this process when its mount hangs.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| Error::io("watch the parent of", "/proc/self", error.into()))?;
    let interrupt = Interrupt::on_signals()?;
    let event = match check(args, &interrupt, out) {
        Ok(report) => Event::Finished { report: Box::new(report) },
        Err(Error::Output(error)) => return Err(Error::Output(error)),
        Err(error) => Event::failed(&error),
    };
    emit(out, &event)?;
    Ok(EXIT_OK)
}

fn check(args: &CheckArgs, interrupt: &Interrupt, out: &mut dyn Write) -> Result<Report, Error> {
    let started = Instant::now();
    let access = Access::default();
    let system = System::live(FilesystemRuleSet::builtin()?)?;
    let given = args.path.clone().unwrap_or_else(|| PathBuf::from("."));
    let path = system.resolve_spelling(&given)?;
    let profile = scan(&path, &access)?;
    let location = system.locate(&profile.worktree)?;
    access.add_calls(location.calls_in_place);
    interrupt.check()?;
    let facts = Facts {
        platform: system.platform.platform,
        site: location.site,
        target: None,
        repo: profile.facts.clone(),
        git: git::find(),
        toolchain: None,
        measure: std::collections::BTreeMap::new(),
        hazards: None,
    };
    let count = access.count();
    let report = Report {
        schema_version: SCHEMA_VERSION,
        rehome_version: env!("CARGO_PKG_VERSION").to_owned(),
        complete: false,
        facts,
        measurements: Vec::new(),
        evidence: Vec::new(),
        hazards: Vec::new(),
        recommendation: None,
        tune: Vec::new(),
        notes: profile.notes.clone(),
        cost: Cost {
            wall_s: started.elapsed().as_secs_f64(),
            scan_calls_in_place: count.calls,
            scan_reads_in_place: count.reads,
            scan_bytes_in_place: count.bytes,
            bytes_written_in_place: 0,
        },
    };
    emit(out, &Event::Partial { report: Box::new(report.clone()) })?;
    Ok(report)
}
