//! Outside of a component: a cluster in memory, for unit tests.
//!
//! It answers as the host does where that matters to a plugin: objects are
//! stripped and projected, reads that a manifest does not declare fail, and so do
//! kinds that are not granted or not synced.

mod outside;
mod view;

pub(crate) use outside::OutsideBackend;

use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;

use crate::log::Level;
use crate::source::Document;
use crate::{Context, Kind, Manifest, ObjectReference, Query, ReadError, Scope};

/// The answers that a test prepared.
#[derive(Debug, Default)]
pub(crate) struct Backend {
    objects: Vec<Value>,
    now: u64,
    forbidden: Vec<Kind>,
    unsynced: Vec<Kind>,
    documents: Vec<(String, Document, u64)>,
    facts: Vec<(String, Vec<u8>)>,
    /// Without one, every read is declared.
    manifest: Option<Manifest>,
}

/// For native tests: a cluster in memory. None of it exists in a component.
impl Context {
    /// An empty cluster at 1970-01-01T00:00:00Z in which every read is declared
    /// and granted.
    ///
    /// ```
    /// use reeve_sdk::prelude::*;
    ///
    /// let cx = Context::test().with_object(json!({
    ///     "apiVersion": "v1",
    ///     "kind": "ConfigMap",
    ///     "metadata": {"name": "settings", "namespace": "alice"},
    ///     "data": {"colour": "green"},
    /// }));
    /// let settings = Kind::new("v1", "ConfigMap").object("settings").in_namespace("alice");
    /// let found: Option<serde_json::Value> = cx.get(&settings).unwrap();
    /// assert_eq!(found.unwrap()["data"]["colour"], "green");
    /// ```
    pub fn test() -> Self {
        Self {
            backend: Backend::default(),
        }
    }

    /// The cluster has this object: anything that serde can write, with
    /// `apiVersion`, `kind` and `metadata.name`. It replaces one of the same kind,
    /// namespace and name.
    ///
    /// # Panics
    ///
    /// When it is no such object.
    #[must_use]
    pub fn with_object(mut self, object: impl Serialize) -> Self {
        let object = serde_json::to_value(object).unwrap_or_default();
        assert!(
            view::reference(&object).is_some(),
            "no object: {object}; it needs apiVersion, kind and metadata.name"
        );
        let reference = view::reference(&object);
        self.backend
            .objects
            .retain(|old| view::reference(old) != reference);
        self.backend.objects.push(object);
        self
    }

    /// It is this time.
    #[must_use]
    pub fn at(mut self, time: SystemTime) -> Self {
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        self.backend.now = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The outside document of this name has this body.
    #[must_use]
    pub fn with_source(self, name: &str, body: impl Into<Vec<u8>>) -> Self {
        self.with_old_source(name, body, 0)
    }

    /// The outside document of this name has this body, and was last confirmed to be
    /// current so many seconds ago.
    #[must_use]
    pub fn with_old_source(mut self, name: &str, body: impl Into<Vec<u8>>, age: u64) -> Self {
        let document = Document {
            body: body.into(),
            media_type: String::new(),
        };
        self.backend.documents.retain(|(known, _, _)| known != name);
        self.backend
            .documents
            .push((name.to_owned(), document, age));
        self
    }

    /// The outside effect of this key has reported this fact, in the place of an
    /// earlier one.
    #[must_use]
    pub fn with_fact(mut self, key: &str, fact: impl Serialize) -> Self {
        let fact = serde_json::to_vec(&fact).unwrap_or_default();
        self.backend.facts.retain(|(known, _)| known != key);
        self.backend.facts.push((key.to_owned(), fact));
        self
    }

    /// Only what this manifest declares may be read. A rule for the namespace of
    /// the primary covers any one namespace, since a test has no primary.
    #[must_use]
    pub fn declaring(mut self, manifest: Manifest) -> Self {
        self.backend.manifest = Some(manifest);
        self
    }

    /// Objects of this kind may not be read.
    #[must_use]
    pub fn without_grant(mut self, kind: Kind) -> Self {
        self.backend.forbidden.push(kind);
        self
    }

    /// Objects of this kind have not been seen yet.
    #[must_use]
    pub fn without_sync(mut self, kind: Kind) -> Self {
        self.backend.unsynced.push(kind);
        self
    }
}

impl Backend {
    pub(crate) fn get(
        &self,
        object: &ObjectReference,
        parts: &[String],
    ) -> Result<Option<Vec<u8>>, ReadError> {
        self.answers(
            &object.kind,
            |rule| rule.names.is_empty() || rule.names.contains(&object.name),
            object.namespace.as_deref(),
        )?;
        let parts = view::parse(parts).map_err(ReadError::Invalid)?;
        Ok(self
            .objects
            .iter()
            .find(|found| view::reference(found).as_ref() == Some(object))
            .map(|found| view::seen(found, &parts).to_string().into_bytes()))
    }

