//! What a call of a plugin was given, and what it read.

use super::Opened;
use crate::reads::Read;
use crate::view::CallView;
use foldhash::HashSet;
use k8s_openapi::jiff::Timestamp;
use reeve_core::projection::Projection;
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use serde_json::Value;
use std::sync::Arc;

/// A call of a plugin.
#[derive(Clone, Debug)]
pub struct Call {
    /// The primary that it was given.
    pub primary: ObjectReference,
    /// What of it, as JSON Pointers; none stand for all but the status.
    pub fields: Vec<String>,
    /// The configuration.
    pub config: Value,
    /// What it read, in a fixed order.
    pub reads: Vec<ReadReport>,
}

/// One question, and what there was to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadReport {
    /// What was asked.
    pub question: Question,
    /// How many objects were found, or why the question had no answer.
    pub answer: Result<usize, String>,
}

/// What a call can ask.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// For one object.
    Object {
        /// The object.
        object: ObjectReference,
        /// Which fields, as JSON Pointers; none stand for all but the status.
        fields: Vec<String>,
    },
    /// For all objects that match.
    Objects {
        /// Their kind.
        kind: GroupVersionKind,
        /// Their namespace; none for all.
        namespace: Option<String>,
        /// Their labels; empty for any.
        selector: String,
        /// Which fields; none when only names were asked for.
        fields: Option<Vec<String>>,
    },
    /// For an outside document, or how old it is.
    Source {
        /// Name of the source.
        name: String,
    },
    /// For the time.
    Time(Timestamp),
}

impl Opened<'_> {
    /// Tells of a call of a unit that read this.
    pub(super) fn call(&self, unit: &UnitKey, reads: &HashSet<Read>) -> Call {
        let now = self.runner.clock.now();
        let snapshot = self.runner.store.snapshot();
        let view = CallView::new(snapshot, Arc::clone(&self.active), unit, now);
        let mut reads: Vec<ReadReport> =
            reads.iter().map(|read| report(&view, read, now)).collect();
        reads.sort_by_cached_key(|read| format!("{:?}", read.question));
        Call {
            primary: (*unit.primary).clone(),
            fields: pointers(&self.active.manifest.primary().projection),
            config: serde_json::from_slice(&self.active.config).unwrap_or_default(),
            reads,
        }
    }
}

fn report(view: &CallView, read: &Read, now: Timestamp) -> ReadReport {
    match read {
        Read::Object(object, projection) => ReadReport {
            question: Question::Object {
                object: object.clone(),
                fields: pointers(projection),
            },
            answer: view
                .object(object, projection)
                .map(|found| usize::from(found.is_some()))
                .map_err(|error| error.to_string()),
        },
        Read::List {
            kind,
            namespace,
            selector,
            projection,
        } => ReadReport {
            question: Question::Objects {
                kind: kind.clone(),
                namespace: namespace.clone(),
                selector: selector.to_string(),
                fields: projection.as_ref().map(pointers),
            },
            answer: view
                .keys(kind, namespace.as_deref(), selector)
                .map(|found| found.len())
                .map_err(|error| error.to_string()),
        },
        Read::Clock => ReadReport {
            question: Question::Time(now),
            answer: Ok(1),
        },
        Read::Source(name) | Read::SourceAge(name) => ReadReport {
            question: Question::Source { name: name.clone() },
            answer: view
                .source_seen(name)
                .map(|_| 1)
                .map_err(|error| error.to_string()),
        },
    }
}

fn pointers(projection: &Projection) -> Vec<String> {
    let value = serde_json::to_value(projection).unwrap_or_default();
    serde_json::from_value(value).unwrap_or_default()
}
