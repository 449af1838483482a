//! Situations that people met, and what they must be told: facts and files go in, hazards and advice come out.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::OnceLock;

use rehome::advise::{Advice, Verdict, advise};
use rehome::facts::{Facts, Toolchain};
use rehome::judge::{Judgement, Severity, judge};
use rehome::rules::RuleSet;
use rehome::rules::example::observed;
use rehome::rules::kinds::Example;
use rehome::rules::load::{RuleFile, assemble};
use serde_json::{Value, json};

/// What a person is told in one situation.
struct Told {
    judgement: Judgement,
    advice: Advice,
}

impl Told {
    fn verdict(&self) -> Verdict {
        self.advice.recommendation.verdict
    }

    fn reason(&self) -> &str {
        &self.advice.recommendation.reason
    }

    fn say(&self) -> &str {
        &self.advice.recommendation.say
    }

    fn hazard(&self, id: &str) -> Option<(Severity, &str, &str)> {
        let found = self.judgement.hazards.iter().find(|hazard| hazard.rule == id)?;
        Some((found.severity, found.say.as_str(), found.fix.as_str()))
    }

    fn alternatives(&self) -> String {
        let offered = &self.advice.recommendation.alternatives;
        offered.iter().map(|it| [&it.say, ": ", &it.effect, "\n"].concat()).collect::<Vec<_>>().concat()
    }

    fn tunes(&self, id: &str) -> bool {
        self.advice.tune.iter().any(|tune| tune.rule == id)
    }

    fn everything(&self) -> String {
        let hazards: Vec<String> = self.judgement.hazards.iter().map(|it| format!("{}: {}", it.say, it.fix)).collect();
        let tune: Vec<String> = self.advice.tune.iter().map(|it| format!("{}: {}", it.say, it.effect)).collect();
        format!("{}\n{}{}\n{}", self.say(), self.alternatives(), hazards.join("\n"), tune.join("\n"))
    }
}

fn rules() -> &'static RuleSet {
    static RULES: OnceLock<RuleSet> = OnceLock::new();
    RULES.get_or_init(|| RuleSet::builtin().unwrap())
}

/// Facts of a repository on a Windows drive in WSL 2, for a situation to change.
const DRIVE: &[(&str, &str)] = &[
    ("platform", "\"wsl2\""),
    ("site.path", "\"/mnt/c/src/app\""),
    ("site.real_path", "\"/mnt/c/src/app\""),
    ("site.mount_point", "\"/mnt/c\""),
    ("site.fstype", "\"9p\""),
    ("site.source", "\"C:\\\\\""),
    ("site.options", "\"rw,noatime,aname=drvfs;path=C:\\\\;uid=1000\""),
    ("site.class", "\"windows-drive\""),
    ("site.name", "\"WSL 2 DrvFs\""),
    ("site.transport", "\"9p/fd\""),
    ("site.read_only", "false"),
    ("site.windows_path", "\"C:\\\\src\\\\app\""),
    ("site.rule", "\"drvfs-9p\""),
    ("target.path", "\"/home/me\""),
    ("target.real_path", "\"/home/me\""),
    ("target.mount_point", "\"/\""),
    ("target.fstype", "\"ext4\""),
    ("target.source", "\"/dev/sdd\""),
    ("target.options", "\"rw,relatime\""),
    ("target.class", "\"local-native\""),
    ("target.name", "\"ext4\""),
    ("target.read_only", "false"),
    ("target.rule", "\"ext4\""),
    ("repo.worktree", "\"/mnt/c/src/app\""),
    ("repo.git_dir", "\"/mnt/c/src/app/.git\""),
    ("repo.remotes", "[\"origin\"]"),
];

/// `git status` is slow here and fast in the copy, far beyond doubt.
const SLOW: &str = "{ measure.git_status.in_place_s: 0.951, measure.git_status.in_copy_s: 0.0053, \
                    measure.git_status.speedup: 180, measure.git_status.speedup_low: 171, \
                    measure.git_status.speedup_high: 192, measure.git_status.saved_s: 0.946, \
                    measure.git_status.complete: true }";

