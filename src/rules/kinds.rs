//! The kinds of rule files and their rules, as YAML writes them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::condition::{Condition, Mode};
use super::vocabulary::{Severity, Strength, Tier, Verdict};
use super::words::{PathGlob, RuleId};
use crate::facts::Toolchain;

/// A file of evidence rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceFile {
    /// Always `evidence`.
    pub kind: String,
    /// The rules.
    pub rules: Vec<EvidenceRule>,
}

/// Which toolchain is primary: one sign of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceRule {
    /// Stable name.
    pub id: RuleId,
    /// The side that it speaks for: `linux`, `windows` or `either`.
    pub toolchain: Toolchain,
    /// How decisive its kind is.
    pub tier: Tier,
    /// How decisive it is within its tier; `null` for what looks like evidence and is not.
    pub strength: Strength,
    /// Rules that say the same thing; per side only the strongest that fired counts.
    #[serde(default)]
    pub group: Option<String>,
    /// Whether it is a trace of use in this working copy and not a property of the project.
    #[serde(default)]
    pub trace: bool,
    /// Rules that do not count when this one fires.
    #[serde(default)]
    pub cancels: Vec<RuleId>,
    /// What must hold.
    pub when: Condition,
    /// What it means, as half a sentence after 'because'.
    pub because: String,
    /// Where that is documented or how it is known.
    pub source: String,
    /// What false positives were seen or are expected.
    #[serde(default)]
    pub caveat: Option<String>,
    /// Inputs on which it fires, and near misses on which it does not.
    pub examples: Examples,
}

/// A file of hazard rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HazardFile {
    /// Always `hazard`.
    pub kind: String,
    /// The rules.
    pub rules: Vec<HazardRule>,
}

/// Something that a move would break or lose.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HazardRule {
    /// Stable name.
    pub id: RuleId,
    /// How bad it is.
    pub severity: Severity,
    /// What must hold.
    pub when: Condition,
    /// What is the matter; may name facts in braces.
    pub say: String,
    /// What to do about it.
    pub fix: String,
    /// Whether `rehome move` repairs it.
    #[serde(default)]
    pub handled_by_move: bool,
    /// Where that is documented or how it is known.
    pub source: String,
    /// Inputs on which it fires, and near misses on which it does not.
    pub examples: Examples,
}

/// A file of rebuildable rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuildableFile {
    /// Always `rebuildable`.
    pub kind: String,
    /// The rules.
    pub rules: Vec<RebuildableRule>,
}

/// Ignored directories that need not be copied.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuildableRule {
    /// Stable name.
    pub id: RuleId,
    /// Names of directories, or paths below the file that marks them (`node_modules`, `.yarn/cache`).
    pub directories: Vec<String>,
    /// Globs of names of which one must be beside the directory, so that `target` of something else is not meant.
    pub beside: Vec<PathGlob>,
    /// Commands that restore it, the most likely first.
    pub restore: Vec<RestoreCommand>,
    /// Whether what it holds was built for one operating system, so that a copy would not work on the other.
    #[serde(default)]
    pub platform_bound: bool,
    /// Why it can be made again.
    pub because: String,
    /// Where that is documented.
    pub source: String,
    /// Directories that it names, and near misses.
    pub examples: PathExamples,
}

/// How to make a directory again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreCommand {
    /// The command, run beside the directory.
    pub run: String,
    /// Name of a file that must be beside the directory; always when absent.
    #[serde(default)]
    pub when: Option<PathGlob>,
}

/// Examples of a rebuildable rule.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathExamples {
    /// Directories that it names.
    pub fires: Vec<PathExample>,
    /// Directories that it does not name.
    pub ignores: Vec<PathExample>,
}

/// A directory and what is beside it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathExample {
    /// The directory, relative to the worktree.
    pub directory: String,
    /// Names beside it.
    #[serde(default)]
    pub beside: Vec<String>,
}

