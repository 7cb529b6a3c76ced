//! Syncs through the whole agent: order, gates, hooks, deletion, the journal and
//! what waits for a person, on the embedded cluster with actors.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod beforehand;
mod budget;
mod claims;
mod definitions;
mod deletions;
mod endings;
mod failures;
mod hooks;
mod left_alone;
mod modes;
mod pace;
mod platform;
mod recreations;
mod removals;
mod stage;
mod stopped;
mod timeouts;
mod told;
mod unseen;
mod waves;
