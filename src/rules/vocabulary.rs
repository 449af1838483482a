//! The words that rules and results share: tiers, strengths, severities and verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl Tier {
    /// All tiers, the most decisive first.
    pub const ALL: [Self; 4] = [Self::HostOnly, Self::Build, Self::Metadata, Self::Hint];
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

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Move to the fast local filesystem.
    Move,
    /// Move to the Windows side.
    MoveToWindows,
    /// Leave it where it is.
    Stay,
    /// Leave it, and change settings.
    Tune,
    /// The figures do not carry an answer.
    Inconclusive,
}
