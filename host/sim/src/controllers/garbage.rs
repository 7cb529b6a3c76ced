//! Garbage collection: what becomes of objects whose owners end.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::graph::{Graph, Node};
use super::{delete, writer};
use crate::events::{self, Kind};
use crate::resource::Resource;
use crate::rest::meta;
use crate::rest::options::{DeleteOptions, Propagation};
use crate::rest::write::Proposal;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Object;

/// The reason of events about owners in other namespaces.
const INVALID_NAMESPACE: &str = "OwnerRefInvalidNamespace";
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Does what the object with this UID needs at present.
pub(super) fn collect(shared: &Arc<Shared>, graph: &Graph, uid: &str) -> Result<(), ApiError> {
    let Some((resource, object)) = graph.node(uid).and_then(|node| load(shared, node)) else {
        return Ok(());
    };
    if object.uid() != uid {
        return Ok(());
    }
    let value = head(&object);
    if object.is_terminating() {
        return end(shared, graph, &resource, &object, &value);
    }
    complain(shared, graph, &resource, &object, &value);
    attend(shared, graph, &resource, &object, &value)
}

/// What of an object tells who it is, who owns it and what holds it.
fn head(object: &Object) -> Value {
    object.fields(&["apiVersion", "kind", "metadata"])
}

/// Deletes an object that is not being deleted where its owners are gone or wait for
/// that; otherwise it forgets those of them.
fn attend(
    shared: &Arc<Shared>,
    graph: &Graph,
    resource: &Resource,
    object: &Object,
    value: &Value,
) -> Result<(), ApiError> {
    match owners(shared, graph, resource, object, value) {
        Owners::None | Owners::Unknown => Ok(()),
        Owners::Waiting => {
            // Its dependent may be an owner that waits: somebody has to go first.
            if waits_for_itself(shared, graph, object) {
                unblock(shared, resource, object.key())?;
            }
            delete_as(shared, resource, object, Some(Propagation::Foreground))
        }
        Owners::Gone(policy) => delete_as(shared, resource, object, policy),
        Owners::Some { left } if left.is_empty() => Ok(()),
        Owners::Some { left } => disown(shared, resource, object.key(), |owner| {
            left.iter().any(|uid| uid == owner)
        }),
    }
}

fn delete_as(
    shared: &Arc<Shared>,
    resource: &Resource,
    object: &Object,
    propagation: Option<Propagation>,
) -> Result<(), ApiError> {
    let options = DeleteOptions {
        propagation,
        uid: Some(object.uid().to_owned()),
        ..DeleteOptions::default()
    };
    delete(shared, resource, object, &options)
}

/// Whether a dependent of the object is itself being deleted in the foreground.
fn waits_for_itself(shared: &Arc<Shared>, graph: &Graph, object: &Object) -> bool {
    let dependents = graph.dependents(object.uid());
    let nodes = dependents.filter_map(|uid| graph.node(uid));
    nodes
        .filter_map(|node| load(shared, node))
        .any(|(_, dependent)| waits(&dependent))
}

/// Whether an object goes after its dependents.
fn waits(object: &Object) -> bool {
    object.is_terminating() && has_finalizer(&head(object), FOREGROUND)
}

/// What is left of the owners of an object.
enum Owners {
    /// It never had one.
    None,
    /// At least one stays. The UIDs of those that do not: a reference to one that
    /// waits for its dependents would keep it waiting.
    Some { left: Vec<String> },
    /// A reference is to a kind that is not served, or to one in a namespace from an
    /// object that is in none: what cannot be looked up is not known to be absent.
    Unknown,
    /// All that are there wait for it to go first, and it has dependents itself.
    Waiting,
    /// None is there, or all that are wait for it to go first. The policy with
    /// which it is to be deleted.
    Gone(Option<Propagation>),
}

