//! The commands: the only place that joins the stages.

pub mod progress;
