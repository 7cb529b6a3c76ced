//! Taking a call down, so that it can be made again elsewhere.

use crate::called::Called;
use crate::fault::{Fault, FaultKind};
use crate::limits::Limits;
use crate::view::{Document, ListQuery, ReadError, SourceError, View};
use bytes::Bytes;
use parking_lot::Mutex;
use reeve_core::recording::{
    Answer, Body, CallLimits, FaultRecord, MAX_BYTES, Question, Read, ReadFailure, ReadFailureKind,
    RecordingError, Told,
};
use reeve_core::{Failure, ObjectReference, Outcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A view that takes down what it is asked, and what the view behind it answers.
pub struct Recorder {
    view: Arc<dyn View>,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    told: BTreeMap<Question, Told>,
    bytes: usize,
    /// Whether there was more than is kept.
    over: bool,
}

/// What one entry takes besides its texts, roughly.
const ENTRY_BYTES: usize = 128;

impl Recorder {
    /// Takes down what is asked of this view.
    pub fn new(view: Arc<dyn View>) -> Self {
        Self {
            view,
            taken: Mutex::default(),
        }
    }

    /// Everything that was asked so far, in order of the questions.
    ///
    /// # Errors
    ///
    /// When it is more than a file may have.
    pub fn reads(&self) -> Result<Vec<Read>, RecordingError> {
        let taken = self.taken.lock();
        if taken.over {
            return Err(RecordingError::TooMuch);
        }
        let told = taken.told.iter();
        let reads = told.map(|(question, told)| Read {
            question: question.clone(),
            told: told.clone(),
        });
        Ok(reads.collect())
    }

    fn note(&self, question: Question, told: impl FnOnce() -> Told) {
        let mut taken = self.taken.lock();
        // All answers of one call come from one state of the world.
        if taken.over || taken.told.contains_key(&question) {
            return;
        }
        let told = told();
        taken.bytes += ENTRY_BYTES + question.to_string().len() + weight(&told);
        if taken.bytes as u64 > MAX_BYTES {
            *taken = Taken {
                over: true,
                ..Taken::default()
            };
            return;
        }
        taken.told.insert(question, told);
    }
}

/// Bytes of an answer.
fn weight(told: &Told) -> usize {
    match told {
        Told::Object(found) => found.as_ref().map_or(0, |body| body.bytes().len()),
        Told::Objects(found) => found.iter().map(|b| b.bytes().len() + ENTRY_BYTES).sum(),
        Told::Keys(keys) => {
            let keys = keys.iter().map(|key| {
                let namespace = key.namespace.as_ref().map_or(0, String::len);
                ENTRY_BYTES + namespace + key.name.len()
            });
            keys.sum()
        }
        Told::Document { body, .. } => body.bytes().len(),
        Told::Failed(failure) => failure.message.len(),
        Told::Seconds(_) | Told::Milliseconds(_) => 0,
    }
}

impl View for Recorder {
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError> {
        let answer = self.view.get(object, projection);
        self.note(Question::object(object, projection), || match &answer {
            Ok(found) => Told::Object(found.as_ref().map(|bytes| Body::new(&**bytes))),
            Err(error) => failed(error),
        });
        answer
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        let answer = self.view.list(query);
        self.note(list_of(query), || match &answer {
            Ok(found) => Told::Objects(found.iter().map(|bytes| Body::new(&**bytes)).collect()),
            Err(error) => failed(error),
        });
        answer
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        let answer = self.view.list_keys(query);
        self.note(keys_of(query), || match &answer {
            Ok(found) => Told::Keys(found.clone()),
            Err(error) => failed(error),
        });
        answer
    }

    fn now(&self) -> u64 {
        let now = self.view.now();
        self.note(Question::Time, || Told::Milliseconds(now));
        now
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        let answer = self.view.source(name);
        self.note(Question::Source(name.to_owned()), || match &answer {
            Ok(document) => Told::Document {
                media_type: document.media_type.clone(),
                body: Body::new(&*document.body),
            },
            Err(error) => source_failed(error),
        });
        answer
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        let answer = self.view.source_age(name);
        self.note(Question::SourceAge(name.to_owned()), || match &answer {
            Ok(seconds) => Told::Seconds(*seconds),
            Err(error) => source_failed(error),
        });
        answer
    }
}

pub(crate) fn list_of(query: &ListQuery) -> Question {
    let namespace = query.namespace.as_deref();
    Question::list(&query.kind, namespace, &query.selector, &query.projection)
}

pub(crate) fn keys_of(query: &ListQuery) -> Question {
    Question::keys(&query.kind, query.namespace.as_deref(), &query.selector)
}

fn failed(error: &ReadError) -> Told {
    let (reason, message) = match error {
        ReadError::Forbidden(text) => (ReadFailureKind::Forbidden, text),
        ReadError::Undeclared(text) => (ReadFailureKind::Undeclared, text),
        ReadError::NotSynced(text) => (ReadFailureKind::NotSynced, text),
        ReadError::Invalid(text) => (ReadFailureKind::Invalid, text),
    };
    let message = message.clone();
    Told::Failed(ReadFailure { reason, message })
}

fn source_failed(error: &SourceError) -> Told {
    let (reason, message) = match error {
        SourceError::Forbidden(text) => (ReadFailureKind::Forbidden, text),
        SourceError::Undeclared(text) => (ReadFailureKind::Undeclared, text),
        SourceError::NotSynced(text) => (ReadFailureKind::NotSynced, text),
    };
    let message = message.clone();
    Told::Failed(ReadFailure { reason, message })
}

/// What a call came to, for a recording.
///
/// # Errors
///
/// The fault of a call that this machine could not make: it says nothing about the
/// plugin.
pub fn answer_of(called: Result<Called<Result<Outcome, Failure>>, Fault>) -> Result<Answer, Fault> {
    match called {
        Ok(called) => Ok(match called.value {
            Ok(outcome) => Answer::Outcome(outcome),
            Err(failure) => Answer::Failure(failure),
        }),
        Err(fault) => match reason(&fault.kind) {
            Some(reason) => Ok(Answer::Fault(FaultRecord {
                reason: reason.to_owned(),
                message: fault.to_string(),
            })),
            None => Err(fault),
        },
    }
}

fn reason(kind: &FaultKind) -> Option<&'static str> {
    match kind {
        FaultKind::Trap { .. } => Some("trap"),
        FaultKind::Exit { .. } => Some("exit"),
        FaultKind::MalformedResult { .. } => Some("malformedResult"),
        FaultKind::Refused { .. } | FaultKind::NoActions => Some("refused"),
        FaultKind::Host { .. } => None,
        limit => limit.limit(),
    }
}

impl From<&Limits> for CallLimits {
    fn from(limits: &Limits) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            run_milliseconds: millis(limits.run_time),
            wall_milliseconds: millis(limits.wall_time),
            memory_bytes: limits.memory_bytes,
            stack_bytes: limits.stack_bytes,
            output_bytes: limits.output_bytes,
            output_objects: limits.output_objects,
            host_calls: limits.host_calls,
            host_call_bytes: limits.host_call_bytes,
            log_bytes: limits.log_bytes,
        }
    }
}
