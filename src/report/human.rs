//! The report as text for a person.

use std::io::{self, Write};

use super::explain::write_explanation;
use super::measured::write_measurements;
use super::page::{Page, Paint, Style, columns};
use super::{Report, words};
use crate::advise::Verdict;
use crate::facts::Site;
use crate::judge::{Hazard, Severity};

/// Where a block begins.
const INDENT: usize = 2;
/// Where the text beside a label begins; the longest label is `Alternatively`.
const LABEL_COLUMN: usize = 13;
/// Where an item of a list begins.
const ITEM_INDENT: usize = 4;
/// Evidence named on the first screen; `--explain` has the rest.
const SHOWN_EVIDENCE: usize = 3;

/// Writes the report as text.
///
/// Everything that comes from the repository or the mount is escaped; nothing is written but to `out`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_human(report: &Report, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(out, style);
    write_head(page, report)?;
    page.blank()?;
    write_measurements(page, report)?;
    page.blank()?;
    write_verdict(page, report)?;
    write_hazards(page, report)?;
    write_tune(page, report)?;
    write_command(page, report)?;
    write_alternatives(page, report)?;
    if style.explain {
        write_explanation(page, report)?;
    }
    Ok(())
}

fn write_head(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    let facts = &report.facts;
    page.line(&[
        (Paint::Strong, &format!("rehome {}", report.rehome_version)),
        (Paint::Plain, "   "),
        (Paint::Strong, &facts.site.path),
    ])?;
    page.blank()?;
    write_field(page, "Where", &words::filesystem(&facts.site))?;
    // The headline already has the only spelling there is.
    write_spellings(page, &facts.site, words::spellings(&facts.site).len() > 1)?;
    match &facts.target {
        Some(target) => {
            write_field(page, "Target", &words::filesystem(&target.site))?;
            write_spellings(page, &target.site, true)?;
            if let Some(room) = words::free_room(report) {
                write_field(page, "", &room)?;
            }
        }
        // Where nothing is to move, no target was looked for, and its absence is no news.
        None if report.recommendation.as_ref().is_some_and(|advice| advice.verdict == Verdict::Stay) => {}
        None => write_field(page, "Target", "none was looked for or found")?,
    }
    write_field(page, "Size", &words::size(report))?;
    let mut toolchain = vec![words::toolchain(report)];
    toolchain.extend(words::leading_evidence(report, SHOWN_EVIDENCE));
    // A rule that speaks about it says more.
    let is_said = toolchain.iter().any(|text| text.contains("index was last written"));
    toolchain.extend(words::index_writer(report).filter(|_| !is_said).map(str::to_owned));
    write_field(page, "Toolchain", &toolchain.join("; "))
}

fn write_field(page: &mut Page<'_>, label: &str, text: &str) -> io::Result<()> {
    let label = format!("{}{label}", " ".repeat(INDENT));
    page.beside((Paint::Strong, &label), LABEL_COLUMN, (Paint::Plain, text))
}

/// Writes each spelling on a line of its own, never broken, so that it can be copied.
fn write_spellings(page: &mut Page<'_>, site: &Site, shown: bool) -> io::Result<()> {
    let spellings = words::spellings(site);
    let label_columns = spellings.iter().map(|(label, _)| label.len() + 2).max().unwrap_or(0);
    for (label, path) in spellings.iter().filter(|_| shown) {
        let label = if label.is_empty() { String::new() } else { format!("{label:label_columns$}") };
        page.line(&[(Paint::Plain, &" ".repeat(LABEL_COLUMN)), (Paint::Faint, &label), (Paint::Plain, path)])?;
    }
    Ok(())
}

