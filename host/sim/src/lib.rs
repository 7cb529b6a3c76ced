//! An in-process Kubernetes API server.
//!
//! It answers like kube-apiserver 1.36 for what controllers, plugins and kubectl
//! do: discovery, CRUD, lists and watches, all patches with server-side apply,
//! CustomResourceDefinitions, RBAC with impersonation, garbage collection and
//! namespace lifecycle. A [`Server`] is given to `kube::Client` directly, or
//! served over TLS on a loopback port.
//!
//! The way of a request, and where it is looked after:
//!
//! | Step | Module |
//! |---|---|
//! | path, parameters, identity, form of the answer | `http`, `access` |
//! | objects from outside | `decode` |
//! | what is served | `registry`, `resource`, `discovery`, `definitions` |
//! | the verbs over one write path | `rest` |
//! | the rules of a kind | `behaviour`, over [`kinds`] and `crd` |
//! | what other objects have to say | `admission` |
//! | objects, versions, history | `store`, `watch` |
//! | what outlives the process | `state` |
//! | what follows a write | `controllers`, and on request `actors` |

mod access;
mod actors;
mod admission;
mod amounts;
pub mod authz;
mod behaviour;
mod bootstrap;
mod cel;
mod client;
mod clock;
mod controllers;
mod conversion;
mod counter;
pub mod crd;
mod decode;
mod definitions;
mod depth;
mod discovery;
mod duration;
mod events;
mod faults;
pub mod field;
mod http;
mod identity;
pub mod kinds;
mod kubeconfig;
pub mod names;
mod protobuf;
pub mod quantity;
mod quotas;
mod random;
mod registry;
mod render;
mod resource;
mod rest;
mod reviews;
mod schedule;
mod selection;
pub mod selector;
mod serve;
mod server;
mod services;
mod span;
mod state;
mod status;
mod store;
mod strategic;
pub mod table;
mod tokens;
mod typed;
mod types;
mod watch;

pub use self::actors::{Actors, CustomKind, NotAKind};
pub use self::clock::{Clock, Hand};
pub use self::counter::{Call, Requests};
pub use self::faults::{Fault, FaultError, Faults, Outage};
pub use self::http::route::Verb;
pub use self::identity::Identity;
pub use self::kubeconfig::NAME as KUBECONFIG_NAME;
pub use self::serve::{ServeError, Serving, allow_many_connections};
pub use self::server::{Config, Server};
pub use self::state::{StateError, is_snapshot, load_state, save_state};
