//! The world outside the cluster: documents, services, databases.
//!
//! ```text
//! Rule (granted) ─▶ Http ─▶ fetch (documents)
//!                    │  └─▶ send  (one request, signed by a key)
//! Settings ───────▶ Database ─▶ Session ─▶ query | transaction
//! ImageReference ─▶ Registry ─▶ pull | push | signatures
//! ```
//!
//! Nothing here knows plugins or Kubernetes: callers say what was granted, and
//! no function reaches further than that. A host is granted by name, but what is
//! connected to is an address: each is looked at before it is connected to, for
//! each connection and each redirect anew, so that a name which changes its mind
//! reaches nothing that was not granted.
//!
//! No error holds a credential.

pub mod address;
pub mod database;
pub mod document;
pub mod file;
pub mod http;
pub mod path;
pub mod registry;
pub mod resolve;
pub mod rule;
pub mod scram;
pub mod secret;
pub mod sign;
pub mod signature;
pub mod tls;

mod civil;

pub use address::{AddressRefused, Network, Networks};
pub use database::{Database, Session, Settings, SettingsError, SqlLimits};
pub use document::{Document, FetchError, Fetched, Validators};
pub use file::FileError;
pub use http::{Http, HttpError, HttpLimits, Keys};
pub use registry::{ImageReference, Login, Registry, RegistryError, RegistrySettings};
pub use resolve::{Resolver, SystemResolver};
pub use rule::{Rule, RuleError};
pub use secret::Secret;
pub use sign::{KeyError, Signer};
pub use tls::{Roots, RootsError};
