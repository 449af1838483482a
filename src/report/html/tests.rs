//! What the page must hold, whatever the report holds.

use super::*;
use crate::report::sample;

fn written(report: &Report) -> String {
    let mut out = Vec::new();
    write_html(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_page_needs_no_network_and_runs_nothing() {
    for (name, report) in sample::all() {
        let page = written(&report);
        for needle in ["<script", "<link", "<img", "<iframe", "src=", "@import", "url(", " onload", "javascript:\""] {
            assert!(!page.contains(needle), "{name}: the page has {needle}");
        }
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn hostile_text_stays_text_in_the_page_and_in_its_plots() {
    let page = written(&sample::hostile());
    assert!(page.contains("&lt;script&gt;alert(1)"), "the attack is shown");
    assert!(!page.contains("<script"), "the attack is markup");
    assert!(!page.contains("href=\"javascript"));
    assert_eq!(page.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}'), None);
}

#[test]
fn the_recommendation_comes_before_the_plots_and_the_facts() {
    let page = written(&sample::moving());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("<h2>MOVE to ext4</h2>") < at("<h2>Every round</h2>"));
    assert!(at("rehome move /mnt/c/src/shop") < at("<h2>Every round</h2>"));
    assert!(at("<h2>Every round</h2>") < at("<h2>Facts</h2>"));
}

#[test]
fn every_round_of_both_sides_is_drawn() {
    let report = sample::moving();
    let plot = plot::rounds(&report).unwrap();
    let rounds = |side: fn(&Measurement) -> usize| report.measurements.iter().map(side).sum::<usize>();
    assert_eq!(plot.wide.matches("<circle").count(), rounds(|m| m.in_place.runs.len()));
    assert_eq!(plot.wide.matches("<polygon").count(), rounds(|m| m.in_copy.as_ref().unwrap().runs.len()));
}

#[test]
fn a_prediction_is_drawn_as_a_framed_band_and_a_bound_as_an_arrow() {
    let framed = |report: &Report| plot::rounds(report).unwrap().wide.matches("<rect").count();
    let mut run = sample::predicting();
    run.measurements[1].in_place.method = crate::measure::Method::Run;
    assert_eq!(framed(&sample::predicting()), framed(&run) + 1);
    let bound = plot::rounds(&sample::inconclusive()).unwrap().wide;
    assert_eq!((bound.matches("<rect").count(), bound.matches("<polyline").count() > 3), (0, true));
}

#[test]
fn figures_that_have_no_place_on_a_log_axis_do_not_break_the_page() {
    let mut report = sample::moving();
    report.measurements[0].in_place.runs = vec![0.0, f64::NAN, -1.0, f64::INFINITY];
    report.measurements[0].in_place.median = 0.0;
    report.measurements[0].speedup = Some(crate::measure::Speedup { mid: f64::INFINITY, low: 0.0, high: f64::NAN });
    assert!(written(&report).contains("</html>"));
    report.measurements.clear();
    assert!(written(&report).contains("Nothing was measured"));
}
