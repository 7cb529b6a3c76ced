//! From what should be and what is, to what is to be done now.
//!
//! One pure function decides for the agent, for `reeve plan`, for the harness and
//! for shadow runs. It never sees the cluster, only what was observed of it.
//!
//! A plan holds only what may be done now. What waits for a gate is not in it;
//! when something changes, [`plan`] is asked again and answers from what is then
//! observed. So nothing has to be remembered between two looks but how far hooks
//! have come, a restart in the middle of a sync goes on where it was, and a newer
//! desired state replaces an older one while that waits, never while it is being
//! applied.

mod adoption;
mod contribute;
mod difference;
mod ending;
mod handover;
mod hooks;
mod mark;
mod observed;
mod policy;
mod prepare;
mod preview;
mod recreate;
mod refusal;
mod resume;
mod schemas;
mod surplus;
mod sync;
mod taken;
#[cfg(test)]
mod tests;

pub use adoption::{CLIENT_SIDE_APPLY, Claim, Whose, adopted, judge};
pub use contribute::{Contributions, Target};
pub use difference::ApplyReason;
pub use ending::{EndNeeds, end};
pub use handover::{handover, replaced};
pub use hooks::is_of_phase;
pub use mark::mark_hooks;
pub use observed::{Observed, Owned};
pub use policy::{Adoption, Policy};
pub use prepare::{Ignored, Prepared, prepare};
pub use preview::{Act, Preview, PreviewEffect, PreviewStep};
pub use recreate::{Recreation, recreation};
pub use reeve_ssa::covers;
pub use refusal::Refusal;
pub use resume::leaves_behind;
pub use schemas::Schemas;
pub use surplus::{Ending, Withdrawal, is_precious};
pub use sync::{Blocked, Hooks, Progress};
pub use taken::{Taken, taken};

use crate::digest::Digest;
use crate::health::{Applied, Gate};
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::ownership::{Owner, Stamped};
use crate::prune::Candidate;
use crate::waves::{Member, Removal, Sequence};
use foldhash::HashMap;
use observed::Live;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A desired object, and what its annotations say about how it is handled.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// What is sent.
    pub stamped: Stamped,
    /// Its reference and its options.
    pub member: Member,
    /// What is left to others of it.
    pub ignored: Option<Ignored>,
}

/// Objects that were sent as they are wanted, and do not become so: a field that the
/// API server drops, or a list whose emptiness nobody can own. With the
/// [`Observed::fingerprint`] that they have after that. As long as they have it,
/// sending them again would change nothing.
pub type Stubborn = BTreeMap<ObjectReference, Digest>;

/// All that a plan follows from.
pub struct Situation<'a> {
    /// The unit, and its primary's uid.
    pub owner: &'a Owner,
    /// The complete desired set of a successful call.
    pub wanted: &'a [Wanted],
    /// The order of the desired set.
    pub sequence: &'a Sequence,
    /// Every object that carries the unit's labels.
    pub observed: &'a [Observed],
    /// Whether an object lets the next step begin. Asked only where something
    /// waits for the answer.
    pub gate: &'a dyn Fn(&Observed, Option<Applied<'_>>) -> Gate,
    /// How far the hooks of this revision have come.
    pub hooks: &'a Hooks,
    /// What custom resources look like, as far as that is known.
    pub schemas: &'a Schemas,
    /// What sending does not change.
    pub stubborn: &'a Stubborn,
    /// What the unit contributes to objects of others.
    pub contributions: Contributions<'a>,
    /// Kinds that the API server does not serve yet: their objects wait.
    pub unserved: &'a BTreeSet<GroupVersionKind>,
    /// Objects that are made only where there is nothing of their name, and of whose
    /// name there is something that does not carry the unit's labels.
    pub left_alone: &'a BTreeSet<ObjectReference>,
    /// Whether what is not desired stays all the same: the desired set may lack something
    /// only because the plugin was not shown all that it asked for.
    pub keeps: bool,
    /// Whether the sync has failed without a hook that did: an object was refused, or
    /// a wave takes too long.
    pub failing: bool,
    /// Whether this revision was complete once. Then what differs is drift: it is
    /// repaired without gates, and no hook runs.
    pub settled: bool,
}

