//! Knowledge of the world as data: the YAML below `rules/`, and what evaluates it.
//!
//! [`load`] reads rule files strictly; [`gather`] makes the reads that they need; [`evaluate`] decides conditions with
//! three truth values; [`weigh`] turns evidence into probabilities. What a rule may ask for is the closed vocabulary in
//! [`condition`] and the values of [`extract`]; nothing here knows of a particular ecosystem beyond its file formats.

pub mod builtin;
pub mod condition;
pub mod evaluate;
pub mod example;
pub mod extract;
pub mod filesystem;
pub mod gather;
pub mod kinds;
pub mod live;
pub mod load;
pub mod names;
pub mod paths;
mod place;
pub mod say;
pub mod schema;
pub mod source;
pub mod vocabulary;
pub mod weigh;
pub mod words;

use std::collections::BTreeMap;

use kinds::{
    AlternativeRule, EvidenceRule, HazardRule, JudgingFile, RebuildableRule, SettingRule, Threshold, VerdictRule,
};

/// All rules of a run, built in and added, checked and compiled.
#[derive(Debug, Clone)]
pub struct RuleSet {
    /// Which toolchain is primary.
    pub evidence: Vec<EvidenceRule>,
    /// What a move would break or lose.
    pub hazards: Vec<HazardRule>,
    /// Ignored directories that can be made again.
    pub rebuildable: Vec<RebuildableRule>,
    /// Advice, in the order in which it is tried.
    pub verdicts: Vec<VerdictRule>,
    /// Choices that advice may offer.
    pub alternatives: Vec<AlternativeRule>,
    /// Settings that help in place.
    pub settings: Vec<SettingRule>,
    /// Numbers with a name and a reason.
    pub thresholds: Vec<Threshold>,
    /// Shared lists, weights and plans of reading.
    pub judging: JudgingFile,
    /// Files of filesystem rules that were added; the scan reads them.
    pub filesystem: Vec<load::RuleFile>,
    /// Where each rule is written: the file's name by kind and id.
    pub origins: BTreeMap<(&'static str, String), String>,
    /// Every glob over tracked paths, compiled once.
    pub(crate) globs: paths::Globs,
}

impl RuleSet {
    /// Returns every glob over tracked paths, compiled once.
    #[must_use]
    pub fn globs(&self) -> &paths::Globs {
        &self.globs
    }

    /// Returns the rules for ignored directories that need not be copied.
    #[must_use]
    pub fn rebuildable(&self) -> &[RebuildableRule] {
        &self.rebuildable
    }
}