/// A file of verdict rules, with what they share.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerdictFile {
    /// Always `verdict`.
    pub kind: String,
    /// Numbers with a name and a reason.
    #[serde(default)]
    pub thresholds: Vec<Threshold>,
    /// Choices that verdicts may offer.
    #[serde(default)]
    pub alternatives: Vec<AlternativeRule>,
    /// Settings that help in place.
    #[serde(default)]
    pub settings: Vec<SettingRule>,
    /// The rules; the first that holds is the advice.
    #[serde(default)]
    pub rules: Vec<VerdictRule>,
}

/// A number with a reason.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// Its name in conditions.
    pub id: RuleId,
    /// The number, in the unit of the facts that it is compared with.
    pub value: f64,
    /// Why this number.
    pub because: String,
    /// Where it comes from.
    pub source: String,
}

/// A choice besides the recommended one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativeRule {
    /// Stable name.
    pub id: RuleId,
    /// When it can be offered at all.
    #[serde(default)]
    pub when: Condition,
    /// Whether it points to the list of settings, so that it is offered only where one of them applies.
    #[serde(default)]
    pub needs_settings: bool,
    /// What could be done; may name facts in braces.
    pub say: String,
    /// What that would bring or cost; may name facts in braces.
    pub effect: String,
    /// Where the effect is documented or was measured.
    pub source: String,
}

/// A setting that helps in place.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingRule {
    /// Stable name.
    pub id: RuleId,
    /// Where it applies.
    pub when: Condition,
    /// What to set.
    pub say: String,
    /// The command that sets it.
    pub command: String,
    /// The expected effect.
    pub effect: String,
    /// Where the effect is documented or was measured.
    pub source: String,
    /// Inputs on which it is offered, and near misses on which it is not.
    pub examples: Examples,
}

/// One piece of advice and when it is given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerdictRule {
    /// Stable name.
    pub id: RuleId,
    /// What must hold; always when absent.
    #[serde(default)]
    pub when: Condition,
    /// What to do.
    pub verdict: Verdict,
    /// Why, as a stable word for programs.
    pub reason: String,
    /// The reason as a sentence or two; may name facts in braces. A part in brackets is left out when a fact in it is not
    /// known.
    pub say: String,
    /// The command that does it, one template an argument.
    #[serde(default)]
    pub command: Vec<String>,
    /// Ids of alternatives, the best first; those that cannot be offered are left out.
    #[serde(default)]
    pub alternatives: Vec<RuleId>,
    /// Why this rule stands where it stands.
    pub because: String,
    /// Facts on which it gives the advice, and near misses.
    pub examples: Examples,
}

/// A file that shapes the judging: shared lists, weights, and which files are read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgingFile {
    /// Always `judging`.
    pub kind: String,
    /// Names of folders whose files are not the project's own: vendored code, fixtures, samples.
    #[serde(default)]
    pub vendor_folders: Vec<String>,
    /// Names of folders that hold courtesy builds and extras.
    #[serde(default)]
    pub side_folders: Vec<String>,
    /// Extensions (with the dot) and whole names of files of code.
    #[serde(default)]
    pub code: Vec<String>,
    /// Words in the name of a CI workflow or job that neither builds nor tests.
    #[serde(default)]
    pub chores: Vec<String>,
    /// Log-odds of each tier and strength.
    #[serde(default)]
    pub weights: Vec<TierWeights>,
    /// Log-odds of local traces, whatever their tier.
    #[serde(default)]
    pub traces: Option<TraceWeights>,
    /// Which files each extractor reads.
    #[serde(default)]
    pub extractors: Vec<ExtractorPlan>,
}

/// Log-odds of one tier.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierWeights {
    /// Which tier.
    pub tier: Tier,
    /// Log-odds of a weak rule.
    pub weak: f64,
    /// Log-odds of a medium rule.
    pub medium: f64,
    /// Log-odds of a strong rule.
    pub strong: f64,
    /// What all rules of this tier for one side may add up to.
    pub cap: f64,
}

