//! What the store knows of the objects of a unit, as plans need it.

use super::classes::Classes;
use super::owned::owned_fields;
use crate::active::Active;
use crate::execute::{Answer, contributed};
use foldhash::HashMap;
use k8s_openapi::jiff::Timestamp;
use reeve_cluster::{Object, Snapshot};
use reeve_core::health::{
    self, Applied, Context, Gate, HEALTH_ANNOTATION, HealthStatus, Overrides, Rule,
};
use reeve_core::manifest::is_claim;
use reeve_core::ownership::{APPLIED_ANNOTATION, UNIT_LABEL, contributor, unit_label};
use reeve_core::plan::{Contributions, Observed, Owned, Schemas, Stubborn, Target, Wanted};
use reeve_core::text::Written;
use reeve_core::waves::{FLUX_PRUNE, Role};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the API server has answered in a run.
pub(super) type Answers = HashMap<ObjectReference, Answer>;

/// The objects that carry a unit's label, and what was observed of them.
pub(super) struct Observation {
    pub(super) observed: Vec<Observed>,
    /// Objects of others, as far as the unit has to do with them.
    targets: Vec<Target>,
    contributor: String,
    pub(super) schemas: Arc<Schemas>,
    /// The objects of `observed`, in the same order.
    objects: Vec<Arc<Object>>,
    now: Timestamp,
    manager: String,
    /// Kinds that are not served yet.
    pub(super) unserved: BTreeSet<GroupVersionKind>,
    /// Objects that are somebody's and left alone.
    pub(super) left_alone: BTreeSet<ObjectReference>,
    /// Whether what is not wanted stays.
    pub(super) keeps: bool,
    /// StorageClasses, as the same version of the store has them.
    classes: Classes,
}

/// What differs from what a run has sent.
#[derive(Debug, Default)]
pub(super) struct Differing {
    /// Whether there is something new that the API server takes otherwise.
    pub(super) new: bool,
    /// What somebody has changed since it was sent.
    pub(super) changed: Vec<ObjectReference>,
}

/// What plans look at of an object.
fn observe(object: &Object, manager: &str) -> Observed {
    observe_owned(object, |_| owned_fields(object, manager).map(Owned::Fields))
}

/// The same of one that is as it was answered when it was applied, of which the kind's schema
/// is known: then it need not be looked up in all its fields which of them are ours.
fn observe_answer(answer: &Answer, manager: &str) -> Observed {
    let object = &answer.object;
    observe_owned(object, |annotations| {
        let digest = annotations.get(APPLIED_ANNOTATION);
        if answer.took.is_some() && answer.took.as_ref() == digest && object.is_all_of(manager) {
            return Some(Owned::AllSent);
        }
        owned_fields(object, manager).map(Owned::Fields)
    })
}

fn observe_owned(
    object: &Object,
    owned: impl FnOnce(&BTreeMap<String, String>) -> Option<Owned>,
) -> Observed {
    let annotations = object.annotations();
    Observed {
        reference: object.reference(),
        uid: object.uid().to_owned(),
        owned_fields: owned(&annotations),
        annotations,
        flux_prune: object.label(FLUX_PRUNE).map(str::to_owned),
        generation: object.generation(),
        deleting: object.is_deleting(),
        owners: object.owners().map(str::to_owned).collect(),
    }
}

