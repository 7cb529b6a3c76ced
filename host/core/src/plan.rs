//! From what should be and what is, to what is to be done.
//!
//! One pure function decides for the agent, for `reeve plan`, for the harness and
//! for shadow runs. It never sees the cluster, only what was observed of it.

use crate::kind::{GroupVersionKind, ObjectReference};
use crate::ownership::{APPLIED_ANNOTATION, Owner, PRIMARY_ANNOTATION, PRUNE_ANNOTATION, Stamped};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// What was observed of one object that carries a unit's labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The object.
    pub reference: ObjectReference,
    /// Its uid.
    pub uid: String,
    /// Its annotations, as far as they are ours or steer us.
    pub annotations: HashMap<String, String>,
    /// `fieldsV1` of our manager's `Apply` entry; none when there is no such
    /// entry, and so no proof that we made it.
    pub owned_fields: Option<Value>,
    /// Whether it is being deleted already.
    pub deleting: bool,
    /// Uids of its ownerReferences.
    pub owners: Vec<String>,
}

/// What to do for one unit, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do.
    pub steps: Vec<Step>,
    /// What is not done, and why.
    pub refusals: Vec<Refusal>,
    /// How many desired objects need nothing.
    pub unchanged: usize,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Apply an object.
    Apply {
        /// What to send.
        object: Box<Stamped>,
        /// Why.
        reason: ApplyReason,
        /// Uid of the object that it is meant for; none where there is none. An
        /// object of the same name made since then is another one.
        uid: Option<String>,
    },
    /// Delete an object, if it is still the one that was observed.
    Delete {
        /// The object.
        object: ObjectReference,
        /// Its uid, a precondition of the deletion.
        uid: String,
    },
}

/// Why an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyReason {
    /// Nothing of ours was observed there. What may be there belongs to somebody
    /// else, so conflicts are not forced.
    Absent,
    /// The plugin wants something else than before.
    Changed,
    /// Somebody took a field that is ours.
    Drifted,
}

/// Something that is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The label of another unit of this plugin has the same hash.
    #[error("{object} belongs to {owner}, whose label has the same hash; it is left alone")]
    OtherUnit {
        /// The object.
        object: ObjectReference,
        /// Its [`PRIMARY_ANNOTATION`].
        owner: String,
    },
    /// The plugin returned nothing after it had returned something.
    #[error(
        "the plugin returned no objects although {0} exist, and did not say that an empty set is meant; nothing is deleted"
    )]
    EmptyNotMeant(usize),
    /// Deleting this kind loses data, and nobody has permitted it.
    #[error("{0} is no longer wanted, but deleting a {kind} loses data; annotate it `reeve.dev/prune: allow` to let it go, or delete it yourself", kind = .0.kind.kind)]
    NeedsConfirmation(ObjectReference),
}

/// Kinds whose deletion takes data of others with it.
const PRECIOUS: [(&str, &str); 4] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Decides what to do for one unit.
///
/// `desired` is the complete desired set from a successful call, stamped;
/// `observed` is every object that carries the unit's labels. An object that is
/// desired and being deleted is left to go first: its deletion is observed and
/// the unit runs again.
pub fn plan(
    owner: &Owner,
    desired: Vec<Stamped>,
    observed: &[Observed],
    empty_is_meant: bool,
) -> Plan {
    let mut plan = Plan::default();
    let mut live: HashMap<Identity<'_>, &Observed> = HashMap::new();
    for object in observed {
        let annotated = object.annotations.get(PRIMARY_ANNOTATION);
        // Anybody may write our labels on an object. Without fields that our
        // manager applied it is not ours, and none of our business.
        if object.owned_fields.is_none() {
            continue;
        }
        if let Some(other) = annotated.filter(|id| **id != owner.unit.id()) {
            plan.refusals.push(Refusal::OtherUnit {
                object: object.reference.clone(),
                owner: other.clone(),
            });
        } else {
            live.insert(identity(&object.reference), object);
        }
    }
    let wanted: HashSet<Identity<'_>> = desired.iter().map(|d| identity(&d.reference)).collect();
    let nothing_wanted = wanted.is_empty();
    let mut surplus: Vec<&Observed> = live
        .values()
        .copied()
        .filter(|object| !object.deleting && !wanted.contains(&identity(&object.reference)))
        .collect();
    surplus.sort_by(|a, b| a.reference.cmp(&b.reference));

    for stamped in desired {
        match live.get(&identity(&stamped.reference)) {
            Some(object) if object.deleting => {}
            Some(object) => match difference(&stamped, object) {
                None => plan.unchanged += 1,
                Some(reason) => {
                    let uid = Some(object.uid.clone());
                    plan.steps.push(apply(stamped, reason, uid));
                }
            },
            None => plan.steps.push(apply(stamped, ApplyReason::Absent, None)),
        }
    }

    if nothing_wanted && !surplus.is_empty() && !empty_is_meant {
        plan.refusals.push(Refusal::EmptyNotMeant(surplus.len()));
        return plan;
    }
    for object in surplus {
        let permitted = object
            .annotations
            .get(PRUNE_ANNOTATION)
            .is_some_and(|value| value == "allow");
        if is_precious(&object.reference.kind) && !permitted {
            let refusal = Refusal::NeedsConfirmation(object.reference.clone());
            plan.refusals.push(refusal);
        } else {
            plan.steps.push(Step::Delete {
                object: object.reference.clone(),
                uid: object.uid.clone(),
            });
        }
    }
    plan
}

/// What makes two references one object, whatever version they were read in.
type Identity<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

fn identity(reference: &ObjectReference) -> Identity<'_> {
    (
        &reference.kind.group,
        &reference.kind.kind,
        reference.namespace.as_deref(),
        &reference.name,
    )
}

