//! What the store tells about itself.

use super::spec::WatchSpec;
use super::state::WatchState;
use crate::object::Object;
use reeve_core::ObjectReference;
use std::sync::Arc;

/// A change of the store. A snapshot taken after receiving it contains it.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object appeared, changed or went.
    Object(ObjectChange),
    /// A watch synced, or stopped being so.
    State {
        /// The watch.
        watch: Arc<WatchSpec>,
        /// Its new state.
        state: WatchState,
    },
}

/// An object before and after. Where watches overlap, each of them tells.
#[derive(Clone, Debug)]
pub struct ObjectChange {
    /// The watch that tells.
    pub watch: Arc<WatchSpec>,
    /// The object.
    pub reference: ObjectReference,
    /// The object before; none when it is new to the watch.
    pub old: Option<Arc<Object>>,
    /// The object now; none when it is gone, or belongs to the watch no more.
    pub new: Option<Arc<Object>>,
    /// Whether a write of our own told it, through [`crate::Store::observe`],
    /// rather than the watch.
    pub own_write: bool,
}
