//! Pure decisions: what a plugin may do, what its answer means, what follows
//! from it for the cluster.
//!
//! Nothing in here does I/O, waits, or looks at a clock. The agent, `reeve plan`,
//! the harness and shadow runs all decide with this code and differ only in what
//! they do with the decision.

pub mod annotations;
pub mod asks;
pub mod backoff;
pub mod canary;
pub mod chain;
pub mod desired;
pub mod digest;
pub mod failure;
pub mod fields;
pub mod generated;
pub mod grant;
pub mod health;
pub mod ignore;
pub mod journal;
pub mod kind;
pub mod manifest;
pub mod outcome;
pub mod ownership;
pub mod plan;
pub mod printable;
pub mod projection;
pub mod prune;
pub mod recording;
pub mod selector;
pub mod sql;
pub mod text;
pub mod unit;
pub mod upgrade;
pub mod waves;

pub use asks::Asks;
pub use chain::chain;
pub use desired::{Desired, DesiredError, DesiredObject};
pub use digest::Digest;
pub use failure::Failure;
pub use kind::{GroupVersionKind, KindNames, ObjectReference};
pub use manifest::{
    Manifest, ManifestError, Metadata, PrimaryRule, ReadRule, Role, Scope, WriteRule,
};
pub use outcome::Outcome;
pub use plan::{Plan, plan};
pub use unit::UnitKey;