    pub(crate) fn list(&self, query: &Query) -> Result<Vec<Vec<u8>>, ReadError> {
        let parts = view::parse(&query.projection).map_err(ReadError::Invalid)?;
        Ok(self
            .matching(query)?
            .into_iter()
            .map(|(_, object)| view::seen(object, &parts).to_string().into_bytes())
            .collect())
    }

    pub(crate) fn list_references(&self, query: &Query) -> Result<Vec<ObjectReference>, ReadError> {
        let matching = self.matching(query)?;
        Ok(matching
            .into_iter()
            .map(|(reference, _)| reference)
            .collect())
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn source(&self, name: &str) -> Result<Document, ReadError> {
        self.document(name).map(|(document, _)| document)
    }

    pub(crate) fn source_age(&self, name: &str) -> Result<u64, ReadError> {
        self.document(name).map(|(_, age)| age)
    }

    fn document(&self, name: &str) -> Result<(Document, u64), ReadError> {
        let declares = |manifest: &Manifest| manifest.sources.iter().any(|rule| rule.name == name);
        if self
            .manifest
            .as_ref()
            .is_some_and(|manifest| !declares(manifest))
        {
            return Err(ReadError::Undeclared(format!(
                "the manifest declares no source {name}"
            )));
        }
        let found = self.documents.iter().find(|(known, _, _)| known == name);
        let (_, document, age) = found.ok_or_else(|| {
            ReadError::NotSynced(format!("source {name} has not been fetched yet"))
        })?;
        Ok((document.clone(), *age))
    }

    pub(crate) fn fact(&self, key: &str) -> Option<&[u8]> {
        let found = self.facts.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_slice())
    }

    fn matching(&self, query: &Query) -> Result<Vec<(ObjectReference, &Value)>, ReadError> {
        let selector = crate::selector::parse_of_labels(&query.selector);
        let selector = selector.map_err(ReadError::Invalid)?;
        self.answers(
            &query.kind,
            |rule| {
                let declared = crate::selector::parse(&rule.selector);
                let covered = |declared: Vec<_>| crate::selector::is_within(&selector, &declared);
                rule.names.is_empty() && declared.is_ok_and(covered)
            },
            query.namespace.as_deref(),
        )?;
        let mut found: Vec<_> = self
            .objects
            .iter()
            .filter_map(|object| Some((view::reference(object)?, object)))
            .filter(|(reference, object)| {
                reference.kind == query.kind
                    && (query.namespace.is_none() || reference.namespace == query.namespace)
                    && selector
                        .iter()
                        .all(|term| term.matches(object.pointer("/metadata/labels")))
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        Ok(found)
    }

    /// Whether there is an answer for this kind at all.
    fn answers(
        &self,
        kind: &Kind,
        covers: impl Fn(&crate::ReadRule) -> bool,
        namespace: Option<&str>,
    ) -> Result<(), ReadError> {
        let within = |scope: &Scope| match scope {
            Scope::Cluster => true,
            Scope::Namespaces(names) => {
                namespace.is_some_and(|namespace| names.iter().any(|name| name == namespace))
            }
            Scope::PrimaryNamespace | Scope::NamespaceNamedLikePrimary => namespace.is_some(),
        };
        if let Some(manifest) = &self.manifest
            && !manifest
                .reads
                .iter()
                .any(|rule| rule.kind == *kind && covers(rule) && within(&rule.scope))
        {
            return Err(ReadError::Undeclared(format!(
                "the manifest declares no such read of {kind}"
            )));
        }
        if self.forbidden.contains(kind) {
            return Err(ReadError::Forbidden(format!("may not read {kind}")));
        }
        if self.unsynced.contains(kind) {
            return Err(ReadError::NotSynced(format!("{kind} is not synced yet")));
        }
        Ok(())
    }
}

/// Shows a line where the test runner collects it.
pub(crate) fn log(level: Level, message: &str) {
    eprintln!("{level:?}: {message}");
}

#[cfg(test)]
mod tests;
