//! Taking down one call of a plugin, whole.

use super::Opened;
use crate::run::{is_held, seen};
use crate::view::CallView;
use bytes::Bytes;
use parking_lot::Mutex;
use reeve_cluster::Answer;
use reeve_core::ObjectReference;
use reeve_core::manifest::{Manifest, Origin};
use reeve_core::recording::{
    About, Body, CallLimits, CalledComponent, ConfigMapSource, Input, RecordedFact, Recording,
    RecordingError, Redaction, ServedKind, redact,
};
use reeve_engine::{
    Document, Fault, ListQuery, ReadError, Recorder, Request, SourceError, View, answer_of,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a call was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is nothing to call the plugin for.
    #[error("{primary} {why}, so that the plugin is not called for it; record another unit")]
    NotCalled {
        /// The primary.
        primary: ObjectReference,
        /// Why not.
        why: String,
    },
    /// The call could not be made here.
    #[error("{primary}: the plugin could not be called: {problem}")]
    Host {
        /// The primary.
        primary: ObjectReference,
        /// Why.
        problem: Fault,
    },
    /// There is too much to it.
    #[error("{primary}: {problem}")]
    TooMuch {
        /// The primary.
        primary: ObjectReference,
        /// Of what.
        problem: RecordingError,
    },
}

impl Opened<'_> {
    /// Calls the plugin for a unit as the agent would now, and takes down everything
    /// that the answer follows from. Nothing is written anywhere.
    ///
    /// With `redact_secrets`, the plugin is shown no value of a Secret: what stands in
    /// its place is in the recording, and the answer is the one to that.
    ///
    /// # Errors
    ///
    /// When there is no call to be made, or not here, or it is too large to be kept.
    pub async fn record(
        &self,
        primary: &ObjectReference,
        redact_secrets: bool,
    ) -> Result<Recording, RecordError> {
        let active = &self.active;
        let unit = self.state.unit(primary);
        let snapshot = self.runner.store.snapshot();
        let not_called = |why: &str| RecordError::NotCalled {
            primary: primary.clone(),
            why: why.to_owned(),
        };
        if let Some(why) = self.runner.lent(&unit, active) {
            return Err(not_called(&format!("is not for the plugin: {why}")));
        }
        let watch = active.watches.primary.spec();
        let found = match snapshot.get_in(watch, primary.namespace.as_deref(), &primary.name) {
            Answer::Found(found) if found.is_deleting() && !is_held(&found, &unit.plugin) => {
                return Err(not_called("is being deleted"));
            }
            Answer::Found(found) => found,
            Answer::Absent => return Err(not_called("does not exist, or is not selected")),
            Answer::NotSynced(state) => return Err(not_called(&format!("is not seen: {state}"))),
            Answer::NotWatched => return Err(not_called("is not watched any more")),
        };
        let now = self.runner.clock.now();
        let mut shown = seen(active, &found);
        let view = CallView::new(snapshot, Arc::clone(active), &unit, now);
        let view: Arc<dyn View> = Arc::new(view);
        let redacting = redact_secrets.then(|| Arc::new(Redacting::new(view.clone())));
        if let Some(redacting) = &redacting {
            redacting.note(primary, &mut shown);
        }
        let behind: Arc<dyn View> = match &redacting {
            Some(redacting) => redacting.clone(),
            None => view,
        };
        let recorder = Arc::new(Recorder::new(behind));
        let request = Request {
            primary: shown.to_string().into(),
            config: active.config.clone(),
            facts: self.state.run(&unit, active).effects.facts(),
            unit: Some(unit.clone()),
        };
        let call = {
            let (active, view, request) = (active.clone(), recorder.clone(), request.clone());
            Box::pin(async move {
                let component = &active.component;
                component.reconcile(request, view, &active.limits).await
            })
        };
        let called = active.threads.run(call).await;
        let answer = answer_of(called).map_err(|problem| RecordError::Host {
            primary: primary.clone(),
            problem,
        })?;
        let reads = recorder.reads().map_err(|problem| RecordError::TooMuch {
            primary: primary.clone(),
            problem,
        })?;
        let body = |bytes: &Bytes| Body::new(&**bytes);
        let facts = request.facts.iter().map(|fact| RecordedFact {
            key: fact.key.clone(),
            value: body(&fact.value),
        });
        Ok(Recording {
            metadata: About {
                plugin: self.state.name.to_string(),
                primary: primary.into(),
                recorded_at: now.to_string(),
                reeve: env!("CARGO_PKG_VERSION").to_owned(),
            },
            component: CalledComponent {
                digest: active.component.digest(),
                bytes: active.component.size() as u64,
                name: active.metadata.name.clone(),
                version: active.metadata.version.clone(),
            },
            contract: active.component.generation().to_string(),
            input: Input {
                primary: body(&request.primary),
                projection: active.manifest.primary().projection.pointers(),
                config: body(&request.config),
                facts: facts.collect(),
                reads,
                kinds: self.served(),
                config_map_sources: config_map_sources(&active.manifest),
            },
            limits: CallLimits::from(&active.limits),
            redacted: redacting.map_or_else(Vec::new, |redacting| redacting.redacted()),
            answer,
        })
    }

    fn served(&self) -> Vec<ServedKind> {
        let kinds = self.active.manifest.kinds().into_iter();
        let served = kinds.filter_map(|kind| {
            let resource = self.active.resource(kind)?;
            Some(ServedKind {
                group: kind.group.clone(),
                version: kind.version.clone(),
                kind: kind.kind.clone(),
                plural: resource.plural.to_string(),
                namespaced: resource.namespaced,
            })
        });
        served.collect()
    }
}

