//! CustomResourceDefinitions and the objects that they define, as pure
//! functions on JSON.
//!
//! `definition` holds the rules of the definition itself, `naming` who gets
//! which names, `rules` what a schema may say. The remaining modules work on the
//! schema of a version: parsed once into a [`Schema`], it prunes, defaults and
//! validates objects.

pub mod columns;
mod defaulting;
mod definition;
mod expression;
mod format;
mod naming;
mod pattern;
mod prune;
mod rules;
mod structural;
mod validate;

pub use definition::{default, prepare_create, prepare_update, validate_create, validate_update};
pub(crate) use format::matches as fits;
pub use naming::{Names, accept_names, establish};
pub(crate) use pattern::Pattern;
pub use structural::Schema;
