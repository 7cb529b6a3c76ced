//! What must hold of any input, as functions from bytes.
//!
//! Each function takes what an attacker, a guest or a typing mistake could send and
//! panics when something that must hold does not: no input may end the process,
//! what is accepted must be in its final form, and what is done twice must be the
//! same as done once.
//!
//! libFuzzer looks for such inputs (`cargo xtask fuzz`, the programs in `targets/`);
//! `tests/replay.rs` runs the checked-in ones, in `corpus/<target>/`, as ordinary
//! tests. An input that once failed stays there.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "to panic is how a target says that something does not hold"
)]

mod choices;
mod cluster;
mod components;
mod definitions;
mod documents;
mod expressions;
mod field_sets;
mod host_calls;
mod lists;
mod manifest;
mod outcome;
mod ownership;
mod package;
mod patches;
mod plan;
mod protobuf;
mod quantities;
mod recordings;
mod requests;
mod selectors;
mod state;
mod webhooks;

pub use self::components::components;
pub use self::definitions::definitions;
pub use self::documents::documents;
pub use self::expressions::expressions;
pub use self::field_sets::fields_v1;
pub use self::host_calls::host_calls;
pub use self::lists::lists;
pub use self::manifest::manifest;
pub use self::outcome::outcome;
pub use self::ownership::ownership;
pub use self::package::package;
pub use self::patches::patches;
pub use self::plan::plan;
pub use self::protobuf::protobuf;
pub use self::quantities::quantities;
pub use self::recordings::recordings;
pub use self::requests::requests;
pub use self::selectors::selectors;
pub use self::state::state;
pub use self::webhooks::webhooks;

/// A function that panics on an input that breaks what must hold.
pub type Target = fn(&[u8]);

/// Every target, by its name: that of its function, its program and its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("components", components),
    ("definitions", definitions),
    ("documents", documents),
    ("expressions", expressions),
    ("fields_v1", fields_v1),
    ("host_calls", host_calls),
    ("lists", lists),
    ("manifest", manifest),
    ("outcome", outcome),
    ("ownership", ownership),
    ("package", package),
    ("patches", patches),
    ("plan", plan),
    ("protobuf", protobuf),
    ("quantities", quantities),
    ("recordings", recordings),
    ("requests", requests),
    ("selectors", selectors),
    ("state", state),
    ("webhooks", webhooks),
];
