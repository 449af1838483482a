//! Synthetic benchmarks: the published experiments, reproducible anywhere.
//!
//! All of this writes, so it says where, uses a scratch directory of its own, and proves that it is gone afterwards.
//!
//! | part | what it does |
//! | --- | --- |
//! | [`run`] | the order of a run: scratch directories, suites, removal |
//! | `small`, `seq`, `stream`, `walk`, `git` | the suites: the work, and the check that it was done |
//! | `engine` | warm-up, alternation, budget, recording; knows no suite |
//! | `fit`, `figures`, [`compare`] | pure: what fits a budget, and what the rounds say |
//! | [`measure_beside`], [`time_own_work`] | further workloads of a check: small files beside the repository, the user's own command |
//! | [`scratch`], `program` | directories and child processes |
//! | [`result`] | the values, as they are saved |

pub mod compare;
pub mod result;
pub mod scratch;

mod beside;
mod clock;
mod content;
mod engine;
mod figures;
mod fit;
mod git;
mod own;
mod program;
mod record;
mod run;
mod seq;
mod small;
mod stream;
mod verify;
mod walk;

pub use beside::{Beside, measure_beside};
pub use own::{OwnWork, time_own_work};
pub use record::Save;
pub use run::{BULK_ROUNDS, Environment, Finished, Options, ROUNDS, SEQ_BYTES, STREAM_BYTES, run};
pub use small::SmallPlan;
