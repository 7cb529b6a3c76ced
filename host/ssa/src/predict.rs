//! Whether an apply would change anything, from the object alone.
//!
//! A client that has watched an object knows all that the server will look at, so
//! it need not send an apply to learn that nothing was to be done.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::apply::{Apply, ApplyError, apply};
use crate::identity;
use crate::managed::{ManagedFields, ManagerId, Owned};
use crate::path::{Path, PathElement};
use crate::set::FieldSet;
use crate::typed::compare;
use crate::value;

/// What an apply would do.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// Nothing: object and owners stay as they are, and the server writes nothing.
    NoChange,
    /// Owners stay as they are, but these fields would be sent another value than
    /// they have. None are named where only the order of list items differs.
    ///
    /// Whoever writes a field of the manager's takes it away from the manager, so
    /// this was no other client: either the config is newer than the last apply, or
    /// the server gave the field this value itself, by admission, defaulting or its
    /// own notation, and would do so again. A caller that knows that it sent this
    /// config before takes it for [`Prediction::NoChange`].
    Settled(FieldSet),
    /// Somebody would come to own other fields than now.
    Change(Change),
}

impl Prediction {
    /// Whether the server would write nothing.
    pub fn is_no_change(&self) -> bool {
        *self == Self::NoChange
    }
}

/// How an apply would change who owns what.
///
/// All of it is empty where only the entries of others would be rewritten, because
/// the schema takes lists or maps apart in another way than when they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Whether the object would be created.
    pub created: bool,
    /// Fields that the manager would come to own: new ones, those that somebody
    /// took from it, and those that it would share with others.
    pub gained: FieldSet,
    /// Fields that the manager owns and would give up. Where nobody else owns them
    /// they would be removed.
    pub released: FieldSet,
    /// Fields that others would lose, because their value would be another one.
    pub taken: BTreeMap<ManagerId, FieldSet>,
    /// Whether nobody owns anything so far. The server then records all that the
    /// object has as somebody's before the apply.
    pub untracked: bool,
    /// The version whose terms the manager's entry uses so far, when the config is
    /// of another one. The entry is rewritten then, whatever else changes.
    pub version: Option<String>,
    /// Fields whose value would change, in terms of the config's version.
    pub values: FieldSet,
}

/// Predicts what [`apply()`] would make of this request, as a server that is asked
/// would find.
///
/// `live` is the whole object as the server gave it out, with its `managedFields`.
/// Both objects are of one version; a live object of another one has to be asked
/// for again in the version of the config.
///
/// Guarantees, as far as the schema is the server's:
///
/// * [`Prediction::NoChange`] is exact: the server would not write.
/// * [`Prediction::Change`] is exact as to the owners at the time `live` was read.
/// * What the server decides itself counts as it stands in `live`: identity,
///   versions and times in `metadata`, all of `reset`, defaults and the notation of
///   quantities. Other notations that it rewrites (times with an offset, durations)
///   and what admission changes are [`Prediction::Settled`].
///
/// Entries of other managers in versions that `versions` does not have are taken to
/// stay as they are. A server that serves those versions keeps them, one that does
/// not drops them at the next write, for which there is no reason of ours.
///
/// # Errors
///
/// Those of [`apply()`]; among them [`ApplyError::Conflict`], unless the request
/// is forced.
pub fn predict(request: Apply<'_>) -> Result<Prediction, ApplyError> {
    let Some(live) = request.live else {
        let applied = apply(request)?;
        return Ok(Prediction::Change(Change {
            created: true,
            gained: owned_by(&ManagedFields::of(&applied.object)?, &request),
            ..Change::default()
        }));
    };
    let mut before = live.clone();
    request.schema.normalize(&mut before);
    let mut managers = ManagedFields::of(&before)?;
    let own = ManagerId::apply(request.manager, request.subresource);
    let version = managers.get(&own).map(|owned| owned.api_version.clone());
    managers
        .0
        .retain(|id, owned| *id == own || is_known(&request, &owned.api_version));
    managers.write_to(&mut before);

    let mut after = apply(Apply {
        live: Some(&before),
        ..request
    })?
    .object;
    let new_managers = ManagedFields::of(&after)?;
    for field in decided_by_the_server(request.reset) {
        copy(&before, &mut after, &field.0);
    }
    for object in [&mut before, &mut after] {
        ManagedFields::default().write_to(object);
        request.schema.amounts(object);
    }

    let moved = version.filter(|version| Some(version.as_str()) != api_version(request.config));
    let change = Change {
        created: false,
        untracked: managers.is_empty(),
        gained: owned_by(&new_managers, &request).difference(&owned_by(&managers, &request)),
        released: owned_by(&managers, &request).difference(&owned_by(&new_managers, &request)),
        taken: taken(&managers, &new_managers, &own),
        version: moved,
        values: changed_values(&request, &before, &after),
    };
    Ok(if !same_owners(&managers, &new_managers) {
        Prediction::Change(change)
    } else if value::equal(&before, &after) {
        Prediction::NoChange
    } else {
        Prediction::Settled(change.values)
    })
}