/// `git status` is as fast here as in the copy.
const FAST: &str = "{ measure.git_status.in_place_s: 0.012, measure.git_status.in_copy_s: 0.011, \
                    measure.git_status.speedup: 1.1, measure.git_status.speedup_low: 0.9, \
                    measure.git_status.speedup_high: 1.3, measure.git_status.saved_s: 0.001, \
                    measure.git_status.complete: true }";

/// A small project that Linux programs alone build.
const LINUX: &str = "tracked: [configure.ac, Makefile.am, src/main.c]";
/// A small project that Windows programs alone build.
const WINDOWS: &str = "files: { App/App.csproj: '<Project Sdk=\"S\"><PropertyGroup><TargetFramework>net9.0-windows\
                       </TargetFramework></PropertyGroup></Project>' }";
/// A small project that both sides build.
const EITHER: &str = "tracked: [go.mod, main.go]\nfiles: { .github/workflows/ci.yml: \"on: push\\njobs:\\n  t:\\n    \
                      strategy: { matrix: { os: [ubuntu, windows, macos] } }\\n    runs-on: ${{ matrix.os }}-latest\\n\" }";

/// Judges and advises on a project, with further facts and files laid over it.
fn told(project: &str, facts: &[&str], more: &str) -> Told {
    told_by(rules(), project, facts, more)
}

fn told_by(rules: &RuleSet, project: &str, facts: &[&str], more: &str) -> Told {
    let mut example: Example = serde_yaml::from_str(project).unwrap();
    if !more.is_empty() {
        let more: Example = serde_yaml::from_str(more).unwrap();
        example.tracked.extend(more.tracked);
        example.modes.extend(more.modes);
        example.files.extend(more.files);
        example.local.extend(more.local);
        example.folders.extend(more.folders);
        example.links.extend(more.links);
        example.git_config.extend(more.git_config);
        example.index.extend(more.index);
    }
    for (name, value) in DRIVE {
        example.facts.insert((*name).to_owned(), serde_json::from_str(value).unwrap());
    }
    for facts in facts {
        let facts: std::collections::BTreeMap<String, Value> = serde_yaml::from_str(facts).unwrap();
        example.facts.extend(facts);
    }
    example.facts.retain(|_, value| !value.is_null());
    let observations = observed(&example, rules).unwrap();
    let facts = whole(&observations.material.facts);
    let judgement = judge(&observations, rules, None);
    let advice = advise(&facts, &judgement, rules, &observations);
    Told { judgement, advice }
}

/// Adds the facts that every scan knows, so that the tree is whole.
fn whole(given: &Value) -> Facts {
    let mut repo = serde_json::to_value(rehome::facts::RepoFacts::default()).unwrap();
    for (name, value) in given["repo"].as_object().unwrap() {
        repo[name] = value.clone();
    }
    let mut facts = given.clone();
    facts["repo"] = repo;
    if let Some(workloads) = facts.get_mut("measure").and_then(Value::as_object_mut) {
        for workload in workloads.values_mut() {
            if workload.get("complete").is_none() {
                workload["complete"] = json!(true);
            }
        }
    }
    serde_json::from_value(facts).unwrap()
}

/// The repository is on the distribution's own disk.
const ON_EXT4: &str = "{ site.path: /home/me/app, site.real_path: /home/me/app, site.mount_point: /, site.fstype: ext4, \
                       site.source: /dev/sdd, site.class: local-native, site.name: ext4, site.options: 'rw,relatime', \
                       site.windows_path: '\\\\wsl.localhost\\Ubuntu\\home\\me\\app', site.transport: null, \
                       repo.worktree: /home/me/app, repo.git_dir: /home/me/app/.git }";

/// The repository is in a folder that the host shares with a virtual machine.
const ON_SHARE: &str = "{ platform: linux, site.path: /vagrant, site.real_path: /vagrant, site.mount_point: /vagrant, \
                        site.fstype: vboxsf, site.source: vagrant, site.class: vm-shared, site.name: VirtualBox shared \
                        folder, site.windows_path: null, repo.worktree: /vagrant, repo.git_dir: /vagrant/.git }";

