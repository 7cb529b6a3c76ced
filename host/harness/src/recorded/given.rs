//! The cluster of a scenario, from what a plugin was shown of another.

use super::returned;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_core::ObjectReference;
use reeve_core::ownership::HOST_OWNED;
use reeve_core::recording::{Answer, ConfigMapSource, Question, Recording, ServedKind, Told};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Groups that every API server serves by itself, and our own, which each scenario has:
/// other kinds need a definition.
const SERVED: [&str; 22] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "reeve.dev",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Namespaces that each scenario has.
const NAMESPACES: [&str; 5] = [
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    crate::world::NAMESPACE,
];

/// Metadata that belongs to the cluster in which the call was recorded.
const OF_CLUSTER: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// An object by kind, namespace and name; versions of a kind hold the same objects.
type Key = (String, String, Option<String>, String);

fn key_of(object: &Value) -> Option<Key> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (group, _) = text("/apiVersion")?.rsplit_once('/').unwrap_or_default();
    Some((
        group.to_owned(),
        text("/kind")?.to_owned(),
        text("/metadata/namespace").map(str::to_owned),
        text("/metadata/name")?.to_owned(),
    ))
}

/// What there is before the plugin runs.
pub(super) struct Given {
    objects: BTreeMap<Key, Value>,
    /// Uids of objects in the cluster of the recording.
    pub(super) uids: BTreeSet<String>,
}

impl Given {
    /// What a recorded call was shown.
    pub(super) fn of(recording: &Recording) -> Self {
        let mut given = Self {
            objects: BTreeMap::new(),
            uids: BTreeSet::new(),
        };
        let input = &recording.input;
        for read in &input.reads {
            match (&read.question, &read.told) {
                (_, Told::Object(Some(body))) => given.add(body.json()),
                (_, Told::Objects(bodies)) => bodies.iter().for_each(|body| given.add(body.json())),
                (_, Told::Keys(keys)) => keys.iter().for_each(|key| given.add(Some(named(key)))),
                (Question::Source(name), Told::Document { body, .. }) => {
                    let mut sources = input.config_map_sources.iter();
                    if let Some(source) = sources.find(|source| source.name == *name) {
                        given.add(Some(config_map(source, body.bytes())));
                    }
                }
                _ => {}
            }
        }
        // What it made itself it makes here too.
        let returned: Vec<Key> = returned(recording).iter().filter_map(key_of).collect();
        given.objects.retain(|key, _| !returned.contains(key));
        given.add(input.primary.json());
        given.add_namespaces(&returned);
        given
    }

    /// Adds an object, or what is known of it besides.
    fn add(&mut self, object: Option<Value>) {
        let Some((mut object, key)) = object.and_then(|object| {
            let key = key_of(&object)?;
            Some((object, key))
        }) else {
            return;
        };
        let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
        // One of a few characters is in many texts that have nothing to do with it.
        self.uids.extend(uid.filter(|uid| uid.len() >= 8));
        clean(&mut object);
        match self.objects.get_mut(&key) {
            Some(known) => merge(known, object),
            None => {
                self.objects.insert(key, object);
            }
        }
    }

    fn add_namespaces(&mut self, returned: &[Key]) {
        let of_given = self.objects.keys().map(|(_, _, namespace, _)| namespace);
        let of_answer = returned.iter().map(|(_, _, namespace, _)| namespace);
        let names: BTreeSet<String> = of_given.chain(of_answer).flatten().cloned().collect();
        for name in names {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
            });
            let is_made = key_of(&namespace).is_some_and(|key| returned.contains(&key));
            if !is_made && !NAMESPACES.contains(&name.as_str()) {
                self.add(Some(namespace));
            }
        }
    }

    /// The section `given`.
    pub(super) fn value(&self, recording: &Recording) -> Value {
        let mut objects = definitions(&recording.input.kinds);
        objects.extend(self.objects.values().cloned());
        let mut given = Map::new();
        let config = recording.input.config.json().unwrap_or_default();
        if config.as_object().is_some_and(|config| !config.is_empty()) {
            given.insert("config".to_owned(), config);
        }
        given.insert("objects".to_owned(), Value::Array(objects));
        for (field, value) in [
            ("sources", sources(recording)),
            ("actions", actions(recording)),
        ] {
            if !value.is_empty() {
                given.insert(field.to_owned(), Value::Object(value));
            }
        }
        Value::Object(given)
    }
}