/// Whether the terms of a version are understood.
fn is_known(request: &Apply<'_>, version: &str) -> bool {
    let mut known = request.versions.iter().map(|known| known.api_version);
    api_version(request.config) == Some(version) || known.any(|known| known == version)
}

fn api_version(object: &Value) -> Option<&str> {
    object.get("apiVersion").and_then(Value::as_str)
}

fn owned_by(managers: &ManagedFields, request: &Apply<'_>) -> FieldSet {
    let id = ManagerId::apply(request.manager, request.subresource);
    managers
        .get(&id)
        .map(|owned| owned.set.clone())
        .unwrap_or_default()
}

/// Whether the entries say the same, whenever they were written.
fn same_owners(before: &ManagedFields, after: &ManagedFields) -> bool {
    let said = |(id, owned): (_, &Owned)| (id, owned.set.clone(), owned.api_version.clone());
    before.iter().map(said).eq(after.iter().map(said))
}

/// What each of the others has before and lacks after.
fn taken(
    before: &ManagedFields,
    after: &ManagedFields,
    own: &ManagerId,
) -> BTreeMap<ManagerId, FieldSet> {
    let lost = before
        .iter()
        .filter(|(id, _)| *id != own)
        .map(|(id, owned)| {
            let left = after.get(id).map(|owned| owned.set.clone());
            let lost = owned.set.difference(&left.unwrap_or_default());
            (id.clone(), lost)
        });
    lost.filter(|(_, lost)| !lost.is_empty()).collect()
}

/// Fields of different value; none when an object cannot be taken apart, because an
/// empty key of a list item went on the way to the store.
fn changed_values(request: &Apply<'_>, before: &Value, after: &Value) -> FieldSet {
    let changed = compare(request.schema, before, after).unwrap_or_default();
    let changed = changed.without(request.reset);
    changed
        .added
        .union(&changed.modified)
        .union(&changed.removed)
}

/// Fields that keep their value whatever a config says.
fn decided_by_the_server(reset: &FieldSet) -> impl Iterator<Item = Path> {
    identity::METADATA
        .iter()
        .filter(|field| !matches!(**field, "name" | "namespace" | "managedFields"))
        .map(|field| Path::fields(["metadata", field]))
        .chain(reset.iter())
}

/// Gives a field of one object the value that it has in the other, or takes it away.
fn copy(from: &Value, to: &mut Value, path: &[PathElement]) {
    let [PathElement::Field(name), below @ ..] = path else {
        return;
    };
    let Some(fields) = to.as_object_mut() else {
        return;
    };
    match (from.get(name), below.is_empty()) {
        (Some(value), true) => drop(fields.insert(name.clone(), value.clone())),
        (None, true) => drop(fields.remove(name)),
        (from, false) => {
            if let Some(to) = fields.get_mut(name) {
                copy(from.unwrap_or(&Value::Null), to, below);
            }
        }
    }
}
