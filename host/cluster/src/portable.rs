//! Objects of one cluster, in a form in which another one can be made of them.
//!
//! What only its own server can know is left out: uids, versions, times, who owns
//! which field, addresses of Services. An owner is named without its uid, and comes
//! before what it owns, so that the uid that it gets elsewhere can be filled in.

mod order;
mod put;
mod read;
mod selection;
mod shape;

pub use put::{Given, PutError};
pub use read::{Export, ExportError, Progress, Unread};
pub use selection::{Selection, UnknownKind};