fn named(object: &ObjectReference) -> Value {
    let mut value = json!({
        "apiVersion": object.kind.api_version(),
        "kind": object.kind.kind,
        "metadata": {"name": object.name},
    });
    if let Some(namespace) = &object.namespace {
        value["metadata"]["namespace"] = json!(namespace);
    }
    value
}

fn config_map(source: &ConfigMapSource, body: &[u8]) -> Value {
    let (field, text) = match std::str::from_utf8(body) {
        Ok(text) => ("data", text.to_owned()),
        Err(_) => ("binaryData", STANDARD.encode(body)),
    };
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": source.config_map, "namespace": source.namespace},
        field: {&source.key: text},
    })
}

/// Takes out what belongs to the cluster of the recording, or is the host's to set.
fn clean(object: &mut Value) {
    let is_namespace = object["apiVersion"] == "v1" && object["kind"] == "Namespace";
    if let Some(fields) = object.as_object_mut()
        && is_namespace
    {
        fields.remove("spec");
        fields.remove("status");
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.retain(|field, _| !OF_CLUSTER.contains(&field.as_str()));
    for field in ["labels", "annotations"] {
        let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        entries.retain(|name, _| !HOST_OWNED.contains(&name.as_str()));
        if entries.is_empty() {
            metadata.remove(field);
        }
    }
}

fn merge(known: &mut Value, more: Value) {
    // All is of one state of the cluster, so that what both have is the same, and lists
    // are shown whole or not at all.
    if let (Value::Object(known), Value::Object(more)) = (known, more) {
        for (field, value) in more {
            match known.get_mut(&field) {
                Some(known) => merge(known, value),
                None => {
                    known.insert(field, value);
                }
            }
        }
    }
}

/// Definitions of custom kinds that take whatever they are given: what of an object was
/// not shown may be what its real definition demands.
fn definitions(kinds: &[ServedKind]) -> Vec<Value> {
    let mut custom: BTreeMap<(&str, &str), Vec<&ServedKind>> = BTreeMap::new();
    for kind in kinds {
        if !SERVED.contains(&kind.group.as_str()) {
            let versions = custom.entry((&kind.group, &kind.kind)).or_default();
            versions.push(kind);
        }
    }
    let definitions = custom.into_values().filter_map(|versions| {
        let first = versions.first()?;
        let served = versions.iter().enumerate().map(|(index, kind)| {
            json!({
                "name": kind.version,
                "served": true,
                "storage": index == 0,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            })
        });
        Some(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", first.plural, first.group)},
            "spec": {
                "group": first.group,
                "scope": if first.namespaced { "Namespaced" } else { "Cluster" },
                "names": {
                    "kind": first.kind,
                    "listKind": format!("{}List", first.kind),
                    "plural": first.plural,
                    "singular": first.kind.to_lowercase(),
                },
                "versions": served.collect::<Vec<_>>(),
            },
        }))
    });
    definitions.collect()
}

/// Documents from outside of the cluster.
fn sources(recording: &Recording) -> Map<String, Value> {
    let in_cluster = |name: &str| {
        let mut sources = recording.input.config_map_sources.iter();
        sources.any(|source| source.name == name)
    };
    let mut sources = Map::new();
    for read in &recording.input.reads {
        let Question::Source(name) = &read.question else {
            continue;
        };
        if in_cluster(name) {
            continue;
        }
        let source = match &read.told {
            Told::Document { media_type, body } => match std::str::from_utf8(body.bytes()) {
                Ok(text) if media_type.is_empty() => json!({"text": text}),
                Ok(text) => json!({"text": text, "mediaType": media_type}),
                Err(_) => continue,
            },
            Told::Failed(failure) => json!({"failing": failure.message}),
            _ => continue,
        };
        sources.insert(name.clone(), source);
    }
    sources
}

/// What comes of outside effects: what has come of them.
fn actions(recording: &Recording) -> Map<String, Value> {
    let Answer::Outcome(outcome) = &recording.answer else {
        return Map::new();
    };
    let mut actions = Map::new();
    for fact in &recording.input.facts {
        let mut wanted = outcome.actions.iter();
        let action = wanted.find(|action| action.key == fact.key);
        if let Some(action) = action {
            let fact = fact.value.json().unwrap_or_default();
            actions.insert(action.name.clone(), json!({"fact": fact}));
        }
    }
    actions
}
