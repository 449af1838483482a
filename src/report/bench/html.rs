//! A comparison as one page that needs no network, no script and no other file.

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, html};

use super::super::html::{head, write_page};
use super::words;
use crate::bench::compare::{Comparison, Group, Row};
use crate::bench::result::PlaceFigure;
use crate::format;

const STYLE: &str = include_str!("page.css");

/// Units of the drawing's width: the bar of the slowest place.
const BAR_WIDTH: f64 = 1000.0;
/// Shortest bar, so that the fastest place stays visible beside one a thousand times slower.
const MIN_BAR: f64 = 3.0;
/// Height of a bar in the same units; the style sheet stretches it to a line.
const BAR_HEIGHT: f64 = 16.0;
/// Colours that the style sheet has for places; further ones begin again.
const COLORS: usize = 6;

/// Writes a comparison, with remarks of single runs below it, as a self-contained page.
///
/// # Errors
///
/// Those of `out`.
pub fn write_html(comparison: &Comparison, remarks: &[String], out: &mut dyn Write) -> io::Result<()> {
    write_page(page(comparison, remarks), out)
}

fn page(comparison: &Comparison, remarks: &[String]) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("rehome bench", STYLE, env!("CARGO_PKG_VERSION")))
            body {
                header {
                    p.kicker { "rehome bench" }
                    h1 { (format::counted(comparison.columns.len() as u64, "place", "places")) " compared" }
                }
                main {
                    (places(comparison))
                    @for group in &comparison.groups { (section(group)) }
                    (relays(comparison))
                    (notes(remarks))
                }
            }
        }
    }
}

fn places(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "Places" }
            ul.places {
                @for (position, column) in comparison.columns.iter().enumerate() {
                    li {
                        (key(position))
                        div {
                            code { (words::title(column)) }
                            p { (words::place(column)) }
                            p { (words::machine(&column.machine)) }
                        }
                    }
                }
            }
        }
    }
}

fn key(column: usize) -> Markup {
    html! { span.key.{ "c" (column % COLORS) } { (words::letter(column)) } }
}

fn section(group: &Group) -> Markup {
    html! {
        section {
            h2 { (group.suite.name()) }
            p.about { (words::work(group.suite, &group.setup)) "; " (words::rounds(group)) }
            table {
                thead { tr { th { "phase" } th { "" } th.bar { "" } th.number { "median" } th.number { "to the fastest" } th.number { "" } } }
                @for row in &group.rows {
                    tbody class=[row.headline.then_some("headline")] {
                        @for (position, figure) in row.figures.iter().enumerate() {
                            (line(group, row, position, figure))
                        }
                    }
                }
            }
        }
    }
}

fn line(group: &Group, row: &Row, position: usize, figure: &PlaceFigure) -> Markup {
    let name = words::phase(&row.phase);
    let interval = figure.low.zip(figure.high).map_or_else(
        || format::counted(figure.runs.len() as u64, "round", "rounds"),
        |(low, high)| format!("95 %: {}", format::seconds_interval(low, figure.median, high)),
    );
    html! {
        tr {
            @if position == 0 { th.phase scope="rowgroup" rowspan=(row.figures.len()) { (name) } }
            td { (key(figure.place)) }
            td.bar { (bar(row, figure)) }
            td.number title=(interval) { (format::seconds(figure.median)) }
            td.number { @if row.figures.len() > 1 { (words::ratio(figure)) } }
            td.number.soft { (words::rate(group.suite, row, figure)) }
        }
    }
}

/// A bar from zero, its length proportional to the time, with a line over the 95 % interval.
fn bar(row: &Row, figure: &PlaceFigure) -> Markup {
    let end = |figure: &PlaceFigure| figure.high.unwrap_or(figure.median).max(figure.median);
    let longest = row.figures.iter().map(end).fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| (value / longest * BAR_WIDTH).clamp(0.0, BAR_WIDTH);
    let width = x(figure.median).max(MIN_BAR);
    let label = format!("{}, {}", words::letter(figure.place), format::seconds(figure.median));
    html! {
        svg viewBox={ "0 0 " (BAR_WIDTH) " " (BAR_HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.{ "c" (figure.place % COLORS) } x="0" y="2" width=(format!("{width:.1}")) height="12" {}
            @if let Some((low, high)) = figure.low.zip(figure.high) {
                line.interval x1=(format!("{:.1}", x(low))) x2=(format!("{:.1}", x(high))) y1="8" y2="8"
                    vector-effect="non-scaling-stroke" {}
            }
        }
    }
}

fn relays(comparison: &Comparison) -> Markup {
    let sentences: Vec<String> = comparison.relays.iter().filter_map(words::relay).collect();
    html! {
        @if !sentences.is_empty() {
            section {
                h2 { "What a relay of 4 KiB costs" }
                ul.plain { @for sentence in &sentences { li { (sentence) } } }
            }
        }
    }
}

fn notes(remarks: &[String]) -> Markup {
    html! {
        @if !remarks.is_empty() {
            section {
                h2 { "Remarks" }
                ul.plain { @for remark in remarks { li { (remark) } } }
            }
        }
    }
}
