//! The built-in kinds, as data.
//!
//! A kind is a row in one of the tables below and, where the server does more
//! than store it, a module of functions that the row names: defaults, what a
//! write may not carry, validation. To add a kind, add a row and its functions.
//! A test holds the rows against the tables that are made from published types, which
//! know all kinds of the version that is spoken (`../decode/types.txt`, made by
//! `examples/go_types.rs`; `../protobuf/table.txt`, by `examples/protobuf_table.rs`; the
//! schemas of `reeve_ssa::builtin`), and against `reeve_ssa::reset`, where a kind with a
//! status has a row of its own. `tests/real` wants requests to it in its corpus.
//!
//! The functions work on plain JSON. A write runs them in the server's order:
//! [`Kind::normalize`] as part of decoding, [`Kind::default`], on creation
//! [`Kind::admit`], then [`Kind::prepare_create`], [`Kind::prepare_update`] or
//! [`Kind::prepare_status`], then [`Kind::validate_create`] or
//! [`Kind::validate_update`].

mod addresses;
mod admission;
mod apps;
mod autoscaling;
mod batch;
mod claim;
mod config;
mod coordination;
mod discovery;
pub(crate) mod edit;
mod encoding;
mod endpoints;
mod event;
mod extensions;
mod gated;
mod hollow;
mod images;
mod job_policies;
mod job_status;
mod label_keys;
mod late;
mod limit_range;
mod meta;
mod namespace;
mod networking;
mod node;
mod persistent_volume;
mod pod;
mod pod_parts;
mod pod_status;
mod pod_validation;
mod policy;
mod quantities;
mod rbac;
mod references;
mod resource_quota;
pub(crate) mod resources;
mod review;
mod row;
mod schedule;
mod secret;
mod selectors;
mod service;
mod signing;
mod statuses;
mod storage;
mod stored;
mod strategy;
mod system;
pub(crate) mod token_lifetime;
mod verbs;
pub(crate) mod webhook_client;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use event::{to_core_group, to_events_group};
pub use extensions::mark_local_available;
pub use meta::{ObjectMetaRules, validate_meta, validate_meta_update};
pub(crate) use meta::{validate_annotations, validate_labels};
pub(crate) use pod::qos_class;
pub use quantities::DecodeError;
pub(crate) use row::METADATA_OF_CLIENTS;
pub use row::{GenerationRule, Kind};
pub use service::{ClusterIps, Pool, Refusal, allocate as allocate_for_service};
pub use verbs::{Scale, Subresource, Verbs};

/// All rows, in the order of the server's discovery.
const TABLES: &[&[Kind]] = &[
    system::ROWS,
    config::ROWS,
    apps::ROWS,
    batch::ROWS,
    networking::ROWS,
    rbac::ROWS,
    policy::ROWS,
    autoscaling::ROWS,
    storage::ROWS,
    coordination::ROWS,
    discovery::ROWS,
    event::ROWS,
    admission::ROWS,
    extensions::ROWS,
    review::ROWS,
];

type Key = (&'static str, &'static str, &'static str);
type ByResource = HashMap<Key, &'static Kind>;

static BY_RESOURCE: LazyLock<ByResource> =
    LazyLock::new(|| index(|kind| (kind.group, kind.version, kind.plural)));

static BY_KIND: LazyLock<ByResource> =
    LazyLock::new(|| index(|kind| (kind.group, kind.version, kind.kind)));

fn index(key: impl Fn(&Kind) -> Key) -> ByResource {
    all().map(|kind| (key(kind), kind)).collect()
}

/// All built-in kinds.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    TABLES.iter().copied().flatten()
}

/// The kind served at `/apis/GROUP/VERSION/PLURAL`.
pub fn by_resource(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    BY_RESOURCE.get(&(group, version, plural)).copied()
}

/// The kind that objects with this `apiVersion` and `kind` are of.
pub fn by_kind(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    BY_KIND.get(&(group, version, kind)).copied()
}

#[cfg(test)]
mod tests;
