//! The user's own command, timed in place and in a copy.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::verify::Sha;
use crate::error::{Error, printable_text};
use crate::measure::process::{self, End, Run};
use crate::measure::{Measurement, Method, Sample, stats};
use crate::progress::Progress;
use crate::signals::Interrupt;

/// The shell that runs the command; every system has it.
const SHELL: &str = "/bin/sh";
/// Starts of the shell alone from which its time is taken.
const SHELL_STARTS: u32 = 11;
/// Rounds where nothing else is asked for: enough for an interval, and bearable for a build.
const MIN_ROUNDS: u32 = 3;
/// Rounds of a command that is quick.
const MAX_ROUNDS: u32 = 6;
/// A command that takes longer than this, in seconds, gets the fewer rounds.
const QUICK_S: f64 = 2.0;
/// A command that does not end within this time is given up.
const LIMIT: Duration = Duration::from_secs(1_800);
/// What is left of a command that takes no longer than the shell, in seconds: nothing would have no ratio.
const SHORTEST_S: f64 = 1e-6;
/// A command that takes less than this many starts of the shell is mostly the shell.
const SHELL_SHARE: f64 = 1.0;

/// What to time.
#[derive(Debug, Clone, Copy)]
pub struct OwnWork<'a> {
    /// The command line, for `/bin/sh -c`.
    pub command: &'a str,
    /// Command line that is run before each round, without being timed.
    pub prepare: Option<&'a str>,
    /// Whether both sides must print the same on standard output.
    pub same_output: bool,
    /// Rounds that count; `None` for 3 to 6, by how long it takes.
    pub rounds: Option<u32>,
    /// Name of the workload in the report.
    pub name: &'a str,
}

/// What one run did.
#[derive(Debug, PartialEq)]
struct Seen {
    status: Option<i32>,
    output: String,
}

