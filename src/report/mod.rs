//! Every value of a run, and the forms it is written in.

pub mod bench;
pub mod html;
pub mod human;
pub mod json;
pub mod oneline;
pub mod place;
pub mod schema;
pub mod survey;

mod explain;
mod measured;
mod page;
#[cfg(test)]
pub(crate) mod sample;
mod words;

pub use html::write_html;
pub use human::write_human;
pub use json::write_json;
pub use oneline::write_oneline;
pub use page::Style;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advise::{Recommendation, Tune};
use crate::facts::Facts;
use crate::judge::{Evidence, Hazard};
use crate::measure::Measurement;

/// Version of the JSON that a report is written as; it changes when a name changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// One run of `rehome check`; the same names as in the JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of these names; it changes when one changes its meaning or goes away.
    pub schema_version: u32,
    /// Version of the program that made it.
    pub rehome_version: String,
    /// Whether every phase finished; parts are missing when not.
    pub complete: bool,
    /// What is known.
    pub facts: Facts,
    /// What was measured, one entry a workload.
    pub measurements: Vec<Measurement>,
    /// Evidence rules that fired.
    pub evidence: Vec<Evidence>,
    /// What a move would break or lose, blockers first.
    pub hazards: Vec<Hazard>,
    /// The advice; absent when the run was interrupted before it could be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// Settings that help in place.
    pub tune: Vec<Tune>,
    /// How the measuring was done, one sentence each, for the report's foot.
    pub notes: Vec<String>,
    /// What the run itself cost.
    pub cost: Cost,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Wall-clock time of the run, in seconds.
    pub wall_s: f64,
    /// Calls of the scan that resolve a path on the repository's mount (stat, open, readlink, opendir).
    pub scan_calls_in_place: u64,
    /// Calls of the scan on an open descriptor there (read, getdents).
    pub scan_reads_in_place: u64,
    /// Bytes that the scan read there.
    pub scan_bytes_in_place: u64,
    /// Bytes written below the repository; 0 but for `--writes` and `--run`.
    pub bytes_written_in_place: u64,
}
