//! Making a recorded call again, with nothing but the recording.

use crate::called::LogLine;
use crate::component::{Component, ConfigError, Fact, Request};
use crate::fault::Fault;
use crate::limits::Limits;
use crate::record::{answer_of, keys_of, list_of};
use crate::view::{Document, ListQuery, ReadError, SourceError, View};
use bytes::Bytes;
use parking_lot::Mutex;
use reeve_core::manifest::Manifest;
use reeve_core::projection::Projection;
use reeve_core::recording::{
    Answer, Body, CallLimits, Question, ReadFailureKind, Recording, Told, declares,
};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey, chain};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A recording from which calls are made. Cheap to clone.
#[derive(Clone)]
pub struct Replay {
    shared: Arc<Shared>,
}

struct Shared {
    recording: Recording,
    told: BTreeMap<Question, Given>,
}

/// An answer in the form in which it is given.
#[derive(Clone)]
enum Given {
    Told(Told),
    Object(Bytes),
    Objects(Vec<Bytes>),
}

/// What came of a recorded call that was made again.
#[derive(Debug)]
pub struct Replayed {
    /// The answer; none when an obstacle kept the plugin from being called.
    pub answer: Option<Answer>,
    /// What keeps this from being what the plugin would have answered, if anything.
    pub obstacles: Vec<Obstacle>,
    /// What the recorded call had asked and this one did not, in order.
    pub unasked: Vec<Question>,
    /// What it logged.
    pub logs: Vec<LogLine>,
}

/// What a recording cannot tell of another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// It does not take the configuration.
    #[error("it refuses the recorded configuration: {0}")]
    Config(ConfigError),
    /// It does not say what it is.
    #[error("it does not describe itself: {0}")]
    Describe(String),
    /// It runs for another kind.
    #[error("it runs for {now}, and the call was recorded for {recorded}")]
    Primary {
        /// The kind of its primaries.
        now: GroupVersionKind,
        /// The kind of the recorded one.
        recorded: GroupVersionKind,
    },
    /// It is shown more of its primary.
    #[error("it is shown {now} of its primary, of which {recorded} was recorded")]
    Projection {
        /// What it is shown.
        now: String,
        /// What was recorded.
        recorded: String,
    },
    /// It asks for something that the recorded call did not.
    #[error("it reads {0}, which was not recorded")]
    Unanswered(Question),
}

/// Why a call could not be made again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// This machine cannot.
    #[error("the call cannot be made here")]
    Host(#[source] Fault),
}

impl Replay {
    /// Gets a recording ready.
    pub fn new(recording: Recording) -> Self {
        let bytes = |body: &Body| Bytes::copy_from_slice(body.bytes());
        let reads = recording.input.reads.iter();
        let told = reads.map(|read| {
            let given = match &read.told {
                Told::Object(Some(body)) => Given::Object(bytes(body)),
                Told::Objects(bodies) => Given::Objects(bodies.iter().map(bytes).collect()),
                told => Given::Told(told.clone()),
            };
            (read.question.clone(), given)
        });
        let told = told.collect();
        Self {
            shared: Arc::new(Shared { recording, told }),
        }
    }

    /// What the calls are made from.
    pub fn recording(&self) -> &Recording {
        &self.shared.recording
    }

    /// For whom the call was made.
    fn unit(&self) -> UnitKey {
        let about = &self.recording().metadata;
        UnitKey::new(about.plugin.as_str(), about.primary.reference())
    }