/// The repository is in a folder of the host, bound into a container.
const IN_CONTAINER: &str = "{ platform: container, site.mount_point: /workspace, site.path: /workspace, site.real_path: \
                            /workspace, target: null, repo.worktree: /workspace }";

#[test]
fn a01_a_folder_below_mnt_on_ext4_is_native_and_nothing_is_said_of_windows() {
    let told = told(LINUX, &[ON_EXT4, SLOW, "{ site.real_path: /mnt/data/app, site.mount_point: /mnt/data }"], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "already-native"));
    assert!(!told.everything().contains("Windows"), "{}", told.everything());
}

#[test]
fn a03_git_exe_is_offered_on_a_windows_drive_and_nowhere_else() {
    assert!(told(LINUX, &[SLOW], "").alternatives().contains("git.exe"));
    let share = told(LINUX, &[SLOW, "{ site.class: network, site.fstype: nfs4, site.mount_point: /mnt/nas }"], "");
    assert!(!share.alternatives().contains("git.exe"), "{}", share.alternatives());
}

#[test]
fn a12_in_a_container_the_advice_names_the_host_or_a_volume_and_no_path_inside() {
    let told = told(LINUX, &[IN_CONTAINER, SLOW], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Move, "container-bind-mount"));
    assert!(told.say().contains("volume") && told.say().contains("host"), "{}", told.say());
    assert!(told.advice.recommendation.command.is_none());
    assert!(!told.everything().contains("~/"), "{}", told.everything());
}

#[test]
fn a16_on_wsl_1_nothing_moves_whatever_was_measured() {
    for project in [LINUX, WINDOWS, EITHER] {
        let told = told(project, &[SLOW, "{ platform: wsl1 }"], "");
        assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "wsl1"));
    }
}

#[test]
fn a19_when_both_sides_work_on_one_copy_both_are_named_and_two_clones_are_offered() {
    let told = told(EITHER, &[SLOW, "{ repo.index_written_by: mixed }"], "");
    assert_eq!(told.judgement.toolchain.primary, Toolchain::Mixed);
    assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "both-sides-in-use"));
    assert!(told.say().contains("Linux") && told.say().contains("Windows"));
    assert!(told.alternatives().starts_with("Keep two clones"), "{}", told.alternatives());
}

#[test]
fn a20_a_copy_that_windows_git_works_on_is_left_on_its_drive() {
    let told = told(EITHER, &[SLOW, "{ repo.index_written_by: windows }"], "");
    assert_eq!(told.judgement.toolchain.primary, Toolchain::Windows);
    assert_eq!(told.verdict(), Verdict::Stay);
}

#[test]
fn a21_packages_for_both_systems_mean_that_both_sides_are_in_use() {
    let more = "files: { pnpm-workspace.yaml: \"supportedArchitectures:\\n  os: [win32, linux]\\n\" }";
    let told = told(EITHER, &[SLOW], more);
    assert_eq!(told.judgement.toolchain.primary, Toolchain::Mixed);
    assert_ne!(told.verdict(), Verdict::Move);
}

#[test]
fn a22_linux_scripts_do_not_outvote_the_compiler_that_is_used() {
    let more = "files: { Makefile: \"all:\\n\\t./build.sh\\n\" }\ntracked: [build.sh, test.sh]\nlocal: { \
                target/.rustc_info.json: 'host: x86_64-pc-windows-msvc' }";
    let told = told(EITHER, &[SLOW, "{ repo.index_written_by: windows }"], more);
    assert_eq!(told.judgement.toolchain.primary, Toolchain::Windows);
    assert_ne!(told.verdict(), Verdict::Move);
}

#[test]
fn a23_a_virtual_working_tree_is_not_moved() {
    let told = told(LINUX, &[SLOW], "git_config: { core.gvfs: 'true' }");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "virtual-worktree"));
    assert_eq!(told.hazard("virtual-worktree").unwrap().0, Severity::Blocker);
}

#[test]
fn a24_a29_windows_programs_and_links_from_the_old_place_are_spoken_of_before_a_move() {
    let told = told(LINUX, &[SLOW], "");
    assert_eq!(told.verdict(), Verdict::Move);
    let (_, say, fix) = told.hazard("windows-programs-slower").unwrap();
    assert!(say.contains("more slowly") && say.contains("links from the old place"), "{say}");
    assert!(fix.contains("editor"));
}

