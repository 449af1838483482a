//! What the facts and the rules say together; pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Toolchain, ToolchainFacts};

/// Which toolchain is primary, why, and what a move would break.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The primary toolchain.
    pub toolchain: ToolchainFacts,
    /// Every evidence rule that fired, strongest first, the losing ones included.
    pub evidence: Vec<Evidence>,
    /// Every hazard that was found, blockers first.
    pub hazards: Vec<Hazard>,
}

/// One evidence rule that fired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Id of the rule.
    pub rule: String,
    /// The side that it speaks for.
    pub toolchain: Toolchain,
    /// How decisive its kind is.
    pub tier: Tier,
    /// How decisive it is within its tier.
    pub strength: Strength,
    /// What it means, as half a sentence.
    pub because: String,
    /// The file or value that it fired on.
    pub matched: String,
    /// Whether it was left out of the sum: cancelled by another rule, or a stronger one of its group counted.
    pub counted: bool,
    /// Share of the result that it carries, 0 to 1; absent when it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// Kinds of evidence, the most decisive first: any amount of a later one does not outvote an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// A format that only one side can open or build.
    HostOnly,
    /// What builds and tests it (CI, build files).
    Build,
    /// Declared metadata and local traces' companions.
    Metadata,
    /// Line endings, words in a README.
    Hint,
}

/// How decisive a rule is within its tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Looks like evidence and is none; written down so that nobody adds it later.
    Null,
    /// A nudge.
    Weak,
    /// Usually right.
    Medium,
    /// Nearly always right.
    Strong,
}

/// Something that a move would break or lose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hazard {
    /// Id of the rule.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is the matter.
    pub say: String,
    /// What to do about it.
    pub fix: String,
    /// Whether `rehome move` repairs it.
    pub handled_by_move: bool,
}

/// How bad a hazard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Do not move before it is solved.
    Blocker,
    /// Would surprise after a move.
    Warning,
    /// Good to know.
    Note,
}
