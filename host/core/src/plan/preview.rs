//! All that a sync would do, for a person to look at before any of it is done.
//!
//! A [`Plan`] holds what may be done now. Whoever is to approve a sync wants to see
//! the whole of it: the waves that have not begun, and what goes at the end.

use super::difference::ApplyReason;
use super::observed::{Live, identity};
use super::{Plan, Situation, Step, plan, surplus};
use crate::digest::Digest;
use crate::kind::ObjectReference;
use crate::outcome::Verb;
use crate::prune::Candidate;
use crate::waves::{self, HookState, Phase, Removal, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What would be done to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// It would be created.
    Create,
    /// It would be changed, since something else is wanted than before.
    Change,
    /// It would be changed back.
    Repair,
    /// It is a hook, and would run.
    Run,
    /// It is somebody's, and fields of it would be set.
    Contribute,
    /// It is somebody's, and fields of it would be given up.
    Release,
    /// It would be deleted.
    Delete,
}

/// As the status of a `Unit` writes it.
impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One step of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewStep {
    /// What would be done.
    pub act: Act,
    /// To which object.
    pub object: ObjectReference,
    /// Its uid, where it exists.
    pub uid: Option<String>,
}

impl PreviewStep {
    fn delete(object: &ObjectReference, uid: &str) -> Self {
        Self {
            act: Act::Delete,
            object: object.clone(),
            uid: Some(uid.to_owned()),
        }
    }
}

/// An effect outside of the cluster that would be made or taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewEffect {
    /// [`Verb::Apply`] or [`Verb::Retire`]: a look changes nothing.
    pub verb: Verb,
    /// Name of the action.
    pub name: String,
    /// Its key among those of the primary.
    pub key: String,
    /// Digest of what is asked for.
    pub request: String,
}

/// A whole sync, before any of it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The steps: what is applied in its order, then what is given up or deleted.
    pub steps: Vec<PreviewStep>,
    /// What is made and taken away outside, when the steps are done.
    pub effects: Vec<PreviewEffect>,
    /// What it leads to.
    towards: String,
}

/// Length of a plan's id: 80 bits of a digest. Short enough to type, and nobody gains
/// from finding two plans with one id, since only one of them is ever shown.
const ID_LENGTH: usize = 20;

impl Preview {
    /// All that the sync of a revision would do, as things are now. Whatever
    /// [`plan`] says of the same situation is among it.
    pub fn of(situation: &Situation<'_>, revision: &Digest) -> Self {
        let now = plan(situation);
        // What differs at all is what would be repaired if nothing had to wait.
        let everything = plan(&Situation {
            settled: true,
            unserved: &BTreeSet::new(),
            ..*situation
        });
        let mut applied = applied(situation, &everything);
        applied.extend(self::applied(situation, &now));
        let live = Live::of(situation, &mut Vec::new());
        let mut steps = Vec::new();
        for step in &situation.sequence.steps {
            for object in step.objects() {
                let runs = || runs(situation, &now, step.phase, object);
                if let Some((act, uid)) = applied.remove(object) {
                    let object = object.clone();
                    steps.push(PreviewStep { act, object, uid });
                } else if !situation.settled && runs() {
                    steps.push(PreviewStep {
                        act: Act::Run,
                        object: object.clone(),
                        uid: live.get(object).map(|live| live.uid.clone()),
                    });
                }
            }
        }
        // Hooks for a failure, if it has come to that.
        let rest = applied.into_iter();
        steps.extend(rest.map(|(object, (act, uid))| PreviewStep { act, object, uid }));
        let wanted: BTreeSet<_> = situation
            .wanted
            .iter()
            .map(|one| identity(&one.stamped.reference))
            .collect();
        let mut unwanted = live.all();
        unwanted.retain(|object| !wanted.contains(&identity(&object.reference)));
        if situation.keeps {
            unwanted.clear();
        }
        let withdrawn = surplus::withdrawn(&unwanted);
        let going = withdrawn.iter().filter(|one| one.removal != Removal::Never);
        steps.extend(going.map(|one| PreviewStep::delete(&one.reference, &one.uid)));
        let known: BTreeSet<ObjectReference> =
            steps.iter().map(|step| step.object.clone()).collect();
        for step in everything.steps().chain(now.steps()) {
            let (act, object, uid) = match step {
                Step::Release { object, uid } => (Act::Release, object, uid),
                Step::Delete { object, uid, .. } => (Act::Delete, object, uid),
                Step::Apply { .. } | Step::Contribute { .. } => continue,
            };
            let step = PreviewStep {
                act,
                object: object.clone(),
                uid: Some(uid.clone()),
            };
            // A hook that makes room for itself is one that runs.
            if !known.contains(object) && !steps.contains(&step) {
                steps.push(step);
            }
        }
        Self {
            steps,
            effects: Vec::new(),
            towards: revision.to_string(),
        }
    }

