//! The report as one page that needs no network, no script and no other file.
//!
//! Every text passes through maud, which escapes it; a content security policy in the page forbids whatever slipped
//! through to load or run anything.

mod plot;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Report, words};
use crate::advise::{Tune, Verdict};
use crate::error::printable_text;
use crate::facts::Site;
use crate::format;
use crate::judge::{Evidence, Hazard, Severity};
use crate::measure::{Measurement, Sample};
use plot::Plot;

/// Bytes of code in prose that still fit on a phone's line, so that they are never broken.
const WHOLE_CODE: usize = 24;

const STYLE: &str = include_str!("page.css");

/// Nothing may be loaded and nothing may run; styles are in the page itself.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'";

/// Writes the report as a self-contained page.
///
/// # Errors
///
/// Those of `out`.
pub fn write_html(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write_page(page(report), out)
}

/// Writes a page line by line: a browser ignores control characters, but a terminal that shows the file does not.
pub(super) fn write_page(page: Markup, out: &mut dyn Write) -> io::Result<()> {
    for line in page.into_string().lines() {
        writeln!(out, "{}", printable_text(line))?;
    }
    Ok(())
}

/// Returns the head of a page that loads nothing and runs nothing.
pub(super) fn head(title: &str, style: &str, version: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="generator" content={ "rehome " (version) };
            title { (title) }
            style { (PreEscaped(style)) }
        }
    }
}

fn page(report: &Report) -> Markup {
    let name = repository_name(&report.facts.site);
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("{name}: {}", words::headline(report)), STYLE, &report.rehome_version))
            body {
                header {
                    p.kicker { "rehome " (report.rehome_version) }
                    h1 { (name) }
                    (spellings(&report.facts.site))
                }
                main {
                    div.lead {
                        (verdict(report))
                        (plots(report))
                        (figures(report))
                    }
                    div.rest {
                        (hazards(report))
                        (plan(report))
                        (tunes(&report.tune))
                        (facts(report))
                        (evidence(report))
                        (method(report))
                    }
                }
            }
        }
    }
}

fn repository_name(site: &Site) -> &str {
    let name = site.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if name.is_empty() { "/" } else { name }
}

/// Text of a rule, with what stands between backticks set as code.
fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.trim().split('`').collect();
    // An odd number of backticks leaves one without its partner: then they are shown as they are.
    if parts.len().is_multiple_of(2) {
        return html! { (text.trim()) };
    }
    html! {
        @for (index, part) in parts.iter().enumerate() {
            @if index % 2 == 0 { (part) }
            // A browser would break an option after its first hyphen.
            @else if part.len() <= WHOLE_CODE { code.whole { (part) } }
            @else { code { (part) } }
        }
    }
}

fn spellings(site: &Site) -> Markup {
    html! {
        dl.spellings {
            @for (label, path) in words::spellings(site) {
                div {
                    @if !label.is_empty() { dt { (label) } }
                    dd { code { (path) } }
                }
            }
        }
    }
}

fn verdict(report: &Report) -> Markup {
    let advice = report.recommendation.as_ref();
    let tone = match advice.map(|advice| advice.verdict) {
        Some(_) if words::blockers(&report.hazards) > 0 => "caution",
        Some(Verdict::Move | Verdict::MoveToWindows | Verdict::Stay) => "good",
        Some(Verdict::Tune | Verdict::Inconclusive) | None => "caution",
    };
    html! {
        section.verdict.(tone) {
            h2 { (words::headline(report)) }
            @if let Some(advice) = advice { p.say { (prose(&advice.say)) } }
            @if !report.complete { p.caution-text { "The run did not finish: parts are missing." } }
            (headline_figures(report))
            @if let Some(command) = advice.and_then(words::command_line) {
                pre.command tabindex="0" { code { (command) } }
            }
            @if !report.hazards.is_empty() {
                p.before { a href="#hazards" { (words::hazards_heading(report)) } ": " (hazard_counts(&report.hazards)) }
            }
            @if let Some(advice) = advice.filter(|advice| !advice.alternatives.is_empty()) {
                h3 { "Or" }
                ul.plain {
                    @for choice in &advice.alternatives {
                        li { strong { (prose(&choice.say)) } ": " (prose(&choice.effect)) }
                    }
                }
            }
        }
    }
}

fn hazard_counts(hazards: &[Hazard]) -> String {
    let kinds = [
        (Severity::Blocker, "blocker", "blockers"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Note, "note", "notes"),
    ];
    let count = |severity| hazards.iter().filter(|hazard| hazard.severity == severity).count() as u64;
    let counts = kinds.into_iter().map(|(severity, one, many)| (count(severity), one, many));
    counts
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| format::counted(number, one, many))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The figure that decides, large: the repository's own `git status`, else whatever was measured first.
fn headline_figures(report: &Report) -> Markup {
    let git_status = report.measurements.iter().find(|measurement| measurement.workload == "git_status");
    let Some(main) = git_status.or_else(|| report.measurements.first()) else { return html! {} };
    html! {
        dl.figures {
            div.in-place { dt { (words::workload(main)) " in place" } dd { (words::figure(&main.in_place)) } }
            @if let Some(copy) = &main.in_copy {
                div.in-copy { dt { (words::copy_side(report)) } dd { (words::figure(copy)) } }
            }
            @if let Some(speedup) = &main.speedup {
                div.ratio {
                    dt { "speedup, " (format::ratio_interval(speedup.low, speedup.high)) }
                    dd { (words::speedup(main)) }
                }
            }
        }
    }
}

