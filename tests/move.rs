//! `rehome move`, run as a program: what is kept, what is repaired, and what happens when things go wrong.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[path = "support/schema.rs"]
mod schema;
#[path = "support/slow_mount/mod.rs"]
mod slow_mount;

#[path = "moving/faults.rs"]
mod faults;
#[path = "moving/ground.rs"]
mod ground;
#[path = "moving/hangs.rs"]
mod hangs;
#[path = "moving/kept.rs"]
mod kept;
#[path = "moving/plans.rs"]
mod plans;
#[path = "moving/repairs.rs"]
mod repairs;
#[path = "moving/script.rs"]
mod script;
#[path = "moving/source.rs"]
mod source;
