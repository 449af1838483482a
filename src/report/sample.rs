//! Reports for tests: one of each kind that a person can meet.

use crate::advise::{Alternative, Recommendation, Tune, Verdict};
use crate::facts::{
    Facts, FilesystemClass, GitFacts, HazardFacts, Platform, RepoFacts, Side, Site, Target, Toolchain, ToolchainFacts,
};
use crate::judge::{Evidence, Hazard, Severity, Strength, Tier};
use crate::measure::{Latency, Measurement, Method, Sample, Speedup};

use super::{Cost, Report, SCHEMA_VERSION};

pub(crate) fn run(runs: &[f64]) -> Sample {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    Sample {
        runs: runs.to_vec(),
        median: sorted[sorted.len() / 2],
        low: Some(sorted[0]),
        high: Some(sorted[sorted.len() - 1]),
        method: Method::Run,
        sampled_s: None,
        latency: None,
    }
}

pub(crate) fn predicted(low: f64, median: f64, high: f64) -> Sample {
    Sample {
        runs: vec![],
        median,
        low: Some(low),
        high: Some(high),
        method: Method::Predicted,
        sampled_s: Some(3.02),
        latency: None,
    }
}

pub(crate) fn hazard(severity: Severity, say: &str, fix: &str, handled_by_move: bool) -> Hazard {
    Hazard { rule: "a-rule".into(), severity, say: say.into(), fix: fix.into(), handled_by_move }
}

fn evidence(
    rule: &str,
    toolchain: Toolchain,
    tier: Tier,
    because: &str,
    matched: &str,
    share: Option<f64>,
) -> Evidence {
    Evidence {
        rule: rule.into(),
        toolchain,
        tier,
        strength: Strength::Medium,
        because: because.into(),
        matched: matched.into(),
        counted: share.is_some(),
        share,
    }
}

fn drive() -> Site {
    Site {
        path: "/mnt/c/src/shop".into(),
        real_path: "/mnt/c/src/shop".into(),
        mount_point: "/mnt/c".into(),
        fstype: "9p".into(),
        source: "C:\\".into(),
        options: "rw,noatime,aname=drvfs;path=C:\\;uid=1000;gid=1000,cache=mmap,access=client,msize=65536,trans=fd"
            .into(),
        class: FilesystemClass::WindowsDrive,
        name: "WSL 2 DrvFs".into(),
        transport: Some("9p/fd".into()),
        read_only: false,
        windows_path: Some("C:\\src\\shop".into()),
        rule: "wsl2-drvfs-9p".into(),
    }
}

fn disk(path: &str) -> Site {
    Site {
        path: path.into(),
        real_path: path.into(),
        mount_point: "/".into(),
        fstype: "ext4".into(),
        source: "/dev/sdd".into(),
        options: "rw,relatime,discard,errors=remount-ro,data=ordered".into(),
        class: FilesystemClass::LocalNative,
        name: "ext4".into(),
        transport: None,
        read_only: false,
        windows_path: None,
        rule: "ext4".into(),
    }
}

fn repository() -> RepoFacts {
    RepoFacts {
        worktree: Some("/mnt/c/src/shop".into()),
        git_dir: "/mnt/c/src/shop/.git".into(),
        branch: Some("main".into()),
        object_format: "sha1".into(),
        ref_format: "files".into(),
        tracked_files: Some(1_284),
        tracked_bytes: Some(38_200_000),
        dirs: Some(96),
        index_bytes: Some(142_000),
        index_version: Some(2),
        index_written_by: Some(Side::Linux),
        remotes: vec!["origin".into()],
        ..RepoFacts::default()
    }
}

fn measured(
    workload: &str,
    in_place: Sample,
    in_copy: Option<Sample>,
    speedup: Option<(f64, f64, f64)>,
) -> Measurement {
    let saved_s = in_copy.as_ref().map(|copy| in_place.median - copy.median);
    Measurement {
        workload: workload.into(),
        unit: "s".into(),
        in_place,
        in_copy,
        speedup: speedup.map(|(low, mid, high)| Speedup { mid, low, high }),
        now: None,
        operations: None,
        failed: None,
        saved_s,
        same_work: true,
        note: None,
    }
}

fn latency(p50: f64, p95: f64, p99: f64) -> Latency {
    let below = (0..10).map(|step| p50 * (0.9 + 0.01 * f64::from(step)));
    let above = (0..10).map(|step| p50 + (p95 - p50) * f64::from(step) / 10.0);
    Latency { count: 7_704, p50, p95, p99, quantiles: below.chain(above).chain([p99]).collect() }
}

