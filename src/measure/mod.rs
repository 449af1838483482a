//! How long the repository's real work takes, in place and in a copy.
//!
//! The only layer with a clock, and the only one that writes to disk (never below the repository).
//!
//! | part | what it does |
//! | --- | --- |
//! | [`request`] | what is asked of a run, and what comes of it |
//! | [`session`] | the order of a run, its budget, and what becomes of it when time or the mount runs out |
//! | [`status`], [`workloads`] | the workloads: both sides in turn, medians, proof of the same work |
//! | [`skeleton`], [`copy_side`], [`objects`], [`own_commit`] | the copy: files of the right size without data, and what git needs beside them |
//! | [`private_git`], [`settings`] | running the user's git without the repository's configuration |
//! | [`predict`], [`model`], [`shape`] | a full status computed from a sample, where it does not fit the budget |
//! | [`probe`] | every touch of the repository's mount, in a process that can be abandoned |
//! | [`raw_index`], [`files`], [`dirty`], [`porcelain`], [`stats`] | pure: what the index, git's output and the timings say |
//! | [`sweep`], [`process`], [`temp`], [`load`] | system calls, child processes, the temporary directory, who else is busy |

pub mod copy_side;
pub mod dirty;
pub mod files;
pub mod load;
pub mod model;
pub mod objects;
pub mod own_commit;
pub mod porcelain;
pub mod predict;
pub mod private_git;
pub mod probe;
pub mod process;
pub mod raw_index;
pub mod request;
pub mod session;
pub mod settings;
pub mod shape;
pub mod skeleton;
pub mod stats;
pub mod status;
pub mod sweep;
pub mod temp;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod workloads;

pub use request::{CopyFacts, Outcome, Request, Workload};
pub use session::{measure, measure_in_place_only};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::WorkloadFacts;

/// Name of the workload whose figure is that of a single call, not of the whole work.
pub const STAT: &str = "stat";

/// One workload, measured at both places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// What was done: `stat`, `git_status`, `walk`, ...
    pub workload: String,
    /// Unit of every figure here; always `s`.
    pub unit: String,
    /// Where the repository is.
    pub in_place: Sample,
    /// In the copy; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_copy: Option<Sample>,
    /// Median in place over median in the copy; absent when either side was not measured or the work differed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// What it costs in place with the index as it is now, where stale entries make git read files; `in_place` is then
    /// the cost after one ordinary `git status` has mended the index. Absent where the index is fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Sample>,
    /// Number of operations (stat calls, entries) in one run, the same on both sides; absent where git did the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Number of operations that failed in place and were left out on both sides; absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Median in place less median in the copy, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_s: Option<f64>,
    /// Whether both sides were proven to have done the same work.
    pub same_work: bool,
    /// What a reader must know about these figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Measurement {
    /// Leaves out what is no finite number: JSON cannot hold it, and a ratio without an end says nothing.
    #[must_use]
    pub fn finite(mut self) -> Self {
        let is_endless = |speedup: Speedup| ![speedup.low, speedup.mid, speedup.high].iter().all(|end| end.is_finite());
        if self.speedup.is_some_and(is_endless) {
            self.speedup = None;
            self.note.get_or_insert_with(|| "the ratio has no upper end: one side was too fast to be timed".to_owned());
        }
        self.saved_s = self.saved_s.filter(|saved| saved.is_finite());
        let sides = [Some(&mut self.in_place), self.in_copy.as_mut(), self.now.as_mut()];
        for sample in sides.into_iter().flatten() {
            sample.low = sample.low.filter(|low| low.is_finite());
            sample.high = sample.high.filter(|high| high.is_finite());
        }
        self
    }

    /// Returns the figures that rules look at, in a repository of so many tracked files.
    ///
    /// They are of the whole work everywhere: a call of `stat`, whose figure is that of one file, counts once for each.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of files are far below 2^52")]
    pub fn facts(&self, tracked_files: u64) -> WorkloadFacts {
        let facts = WorkloadFacts::from(self);
        if self.workload != STAT {
            return facts;
        }
        let whole = |seconds: Option<f64>| seconds.map(|seconds| seconds * tracked_files as f64);
        WorkloadFacts {
            in_place_s: whole(facts.in_place_s),
            at_least_s: whole(facts.at_least_s),
            in_copy_s: whole(facts.in_copy_s),
            saved_s: whole(facts.saved_s),
            ..facts
        }
    }
}

impl From<&Measurement> for WorkloadFacts {
    fn from(measured: &Measurement) -> Self {
        let is_bound = measured.in_place.method == Method::AtLeast;
        let median = Some(measured.in_place.median);
        Self {
            in_place_s: median.filter(|_| !is_bound),
            at_least_s: median.filter(|_| is_bound),
            in_copy_s: measured.in_copy.as_ref().map(|sample| sample.median),
            speedup: measured.speedup.map(|speedup| speedup.mid),
            speedup_low: measured.speedup.map(|speedup| speedup.low),
            speedup_high: measured.speedup.map(|speedup| speedup.high),
            saved_s: measured.saved_s,
            complete: !is_bound,
        }
    }
}

/// The timings of one workload at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// One entry a round, in seconds, in order, the warm-up left out; empty for a prediction.
    ///
    /// For `stat` each is the mean of the round's calls, so that the figure is one call's; for the other workloads it is
    /// the whole work.
    pub runs: Vec<f64>,
    /// Median of the runs, or the predicted value, in seconds.
    pub median: f64,
    /// Lower end of the 95 % interval of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the 95 % interval of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// How the figure came about.
    pub method: Method,
    /// How long the sample behind a prediction took, in seconds; absent when the whole work was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_s: Option<f64>,
    /// Latency of single operations, where they were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// How a figure came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The whole work was run and timed.
    Run,
    /// The work was sampled and the whole computed from it.
    Predicted,
    /// The work did not end in time; the figure is a lower bound.
    AtLeast,
}

/// Percentiles of single operations, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Number of operations timed.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The distribution: the smallest value, every 5th percentile, and the largest; empty where it was not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<f64>,
}

/// A ratio of medians with its 95 % interval; above 1 the copy is faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speedup {
    /// Ratio of the medians.
    pub mid: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

#[cfg(test)]
mod finite_tests {
    use super::*;

    #[test]
    fn a_ratio_without_an_end_is_left_out_so_that_the_report_can_be_read_again() {
        let sample = |high| Sample {
            runs: vec![0.1],
            median: 0.1,
            low: Some(0.1),
            high: Some(high),
            method: Method::Run,
            sampled_s: None,
            latency: None,
        };
        let measured = Measurement {
            workload: "stat".to_owned(),
            unit: "s".to_owned(),
            in_place: sample(f64::INFINITY),
            in_copy: Some(sample(0.1)),
            speedup: Some(Speedup { mid: 2.0, low: 1.0, high: f64::INFINITY }),
            now: None,
            operations: None,
            failed: None,
            saved_s: Some(0.0),
            same_work: true,
            note: None,
        };
        assert!(serde_json::from_str::<Measurement>(&serde_json::to_string(&measured).unwrap()).is_err());
        let finite = measured.finite();
        assert_eq!((finite.speedup, finite.in_place.high), (None, None));
        assert!(finite.note.is_some());
        assert_eq!(serde_json::from_str::<Measurement>(&serde_json::to_string(&finite).unwrap()).unwrap(), finite);
    }
}
