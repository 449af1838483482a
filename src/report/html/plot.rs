//! Plots as inline SVG.
//!
//! Drawn with plotters' SVG backend. It writes colours as attributes, which a style sheet outranks: each colour here is
//! a stand-in that `page.css` replaces for a light and for a dark page (see [`Ink`]).

use std::error::Error;
use std::ops::Range;

use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::printable_text;
use crate::format;
use crate::measure::{Latency, Measurement, Method, Sample, Speedup};
use crate::report::{Report, words};

/// Width of the drawing that a wide page shows, in CSS pixels.
const WIDE: u32 = 720;
/// Width of the drawing for a phone: text must not shrink below what can be read, so it is drawn anew.
const NARROW: u32 = 340;
/// Height of one row: a line of text and the figures below it.
const ROW_HEIGHT: u32 = 46;
/// Height of the labels below the last row.
const AXIS_HEIGHT: u32 = 26;
/// Room at both sides, so that half a label or dot is not cut off.
const MARGIN: u32 = 26;
/// Upper edge, centre and lower edge of the figures within a row; the label is above.
const BAND: (f64, f64, f64) = (0.52, 0.69, 0.86);
/// plotters writes font sizes divided by 1.24; this gives 13 CSS pixels.
const LABEL_SIZE: f64 = 16.1;
/// Width of a character of a label in CSS pixels, on the safe side for the fonts of the style sheet.
const LABEL_CHARACTER_WIDTH: u32 = 7;
/// 11.5 CSS pixels.
const TICK_SIZE: f64 = 14.3;
/// Space that the label of a decade needs, in pixels.
const TICK_SPACE: u32 = 52;
/// How far the axis of the spread may reach: ends whose half is a round number, too. Below one percent differences say
/// nothing.
const SPREADS: [f64; 12] = [0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0, 10.0, 20.0, 40.0];
/// A time below this is not on the axis: no call takes less, and 0 has no logarithm.
const SHORTEST_S: f64 = 1e-9;

/// What a colour stands for; the style sheet knows these values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ink {
    Text,
    Faint,
    InPlace,
    InCopy,
    Ratio,
}

impl Ink {
    const fn color(self) -> RGBColor {
        match self {
            Self::Text => RGBColor(1, 1, 1),
            Self::Faint => RGBColor(2, 2, 2),
            Self::InPlace => RGBColor(3, 3, 3),
            Self::InCopy => RGBColor(4, 4, 4),
            Self::Ratio => RGBColor(5, 5, 5),
        }
    }
}

/// One line of a plot.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    label: String,
    ink: Ink,
    dots: Vec<f64>,
    mid: f64,
    interval: Option<(f64, f64)>,
    method: Method,
}

/// Both drawings of one plot, as SVG elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plot {
    /// For a page of more than a phone's width.
    pub(super) wide: String,
    /// For a phone.
    pub(super) narrow: String,
}

/// Draws every round of every workload for both sides on one log axis of time.
pub(super) fn rounds(report: &Report) -> Option<Plot> {
    let copy = words::copy_side(report);
    let mut rows = Vec::new();
    for measurement in &report.measurements {
        let name = words::workload(measurement);
        rows.push(sample_row(&format!("{name}, in place"), &measurement.in_place, Ink::InPlace));
        let in_copy = measurement.in_copy.as_ref();
        rows.extend(in_copy.map(|sample| sample_row(&format!("{name}, {copy}"), sample, Ink::InCopy)));
    }
    plot(&rows, &Axis::decades(&rows, format::axis_seconds, None)?)
}

/// Draws each workload's ratio with its interval on a log axis.
pub(super) fn ratios(report: &Report) -> Option<Plot> {
    let row =
        |measurement: &Measurement| Some(ratio_row(&words::workload(measurement), measurement.speedup?, measurement));
    let rows: Vec<Row> = report.measurements.iter().filter_map(row).collect();
    plot(&rows, &Axis::decades(&rows, format::axis_ratio, Some(1.0))?)
}