/// A repository on a Windows drive that Linux programs use: the case that the tool was made for.
#[expect(clippy::too_many_lines, reason = "one report, written out")]
pub(crate) fn moving() -> Report {
    let mut stat_place = run(&[4.62e-3, 4.70e-3, 4.71e-3, 4.69e-3, 4.88e-3, 4.70e-3]);
    stat_place.latency = Some(latency(4.7e-3, 6.1e-3, 11.8e-3));
    let mut stat_copy = run(&[2.3e-6, 2.2e-6, 2.3e-6, 2.2e-6, 2.25e-6, 2.2e-6]);
    stat_copy.latency = Some(latency(2.2e-6, 2.9e-6, 5.4e-6));
    let mut stat = measured("stat", stat_place, Some(stat_copy), Some((1_950.0, 2_087.0, 2_210.0)));
    stat.operations = Some(1_284);
    Report {
        schema_version: SCHEMA_VERSION,
        rehome_version: "0.1.0".into(),
        complete: true,
        facts: Facts {
            platform: Platform::Wsl2,
            site: drive(),
            target: Some(Target {
                site: disk("/home/me/src/shop"),
                free_bytes: Some(912_000_000_000),
                host_free_bytes: Some(212_000_000_000),
            }),
            repo: Some(repository()),
            git: Some(GitFacts { version: "2.47.3".into(), path: "/usr/bin/git".into() }),
            toolchain: Some(ToolchainFacts {
                primary: Toolchain::Linux,
                confidence: 0.97,
                overridden_by: None,
                committed: None,
            }),
            measure: std::collections::BTreeMap::new(),
            hazards: Some(HazardFacts::default()),
        },
        measurements: vec![
            stat,
            measured(
                "git_status",
                run(&[0.951, 0.948, 0.99, 0.951, 0.938, 0.97]),
                Some(run(&[0.0053, 0.0052, 0.0053, 0.0055, 0.0051, 0.0053])),
                Some((171.2, 180.06, 192.0)),
            ),
        ],
        evidence: vec![
            evidence(
                "node-native-linux",
                Toolchain::Linux,
                Tier::Build,
                "node_modules holds linux-x64",
                "node_modules/@esbuild/linux-x64",
                Some(0.62),
            ),
            evidence(
                "ci-ubuntu",
                Toolchain::Linux,
                Tier::Build,
                "CI runs on ubuntu",
                ".github/workflows/ci.yml",
                Some(0.31),
            ),
            evidence(
                "crlf-batch",
                Toolchain::Windows,
                Tier::Hint,
                "a batch file is at the root",
                "build.cmd",
                Some(0.07),
            ),
            evidence("eol-lf", Toolchain::Either, Tier::Hint, "line endings are pinned", ".gitattributes", None),
        ],
        hazards: vec![
            hazard(
                Severity::Warning,
                "3 tracked files hold CRLF and would show as modified on Linux",
                "rehome move converts them",
                true,
            ),
            hazard(
                Severity::Warning,
                "the folder is synced by OneDrive; a copy in WSL is not",
                "push to a remote first",
                false,
            ),
            hazard(Severity::Note, "the first git status after a move is slow once", "nothing to do", false),
        ],
        recommendation: Some(Recommendation {
            verdict: Verdict::Move,
            reason: "linux-primary-and-faster".into(),
            rule: "move-linux-faster".into(),
            say: "Every `git status` waits 0.95 s here and 5 ms there, and the Linux toolchain is the one in use."
                .into(),
            command: Some(["rehome", "move", "/mnt/c/src/shop", "/home/me/src/shop"].map(String::from).to_vec()),
            command_line: Some("rehome move /mnt/c/src/shop /home/me/src/shop".into()),
            alternatives: vec![Alternative {
                say: "keep only node_modules on ext4".into(),
                effect: "installs and builds get faster, git status stays as slow".into(),
            }],
        }),
        tune: vec![],
        notes: vec!["6 alternated rounds after a warm-up, caches warm, both sides gave the same answer".into()],
        cost: Cost {
            wall_s: 9.4,
            scan_calls_in_place: 31,
            scan_reads_in_place: 18,
            scan_bytes_in_place: 210_000,
            bytes_written_in_place: 0,
        },
    }
}

/// A repository that is where it should be.
pub(crate) fn native() -> Report {
    let mut report = moving();
    report.facts.platform = Platform::Linux;
    report.facts.site = disk("/home/me/src/shop");
    report.facts.target = None;
    report.measurements = vec![measured("git_status", run(&[0.0053, 0.0052, 0.0055]), None, None)];
    report.evidence.truncate(2);
    report.hazards.clear();
    report.notes = vec!["3 rounds after a warm-up; nothing to compare with, since this is the fast side".into()];
    report.recommendation = Some(Recommendation {
        verdict: Verdict::Stay,
        reason: "already-native".into(),
        rule: "stay-native".into(),
        say: "The repository is already on a local Linux filesystem; `git status` takes 5.3 ms.".into(),
        command: None,
        command_line: None,
        alternatives: vec![],
    });
    report
}