fn config_map_sources(manifest: &Manifest) -> Vec<ConfigMapSource> {
    let sources = manifest.sources.iter();
    let sources = sources.filter_map(|source| match &source.origin {
        Origin::ConfigMap(entry) => Some(ConfigMapSource::new(&source.name, entry)),
        Origin::Url(_) | Origin::File(_) => None,
    });
    sources.collect()
}

/// A view in which no value of a Secret is shown.
struct Redacting {
    view: Arc<dyn View>,
    redacted: Mutex<BTreeMap<ObjectReference, Vec<String>>>,
}

impl Redacting {
    fn new(view: Arc<dyn View>) -> Self {
        Self {
            view,
            redacted: Mutex::default(),
        }
    }

    /// Redacts an object, and remembers what of it.
    fn note(&self, name: &ObjectReference, object: &mut Value) {
        let fields = redact(object);
        if fields.is_empty() {
            return;
        }
        let mut redacted = self.redacted.lock();
        let known = redacted.entry(name.clone()).or_default();
        known.extend(fields);
        known.sort();
        known.dedup();
    }

    /// What was redacted, in order.
    fn redacted(&self) -> Vec<Redaction> {
        let redacted = self.redacted.lock();
        let redacted = redacted.iter().map(|(object, fields)| Redaction {
            object: object.into(),
            fields: fields.clone(),
        });
        redacted.collect()
    }

    fn shown(&self, kind_of: impl Fn(&Value) -> ObjectReference, bytes: Bytes) -> Bytes {
        // What is no JSON comes from no API server.
        let Ok(mut object) = serde_json::from_slice::<Value>(&bytes) else {
            return bytes;
        };
        self.note(&kind_of(&object), &mut object);
        Bytes::from(object.to_string())
    }
}

impl View for Redacting {
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError> {
        let found = self.view.get(object, projection)?;
        Ok(found.map(|bytes| self.shown(|_| object.clone(), bytes)))
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        let name = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
            let (namespace, name) = (text("namespace"), text("name"));
            ObjectReference::new(query.kind.clone(), namespace, name.unwrap_or_default())
        };
        let found = self.view.list(query)?;
        let shown = found.into_iter().map(|bytes| self.shown(name, bytes));
        Ok(shown.collect())
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        self.view.list_keys(query)
    }

    fn now(&self) -> u64 {
        self.view.now()
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        self.view.source(name)
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        self.view.source_age(name)
    }
}
