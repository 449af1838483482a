//! What `rehome survey` tells: a table of repositories, the one that gains most first, or a line of JSON for each.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::json::write_escaped;
use super::page::{Page, Paint, Style};
use super::{Report, words};
use crate::advise::Verdict;
use crate::error::printable_text;
use crate::format;
use crate::measure::{Measurement, Method};

/// Where the table begins.
const INDENT: usize = 2;
/// Columns between two columns of the table.
const GAP: u16 = 2;
/// The workload that repositories are ranked by: the one that everybody waits for.
const RANKED_BY: &str = "git_status";

/// One repository of a survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Path of the worktree, as the search found it.
    pub path: String,
    /// What a check within this repository's share of the time found; absent when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Why there is no report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A whole survey.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// The directories that were searched.
    pub dirs: Vec<String>,
    /// One entry a repository, in the order of measuring.
    pub findings: Vec<Finding>,
    /// Repositories that were found and not measured, because the time was over or the run was interrupted.
    pub left_out: u64,
    /// What else a reader must know: directories that could not be read, a search that was cut short.
    pub notes: Vec<String>,
    /// Wall-clock time of the survey in seconds.
    pub wall_s: f64,
}

impl Finding {
    fn git_status(&self) -> Option<&Measurement> {
        self.report.as_ref()?.measurements.iter().find(|measurement| measurement.workload == RANKED_BY)
    }

    /// Returns what moving would save at each `git status`, in seconds; `None` when that is not known.
    ///
    /// Where the one in place did not end in time, it is what was saved until then at the least.
    #[must_use]
    pub fn saved_s(&self) -> Option<f64> {
        let measured = self.git_status()?;
        let bound = || {
            let copy = measured.in_copy.as_ref().filter(|_| self.is_bound())?;
            Some(measured.in_place.median - copy.median)
        };
        measured.saved_s.or_else(bound).filter(|saved_s| saved_s.is_finite())
    }

    fn is_bound(&self) -> bool {
        self.git_status().is_some_and(|measured| measured.in_place.method == Method::AtLeast)
    }

    fn verdict(&self) -> Option<Verdict> {
        Some(self.report.as_ref()?.recommendation.as_ref()?.verdict)
    }
}

/// Writes one repository as one line of JSON.
///
/// # Errors
///
/// Those of `out`.
pub fn write_finding(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    write_escaped(&serde_json::to_string(finding)?, out)?;
    out.flush()
}

/// Writes the ranking as text, what saves most first.
///
/// # Errors
///
/// Those of `out`.
pub fn write_survey(survey: &Survey, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(out, style);
    let number = format::counted(survey.findings.len() as u64, "repository", "repositories");
    page.line(&[
        (Paint::Strong, &format!("{number} below {}", survey.dirs.join(", "))),
        (Paint::Faint, &format!("   measured in {}", format::seconds(survey.wall_s))),
    ])?;
    if !survey.findings.is_empty() {
        page.blank()?;
        write_table(page, survey)?;
    }
    write_sum(page, survey)?;
    if survey.left_out > 0 {
        let left_out = format::counted(survey.left_out, "repository was", "repositories were");
        let text = format!("{left_out} found and not measured: give more time with `--budget`.");
        page.paragraph(INDENT, Paint::Caution, &text)?;
    }
    survey.notes.iter().try_for_each(|note| page.paragraph(INDENT, Paint::Faint, note))
}

/// Returns the findings by what they save, those without a figure last, in the order of their paths.
fn ranked(survey: &Survey) -> Vec<&Finding> {
    let mut findings: Vec<&Finding> = survey.findings.iter().collect();
    let gain = |finding: &Finding| finding.saved_s().unwrap_or(f64::NEG_INFINITY);
    findings.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then_with(|| a.path.cmp(&b.path)));
    findings
}

fn write_table(page: &mut Page<'_>, survey: &Survey) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.add_row(["saves", "here", "there", "speedup", "advice", "repository"]);
    let findings = ranked(survey);
    for finding in &findings {
        table.add_row(row(finding).map(|cell| printable_text(&cell)));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_figure = index < 4;
        column.set_padding((if index == 0 { 0 } else { GAP }, 0));
        column.set_cell_alignment(if is_figure { CellAlignment::Right } else { CellAlignment::Left });
    }
    // The first line is the head; the path stands last, so that it is never cut.
    for (line, finding) in table.lines().zip(std::iter::once(None).chain(findings.iter().map(Some))) {
        let paint = match finding.map(|finding| finding.verdict()) {
            None => Paint::Faint,
            Some(Some(Verdict::Move | Verdict::MoveToWindows)) => Paint::Good,
            Some(Some(Verdict::Inconclusive) | None) => Paint::Caution,
            Some(Some(Verdict::Stay | Verdict::Tune)) => Paint::Plain,
        };
        page.line(&[(Paint::Plain, &" ".repeat(INDENT)), (paint, line.trim_end())])?;
        if let Some(error) = finding.and_then(|finding| finding.error.as_ref()) {
            page.paragraph(INDENT + 4, Paint::Caution, error)?;
        }
    }
    Ok(())
}