    /// The deletion of all that is left of a unit that ends, as [`super::removal`]
    /// plans it, and what it gives up.
    pub fn of_removal(plan: &Plan) -> Self {
        let surplus = plan.surplus.iter();
        let going = surplus.filter(|one| one.removal != Removal::Never);
        let mut steps: Vec<PreviewStep> = going
            .map(|one| PreviewStep::delete(&one.reference, &one.uid))
            .collect();
        for step in plan.steps() {
            if let Step::Release { object, uid } = step {
                steps.push(PreviewStep {
                    act: Act::Release,
                    object: object.clone(),
                    uid: Some(uid.clone()),
                });
            }
        }
        Self {
            steps,
            effects: Vec::new(),
            towards: "the removal of what is left".to_owned(),
        }
    }

    /// All that [`super::end`] would do, of which `plan` is next.
    pub fn of_end(situation: &Situation<'_>, plan: &Plan) -> Self {
        let live = Live::of(situation, &mut Vec::new());
        let hooks = |waves: &[waves::Step]| -> Vec<PreviewStep> {
            let all = waves
                .iter()
                .flat_map(|wave| wave.objects().map(|object| (wave.phase, object)));
            all.filter(|(phase, object)| runs(situation, plan, *phase, object))
                .map(|(_, object)| PreviewStep {
                    act: Act::Run,
                    object: object.clone(),
                    uid: None,
                })
                .collect()
        };
        let mut steps = hooks(&situation.sequence.before_deletion);
        let ended = surplus::ended(&live.all());
        steps.extend(
            ended
                .iter()
                .map(|one| PreviewStep::delete(&one.reference, &one.uid)),
        );
        steps.extend(plan.steps().filter_map(|step| match step {
            Step::Release { object, uid } => Some(PreviewStep {
                act: Act::Release,
                object: object.clone(),
                uid: Some(uid.clone()),
            }),
            _ => None,
        }));
        steps.extend(hooks(&situation.sequence.after_deletion));
        Self {
            steps,
            effects: Vec::new(),
            towards: "the end of the unit".to_owned(),
        }
    }

    /// The deletion of objects that must not exist.
    pub fn of_absences(candidates: &[Candidate]) -> Self {
        let candidates = candidates.iter();
        Self {
            steps: candidates
                .map(|one| PreviewStep::delete(&one.reference, &one.uid))
                .collect(),
            effects: Vec::new(),
            towards: "what must not exist".to_owned(),
        }
    }

    /// Nothing but effects outside of the cluster.
    pub fn of_effects(effects: Vec<PreviewEffect>) -> Self {
        Self {
            steps: Vec::new(),
            effects,
            towards: "outside effects".to_owned(),
        }
    }

    /// This, and then these effects outside of the cluster.
    #[must_use]
    pub fn with_effects(self, effects: Vec<PreviewEffect>) -> Self {
        Self { effects, ..self }
    }

