//! What keeps a mistake from deleting a cluster.
//!
//! One unit withdrawing some of its objects is ordinary. What is guarded against
//! is mass deletion: a version of a plugin that forgets one object of each of ten
//! thousand units, or all of one. Reports of lost data with other tools (Argo CD
//! issues 2573, 8099, 14090, 15058, 17440) are of this kind.
//!
//! A [`Guard`] watches over one plugin. What it does not let pass it holds, with
//! a [`Token`] that stands for exactly the objects held: whoever approves it
//! approves their deletion and nothing else. That is also why answers of a call
//! that trapped, timed out or was incomplete must never come here: nothing may be
//! deleted because of them at all.

mod guard;
mod hold;
mod policy;
mod token;

pub use guard::{ApprovalError, Cause, Guard, Request, Verdict};
pub use hold::{Hold, Reason};
pub use policy::{
    APPROVAL_LIFETIME, BUDGET, FLOOR, MOST_BUDGET, PLUGIN_SHARE_PERCENT, Policy,
    UNIT_SHARE_PERCENT, WINDOW,
};
pub use token::{ParseTokenError, Token};

use crate::kind::ObjectReference;
use crate::waves::Removal;

/// An object that is to be deleted, if the guard lets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The object.
    pub reference: ObjectReference,
    /// Its uid, as observed.
    pub uid: String,
    /// What its annotations say about deleting it: `prune` where it is no longer
    /// desired, `delete` where its unit ends.
    pub removal: Removal,
}
