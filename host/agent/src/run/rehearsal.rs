//! A run that is only thought of: what it would do is taken down instead of done.
//!
//! It is the run of the agent up to the moment at which that would write, so what
//! is taken down is what the agent would do.

use super::observe::Observation;
use super::sync::{Sync, next};
use crate::effects::{Effect, Effects};
use parking_lot::Mutex;
use reeve_cluster::Object;
use reeve_core::ObjectReference;
use reeve_core::outcome::Verb;
use reeve_core::ownership::Owner;
use reeve_core::plan::{Plan, Preview, Situation, Step, Wanted};
use reeve_core::waves::{HookState, Phase, Role, Sequence};
use std::collections::BTreeSet;

/// Where it is taken down, for one run.
#[derive(Default)]
pub(crate) struct Rehearsal {
    /// Whether the whole sync is looked at instead of what comes next; see
    /// [`Rehearsal::of_whole`].
    whole: bool,
    taken: Mutex<Rehearsed>,
}

/// What a run would do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rehearsed {
    /// Whether it came to a plan.
    pub(crate) planned: bool,
    /// For whom; none when there is nothing to apply.
    pub(crate) owner: Option<Owner>,
    /// The desired objects.
    pub(crate) wanted: Vec<Wanted>,
    /// In which order they are applied.
    pub(crate) order: Vec<Place>,
    /// What of that order is not as it looks.
    pub(crate) notices: Vec<String>,
    /// All that the sync would do; none where what comes next was looked at.
    pub(crate) whole: Option<Preview>,
    /// Whether it follows from an empty set that is not said to be meant, so that a person
    /// would be asked about each deletion.
    pub(crate) empty_not_meant: bool,
    /// What would be done now.
    pub(crate) plan: Plan,
    /// Deletions that are held.
    pub(crate) held: Vec<ObjectReference>,
    /// Which of the desired objects differ and have to wait for others.
    pub(crate) waiting: BTreeSet<usize>,
    /// What approves it, where that is asked for.
    pub(crate) approval: Option<String>,
    /// What exists and must not.
    pub(crate) absences: Vec<ObjectReference>,
    /// What would be made and taken away outside, and none for what would be left
    /// there.
    pub(crate) effects: Vec<(Option<Verb>, Effect)>,
}

/// The place of an object in the order of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) phase: Phase,
    pub(crate) wave: Option<i64>,
    pub(crate) object: ObjectReference,
}

impl Rehearsal {
    /// A rehearsal that takes down all that a sync would do, its later waves and
    /// deletions included, as things are now. It asks nobody: neither the guard over
    /// deletions nor the plugin's log hears of it.
    pub(crate) fn of_whole() -> Self {
        Self {
            whole: true,
            taken: Mutex::default(),
        }
    }

    /// Whether it is one of those.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Takes down all that a sync would do, and whether that follows from an empty set that
    /// is not said to be meant.
    pub(super) fn take_down_whole(&self, preview: Preview, empty_not_meant: bool) {
        let mut taken = self.taken.lock();
        taken.planned = true;
        taken.empty_not_meant = empty_not_meant;
        taken.whole = Some(preview);
    }

    /// What was taken down.
    pub(crate) fn taken_down(&self) -> Rehearsed {
        self.taken.lock().clone()
    }

    /// Takes down what `plan` would do now, and what would come later. The plan has
    /// passed the guard.
    pub(super) fn take_down(
        &self,
        owner: &Owner,
        wanted: &[Wanted],
        sequence: &Sequence,
        looked: &Observation,
        sync: &Sync,
        plan: Plan,
    ) {
        // Deciding is pure: asked again, it says what the guard took out.
        let unguarded = next(owner, wanted, sequence, looked, sync);
        // What differs at all is what would be repaired if nothing had to wait.
        let without_gates = Sync {
            settled: true,
            ..sync.clone()
        };
        let everything =
            looked.with_situation(owner, wanted, sequence, &without_gates, |situation| {
                reeve_core::plan(&Situation {
                    unserved: &BTreeSet::new(),
                    ..*situation
                })
            });
        let now = applied(&plan);
        let mut waiting: BTreeSet<usize> = applied(&everything).difference(&now).copied().collect();
        if !sync.settled {
            waiting.extend((0..wanted.len()).filter(|index| {
                let one = &wanted[*index];
                let pending = plan.hooks.iter().any(|(key, state)| {
                    let name = one.stamped.reference.to_string();
                    *state == HookState::Pending
                        && key
                            .split_once(' ')
                            .is_some_and(|(_, object)| object == name)
                });
                matches!(one.member.options.role, Role::Hook(_)) && pending && !now.contains(index)
            }));
        }
        let mut taken = self.taken.lock();
        taken.planned = true;
        taken.owner = Some(owner.clone());
        taken.wanted = wanted.to_vec();
        taken.order = sequence
            .steps
            .iter()
            .flat_map(|step| {
                step.objects().map(|object| Place {
                    phase: step.phase,
                    wave: step.wave,
                    object: object.clone(),
                })
            })
            .collect();
        let notices = sequence.notices.iter();
        taken.notices = notices.map(ToString::to_string).collect();
        taken.held = held(&unguarded, &plan);
        taken.waiting = waiting;
        taken.plan = plan;
    }

    /// Takes down how a unit would end. The plan has passed the guard.
    pub(super) fn take_down_end(&self, unguarded: &Plan, plan: Plan) {
        let mut taken = self.taken.lock();
        taken.planned = true;
        taken.held = held(unguarded, &plan);
        taken.plan = plan;
    }

    /// Takes down what would approve the plan, if nothing did before.
    pub(super) fn take_down_approval(&self, id: String) {
        self.taken.lock().approval.get_or_insert(id);
    }

    /// Takes down what would be done outside, and what would be left there.
    pub(super) fn take_down_effects(&self, effects: &Effects, left: Vec<Effect>) {
        let pending = effects.pending();
        let pending = pending.map(|(verb, effect)| (Some(verb), effect.clone()));
        let left = left.into_iter().map(|effect| (None, effect));
        self.taken.lock().effects = pending.chain(left).collect();
    }

    /// Takes down that an object would be deleted because it must not exist.
    pub(super) fn take_down_absence(&self, object: &Object) {
        self.taken.lock().absences.push(object.reference());
    }
}

/// Which of the desired objects a plan applies.
fn applied(plan: &Plan) -> BTreeSet<usize> {
    let applied = plan.steps().filter_map(|step| match step {
        Step::Apply { wanted, .. } => Some(*wanted),
        _ => None,
    });
    applied.collect()
}

/// Deletions that are in one plan and not in the other.
fn held(unguarded: &Plan, guarded: &Plan) -> Vec<ObjectReference> {
    let deleted = |plan: &Plan| -> BTreeSet<ObjectReference> {
        let deleted = plan.steps().filter_map(|step| match step {
            Step::Delete { object, .. } => Some(object.clone()),
            _ => None,
        });
        deleted.collect()
    };
    deleted(unguarded)
        .difference(&deleted(guarded))
        .cloned()
        .collect()
}