    /// Makes the call with a component, offline.
    ///
    /// The component that was recorded answers as it did, byte for byte: it is given
    /// the same, within the same limits. Only time is another: unless it was time that
    /// ended the recorded call, there is as much of it as there can be, since this
    /// machine may be a slower one.
    ///
    /// Of another component, this is what it would have answered. It is asked to
    /// describe itself first, and is shown what its own manifest says. A question that
    /// the file has no answer to is an [`Obstacle`]; the component is told that the
    /// answer is not known yet.
    ///
    /// # Errors
    ///
    /// When this machine cannot make the call.
    pub async fn with(&self, component: &Component) -> Result<Replayed, ReplayError> {
        let Recording {
            input,
            limits,
            answer,
            ..
        } = self.recording();
        let limits = limits_of(limits, answer);
        let config = Bytes::copy_from_slice(input.config.bytes());
        let mut primary = Bytes::copy_from_slice(input.primary.bytes());
        let mut manifest = None;
        if component.digest() != self.recording().component.digest {
            match self.meet(component, config.clone(), &limits).await? {
                Ok((described, shown)) => {
                    manifest = Some(described);
                    primary = shown.unwrap_or(primary);
                }
                Err(obstacle) => {
                    return Ok(Replayed {
                        answer: None,
                        obstacles: vec![obstacle],
                        unasked: Vec::new(),
                        logs: Vec::new(),
                    });
                }
            }
        }
        let facts = input.facts.iter().map(|fact| Fact {
            key: fact.key.clone(),
            value: Bytes::copy_from_slice(fact.value.bytes()),
        });
        let request = Request {
            primary,
            config,
            facts: facts.collect(),
            unit: Some(self.unit()),
        };
        let view = Arc::new(Shelf {
            shared: Arc::clone(&self.shared),
            primary: self.recording().metadata.primary.reference(),
            manifest,
            asked: Mutex::default(),
        });
        let called = component.reconcile(request, view.clone(), &limits).await;
        let logs = match &called {
            Ok(called) => called.logs.clone(),
            Err(fault) => fault.logs.clone(),
        };
        let answer = answer_of(called).map_err(ReplayError::Host)?;
        let asked = view.asked.lock();
        let unasked = self.shared.told.keys();
        let was_asked = |question: &&Question| {
            asked.answered.contains(*question) || asked.unanswered.contains(*question)
        };
        let unasked = unasked.filter(|question| !was_asked(question));
        let obstacles = asked.unanswered.iter().cloned().map(Obstacle::Unanswered);
        Ok(Replayed {
            answer: Some(answer),
            obstacles: obstacles.collect(),
            unasked: unasked.cloned().collect(),
            logs,
        })
    }

    /// Asks another component what it is, and what it would be shown of the primary
    /// where that is less than was recorded.
    async fn meet(
        &self,
        component: &Component,
        config: Bytes,
        limits: &Limits,
    ) -> Result<Result<(Manifest, Option<Bytes>), Obstacle>, ReplayError> {
        let raw = match component.describe(config, limits).await {
            Ok(called) => match called.value {
                Ok(raw) => raw,
                Err(error) => return Ok(Err(Obstacle::Config(error))),
            },
            Err(fault) if matches!(*fault.kind, crate::FaultKind::Host { .. }) => {
                return Err(ReplayError::Host(fault));
            }
            Err(fault) => return Ok(Err(Obstacle::Describe(fault.to_string()))),
        };
        let manifest = match Manifest::try_from(raw) {
            Ok(manifest) => manifest,
            Err(error) => return Ok(Err(Obstacle::Describe(chain(&error)))),
        };
        let Recording {
            metadata, input, ..
        } = self.recording();
        let recorded = metadata.primary.reference().kind;
        let rule = manifest.primary();
        if rule.kind != recorded {
            let now = rule.kind.clone();
            return Ok(Err(Obstacle::Primary { now, recorded }));
        }
        let wanted = rule.projection.clone();
        // One that makes no sense is in an edited file only, and shows nothing.
        let seen = Projection::new(input.projection.clone());
        if seen.as_ref() == Ok(&wanted) {
            return Ok(Ok((manifest, None)));
        }
        let shown = seen
            .ok()
            .filter(|seen| seen.covers(&wanted))
            .and_then(|_| input.primary.json());
        let Some(shown) = shown else {
            return Ok(Err(Obstacle::Projection {
                now: in_words(&wanted.pointers()),
                recorded: in_words(&input.projection),
            }));
        };
        let shown = Bytes::from(wanted.apply(&shown).to_string());
        Ok(Ok((manifest, Some(shown))))
    }
}

fn in_words(pointers: &[String]) -> String {
    match pointers {
        [] => "all but the status".to_owned(),
        pointers => pointers.join(", "),
    }
}

