//! The part of the text report that `--explain` adds: every rule that fired, and what the run cost.

use std::io;

use super::page::{Page, Paint};
use super::{Report, words};
use crate::format;
use crate::judge::Evidence;

const INDENT: usize = 4;
/// Where the reason begins below the id of its rule.
const REASON_INDENT: usize = 8;

/// Writes the explanation.
pub(super) fn write_explanation(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    write_evidence(page, report)?;
    write_rules(page, report)?;
    write_place(page, report)?;
    write_latency(page, report)?;
    write_cost(page, report)
}

fn heading(page: &mut Page<'_>, text: &str) -> io::Result<()> {
    page.blank()?;
    page.line(&[(Paint::Strong, &format!("  {text}"))])
}

fn write_evidence(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    heading(page, "Evidence for the toolchain")?;
    if report.evidence.is_empty() {
        return page.paragraph(INDENT, Paint::Plain, "no rule fired");
    }
    for evidence in &report.evidence {
        let title = format!(
            "{}, {} {}, {}",
            words::toolchain_name(evidence.toolchain),
            words::strength(evidence.strength),
            words::tier(evidence.tier),
            share(evidence)
        );
        page.line(&[
            (Paint::Plain, &" ".repeat(INDENT)),
            (if evidence.counted { Paint::Strong } else { Paint::Faint }, &evidence.rule),
            (Paint::Plain, "  "),
            (Paint::Faint, &title),
        ])?;
        let matched =
            if evidence.matched.is_empty() { String::new() } else { format!(" ({})", evidence.matched.trim()) };
        page.paragraph(REASON_INDENT, Paint::Plain, &format!("{}{matched}", evidence.because.trim()))?;
    }
    Ok(())
}

fn share(evidence: &Evidence) -> String {
    match evidence.share {
        Some(share) if evidence.counted => format!("{} of the result", format::percent(share)),
        _ if evidence.counted => "counted".to_owned(),
        _ => "not counted (cancelled or outdone)".to_owned(),
    }
}

fn write_rules(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    heading(page, "Rules that decided")?;
    let mut rules = vec![("filesystem", report.facts.site.rule.clone())];
    rules.extend(report.facts.target.iter().map(|target| ("target", target.site.rule.clone())));
    rules
        .extend(report.recommendation.iter().map(|advice| ("verdict", format!("{} ({})", advice.rule, advice.reason))));
    rules.extend(report.hazards.iter().map(|hazard| ("hazard", hazard.rule.clone())));
    rules.extend(report.tune.iter().map(|tune| ("tune", tune.rule.clone())));
    let column = INDENT + "filesystem".len() + 2;
    for (kind, rule) in rules {
        page.beside((Paint::Faint, &format!("    {kind}")), column, (Paint::Plain, &rule))?;
    }
    Ok(())
}

fn write_place(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    let (facts, site) = (&report.facts, &report.facts.site);
    heading(page, "Place")?;
    let mut lines = vec![
        ("platform", words::platform(facts.platform).to_owned()),
        ("class", words::class(site.class).to_owned()),
        ("mount", site.mount_point.clone()),
        // With spaces, so that the line can be wrapped between two options.
        ("options", site.options.replace(',', ", ")),
    ];
    if let Some(repo) = &facts.repo {
        lines.extend(repo.branch.iter().map(|branch| ("branch", branch.clone())));
        if !repo.remotes.is_empty() {
            lines.push(("remotes", repo.remotes.join(", ")));
        }
    }
    lines.extend(facts.git.iter().map(|git| ("git", format!("{} ({})", git.version, git.path))));
    let column = INDENT + "filesystem".len() + 2;
    for (label, text) in lines {
        page.beside((Paint::Faint, &format!("    {label}")), column, (Paint::Plain, &text))?;
    }
    Ok(())
}

fn write_latency(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    let copy = words::copy_side(report);
    let sides = report.measurements.iter().flat_map(|measurement| {
        let name = words::workload(measurement);
        let copy_side = measurement.in_copy.as_ref().map(|sample| (format!("{name}, {copy}"), sample));
        std::iter::once((format!("{name}, in place"), &measurement.in_place)).chain(copy_side)
    });
    let timed: Vec<_> = sides.filter_map(|(name, sample)| Some((name, sample.latency.as_ref()?))).collect();
    if timed.is_empty() {
        return Ok(());
    }
    heading(page, "Latency of single calls")?;
    for (name, latency) in timed {
        let text = format!(
            "{name}: median {}, 95th percentile {}, 99th {} ({})",
            format::seconds(latency.p50),
            format::seconds(latency.p95),
            format::seconds(latency.p99),
            format::counted(latency.count, "call", "calls")
        );
        page.paragraph(INDENT, Paint::Plain, &text)?;
    }
    Ok(())
}

fn write_cost(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    heading(page, "What this run cost")?;
    let cost = &report.cost;
    let written = if cost.bytes_written_in_place == 0 {
        "nothing was written below the repository".to_owned()
    } else {
        format!("{} were written below the repository", format::bytes(cost.bytes_written_in_place))
    };
    let text = format!(
        "{} in all; the scan made {} and {} on the repository's mount and read {} there; {written}",
        format::seconds(cost.wall_s),
        format::counted(cost.scan_calls_in_place, "path call", "path calls"),
        format::counted(cost.scan_reads_in_place, "read", "reads"),
        format::bytes(cost.scan_bytes_in_place),
    );
    page.paragraph(INDENT, Paint::Plain, &text)
}