/// What to do for one unit now, and what waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do, stage after stage; the steps of a stage do not depend on each
    /// other.
    pub stages: Vec<Vec<Step>>,
    /// What is not done, and why.
    pub refusals: Vec<Refusal>,
    /// How many desired objects are as they should be.
    pub unchanged: usize,
    /// How many desired objects wait for others before they are applied.
    pub waiting: usize,
    /// What is waited for.
    pub blocked: Option<Blocked>,
    /// How far the sync is.
    pub progress: Progress,
    /// When to look again although nothing changes.
    pub recheck_after: Option<Duration>,
    /// How far the hooks are, after this look.
    pub hooks: Hooks,
    /// All that is to be deleted since it is no longer wanted, of which the steps
    /// hold what goes now. Whether so much may go is decided about the whole.
    pub surplus: Vec<Candidate>,
    /// What stays though it is not desired; see [`Situation::keeps`].
    pub kept: Vec<ObjectReference>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Apply an object.
    Apply {
        /// Which of [`Situation::wanted`].
        wanted: usize,
        /// Why.
        reason: ApplyReason,
        /// Uid of the object that it is meant for; none where there is none. An
        /// object of the same name made since then is another one.
        uid: Option<String>,
    },
    /// Own fields of somebody's object.
    Contribute {
        /// Which of [`Situation::wanted`].
        wanted: usize,
        /// Uid of the object, a precondition: one that is not there is not made.
        uid: String,
        /// Whether this agent had contributed the very same before, and somebody
        /// took it.
        again: bool,
    },
    /// Give up all fields of somebody's object.
    Release {
        /// The object.
        object: ObjectReference,
        /// Its uid.
        uid: String,
    },
    /// Delete an object, if it is still the one that was observed.
    Delete {
        /// The object.
        object: ObjectReference,
        /// Its uid, a precondition of the deletion.
        uid: String,
        /// Why.
        reason: Withdrawal,
        /// What the object says about it.
        removal: Removal,
    },
}

impl Plan {
    /// All steps in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().flatten()
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.stages.iter().all(Vec::is_empty)
    }
}

/// The revision of a desired set: what a sync is one of. It does not depend on
/// the order in which the objects were returned.
pub fn revision(wanted: &[Wanted]) -> Digest {
    let parts = wanted.iter().map(|one| part_of_revision(&one.stamped));
    revision_of(parts.collect())
}

fn revision_of(mut parts: Vec<String>) -> Digest {
    parts.sort();
    Digest::of_parts(parts.iter().map(String::as_bytes))
}

/// What of an object is part of a revision.
fn part_of_revision(stamped: &Stamped) -> String {
    format!("{}\n{}", stamped.reference, stamped.applied)
}

/// Decides what to do for one unit now.
///
/// An object that is desired and being deleted is left to go first: its deletion
/// is observed, and the unit runs again.
pub fn plan(situation: &Situation<'_>) -> Plan {
    let mut plan = Plan::default();
    let live = Live::of(situation, &mut plan.refusals);
    let wanted: HashMap<_, usize> = situation
        .wanted
        .iter()
        .enumerate()
        .map(|(index, one)| (observed::identity(&one.stamped.reference), index))
        .collect();
    sync::advance(situation, &live, &wanted, &mut plan);
    surplus::withdraw(situation, &live, &wanted, &mut plan);
    contribute::release(situation, &mut plan);
    if !plan.is_empty() {
        plan.progress = plan.progress.min(Progress::Applying);
    }
    plan
}

/// Decides what to delete when the unit ends: all of `observed` that is provably
/// the unit's, dependents first, each step gone before the next begins. Objects
/// that say `Delete=false` stay.
pub fn removal(owner: &Owner, observed: &[Observed], ending: Ending) -> Plan {
    let mut plan = Plan::default();
    let live = Live::owned(owner, observed, &mut plan.refusals);
    surplus::end(&live, ending, &mut plan);
    plan
}