impl Observation {
    /// Looks at `candidates`, each with the object as the plugin's watches have it, in the
    /// order of their references, and at what was answered to applies of this run. What does
    /// not carry the unit's label is left out, unless it is of a kind to which the plugin
    /// contributes.
    pub(super) fn of<'a>(
        active: &Active,
        snapshot: &Snapshot,
        candidates: impl ExactSizeIterator<Item = (&'a ObjectReference, Option<Arc<Object>>)>,
        unit: &UnitKey,
        answers: &Answers,
        now: Timestamp,
    ) -> Self {
        let label = unit_label(unit);
        let mut observed = Vec::with_capacity(candidates.len());
        let mut objects = Vec::with_capacity(candidates.len());
        let mut targets = Vec::new();
        for (reference, object) in candidates {
            let ours = |object: &Arc<Object>| object.label(UNIT_LABEL) == Some(label);
            if let Some(object) = object.filter(ours) {
                let answer = answers.get(reference).filter(|answer| {
                    answer.object.is_same_version_as(&object)
                        && !active.schemas.lacks(&reference.kind)
                });
                observed.push(match answer {
                    Some(answer) => observe_answer(answer, &active.field_manager),
                    None => observe(&object, &active.field_manager),
                });
                objects.push(object);
            }
            let target = contributed(active, snapshot, reference);
            targets.extend(target.filter(|object| !ours(object)).map(|object| Target {
                reference: object.reference(),
                uid: object.uid().to_owned(),
                deleting: object.is_deleting(),
                live: object.whole(),
            }));
        }
        Self {
            targets,
            contributor: contributor(unit),
            schemas: active.schemas.clone(),
            observed,
            objects,
            now,
            manager: active.field_manager.clone(),
            unserved: active.unserved.kinds().clone(),
            left_alone: BTreeSet::new(),
            keeps: false,
            classes: Classes::of(active, snapshot),
        }
    }

    /// This, with what is left alone, and whether what is not wanted stays.
    pub(super) fn sparing(mut self, left_alone: &BTreeSet<ObjectReference>, keeps: bool) -> Self {
        self.left_alone.clone_from(left_alone);
        self.keeps = keeps;
        self
    }

    /// Notes which of the desired objects are as the API server answered when they were
    /// applied, and differ from what was sent all the same. Where they have become
    /// otherwise since, it is somebody's doing: that is a drift, of which the watch tells.
    pub(super) fn note_stubborn(
        &self,
        wanted: &[Wanted],
        differing: &[usize],
        answers: &Answers,
        stubborn: &mut Stubborn,
    ) -> Differing {
        let mut noted = Differing::default();
        for one in differing.iter().filter_map(|index| wanted.get(*index)) {
            let reference = &one.stamped.reference;
            let found = self.place(reference);
            let found = found.and_then(|place| self.objects.get(place));
            let (Some(found), Some(answer)) = (found, answers.get(reference)) else {
                continue;
            };
            let fingerprint = observe(found, &self.manager).fingerprint();
            if observe(&answer.object, &self.manager).fingerprint() != fingerprint {
                noted.changed.push(reference.clone());
                continue;
            }
            let before = stubborn.insert(reference.clone(), fingerprint);
            noted.new |= before != Some(fingerprint);
        }
        noted
    }

    /// What the unit contributes, of which this was sent by this agent.
    pub(super) fn contributions<'a>(
        &'a self,
        sent: &'a [(ObjectReference, String)],
    ) -> Contributions<'a> {
        Contributions {
            manager: &self.contributor,
            targets: &self.targets,
            sent,
        }
    }

    fn place(&self, reference: &ObjectReference) -> Option<usize> {
        let all = &self.observed;
        let place = all.binary_search_by(|one| one.reference.cmp(reference));
        place.ok()
    }

    /// Whether an object lets the next step begin.
    pub(super) fn gate(&self, observed: &Observed, applied: Option<Applied<'_>>) -> Gate {
        let place = self.place(&observed.reference);
        let Some(object) = place.and_then(|place| self.objects.get(place)) else {
            return health::gate(None, applied, &Context::at(self.now));
        };
        // Nothing works on these, so there is nothing to look at, unless a rule says so.
        let ruled = applied.is_some_and(|applied| has_rule(applied.body));
        if health::is_static(&observed.reference.kind) && !observed.deleting && !ruled {
            let digest = observed.annotations.get(APPLIED_ANNOTATION);
            let ours = applied.is_none_or(|applied| digest.is_some_and(|d| d == applied.digest));
            if ours {
                return Gate::Pass;
            }
        }
        let mut live = object.value();
        // How a hook has ended counts, whoever takes it away then.
        if observed.deleting
            && matches!(observed.options().role, Role::Hook(_))
            && let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("deletionTimestamp");
        }
        let said = applied.map_or(&live, |applied| applied.body.value());
        let rule = match Rule::of(said) {
            Ok(rule) => rule,
            Err(error) => {
                return Gate::Wait {
                    status: HealthStatus::Unknown,
                    reason: format!("its health rule cannot be used: {error}"),
                    recheck_after: None,
                };
            }
        };
        let binding = match is_claim(&observed.reference.kind) {
            true => self.classes.binding(&live),
            false => Ok(None),
        };
        let context = Context {
            overrides: Overrides::of(said).0,
            rule: rule.as_ref(),
            volume_binding: binding.as_ref().ok().copied().flatten(),
            ..Context::at(self.now)
        };
        let mut gate = health::gate(Some(&live), applied, &context);
        if let (Gate::Wait { reason, .. }, Err(unseen)) = (&mut gate, binding) {
            *reason = format!("{reason}; {unseen}");
        }
        let judged = context.rule.is_some() || context.overrides.ignore;
        if !judged && gate == Gate::Pass && applied.is_some() {
            let applied_at = || applied_at(object, &self.manager);
            return health::settle(&live, applied_at, self.now).unwrap_or(gate);
        }
        gate
    }
}

