//! Benchmarks for a terminal: a table a suite, bars, and every remark below the figures that it is about.

use std::io::{self, Write};

use super::words;
use crate::bench::compare::{Comparison, Group, Row, compare};
use crate::bench::result::{BenchReport, SuiteResult};
use crate::format;
use crate::report::page::{Page, Paint, Style};

/// Columns of a bar.
const BAR_COLUMNS: usize = 12;
/// Where the text beside a label begins.
const LABEL_COLUMN: usize = 12;
/// Columns of a phase's name.
const PHASE_COLUMNS: usize = 10;
/// Columns of a time.
const TIME_COLUMNS: usize = 9;
/// Columns of a ratio with its interval.
const RATIO_COLUMNS: usize = 24;

/// Writes one run: the places, the figures of each suite, what does not count, and what became of the scratch
/// directories.
///
/// # Errors
///
/// Those of `out`.
pub fn write_run(report: &BenchReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page::new(out, style);
    let comparison = compare(&[(None, report.clone())]);
    let state = if report.complete { "" } else { "   (incomplete)" };
    page.line(&[
        (Paint::Strong, "rehome bench"),
        (Paint::Plain, &format!(" {}   {}", report.rehome_version, words::machine(&report.machine))),
        (Paint::Caution, state),
    ])?;
    page.blank()?;
    places(&mut page, &comparison)?;
    for suite in &report.suites {
        for group in comparison.groups.iter().filter(|group| group.suite == suite.suite) {
            write_group(&mut page, group)?;
        }
        remarks(&mut page, suite)?;
    }
    relays(&mut page, &comparison)?;
    if !report.notes.is_empty() {
        page.blank()?;
        for note in &report.notes {
            page.beside((Paint::Caution, "  Note"), LABEL_COLUMN, (Paint::Plain, note))?;
        }
    }
    footer(&mut page, report)
}

/// Writes several runs side by side, with ratios to the fastest of all.
///
/// # Errors
///
/// Those of `out`.
pub fn write_comparison(
    comparison: &Comparison,
    remarks: &[String],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Page::new(out, style);
    page.line(&[(Paint::Strong, "rehome bench --compare")])?;
    page.blank()?;
    places(&mut page, comparison)?;
    for group in &comparison.groups {
        write_group(&mut page, group)?;
    }
    if comparison.groups.is_empty() {
        page.blank()?;
        page.paragraph(2, Paint::Caution, "None of these files holds a round that counts.")?;
    }
    relays(&mut page, comparison)?;
    if !remarks.is_empty() {
        page.blank()?;
        for remark in remarks {
            page.beside((Paint::Caution, "  Note"), LABEL_COLUMN, (Paint::Plain, remark))?;
        }
    }
    Ok(())
}

fn places(page: &mut Page<'_>, comparison: &Comparison) -> io::Result<()> {
    let show_machine = words::has_several_machines(comparison);
    for (position, column) in comparison.columns.iter().enumerate() {
        let label = format!("  {}", words::letter(position));
        page.beside((Paint::Strong, &label), 6, (Paint::Plain, &words::title(column)))?;
        page.beside((Paint::Plain, ""), 6, (Paint::Faint, &words::place(column)))?;
        if show_machine {
            page.beside((Paint::Plain, ""), 6, (Paint::Faint, &words::machine(&column.machine)))?;
        }
    }
    Ok(())
}

fn write_group(page: &mut Page<'_>, group: &Group) -> io::Result<()> {
    page.blank()?;
    let about = format!("{}; {}", words::work(group.suite, &group.setup), words::rounds(group));
    page.beside((Paint::Strong, &format!("  {}", group.suite.name())), LABEL_COLUMN, (Paint::Plain, &about))?;
    for row in &group.rows {
        write_row(page, group, row)?;
    }
    Ok(())
}

