//! Names and sentences that the text report, the one line and the page share, so that they never disagree.

use crate::advise::{Recommendation, Verdict};
use crate::facts::{FilesystemClass, Platform, Side, Site, Toolchain};
use crate::judge::{Hazard, Severity, Strength, Tier};
use crate::measure::{Measurement, Method, STAT, Sample};

use super::Report;
use crate::format;

/// Mount options that a reader can act on, or that explain a figure; the other twenty are noise.
const TELLING_OPTIONS: [&str; 12] = [
    "cache",
    "msize",
    "metadata",
    "case",
    "vers",
    "actimeo",
    "noac",
    "ro",
    "sync",
    "attr_timeout",
    "entry_timeout",
    "dax",
];

/// What stands in the place of the size where nothing was cloned yet.
const NO_REPOSITORY: &str = "no repository yet";
/// What stands in the place of a figure that was not taken.
pub(super) const NOT_MEASURED: &str = "not measured";

/// Returns the name of a workload as a person says it, with what its figure counts.
pub(super) fn workload(measurement: &Measurement) -> String {
    let name = workload_name(measurement);
    if name == STAT { format!("{name}, per file") } else { name }
}

/// Returns the bare name of a workload as a person says it.
pub(super) fn workload_name(measurement: &Measurement) -> String {
    measurement.workload.replace('_', " ")
}

/// Returns a place's filesystem in half a line: type, source, what it is, and the options that tell.
pub(super) fn filesystem(site: &Site) -> String {
    let mut details = Vec::new();
    if site.name != site.fstype {
        details.push(site.name.clone());
    }
    let is_news = |transport: &&String| **transport != site.fstype && **transport != site.name;
    details.extend(site.transport.iter().filter(is_news).cloned());
    let is_telling = |option: &&str| TELLING_OPTIONS.contains(&option.split('=').next().unwrap_or_default());
    for option in site.options.split(',').filter(is_telling) {
        if !details.iter().any(|known| known == option) {
            details.push(option.to_owned());
        }
    }
    if site.read_only && !details.iter().any(|known| known == "ro") {
        details.push("read-only".to_owned());
    }
    let place =
        if site.source.is_empty() || site.source == "none" { String::new() } else { format!(" on {}", site.source) };
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    format!("{}{place}{details}", site.fstype)
}

/// Returns the spellings of a place with their labels: one without a label where there is only one.
pub(super) fn spellings(site: &Site) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    match &site.windows_path {
        Some(windows) => {
            out.push(("Linux", site.path.clone()));
            if site.real_path != site.path {
                out.push(("resolved", site.real_path.clone()));
            }
            out.push(("Windows", windows.clone()));
        }
        None if site.real_path != site.path => {
            out.push(("as given", site.path.clone()));
            out.push(("resolved", site.real_path.clone()));
        }
        None => out.push(("", site.path.clone())),
    }
    out
}

/// Returns the room at the target, as far as it is known.
pub(super) fn free_room(report: &Report) -> Option<String> {
    let target = report.facts.target.as_ref()?;
    let own = target.free_bytes.map(|free| format!("{} free", format::bytes(free)));
    let host = target
        .host_free_bytes
        .map(|free| format!("{} on the Windows drive that holds its disk image", format::bytes(free)));
    match (own, host) {
        (Some(own), Some(host)) => Some(format!("{own}; {host}")),
        (own, host) => own.or(host),
    }
}

/// Returns the repository's size in one sentence.
pub(super) fn size(report: &Report) -> String {
    let Some(repo) = &report.facts.repo else { return NO_REPOSITORY.to_owned() };
    if repo.bare {
        return "bare repository, no worktree".to_owned();
    }
    let Some(files) = repo.tracked_files else { return "tracked files unknown: there is no index".to_owned() };
    let mut parts = vec![format::counted(files, "tracked file", "tracked files")];
    parts.extend(repo.dirs.map(|dirs| format::counted(dirs, "directory", "directories")));
    parts.extend(repo.tracked_bytes.map(format::bytes));
    parts.extend(repo.index_bytes.map(|size| format!("index {}", format::bytes(size))));
    if repo.submodules > 0 {
        parts.push(format::counted(repo.submodules, "submodule", "submodules"));
    }
    if let Some(worktrees) = repo.worktrees.filter(|&number| number > 0) {
        parts.push(format::counted(worktrees, "linked worktree", "linked worktrees"));
    }
    if repo.skip_worktree > 0 {
        parts.push(format!("{} outside the sparse checkout", format::count(repo.skip_worktree)));
    }
    parts.join(", ")
}

