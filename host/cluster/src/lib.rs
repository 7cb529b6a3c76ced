//! The way to Kubernetes: watches, object store, apply, access reviews, events.
//!
//! Everything goes through one [`kube::Client`], which may lead to an API server
//! over the network or to one in this process; nothing in here knows which. All
//! waiting is tokio's, so that a paused clock governs it.

pub mod cluster;
pub mod config;
pub mod delete;
pub mod discovery;
pub mod events;
pub mod identity;
pub mod object;
pub mod read;
pub mod resource;
pub mod review;
mod status;
pub mod store;
pub mod transport;
pub mod write;

pub use cluster::Cluster;
pub use config::{ConnectError, ConnectOptions, connect};
pub use delete::{Delete, Deletion};
pub use discovery::ResolveError;
pub use events::{Event, EventKind, Recorded, Recorder};
pub use identity::Identity;
pub use object::{Object, ObjectError};
pub use read::ReadError;
pub use resource::Resource;
pub use review::{AccessCheck, ReviewError};
pub use store::{
    Answer, Change, ObjectChange, Snapshot, Store, WatchHandle, WatchScope, WatchSpec, WatchState,
};
pub use write::{Apply, WriteError};