/// Draws how the latency of single calls is distributed.
pub(super) fn latencies(report: &Report) -> Option<Plot> {
    let copy = words::copy_side(report);
    let mut rows = Vec::new();
    for measurement in &report.measurements {
        let name = words::workload_name(measurement);
        let in_copy = measurement.in_copy.as_ref().and_then(|sample| sample.latency.as_ref());
        rows.extend(
            measurement.in_place.latency.as_ref().map(|l| latency_row(&format!("{name}, in place"), l, Ink::InPlace)),
        );
        rows.extend(in_copy.map(|latency| latency_row(&format!("{name}, {copy}"), latency, Ink::InCopy)));
    }
    plot(&rows, &Axis::decades(&rows, format::axis_seconds, None)?)
}

fn sample_row(name: &str, sample: &Sample, ink: Ink) -> Row {
    Row {
        label: format!("{name}: {}", words::figure_with_interval(sample)),
        ink,
        dots: sample.runs.clone(),
        mid: sample.median,
        interval: sample.low.zip(sample.high),
        method: sample.method,
    }
}

fn ratio_row(name: &str, speedup: Speedup, measurement: &Measurement) -> Row {
    let interval = format::ratio_interval(speedup.low, speedup.high);
    Row {
        label: format!("{name}: {} ({interval})", words::speedup(measurement)),
        ink: Ink::Ratio,
        dots: vec![],
        mid: speedup.mid,
        interval: Some((speedup.low, speedup.high)),
        method: measurement.in_place.method,
    }
}

fn latency_row(name: &str, latency: &Latency, ink: Ink) -> Row {
    let (p50, p95, p99) = (format::seconds(latency.p50), format::seconds(latency.p95), format::seconds(latency.p99));
    Row {
        label: format!("{name}: {p50}, p95 {p95}, p99 {p99}"),
        ink,
        dots: if latency.quantiles.is_empty() { vec![latency.p95, latency.p99] } else { latency.quantiles.clone() },
        mid: latency.p50,
        interval: Some((latency.p50, latency.p99)),
        method: Method::Run,
    }
}

/// Draws every round as its distance from the median of its side: on the log axis, rounds lie on top of each other.
pub(super) fn spread(report: &Report) -> Option<Plot> {
    let copy = words::copy_side(report);
    let mut rows = Vec::new();
    for measurement in &report.measurements {
        let name = words::workload(measurement);
        rows.extend(spread_row(&format!("{name}, in place"), &measurement.in_place, Ink::InPlace));
        let in_copy = measurement.in_copy.as_ref();
        rows.extend(in_copy.and_then(|sample| spread_row(&format!("{name}, {copy}"), sample, Ink::InCopy)));
    }
    let farthest = rows.iter().flat_map(|row| &row.dots).map(|dot| dot.abs()).fold(0.0, f64::max);
    plot(&rows, &Axis::around_zero(farthest))
}

fn spread_row(name: &str, sample: &Sample, ink: Ink) -> Option<Row> {
    let dots: Vec<f64> =
        sample.runs.iter().map(|run| run / sample.median - 1.0).filter(|dot| dot.is_finite()).collect();
    // One round is its own median, and a prediction has none.
    let has_spread = dots.len() > 1;
    let method = Method::Run;
    has_spread.then(|| Row { label: name.to_owned(), ink, dots, mid: 0.0, interval: None, method })
}

/// What the figures of a plot are measured against.
struct Axis {
    range: Range<f64>,
    is_log: bool,
    /// Where the upright lines are, each with its label.
    ticks: Vec<(f64, String)>,
    /// The value that every figure is compared with.
    mark: Option<f64>,
}