fn write_row(page: &mut Page<'_>, group: &Group, row: &Row) -> io::Result<()> {
    let slowest = row.figures.iter().map(|figure| figure.median).fold(0.0, f64::max);
    let name = words::phase(&row.phase);
    for (position, figure) in row.figures.iter().enumerate() {
        let shown = if position == 0 { name.as_str() } else { "" };
        let label = format!("    {shown:<PHASE_COLUMNS$} ");
        let letter = words::letter(figure.place);
        let bar = format!(" {:<BAR_COLUMNS$}", bar(figure.median, slowest));
        let ratio = if row.figures.len() > 1 { words::ratio(figure) } else { String::new() };
        let rate = words::rate(group.suite, row, figure);
        let rest = format!("{ratio:<RATIO_COLUMNS$} {rate}");
        let time = format!(" {:>TIME_COLUMNS$}  ", format::seconds(figure.median));
        let is_fastest = row.figures.len() > 1 && words::is_fastest(figure);
        page.line(&[
            (if row.headline { Paint::Strong } else { Paint::Plain }, &label),
            (Paint::Strong, &letter),
            (Paint::Faint, &bar),
            (if is_fastest { Paint::Good } else { Paint::Plain }, &time),
            (Paint::Plain, rest.trim_end()),
        ])?;
    }
    Ok(())
}

/// Returns a bar whose length is proportional to the time; the shortest is one block, so that nothing looks absent.
fn bar(value: f64, slowest: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the share lies between 0 and 1"
    )]
    let blocks = if slowest > 0.0 { (value / slowest * BAR_COLUMNS as f64).round() as usize } else { 0 };
    "█".repeat(blocks.clamp(1, BAR_COLUMNS))
}

fn remarks(page: &mut Page<'_>, suite: &SuiteResult) -> io::Result<()> {
    if suite.figures.is_empty() {
        page.blank()?;
        let about = words::work(suite.suite, &suite.setup);
        page.beside((Paint::Strong, &format!("  {}", suite.suite.name())), LABEL_COLUMN, (Paint::Plain, &about))?;
    }
    for shrunk in &suite.shrunk {
        page.beside((Paint::Caution, "    smaller"), LABEL_COLUMN + 2, (Paint::Plain, shrunk))?;
    }
    for lost in suite.rounds.iter().filter_map(|round| words::lost_round(round, 0)) {
        page.beside((Paint::Bad, "    lost"), LABEL_COLUMN + 2, (Paint::Plain, &lost))?;
    }
    for failure in &suite.failures {
        page.beside((Paint::Bad, "    failed"), LABEL_COLUMN + 2, (Paint::Plain, &words::failure(failure, 0)))?;
    }
    for note in suite.notes.iter().filter(|_| !suite.figures.is_empty()) {
        page.paragraph(4, Paint::Faint, note)?;
    }
    Ok(())
}

fn relays(page: &mut Page<'_>, comparison: &Comparison) -> io::Result<()> {
    let sentences: Vec<String> = comparison.relays.iter().filter_map(words::relay).collect();
    if sentences.is_empty() {
        return Ok(());
    }
    page.blank()?;
    for sentence in sentences {
        page.beside((Paint::Strong, "  Relay"), LABEL_COLUMN, (Paint::Plain, &sentence))?;
    }
    Ok(())
}

fn footer(page: &mut Page<'_>, report: &BenchReport) -> io::Result<()> {
    page.blank()?;
    for (path, is_gone) in words::scratches(report) {
        let (paint, state) = if is_gone {
            (Paint::Plain, "removed, and looked for again: nothing is there")
        } else {
            (Paint::Bad, "is still there")
        };
        page.beside((Paint::Strong, "  Scratch"), LABEL_COLUMN, (Paint::Plain, &path))?;
        page.beside((Paint::Plain, ""), LABEL_COLUMN, (paint, state))?;
    }
    let cost =
        format!("{} in all, {} written", format::seconds(report.cost.wall_s), format::bytes(report.cost.bytes_written));
    page.beside((Paint::Strong, "  Took"), LABEL_COLUMN, (Paint::Plain, &cost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_proportional_and_never_absent() {
        assert_eq!(bar(1.0, 1.0).chars().count(), BAR_COLUMNS);
        assert_eq!(bar(0.5, 1.0).chars().count(), BAR_COLUMNS / 2);
        assert_eq!(bar(0.000_1, 1.0).chars().count(), 1);
        assert_eq!(bar(0.0, 0.0).chars().count(), 1);
    }
}