#[test]
fn a26_no_step_asks_for_changes_of_the_antivirus() {
    for project in [LINUX, EITHER, WINDOWS] {
        let text = told(project, &[SLOW], "").everything().to_lowercase();
        assert!(!text.contains("defender") && !text.contains("exclusion"), "{text}");
    }
}

#[test]
fn a28_worktrees_bring_a_word_about_programs_with_windows_of_the_other_side() {
    assert!(told(LINUX, &[SLOW, "{ repo.worktrees: 2 }"], "").hazard("worktrees-and-guis").is_some());
    assert!(told(LINUX, &[SLOW, "{ repo.worktrees: 0 }"], "").hazard("worktrees-and-guis").is_none());
}

#[test]
fn a31_when_the_copy_is_slow_too_configuration_and_hooks_are_named_and_not_the_disk() {
    let facts = "{ measure.git_status.in_place_s: 2.1, measure.git_status.in_copy_s: 1.9, \
                 measure.git_status.speedup_low: 1.0, measure.git_status.speedup_high: 1.3, measure.git_status.saved_s: 0.2 }";
    let told = told(LINUX, &[facts], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "moving-would-not-help"));
    assert!(told.say().contains("configuration") && told.say().contains("hooks"));
}

#[test]
fn a35_a_mount_that_does_not_finish_gives_a_lower_bound_and_a_next_step() {
    let facts = "{ measure.git_status.at_least_s: 10, measure.git_status.complete: false }";
    let told = told(LINUX, &[facts], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Inconclusive, "could-not-finish"));
    assert!(told.say().contains("at least 10") && told.say().contains("--budget"), "{}", told.say());
}

#[test]
fn a39_no_sentence_of_a_verdict_holds_a_factor_of_its_own() {
    let factor = regex::Regex::new(r"\d(\.\d+)?\s?(x\b|times|-fold|%)").unwrap();
    for rule in &rules().verdicts {
        assert!(!factor.is_match(&rule.say), "{}: {}", rule.id, rule.say);
    }
}

#[test]
fn a41_a_shared_folder_is_judged_by_what_was_measured_and_not_by_its_type() {
    assert_eq!(told(LINUX, &[ON_SHARE, SLOW], "").verdict(), Verdict::Move);
    let fast = told(LINUX, &[ON_SHARE, FAST], "");
    assert_eq!((fast.verdict(), fast.reason()), (Verdict::Stay, "fast-enough"));
}

#[test]
fn a42_f24_the_choices_are_ranked_and_staying_has_its_price_beside_it() {
    let alternatives = told(EITHER, &[SLOW, "{ repo.dirs: 4000 }"], "").alternatives();
    assert!(
        alternatives.starts_with("Leave it where it is: nothing changes; each `git status` keeps taking 951 ms"),
        "{alternatives}"
    );
    assert!(alternatives.contains("git.exe") && alternatives.contains("settings listed below"));
}

#[test]
fn settings_are_no_choice_where_none_of_them_applies() {
    let few = told(EITHER, &[SLOW, "{ repo.dirs: 40 }"], "");
    assert!(few.advice.tune.is_empty() && !few.alternatives().contains("settings"), "{}", few.alternatives());
}

#[test]
fn a43_a_read_only_share_gets_advice_too() {
    let told = told(LINUX, &[ON_SHARE, SLOW, "{ site.read_only: true }"], "");
    assert_eq!(told.verdict(), Verdict::Move);
}

#[test]
fn a44_modes_and_line_endings_are_shown_before_a_move() {
    let more = "modes: { run.sh: executable }\ngit_config: { core.filemode: 'false', core.autocrlf: 'true' }";
    let told = told(LINUX, &[SLOW], more);
    assert!(told.hazard("executable-bits").is_some());
    assert!(told.hazard("autocrlf").unwrap().1.contains("core.autocrlf"));
}

#[test]
fn a45_a46_an_index_of_windows_git_explains_changes_that_nobody_made() {
    let told = told(LINUX, &[SLOW, "{ repo.index_written_by: windows }"], "");
    assert!(told.hazard("false-changes").unwrap().1.contains("nobody made"));
}

