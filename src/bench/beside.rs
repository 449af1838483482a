//! The suite `small`, short, as further workloads of a check: in a scratch directory beside the repository and one on
//! the target.

use std::path::Path;
use std::time::Duration;

use super::compare::compare;
use super::record::Save;
use super::result::{BenchReport, Figure, Place, PlaceFigure, Role, Suite};
use super::run::{Environment, Options, run};
use super::small::SmallPlan;
use crate::error::Error;
use crate::facts::WorkloadFacts;
use crate::measure::{Measurement, Method, Sample, stats};

/// Files of a round: a fifth of the suite's own number, so that a round on a slow mount takes a few seconds.
const FILES: u64 = 200;
/// Size of each.
const SIZE_BYTES: u64 = 4_096;
/// Directories that they are in.
const DIRS: u64 = 10;
/// Length of a stream that shows what a relay costs: a thousand writes of 4 KiB.
const STREAM_BYTES: u64 = 4 << 20;
/// Rounds that count.
const ROUNDS: u32 = 5;

/// What came of it.
#[derive(Debug)]
pub struct Beside {
    /// `small_files` (the whole round), then its phases (`small_create`, `small_read`, ...).
    pub measurements: Vec<Measurement>,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
    /// How many times longer a stream takes in place in writes of 4 KiB than in writes of 1 MiB, as `speedup`, with the
    /// time of the former; absent when that was not asked for or could not be measured.
    pub relay: Option<WorkloadFacts>,
    /// Bytes written beside the repository.
    pub bytes_in_place: u64,
    /// Whether everything was measured.
    pub complete: bool,
}

/// Creates, reads, stats and deletes small files in a scratch directory in `beside`, and in one in `target`.
///
/// Without a target only `beside` is measured. `relay` adds what a relay of small writes costs there.
///
/// # Errors
///
/// [`Error::Interrupted`] on a signal; otherwise when no scratch directory can be made.
pub fn measure_beside(
    beside: &Path,
    target: Option<&Path>,
    relay: bool,
    budget: Duration,
    env: &Environment<'_>,
    save: Save<'_>,
) -> Result<Beside, Error> {
    let place = |path: &Path| Place {
        path: path.to_string_lossy().into_owned(),
        role: Role::Scratch,
        site: None,
        scratch: None,
    };
    let places = [Some(beside), target].into_iter().flatten().map(place).collect();
    let options = Options {
        suites: if relay { vec![Suite::Small, Suite::Stream] } else { vec![Suite::Small] },
        small: SmallPlan { files: FILES, size_bytes: SIZE_BYTES, dirs: DIRS, fsync: false },
        rounds: Some(ROUNDS),
        bytes: Some(STREAM_BYTES),
        trees: Vec::new(),
        budget,
    };
    let finished = run(&options, places, env, save)?;
    if finished.is_interrupted {
        return Err(Error::Interrupted);
    }
    Ok(summarise(&finished.report))
}

fn summarise(report: &BenchReport) -> Beside {
    let mut notes = Vec::new();
    for scratch in report.places.iter().filter_map(|place| place.scratch.as_ref()) {
        let end = if scratch.gone { "it is gone" } else { "it is still there" };
        notes.push(format!(
            "small files were written in the scratch directory `{}`; {end}",
            crate::error::printable(&scratch.path)
        ));
    }
    let mut measurements = Vec::new();
    let (small, stream): (Vec<_>, Vec<_>) = report.suites.iter().partition(|suite| suite.suite == Suite::Small);
    for suite in small {
        notes.extend(suite.shrunk.iter().map(|said| format!("small files: {said}")));
        notes.extend(suite.failures.iter().map(|failure| format!("small files: {}", failure.message)));
        let lost = suite.rounds.iter().filter_map(|round| round.why_not.as_ref().map(|why| (round.round, why)));
        notes.extend(lost.map(|(round, why)| format!("small files: round {round} does not count: {why}")));
        measurements.extend(suite.figures.iter().filter_map(measurement));
    }
    notes.extend(stream.iter().flat_map(|suite| &suite.failures).map(|failure| format!("relay: {}", failure.message)));
    let in_place = report.suites.iter().flat_map(|suite| &suite.rounds).filter(|round| round.place == 0);
    let bytes_in_place = in_place.filter_map(|round| round.proof.bytes_read).sum();
    let complete = report.suites.iter().all(|suite| suite.suite != Suite::Small || suite.complete);
    Beside { measurements, notes, relay: relay_facts(report), bytes_in_place, complete }
}

fn relay_facts(report: &BenchReport) -> Option<WorkloadFacts> {
    let comparison = compare(&[(None, report.clone())]);
    let cost = comparison.relays.iter().find(|cost| cost.column == 0)?;
    let row = comparison.groups.iter().flat_map(|group| &group.rows).find(|row| row.phase == super::stream::RELAY)?;
    Some(WorkloadFacts {
        in_place_s: row.figures.iter().find(|figure| figure.place == 0).map(|figure| figure.median),
        at_least_s: None,
        in_copy_s: None,
        speedup: Some(cost.factor),
        speedup_low: cost.low,
        speedup_high: cost.high,
        saved_s: None,
        complete: true,
    })
}

/// Returns a phase as a workload of the check; `None` when it was not measured in place.
fn measurement(figure: &Figure) -> Option<Measurement> {
    let sample = |place: usize| figure.places.iter().find(|it| it.place == place).map(sample);
    let (in_place, in_copy) = (sample(0)?, sample(1));
    let estimates = in_copy.as_ref().and_then(|copy| stats::estimate(&in_place.runs).zip(stats::estimate(&copy.runs)));
    let speedup = estimates.and_then(|(place, copy)| stats::speedup(&place, &copy));
    let saved_s = in_copy.as_ref().map(|copy| in_place.median - copy.median);
    let name = if figure.phase == "total" { "small_files".to_owned() } else { format!("small_{}", figure.phase) };
    Some(Measurement {
        workload: name,
        unit: "s".to_owned(),
        operations: figure.operations,
        // Rounds whose checksums or sizes differ do not count, so what is here was proven.
        same_work: in_copy.is_some(),
        in_place,
        in_copy,
        speedup,
        now: None,
        failed: None,
        saved_s,
        note: None,
    })
}

fn sample(figure: &PlaceFigure) -> Sample {
    Sample {
        runs: figure.runs.clone(),
        median: figure.median,
        low: figure.low,
        high: figure.high,
        method: Method::Run,
        latency: None,
        sampled_s: None,
    }
}