fn write_verdict(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    let paint = match report.recommendation.as_ref().map(|recommendation| recommendation.verdict) {
        Some(_) if words::blockers(&report.hazards) > 0 => Paint::Caution,
        Some(Verdict::Move | Verdict::MoveToWindows | Verdict::Stay) => Paint::Good,
        Some(Verdict::Tune | Verdict::Inconclusive) | None => Paint::Caution,
    };
    page.line(&[(Paint::Plain, "  "), (paint, &format!("{}.", words::headline(report)))])?;
    match &report.recommendation {
        Some(recommendation) => page.paragraph(INDENT, Paint::Plain, &recommendation.say)?,
        None => {
            page.paragraph(INDENT, Paint::Plain, "What was measured until then is above; run it again for advice.")?;
        }
    }
    if !report.complete && report.recommendation.is_some() {
        page.paragraph(INDENT, Paint::Caution, "The run did not finish: parts are missing.")?;
    }
    Ok(())
}

fn write_hazards(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    if report.hazards.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.line(&[(Paint::Strong, &format!("  {}", words::hazards_heading(report)))])?;
    let pairs: Vec<(&Hazard, String, String)> =
        report.hazards.iter().map(|hazard| (hazard, said(hazard), words::fix(hazard))).collect();
    // Side by side where every pair fits on its line, else the fix goes below.
    let said_columns = pairs.iter().map(|(_, said, _)| columns(said)).max().unwrap_or(0);
    let fix_columns = pairs.iter().map(|(_, _, fix)| columns(fix)).max().unwrap_or(0);
    let fix_column = ITEM_INDENT + 2 + said_columns + 3;
    let is_side_by_side = fix_column + fix_columns <= page.style().width;
    for (hazard, said, fix) in &pairs {
        let (paint, mark) = mark(hazard.severity);
        if is_side_by_side {
            let gap = " ".repeat(fix_column - ITEM_INDENT - 2 - columns(said));
            let indent = " ".repeat(ITEM_INDENT);
            page.line(&[
                (Paint::Plain, &indent),
                (paint, mark),
                (Paint::Plain, " "),
                (Paint::Plain, said),
                (Paint::Plain, &gap),
                (Paint::Faint, fix),
            ])?;
        } else {
            page.beside((paint, &format!("    {mark}")), ITEM_INDENT + 2, (Paint::Plain, said))?;
            page.paragraph(ITEM_INDENT + 4, Paint::Faint, fix)?;
        }
    }
    Ok(())
}

/// A blocker is called one: a colour or a mark alone would be missed.
fn said(hazard: &Hazard) -> String {
    let say = hazard.say.trim();
    if hazard.severity == Severity::Blocker { format!("blocker: {say}") } else { say.to_owned() }
}

fn mark(severity: Severity) -> (Paint, &'static str) {
    match severity {
        Severity::Blocker => (Paint::Bad, "✗"),
        Severity::Warning => (Paint::Caution, "!"),
        Severity::Note => (Paint::Faint, "·"),
    }
}

fn write_tune(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    if report.tune.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.line(&[(Paint::Strong, "  Settings that help here")])?;
    for tune in &report.tune {
        page.beside(
            (Paint::Faint, "    ·"),
            ITEM_INDENT + 2,
            (Paint::Plain, &format!("{}: {}", tune.say.trim(), tune.effect.trim())),
        )?;
        if !tune.command.is_empty() {
            page.line(&[(Paint::Plain, &" ".repeat(ITEM_INDENT + 4)), (Paint::Strong, &tune.command)])?;
        }
        page.line(&[(Paint::Faint, &format!("{}{}", " ".repeat(ITEM_INDENT + 4), tune.source))])?;
    }
    Ok(())
}

fn write_command(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    let Some(recommendation) = &report.recommendation else { return Ok(()) };
    let Some(command) = words::command_line(recommendation) else { return Ok(()) };
    let label = match recommendation.verdict {
        Verdict::Move | Verdict::MoveToWindows => "  To move",
        Verdict::Stay | Verdict::Tune | Verdict::Inconclusive => "  To do",
    };
    page.blank()?;
    page.line(&[(Paint::Strong, &format!("{label:LABEL_COLUMN$}")), (Paint::Plain, &command)])
}

