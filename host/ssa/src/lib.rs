//! Server-side apply as a library: field sets, managedFields, structured merge.
//!
//! What a Kubernetes 1.36 API server does with `PATCH` of type apply, and with
//! ownership on every other write, as pure functions over JSON. An API server
//! calls [`apply()`] and [`update()`]; a client calls [`predict()`] to know from an
//! object alone whether applying a config would change anything, or, without a
//! schema, [`covers()`] to know whether a config that it has applied is still its own.
//!
//! | Module | Knows |
//! |---|---|
//! | [`path`], [`set`] | fields and sets of fields, with the fieldsV1 encoding |
//! | [`schema`], [`builtin`] | types: of custom resources, of built-in kinds |
//! | [`typed`] | merge, compare and remove on objects of a type |
//! | [`managed`] | entries of `managedFields` |
//! | [`reset`] | what a request cannot set, by kind and subresource |
//! | [`mod@apply`], [`mod@update`], [`conflict`] | the two operations |
//! | [`scale`] | owners of replicas across the `scale` subresource |
//! | [`mod@predict`] | what an apply would do |
//! | [`mod@covers`] | whether a manager owns a config |
//! | [`handover`] | moving ownership while values stay |

pub mod apply;
pub mod builtin;
pub mod conflict;
pub mod covers;
mod encode;
mod fields_v1;
pub mod handover;
mod identity;
mod last_applied;
pub mod managed;
mod ownership;
pub mod path;
pub mod predict;
pub mod reset;
pub mod scale;
pub mod schema;
pub mod set;
mod time;
pub mod typed;
pub mod update;
mod value;

pub use self::apply::{Applied, Apply, ApplyError, apply};
pub use self::conflict::{Conflict, Conflicts};
pub use self::covers::{covers, covers_typed, owned_beyond};
pub use self::fields_v1::FieldsError;
pub use self::managed::{ManagedFields, ManagedFieldsError, ManagerId, Operation, Owned};
pub use self::ownership::{Conversion, Version};
pub use self::path::{Path, PathElement, PathError};
pub use self::predict::{Change, Prediction, predict};
pub use self::schema::{Schema, SchemaError};
pub use self::set::FieldSet;
pub use self::update::{Update, update};