/// The bounds of a call that is made again.
fn limits_of(limits: &CallLimits, answer: &Answer) -> Limits {
    let timed_out = match answer {
        Answer::Fault(fault) => {
            ["runMilliseconds", "wallMilliseconds"].contains(&fault.reason.as_str())
        }
        Answer::Outcome(_) | Answer::Failure(_) => false,
    };
    let (run_time, wall_time) = if timed_out {
        (
            Duration::from_millis(limits.run_milliseconds),
            Duration::from_millis(limits.wall_milliseconds),
        )
    } else {
        (Limits::MOST.run_time, Limits::MOST.wall_time)
    };
    // What stands in a file must not take more of this machine than an operator could
    // have given to the plugin.
    let most = Limits::MOST;
    Limits {
        run_time: run_time.min(most.run_time),
        wall_time: wall_time.min(most.wall_time),
        memory_bytes: limits.memory_bytes.min(most.memory_bytes),
        stack_bytes: limits.stack_bytes.min(most.stack_bytes),
        output_bytes: limits.output_bytes.min(most.output_bytes),
        output_objects: limits.output_objects.min(most.output_objects),
        host_calls: limits.host_calls.min(most.host_calls),
        host_call_bytes: limits.host_call_bytes.min(most.host_call_bytes),
        log_bytes: limits.log_bytes.min(most.log_bytes),
    }
}

/// A view of what is in a recording.
struct Shelf {
    shared: Arc<Shared>,
    primary: ObjectReference,
    /// What another component than the recorded one declares.
    manifest: Option<Manifest>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    answered: BTreeSet<Question>,
    unanswered: BTreeSet<Question>,
}

/// Why there is no answer in the file.
enum Missing {
    Undeclared(String),
    Unrecorded(String),
}

impl Shared {
    /// What follows from the recorded answer to another question about the same
    /// objects, and that question: whoever was shown more of an object was shown this,
    /// and one that is not there is not there in any part.
    fn derived(&self, question: &Question) -> Option<(Question, Given)> {
        self.told.iter().find_map(|(from, given)| {
            let follows = follows(question, from, given)?;
            Some((from.clone(), follows))
        })
    }
}

fn follows(question: &Question, from: &Question, given: &Given) -> Option<Given> {
    let (fields, shown) = match (question, from) {
        (
            Question::Object { object, fields },
            Question::Object {
                object: other,
                fields: shown,
            },
        ) if object == other => (fields, shown),
        (
            Question::List {
                kind,
                namespace,
                selector,
                fields,
            },
            Question::List {
                kind: other,
                namespace: place,
                selector: labels,
                fields: shown,
            },
        ) if (kind, namespace, selector) == (other, place, labels) => (fields, shown),
        _ => return None,
    };
    // Why there is no answer does not depend on what of it was asked for, unless that
    // was what made no sense.
    match given {
        Given::Told(Told::Object(None)) => return Some(given.clone()),
        Given::Told(Told::Failed(failure)) => {
            let same = failure.reason != ReadFailureKind::Invalid
                && failure.reason != ReadFailureKind::Undeclared;
            return same.then(|| given.clone());
        }
        _ => {}
    }
    let wanted = Projection::new(fields.clone()).ok()?;
    let shown = Projection::new(shown.clone()).ok()?;
    if !shown.covers(&wanted) {
        return None;
    }
    let part = |bytes: &Bytes| {
        let object = Body::new(&**bytes).json()?;
        Some(Bytes::from(wanted.apply(&object).to_string()))
    };
    match given {
        Given::Object(bytes) => part(bytes).map(Given::Object),
        Given::Objects(found) => {
            let parts: Option<Vec<Bytes>> = found.iter().map(part).collect();
            parts.map(Given::Objects)
        }
        Given::Told(_) => None,
    }
}

