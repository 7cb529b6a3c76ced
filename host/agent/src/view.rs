//! What one call sees: a snapshot, narrowed to what the manifest declares, with
//! every question recorded.

use crate::active::Active;
use crate::asked::Asked;
use crate::memo::Answers;
use crate::problem::Problem;
use crate::reads::Read;
use crate::sources::{self, SourcesView};
use crate::unanswered::Unanswered;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use reeve_cluster::{Answer, Object, Snapshot, WatchHandle, WatchState};
use reeve_core::manifest::{ConfigMapEntry, Origin, ReadRule};
use reeve_core::projection::Projection;
use reeve_core::selector::Selector;
use reeve_core::{Digest, GroupVersionKind, ObjectReference, UnitKey};
use reeve_engine::{Document, ListQuery, ReadError, SourceError, View};
use std::sync::Arc;

/// The view of one call.
pub(crate) struct CallView {
    snapshot: Snapshot,
    active: Arc<Active>,
    primary: Arc<ObjectReference>,
    now: Timestamp,
    /// Outside documents as they were when the call began.
    sources: SourcesView,
    reads: Mutex<Asked>,
    unanswered: Mutex<Option<Unanswered>>,
}

impl CallView {
    pub(crate) fn new(
        snapshot: Snapshot,
        active: Arc<Active>,
        unit: &UnitKey,
        now: Timestamp,
    ) -> Self {
        Self {
            snapshot,
            sources: active.sources.view(),
            active,
            primary: unit.primary.clone(),
            now,
            reads: Mutex::default(),
            unanswered: Mutex::default(),
        }
    }

    /// What has been asked so far, with digests of what was told.
    ///
    /// # Errors
    ///
    /// When it was more than is kept; see [`Asked::all`].
    pub(crate) fn reads(&self) -> Result<Answers, Problem> {
        self.reads.lock().all()
    }

