//! Names and sentences that the text and the page share.

use crate::bench::compare::{Column, Comparison, Group, RelayCost, Row};
use crate::bench::result::{BenchReport, Failure, Machine, PlaceFigure, Round, Setup, Suite};
use crate::facts::Platform;
use crate::format;
use crate::report::words;

/// Sizes that are written in binary units, the largest first.
const BINARY_UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Returns a size that somebody chose, exactly: `4 KiB`, `512 MiB`, `100 bytes`.
pub(super) fn size(bytes: u64) -> String {
    match BINARY_UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", format::count(bytes / unit)),
        None => format::counted(bytes, "byte", "bytes"),
    }
}

/// Returns the letter that stands for a column: `A`, `B`, ... `Z`, then `A1`, `B1`, ...
pub(super) fn letter(column: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let letter = char::from(LETTERS[column % LETTERS.len()]);
    match column / LETTERS.len() {
        0 => letter.to_string(),
        turn => format!("{letter}{turn}"),
    }
}

/// Returns what a column is, in half a line.
pub(super) fn place(column: &Column) -> String {
    let site = column.place.site.as_ref();
    site.map_or_else(|| "filesystem unknown".to_owned(), words::filesystem)
}

/// Returns the machine in half a line.
pub(super) fn machine(machine: &Machine) -> String {
    let mut parts = vec![format!("Linux {}", machine.kernel)];
    parts.extend(machine.platform.map(|platform| platform_name(platform).to_owned()));
    parts.extend(machine.cpus.map(|cpus| format::counted(cpus, "processor", "processors")));
    parts.extend(machine.git_version.as_ref().map(|version| format!("git {version}")));
    parts.join(", ")
}

fn platform_name(platform: Platform) -> &'static str {
    match platform {
        Platform::Linux => "no WSL",
        Platform::Wsl1 => "WSL 1",
        Platform::Wsl2 => "WSL 2",
        Platform::Container => "container",
        Platform::Macos => "macOS",
    }
}

/// Returns how much work a group is, as the beginning of a sentence.
pub(super) fn work(suite: Suite, setup: &Setup) -> String {
    let files = |what: &str| {
        let count = setup.files.map_or_else(|| "files".to_owned(), format::count);
        let size = setup.size_bytes.map_or_else(String::new, |bytes| format!(" of {}", size(bytes)));
        format!("{count} {what}{size}")
    };
    match suite {
        Suite::Small => {
            let dirs = setup
                .dirs
                .map_or_else(String::new, |dirs| format!(" in {}", format::counted(dirs, "directory", "directories")));
            let sync = if setup.fsync == Some(true) { ", each through to the disk (fsync)" } else { "" };
            format!("{}{dirs}{sync}", files("files"))
        }
        Suite::Seq => match setup.bytes {
            Some(bytes) => format!("one file of {}", size(bytes)),
            None => files("small files"),
        },
        Suite::Stream => format!("{} through a pipe into one file", setup.bytes.map_or_else(String::new, size)),
        Suite::Walk => {
            let counts: Vec<String> = setup.tree_files.iter().map(|files| format::count(*files)).collect();
            if counts.is_empty() { "a tree".to_owned() } else { format!("a tree of {} files", counts.join(" and ")) }
        }
        Suite::Git => format!("{}, one of them modified", files("tracked files")),
    }
}

/// Returns the name of a phase as a person says it.
pub(super) fn phase(name: &str) -> String {
    if let Some(size) = name.strip_prefix("write_") {
        let unit = size.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = size.trim_end_matches(unit);
        return format!("{number} {}", if unit == "k" { "KiB" } else { "MiB" });
    }
    match name.rsplit_once('_') {
        Some(("du", _)) => "du -s".to_owned(),
        Some((walk, _)) => walk.to_owned(),
        None if name == "du" => "du -s".to_owned(),
        None => name.to_owned(),
    }
}

/// Returns the rounds behind a row: `6 rounds`, or `4 to 6 rounds` where the places differ.
pub(super) fn rounds(group: &Group) -> String {
    let counts = group.rows.iter().flat_map(|row| &row.figures).map(|figure| figure.runs.len() as u64);
    let (low, high) = counts.fold((u64::MAX, 0), |(low, high), count| (low.min(count), high.max(count)));
    match (low, high) {
        (_, 0) => "no round that counts".to_owned(),
        (low, high) if low == high => format::counted(high, "round", "rounds"),
        (low, high) => format!("{low} to {high} rounds"),
    }
}