#[test]
fn a47_lfs_without_its_filter_on_this_side_is_a_warning() {
    assert_eq!(told(LINUX, &[SLOW, "{ repo.lfs: true }"], "").hazard("lfs-missing").unwrap().0, Severity::Warning);
    let configured = "git_config: { filter.lfs.process: git-lfs filter-process }";
    assert!(told(LINUX, &[SLOW, "{ repo.lfs: true }"], configured).hazard("lfs-missing").is_none());
}

#[test]
fn a51_names_that_differ_in_case_alone_are_found_and_a_clone_is_named() {
    let told = told(LINUX, &[SLOW], "tracked: [src/Net.c, src/net.c]");
    assert!(told.hazard("case-collisions").unwrap().2.contains("clone"));
}

#[test]
fn a53_worktrees_of_both_spellings_block_until_they_are_repaired() {
    for (path, id) in [("C:/src/fix/.git", "worktrees-windows-paths"), ("/mnt/c/src/fix/.git", "worktrees-unix-paths")]
    {
        let told = told(LINUX, &[SLOW], &format!("local: {{ .git/worktrees/fix/gitdir: '{path}' }}"));
        let (severity, _, fix) = told.hazard(id).unwrap();
        assert_eq!(severity, Severity::Blocker);
        assert!(fix.contains("git worktree repair"));
    }
}

#[test]
fn a54_offering_git_exe_says_what_it_writes_into_worktrees() {
    assert!(told(WINDOWS, &[SLOW], "").alternatives().contains("Windows paths into worktrees"));
}

#[test]
fn a55_a_windows_credential_helper_is_named() {
    let more = "git_config: { credential.helper: '/mnt/c/Git/git-credential-manager.exe' }";
    assert!(told(LINUX, &[SLOW], more).hazard("credential-helper-exe").is_some());
}

#[test]
fn a56_a_worktree_on_another_file_system_is_reported() {
    let told = told(LINUX, &[SLOW], "local: { .git/worktrees/a/gitdir: '/home/me/a/.git' }");
    assert!(told.hazard("worktree-elsewhere").is_some());
}

#[test]
fn a58_a60_a61_a_foreign_owner_gets_the_command_with_the_literal_path_in_containers_too() {
    for place in ["{}", IN_CONTAINER] {
        let told = told(LINUX, &[place, "{ repo.foreign_owner: true, repo.worktree: /srv/app }"], "");
        let (_, _, fix) = told.hazard("foreign-owner").unwrap();
        assert!(fix.ends_with("safe.directory /srv/app") && !fix.contains('*'), "{fix}");
    }
}

#[test]
fn a62_the_file_monitor_is_never_proposed_on_a_share_and_turned_off_where_it_is_on() {
    let on = told(LINUX, &[ON_SHARE, SLOW], "git_config: { core.fsmonitor: 'true' }");
    assert!(on.tunes("fsmonitor-off") && on.hazard("fsmonitor-on-share").is_some());
    let off = told(LINUX, &[ON_SHARE, SLOW], "");
    assert!(!off.everything().contains("fsmonitor"), "{}", off.everything());
}

#[test]
fn a66_a_pnpm_store_has_to_be_on_the_same_file_system() {
    assert!(told(EITHER, &[SLOW], "tracked: [pnpm-lock.yaml]").hazard("pnpm-store").is_some());
}

#[test]
fn a67_for_cargo_the_build_directory_alone_can_go_to_the_local_disk() {
    assert!(told(EITHER, &[FAST], "tracked: [Cargo.toml]").tunes("cargo-target-dir"));
}

#[test]
fn a68_moving_only_the_heavy_ignored_folders_is_offered() {
    assert!(told(LINUX, &[SLOW], "").alternatives().contains("heavy ignored folders"));
}

#[test]
fn a69_a_compose_file_that_binds_the_checkout_speaks_for_linux_and_for_the_host_folder() {
    let more = "files: { compose.yaml: \"services:\\n  web: { build: ., volumes: ['.:/app'] }\\n\" }";
    let told = told("tracked: [app.php]", &[SLOW], more);
    assert_eq!(told.judgement.committed.primary, Toolchain::Linux);
    assert!(told.hazard("compose-binds-checkout").unwrap().2.contains("new place"));
}