    /// What has been asked so far and could not be shown, if anything: the first of it.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        self.unanswered.lock().clone()
    }

    /// Notes whether this is an answer.
    fn noting<T>(&self, answer: Result<T, ReadError>) -> Result<T, ReadError> {
        self.note_unanswered(answer.as_ref().err().and_then(Unanswered::read));
        answer
    }

    /// As [`CallView::noting`], of an outside document.
    fn noting_source<T>(&self, answer: Result<T, SourceError>) -> Result<T, SourceError> {
        self.note_unanswered(answer.as_ref().err().and_then(Unanswered::source));
        answer
    }

    fn note_unanswered(&self, new: Option<Unanswered>) {
        if let Some(new) = new {
            self.unanswered.lock().get_or_insert(new);
        }
    }

    /// Digest of what a read is told in this view.
    pub(crate) fn told(&self, read: &Read) -> Digest {
        match read {
            Read::Object(object, projection) => digest_object(&self.object(object, projection)),
            Read::List {
                kind,
                namespace,
                selector,
                projection: Some(projection),
            } => digest_list(&self.objects(kind, namespace.as_deref(), selector, projection)),
            Read::List {
                kind,
                namespace,
                selector,
                projection: None,
            } => digest_keys(&self.keys(kind, namespace.as_deref(), selector)),
            Read::Clock => Digest::of(&self.now.as_nanosecond().to_le_bytes()),
            Read::Source(name) => sources::digest(&self.sources.document(name)),
            Read::SourceAge(name) => digest_age(&self.sources.age(name)),
        }
    }

    /// How large the object or the document is that a read is about: not less than what is
    /// told of it. Of lists nothing is known.
    pub(crate) fn bytes(&self, read: &Read) -> usize {
        match read {
            Read::Object(object, _) => match self.lookup(object) {
                Ok(Some(found)) => found.json().len(),
                _ => 0,
            },
            Read::Source(name) => match self.sources.document(name) {
                Ok(document) => document.body.len(),
                Err(_) => 0,
            },
            Read::List { .. } | Read::Clock | Read::SourceAge(_) => 0,
        }
    }

    fn record(&self, read: Read, told: Digest) {
        self.reads.lock().note(read, told);
    }

    pub(crate) fn object(
        &self,
        object: &ObjectReference,
        projection: &Projection,
    ) -> Result<Option<Bytes>, ReadError> {
        let found = self.lookup(object)?;
        Ok(found.map(|found| show(&found, projection)))
    }

    pub(crate) fn objects(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &Selector,
        projection: &Projection,
    ) -> Result<Vec<Bytes>, ReadError> {
        let objects = self.select(kind, namespace, selector)?;
        Ok(objects
            .iter()
            .map(|object| show(object, projection))
            .collect())
    }

    pub(crate) fn keys(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<ObjectReference>, ReadError> {
        let objects = self.select(kind, namespace, selector)?;
        Ok(objects.iter().map(|object| object.reference()).collect())
    }

    /// The rules for a kind, each with its watches.
    fn rules<'a>(
        &'a self,
        kind: &'a reeve_core::GroupVersionKind,
    ) -> impl Iterator<Item = (&'a ReadRule, &'a [WatchHandle])> {
        let rules = self.active.manifest.reads.iter();
        rules
            .zip(self.active.watches.reads.iter().map(Vec::as_slice))
            .filter(move |(rule, _)| rule.kind == *kind)
    }

    /// Whether a rule lets this namespace be read; none stands for all.
    fn covers(&self, rule: &ReadRule, namespace: Option<&str>) -> bool {
        rule.covers(&self.primary, namespace)
    }

    /// Checks that a kind is not one that the plugin has yet to bring.
    fn served(&self, kind: &GroupVersionKind) -> Result<(), ReadError> {
        if self.active.unserved.contains(kind) {
            return Err(unseen(kind, &WatchState::NotServed));
        }
        Ok(())
    }

    fn lookup(&self, object: &ObjectReference) -> Result<Option<Arc<Object>>, ReadError> {
        let namespace = object.namespace.as_deref();
        let mut declared = false;
        for (rule, watches) in self.rules(&object.kind) {
            let named = rule.names.is_empty() || rule.names.contains(&object.name);
            if !named || !self.covers(rule, namespace) {
                continue;
            }
            declared = true;
            self.served(&object.kind)?;
            // Behind a selector, absent and not selected look the same.
            if !rule.selector.is_empty() {
                continue;
            }
            for watch in watches {
                match self.snapshot.get_in(watch.spec(), namespace, &object.name) {
                    Answer::Found(object) => return Ok(Some(object)),
                    Answer::Absent => return Ok(None),
                    Answer::NotSynced(state) => return Err(unseen(&object.kind, &state)),
                    Answer::NotWatched => {}
                }
            }
        }
        Err(ReadError::Undeclared(if declared {
            format!(
                "{object}: declared with a selector, behind which absent and not selected look the same; list it instead"
            )
        } else {
            format!("{object}: no entry of the manifest's `reads` covers it")
        }))
    }

    fn select(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<Arc<Object>>, ReadError> {
        for (rule, watches) in self.rules(kind) {
            let all_seen = rule.names.is_empty() && selector.is_within(&rule.selector);
            if !all_seen || !self.covers(rule, namespace) {
                continue;
            }
            self.served(kind)?;
            // A rule over several namespaces has a watch for each.
            let mut found = Vec::new();
            for watch in watches {
                match self.snapshot.list_in(watch.spec(), namespace, selector) {
                    Answer::Found(objects) => found.push(objects),
                    Answer::NotSynced(state) => return Err(unseen(kind, &state)),
                    Answer::Absent | Answer::NotWatched => {}
                }
            }
            if !found.is_empty() {
                return Ok(in_order(found));
            }
        }
        let place =
            namespace.map_or_else(|| "all namespaces".to_owned(), |n| format!("namespace {n}"));
        Err(ReadError::Undeclared(format!(
            "list of {} in {place}: no entry of the manifest's `reads` covers all of it",
            kind
        )))
    }
}

impl View for CallView {
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError> {
        let projection = parse_projection(projection)?;
        let answer = self.object(object, &projection);
        // Also what cannot be answered is an input: the plugin runs again when it
        // can.
        let told = digest_object(&answer);
        self.record(Read::Object(object.clone(), projection), told);
        self.noting(answer)
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        let projection = parse_projection(&query.projection)?;
        let selector = parse_selector(&query.selector)?;
        let namespace = query.namespace.as_deref();
        let answer = self.objects(&query.kind, namespace, &selector, &projection);
        let read = Read::List {
            kind: query.kind.clone(),
            namespace: query.namespace.clone(),
            selector,
            projection: Some(projection),
        };
        self.record(read, digest_list(&answer));
        self.noting(answer)
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        let selector = parse_selector(&query.selector)?;
        let answer = self.keys(&query.kind, query.namespace.as_deref(), &selector);
        let read = Read::List {
            kind: query.kind.clone(),
            namespace: query.namespace.clone(),
            selector,
            projection: None,
        };
        self.record(read, digest_keys(&answer));
        self.noting(answer)
    }

    fn now(&self) -> u64 {
        self.record(Read::Clock, self.told(&Read::Clock));
        u64::try_from(self.now.as_millisecond()).unwrap_or(0)
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        let answer = match self.active.manifest.source(name).map(|rule| &rule.origin) {
            None => Err(sources::undeclared(name)),
            Some(Origin::ConfigMap(entry)) => self.entry(name, entry),
            Some(Origin::Url(_) | Origin::File(_)) => {
                let answer = self.sources.document(name);
                self.record(Read::Source(name.to_owned()), sources::digest(&answer));
                answer
            }
        };
        self.noting_source(answer)
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        let answer = match self.active.manifest.source(name).map(|rule| &rule.origin) {
            None => Err(sources::undeclared(name)),
            // It is watched, and so never old.
            Some(Origin::ConfigMap(entry)) => self.entry(name, entry).map(|_| 0),
            Some(Origin::Url(_) | Origin::File(_)) => {
                let answer = self.sources.age(name);
                self.record(Read::SourceAge(name.to_owned()), digest_age(&answer));
                answer
            }
        };
        self.noting_source(answer)
    }
}