fn owners(
    shared: &Arc<Shared>,
    graph: &Graph,
    resource: &Resource,
    object: &Object,
    value: &Value,
) -> Owners {
    let references = value
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let references = references.map(Vec::as_slice).unwrap_or_default();
    if references.is_empty() {
        return Owners::None;
    }
    let (mut left, mut solid, mut waiting) = (Vec::new(), 0, 0);
    for reference in references {
        let uid = reference["uid"].as_str().unwrap_or_default();
        if graph.is_gone(uid, object.namespace()) {
            left.push(uid.to_owned());
            continue;
        }
        match kind_of(shared, reference) {
            Some(kind) if resource.namespaced || !kind.namespaced => {}
            _ => return Owners::Unknown,
        }
        match owner(shared, graph, resource, object, reference) {
            None => left.push(uid.to_owned()),
            Some(owner) if waits(&owner) => {
                left.push(uid.to_owned());
                waiting += 1;
            }
            Some(_) => solid += 1,
        }
    }
    match (solid, waiting) {
        (0, 0) => Owners::Gone(kept_policy(value)),
        // An owner in foreground deletion goes after its dependents, and so do
        // these after theirs, where there are any.
        (0, _) if graph.dependents(object.uid()).next().is_some() => Owners::Waiting,
        (0, _) => Owners::Gone(kept_policy(value)),
        _ => Owners::Some { left },
    }
}

/// The resource of the kind that a reference names.
fn kind_of(shared: &Shared, reference: &Value) -> Option<Arc<Resource>> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    shared.registry.find_kind(text("apiVersion"), text("kind"))
}

/// Says of each owner that it is in another namespace, where none can be: the object
/// is about to go because of that, or stays although nobody would think so.
fn complain(
    shared: &Arc<Shared>,
    graph: &Graph,
    resource: &Resource,
    object: &Object,
    value: &Value,
) {
    let references = value
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    for reference in references.into_iter().flatten() {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let node = graph.node(text("uid"));
        let Some((of, found)) = node.and_then(|node| load(shared, node)) else {
            continue;
        };
        let reachable = resource.namespaced && found.namespace() == object.namespace();
        if !of.namespaced || reachable {
            continue;
        }
        let message = format!(
            "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace {:?}",
            text("apiVersion"),
            text("kind"),
            object.namespace(),
            text("name"),
            text("uid"),
            object.namespace(),
        );
        if !events::is_recorded(shared, value, INVALID_NAMESPACE, &message) {
            let source = "garbage-collector-controller";
            events::record(
                shared,
                source,
                value,
                Kind::Warning,
                INVALID_NAMESPACE,
                &message,
            );
        }
    }
}

/// The owner that a reference means: of that UID, that kind and name, and in
/// reach of the dependent. A reference to anything else is to nothing.
fn owner(
    shared: &Arc<Shared>,
    graph: &Graph,
    resource: &Resource,
    object: &Object,
    reference: &Value,
) -> Option<Arc<Object>> {
    let node = graph.node(reference["uid"].as_str()?)?;
    let (of, found) = load(shared, node)?;
    let in_reach = if of.namespaced {
        resource.namespaced && found.namespace() == object.namespace()
    } else {
        true
    };
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let group = text("apiVersion")
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    let is_meant = of.kind == text("kind") && of.group == group && found.name() == text("name");
    (in_reach && is_meant && found.uid() == text("uid")).then_some(found)
}

/// Moves the deletion of an object on: its policy is one of its finalizers.
fn end(
    shared: &Arc<Shared>,
    graph: &Graph,
    resource: &Resource,
    object: &Object,
    value: &Value,
) -> Result<(), ApiError> {
    let dependents = || {
        let nodes = graph
            .dependents(object.uid())
            .filter_map(|uid| graph.node(uid));
        nodes
            .filter_map(|node| load(shared, node))
            .collect::<Vec<_>>()
    };
    if has_finalizer(value, ORPHAN) {
        for (of, dependent) in dependents() {
            disown(shared, &of, dependent.key(), |owner| owner == object.uid())?;
        }
        return release(shared, resource, object.key(), ORPHAN);
    }
    if has_finalizer(value, FOREGROUND) {
        let mut blocked = false;
        for (of, dependent) in dependents() {
            let value = head(&dependent);
            blocked |= blocks(&value, object.uid());
            if !dependent.is_terminating() {
                attend(shared, graph, &of, &dependent, &value)?;
            }
        }
        // The end of each dependent brings this object up again.
        if !blocked {
            return release(shared, resource, object.key(), FOREGROUND);
        }
    }
    Ok(())
}

