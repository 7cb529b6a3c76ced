//! Builds and runs the real servers that tests are held against.
//!
//! [`parts`] builds them from their published Go modules into the user's cache
//! folder, once. [`ControlPlane`] starts etcd, a kube-apiserver and a
//! kube-controller-manager on free loopback ports and ends them again;
//! [`EmbeddedCluster`] does the same with `reeve cluster`.
//!
//! Everything here blocks and is free of asynchronous code: it is used by
//! `cargo xtask`, which has to build in seconds, and by tests that wait for these
//! servers anyway.

mod agent;
mod control_plane;
mod credentials;
mod embedded;
mod kubectl;
mod kwok;
mod operate;
pub mod parts;
mod proxy;
mod server;
mod wait;
mod witness;

pub use agent::{Agent, binary};
pub use control_plane::{Builder, ControlPlane};
pub use credentials::{ADMIN, User};
pub use embedded::EmbeddedCluster;
pub use kwok::{KWOK_USER, NODE, SimulatedNode};
pub use proxy::Proxy;
pub use wait::eventually;
pub use witness::{Seen, Witness};
