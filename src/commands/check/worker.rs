//! The process that touches the repository: joins the stages and reports as it goes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use etcetera::BaseStrategy;
use rustix::process::Signal;

use super::extra::Extra;
use super::{Event, before_clone};
use crate::advise::advise;
use crate::cli::{CheckArgs, Primary};
use crate::commands::supervise::{Told, emit, end_with_parent};
use crate::error::{EXIT_OK, Error};
use crate::facts::{Facts, Platform, Toolchain};
use crate::judge::judge;
use crate::measure::temp::RunDir;
use crate::measure::{self, Request, Workload};
use crate::report::{Cost, Report, SCHEMA_VERSION};
use crate::rules::RuleSet;
use crate::rules::gather::{Budget, Observations, Purpose, gather};
use crate::rules::live::{self, LiveSource};
use crate::scan::RepoProfile;
use crate::scan::access::Access;
use crate::scan::filesystem::target::{TargetRequest, choose_target};
use crate::scan::filesystem::{Location, System};
use crate::scan::git;
use crate::scan::repo::scan;
use crate::signals::Interrupt;

/// What is timed, in this order: the cheap ones first, so that a run that is cut short has something to say.
const WORKLOADS: &[Workload] = &[Workload::Stat, Workload::GitStatus, Workload::Walk];

/// Does the work of `check` and writes [`Event`](crate::commands::supervise::Event)s to `out`.
///
/// # Errors
///
/// [`Error::Output`] when the parent is gone; what goes wrong with the check itself is an event.
pub fn work(args: &CheckArgs, out: &mut dyn Write) -> Result<u8, Error> {
    // Without the parent nobody reads the answer, and nobody would end this process when its mount hangs.
    end_with_parent(Signal::TERM)?;
    let interrupt = Interrupt::on_signals()?;
    let mut check = Check { args, interrupt, started: Instant::now(), access: Access::default() };
    match check.run(out) {
        Ok((report, outcome)) => {
            emit(out, &Event::Finished { report: Box::new(report) })?;
            // The answer is out; removing the copy may take its time now.
            drop(outcome);
        }
        Err(Error::Output(error)) => return Err(Error::Output(error)),
        Err(error) => emit(out, &Event::failed(&error))?,
    }
    Ok(EXIT_OK)
}

pub(super) struct Check<'a> {
    pub(super) args: &'a CheckArgs,
    pub(super) interrupt: Interrupt,
    started: Instant,
    access: Access,
}