impl Shelf {
    /// The answer to a question: the recorded one, or what follows from that.
    fn look(&self, question: Question) -> Result<Given, Missing> {
        let given = self.shared.told.get(&question);
        let derived = match (given, &self.manifest) {
            // The recorded component asks what it asked.
            (None, Some(_)) => self.shared.derived(&question),
            _ => None,
        };
        let may_ask = self.manifest.as_ref();
        let may_ask = may_ask.map(|manifest| declares(manifest, &self.primary, &question));
        let undeclared = matches!(given, Some(Given::Told(Told::Failed(failure)))
            if failure.reason == ReadFailureKind::Undeclared);
        let mut asked = self.asked.lock();
        match (given, may_ask) {
            // It would not be told, whatever was recorded.
            (_, Some(false)) if !undeclared => {
                asked.answered.insert(question.clone());
                Err(Missing::Undeclared(format!(
                    "{question}: the manifest does not declare it"
                )))
            }
            // The recorded version had not declared it, and this one has.
            (Some(_), Some(true)) if undeclared => {
                let text = question.to_string();
                asked.unanswered.insert(question);
                Err(Missing::Unrecorded(text))
            }
            (Some(given), _) => {
                asked.answered.insert(question);
                Ok(given.clone())
            }
            (None, _) => {
                let Some((from, given)) = derived else {
                    let text = question.to_string();
                    asked.unanswered.insert(question);
                    return Err(Missing::Unrecorded(text));
                };
                asked.answered.extend([from, question]);
                Ok(given)
            }
        }
    }

    fn read<T>(
        &self,
        question: Question,
        give: impl FnOnce(Given) -> Option<T>,
    ) -> Result<T, ReadError> {
        match self.look(question) {
            Ok(Given::Told(Told::Failed(failure))) => {
                let text = failure.message;
                Err(match failure.reason {
                    ReadFailureKind::Forbidden => ReadError::Forbidden(text),
                    ReadFailureKind::Undeclared => ReadError::Undeclared(text),
                    ReadFailureKind::NotSynced => ReadError::NotSynced(text),
                    ReadFailureKind::Invalid => ReadError::Invalid(text),
                })
            }
            // A file with the answer to another question is not read in.
            Ok(given) => give(given).ok_or_else(|| ReadError::NotSynced("damaged".to_owned())),
            Err(Missing::Undeclared(text)) => Err(ReadError::Undeclared(text)),
            Err(Missing::Unrecorded(text)) => {
                Err(ReadError::NotSynced(format!("{text}: not recorded")))
            }
        }
    }

    fn source<T>(
        &self,
        question: Question,
        give: impl FnOnce(Given) -> Option<T>,
    ) -> Result<T, SourceError> {
        self.read(question, give).map_err(|error| match error {
            ReadError::Forbidden(text) => SourceError::Forbidden(text),
            ReadError::Undeclared(text) | ReadError::Invalid(text) => SourceError::Undeclared(text),
            ReadError::NotSynced(text) => SourceError::NotSynced(text),
        })
    }
}

impl View for Shelf {
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError> {
        self.read(Question::object(object, projection), |given| match given {
            Given::Object(bytes) => Some(Some(bytes)),
            Given::Told(Told::Object(None)) => Some(None),
            _ => None,
        })
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        self.read(list_of(query), |given| match given {
            Given::Objects(found) => Some(found),
            _ => None,
        })
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        self.read(keys_of(query), |given| match given {
            Given::Told(Told::Keys(keys)) => Some(keys),
            _ => None,
        })
    }

    fn now(&self) -> u64 {
        let answer = self.read(Question::Time, |given| match given {
            Given::Told(Told::Milliseconds(time)) => Some(time),
            _ => None,
        });
        // There is no way to fail: whoever asks in vain is told the beginning of time,
        // and the obstacle says so.
        answer.unwrap_or(0)
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        self.source(Question::Source(name.to_owned()), |given| match given {
            Given::Told(Told::Document { media_type, body }) => Some(Document {
                body: Bytes::copy_from_slice(body.bytes()),
                media_type,
            }),
            _ => None,
        })
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        self.source(Question::SourceAge(name.to_owned()), |given| match given {
            Given::Told(Told::Seconds(seconds)) => Some(seconds),
            _ => None,
        })
    }
}
