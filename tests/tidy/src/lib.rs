//! Checks the direction of the crates and the state of the tree.
//!
//! Each check returns what it found wrong, one line each, in a form that says
//! where to look. The tests of this crate hold them against the checkout.

pub mod crates;
pub mod documents;
pub mod sources;
mod tree;

pub use tree::{TextFile, Tree};