impl Check<'_> {
    fn run(&mut self, out: &mut dyn Write) -> Result<(Report, measure::Outcome), Error> {
        let rules = RuleSet::load(&self.args.rules)?;
        let system = System::live(rules.filesystem_rules()?)?;
        emit(out, &Event::Started)?;
        self.started = Instant::now();
        let given = self.args.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let path = system.resolve_spelling(&given)?;
        let mut profile = match scan(&path, &self.access) {
            Ok(profile) => profile,
            Err(_) if before_clone::is_vacant(&system, &path) => {
                let report = self.before_clone(&system, &path, &rules, out)?;
                return Ok((report, measure::Outcome::default()));
            }
            Err(error) => return Err(system.explain(&path, error)),
        };
        let location = system.locate(&profile.worktree)?;
        self.access.add_calls(location.calls_in_place);
        let mut report = self.first_report(&system, Some(&profile), &location);
        self.interrupt.check()?;
        let target = self.target(&system, &location, &mut report)?;
        let observations = self.gather(&rules, &profile, &mut report);
        if self.args.run.is_empty()
            && let Some(index) = &mut profile.index
        {
            // Nothing but a full copy asks for them from here on.
            index.forget_entries();
        }
        let judgement = judge(&observations, &rules, self.args.primary.map(toolchain_of));
        report.facts.toolchain = Some(judgement.toolchain.clone());
        report.facts.hazards = Some(judgement.hazard_facts());
        report.evidence.clone_from(&judgement.evidence);
        report.hazards.clone_from(&judgement.hazards);
        report.notes.extend(judgement.settings_problem.clone());
        emit(out, &incomplete(&report))?;
        emit(out, &Event::LeftTheMount)?;
        let mut outcome = self.measure(&profile, target.as_deref(), &mut report)?;
        report.complete = outcome.complete;
        if !outcome.interrupted {
            if self.has_extra() {
                // What is known without it: the answer when the mount hangs meanwhile, or a signal comes.
                let advice = advise(&report.facts, &judgement, &rules, &observations);
                report.recommendation = Some(advice.recommendation);
                report.tune = advice.tune;
                emit(out, &incomplete(&report))?;
                // This process may be given up in there, and then nobody removes the copy.
                outcome.run_dir = None;
                outcome.memory_dir = None;
            }
            outcome.own_copy = self.extra(&system, &profile, &location, target.as_deref(), &mut report, out)?;
            let advice = advise(&report.facts, &judgement, &rules, &observations);
            report.recommendation = Some(advice.recommendation);
            report.tune = advice.tune;
        }
        report.cost.wall_s = self.elapsed_s();
        Ok((report, outcome))
    }

    fn has_extra(&self) -> bool {
        self.args.writes || !self.args.run.is_empty()
    }

    /// Measures what `--writes` and `--run` ask for.
    fn extra(
        &self,
        system: &System,
        profile: &RepoProfile,
        location: &Location,
        target: Option<&Path>,
        report: &mut Report,
        out: &mut dyn Write,
    ) -> Result<Option<RunDir>, Error> {
        let cache_home = etcetera::choose_base_strategy().ok().map(|base| base.cache_dir());
        let bars = Told::new();
        let extra = Extra {
            args: self.args,
            system,
            profile,
            location,
            target,
            cache_home: cache_home.as_deref(),
            progress: &bars,
            interrupt: &self.interrupt,
        };
        extra.measure(report, out)
    }

    /// Reads what the rules need, and counts it.
    fn gather(&self, rules: &RuleSet, profile: &RepoProfile, report: &mut Report) -> Observations {
        let material = live::material(profile, &report.facts, rules);
        let source = LiveSource::new(profile, &self.access);
        let observations = gather(rules, material, &source, Budget::default(), Purpose { local: true });
        let count = self.access.count();
        report.cost.scan_calls_in_place = count.calls;
        report.cost.scan_reads_in_place = count.reads;
        report.cost.scan_bytes_in_place = count.bytes;
        observations
    }

    /// Chooses where the copy goes and returns an existing directory there; `None` where the place itself is as good as
    /// any other, unless the user named one.
    ///
    /// In a container there may be no place at all; what to do then does not depend on figures, so the run goes on
    /// without a copy. Everywhere else, and for a place that the user named, the refusal ends the run.
    pub(super) fn target(
        &self,
        system: &System,
        location: &Location,
        report: &mut Report,
    ) -> Result<Option<PathBuf>, Error> {
        if location.is_target && self.args.target.is_none() {
            return Ok(None);
        }
        let request = TargetRequest::new(self.args.target.as_deref(), &self.args.target_fs, Some(location));
        match choose_target(system, &request) {
            Ok(target) => {
                let directory = nearest_existing(Path::new(&target.site.real_path));
                report.facts.target = Some(target);
                Ok(Some(directory))
            }
            Err(error) if self.args.target.is_none() && report.facts.platform == Platform::Container => {
                report.notes.push(format!("no copy was made: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the time since the check began, in seconds.
    pub(super) fn elapsed_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Returns a report with what scanning alone tells; without a repository where there is none yet.
    pub(super) fn first_report(&self, system: &System, profile: Option<&RepoProfile>, location: &Location) -> Report {
        let count = self.access.count();
        let facts = Facts {
            platform: system.platform.platform,
            site: location.site.clone(),
            target: None,
            repo: profile.map(|profile| profile.facts.clone()),
            git: git::find(),
            toolchain: None,
            measure: BTreeMap::new(),
            hazards: None,
        };
        let scanned = profile.map_or(&[][..], |profile| &profile.notes);
        Report {
            schema_version: SCHEMA_VERSION,
            rehome_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: false,
            facts,
            measurements: Vec::new(),
            evidence: Vec::new(),
            hazards: Vec::new(),
            recommendation: None,
            tune: Vec::new(),
            notes: scanned.iter().chain(&location.notes).cloned().collect(),
            cost: Cost {
                wall_s: self.elapsed_s(),
                scan_calls_in_place: count.calls,
                scan_reads_in_place: count.reads,
                scan_bytes_in_place: count.bytes,
                bytes_written_in_place: 0,
            },
        }
    }

    /// Measures and puts what came of it into the report; without a target in place alone.
    fn measure(
        &self,
        profile: &RepoProfile,
        target: Option<&Path>,
        report: &mut Report,
    ) -> Result<measure::Outcome, Error> {
        if self.args.no_measure {
            return Ok(measure::Outcome { complete: true, ..measure::Outcome::default() });
        }
        let cache_home = etcetera::choose_base_strategy().ok().map(|base| base.cache_dir());
        let elsewhere = std::env::temp_dir();
        let request = Request {
            profile,
            target: target.unwrap_or(&elsewhere),
            cache_home: cache_home.as_deref(),
            budget: self.args.budget.saturating_sub(self.started.elapsed()),
            rounds: self.args.rounds,
            workloads: if self.args.quick { &[Workload::GitStatus] } else { WORKLOADS },
            git: report.facts.git.as_ref(),
            probe_program: Some(Path::new("/proc/self/exe")),
        };
        let bars = Told::new();
        let mut outcome = if target.is_some() {
            measure::measure(&request, &bars, &self.interrupt)?
        } else {
            measure::measure_in_place_only(&request, &bars, &self.interrupt)?
        };
        let measured = std::mem::take(&mut outcome.measurements);
        report.measurements = measured.into_iter().map(measure::Measurement::finite).collect();
        let files = profile.facts.tracked_files.unwrap_or(0);
        report.facts.measure = report.measurements.iter().map(|m| (m.workload.clone(), m.facts(files))).collect();
        if let Some(repo) = &mut report.facts.repo {
            repo.stat_dirty = outcome.stat_dirty;
            repo.racy = outcome.racy.or(repo.racy);
        }
        report.notes.append(&mut outcome.notes);
        Ok(outcome)
    }
}

/// Returns what is known so far as an event.
pub(super) fn incomplete(report: &Report) -> Event {
    Event::Partial { report: Box::new(Report { complete: false, ..report.clone() }) }
}

pub(super) fn toolchain_of(side: Primary) -> Toolchain {
    match side {
        Primary::Linux => Toolchain::Linux,
        Primary::Windows => Toolchain::Windows,
        Primary::Either => Toolchain::Either,
    }
}

/// Returns the path itself, or the nearest directory above it that exists.
pub(super) fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/")).to_path_buf()
}