/// Log-odds of local traces.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceWeights {
    /// Log-odds of a weak trace.
    pub weak: f64,
    /// Log-odds of a medium trace.
    pub medium: f64,
    /// Log-odds of a strong trace.
    pub strong: f64,
    /// What all traces of one side may add up to.
    pub cap: f64,
}

impl JudgingFile {
    /// Returns the weights of traces for every tier.
    #[must_use]
    pub fn trace_weights(&self) -> Vec<TierWeights> {
        let Some(TraceWeights { weak, medium, strong, cap }) = self.traces else { return Vec::new() };
        Tier::ALL.into_iter().map(|tier| TierWeights { tier, weak, medium, strong, cap }).collect()
    }
}

/// Which files an extractor reads.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtractorPlan {
    /// Which extractor.
    pub extractor: super::extract::Extractor,
    /// Files that it understands.
    pub files: Vec<PathGlob>,
    /// Files to leave out.
    #[serde(default)]
    pub skip: Vec<PathGlob>,
    /// Files to read before others, in this order; of equals the shallowest first.
    #[serde(default)]
    pub first: Vec<PathGlob>,
    /// Number of files read at most.
    pub at_most: usize,
    /// Bytes read of each file; a longer file is unknown.
    pub max_bytes: usize,
    /// Whether the files that are read speak for those that are not; otherwise these leave the values unknown.
    #[serde(default)]
    pub sample: bool,
}

/// Inputs of a rule and what must come of them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Examples {
    /// It fires on each of these.
    pub fires: Vec<Example>,
    /// It fires on none of these.
    pub ignores: Vec<Example>,
}

/// A small repository in a few lines. `{1..60}` in a path stands for that many paths.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// Tracked paths.
    #[serde(default)]
    pub tracked: Vec<String>,
    /// Tracked paths of another mode.
    #[serde(default)]
    pub modes: BTreeMap<String, Mode>,
    /// Tracked files with their text.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Untracked files with their text; `.git/` is the git dir.
    #[serde(default)]
    pub local: BTreeMap<String, String>,
    /// Untracked directories.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Symbolic links on disk, tracked or not.
    #[serde(default)]
    pub links: Vec<String>,
    /// Configuration of the repository.
    #[serde(default)]
    pub git_config: BTreeMap<String, String>,
    /// Facts by their dotted names.
    #[serde(default)]
    pub facts: BTreeMap<String, serde_json::Value>,
    /// Properties of the index by name, as a number of entries.
    #[serde(default)]
    pub index: BTreeMap<String, u64>,
    /// Hazards that fired.
    #[serde(default)]
    pub hazards: Vec<RuleId>,
    /// Sides of which a strong trace fired.
    #[serde(default)]
    pub traces: Vec<Toolchain>,
}

impl RebuildableRule {
    /// Returns whether it names a directory, by its path relative to the worktree and the names beside it.
    #[must_use]
    pub fn names(&self, directory: &str, beside: &[&str]) -> bool {
        let is_named = self.directories.iter().any(|name| {
            directory == name || directory.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('/'))
        });
        is_named && (self.beside.is_empty() || self.beside.iter().any(|glob| matches_any(glob, beside)))
    }

    /// Returns the command that restores the directory, by the names beside it: the first whose file is there.
    #[must_use]
    pub fn restore_command(&self, beside: &[&str]) -> Option<&str> {
        let is_possible =
            |command: &&RestoreCommand| command.when.as_ref().is_none_or(|glob| matches_any(glob, beside));
        self.restore.iter().find(is_possible).map(|command| command.run.as_str())
    }
}

fn matches_any(glob: &PathGlob, names: &[&str]) -> bool {
    glob.build().is_ok_and(|glob| {
        let matcher = glob.compile_matcher();
        names.iter().any(|name| matcher.is_match(name.to_lowercase()))
    })
}
