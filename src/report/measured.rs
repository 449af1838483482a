//! The table of figures and the bars below it.

use std::io;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::page::{Page, Paint, columns};
use super::{Report, words};
use crate::error::printable_text;
use crate::format;
use crate::measure::Measurement;

/// Columns between two columns of the table.
const GAP: u16 = 2;
/// Where every block of the report begins.
const INDENT: usize = 2;
/// Width of a decade of the bars; four decades and the labels fit into 80 columns.
const DECADE_COLUMNS: usize = 12;

/// Writes the table, the bars, and what must be known about single figures.
pub(super) fn write_measurements(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    if report.measurements.is_empty() {
        page.paragraph(INDENT, Paint::Plain, "Nothing was measured, so nothing below rests on figures.")?;
    } else {
        write_table(page, report)?;
        write_bars(page, &report.measurements)?;
    }
    let remarks: Vec<String> = report.measurements.iter().flat_map(words::remarks).collect();
    if !(remarks.is_empty() && report.notes.is_empty()) {
        page.blank()?;
    }
    for remark in remarks {
        page.paragraph(INDENT, Paint::Plain, &remark)?;
    }
    for note in &report.notes {
        page.paragraph(INDENT, Paint::Faint, note)?;
    }
    Ok(())
}

fn write_table(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    // What is said elsewhere too goes first when the terminal is narrow: the verdict's sentence names what is saved.
    // Without a copy there is nothing to compare, without a ratio neither an interval nor anything that is saved.
    let full = if report.measurements.iter().any(|m| m.speedup.is_some()) {
        5
    } else if report.facts.target.is_some() || report.measurements.iter().any(|m| m.in_copy.is_some()) {
        3
    } else {
        1
    };
    let table = [full, 4, 3]
        .into_iter()
        .filter(|&shown| shown <= full)
        .map(|shown| table(report, shown))
        .find(|lines| lines.iter().all(|line| INDENT + columns(line) <= page.style().width));
    let lines = table.unwrap_or_else(|| self::table(report, full.min(3)));
    for (number, line) in lines.iter().enumerate() {
        let paint = if number == 0 { Paint::Faint } else { Paint::Plain };
        page.line(&[(Paint::Plain, &" ".repeat(INDENT)), (paint, line)])?;
    }
    Ok(())
}