/// A repository so large that the work in place was sampled and computed.
pub(crate) fn predicting() -> Report {
    let mut report = moving();
    report.facts.repo.as_mut().unwrap().tracked_files = Some(90_412);
    let git_status = &mut report.measurements[1];
    git_status.in_place = predicted(84.0, 88.0, 92.0);
    git_status.in_copy = Some(run(&[0.21, 0.2, 0.22, 0.21, 0.21]));
    git_status.speedup = Some(Speedup { low: 390.0, mid: 419.0, high: 446.0 });
    git_status.saved_s = Some(87.8);
    report
}

/// A run that could not tell: the work did not end, and there was no target.
pub(crate) fn inconclusive() -> Report {
    let mut report = moving();
    report.complete = false;
    report.facts.target = None;
    let mut bound = run(&[9.6]);
    bound.method = Method::AtLeast;
    (bound.low, bound.high) = (None, None);
    report.measurements = vec![measured("git_status", bound, None, None)];
    report.notes = vec!["`git status` was stopped at the end of the budget".into()];
    let advice = report.recommendation.as_mut().unwrap();
    advice.verdict = Verdict::Inconclusive;
    advice.reason = "not-finished".into();
    advice.say = "One `git status` did not end within the budget; run again with `--budget 60s`.".into();
    (advice.command, advice.command_line) = (None, None);
    report
}

/// A Windows project that stays where it is and gets settings.
pub(crate) fn tuning() -> Report {
    let mut report = moving();
    report.facts.toolchain = Some(ToolchainFacts {
        primary: Toolchain::Windows,
        confidence: 0.997,
        overridden_by: Some("--primary".into()),
        committed: None,
    });
    report.tune = vec![Tune {
        rule: "untracked-cache".into(),
        say: "let git remember untracked files".into(),
        command: "git -C /mnt/c/src/shop config core.untrackedCache true".into(),
        effect: "`git status` walks only directories that changed".into(),
        source: "https://git-scm.com/docs/git-update-index#_untracked_cache".into(),
    }];
    let advice = report.recommendation.as_mut().unwrap();
    advice.verdict = Verdict::Tune;
    advice.reason = "windows-primary".into();
    advice.say = "Windows programs are the ones in use here, and they are fastest on their own drive.".into();
    (advice.command, advice.command_line) = (None, None);
    report
}

/// A report in which every text that a repository or a mount can choose tries to harm its reader.
pub(crate) fn hostile() -> Report {
    let attack = "\u{1b}]0;owned\u{7}\u{1b}[2J<script>alert(1)</script>\"'&\r\nMOVE\u{202e}";
    let mut report = moving();
    report.facts.site.path = format!("/mnt/c/{attack}");
    report.facts.site.real_path = format!("/mnt/c/real{attack}");
    report.facts.site.windows_path = Some(format!("C:\\{attack}"));
    report.facts.site.source = attack.into();
    report.facts.site.options = format!("cache={attack},{attack}");
    report.facts.site.name = attack.into();
    report.facts.site.fstype = attack.into();
    let repo = report.facts.repo.as_mut().unwrap();
    repo.branch = Some(attack.into());
    repo.remotes = vec![attack.into()];
    let target = report.facts.target.as_mut().unwrap();
    target.site.fstype = attack.into();
    target.site.path = attack.into();
    for evidence in &mut report.evidence {
        evidence.matched = attack.into();
        evidence.because = attack.into();
    }
    for hazard in &mut report.hazards {
        hazard.say = attack.into();
        hazard.fix = attack.into();
    }
    for measurement in &mut report.measurements {
        measurement.note = Some(attack.into());
        measurement.workload = attack.into();
    }
    report.notes = vec![attack.into()];
    let advice = report.recommendation.as_mut().unwrap();
    advice.say = attack.into();
    advice.command = Some(vec!["rehome".into(), "move".into(), attack.into()]);
    advice.command_line = Some(format!("rehome move '{attack}'"));
    advice.alternatives[0].say = attack.into();
    report.tune = vec![Tune {
        rule: attack.into(),
        say: attack.into(),
        command: attack.into(),
        effect: attack.into(),
        source: format!("javascript:{attack}"),
    }];
    report
}

/// One of each.
pub(crate) fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("moving", moving()),
        ("native", native()),
        ("predicting", predicting()),
        ("inconclusive", inconclusive()),
        ("tuning", tuning()),
        ("hostile", hostile()),
    ]
}

/// Saves the samples where `REHOME_SAMPLES_DIR` says, to look at them with `cargo run --example render`.
#[test]
fn samples_can_be_saved_for_looking_at() {
    let Some(dir) = std::env::var_os("REHOME_SAMPLES_DIR") else { return };
    for (name, report) in all() {
        let mut file = std::fs::File::create(std::path::Path::new(&dir).join(format!("{name}.json"))).unwrap();
        super::write_json(&report, &mut file).unwrap();
    }
}
