//! The API as clients see it, through `kube::Client`: one file per behaviour.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "bodies read better as values"
)]

mod access;
mod admission;
mod apply;
mod conversion;
mod definitions;
mod discovery;
mod faults;
mod impersonation;
mod kinds;
mod lifecycle;
mod limits;
mod lists;
mod objects;
mod openapi;
mod paths;
mod scale;
mod services;
mod serving;
mod state;
mod support;
mod upkeep;
mod used;
mod watches;