/// Lays out the table with the first `shown` columns besides the label.
fn table(report: &Report, shown: usize) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let head = ["in place", &words::copy_side(report), "speedup", "95 % interval", "saves"].map(printable_text);
    table.add_row(std::iter::once(String::new()).chain(head.into_iter().take(shown)));
    for measurement in &report.measurements {
        let cells = row(measurement).map(|cell| printable_text(&cell));
        table.add_row(
            std::iter::once(printable_text(&words::workload(measurement))).chain(cells.into_iter().take(shown)),
        );
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let (alignment, left) = if index == 0 { (CellAlignment::Left, 0) } else { (CellAlignment::Right, GAP) };
        column.set_padding((left, 0));
        column.set_cell_alignment(alignment);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn row(measurement: &Measurement) -> [String; 5] {
    let copy = measurement.in_copy.as_ref().map_or_else(|| words::NOT_MEASURED.to_owned(), words::figure);
    let interval =
        measurement.speedup.map(|speedup| format::ratio_interval(speedup.low, speedup.high)).unwrap_or_default();
    let saved = measurement.saved_s.map(format::seconds).unwrap_or_default();
    [words::figure(&measurement.in_place), copy, words::speedup(measurement), interval, saved]
}

/// Draws the ratios on one log axis: solid to the lower end of the interval, shaded to its upper end.
fn write_bars(page: &mut Page<'_>, measurements: &[Measurement]) -> io::Result<()> {
    let drawn: Vec<_> = measurements.iter().filter_map(|m| Some((words::workload(m), m.speedup?))).collect();
    let drawn: Vec<_> =
        drawn.into_iter().filter(|(_, speedup)| speedup.low > 0.0 && speedup.high.is_finite()).collect();
    if drawn.is_empty() {
        return Ok(());
    }
    let label_columns = drawn.iter().map(|(name, _)| columns(name)).max().unwrap_or(0) + INDENT + 2;
    let lowest = drawn.iter().map(|(_, speedup)| speedup.low).fold(1.0, f64::min);
    let highest = drawn.iter().map(|(_, speedup)| speedup.high).fold(10.0, f64::max);
    let axis = Axis::new(lowest, highest, page.width().saturating_sub(label_columns));
    page.blank()?;
    page.line(&[(Paint::Faint, &format!("{}{}", " ".repeat(label_columns), axis.ticks()))])?;
    for (name, speedup) in drawn {
        let label = format!("{}{name}", " ".repeat(INDENT));
        let gap = " ".repeat(label_columns.saturating_sub(columns(&label)));
        let paint = if speedup.low > 1.0 { Paint::Good } else { Paint::Plain };
        page.line(&[(Paint::Plain, &label), (Paint::Plain, &gap), (paint, &axis.bar(speedup.low, speedup.high))])?;
    }
    Ok(())
}

/// A log axis over whole decades.
struct Axis {
    first_decade: i32,
    decades: i32,
    decade_columns: usize,
}

impl Axis {
    fn new(lowest: f64, highest: f64, room: usize) -> Self {
        let first_decade = whole(format::decades(lowest).floor());
        let decades = (whole(format::decades(highest).ceil()) - first_decade).max(1);
        // The last label stands right of the last decade.
        let last = columns(&format::axis_ratio(10_f64.powi(first_decade + decades)));
        let fitting = room.saturating_sub(last) / usize::try_from(decades).unwrap_or(1);
        Self { first_decade, decades, decade_columns: fitting.clamp(2, DECADE_COLUMNS) }
    }

    fn ticks(&self) -> String {
        let mut out = String::new();
        for decade in 0..=self.decades {
            let at = usize::try_from(decade).unwrap_or(0) * self.decade_columns;
            let used = columns(&out);
            // A label that would touch the one before it is left out.
            if used == 0 || used < at {
                out.push_str(&" ".repeat(at.saturating_sub(used)));
                let value = 10_f64.powi(self.first_decade + decade);
                out.push_str(&format::axis_ratio(value));
            }
        }
        out
    }

    fn column(&self, value: f64) -> usize {
        #[expect(clippy::cast_precision_loss, reason = "a terminal has fewer columns than 2^52")]
        let columns = (format::decades(value) - f64::from(self.first_decade)) * self.decade_columns as f64;
        usize::try_from(whole(columns.round())).unwrap_or(0)
    }

    /// Bars begin at 1x and run to the right where the copy wins, to the left where it loses.
    fn bar(&self, low: f64, high: f64) -> String {
        let (one, low, high) = (self.column(1.0), self.column(low), self.column(high));
        let (solid_from, solid_to) = if low >= one { (one, low) } else { (high.min(one), one) };
        let end = high.max(one).max(one + 1);
        (0..end)
            .map(|column| match column {
                // The mark at 1x stays visible even where nothing is to be drawn.
                column if column == one && high == one => '│',
                column if (solid_from..solid_to).contains(&column) => '█',
                column if (low..high).contains(&column) => '▒',
                column if column == one => '│',
                _ => ' ',
            })
            .collect::<String>()
            .trim_end()
            .to_owned()
    }
}

/// Converts a whole number that is known to be small; what is no number counts as 0.
fn whole(value: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "decades and columns are far below 2^31, and casts saturate")]
    let whole = value as i32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_solid_up_to_the_lower_end_and_shaded_up_to_the_upper_one() {
        let axis = Axis { first_decade: 0, decades: 2, decade_columns: 10 };
        assert_eq!(axis.bar(10.0, 100.0), format!("{}{}", "█".repeat(10), "▒".repeat(10)));
        assert_eq!(axis.ticks(), "1x        10x       100x");
    }

    #[test]
    fn a_ratio_below_one_grows_to_the_left_of_the_mark() {
        let axis = Axis { first_decade: -1, decades: 2, decade_columns: 10 };
        assert_eq!(axis.bar(0.2, 0.5), "   ▒▒▒▒███│");
        assert_eq!(axis.bar(0.5, 2.0), "       ▒▒▒▒▒▒");
        assert_eq!(axis.bar(1.0, 1.0), "          │");
    }

    #[test]
    fn an_axis_with_its_last_label_fits_into_its_room() {
        for highest in [3.0, 40.0, 4e3, 4e4, 4e6] {
            let ticks = Axis::new(0.5, highest, 64).ticks();
            assert!(columns(&ticks) <= 64, "{ticks}");
        }
    }

    #[test]
    fn labels_of_a_narrow_axis_do_not_touch() {
        let axis = Axis::new(1.0, 1e9, 30);
        assert!(axis.ticks().split_whitespace().count() >= 2);
        assert!(!axis.ticks().contains("x1"), "{}", axis.ticks());
    }
}
