//! Selectors: which objects a list, a watch or a deletecollection is about.
//!
//! Both kinds of selector are parsed with the server's error texts, so a caller
//! answers them as `BadRequest` unchanged.

mod field;
mod label;

pub use field::{FieldLabel, FieldLabels, FieldSelector, FieldSelectorError, Unsupported};
pub use label::{LabelSelector, LabelSelectorError, Operator, Requirement};