/// Returns the primary toolchain with its certainty, or what set it.
pub(super) fn toolchain(report: &Report) -> String {
    let Some(facts) = &report.facts.toolchain else {
        // Before a clone nothing tells but the user.
        let is_before_clone = report.facts.repo.is_none();
        return if is_before_clone { "not judged; `--primary` tells it" } else { "not judged" }.to_owned();
    };
    let name = toolchain_name(facts.primary);
    match &facts.overridden_by {
        Some(by) => format!("{name}, set by {by}"),
        None => format!("{name}, {}", format::percent(facts.confidence)),
    }
}

/// Returns what speaks most for the primary toolchain, the strongest first, at most `limit`.
pub(super) fn leading_evidence(report: &Report, limit: usize) -> Vec<String> {
    let Some(primary) = report.facts.toolchain.as_ref().map(|facts| facts.primary) else { return Vec::new() };
    report
        .evidence
        .iter()
        .filter(|evidence| evidence.counted && (evidence.toolchain == primary || primary == Toolchain::Mixed))
        .take(limit)
        .map(|evidence| evidence.because.trim().to_owned())
        .collect()
}

/// Returns who wrote the index, as half a sentence.
pub(super) fn index_writer(report: &Report) -> Option<&'static str> {
    report.facts.repo.as_ref()?.index_written_by.map(|side| match side {
        Side::Linux => "index last written by Linux git",
        Side::Windows => "index last written by Git for Windows",
        Side::Mixed => "index written by git of both sides",
    })
}

/// Returns the name of a toolchain.
pub(super) fn toolchain_name(toolchain: Toolchain) -> &'static str {
    match toolchain {
        Toolchain::Linux => "Linux",
        Toolchain::Windows => "Windows",
        Toolchain::Either => "either side",
        Toolchain::Mixed => "both sides",
    }
}

/// Returns the name of a platform.
pub(super) fn platform(platform: Platform) -> &'static str {
    match platform {
        Platform::Linux => "Linux",
        Platform::Wsl1 => "WSL 1",
        Platform::Wsl2 => "WSL 2",
        Platform::Container => "container",
        Platform::Macos => "macOS",
    }
}

/// Returns what a filesystem class means.
pub(super) fn class(class: FilesystemClass) -> &'static str {
    match class {
        FilesystemClass::LocalNative => "local disk filesystem",
        FilesystemClass::WindowsDrive => "Windows drive",
        FilesystemClass::VmShared => "folder shared into a virtual machine",
        FilesystemClass::Network => "network filesystem",
        FilesystemClass::Memory => "memory, gone at the next restart",
        FilesystemClass::Overlay => "container layer or union mount",
        FilesystemClass::Fuse => "FUSE filesystem",
    }
}

/// Returns the name of a tier of evidence.
pub(super) fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::HostOnly => "host-only",
        Tier::Build => "build",
        Tier::Metadata => "metadata",
        Tier::Hint => "hint",
    }
}

/// Returns the name of a strength.
pub(super) fn strength(strength: Strength) -> &'static str {
    match strength {
        Strength::Null => "null",
        Strength::Weak => "weak",
        Strength::Medium => "medium",
        Strength::Strong => "strong",
    }
}

/// Returns the name of the copy's side: `ext4 copy`.
pub(super) fn copy_side(report: &Report) -> String {
    report.facts.target.as_ref().map_or_else(|| "copy".to_owned(), |target| format!("{} copy", target.site.fstype))
}

/// Returns a sample's figure, with the word that says how sure it is: `951 ms`, `about 88 s`, `at least 9.6 s`.
pub(super) fn figure(sample: &Sample) -> String {
    let value = format::seconds(sample.median);
    match sample.method {
        Method::Run => value,
        Method::Predicted => format!("about {value}"),
        Method::AtLeast => format!("at least {value}"),
    }
}

/// Returns a sample's figure with its interval: `about 88 s (84 to 92)`.
pub(super) fn figure_with_interval(sample: &Sample) -> String {
    match (sample.low, sample.high) {
        (Some(low), Some(high)) if sample.method != Method::AtLeast => {
            let interval = format::seconds_interval(low, sample.median, high);
            // Rounds that read the same are no interval.
            if interval.contains(" to ") { format!("{} ({interval})", figure(sample)) } else { figure(sample) }
        }
        _ => figure(sample),
    }
}

