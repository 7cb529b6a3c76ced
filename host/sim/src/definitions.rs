//! The life of CustomResourceDefinitions: served at once, established, and at
//! the end gone with all objects of their kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::crd::{self, Names};
use crate::resource::Resource;
use crate::rest::meta;
use crate::rest::write::{Part, Proposal, Writer};
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Object, Range, Store};

/// The table of definitions.
pub(crate) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// What holds a definition back until the objects of its kind are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Who writes the status of definitions.
const MANAGER: &str = "kube-apiserver";

/// Whether a resource is that of definitions.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    *resource.table == *TABLE
}

/// The names that definitions were given, read from the store when they are first
/// asked for and kept up with every write from then on.
#[derive(Debug, Default)]
pub(crate) struct Accepted(Mutex<Option<BTreeMap<String, Given>>>);

/// What one definition was given.
#[derive(Debug, PartialEq)]
struct Given {
    group: String,
    /// `status.acceptedNames`.
    names: Value,
    /// Whether these are all that it wants.
    all: bool,
}

impl Given {
    fn of(definition: &Value) -> Self {
        let conditions = definition
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        let group = definition.pointer("/spec/group").and_then(Value::as_str);
        Given {
            group: group.unwrap_or_default().to_owned(),
            names: definition
                .pointer("/status/acceptedNames")
                .cloned()
                .unwrap_or_default(),
            all: conditions.any(|c| c["type"] == "NamesAccepted" && c["status"] == "True"),
        }
    }

    fn read(store: &Store) -> BTreeMap<String, Given> {
        let page = store.list(TABLE, &Range::default(), None);
        let definitions = page.map(|page| page.objects).unwrap_or_default();
        let given = |definition: Arc<Object>| {
            let given = Given::of(&definition.value());
            (definition.name().to_owned(), given)
        };
        definitions.into_iter().map(given).collect()
    }
}

impl Accepted {
    /// The names that the others of the group have.
    fn taken(&self, store: &Store, definition: &Value) -> Names {
        let mut accepted = self.0.lock();
        let accepted = accepted.get_or_insert_with(|| Given::read(store));
        let (own, group) = (meta::text(definition, "name"), &definition["spec"]["group"]);
        let mut names = Names::default();
        for (name, given) in accepted {
            if name != own && *group == *given.group {
                names.add(&given.names);
            }
        }
        names
    }

    /// Takes in what became of a definition. The answer is who of its group lacks a
    /// name that it may have given up.
    fn note(&self, store: &Store, definition: &Value, removed: bool) -> Vec<String> {
        let mut accepted = self.0.lock();
        // Of what was before, nothing is known then.
        let is_first = accepted.is_none();
        let accepted = accepted.get_or_insert_with(|| Given::read(store));
        let name = meta::text(definition, "name");
        let given = Given::of(definition);
        let group = given.group.clone();
        let changed = if removed {
            accepted.remove(name).is_some()
        } else {
            let names = given.names.clone();
            let before = accepted.insert(name.to_owned(), given);
            before.is_some_and(|before| before.names != names)
        };
        if !changed && !is_first {
            return Vec::new();
        }
        let others = accepted.iter();
        others
            .filter(|(other, given)| *other != name && given.group == group && !given.all)
            .map(|(other, _)| other.clone())
            .collect()
    }
}

/// Serves what a definition that was just written defines. Others that waited for one
/// of its names get it when it has that no more.
pub(crate) fn committed(shared: &Arc<Shared>, object: &Object, removed: bool) {
    let mut value = object.value();
    if removed {
        shared.registry.forget(object.name());
    } else if !meta::is_terminating(&value) {
        establish(shared, object.key());
        if let Some(established) = shared.store.get(TABLE, object.key()) {
            value = established.value();
            let conditions = value
                .pointer("/status/conditions")
                .and_then(Value::as_array);
            let served = conditions.into_iter().flatten().any(is_established);
            // A definition that has lost a name to another one goes on as it was.
            if served && shared.registry.serve(object.name(), &value) {
                show_anew(shared, object.name());
            }
        }
    }
    for waiting in shared.accepted.note(&shared.store, &value, removed) {
        establish(shared, &waiting);
    }
}

