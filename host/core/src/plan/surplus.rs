//! What a unit has and no longer wants: what of it goes now, and what stays until
//! somebody says so.

use super::observed::{Identity, Live, identity};
use super::{Observed, Plan, Progress, Situation, Step};
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::ownership::PRUNE_ANNOTATION;
use crate::prune::Candidate;
use crate::waves::{self, Member, Options, Removal, Role};
use foldhash::{HashMap, HashMapExt as _};

/// Why an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// The plugin no longer returns it.
    Unwanted,
    /// Its unit has ended: the primary is gone, or going.
    UnitEnded,
    /// Its unit has ended although the primary lives: it is no longer selected.
    Deselected,
    /// The hook of an earlier sync makes room for that of this one.
    EarlierHook,
    /// The hook has ended, and its policy says so.
    HookEnded,
}

/// Kinds whose deletion takes data of others with it.
const PRECIOUS: [(&str, &str); 4] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Whether deleting this kind needs permission.
pub fn is_precious(kind: &GroupVersionKind) -> bool {
    PRECIOUS.contains(&(kind.group.as_str(), kind.kind.as_str()))
}

/// Adds the deletion of what is no longer wanted. Nothing goes before what may
/// take its place is applied, and nothing when a hook has failed. Whether so much
/// may go is for [`crate::prune::Guard`] to say.
pub(super) fn withdraw(
    situation: &Situation<'_>,
    live: &Live<'_>,
    wanted: &HashMap<Identity<'_>, usize>,
    plan: &mut Plan,
) {
    let surplus: Vec<&Observed> = live
        .all()
        .into_iter()
        .filter(|object| !wanted.contains_key(&identity(&object.reference)))
        .collect();
    if surplus.is_empty() || plan.progress == Progress::Failed {
        return;
    }
    if situation.keeps {
        let kept = candidates(&surplus, Withdrawal::Unwanted).into_iter();
        plan.kept.extend(kept.map(|one| one.reference));
        return;
    }
    // While a sync waits in a step, what belongs to later ones may still be
    // needed.
    let reached = match plan.progress {
        Progress::Waiting => plan.blocked.as_ref().map(|blocked| blocked.wave),
        _ if plan.waiting > 0 => return,
        _ => None,
    };
    let reached = reached.map(|wave| wave.unwrap_or(i64::MIN));
    plan.surplus = candidates(&surplus, Withdrawal::Unwanted);
    let everything_well = plan.progress == Progress::Complete;
    let (members, by_name) = members(surplus);
    let order = waves::deletion(&members);
    let mut steps = order.steps;
    if everything_well {
        steps.extend(order.last);
    }
    delete(
        &by_name,
        steps,
        |options| reached.is_none_or(|reached| options.wave <= reached),
        Withdrawal::Unwanted,
        plan,
    );
}

/// Why a unit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its primary is gone, or is being deleted: somebody asked for the end.
    Deleted,
    /// Its primary lives and is no longer selected: by its labels, or by another version
    /// of the plugin. That may be a mistake as anything that a plugin withdraws may.
    Deselected,
}

impl From<Ending> for Withdrawal {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Deleted => Self::UnitEnded,
            Ending::Deselected => Self::Deselected,
        }
    }
}

/// Adds the deletion of all that is left of a unit that has ended.
pub(super) fn end(live: &Live<'_>, ending: Ending, plan: &mut Plan) {
    let reason = Withdrawal::from(ending);
    plan.surplus = candidates(&live.all(), reason);
    let (members, by_name) = members(live.all());
    let order = waves::deletion(&members);
    let mut steps = order.last;
    steps.extend(order.steps);
    delete(&by_name, steps, |_| true, reason, plan);
    if !plan.is_empty() {
        plan.progress = Progress::Applying;
    } else if live.all().iter().any(|object| object.deleting) {
        plan.progress = Progress::Waiting;
    }
}