/// Whether the dependent says that its owner has to wait for it.
fn blocks(dependent: &Value, owner: &str) -> bool {
    let references = dependent
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let mut references = references.into_iter().flatten();
    references.any(|r| r["uid"] == owner && r["blockOwnerDeletion"] == true)
}

pub(super) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    finalizers
        .into_iter()
        .flatten()
        .any(|present| present == finalizer)
}

/// The policy that an object's finalizers keep from an earlier deletion.
fn kept_policy(object: &Value) -> Option<Propagation> {
    if has_finalizer(object, ORPHAN) {
        Some(Propagation::Orphan)
    } else if has_finalizer(object, FOREGROUND) {
        Some(Propagation::Foreground)
    } else {
        Some(Propagation::Background)
    }
}

fn load(shared: &Arc<Shared>, node: &Node) -> Option<(Arc<Resource>, Arc<Object>)> {
    let resource = shared.registry.find_table(&node.table)?;
    let object = shared.store.get(&node.table, node.key())?;
    Some((resource, object))
}

/// Removes the references to owners that `gone` says yes to.
fn disown(
    shared: &Arc<Shared>,
    resource: &Resource,
    key: &str,
    gone: impl Fn(&str) -> bool,
) -> Result<(), ApiError> {
    edit_metadata(shared, resource, key, "ownerReferences", |owner| {
        !gone(owner["uid"].as_str().unwrap_or_default())
    })
}

/// Lets no owner wait for an object any more.
fn unblock(shared: &Arc<Shared>, resource: &Resource, key: &str) -> Result<(), ApiError> {
    edit_metadata(shared, resource, key, "ownerReferences", |owner| {
        if owner["blockOwnerDeletion"] == true {
            owner["blockOwnerDeletion"] = false.into();
        }
        true
    })
}

/// Removes a finalizer.
pub(super) fn release(
    shared: &Arc<Shared>,
    resource: &Resource,
    key: &str,
    finalizer: &str,
) -> Result<(), ApiError> {
    edit_metadata(shared, resource, key, "finalizers", |present| {
        *present != *finalizer
    })
}

/// Adds a finalizer to an object that is not being deleted and has it not.
pub(super) fn hold(
    shared: &Arc<Shared>,
    resource: &Resource,
    key: &str,
    finalizer: &str,
) -> Result<(), ApiError> {
    change_metadata(shared, resource, key, |metadata| {
        if metadata.contains_key("deletionTimestamp") {
            return;
        }
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Value::Array(finalizers) = finalizers
            && finalizers.iter().all(|present| present != finalizer)
        {
            finalizers.push(json!(finalizer));
        }
    })
}

/// Keeps of a list in the metadata only what `keep` says yes to, which may change it.
fn edit_metadata(
    shared: &Arc<Shared>,
    resource: &Resource,
    key: &str,
    field: &str,
    keep: impl Fn(&mut Value) -> bool,
) -> Result<(), ApiError> {
    change_metadata(shared, resource, key, |metadata| {
        if let Some(Value::Array(items)) = metadata.get_mut(field) {
            items.retain_mut(&keep);
            if items.is_empty() {
                metadata.remove(field);
            }
        }
    })
}

/// Changes the metadata of an object, if it is there.
fn change_metadata(
    shared: &Arc<Shared>,
    resource: &Resource,
    key: &str,
    change: impl Fn(&mut Map<String, Value>),
) -> Result<(), ApiError> {
    let written = writer(shared, resource).update(key, |live| {
        let mut object = live.clone();
        let metadata = meta::of_mut(&mut object);
        metadata.remove("resourceVersion");
        change(metadata);
        Ok(Proposal {
            object,
            owned: false,
            ..Proposal::default()
        })
    });
    match written {
        Err(error) if error.code() != 404 => Err(error),
        _ => Ok(()),
    }
}