impl Axis {
    /// Makes a log axis of the whole decades that hold every figure; `None` without any figure.
    fn decades(rows: &[Row], tick: fn(f64) -> String, mark: Option<f64>) -> Option<Self> {
        let of_row = |row: &Row| {
            let ends = row.interval.map_or_else(Vec::new, |(low, high)| vec![low, high]);
            row.dots.iter().copied().chain(ends).chain([row.mid]).collect::<Vec<_>>()
        };
        let figures = rows.iter().flat_map(of_row).chain(mark);
        let figures: Vec<f64> = figures.filter(|value| value.is_finite() && *value >= SHORTEST_S).collect();
        let lowest = figures.iter().copied().reduce(f64::min)?;
        let highest = figures.iter().copied().reduce(f64::max)?;
        let (first, mut last) = (format::decades(lowest).floor(), format::decades(highest).ceil());
        // Room for the arrow that a lower bound is drawn with, and never an axis without length.
        if last <= first || rows.iter().any(|row| row.method == Method::AtLeast) {
            last += 1.0;
        }
        let mut ticks = Vec::new();
        let mut decade = first;
        while decade <= last {
            let at = 10_f64.powf(decade);
            ticks.push((at, tick(at)));
            decade += 1.0;
        }
        Some(Self { range: 10_f64.powf(first)..10_f64.powf(last), is_log: true, ticks, mark })
    }

    /// Makes a linear axis that reaches as far to both sides of 0.
    fn around_zero(farthest: f64) -> Self {
        let farthest = SPREADS.into_iter().find(|spread| *spread >= farthest).unwrap_or(farthest);
        let ticks = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|part| (part * farthest, format::signed_percent(part * farthest)));
        Self { range: -farthest..farthest, is_log: false, ticks: ticks.to_vec(), mark: Some(0.0) }
    }
}

fn plot(rows: &[Row], axis: &Axis) -> Option<Plot> {
    if rows.is_empty() {
        return None;
    }
    // The backend writes into a string, which cannot fail; a failure would be its bug, and costs only the plot.
    let draw = |width| drawn(rows, axis, width).ok();
    Some(Plot { wide: draw(WIDE)?, narrow: draw(NARROW)? })
}

fn drawn(rows: &[Row], axis: &Axis, width: u32) -> Result<String, Box<dyn Error>> {
    let row_count = u32::try_from(rows.len())?;
    let height = row_count * ROW_HEIGHT + AXIS_HEIGHT;
    let upright = f64::from(row_count)..0.0;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let mut builder = ChartBuilder::on(&area);
        builder.margin_left(MARGIN).margin_right(MARGIN).margin_bottom(AXIS_HEIGHT);
        if axis.is_log {
            fill(&mut builder.build_cartesian_2d(axis.range.clone().log_scale(), upright)?, rows, axis, width)?;
        } else {
            fill(&mut builder.build_cartesian_2d(axis.range.clone(), upright)?, rows, axis, width)?;
        }
        area.present()?;
    }
    Ok(scalable(&svg, width, height))
}

fn fill<X>(chart: &mut Chart<'_, '_, X>, rows: &[Row], axis: &Axis, width: u32) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let bottom = f64::from(u32::try_from(rows.len())?);
    draw_axis(chart, axis, bottom, width)?;
    if let Some(at) = axis.mark {
        draw_upright(chart, at, bottom, Ink::Text.color().mix(0.8))?;
    }
    for (index, row) in (0_u32..).zip(rows) {
        draw_row(chart, f64::from(index), row, &axis.range, width)?;
    }
    Ok(())
}

type Chart<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, plotters::coord::types::RangedCoordf64>>;

fn font(size: f64, ink: Ink, position: Pos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&ink.color()).pos(position)
}

fn draw_axis<X>(chart: &mut Chart<'_, '_, X>, axis: &Axis, bottom: f64, width: u32) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let fitting = usize::try_from((width - 2 * MARGIN) / TICK_SPACE)?.max(1);
    let every = axis.ticks.len().saturating_sub(1).div_ceil(fitting).max(1);
    let style = font(TICK_SIZE, Ink::Faint, Pos::new(HPos::Center, VPos::Top));
    for (index, (at, label)) in axis.ticks.iter().enumerate() {
        draw_upright(chart, *at, bottom, Ink::Faint.color().mix(0.3))?;
        if index % every == 0 {
            let label = EmptyElement::at((*at, bottom)) + Text::new(label.clone(), (0, 7), style.clone());
            chart.draw_series([label])?;
        }
    }
    Ok(())
}