#[test]
fn a71_on_a_shared_folder_a_clone_in_the_guest_or_git_on_the_host_is_offered() {
    let told = told(LINUX, &[ON_SHARE, SLOW], "");
    assert!(told.say().contains("vboxsf"), "{}", told.say());
    assert!(told.alternatives().starts_with("Clone it on the guest's own disk, or run git on the host"));
}

#[test]
fn a73_watchers_are_a_second_reason_where_the_project_has_one() {
    let more = "files: { package.json: '{ \"devDependencies\": { \"vite\": \"5\" } }' }";
    assert!(told(EITHER, &[SLOW], more).hazard("file-events").is_some());
    assert!(told(EITHER, &[SLOW], "").hazard("file-events").is_none());
}

#[test]
fn a74_free_space_is_the_smaller_of_the_disk_and_the_drive_that_it_grows_on() {
    let full = "{ target.free_bytes: 1000000000000, target.host_free_bytes: 1000000, repo.tracked_bytes: 50000000 }";
    let told_full = told(LINUX, &[SLOW, full], "");
    assert_eq!(told_full.hazard("too-little-space").unwrap().0, Severity::Blocker);
    assert!(told_full.say().contains("Before that: make room"), "{}", told_full.say());
    let room =
        "{ target.free_bytes: 1000000000000, target.host_free_bytes: 90000000000, repo.tracked_bytes: 50000000 }";
    let told_room = told(LINUX, &[SLOW, room], "");
    assert!(told_room.hazard("too-little-space").is_none());
    assert!(told_room.hazard("disk-image-grows").unwrap().1.contains("does not shrink"));
}

#[test]
fn a76_a77_what_exists_here_alone_is_listed_before_a_move() {
    let facts = "{ repo.remotes: [], repo.unpushed: true, repo.branch: main, repo.has_stash: true, repo.stashes: 3 }";
    let told = told(LINUX, &[SLOW, facts], "");
    assert!(told.hazard("no-remote").is_some() && told.hazard("unpushed-commits").is_some());
    let (_, say, fix) = told.hazard("stashes").unwrap();
    assert!(say.contains('3') && fix.contains("keep the old copy"), "{say} {fix}");
}

#[test]
fn a80_a_disk_attached_by_hand_is_fine_and_has_to_be_attached_each_time() {
    let told = told(LINUX, &[ON_EXT4, "{ site.mount_point: /mnt/wsl/DISK1 }"], "");
    assert_eq!(told.verdict(), Verdict::Stay);
    assert!(told.hazard("disk-not-mounted-at-boot").unwrap().2.starts_with("fine as a place"));
}

#[test]
fn a82_files_of_a_sync_program_among_the_refs_stop_everything_before_a_check() {
    let told = told(LINUX, &[SLOW], "local: { .git/refs/heads/desktop.ini: x }");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "repository-damaged"));
    assert!(told.say().contains("git fsck --full"));
    assert!(told.advice.recommendation.command.is_none());
}

#[test]
fn a83_a_windows_project_on_its_drive_stays_and_git_exe_comes_first() {
    let told = told(WINDOWS, &[SLOW], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "windows-primary"));
    assert!(told.alternatives().starts_with("Run `git.exe`"));
}

#[test]
fn a_windows_project_on_ext4_is_sent_to_the_windows_side_and_a_blocker_comes_first() {
    assert_eq!(told(WINDOWS, &[ON_EXT4, FAST], "").verdict(), Verdict::MoveToWindows);
    let more = "tracked: [src/aux.c]\nlocal: { .rehome.yaml: 'primary: windows' }";
    let told = told(WINDOWS, &[ON_EXT4, FAST], more);
    assert_eq!(told.verdict(), Verdict::MoveToWindows);
    assert!(told.say().contains("Before that: rename them first"), "{}", told.say());
}