fn plots(report: &Report) -> Markup {
    let copy = words::copy_side(report);
    let key = html! {
        span.key.in-place { "in place" }
        @if report.measurements.iter().any(|measurement| measurement.in_copy.is_some()) {
            " " span.key.in-copy { (copy) }
        }
    };
    html! {
        (figure("Every round", plot::rounds(report), &html! {
            (key) " A dot is one round, the bar its median, the band the 95 % interval of the median. "
            "A framed band is a prediction, an arrow a lower bound. The axis is logarithmic."
        }))
        (figure("How much the rounds differ", plot::spread(report), &html! {
            (key) " A dot is one round's distance from the median of its side."
        }))
        (figure("Speedup of the copy", plot::ratios(report), &html! {
            "The bar is the ratio of the medians, the band its 95 % interval; right of 1x the copy is faster."
        }))
        (figure("Latency of single calls", plot::latencies(report), &html! {
            (key) " Between two dots lies a twentieth of the calls. The bar is the median, the band reaches to the 99th percentile."
        }))
    }
}

fn figure(title: &str, plot: Option<Plot>, caption: &Markup) -> Markup {
    let Some(plot) = plot else { return html! {} };
    html! {
        section.plot {
            h2 { (title) }
            figure {
                div.wide role="img" aria-label=(title) { (PreEscaped(plot.wide)) }
                div.narrow role="img" aria-label=(title) { (PreEscaped(plot.narrow)) }
                figcaption { (caption) }
            }
        }
    }
}

fn figures(report: &Report) -> Markup {
    let remarks: Vec<String> = report.measurements.iter().flat_map(words::remarks).collect();
    let is_compared = report.measurements.iter().any(|measurement| measurement.in_copy.is_some());
    html! {
        section {
            h2 { "Figures" }
            @if report.measurements.is_empty() {
                p { "Nothing was measured, so nothing here rests on figures." }
            } @else {
                div.scroll tabindex="0" {
                    table {
                        thead {
                            tr {
                                th {}
                                th { "in place" }
                                @if is_compared {
                                    th { (words::copy_side(report)) }
                                    th { "speedup" }
                                    th { "95 % interval" }
                                    th { "saves" }
                                }
                            }
                        }
                        tbody { @for measurement in &report.measurements { (row(report, measurement, is_compared)) } }
                    }
                }
            }
            @for remark in remarks { p.remark { (prose(&remark)) } }
        }
    }
}

fn row(report: &Report, measurement: &Measurement, is_compared: bool) -> Markup {
    let copy = measurement.in_copy.as_ref().map_or_else(|| words::NOT_MEASURED.to_owned(), words::figure);
    html! {
        tr {
            th scope="row" { (words::workload(measurement)) }
            td data-label="in place" { (words::figure(&measurement.in_place)) }
            @if is_compared {
            td data-label=(words::copy_side(report)) { (copy) }
            td data-label="speedup" { (words::speedup(measurement)) }
            td data-label="95 % interval" { @if let Some(speedup) = &measurement.speedup { (format::ratio_interval(speedup.low, speedup.high)) } }
            td data-label="saves" { @if let Some(saved) = measurement.saved_s { (format::seconds(saved)) } }
            }
        }
    }
}

fn hazards(report: &Report) -> Markup {
    if report.hazards.is_empty() {
        return html! {};
    }
    html! {
        section id="hazards" {
            h2 { (words::hazards_heading(report)) }
            ul.hazards { @for hazard in &report.hazards { (one_hazard(hazard)) } }
        }
    }
}

fn one_hazard(hazard: &Hazard) -> Markup {
    let (class, name) = match hazard.severity {
        Severity::Blocker => ("blocker", "Blocker"),
        Severity::Warning => ("warning", "Warning"),
        Severity::Note => ("note", "Note"),
    };
    html! {
        li.(class) {
            span.badge { (name) }
            p { (prose(&hazard.say)) }
            p.fix { (prose(&words::fix(hazard))) }
        }
    }
}

fn plan(report: &Report) -> Markup {
    let steps = words::plan(report);
    let command = report.recommendation.as_ref().and_then(words::dry_run);
    if steps.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "The move" }
            ol.plan {
                @for step in steps {
                    li {
                        p { (prose(&step.say)) }
                        @if !step.items.is_empty() { ul.plain { @for item in step.items { li { (prose(&item)) } } } }
                    }
                }
            }
            @if let Some(command) = command {
                p { "This shows the plan in full, and copies nothing:" }
                pre.command tabindex="0" { code { (command) } }
            }
        }
    }
}