/// Returns the ratio to the fastest, with its interval where there is one; the fastest has no ratio.
pub(super) fn ratio(figure: &PlaceFigure) -> String {
    if is_fastest(figure) {
        return "fastest".to_owned();
    }
    match figure.ratio_low.zip(figure.ratio_high) {
        Some((low, high)) => {
            format!("{} ({})", format::ratio(figure.ratio), format::ratio_interval(low, high))
        }
        None => format::ratio(figure.ratio),
    }
}

/// Returns whether a place is the one that the others are compared with.
pub(super) fn is_fastest(figure: &PlaceFigure) -> bool {
    figure.ratio <= 1.0
}

/// Returns the time of one operation or the throughput, whichever says more; empty where neither applies.
pub(super) fn rate(suite: Suite, row: &Row, figure: &PlaceFigure) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two digits are printed")]
    let per_second = |number: u64| number as f64 / figure.median;
    match (suite, row.bytes, row.operations) {
        (Suite::Seq | Suite::Stream, Some(bytes), _) if figure.median > 0.0 => {
            format!("{}/s", format::bytes(whole(per_second(bytes))))
        }
        (_, _, Some(operations)) if operations > 1 && figure.median > 0.0 => {
            format!("{} each", format::seconds(1.0 / per_second(operations)))
        }
        _ => String::new(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a throughput is positive and below 2^64")]
fn whole(value: f64) -> u64 {
    value as u64
}

/// Returns what a relay that writes 4 KiB at a time costs, as a sentence; `None` where the figures do not show a cost.
pub(super) fn relay(cost: &RelayCost) -> Option<String> {
    let (low, high) = cost.low.zip(cost.high).filter(|(low, _)| *low > 1.0)?;
    Some(format!(
        "on {} a stream takes {} ({}) as long in writes of 4 KiB as in writes of 1 MiB",
        letter(cost.column),
        format::ratio(cost.factor),
        format::ratio_interval(low, high)
    ))
}

/// Returns why a round does not count, as a sentence; `None` for one that does, and for a good warm-up.
///
/// `first` is the column of the run's first place.
pub(super) fn lost_round(round: &Round, first: usize) -> Option<String> {
    let why = round.why_not.as_ref()?;
    let which = if round.round == 0 { "the warm-up".to_owned() } else { format!("round {}", round.round) };
    Some(format!("{which} on {} does not count: {why}", letter(first + round.place)))
}

/// Returns what could not be measured, as a sentence; `first` is the column of the run's first place.
pub(super) fn failure(failure: &Failure, first: usize) -> String {
    let place = failure.place.map_or_else(String::new, |place| format!("{}: ", letter(first + place)));
    let hint = failure.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
    format!("{place}not measured: {}{hint}", failure.message)
}

/// Returns how each scratch directory ended: its path, and whether it is gone.
pub(super) fn scratches(report: &BenchReport) -> Vec<(String, bool)> {
    report
        .places
        .iter()
        .filter_map(|place| place.scratch.as_ref())
        .map(|scratch| (scratch.path.clone(), scratch.gone))
        .collect()
}

/// Returns the title of a column: its file, if any, and its path.
pub(super) fn title(column: &Column) -> String {
    match &column.file {
        Some(file) => format!("{file}: {}", column.place.path),
        None => column.place.path.clone(),
    }
}

/// Returns whether the columns are of more than one machine.
pub(super) fn has_several_machines(comparison: &Comparison) -> bool {
    comparison.columns.windows(2).any(|pair| pair[0].machine != pair[1].machine || pair[0].file != pair[1].file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_phases_have_the_names_that_people_use() {
        assert_eq!(size(4096), "4 KiB");
        assert_eq!(size(512 << 20), "512 MiB");
        assert_eq!(size(1000), "1,000 bytes");
        assert_eq!(phase("write_4k"), "4 KiB");
        assert_eq!(phase("write_1m"), "1 MiB");
        assert_eq!(phase("du_4700"), "du -s");
        assert_eq!(phase("walk_100000"), "walk");
        assert_eq!(phase("create"), "create");
        assert_eq!((letter(0), letter(25), letter(27)), ("A".to_owned(), "Z".to_owned(), "B1".to_owned()));
    }
}
