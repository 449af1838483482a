//! The hazard rules of `check`, asked before a move.

use std::collections::BTreeMap;

use crate::facts::{Facts, Site, Target};
use crate::judge::{Severity, judge};
use crate::migrate::Blocker;
use crate::rules::RuleSet;
use crate::rules::gather::{Budget, Purpose, gather};
use crate::rules::live::{self, LiveSource};
use crate::scan::RepoProfile;
use crate::scan::access::Access;
use crate::scan::filesystem::System;
use crate::scan::git;

/// Rules whose matter the move looks at itself, on the whole tree and with its own options in mind.
const OWN: &[&str] = &[
    "operation-in-progress",
    "index-lock",
    "damaged-refs",
    "target-memory",
    "too-little-space",
    "names-windows-cannot-hold-there",
];

/// What the hazard rules say of a move.
pub(super) struct Hazards {
    /// What must be solved first.
    pub(super) blockers: Vec<Blocker>,
    /// What would surprise afterwards, as sentences.
    pub(super) notes: Vec<String>,
}

/// Asks the rules about the repository; what the move repairs itself is left out.
pub(super) fn ask(
    rules: &RuleSet,
    system: &System,
    profile: &RepoProfile,
    site: &Site,
    target: &Target,
    access: &Access,
) -> Hazards {
    let facts = Facts {
        platform: system.platform.platform,
        site: site.clone(),
        target: Some(target.clone()),
        repo: Some(profile.facts.clone()),
        git: git::find(),
        toolchain: None,
        measure: BTreeMap::new(),
        hazards: None,
    };
    let material = live::material(profile, &facts, rules);
    let source = LiveSource::new(profile, access);
    let observations = gather(rules, material, &source, Budget::default(), Purpose { local: true });
    let mut found = Hazards { blockers: Vec::new(), notes: Vec::new() };
    for hazard in judge(&observations, rules, None).hazards {
        if hazard.handled_by_move || OWN.contains(&hazard.rule.as_str()) {
            continue;
        }
        match hazard.severity {
            Severity::Blocker => found.blockers.push(Blocker::new(&hazard.rule, hazard.say, hazard.fix)),
            Severity::Warning => found.notes.push(format!("{}: {}", hazard.say, hazard.fix)),
            Severity::Note => {}
        }
    }
    found
}
