//! Tells where a git repository should live, and proves it with numbers measured on that repository.
//!
//! Data flows one way, and a module uses only what stands above it here:
//!
//! | layer | question it answers |
//! | --- | --- |
//! | [`units`], [`mod@format`], [`error`], [`facts`], [`progress`], [`signals`] | shared vocabulary; uses nothing else of the crate |
//! | [`scan`] | what is this repository, and on which mount is it? reads, never writes |
//! | [`measure`] | how long does its work take here, and in an ext4 copy? the only layer with a clock |
//! | [`mod@bench`] | how long does synthetic work take in any directories? writes in scratch directories only |
//! | [`rules`], [`judge`] | which toolchain is primary, and what would a move break? pure |
//! | [`advise`] | what should be done? pure |
//! | [`report`] | every value of a run, written as text or JSON into a given writer |
//! | [`state`] | the last report of each repository, for prompts and editors |
//! | [`commands`], [`cli`] | the command line; the only place that joins the stages |
//!
//! `tests/layers.rs` reads the `crate::` paths in the sources and fails when a module looks upwards.

pub mod advise;
pub mod bench;
pub mod cli;
pub mod commands;
pub mod error;
pub mod facts;
pub mod format;
pub mod judge;
pub mod lock;
pub mod measure;
pub mod migrate;
pub mod proc_stat;
pub mod progress;
pub mod report;
pub mod rules;
pub mod scan;
pub mod signals;
pub mod state;
pub mod units;
