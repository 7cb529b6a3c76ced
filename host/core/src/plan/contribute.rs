//! Fields of somebody else's object.
//!
//! A unit that contributes owns the fields that it returns, under a field manager of
//! its own, and nothing else: it never makes, labels or deletes the object. Where it
//! contributes stands in the object's `managedFields` and nowhere else.

use super::refusal::Refusal;
use super::taken::{Taken, taken};
use super::{Plan, Progress, Situation, Step, Wanted};
use crate::ignore::locate;
use crate::kind::ObjectReference;
use crate::waves::ApplyMode;
use reeve_ssa::{Apply, ManagedFields, ManagerId, Owned, PathElement, Prediction};
use serde_json::Value;

/// Somebody's object, to which a unit contributes, or wants to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The object.
    pub reference: ObjectReference,
    /// Its uid.
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The object, with its `managedFields`.
    pub live: Value,
}

/// What is known of a unit's contributions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contributions<'a> {
    /// The unit's [`crate::ownership::contributor`].
    pub manager: &'a str,
    /// Every object that it contributes to, and those that it wants to contribute to
    /// and that exist.
    pub targets: &'a [Target],
    /// What was sent, and accepted, by this agent: object and digest.
    pub sent: &'a [(ObjectReference, String)],
}

/// How a contribution is.
pub(super) enum Contribution {
    /// Nobody has made the object yet.
    Absent,
    /// The object is going.
    Deleting,
    /// The fields are the unit's, with the values that it wants.
    InPlace,
    /// They are not. `again` when they were.
    Differs { uid: String, again: bool },
    /// Somebody applies them, with other values.
    Held(Box<Refusal>),
}

impl Contributions<'_> {
    fn target(&self, reference: &ObjectReference) -> Option<&Target> {
        let identity = super::observed::identity(reference);
        let mut targets = self.targets.iter();
        targets.find(|target| super::observed::identity(&target.reference) == identity)
    }

    /// How one is.
    pub(super) fn judge(&self, situation: &Situation<'_>, one: &Wanted) -> Contribution {
        let stamped = &one.stamped;
        let Some(target) = self.target(&stamped.reference) else {
            return Contribution::Absent;
        };
        if target.deleting {
            return Contribution::Deleting;
        }
        let mut fields = taken(&target.live, stamped.body(), self.manager);
        fields.retain(|one| one.applied && one.overwrites);
        if !fields.is_empty() {
            return Contribution::Held(Box::new(held(situation, &stamped.reference, fields)));
        }
        let mut sent = self.sent.iter();
        let again =
            sent.any(|(object, digest)| *object == stamped.reference && *digest == stamped.applied);
        match in_place(
            self.manager,
            stamped.body(),
            &stamped.reference,
            &target.live,
        ) {
            InPlace::Yes => Contribution::InPlace,
            // The API server gave them other values when we sent these, and would
            // do so again.
            InPlace::OtherValues if again => Contribution::InPlace,
            InPlace::OtherValues => Contribution::Differs {
                uid: target.uid.clone(),
                again: false,
            },
            InPlace::No => Contribution::Differs {
                uid: target.uid.clone(),
                again,
            },
        }
    }

    /// The steps that give up what the unit contributes to the objects of which
    /// `kept` does not say that it still does.
    pub fn releases(&self, kept: impl Fn(&ObjectReference) -> bool) -> Vec<Step> {
        let targets = self.targets.iter();
        let ours = targets.filter(|target| own(self.manager, &target.live).is_some());
        ours.filter(|target| !kept(&target.reference))
            .map(|target| Step::Release {
                object: target.reference.clone(),
                uid: target.uid.clone(),
            })
            .collect()
    }
}

/// Adds the release of what the unit no longer contributes.
pub(super) fn release(situation: &Situation<'_>, plan: &mut Plan) {
    if plan.progress == Progress::Failed {
        return;
    }
    let wanted = |reference: &ObjectReference| {
        let identity = super::observed::identity(reference);
        situation.wanted.iter().any(|one| {
            one.member.options.apply == ApplyMode::Contribute
                && super::observed::identity(&one.stamped.reference) == identity
        })
    };
    let steps = situation.contributions.releases(wanted);
    if situation.keeps {
        plan.kept
            .extend(steps.into_iter().filter_map(|step| match step {
                Step::Release { object, .. } => Some(object),
                _ => None,
            }));
        return;
    }
    if !steps.is_empty() {
        plan.stages.push(steps);
    }
}

fn held(situation: &Situation<'_>, object: &ObjectReference, fields: Vec<Taken>) -> Refusal {
    let unit = &situation.owner.unit;
    Refusal::FieldsHeld {
        object: object.clone(),
        plugin: unit.plugin.to_string(),
        primary: unit.id(),
        fields,
    }
}

fn own(manager: &str, live: &Value) -> Option<Owned> {
    let managers = ManagedFields::of(live).ok()?;
    managers.get(&ManagerId::apply(manager, "")).cloned()
}

enum InPlace {
    Yes,
    OtherValues,
    No,
}

fn in_place(manager: &str, body: &Value, reference: &ObjectReference, live: &Value) -> InPlace {
    let kind = &reference.kind;
    if let Some(schema) = reeve_ssa::builtin::schema(&kind.group, &kind.version, &kind.kind) {
        let predicted = reeve_ssa::predict(Apply {
            schema,
            versions: &[],
            live: Some(live),
            config: body,
            manager,
            force: false,
            subresource: "",
            now: "",
            reset: &reeve_ssa::reset::built_in(&kind.group, &kind.kind, ""),
        });
        return match predicted {
            Ok(Prediction::NoChange) => InPlace::Yes,
            Ok(Prediction::Settled(_)) => InPlace::OtherValues,
            // What the API server makes of it, it will say.
            Ok(Prediction::Change(_)) | Err(_) => InPlace::No,
        };
    }
    let Some(owned) = own(manager, live) else {
        return InPlace::No;
    };
    let fields = owned.set.to_fields_v1();
    let exact = reeve_ssa::covers(&fields, body)
        && reeve_ssa::owned_beyond(&fields, body).is_empty()
        && owned.api_version == kind.api_version();
    if !exact {
        return InPlace::No;
    }
    let same = owned.set.leaves().iter().all(|path| {
        // An item of a list is there by what else is owned of it.
        if matches!(path.0.last(), Some(PathElement::Key(_))) {
            return true;
        }
        let value = |object| locate(object, &path).and_then(|at| at.get(object));
        value(body).is_none() || value(body) == value(live)
    });
    if same {
        InPlace::Yes
    } else {
        InPlace::OtherValues
    }
}

#[cfg(test)]
mod tests;
