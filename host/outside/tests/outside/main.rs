//! Requests and documents against servers on this machine, with real TLS.

#![expect(clippy::unwrap_used, reason = "tests")]

mod addresses;
mod documents;
mod registries;
mod requests;
mod server;
