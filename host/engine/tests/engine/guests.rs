//! One engine with the guests loaded, and a view that answers from a list.

use bytes::Bytes;
use parking_lot::Mutex;
use reeve_core::{Failure, GroupVersionKind, ObjectReference, Outcome};
use reeve_engine::{
    Called, Compiler, CompilerProgram, Component, Document, Engine, EngineConfig, Fault, Limits,
    ListQuery, ReadError, Request, SourceError, View,
};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The compiler as a process of its own.
pub(crate) fn compiler() -> Compiler {
    let path = env!("CARGO_BIN_EXE_reeve-compiler");
    Compiler::Process(CompilerProgram::new(path, [""; 0]))
}

/// Settings with a compiler that works.
pub(crate) fn config() -> EngineConfig {
    EngineConfig::new(compiler())
}

/// The engine that most tests share.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(config()).unwrap())
}

pub(crate) fn bytes(guest: &str) -> Bytes {
    std::fs::read(reeve_test_support::guest(guest))
        .unwrap()
        .into()
}

pub(crate) async fn chameleon() -> Component {
    static LOADED: OnceCell<Component> = OnceCell::const_new();
    let load = async || engine().load(bytes("chameleon")).await.unwrap();
    LOADED.get_or_init(load).await.clone()
}

pub(crate) async fn tourist() -> Component {
    static LOADED: OnceCell<Component> = OnceCell::const_new();
    let load = async || engine().load(bytes("tourist")).await.unwrap();
    LOADED.get_or_init(load).await.clone()
}

/// A request for the primary `default/alice`, with this configuration.
pub(crate) fn request(config: &Value) -> Request {
    let primary = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "alice", "namespace": "default" },
    });
    Request {
        primary: primary.to_string().into(),
        config: config.to_string().into(),
        facts: Vec::new(),
        unit: None,
    }
}

pub(crate) fn deed(deed: &Value) -> Request {
    request(&json!({ "reconcile": deed }))
}

/// Limits of the defaults, but so little time that a hanging guest is quick to
/// test.
pub(crate) fn limits() -> Limits {
    Limits {
        run_time: Duration::from_millis(50),
        ..Limits::default()
    }
}

pub(crate) type Reconciled = Result<Called<Result<Outcome, Failure>>, Fault>;

/// Has the chameleon do something, with a view that is empty.
pub(crate) async fn reconcile(what: Value, limits: &Limits) -> Reconciled {
    chameleon()
        .await
        .reconcile(deed(&what), Arc::new(World::default()), limits)
        .await
}

/// The entries of the first object's data.
pub(crate) fn data(outcome: &Outcome) -> Value {
    let object: Value = serde_json::from_slice(&outcome.objects[0]).unwrap();
    object["data"].clone()
}

/// A view of some objects. Counts how often the clock was read.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) objects: Vec<(ObjectReference, Value)>,
    pub(crate) error: Option<ReadError>,
    pub(crate) seen: Mutex<Vec<String>>,
}

impl World {
    pub(crate) const NOW: u64 = 1_700_000_000_000;

    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        let kind = GroupVersionKind::new("", "v1", "Secret");
        let object = ObjectReference::new(kind, Some("default".to_owned()), name);
        self.objects.push((object, value));
        self
    }

    pub(crate) fn failing(error: ReadError) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }

    fn note(&self, what: String) -> Result<(), ReadError> {
        self.seen.lock().push(what);
        self.error.clone().map_or(Ok(()), Err)
    }
}

impl View for World {
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError> {
        self.note(format!("get {object} {projection:?}"))?;
        let found = self.objects.iter().find(|(name, _)| name == object);
        Ok(found.map(|(_, value)| value.to_string().into()))
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        self.note(format!("list {} {}", query.kind, query.selector))?;
        let values = self.objects.iter().map(|(_, value)| value);
        Ok(values.map(|value| value.to_string().into()).collect())
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        self.note(format!("keys {} {}", query.kind, query.selector))?;
        Ok(self.objects.iter().map(|(name, _)| name.clone()).collect())
    }

    fn now(&self) -> u64 {
        self.seen.lock().push("now".to_owned());
        Self::NOW
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        self.source(name).map(|_| 60)
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        match name {
            "prices" => Ok(Document {
                body: Bytes::from_static(b"1.25"),
                media_type: "text/plain".to_owned(),
            }),
            _ => Err(SourceError::Undeclared(name.to_owned())),
        }
    }
}