fn row(finding: &Finding) -> [String; 6] {
    let measured = finding.git_status();
    let here = measured.map_or_else(|| "unknown".to_owned(), |measured| words::figure(&measured.in_place));
    let there = measured.and_then(|measured| measured.in_copy.as_ref()).map(words::figure).unwrap_or_default();
    let speedup = measured.and_then(|measured| measured.speedup).map(|speedup| format::ratio(speedup.mid));
    let advice = match finding.verdict() {
        Some(Verdict::Move) => "move",
        Some(Verdict::MoveToWindows) => "to Windows",
        Some(Verdict::Stay) => "stay",
        Some(Verdict::Tune) => "tune",
        Some(Verdict::Inconclusive) => "not clear",
        None if finding.error.is_some() => "failed",
        None => "none",
    };
    let bound = if finding.is_bound() { "at least " } else { "" };
    let saved = finding.saved_s().map(|saved_s| format!("{bound}{}", format::seconds(saved_s)));
    [saved.unwrap_or_default(), here, there, speedup.unwrap_or_default(), advice.to_owned(), finding.path.clone()]
}

fn write_sum(page: &mut Page<'_>, survey: &Survey) -> io::Result<()> {
    let is_to_move = |finding: &&Finding| finding.verdict() == Some(Verdict::Move);
    let to_move: Vec<&Finding> = ranked(survey).into_iter().filter(is_to_move).collect();
    page.blank()?;
    let Some(first) = to_move.first() else {
        return page.paragraph(INDENT, Paint::Plain, "None of them has to move to a local Linux filesystem.");
    };
    let saved_s: f64 = to_move.iter().filter_map(|finding| finding.saved_s()).sum();
    let number = format::counted(to_move.len() as u64, "repository", "repositories");
    let text = format!("Moving {number} saves {} of waiting, with one `git status` in each.", format::seconds(saved_s));
    page.paragraph(INDENT, Paint::Plain, &text)?;
    let command = first.report.as_ref().and_then(|report| words::command_line(report.recommendation.as_ref()?));
    match command {
        Some(command) => page.line(&[(Paint::Strong, "  First    "), (Paint::Plain, &command)]),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn finding(path: &str, report: Report) -> Finding {
        Finding { path: path.into(), report: Some(report), error: None }
    }

    fn survey() -> Survey {
        Survey {
            dirs: vec!["/mnt/c/src".into()],
            findings: vec![
                finding("/mnt/c/src/tools", sample::native()),
                finding("/mnt/c/src/shop", sample::moving()),
                Finding { path: "/mnt/c/src/broken".into(), report: None, error: Some("cannot read the index".into()) },
                finding("/mnt/c/src/monorepo", sample::predicting()),
            ],
            left_out: 2,
            notes: vec!["3 directories could not be read".into()],
            wall_s: 41.2,
        }
    }

    fn text(survey: &Survey) -> String {
        let mut out = Vec::new();
        write_survey(survey, &Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_saves_most_comes_first_and_what_is_not_known_last() {
        let text = text(&survey());
        let at = |name: &str| text.find(&format!("/mnt/c/src/{name}\n")).unwrap_or_else(|| panic!("no {name}: {text}"));
        assert!(at("monorepo") < at("shop") && at("shop") < at("broken") && at("broken") < at("tools"), "{text}");
    }

    #[test]
    fn what_did_not_end_in_time_is_ranked_by_what_it_saves_at_the_least() {
        let mut bound = sample::moving();
        let git_status = &mut bound.measurements[1];
        git_status.in_place.method = Method::AtLeast;
        git_status.in_place.median = 9.0;
        (git_status.saved_s, git_status.speedup) = (None, None);
        let mut survey = survey();
        survey.findings.push(finding("/mnt/c/src/bound", bound));
        let text = text(&survey);
        let at = |name: &str| text.find(&format!("/mnt/c/src/{name}\n")).unwrap();
        assert!(at("monorepo") < at("bound") && at("bound") < at("shop"), "{text}");
        assert!(text.contains("at least 9.0 s"), "{text}");
    }

    #[test]
    fn the_sum_counts_only_what_should_move() {
        assert!(text(&survey()).contains("Moving 2 repositories saves 89 s"), "{}", text(&survey()));
    }

    #[test]
    fn what_failed_and_what_was_left_out_is_said() {
        let text = text(&survey());
        for part in ["cannot read the index", "2 repositories were found and not measured", "3 directories"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn an_empty_survey_is_no_failure() {
        let text = text(&Survey { dirs: vec!["/x".into()], ..Survey::default() });
        assert!(text.starts_with("0 repositories below /x"), "{text}");
    }

    #[test]
    fn a_finding_is_one_line_of_json_whatever_it_holds() {
        let mut out = Vec::new();
        write_finding(&finding("/mnt/c/a\nb", sample::hostile()), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(serde_json::from_str::<Finding>(&text).unwrap().path, "/mnt/c/a\nb");
    }
}
