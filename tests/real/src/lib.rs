//! Builds and runs the real servers that tests are held against.
//!
//! [`parts`] builds them from their published packages into the user's cache
//! folder, once; PostgreSQL is the one that the system has. [`ControlPlane`] starts etcd, a kube-apiserver and a
//! kube-controller-manager on free loopback ports and ends them again;
//! [`EmbeddedCluster`] does the same with `reeve cluster`. [`Postgres`], [`Azurite`] and
//! [`Opa`] are what plugins reach outside of a cluster, and a [`Registry`] is where they come
//! from.
//!
//! Everything here blocks and is free of asynchronous code: it is used by
//! `cargo xtask`, which has to build in seconds, and by tests that wait for these
//! servers anyway.

mod agent;
mod audit;
mod azurite;
mod buildah;
mod clocks;
mod container;
mod control_plane;
mod credentials;
mod embedded;
mod etcd;
mod flux;
mod helm;
mod installed;
mod kubectl;
mod kwok;
mod looks;
mod names;
mod opa;
mod operate;
pub mod parts;
mod pod;
mod ports;
mod postgres;
mod proxy;
mod registry;
mod server;
mod wait;
mod witness;

pub use agent::{Agent, binary};
pub use azurite::Azurite;
pub use buildah::{Buildah, Unpacked};
pub use clocks::{Ahead, Clocks};
pub use container::Container;
pub use control_plane::{Builder, ControlPlane, UPKEEP};
pub use credentials::{ADMIN, User};
pub use embedded::EmbeddedCluster;
pub use flux::{FLUX_USER, HelmController};
pub use helm::{chart_of, helm};
pub use installed::Installed;
pub use kwok::{Ended, KWOK_USER, NODE, SimulatedNode};
pub use names::Names;
pub use opa::Opa;
pub use pod::{Account, Pod};
pub use postgres::Postgres;
pub use proxy::Proxy;
pub use registry::Registry;
pub use server::without_collecting;
pub use wait::eventually;
pub use witness::{Seen, Witness};
