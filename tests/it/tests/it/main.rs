//! The whole agent with real components on the embedded cluster.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod absent;
mod adoption;
mod apply;
mod artifacts;
mod bad_delivery;
mod bad_outcome;
mod canary;
mod contributions;
mod day;
mod effect_modes;
mod effects;
mod endpoints;
mod escapes;
mod fights;
mod freshness;
mod held;
mod hostile;
mod identity;
mod ignored;
mod immutable;
mod inputs;
mod left;
mod life;
mod logged;
mod lost;
mod namespaces;
mod noops;
mod outage;
mod packaged;
mod panics;
mod policy_object;
mod refused;
mod replicas;
mod restart;
mod schemas;
mod secrets;
mod sources;
mod stopped;
mod story;
mod swap;
mod told;
mod true_kinds;
mod upgrades;
mod widgets;