fn tunes(tunes: &[Tune]) -> Markup {
    if tunes.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Settings that help here" }
            @for tune in tunes {
                p { strong { (prose(&tune.say)) } ": " (prose(&tune.effect)) }
                @if !tune.command.is_empty() { pre.command tabindex="0" { code { (tune.command) } } }
                p.source { (source(&tune.source)) }
            }
        }
    }
}

/// A source is a link only where it is one: any other scheme could run something.
fn source(source: &str) -> Markup {
    if source.starts_with("https://") || source.starts_with("http://") {
        html! { a href=(source) rel="noreferrer noopener" { (source) } }
    } else {
        html! { (source) }
    }
}

fn facts(report: &Report) -> Markup {
    let (facts, site) = (&report.facts, &report.facts.site);
    let mut rows: Vec<(&str, String)> = vec![
        ("Where", words::filesystem(site)),
        ("Kind of place", words::class(site.class).to_owned()),
        ("Mount point", site.mount_point.clone()),
        ("Mount options", site.options.replace(',', ", ")),
    ];
    if let Some(target) = &facts.target {
        rows.push(("Target", format!("{}: {}", words::filesystem(&target.site), target.site.path)));
        rows.extend(words::free_room(report).map(|room| ("Room there", room)));
    }
    rows.push(("Platform", words::platform(facts.platform).to_owned()));
    rows.push(("Size", words::size(report)));
    rows.extend(words::index_writer(report).map(|writer| ("Index", writer.trim_start_matches("index ").to_owned())));
    if let Some(repo) = &facts.repo {
        rows.extend(repo.branch.clone().map(|branch| ("Branch", branch)));
        if !repo.remotes.is_empty() {
            rows.push(("Remotes", repo.remotes.join(", ")));
        }
    }
    rows.extend(facts.git.as_ref().map(|git| ("git", format!("{} ({})", git.version, git.path))));
    html! {
        section {
            h2 { "Facts" }
            dl.facts { @for (label, text) in rows { div { dt { (label) } dd { (text) } } } }
        }
    }
}

fn evidence(report: &Report) -> Markup {
    html! {
        section {
            h2 { "Toolchain: " (words::toolchain(report)) }
            @if report.evidence.is_empty() { p { "No rule fired." } }
            ul.evidence { @for evidence in &report.evidence { (one_evidence(evidence)) } }
        }
    }
}

fn one_evidence(evidence: &Evidence) -> Markup {
    let share = evidence.share.filter(|_| evidence.counted).unwrap_or(0.0).clamp(0.0, 1.0);
    let label = match evidence.share {
        Some(share) if evidence.counted => format::percent(share),
        _ if evidence.counted => "counted".to_owned(),
        _ => "not counted".to_owned(),
    };
    html! {
        li {
            div.what {
                span { (prose(&evidence.because)) }
                span.share { (words::toolchain_name(evidence.toolchain)) ", " (label) }
            }
            div.meter aria-hidden="true" { div style={ "width:" (format::css_percent(share)) } {} }
            p.fine {
                code { (evidence.rule) } " · " (words::strength(evidence.strength)) " " (words::tier(evidence.tier))
                @if !evidence.matched.is_empty() { " · " code { (evidence.matched) } }
            }
        }
    }
}

fn method(report: &Report) -> Markup {
    let cost = &report.cost;
    html! {
        section {
            h2 { "How it was measured" }
            @if !report.notes.is_empty() { ul.plain { @for note in &report.notes { li { (prose(note)) } } } }
            p {
                "The whole run took " (format::seconds(cost.wall_s)) ". The scan made "
                (format::counted(cost.scan_calls_in_place, "path call", "path calls")) " and "
                (format::counted(cost.scan_reads_in_place, "read", "reads")) " on the repository's mount and read "
                (format::bytes(cost.scan_bytes_in_place)) " there; "
                @if cost.bytes_written_in_place == 0 { "nothing was" } @else { (format::bytes(cost.bytes_written_in_place)) " were" }
                " written below the repository."
            }
            @for measurement in &report.measurements { (rounds_of(report, measurement)) }
        }
    }
}

fn rounds_of(report: &Report, measurement: &Measurement) -> Markup {
    let figures = |sample: &Sample| sample.runs.iter().map(|&run| format::seconds(run)).collect::<Vec<_>>().join(", ");
    let sides = [Some(&measurement.in_place), measurement.in_copy.as_ref()];
    if sides.iter().flatten().all(|sample| sample.runs.is_empty()) {
        return html! {};
    }
    html! {
        details {
            summary { "Rounds of " (words::workload_name(measurement)) }
            dl.facts {
                div { dt { "in place" } dd { (figures(&measurement.in_place)) } }
                @if let Some(copy) = &measurement.in_copy {
                    div { dt { (words::copy_side(report)) } dd { (figures(copy)) } }
                }
            }
        }
    }
}
