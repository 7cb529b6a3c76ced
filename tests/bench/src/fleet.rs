//! A fleet: many Profiles under `reeve run`, which is a process of its own, as is the
//! bare loop beside it.

mod agent;
mod audit;
pub(crate) mod change;
pub(crate) mod models;
pub(crate) mod platform;
mod probe;
pub(crate) mod restart;
pub(crate) mod thousand;
pub(crate) mod upgrade;