    /// What stands for exactly these steps towards exactly this revision. `used` is
    /// the id that was approved before: the same steps, should they be due once
    /// more, are another plan.
    pub fn id(&self, used: Option<&str>) -> String {
        let steps = self.steps.iter().map(|step| {
            let PreviewStep { act, object, uid } = step;
            let uid = uid.as_deref().unwrap_or_default();
            format!("{act} {} {object} {uid}", object.kind)
        });
        let effects = self.effects.iter().map(|effect| {
            let PreviewEffect {
                verb,
                name,
                key,
                request,
            } = effect;
            // The key comes last, since it may hold anything.
            format!("outside {} {name} {request} {key}", verb.as_str())
        });
        let head = [used.unwrap_or_default().to_owned(), self.towards.clone()];
        let lines: Vec<String> = head.into_iter().chain(steps).chain(effects).collect();
        let digest = Digest::of_parts(lines.iter().map(String::as_bytes));
        digest.hex()[..ID_LENGTH].to_owned()
    }

    /// How many steps do one of these.
    pub fn count(&self, acts: &[Act]) -> usize {
        let steps = self.steps.iter();
        steps.filter(|step| acts.contains(&step.act)).count()
    }
}

/// What a plan applies, by object.
fn applied(
    situation: &Situation<'_>,
    plan: &Plan,
) -> BTreeMap<ObjectReference, (Act, Option<String>)> {
    let object = |wanted: usize| {
        let one = situation.wanted.get(wanted)?;
        let hook = matches!(one.member.options.role, Role::Hook(_));
        Some((one.stamped.reference.clone(), hook))
    };
    let steps = plan.steps().filter_map(|step| match step {
        Step::Apply {
            wanted,
            reason,
            uid,
        } => {
            let (reference, hook) = object(*wanted)?;
            let act = match reason {
                _ if hook => Act::Run,
                ApplyReason::Absent => Act::Create,
                ApplyReason::Changed => Act::Change,
                ApplyReason::Drifted => Act::Repair,
            };
            Some((reference, (act, uid.clone())))
        }
        Step::Contribute { wanted, uid, .. } => {
            let (reference, _) = object(*wanted)?;
            Some((reference, (Act::Contribute, Some(uid.clone()))))
        }
        Step::Release { .. } | Step::Delete { .. } => None,
    });
    steps.collect()
}

/// Whether an object is a hook that has yet to run in a phase.
fn runs(situation: &Situation<'_>, now: &Plan, phase: Phase, object: &ObjectReference) -> bool {
    let hook = situation.wanted.iter().any(|one| {
        one.stamped.reference == *object && matches!(one.member.options.role, Role::Hook(_))
    });
    hook && matches!(
        now.hooks.get(&super::hooks::hook_key(phase, object)),
        None | Some(HookState::Pending | HookState::Again { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stands_for_the_effects_too() {
        let effect = PreviewEffect {
            verb: Verb::Apply,
            name: "database".to_owned(),
            key: "db".to_owned(),
            request: "1".to_owned(),
        };
        let id = |effects: &[PreviewEffect]| {
            let none = Preview::of_absences(&[]);
            none.with_effects(effects.to_vec()).id(None)
        };
        let one = id(std::slice::from_ref(&effect));
        for other in [
            vec![],
            vec![effect.clone(), effect.clone()],
            vec![PreviewEffect {
                verb: Verb::Retire,
                ..effect.clone()
            }],
            vec![PreviewEffect {
                key: "db2".to_owned(),
                ..effect.clone()
            }],
            vec![PreviewEffect {
                request: "2".to_owned(),
                ..effect.clone()
            }],
        ] {
            assert_ne!(id(&other), one, "{other:?}");
        }
        assert_eq!(id(std::slice::from_ref(&effect)), one);
        // Alone they are another plan than after something else, and good once.
        let alone = Preview::of_effects(vec![effect]);
        assert_ne!(alone.id(None), one);
        assert_ne!(alone.id(None), alone.id(Some(&one)));
    }
}
