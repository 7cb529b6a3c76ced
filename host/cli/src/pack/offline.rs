//! A cluster that is only thought of: in it everything is as packs need it to be.

use bytes::Bytes;
use k8s_openapi::jiff::Timestamp;
use reeve_core::projection::Projection;
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, ObjectReference};
use reeve_engine::{Document, ListQuery, ReadError, SourceError, View};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Group, kind, namespace and name.
type Key = (String, String, Option<String>, String);

/// The objects that there are.
#[derive(Clone, Default)]
pub(super) struct Thought {
    objects: BTreeMap<Key, Value>,
}

impl Thought {
    /// With an object as it would be once it is well: releases are installed, and
    /// Deployments are available.
    pub(super) fn put(&mut self, mut object: Value) {
        object["metadata"]["generation"] = json!(1);
        match object["kind"].as_str() {
            Some("HelmRelease") => {
                object["status"] = json!({"observedGeneration": 1, "conditions": [{
                    "type": "Ready", "status": "True", "observedGeneration": 1,
                }]});
            }
            Some("Deployment") => {
                object["spec"]["replicas"] = json!(1);
                object["status"] = json!({"observedGeneration": 1, "availableReplicas": 1});
            }
            _ => {}
        }
        let reference = reference_of(&object);
        self.objects.insert(key(&reference), object);
    }

    fn matching(&self, query: &ListQuery) -> Result<Vec<&Value>, ReadError> {
        let invalid = |error: String| ReadError::Invalid(error);
        let selector: Selector = query
            .selector
            .parse()
            .map_err(|error: reeve_core::selector::SelectorError| invalid(error.to_string()))?;
        let found = self.objects.iter().filter(|(key, object)| {
            let (group, kind, namespace, _) = key;
            let labels = &object["metadata"]["labels"];
            *group == query.kind.group
                && *kind == query.kind.kind
                && query
                    .namespace
                    .as_ref()
                    .is_none_or(|wanted| namespace.as_ref() == Some(wanted))
                && selector.matches(|label| labels[label].as_str())
        });
        Ok(found.map(|(_, object)| object).collect())
    }
}

/// What an object is called.
pub(super) fn reference_of(object: &Value) -> ObjectReference {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (version, kind) = (text("/apiVersion"), text("/kind").unwrap_or_default());
    let (group, version) = match version.unwrap_or_default().split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", version.unwrap_or_default()),
    };
    let namespace = text("/metadata/namespace").map(str::to_owned);
    let name = text("/metadata/name").unwrap_or_default();
    ObjectReference::new(GroupVersionKind::new(group, version, kind), namespace, name)
}

fn key(reference: &ObjectReference) -> Key {
    let kind = &reference.kind;
    (
        kind.group.clone(),
        kind.kind.clone(),
        reference.namespace.clone(),
        reference.name.clone(),
    )
}

fn projected(object: &Value, projection: &[String]) -> Result<Bytes, ReadError> {
    let projection = Projection::new(projection.to_vec());
    let projection = projection.map_err(|error| ReadError::Invalid(error.to_string()))?;
    Ok(projection.apply(object).to_string().into())
}

impl View for Thought {
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError> {
        let found = self.objects.get(&key(object));
        found
            .map(|object| projected(object, projection))
            .transpose()
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        let found = self.matching(query)?.into_iter();
        found
            .map(|object| projected(object, &query.projection))
            .collect()
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        let found = self.matching(query)?.into_iter();
        Ok(found.map(reference_of).collect())
    }

    fn now(&self) -> u64 {
        u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        Err(absent(name))
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        Err(absent(name))
    }
}

/// All documents are objects here.
fn absent(name: &str) -> SourceError {
    SourceError::NotSynced(format!("there is no file for {name}"))
}
