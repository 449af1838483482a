//! The report as one line for prompts and logs, or as nothing.

use std::io::{self, Write};

use super::{Report, words};
use crate::advise::Verdict;
use crate::error::printable_text;
use crate::measure::Measurement;

/// Writes one line when there is something to do or to know, and nothing when the repository is well where it is.
///
/// # Errors
///
/// Those of `out`.
pub fn write_oneline(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    match one_line(report) {
        Some(line) => writeln!(out, "{}", printable_text(&line)),
        None => Ok(()),
    }
}

/// Returns the line without its end; `None` when there is nothing to say.
#[must_use]
pub fn one_line(report: &Report) -> Option<String> {
    let recommendation = report.recommendation.as_ref()?;
    let advice = match recommendation.verdict {
        Verdict::Stay => return None,
        Verdict::Move | Verdict::MoveToWindows => headline_sentence(report),
        Verdict::Tune => format!("stay, and {}", report.tune.first().map_or("change settings", |tune| tune.say.trim())),
        Verdict::Inconclusive => format!("no clear answer: {}", recommendation.say.trim()),
    };
    let mut line = format!("rehome: {advice}");
    let main = report.measurements.iter().find(|measurement| measurement.workload == "git_status");
    if let Some(figures) = main.and_then(figures).filter(|_| recommendation.verdict != Verdict::Inconclusive) {
        line.push_str("; ");
        line.push_str(&figures);
    }
    let command = words::command_line(recommendation)
        .or_else(|| report.tune.first().map(|tune| tune.command.clone()).filter(|command| !command.is_empty()));
    if let Some(command) = command {
        line.push_str("; run: ");
        line.push_str(&command);
    }
    Some(line)
}

fn headline_sentence(report: &Report) -> String {
    let place = match report.recommendation.as_ref().map(|advice| advice.verdict) {
        Some(Verdict::MoveToWindows) => "the Windows side",
        _ => words::target_name(report),
    };
    if report.facts.repo.is_none() {
        return format!("clone to {place}, not here");
    }
    match words::blockers(&report.hazards) {
        0 => format!("move to {place}"),
        1 => format!("move to {place}, after 1 blocker (see `rehome check`)"),
        number => format!("move to {place}, after {number} blockers (see `rehome check`)"),
    }
}

fn figures(measurement: &Measurement) -> Option<String> {
    let copy = measurement.in_copy.as_ref()?;
    measurement.speedup?;
    Some(format!(
        "{} {} here, {} there ({})",
        words::workload(measurement),
        words::figure(&measurement.in_place),
        words::figure(copy),
        words::speedup(measurement)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn line(report: &Report) -> String {
        let mut out = Vec::new();
        write_oneline(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_repository_that_is_well_where_it_is_gets_silence() {
        assert_eq!(line(&sample::native()), "");
    }

    #[test]
    fn a_move_is_told_with_its_figures_and_its_command() {
        assert_eq!(
            line(&sample::moving()),
            "rehome: move to ext4; git status 951 ms here, 5.3 ms there (180x); run: rehome move /mnt/c/src/shop \
             /home/me/src/shop\n"
        );
    }

    #[test]
    fn whatever_a_repository_holds_it_is_one_line() {
        for (name, report) in sample::all() {
            assert!(line(&report).matches('\n').count() <= 1, "{name}");
        }
    }

    #[test]
    fn an_interrupted_run_says_nothing() {
        let mut report = sample::moving();
        report.recommendation = None;
        assert_eq!(line(&report), "");
    }
}
