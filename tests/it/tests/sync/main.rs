//! Syncs through the whole agent: order, gates, hooks, deletion, the journal and
//! what waits for a person, on the embedded cluster with actors.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod budget;
mod deletions;
mod endings;
mod hooks;
mod modes;
mod platform;
mod recreations;
mod removals;
mod stage;
mod stopped;
mod timeouts;
mod unseen;
mod waves;
