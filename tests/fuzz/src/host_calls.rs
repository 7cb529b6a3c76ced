//! Calls of host functions, which come from guests.

use std::sync::Arc;

use reeve_core::kind::{GroupVersionKind, ObjectReference};
use reeve_engine::exercise::HostCalls;
use reeve_engine::{Document, FaultKind, Level, Limits, ListQuery, ReadError, SourceError, View};

use crate::choices::Choices;

/// The bytes of the input decide which functions are called with what.
///
/// Whatever is called, what is counted is what was given out, limits end the call
/// when they are passed and not before, and the log stays within its own.
pub fn host_calls(input: &[u8]) {
    let mut choices = Choices::new(input);
    let limits = Limits {
        host_calls: 20,
        host_call_bytes: 1000,
        log_bytes: 400,
        ..Limits::default()
    };
    let has_view = !choices.one_in(4);
    let view: Option<Arc<dyn View>> = has_view.then(|| Arc::new(Shelf) as _);
    let mut calls = HostCalls::new(&limits, view);
    let (mut made, mut given, mut ended) = (0u64, 0u64, None);
    while choices.has_more() && ended.is_none() {
        made += 1;
        match step(&mut calls, &mut choices) {
            Ok(bytes) => given += bytes,
            Err(kind) => ended = Some(kind),
        }
    }
    let (usage, lines, dropped, message) = calls.finish();
    assert_eq!(usage.host_calls, made);
    match ended {
        Some(FaultKind::HostCalls { limit }) => assert_eq!(made, limit + 1),
        Some(FaultKind::HostCallBytes { limit }) => assert!(usage.host_call_bytes > limit),
        Some(FaultKind::Refused { .. }) => assert!(!has_view),
        Some(kind) => panic!("no such limit was set: {kind}"),
        None => {
            assert!(made <= limits.host_calls);
            assert!(given <= limits.host_call_bytes);
            assert_eq!(usage.host_call_bytes, given);
        }
    }
    let kept: usize = lines.iter().map(|line| line.message.len()).sum();
    assert_eq!(usage.log_bytes, kept as u64);
    assert!(kept as u64 <= limits.log_bytes);
    assert!(lines.len() as u64 <= limits.log_bytes);
    assert!(dropped || lines.len() as u64 <= made);
    assert!(message.is_none_or(|message| message.len() < 5000));
}

/// Calls one function. Returns the bytes that it gave out.
fn step(calls: &mut HostCalls, choices: &mut Choices<'_>) -> Result<u64, FaultKind> {
    let kind = GroupVersionKind::new("", "v1", choices.text());
    let query = ListQuery {
        kind: kind.clone(),
        namespace: (!choices.one_in(2)).then(|| choices.text().to_owned()),
        selector: choices.text().to_owned(),
        projection: vec![choices.text().to_owned()],
    };
    Ok(match choices.below(7) {
        0 => {
            let object = ObjectReference::new(kind, None, choices.text());
            match calls.get(&object, &query.projection)? {
                Ok(Some(bytes)) => bytes.len() as u64,
                _ => 0,
            }
        }
        1 => match calls.list(&query)? {
            Ok(objects) => objects.iter().map(|bytes| bytes.len() as u64).sum(),
            Err(_) => 0,
        },
        2 => match calls.list_keys(&query)? {
            Ok(keys) => keys.iter().map(size).sum(),
            Err(_) => 0,
        },
        3 => match calls.source(choices.text())? {
            Ok(document) => (document.body.len() + document.media_type.len()) as u64,
            Err(_) => 0,
        },
        4 => {
            calls.now()?;
            0
        }
        5 => {
            let level = choices.pick(&[Level::Debug, Level::Info, Level::Warn, Level::Error]);
            calls.log(level, choices.text().repeat(choices.below(100)))?;
            0
        }
        _ => {
            calls.fault(choices.text().repeat(choices.below(5000)))?;
            0
        }
    })
}

fn size(reference: &ObjectReference) -> u64 {
    let kind = &reference.kind;
    let namespace = reference.namespace.as_ref().map_or(0, String::len);
    (kind.group.len() + kind.version.len() + kind.kind.len() + namespace + reference.name.len())
        as u64
}

/// A view whose answers follow from the questions.
struct Shelf;

impl View for Shelf {
    fn get(
        &self,
        object: &ObjectReference,
        _: &[String],
    ) -> Result<Option<bytes::Bytes>, ReadError> {
        match object.name.as_str() {
            "a" => Ok(Some(vec![b'x'; 100].into())),
            "b" => Ok(None),
            other => Err(ReadError::Forbidden(other.to_owned())),
        }
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<bytes::Bytes>, ReadError> {
        match query.selector.as_str() {
            "" => Err(ReadError::Undeclared("all".to_owned())),
            text => Ok(vec![text.repeat(10).into(); text.len()]),
        }
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        match query.selector.as_str() {
            "" => Err(ReadError::NotSynced("all".to_owned())),
            text => {
                let key = ObjectReference::new(query.kind.clone(), query.namespace.clone(), text);
                Ok(vec![key; 5])
            }
        }
    }

    fn now(&self) -> u64 {
        1
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        self.source(name).map(|_| 60)
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        match name {
            "a" => Ok(Document {
                body: vec![b'x'; 300].into(),
                media_type: "text/plain".to_owned(),
            }),
            other => Err(SourceError::NotSynced(other.to_owned())),
        }
    }
}
