//! What a guest can call, one file for each interface.
//!
//! Everything here speaks the project's own types; the modules of
//! [`crate::Generation`] translate from and to the types of the contract.
//!
//! Deny by default: a guest reads what its caller's [`crate::View`] shows, logs
//! into a bounded buffer, and finds a WASI without files, environment, network,
//! time or chance. Only `actuate` is given an [`crate::Outside`]; in every other
//! function HTTP and SQL are there and say that they do not answer.

pub(crate) mod clock;
pub(crate) mod cluster;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod sources;
pub(crate) mod sql;
pub(crate) mod wasi;
