//! The agent: what is installed, what is due, what is done about it.
//!
//! ```text
//! ConfigMaps ─▶ delivery ─▶ load ─▶ Active
//!                                     │
//! store changes ─▶ controller ─▶ queue ─▶ run ─▶ plan ─▶ execute ─▶ cluster
//!                      ▲                   │
//!                      └── reads, problems ┘─▶ reporter ─▶ Plugin, Unit, Events
//! ```
//!
//! The agent reaches a cluster only through a [`kube::Client`]; whether an API
//! server over the network or one in the same process answers, it cannot tell.

mod active;
mod agent;
mod approval;
mod artifacts;
mod asked;
mod bounds;
mod calls;
mod clock;
mod config_schema;
mod controller;
pub mod delivery;
mod effects;
mod event_limit;
mod execute;
mod findings;
mod gates;
mod granted;
mod health;
mod inventory;
mod journal;
mod kept;
mod left;
mod load;
mod memo;
mod metrics;
pub mod needs;
pub mod planner;
mod plugin;
mod policy;
mod policy_object;
mod problem;
mod queue;
mod reads;
mod removal;
mod reporter;
mod request;
mod rights;
mod run;
mod secret_names;
mod secrets;
mod signed;
mod sources;
mod status;
mod strangers;
mod sync_status;
mod unanswered;
mod unserved;
mod version;
mod view;
mod written;

pub use agent::{Agent, AgentConfig};
pub use bounds::{BoundError, LimitBounds};
pub use calls::{GuestThreads, PluginThreads};
pub use clock::{Clock, SystemClock, VirtualClock};
pub use config_schema::{SchemaError, check_apart as check_config};
pub use controller::Footprint;
pub use effects::{EffectFeed, GivenEffect, GivenEffects, forget_token, forget_tokens};
pub use findings::Findings;
pub use health::{Health, HealthServer};
pub use metrics::Metrics;
pub use reeve_cluster::{ElectorSettings, Role};
pub use reeve_outside::signature::VerifyingKey;
pub use sources::{GivenSource, GivenSources, SourceFeed};
pub use status::{AgentStatus, PluginReport, UnitSummary};
