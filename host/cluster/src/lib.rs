//! The way to Kubernetes: watches, object store, apply, access reviews, events,
//! and the lease of the one replica that writes.
//!
//! Everything goes through one [`kube::Client`], which may lead to an API server
//! over the network or to one in this process; nothing in here knows which. All
//! waiting is tokio's, so that a paused clock governs it.

mod client;
pub mod cluster;
pub mod config;
pub mod delete;
pub mod discovery;
pub mod events;
pub mod identity;
mod jitter;
pub mod lease;
pub mod list;
pub mod object;
pub mod observer;
pub mod portable;
pub mod read;
pub mod resource;
pub mod review;
pub mod schema;
mod status;
pub mod store;
mod throttle;
pub mod transport;
pub mod write;

pub use cluster::Cluster;
pub use config::{ConnectError, ConnectOptions, connect, connect_now};
pub use delete::{Delete, Deletion};
pub use discovery::{ExpandError, ResolveError};
pub use events::{Event, EventKind, Recorded, Recorder};
pub use identity::Identity;
pub use lease::{Elector, ElectorSettings, Fence, LeaseName, LeaseTiming, NotLeader, Role};
pub use list::{List, ListError, Page};
pub use object::{Object, ObjectError};
pub use observer::Observer;
pub use read::ReadError;
pub use resource::Resource;
pub use review::{AccessCheck, ReviewError};
pub use store::{
    Answer, Change, ObjectChange, ObjectName, REREAD, Snapshot, Store, WatchHandle, WatchScope,
    WatchSpec, WatchState,
};
pub use write::{
    Apply, Body, Create, Preconditions, Resume, SetFinalizers, SetManagers, WriteError,
};