fn has_rule(body: &Written) -> bool {
    let annotation = || body.value()["metadata"]["annotations"].get(HEALTH_ANNOTATION);
    body.text().may_mention(HEALTH_ANNOTATION) && annotation().is_some()
}

/// When a manager last applied an object, by the API server's clock.
fn applied_at(object: &Object, manager: &str) -> Option<Timestamp> {
    let entries: Vec<Value> = serde_json::from_str(object.managed_fields()?).ok()?;
    let ours = entries
        .iter()
        .find(|entry| entry["manager"] == manager && entry["operation"] == "Apply")?;
    ours["time"].as_str()?.parse().ok()
}

/// An object that the plugin owns, as a version of the store has it.
pub(super) fn find(
    active: &Active,
    snapshot: &Snapshot,
    reference: &ObjectReference,
) -> Option<Arc<Object>> {
    let same = |kind: &GroupVersionKind| *kind == reference.kind;
    let watches = active.watches.owned.iter();
    watches
        .filter(|watch| same(&watch.spec().resource.kind))
        .find_map(|watch| {
            let namespace = reference.namespace.as_deref();
            let found = snapshot.get_in(watch.spec(), namespace, &reference.name);
            found.found()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_cluster::Resource;
    use serde_json::json;

    fn entry(manager: &str, operation: &str, subresource: &str) -> Value {
        json!({
            "manager": manager, "operation": operation, "subresource": subresource,
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}},
        })
    }

    fn answer(entries: &[Value], took: Option<&str>) -> Answer {
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        };
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
            "metadata": {
                "name": "c", "namespace": "a", "uid": "u", "resourceVersion": "1",
                "annotations": {APPLIED_ANNOTATION: "digest"}, "managedFields": entries,
            },
        });
        let object = Object::parse(&resource, object.to_string().as_bytes()).unwrap();
        Answer {
            object: Arc::new(object),
            took: took.map(str::to_owned),
        }
    }

    /// What an answer says is ours without a look at the fields is nothing that anybody else
    /// has a part in, and what was sent.
    #[test]
    fn all_that_was_sent_is_ours_of_what_nobody_else_has() {
        let ours = entry("m", "Apply", "");
        let alone = std::slice::from_ref(&ours);
        let owned = |answer: &Answer| observe_answer(answer, "m").owned_fields;
        assert_eq!(owned(&answer(alone, Some("digest"))), Some(Owned::AllSent));
        let fields = Owned::Fields(json!({"f:data": {"f:a": {}}}));
        for (entries, took, expected) in [
            // Another digest than was sent.
            (alone, Some("other"), Some(&fields)),
            // It may have been taken in part.
            (alone, None, Some(&fields)),
            (
                &[ours.clone(), entry("kubectl", "Update", "")],
                Some("digest"),
                Some(&fields),
            ),
            (
                &[ours.clone(), entry("m", "Update", "status")],
                Some("digest"),
                Some(&fields),
            ),
            (&[entry("m", "Update", "")], Some("digest"), None),
            (&[entry("kubectl", "Apply", "")], Some("digest"), None),
            (&[], Some("digest"), None),
        ] {
            let found = owned(&answer(entries, took));
            assert_eq!(found.as_ref(), expected, "{entries:?} {took:?}");
        }
    }
}