/// Draws an upright line that leaves the labels of the rows free.
fn draw_upright<X>(chart: &mut Chart<'_, '_, X>, at: f64, bottom: f64, color: RGBAColor) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut top = 0.0;
    while top < bottom {
        let line = vec![(at, top + BAND.0 - 0.06), (at, top + BAND.2 + 0.06)];
        chart.draw_series([PathElement::new(line, color.stroke_width(1))])?;
        top += 1.0;
    }
    Ok(())
}

fn draw_row<X>(
    chart: &mut Chart<'_, '_, X>,
    top: f64,
    row: &Row,
    range: &Range<f64>,
    width: u32,
) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let color = row.ink.color();
    let clamp = |value: f64| value.clamp(range.start, range.end);
    let style = font(LABEL_SIZE, Ink::Text, Pos::new(HPos::Left, VPos::Top));
    // Labels begin at the drawing's edge, left of the axis.
    let left = -i32::try_from(MARGIN)? + 2;
    chart.draw_series([
        EmptyElement::at((range.start, top)) + Text::new(shortened(&row.label, width), (left, 4), style)
    ])?;
    let (band_top, centre, band_bottom) = (top + BAND.0, top + BAND.1, top + BAND.2);
    if row.ink == Ink::Ratio {
        // How far a ratio is from 1x is what the eye should see.
        let stem = vec![(clamp(1.0), centre), (clamp(row.mid), centre)];
        chart.draw_series([PathElement::new(stem, color.mix(0.5).stroke_width(4))])?;
    }
    if let Some((low, high)) = row.interval.filter(|_| row.method != Method::AtLeast) {
        let corners = [(clamp(low), band_top), (clamp(high), band_bottom)];
        chart.draw_series([Rectangle::new(corners, color.mix(0.22).filled())])?;
        if row.method == Method::Predicted {
            chart.draw_series([Rectangle::new(corners, color.stroke_width(1))])?;
        }
    }
    for (index, &value) in (0_u32..).zip(&row.dots) {
        let at = (clamp(value), centre + lift(index));
        match row.ink {
            Ink::InCopy => chart.draw_series([TriangleMarker::new(at, 4, color.mix(0.6).filled())]).map(drop)?,
            _ => chart.draw_series([Circle::new(at, 3, color.mix(0.6).filled())]).map(drop)?,
        }
    }
    let mid = clamp(row.mid);
    chart.draw_series([PathElement::new(vec![(mid, band_top), (mid, band_bottom)], color.stroke_width(3))])?;
    if row.method == Method::AtLeast {
        // An arrow to the axis' end: the figure is somewhere on it.
        chart.draw_series([PathElement::new(vec![(mid, centre), (range.end, centre)], color.stroke_width(2))])?;
        let head = EmptyElement::at((range.end, centre))
            + PathElement::new(vec![(-6, -5), (0, 0), (-6, 5)], color.stroke_width(2));
        chart.draw_series([head])?;
    }
    Ok(())
}

/// Cuts a label that would run out of the drawing: a workload's name may be as long as the user likes.
fn shortened(label: &str, width: u32) -> String {
    let label = printable_text(label);
    let fitting = usize::try_from(width / LABEL_CHARACTER_WIDTH).unwrap_or(usize::MAX);
    if label.chars().count() <= fitting {
        return label;
    }
    label.chars().take(fitting.saturating_sub(1)).chain(['…']).collect()
}

/// Lifts and lowers dots by turns, so that equal rounds do not hide each other.
fn lift(index: u32) -> f64 {
    // Steps of two of five make neighbours differ; a tenth of a row keeps them on the band.
    (f64::from(index * 2 % 5) - 2.0) * 0.05
}

/// Replaces the fixed size by a view box alone, so that the style sheet sets the width.
fn scalable(svg: &str, width: u32, height: u32) -> String {
    svg.replacen(&format!("width=\"{width}\" height=\"{height}\" "), "", 1)
}
