//! What the component of the packs takes to render all of them.

use crate::figure::{Figures, median};
use crate::setup::plugin;
use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use parking_lot::Mutex;
use reeve_core::projection::Projection;
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, ObjectReference};
use reeve_engine::{
    Compiler, Document, Engine, EngineConfig, Limits, ListQuery, ReadError, Request, SourceError,
    View,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const WARM_UP: usize = 20;
const CALLS: usize = 200;

/// A cluster with everything configured and installed, as the tests of the packs write it down.
const WORLD: &str = "../../plugins/packs/src/tests/golden/aws-world.json";

/// Of which roles the packs are, and how many objects each has at least.
const PACKS: [(&str, &str, usize); 7] = [
    ("flux", "Flux", 1),
    ("sgp-helm-repository", "Releases", 1),
    ("istio", "Releases", 7),
    ("spicedb", "Releases", 3),
    ("identity-service", "Releases", 3),
    ("temporalf", "Releases", 3),
    ("sgp-apps", "Releases", 20),
];

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let component = engine.load(plugin("packs")?).await?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(WORLD);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let view = Arc::new(Stored {
        objects: serde_json::from_str(&text)?,
        answers: Mutex::default(),
    });
    let (limits, mut all, mut count) = (Limits::default(), 0.0, 0);
    for (pack, role, least) in PACKS {
        let primary = view.found("Pack", None, pack).context(pack)?;
        let request = Request {
            primary: Bytes::from(primary.to_string()),
            config: Bytes::from(json!({"role": role}).to_string()),
            ..Request::default()
        };
        let mut times = Vec::with_capacity(CALLS);
        for call in 0..WARM_UP + CALLS {
            let begun = Instant::now();
            let called = component.reconcile(request.clone(), view.clone(), &limits);
            let outcome = match called.await?.value {
                Ok(outcome) => outcome,
                Err(failure) => bail!("pack {pack}: {failure}"),
            };
            let elapsed = begun.elapsed();
            let objects = outcome.objects.len();
            ensure!(objects >= least, "pack {pack} has {objects} objects only");
            if call >= WARM_UP {
                times.push(elapsed.as_secs_f64() * 1e3);
            } else if call == 0 {
                count += objects;
            }
        }
        let took = median(&mut times);
        figures.plain(&format!("pack {pack} rendered, median"), took, "ms");
        all += took;
    }
    let what = format!("all seven packs rendered, {count} objects");
    figures.limited(&what, all, "ms", 5.0);
    Ok(())
}

/// A view of objects that are stored, which answers a question twice with the same bytes: what
/// is to be measured is what comes of them.
struct Stored {
    objects: Vec<Value>,
    answers: Mutex<HashMap<String, Vec<Bytes>>>,
}

impl Stored {
    fn found(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<&Value> {
        self.objects.iter().find(|object| {
            let metadata = &object["metadata"];
            object["kind"] == kind
                && metadata["name"] == name
                && metadata["namespace"].as_str() == namespace
        })
    }

    fn listed(&self, query: &ListQuery) -> Result<Vec<&Value>, ReadError> {
        let selector: Selector = query
            .selector
            .parse()
            .map_err(|error| ReadError::Undeclared(format!("{}: {error}", query.selector)))?;
        let is_meant = |object: &&Value| {
            let metadata = &object["metadata"];
            let place = metadata["namespace"].as_str();
            let here = query.namespace.is_none() || query.namespace.as_deref() == place;
            object["kind"] == *query.kind.kind
                && here
                && selector.matches(|label| metadata["labels"][label].as_str())
        };
        Ok(self.objects.iter().filter(is_meant).collect())
    }

    fn answered<'a>(
        &self,
        question: String,
        projection: &[String],
        found: impl FnOnce() -> Result<Vec<&'a Value>, ReadError>,
    ) -> Result<Vec<Bytes>, ReadError> {
        if let Some(answer) = self.answers.lock().get(&question) {
            return Ok(answer.clone());
        }
        let projection = Projection::new(projection.to_vec())
            .map_err(|error| ReadError::Undeclared(error.to_string()))?;
        let shown = |object: &Value| Bytes::from(projection.apply(object).to_string());
        let answer: Vec<Bytes> = found()?.into_iter().map(shown).collect();
        self.answers.lock().insert(question, answer.clone());
        Ok(answer)
    }
}

impl View for Stored {
    fn get(
        &self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Option<Bytes>, ReadError> {
        let found = || {
            let namespace = object.namespace.as_deref();
            let found = self.found(&object.kind.kind, namespace, &object.name);
            Ok(found.into_iter().collect())
        };
        let answer = self.answered(format!("{object} {projection:?}"), projection, found)?;
        Ok(answer.into_iter().next())
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<Bytes>, ReadError> {
        self.answered(format!("{query:?}"), &query.projection, || {
            self.listed(query)
        })
    }

    fn list_keys(&self, query: &ListQuery) -> Result<Vec<ObjectReference>, ReadError> {
        let of = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
            let kind: GroupVersionKind = query.kind.clone();
            ObjectReference::new(kind, text("namespace"), text("name").unwrap_or_default())
        };
        Ok(self.listed(query)?.into_iter().map(of).collect())
    }

    fn now(&self) -> u64 {
        0
    }

    fn source_age(&self, name: &str) -> Result<u64, SourceError> {
        self.source(name).map(|_| 0)
    }

    fn source(&self, name: &str) -> Result<Document, SourceError> {
        Err(SourceError::Undeclared(name.to_owned()))
    }
}