/// Returns the ratio of a measurement in words; says so where there is none.
pub(super) fn speedup(measurement: &Measurement) -> String {
    match &measurement.speedup {
        Some(speedup) if measurement.in_place.method == Method::AtLeast => {
            format!("at least {}", format::ratio(speedup.mid))
        }
        Some(speedup) => format::ratio(speedup.mid),
        None if measurement.in_copy.is_some() && measurement.in_place.method == Method::AtLeast => {
            "not known".to_owned()
        }
        None if measurement.in_copy.is_some() && !measurement.same_work => "not comparable".to_owned(),
        None if measurement.in_copy.is_some() => "not known".to_owned(),
        None => NOT_MEASURED.to_owned(),
    }
}

/// Returns what a reader must know about a measurement beyond its row: predictions, bounds, different work, its note.
pub(super) fn remarks(measurement: &Measurement) -> Vec<String> {
    let name = workload(measurement);
    let mut out = Vec::new();
    if measurement.in_place.method == Method::Predicted {
        let figure = figure_with_interval(&measurement.in_place);
        out.push(format!("{name} in place: {figure}, {}", predicted(&measurement.in_place)));
    }
    if let Some(now) = &measurement.now {
        out.push(format!(
            "{name} with the index as it is now: {}, since git reads the files whose stat data differ; the figure above \
             is the one after an ordinary `git status` has mended that",
            figure_with_interval(now)
        ));
    }
    let note = measurement.note.as_deref().map(str::trim).filter(|note| !note.is_empty());
    out.extend(note.map(|note| format!("{name}: {note}")));
    let is_different = measurement.in_copy.is_some() && !measurement.same_work;
    if is_different && measurement.in_place.method != Method::AtLeast && note.is_none() {
        out.push(format!("{name}: the two sides did not give the same answer, so there is no ratio"));
    }
    out
}

fn predicted(sample: &Sample) -> String {
    match sample.sampled_s {
        Some(sampled_s) => format!("predicted from a {} sample", format::rough_seconds(sampled_s)),
        None => "predicted from a sample".to_owned(),
    }
}

/// Returns the verdict as a headline without full stop.
pub(super) fn headline(report: &Report) -> String {
    let Some(recommendation) = &report.recommendation else { return "NO ANSWER: the run did not finish".to_owned() };
    let blockers = blockers(&report.hazards);
    if report.facts.repo.is_none() {
        return clone_headline(report, recommendation);
    }
    let after = match blockers {
        0 => String::new(),
        1 => ", after the blocker below is solved".to_owned(),
        number => format!(", after the {} blockers below are solved", format::count(number)),
    };
    match recommendation.verdict {
        Verdict::Move => format!("MOVE to {}{after}", target_name(report)),
        Verdict::MoveToWindows => format!("MOVE to the Windows side{after}"),
        Verdict::Stay => "STAY here".to_owned(),
        Verdict::Tune => "STAY here, and change these settings".to_owned(),
        Verdict::Inconclusive => "NO CLEAR ANSWER".to_owned(),
    }
}

/// Returns the verdict as a headline where nothing is there yet.
fn clone_headline(report: &Report, recommendation: &Recommendation) -> String {
    match recommendation.verdict {
        Verdict::Move => format!("CLONE to {}, not here", target_name(report)),
        Verdict::MoveToWindows => "CLONE on the Windows side, not here".to_owned(),
        Verdict::Stay | Verdict::Tune => "CLONE here".to_owned(),
        Verdict::Inconclusive => "NO CLEAR ANSWER".to_owned(),
    }
}

/// Returns the name of the target's filesystem, also where none was found.
pub(super) fn target_name(report: &Report) -> &str {
    report.facts.target.as_ref().map_or("a local Linux filesystem", |target| &target.site.fstype)
}

/// Returns the heading of the list of hazards, which depends on the verdict.
pub(super) fn hazards_heading(report: &Report) -> &'static str {
    match report.recommendation.as_ref().map(|recommendation| recommendation.verdict) {
        Some(Verdict::Stay | Verdict::Tune) => "If you move all the same",
        _ => "Before you move",
    }
}

/// Returns what to do about a hazard, and that `rehome move` does it where that is so.
pub(super) fn fix(hazard: &Hazard) -> String {
    let fix = hazard.fix.trim();
    if !hazard.handled_by_move || fix.contains("rehome move") {
        fix.to_owned()
    } else if fix.is_empty() {
        "rehome move does what is needed".to_owned()
    } else {
        format!("{fix} (rehome move does it)")
    }
}

/// What `rehome move` would do with a repository, in its order: each step with what it comes to here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The step.
    pub(super) say: String,
    /// Its particulars, where there are any.
    pub(super) items: Vec<String>,
}