/// Serves what the definitions define that a server finds when it begins.
pub(crate) fn resume(shared: &Arc<Shared>) {
    let page = shared.store.list(TABLE, &Range::default(), None);
    for definition in page.map(|page| page.objects).unwrap_or_default() {
        if definition.is_terminating() {
            // Served until the objects are gone, and established no more.
            shared
                .registry
                .serve(definition.name(), &definition.value());
        } else {
            committed(shared, &definition, false);
        }
    }
}

/// Shows the objects that are there as their schema has them now: without the fields
/// that it has no more, and with its defaults.
fn show_anew(shared: &Shared, definition: &str) {
    let resources = shared.registry.defined(definition);
    shared.store.show(definition, |object| {
        let mut storages = resources.iter().filter_map(|resource| resource.storage());
        if let Some(resource) = resources
            .iter()
            .find(|r| object["apiVersion"] == *r.api_version)
        {
            // What does not fit its type any more stays as it is.
            drop(resource.decode(object, false));
        } else if let Some(storage) = storages.find(|s| object["apiVersion"] == *s.api_version) {
            // A version that is stored and not served.
            storage.fit(object);
        }
    });
}

/// Says in the status of a definition that it is ending.
pub(crate) fn announce_end(definition: &mut Value, now: &str) {
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.push(json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }));
    }
}

/// Refuses new objects of a kind whose definition is ending.
pub(crate) fn check_open(shared: &Shared, resource: &Resource, name: &str) -> Result<(), ApiError> {
    if !resource.is_custom() {
        return Ok(());
    }
    match shared.store.get(TABLE, &resource.table) {
        Some(definition) if definition.is_terminating() => Err(ApiError::forbidden(
            resource.about(name),
            "create not allowed while custom resource definition is terminating",
        )),
        _ => Ok(()),
    }
}

fn is_established(condition: &Value) -> bool {
    condition["type"] == "Established" && condition["status"] == "True"
}

/// Gives a definition its names, where nobody else has them, and says in its
/// status that it is served.
fn establish(shared: &Arc<Shared>, key: &str) {
    let Some(resource) = shared.registry.find_table(TABLE) else {
        return;
    };
    let writer = Writer::of_server(shared, &resource, Part::Status, MANAGER);
    let now = shared.clock.timestamp();
    let written = writer.update(key, |live| {
        let mut object = live.clone();
        meta::of_mut(&mut object).remove("resourceVersion");
        let taken = shared.accepted.taken(&shared.store, live);
        crd::accept_names(&mut object, &taken, &now);
        crd::establish(&mut object, &now);
        Ok(Proposal {
            object,
            owned: false,
            ..Proposal::default()
        })
    });
    if let Err(error) = written {
        tracing::warn!(%error, definition = key, "definition not established");
    }
}

/// Deletes the objects of a definition that is ending, and lets it end when they
/// are gone.
pub(crate) fn finish(shared: &Arc<Shared>, key: &str) -> Result<(), ApiError> {
    let Some(table) = shared.registry.find_table(key) else {
        return release(shared, key);
    };
    let writer = Writer::of_server(shared, &table, Part::Whole, MANAGER);
    let everything = Range::default();
    let page = shared.store.list(&table.table, &everything, None);
    let objects = page.map(|page| page.objects).unwrap_or_default();
    for object in objects.iter().filter(|object| !object.is_terminating()) {
        match writer.delete(object.key(), &Default::default()) {
            Err(error) if error.code() != 404 => return Err(error),
            _ => {}
        }
    }
    if shared.store.any(&table.table, &everything) {
        return Ok(());
    }
    release(shared, key)
}

fn release(shared: &Arc<Shared>, key: &str) -> Result<(), ApiError> {
    let Some(resource) = shared.registry.find_table(TABLE) else {
        return Ok(());
    };
    let writer = Writer::of_server(shared, &resource, Part::Whole, MANAGER);
    writer.amend(key, |live| {
        let finalizers = meta::of_mut(live).get_mut("finalizers");
        if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
        Ok(())
    })
}