fn apply(stamped: Stamped, reason: ApplyReason, uid: Option<String>) -> Step {
    Step::Apply {
        object: Box::new(stamped),
        reason,
        uid,
    }
}

/// Whether an apply would change anything, decided without asking: we sent the
/// same before, and every field of it is still ours. A field that is ours but
/// differs was changed by admission or defaulting, and is settled.
fn difference(stamped: &Stamped, object: &Observed) -> Option<ApplyReason> {
    if object.annotations.get(APPLIED_ANNOTATION) != Some(&stamped.applied) {
        return Some(ApplyReason::Changed);
    }
    let owned = object.owned_fields.as_ref()?;
    (!reeve_ssa::covers(owned, &stamped.body)).then_some(ApplyReason::Drifted)
}

/// Whether deleting this kind needs permission.
pub fn is_precious(kind: &GroupVersionKind) -> bool {
    PRECIOUS.contains(&(kind.group.as_str(), kind.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::UnitKey;
    use serde_json::json;

    fn owner() -> Owner {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        Owner {
            unit: UnitKey::new("p", ObjectReference::new(kind, None, "alice")),
            uid: "u".into(),
        }
    }

    fn desired(kind: &str, name: &str) -> Stamped {
        let reference = ObjectReference::new(
            GroupVersionKind::new("", "v1", kind),
            Some("alice".into()),
            name,
        );
        let body = json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "namespace": "alice"},
            "data": {"a": "1"},
        });
        owner().stamp(reference, body)
    }

    /// The object as it is after `stamped` was applied and nobody touched it.
    fn applied(stamped: &Stamped) -> Observed {
        let metadata = &stamped.body["metadata"];
        let keys = |map: &Value| -> Value {
            map.as_object()
                .unwrap()
                .keys()
                .map(|key| (format!("f:{key}"), json!({})))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        Observed {
            reference: stamped.reference.clone(),
            uid: format!("uid-{}", stamped.reference.name),
            annotations: metadata["annotations"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
                .collect(),
            owned_fields: Some(json!({
                "f:metadata": {
                    "f:labels": keys(&metadata["labels"]),
                    "f:annotations": keys(&metadata["annotations"]),
                    "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
                },
                "f:data": {"f:a": {}},
            })),
            deleting: false,
            owners: vec!["u".into()],
        }
    }

    #[test]
    fn a_converged_unit_needs_nothing() {
        let stamped = desired("ConfigMap", "a");
        let observed = applied(&stamped);
        let plan = plan(&owner(), vec![stamped], &[observed], false);
        assert_eq!(
            (plan.steps, plan.refusals, plan.unchanged),
            (vec![], vec![], 1)
        );
    }

    #[test]
    fn each_difference_has_its_reason() {
        let stamped = desired("ConfigMap", "a");
        let mut changed = applied(&stamped);
        changed
            .annotations
            .insert(APPLIED_ANNOTATION.into(), "sha256:other".into());
        let mut drifted = applied(&stamped);
        drifted.owned_fields.as_mut().unwrap()["f:data"] = json!({"f:b": {}});
        for (observed, expected) in [
            (vec![], ApplyReason::Absent),
            (vec![changed], ApplyReason::Changed),
            (vec![drifted], ApplyReason::Drifted),
        ] {
            let plan = plan(&owner(), vec![stamped.clone()], &observed, false);
            assert!(
                matches!(&plan.steps[..], [Step::Apply { reason, .. }] if *reason == expected),
                "{expected:?}: {plan:?}"
            );
        }
    }

    #[test]
    fn what_is_no_longer_wanted_is_deleted() {
        let (kept, dropped) = (desired("ConfigMap", "a"), desired("ConfigMap", "b"));
        let observed = [applied(&kept), applied(&dropped)];
        let plan = plan(&owner(), vec![kept], &observed, false);
        assert_eq!(
            plan.steps,
            [Step::Delete {
                object: dropped.reference,
                uid: "uid-b".into()
            }]
        );
    }

    #[test]
    fn deletions_are_refused_for_a_reason() {
        let stamped = desired("ConfigMap", "a");
        let claim = desired("PersistentVolumeClaim", "a");
        let mut foreign = applied(&stamped);
        foreign.annotations.insert(
            PRIMARY_ANNOTATION.into(),
            "Profile.kubeflow.org//bob".into(),
        );
        for (observed, meant, expected) in [
            (
                applied(&stamped),
                false,
                "the plugin returned no objects although 1 exist",
            ),
            (
                foreign,
                true,
                "ConfigMap alice/a belongs to Profile.kubeflow.org//bob",
            ),
            (
                applied(&claim),
                true,
                "PersistentVolumeClaim alice/a is no longer wanted",
            ),
        ] {
            let plan = plan(&owner(), vec![], &[observed], meant);
            assert_eq!(plan.steps, []);
            let text = plan.refusals[0].to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn forged_labels_are_none_of_our_business() {
        let mut forged = applied(&desired("ConfigMap", "a"));
        forged.owned_fields = None;
        assert_eq!(plan(&owner(), vec![], &[forged], true), Plan::default());
    }

    #[test]
    fn permission_on_the_object_lets_it_go() {
        let mut observed = applied(&desired("PersistentVolumeClaim", "a"));
        observed
            .annotations
            .insert(PRUNE_ANNOTATION.into(), "allow".into());
        let plan = plan(&owner(), vec![], &[observed], true);
        assert!(matches!(&plan.steps[..], [Step::Delete { .. }]));
    }

    #[test]
    fn an_object_that_is_going_is_waited_for() {
        let stamped = desired("ConfigMap", "a");
        let mut going = applied(&stamped);
        going.deleting = true;
        let plan = plan(&owner(), vec![stamped], &[going], false);
        assert_eq!(plan, Plan::default());
    }
}