/// Returns the steps of the move that is advised or offered; none where there is nothing to move.
///
/// The scan knows what stands in the way and what has to be repaired. How many files are ignored, and which of them can
/// be made again, only a walk through the worktree tells, which `rehome move --dry-run` makes.
pub(super) fn plan(report: &Report) -> Vec<Step> {
    let advice = report.recommendation.as_ref();
    let is_move = advice.is_some_and(|advice| advice.verdict == Verdict::Move && advice.command.is_some());
    let Some(repo) = report.facts.repo.as_ref().filter(|_| is_move) else { return Vec::new() };
    let step = |say: &str, items: Vec<String>| Step { say: say.to_owned(), items };
    let of = |severity: Severity, handled: bool| -> Vec<&Hazard> {
        let fits = |hazard: &&Hazard| hazard.severity == severity && hazard.handled_by_move == handled;
        report.hazards.iter().filter(fits).collect()
    };
    let fixes = |hazards: Vec<&Hazard>| hazards.into_iter().map(|hazard| hazard.fix.trim().to_owned()).collect();
    let mut steps = Vec::new();
    let blockers: Vec<String> = fixes(of(Severity::Blocker, false));
    if !blockers.is_empty() {
        steps.push(step("You solve what stands in the way", blockers));
    }
    let size = [
        repo.tracked_files.map(|files| format::counted(files, "tracked file", "tracked files")),
        repo.tracked_bytes.map(format::bytes),
    ];
    steps.push(step(
        "rehome copies the git dir, the tracked files, and what is untracked or ignored but cannot be made again; what a \
         tool makes again is left out and listed",
        size.into_iter().flatten().collect(),
    ));
    let handled = report.hazards.iter().filter(|hazard| hazard.handled_by_move);
    let repairs: Vec<String> = handled.map(|hazard| hazard.say.trim().to_owned()).collect();
    if !repairs.is_empty() {
        steps.push(step("It makes right for the new side", repairs));
    }
    steps.push(step(
        "It reads the copy back and compares every file, ref and stash and the real changes; only then does the copy get its \
         name. The old one stays as it was",
        Vec::new(),
    ));
    let after: Vec<String> =
        fixes(of(Severity::Warning, false)).into_iter().chain(fixes(of(Severity::Note, false))).collect();
    if !after.is_empty() {
        steps.push(step("You see to the rest", after));
    }
    steps
}

/// Returns the number of blockers.
pub(super) fn blockers(hazards: &[Hazard]) -> u64 {
    hazards.iter().filter(|hazard| hazard.severity == Severity::Blocker).count() as u64
}