/// Adds the first step of a deletion that is not gone yet. Within it, kinds go in
/// the order of their groups.
fn delete(
    surplus: &ByName<'_>,
    steps: Vec<waves::Step>,
    may_go: impl Fn(&Options) -> bool,
    reason: Withdrawal,
    plan: &mut Plan,
) {
    for step in steps {
        let mut here = false;
        for group in step.groups {
            let mut stage = Vec::new();
            for reference in group {
                let Some((object, options)) = surplus.get(&reference) else {
                    continue;
                };
                let removal = removal(object, options, reason);
                if !may_go(options) || removal == Removal::Never {
                    continue;
                }
                here = true;
                if !object.deleting {
                    stage.push(Step::Delete {
                        reason: of_hook(&reference.kind, options, removal, reason),
                        object: reference,
                        uid: object.uid.clone(),
                        removal,
                    });
                }
            }
            if !stage.is_empty() {
                plan.stages.push(stage);
            }
        }
        if here {
            return;
        }
    }
}

/// What of these is a withdrawal that the guard is asked about. What is going
/// already was let go.
fn candidates(surplus: &[&Observed], reason: Withdrawal) -> Vec<Candidate> {
    let guarded = judged(surplus, reason)
        .filter(|(candidate, of_hook)| candidate.removal != Removal::Never && *of_hook == reason);
    guarded.map(|(candidate, _)| candidate).collect()
}

/// What of these goes when their unit ends.
pub(super) fn ended(all: &[&Observed]) -> Vec<Candidate> {
    candidates(all, Withdrawal::UnitEnded)
}

/// What becomes of each of these, which the unit no longer wants; hooks of earlier
/// syncs included, which the guard is not asked about.
pub(super) fn withdrawn(surplus: &[&Observed]) -> Vec<Candidate> {
    let judged = judged(surplus, Withdrawal::Unwanted);
    judged.map(|(candidate, _)| candidate).collect()
}

fn judged<'a>(
    surplus: &'a [&Observed],
    reason: Withdrawal,
) -> impl Iterator<Item = (Candidate, Withdrawal)> + 'a {
    let open = surplus.iter().filter(|object| !object.deleting);
    open.map(move |object| {
        let options = object.options();
        let removal = removal(object, &options, reason);
        let of_hook = of_hook(&object.reference.kind, &options, removal, reason);
        let candidate = Candidate {
            reference: object.reference.clone(),
            uid: object.uid.clone(),
            removal,
        };
        (candidate, of_hook)
    })
}

/// The hook of an earlier sync was never part of what is desired: that it goes is
/// nothing that the plugin withdraws.
fn of_hook(
    kind: &GroupVersionKind,
    options: &Options,
    removal: Removal,
    reason: Withdrawal,
) -> Withdrawal {
    let hook = matches!(options.role, Role::Hook(_));
    let guarded = is_precious(kind) || removal == Removal::Confirm;
    if hook && !guarded && reason == Withdrawal::Unwanted {
        Withdrawal::EarlierHook
    } else {
        reason
    }
}

/// What an object says about being deleted for a reason.
fn removal(object: &Observed, options: &Options, reason: Withdrawal) -> Removal {
    let said = match reason {
        Withdrawal::UnitEnded => options.delete,
        // Whatever speaks against it in either case: it may be a mistake.
        Withdrawal::Deselected => {
            let said = [options.delete, options.prune];
            let strictest = [Removal::Never, Removal::Confirm, Removal::Permitted];
            let found = strictest.into_iter().find(|one| said.contains(one));
            found.unwrap_or(Removal::Unsaid)
        }
        _ => options.prune,
    };
    let allowed = object
        .annotations
        .get(PRUNE_ANNOTATION)
        .is_some_and(|value| value == "allow");
    if allowed && said == Removal::Unsaid {
        Removal::Permitted
    } else {
        said
    }
}

type ByName<'a> = HashMap<ObjectReference, (&'a Observed, Options)>;

/// Objects as far as order is concerned. What was said about a live object stands
/// in its annotations; what its body defines is not kept, and a definition goes
/// after all else by its kind.
fn members<'a>(objects: Vec<&'a Observed>) -> (Vec<Member>, ByName<'a>) {
    let mut members = Vec::with_capacity(objects.len());
    let mut by_name = HashMap::with_capacity(objects.len());
    for object in objects {
        let options = object.options();
        members.push(Member {
            reference: object.reference.clone(),
            options: options.clone(),
            timeout: None,
            defines: None,
        });
        by_name.insert(object.reference.clone(), (object, options));
    }
    (members, by_name)
}