impl CallView {
    /// A document that is no entry of a ConfigMap, without a record of it.
    pub(crate) fn source_seen(&self, name: &str) -> Result<Document, SourceError> {
        self.sources.document(name)
    }

    /// An entry of a ConfigMap, as a document.
    fn entry(&self, name: &str, entry: &ConfigMapEntry) -> Result<Document, SourceError> {
        let ConfigMapEntry {
            namespace,
            name: map,
            key,
        } = entry;
        let kind = ConfigMapEntry::kind();
        let object = ObjectReference::new(kind, Some(namespace.clone()), map.clone());
        // Keys have no character that a JSON Pointer would want escaped.
        let parts = [format!("/data/{key}"), format!("/binaryData/{key}")];
        let found = View::get(self, &object, &parts).map_err(|error| match error {
            ReadError::Forbidden(text) => SourceError::Forbidden(text),
            ReadError::NotSynced(text) => SourceError::NotSynced(text),
            ReadError::Undeclared(text) | ReadError::Invalid(text) => SourceError::Undeclared(text),
        })?;
        let found: Option<serde_json::Value> =
            found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let field = |field: &str| found.as_ref()?.get(field)?.get(key)?.as_str();
        let body = match (field("data"), field("binaryData")) {
            (Some(text), _) => Some(Bytes::from(text.to_owned())),
            (None, Some(text)) => STANDARD.decode(text).ok().map(Bytes::from),
            (None, None) => None,
        };
        body.map(sources::plain).ok_or_else(|| {
            SourceError::NotSynced(format!(
                "source {name}: ConfigMap {namespace}/{map} does not exist or has no entry `{key}`"
            ))
        })
    }
}

fn digest_age(answer: &Result<u64, SourceError>) -> Digest {
    Digest::of(format!("{answer:?}").as_bytes())
}

fn digest_object(answer: &Result<Option<Bytes>, ReadError>) -> Digest {
    match answer {
        Ok(Some(bytes)) => Digest::of_parts([b"found".as_slice(), bytes]),
        Ok(None) => Digest::of(b"absent"),
        Err(error) => digest_error(error),
    }
}

fn digest_list(answer: &Result<Vec<Bytes>, ReadError>) -> Digest {
    match answer {
        Ok(objects) => Digest::of_parts(objects.iter().map(|bytes| &**bytes)),
        Err(error) => digest_error(error),
    }
}

fn digest_keys(answer: &Result<Vec<ObjectReference>, ReadError>) -> Digest {
    match answer {
        Ok(objects) => {
            let names = objects.iter().flat_map(|object| {
                let namespace = object.namespace.as_deref().unwrap_or_default();
                [namespace.as_bytes(), object.name.as_bytes()]
            });
            Digest::of_parts(names)
        }
        Err(error) => digest_error(error),
    }
}

/// Which of the four answers it is, and its words: the guest sees both.
fn digest_error(error: &ReadError) -> Digest {
    Digest::of_parts([b"error".as_slice(), format!("{error:?}").as_bytes()])
}

/// What several watches have, each object once, by namespace and name, as one watch has it.
fn in_order(mut found: Vec<Vec<Arc<Object>>>) -> Vec<Arc<Object>> {
    if found.len() == 1 {
        return found.pop().unwrap_or_default();
    }
    let mut all: Vec<Arc<Object>> = found.into_iter().flatten().collect();
    all.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
    all.dedup_by(|a, b| (a.namespace(), a.name()) == (b.namespace(), b.name()));
    all
}

/// Why a watch that covers a question cannot answer it.
fn unseen(kind: &GroupVersionKind, state: &WatchState) -> ReadError {
    match state {
        WatchState::Forbidden { message } => ReadError::Forbidden(format!(
            "the agent may not list and watch {kind}: {message}"
        )),
        _ => ReadError::NotSynced(format!("{kind}: {state}")),
    }
}

fn show(object: &Object, projection: &Projection) -> Bytes {
    // It was proven to be an object when it came.
    Bytes::from(projection.show(object.json()).unwrap_or_default())
}

fn parse_projection(pointers: &[String]) -> Result<Projection, ReadError> {
    Projection::new(pointers.to_vec()).map_err(|error| ReadError::Invalid(error.to_string()))
}

fn parse_selector(text: &str) -> Result<Selector, ReadError> {
    text.parse()
        .map_err(|error: reeve_core::selector::SelectorError| ReadError::Invalid(error.to_string()))
}