#[test]
fn a_memory_filesystem_is_left_before_anything_else() {
    let facts = "{ site.class: memory, site.fstype: tmpfs, site.mount_point: /mnt/wsl }";
    let told = told(WINDOWS, &[facts], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Move, "data-at-risk"));
}

#[test]
fn a_network_mount_is_called_unreliable() {
    let told =
        told(LINUX, &[SLOW, "{ platform: linux, site.class: network, site.fstype: nfs4, site.source: 'nas:/x' }"], "");
    assert_eq!(told.verdict(), Verdict::Move);
    assert!(told.say().contains("unreliable"));
}

#[test]
fn the_command_of_a_move_names_source_and_destination_quoted_for_the_shell() {
    let facts = "{ site.real_path: \"/mnt/c/my src/it's\", repo.worktree: \"/mnt/c/my src/it's\" }";
    let told = told(LINUX, &[SLOW, facts], "");
    let recommendation = &told.advice.recommendation;
    let words = recommendation.command.clone().unwrap();
    assert_eq!(words, ["rehome", "move", "/mnt/c/my src/it's", "/home/me/it's"]);
    assert_eq!(shell_words::split(recommendation.command_line.as_deref().unwrap()).unwrap(), words);
}

#[test]
fn a_verdict_rests_on_the_lower_end_of_the_interval() {
    let facts = "{ measure.git_status.in_place_s: 0.9, measure.git_status.in_copy_s: 0.2, measure.git_status.speedup: 4.5, \
                 measure.git_status.speedup_low: 1.4, measure.git_status.speedup_high: 9, measure.git_status.saved_s: 0.7 }";
    let told = told(LINUX, &[facts], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Inconclusive, "too-noisy"));
}

#[test]
fn f01_the_repositorys_own_file_can_ask_for_silence_and_name_the_toolchain() {
    let told = told(LINUX, &[SLOW], "local: { .rehome.yaml: \"primary: windows\\nmute: true\\n\" }");
    assert!(told.judgement.muted);
    assert_eq!(told.judgement.toolchain.primary, Toolchain::Windows);
    assert_eq!(told.judgement.toolchain.overridden_by.as_deref(), Some(".rehome.yaml"));
}

#[test]
fn a_mistake_in_the_repositorys_own_file_is_reported_and_changes_nothing() {
    let told = told(LINUX, &[SLOW], "local: { .rehome.yaml: \"rules: [x]\\n\" }");
    assert!(told.judgement.settings_problem.as_deref().unwrap().contains("unknown field `rules`"));
    assert_eq!(told.judgement.toolchain.overridden_by, None);
}

#[test]
fn f06_on_plain_linux_with_a_local_disk_there_is_nothing_to_say() {
    let told = told(LINUX, &[ON_EXT4, FAST, "{ platform: linux, site.windows_path: null }"], "");
    assert_eq!((told.verdict(), told.reason()), (Verdict::Stay, "already-native"));
    assert!(told.judgement.hazards.is_empty(), "{:?}", told.judgement.hazards);
}

#[test]
fn f14_a_windows_drive_is_named_by_its_mount_point() {
    assert!(told(WINDOWS, &[SLOW], "").say().contains("a Windows drive (/mnt/c)"));
}

#[test]
fn f20_the_gain_that_is_asked_for_can_be_set() {
    let mut files = rehome::rules::builtin::files();
    let text = "kind: verdict\nthresholds:\n  - { id: noticeable-wait, value: 5, because: mine, source: mine }\n";
    files.push(RuleFile { name: "mine.yaml".to_owned(), text: text.to_owned(), layer: 1 });
    let rules = assemble(&files).unwrap();
    assert_eq!(told_by(&rules, LINUX, &[SLOW], "").verdict(), Verdict::Stay);
    assert_eq!(told(LINUX, &[SLOW], "").verdict(), Verdict::Move);
}

#[test]
fn traces_do_not_flip_a_clear_committed_answer_and_are_a_finding() {
    let told = told(WINDOWS, &[SLOW, "{ repo.index_written_by: linux }"], "");
    assert_eq!(told.judgement.toolchain.primary, Toolchain::Windows);
    let (_, say, _) = told.hazard("windows-project-used-from-linux").unwrap();
    assert!(say.contains("used from Linux"));
}