fn write_alternatives(page: &mut Page<'_>, report: &Report) -> io::Result<()> {
    let Some(recommendation) = report.recommendation.as_ref().filter(|advice| !advice.alternatives.is_empty()) else {
        return Ok(());
    };
    page.blank()?;
    let mut label = "  Or";
    for choice in &recommendation.alternatives {
        let text = format!("{}: {}", choice.say.trim(), choice.effect.trim());
        page.beside((Paint::Strong, label), LABEL_COLUMN, (Paint::Plain, &text))?;
        label = "";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn text(report: &Report, style: &Style) -> String {
        let mut out = Vec::new();
        write_human(report, style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_text_of_a_hostile_repository_reaches_the_terminal_as_a_control_character() {
        for color in [false, true] {
            let written = text(&sample::hostile(), &Style { color, explain: true, ..Style::default() });
            let own_colours: String = written.replace("\u{1b}[", "");
            let harmful = own_colours.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}');
            assert_eq!(harmful, None);
            assert!(!written.lines().any(|line| line.starts_with("MOVE")), "a line was forged");
        }
    }

    #[test]
    fn a_usual_report_fits_into_eighty_columns() {
        for (name, report) in sample::all().into_iter().filter(|(name, _)| *name != "hostile") {
            for line in text(&report, &Style::default()).lines() {
                let is_whole = line.contains("rehome move") || line.contains("git -C") || line.contains("https://");
                assert!(columns(line) <= 80 || is_whole, "{name}: {line}");
            }
        }
    }

    #[test]
    fn the_command_is_on_one_line_however_narrow_the_terminal_is() {
        let narrow = Style { width: 30, ..Style::default() };
        let written = text(&sample::moving(), &narrow);
        assert!(
            written.lines().any(|line| line.ends_with("rehome move /mnt/c/src/shop /home/me/src/shop")),
            "{written}"
        );
    }

    #[test]
    fn what_was_not_measured_is_said_in_words_and_never_as_zero() {
        let written = text(&sample::inconclusive(), &Style::default());
        assert!(written.contains("at least 9.6 s"), "{written}");
        assert!(!written.contains("speedup"), "{written}");
        assert!(!written.contains(" 0 s") && !written.contains("0x"), "{written}");
        let mut one_sided = sample::moving();
        one_sided.measurements[1].in_copy = None;
        one_sided.measurements[1].speedup = None;
        assert!(text(&one_sided, &Style::default()).contains("not measured"));
        let mut nothing = sample::moving();
        nothing.measurements.clear();
        assert!(text(&nothing, &Style::default()).contains("Nothing was measured"));
    }

    #[test]
    fn a_prediction_shows_its_band_and_where_it_comes_from() {
        let written = text(&sample::predicting(), &Style::default());
        assert!(written.contains("about 88 s (84 to 92), predicted from a 3 s sample"), "{written}");
    }

    #[test]
    fn both_spellings_of_a_path_are_labelled() {
        let written = text(&sample::moving(), &Style::default());
        assert!(written.contains("Linux    /mnt/c/src/shop\n"), "{written}");
        assert!(written.contains("Windows  C:\\src\\shop\n"), "{written}");
    }

    #[test]
    fn figures_of_different_work_get_no_ratio() {
        let mut report = sample::moving();
        report.measurements[1].same_work = false;
        report.measurements[1].speedup = None;
        let written = text(&report, &Style::default());
        assert!(written.contains("not comparable"), "{written}");
        assert!(written.contains("did not give the same answer"), "{written}");
    }

    #[test]
    fn plain_text_is_ascii_where_the_locale_is() {
        for (name, report) in sample::all() {
            let written = text(&report, &Style { unicode: false, explain: true, ..Style::default() });
            assert!(written.is_ascii(), "{name}: {written}");
        }
    }

    #[test]
    fn losing_rules_are_shown_only_on_request() {
        let report = sample::moving();
        assert!(!text(&report, &Style::default()).contains("crlf-batch"));
        assert!(text(&report, &Style { explain: true, ..Style::default() }).contains("crlf-batch"));
    }
}
