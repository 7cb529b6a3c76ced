//! What was observed of the objects of a unit.

use super::{Refusal, Situation};
use crate::annotations::Annotations;
use crate::digest::Digest;
use crate::kind::ObjectReference;
use crate::ownership::{APPLIED_ANNOTATION, Owner, PRIMARY_ANNOTATION};
use crate::waves::Options;
use foldhash::{HashMap, HashMapExt as _};
use serde_json::Value;
use std::collections::BTreeMap;

/// What was observed of one object that carries a unit's labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The object.
    pub reference: ObjectReference,
    /// Its uid.
    pub uid: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its label [`FLUX_PRUNE`](crate::waves::FLUX_PRUNE), if it has one.
    pub flux_prune: Option<String>,
    /// What of it our manager owns by apply; none when it has no such entry, and so
    /// there is no proof that we made it.
    pub owned_fields: Option<Owned>,
    /// `metadata.generation`; kinds without a specification have none.
    pub generation: Option<i64>,
    /// Whether it is being deleted already.
    pub deleting: bool,
    /// Uids of its ownerReferences.
    pub owners: Vec<String>,
}

/// What of an object our manager owns.
#[derive(Clone, Debug, PartialEq)]
pub enum Owned {
    /// These fields, as `fieldsV1` of its `Apply` entry.
    Fields(Value),
    /// All that was sent: this is what the API server has just answered to an apply of what
    /// the object's [`APPLIED_ANNOTATION`] says, of which it takes every field or refuses it,
    /// and nobody else owns any.
    AllSent,
}

impl Observed {
    /// What it says about how it is handled, as far as that outlives its body.
    pub fn options(&self) -> Options {
        let annotations = Annotations::from(&self.annotations);
        Options::of_live(&annotations, self.flux_prune.as_deref()).0
    }

    /// What of it follows from what was sent: equal as long as that is neither sent
    /// anew nor taken by others.
    pub fn fingerprint(&self) -> Digest {
        let applied = self.annotations.get(APPLIED_ANNOTATION);
        let applied = applied.map(String::as_str).unwrap_or_default();
        let owned = match &self.owned_fields {
            None => String::new(),
            Some(Owned::Fields(fields)) => fields.to_string(),
            Some(Owned::AllSent) => "all".to_owned(),
        };
        Digest::of_parts([applied.as_bytes(), owned.as_bytes()])
    }
}

/// What makes two references one object, whatever version they were read in.
pub(super) type Identity<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

pub(super) fn identity(reference: &ObjectReference) -> Identity<'_> {
    (
        &reference.kind.group,
        &reference.kind.kind,
        reference.namespace.as_deref(),
        &reference.name,
    )
}

/// The observed objects that are provably the unit's.
pub(super) struct Live<'a>(HashMap<Identity<'a>, &'a Observed>);

impl<'a> Live<'a> {
    pub(super) fn of(situation: &Situation<'a>, refusals: &mut Vec<Refusal>) -> Self {
        Self::owned(situation.owner, situation.observed, refusals)
    }

    pub(super) fn owned(
        owner: &Owner,
        observed: &'a [Observed],
        refusals: &mut Vec<Refusal>,
    ) -> Self {
        let id = owner.unit.id();
        let mut live = HashMap::with_capacity(observed.len());
        for object in observed {
            // Anybody may write our labels on an object. Without fields that our
            // manager applied it is not ours, and none of our business.
            if object.owned_fields.is_none() {
                continue;
            }
            let annotated = object.annotations.get(PRIMARY_ANNOTATION);
            if let Some(other) = annotated.filter(|other| **other != id) {
                refusals.push(Refusal::OtherUnit {
                    object: object.reference.clone(),
                    owner: other.clone(),
                });
            } else {
                live.insert(identity(&object.reference), object);
            }
        }
        Self(live)
    }

    pub(super) fn get(&self, reference: &ObjectReference) -> Option<&'a Observed> {
        self.0.get(&identity(reference)).copied()
    }

    /// These but for some.
    pub(super) fn without(&self, left_out: impl Fn(&ObjectReference) -> bool) -> Self {
        let kept = self
            .0
            .iter()
            .filter(|(_, object)| !left_out(&object.reference));
        Self(
            kept.map(|(identity, object)| (*identity, *object))
                .collect(),
        )
    }

    /// All of them, ordered by name.
    pub(super) fn all(&self) -> Vec<&'a Observed> {
        let mut all: Vec<&Observed> = self.0.values().copied().collect();
        all.sort_by(|a, b| a.reference.cmp(&b.reference));
        all
    }
}
