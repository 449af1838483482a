//! The recommendation; pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The advice of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// What to do.
    pub verdict: Verdict,
    /// Why, as a stable word: `linux-primary-and-faster`, `already-native`, ...
    pub reason: String,
    /// Id of the verdict rule.
    pub rule: String,
    /// The reason as one sentence for a person.
    pub say: String,
    /// The command that does it, argument by argument; absent when there is nothing to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The same, quoted for a POSIX shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// Other choices, the best first.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
}

/// A choice besides the recommended one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// What could be done.
    pub say: String,
    /// What that would bring or cost.
    pub effect: String,
}

/// A setting that helps in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tune {
    /// Id of the rule.
    pub rule: String,
    /// What to set.
    pub say: String,
    /// The command that sets it.
    pub command: String,
    /// The expected effect.
    pub effect: String,
    /// Where the effect is documented or was measured.
    pub source: String,
}