/// Returns the command that carries out the advice, safe to print and to paste.
///
/// A control character in a path would act on the terminal, and its escape in plain quotes would name another file:
/// such an argument is written in the shell's `$'...'` form.
pub(super) fn command_line(recommendation: &Recommendation) -> Option<String> {
    match (&recommendation.command_line, &recommendation.command) {
        (Some(line), _) if !has_unsafe(line) => Some(line.clone()),
        (_, Some(arguments)) => Some(arguments.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ")),
        (line, None) => line.clone(),
    }
}

/// Returns the advised move as a command that only shows its plan; `None` where the advice is no move by rehome.
pub(super) fn dry_run(recommendation: &Recommendation) -> Option<String> {
    let [program, command, arguments @ ..] = recommendation.command.as_deref()? else { return None };
    if (program.as_str(), command.as_str()) != ("rehome", "move") {
        return None;
    }
    let words = ["rehome", "move", "--dry-run"].into_iter().chain(arguments.iter().map(String::as_str));
    Some(words.map(quoted).collect::<Vec<_>>().join(" "))
}

fn quoted(argument: &str) -> String {
    if !has_unsafe(argument) {
        return shell_words::quote(argument).into_owned();
    }
    let mut out = String::from("$'");
    for c in argument.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_unsafe(c) => out.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02x}"))),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

fn has_unsafe(text: &str) -> bool {
    text.chars().any(is_unsafe)
}

fn is_unsafe(c: char) -> bool {
    crate::error::printable_text(c.encode_utf8(&mut [0; 4])).chars().ne(std::iter::once(c))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::super::sample;
    use super::*;

    /// Any text that an argument can hold, with what a shell or a terminal reads as its own more often.
    fn text() -> impl Strategy<Value = String> {
        let special = "'\"\\$`!*?[]{}()<>|&;~#=%-^ \t\r\n\u{1b}\u{7f}\u{202e}\u{9b}f0";
        let special = prop::sample::select(special.chars().collect::<Vec<_>>());
        let any = any::<char>().prop_filter("no argument holds NUL", |c| *c != '\0');
        prop::collection::vec(prop_oneof![any, special], 0..30).prop_map(String::from_iter)
    }

    fn through(shell: &str, line: &str) -> Vec<u8> {
        let output = Command::new(shell).args(["-c", &format!("printf '%s\\0' {line}")]).output().unwrap();
        output.stdout
    }

    proptest! {
        #[test]
        fn a_command_that_is_pasted_has_the_same_arguments_and_does_nothing_to_the_terminal(
            words in prop::collection::vec(text(), 1..6),
        ) {
            let mut advice = sample::moving().recommendation.unwrap();
            advice.command_line = Some(shell_words::join(&words));
            advice.command = Some(words.clone());
            let line = command_line(&advice).unwrap();
            prop_assert!(!has_unsafe(&line), "{:?}", line);
            let expected: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
            // `$'...'` is not known to every plain `sh`.
            prop_assert_eq!(&through("bash", &line), &expected);
            if !words.iter().any(|word| has_unsafe(word)) {
                prop_assert_eq!(&through("sh", &line), &expected);
            }
        }
    }

    #[test]
    fn a_control_character_in_the_command_is_quoted_so_that_it_can_be_pasted() {
        let mut advice = sample::moving().recommendation.unwrap();
        let path = "/mnt/c/it's\u{1b}[31m\u{202e}x";
        advice.command = Some(vec!["rehome".into(), "move".into(), path.into(), "/home/me/a b".into()]);
        advice.command_line = Some(format!("rehome move '{path}' '/home/me/a b'"));
        assert_eq!(
            command_line(&advice).unwrap(),
            "rehome move $'/mnt/c/it\\'s\\x1b[31m\\xe2\\x80\\xaex' '/home/me/a b'"
        );
    }

    #[test]
    fn a_bound_a_prediction_and_a_run_read_differently() {
        let mut sample = sample::run(&[9.6, 9.7, 9.8]);
        assert_eq!(figure_with_interval(&sample), "9.7 s (9.6 to 9.8)");
        sample.method = Method::AtLeast;
        assert_eq!(figure_with_interval(&sample), "at least 9.7 s");
        assert_eq!(figure_with_interval(&sample::predicted(84.0, 88.0, 92.0)), "about 88 s (84 to 92)");
    }

    #[test]
    fn options_that_say_nothing_to_a_person_are_left_out() {
        let site = sample::moving().facts.site;
        assert_eq!(filesystem(&site), "9p on C:\\ (WSL 2 DrvFs, 9p/fd, cache=mmap, msize=65536)");
    }

    #[test]
    fn the_plan_has_what_stands_in_the_way_first_and_none_where_nothing_moves() {
        let mut report = sample::moving();
        report.hazards = vec![
            sample::hazard(Severity::Blocker, "a merge is under way", "finish it", false),
            sample::hazard(Severity::Warning, "a cloud client watches the folder", "pause it", false),
            sample::hazard(Severity::Warning, "the index is of Windows", "", true),
        ];
        let steps = plan(&report);
        assert_eq!(steps.len(), 5, "{steps:#?}");
        assert_eq!(steps[0].items, ["finish it"]);
        assert_eq!(steps[1].items, ["1,284 tracked files", "38 MB"]);
        assert_eq!(steps[2].items, ["the index is of Windows"]);
        assert_eq!(steps[4].items, ["pause it"]);
        assert_eq!(plan(&sample::native()), []);
        report.facts.repo = None;
        assert_eq!(plan(&report), []);
    }

    #[test]
    fn a_place_without_a_repository_is_spoken_of_as_one_for_a_clone() {
        let mut report = sample::moving();
        report.facts.repo = None;
        assert_eq!(headline(&report), "CLONE to ext4, not here");
        assert_eq!(size(&report), "no repository yet");
        report.recommendation.as_mut().unwrap().verdict = Verdict::Stay;
        assert_eq!(headline(&report), "CLONE here");
    }

    #[test]
    fn a_blocker_shows_in_the_headline() {
        let mut report = sample::moving();
        assert_eq!(headline(&report), "MOVE to ext4");
        report.hazards.push(sample::hazard(Severity::Blocker, "a merge is under way", "finish it", false));
        assert_eq!(headline(&report), "MOVE to ext4, after the blocker below is solved");
    }
}