/// Times a command in place and, where there is one, in a copy: a warm-up, then rounds in alternating order.
///
/// The time of the shell's own start at each place is subtracted. When exit status or (if asked for) output differ, there
/// is no speedup, and the note says why.
///
/// # Errors
///
/// [`Error::Interrupted`] on a signal; [`Error::Refused`] when the preparing command fails or a run does not end.
pub fn time_own_work(
    work: &OwnWork<'_>,
    in_place: &Path,
    in_copy: Option<&Path>,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> Result<Measurement, Error> {
    let places: Vec<&Path> = [Some(in_place), in_copy].into_iter().flatten().collect();
    let shells = places.iter().map(|place| shell_start_s(place, interrupt)).collect::<Result<Vec<_>, _>>()?;
    let mut runs: Vec<Vec<f64>> = vec![Vec::new(); places.len()];
    let mut seen: Vec<Vec<Seen>> = (0..places.len()).map(|_| Vec::new()).collect();
    let phase = format!("running `{}`", printable_text(work.command));
    let mut rounds = work.rounds.unwrap_or(MIN_ROUNDS);
    let mut round = 0;
    progress.begin(&phase, None);
    while round <= rounds {
        for step in 0..places.len() {
            let place = if round % 2 == 1 { places.len() - 1 - step } else { step };
            let run = once(work, places[place], interrupt)?;
            seen[place].push(Seen { status: run.status.code(), output: normal_output(&run.stdout, places[place]) });
            if round > 0 {
                runs[place].push((run.elapsed.as_secs_f64() - shells[place]).max(SHORTEST_S));
            } else if run.elapsed.as_secs_f64() < QUICK_S && work.rounds.is_none() {
                // The last place decides: the copy, which is the quicker one where that matters.
                rounds = MAX_ROUNDS;
            } else if work.rounds.is_none() {
                rounds = MIN_ROUNDS;
            }
        }
        round += 1;
    }
    progress.end();
    Ok(measurement(work, &runs, &seen, &shells))
}

fn measurement(work: &OwnWork<'_>, runs: &[Vec<f64>], seen: &[Vec<Seen>], shells: &[f64]) -> Measurement {
    let difference = differences(work, seen);
    let samples: Vec<Sample> = runs.iter().map(|runs| sample(runs)).collect();
    let estimates = stats::estimate(&runs[0]).zip(runs.get(1).and_then(|runs| stats::estimate(runs)));
    let is_same = difference.is_none();
    let is_mostly_shell = samples.iter().zip(shells).any(|(sample, shell)| sample.median < shell * SHELL_SHARE);
    let speedup =
        estimates.filter(|_| is_same && !is_mostly_shell).and_then(|(place, copy)| stats::speedup(&place, &copy));
    let mut notes = vec![format!("`{}`", printable_text(work.command))];
    notes.extend(difference);
    if let Some(status) = seen[0].first().map(|seen| seen.status).filter(|status| *status != Some(0)) {
        notes.push(format!("it ended with {}", status_in_words(status)));
    }
    let shell_in_place = shells[0];
    notes.push(format!("the shell's own start ({:.1} ms in place) is subtracted", shell_in_place * 1e3));
    if is_mostly_shell {
        notes.push("it takes hardly longer than the shell itself, so there is no ratio".to_owned());
    }
    let mut samples = samples.into_iter();
    let in_place = samples.next().unwrap_or_else(|| sample(&[]));
    let in_copy = samples.next();
    Measurement {
        workload: work.name.to_owned(),
        unit: "s".to_owned(),
        saved_s: in_copy.as_ref().filter(|_| is_same).map(|copy| in_place.median - copy.median),
        same_work: is_same && in_copy.is_some(),
        in_place,
        in_copy,
        speedup,
        now: None,
        operations: None,
        failed: None,
        note: Some(notes.join("; ")),
    }
}

/// Returns what differs between any two runs; `None` when nothing that counts does.
fn differences(work: &OwnWork<'_>, seen: &[Vec<Seen>]) -> Option<String> {
    let first = seen.first()?.first()?;
    for (place, seen) in seen.iter().enumerate() {
        let name = if place == 0 { "in place" } else { "in the copy" };
        for one in seen {
            if one.status != first.status {
                return Some(format!(
                    "no ratio, because the work differs: {} at first, and {} {name}",
                    status_in_words(first.status),
                    status_in_words(one.status)
                ));
            }
            if work.same_output && one.output != first.output {
                return Some(format!(
                    "no ratio, because the work differs: another output {name} than at first in place"
                ));
            }
        }
    }
    None
}

fn status_in_words(status: Option<i32>) -> String {
    status.map_or_else(|| "death by a signal".to_owned(), |status| format!("exit status {status}"))
}

fn sample(runs: &[f64]) -> Sample {
    let estimate = stats::estimate(runs);
    let interval = estimate.and_then(|estimate| estimate.interval);
    Sample {
        runs: runs.to_vec(),
        median: estimate.map_or(0.0, |estimate| estimate.mid),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        method: Method::Run,
        latency: None,
        sampled_s: None,
    }
}

/// Runs the preparing command, if any, then the command itself.
fn once(work: &OwnWork<'_>, place: &Path, interrupt: &Interrupt) -> Result<Run, Error> {
    if let Some(prepare) = work.prepare {
        let run = shell(prepare, place, interrupt)?;
        if !run.status.success() {
            return Err(Error::refused(
                format!(
                    "the preparing command `{}` failed in `{}`: {}",
                    printable_text(prepare),
                    crate::error::printable(place),
                    complaint(run.status, &run.stderr)
                ),
                "try it there by hand; `--prepare` must succeed before each run",
            ));
        }
    }
    shell(work.command, place, interrupt)
}

fn complaint(status: ExitStatus, stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    if last.is_empty() { status.to_string() } else { format!("{status} ({})", printable_text(last.trim())) }
}

fn shell(line: &str, place: &Path, interrupt: &Interrupt) -> Result<Run, Error> {
    let mut command = Command::new(SHELL);
    command.args(["-c", line]).current_dir(place).env("PWD", place);
    match process::run(command, Vec::new(), Instant::now() + LIMIT, interrupt) {
        Ok(End::Done(run)) => Ok(run),
        Ok(End::Interrupted) => Err(Error::Interrupted),
        Ok(End::TimedOut(after)) => Err(Error::refused(
            format!("`{}` did not end within {:.0} s", printable_text(line), after.as_secs_f64()),
            "time a shorter command with `--run`",
        )),
        Err(source) => Err(Error::io("start", SHELL, source)),
    }
}

/// Returns the median time of starting the shell for nothing, in seconds; where it starts counts, too.
fn shell_start_s(place: &Path, interrupt: &Interrupt) -> Result<f64, Error> {
    let times = (0..SHELL_STARTS)
        .map(|_| Ok(shell(":", place, interrupt)?.elapsed.as_secs_f64()))
        .collect::<Result<Vec<_>, Error>>()?;
    Ok(stats::median(&times).unwrap_or(0.0))
}

/// Returns a checksum of the output with the place's own path taken out of it: compilers and tests print it.
fn normal_output(output: &[u8], place: &Path) -> String {
    let path = place.as_os_str().as_encoded_bytes();
    let mut sha = Sha::default();
    let mut rest = output;
    while let Some(at) = find(rest, path) {
        sha.update(&rest[..at]);
        sha.update(b".");
        rest = &rest[at + path.len()..];
    }
    sha.update(rest);
    sha.hex()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return None;
    }
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn work(command: &str, same_output: bool) -> OwnWork<'_> {
        OwnWork { command, prepare: None, same_output, rounds: Some(3), name: "run_1" }
    }

    fn time(work: &OwnWork<'_>) -> (Measurement, tempfile::TempDir, tempfile::TempDir) {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(a.path().join("side"), "a").unwrap();
        std::fs::write(b.path().join("side"), "b").unwrap();
        let measured = time_own_work(work, a.path(), Some(b.path()), &Silent, &Interrupt::default()).unwrap();
        (measured, a, b)
    }

    #[test]
    fn a_command_is_run_in_both_places_and_has_a_ratio() {
        let (measured, a, b) = time(&work("echo x >> log; sleep 0.3", false));
        assert!(measured.same_work && measured.speedup.is_some(), "{measured:?}");
        for dir in [&a, &b] {
            assert_eq!(std::fs::read_to_string(dir.path().join("log")).unwrap(), "x\n".repeat(4));
        }
        assert!(measured.note.unwrap().starts_with("`echo x >> log; sleep 0.3`"));
    }

    #[test]
    fn another_exit_status_takes_the_ratio_away() {
        let (measured, _a, _b) = time(&work("test $(cat side) = a", false));
        assert!(!measured.same_work && measured.speedup.is_none() && measured.saved_s.is_none());
        let note = measured.note.unwrap();
        assert!(note.contains("exit status 0 at first, and exit status 1 in the copy"), "{note}");
    }

    #[test]
    fn another_output_takes_the_ratio_away_only_when_it_must_be_the_same() {
        let (measured, _a, _b) = time(&work("cat side", true));
        assert!(!measured.same_work && measured.note.unwrap().contains("another output in the copy"));
        let (measured, _a, _b) = time(&work("cat side", false));
        assert!(measured.same_work);
    }

    #[test]
    fn a_command_that_takes_no_time_has_no_ratio_and_can_be_told_as_json() {
        let (measured, _a, _b) = time(&work(":", true));
        assert!(measured.same_work && measured.speedup.is_none(), "{measured:?}");
        let json = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Measurement>(&json).unwrap(), measured);
    }

    #[test]
    fn the_path_of_the_place_itself_is_no_difference() {
        let (measured, _a, _b) = time(&work("pwd; echo $PWD/file", true));
        assert!(measured.same_work, "{:?}", measured.note);
    }

    #[test]
    fn the_same_failure_on_both_sides_is_said() {
        let (measured, _a, _b) = time(&work("exit 3", false));
        assert!(measured.same_work && measured.note.unwrap().contains("it ended with exit status 3"));
    }

    #[test]
    fn preparing_is_done_before_each_round_and_must_succeed() {
        let dir = tempfile::tempdir().unwrap();
        let ready = OwnWork { prepare: Some("touch made"), ..work("rm made", false) };
        let measured = time_own_work(&ready, dir.path(), None, &Silent, &Interrupt::default()).unwrap();
        assert!(measured.note.is_some_and(|note| !note.contains("exit status")));
        let broken = OwnWork { prepare: Some("echo nonsense >&2; false"), ..work(":", false) };
        let error = time_own_work(&broken, dir.path(), None, &Silent, &Interrupt::default()).unwrap_err();
        assert!(error.to_string().ends_with("exit status: 1 (nonsense)"), "{error}");
    }
}
