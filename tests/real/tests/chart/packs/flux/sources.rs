//! What source-controller does: it gets what an OCIRepository names, serves it to the other
//! controllers, and says so in its status.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use hyper::{Response, StatusCode};
use reeve_test_support::http::{self, Body};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;

use super::charts::Charts;
use crate::packs::install::set_status;
use crate::stage::Stage;

/// Archives by path.
type Archives = Arc<Mutex<HashMap<String, Bytes>>>;

/// The sources that were looked at, and the server of what was found.
pub(super) struct Sources {
    /// At which generation each was looked at last, by name.
    seen: HashMap<String, Value>,
    archives: Archives,
    port: u16,
    looks: usize,
    _runtime: Runtime,
}

impl Sources {
    pub(super) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let archives = Archives::default();
        let served = Arc::clone(&archives);
        let answers = http::serve(None, move |request| {
            let archives = served.lock().unwrap_or_else(PoisonError::into_inner);
            let found = archives.get(request.uri().path()).cloned();
            let status = match found {
                Some(_) => StatusCode::OK,
                None => StatusCode::NOT_FOUND,
            };
            let mut response: Response<Body> =
                Response::new(http::whole(found.unwrap_or_default()));
            *response.status_mut() = status;
            async move { response }
        });
        let port = runtime.block_on(answers)?;
        Ok(Self {
            seen: HashMap::new(),
            archives,
            port,
            looks: 0,
            _runtime: runtime,
        })
    }

    /// Has a source looked at as if its interval were over.
    pub(super) fn look_again(&mut self, name: &str) {
        self.seen.remove(name);
    }

    /// Looks at the sources that are new or have changed.
    pub(super) fn look(&mut self, stage: &Stage, charts: &Charts) -> Result<()> {
        for source in stage.list("ocirepositories", "flux-system")? {
            let name = source["metadata"]["name"].as_str().context("no name")?;
            let generation = &source["metadata"]["generation"];
            if self.seen.get(name) == Some(generation) {
                continue;
            }
            let status = self.fetch(stage, charts, &source)?;
            set_status(stage, "ocirepository", "flux-system", name, &status)?;
            self.seen.insert(name.to_owned(), generation.clone());
        }
        Ok(())
    }

    fn fetch(&mut self, stage: &Stage, charts: &Charts, source: &Value) -> Result<Value> {
        let text = |pointer: &str| {
            let found = source.pointer(pointer).and_then(Value::as_str);
            found.with_context(|| format!("no {pointer} in {source}"))
        };
        let name = text("/metadata/name")?;
        self.looks += 1;
        let into = stage.file(&format!("pulled-{}", self.looks));
        let archive = charts.pull(text("/spec/url")?, text("/spec/ref/semver")?, &into)?;
        let file = archive
            .file_name()
            .context("no file")?
            .to_string_lossy()
            .into_owned();
        let version = file
            .strip_suffix(".tgz")
            .and_then(|file| file.rsplit_once('-'))
            .map(|(_, version)| version.to_owned())
            .with_context(|| format!("{file} has no version"))?;
        let content = Bytes::from(fs::read(&archive)?);
        let digest = Sha256::digest(&content);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = format!("/{name}/{digest}.tar.gz");
        let size = content.len();
        let mut archives = self.archives.lock().unwrap_or_else(PoisonError::into_inner);
        archives.insert(path.clone(), content);
        let generation = &source["metadata"]["generation"];
        Ok(json!({"status": {
            "observedGeneration": generation,
            "url": format!("http://127.0.0.1:{}{path}", self.port),
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored",
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            "artifact": {
                "url": format!("http://127.0.0.1:{}{path}", self.port),
                "digest": format!("sha256:{digest}"),
                "revision": format!("{version}@sha256:{digest}"),
                "path": path.trim_start_matches('/'),
                "lastUpdateTime": "2026-01-01T00:00:00Z",
                "size": size,
            },
        }}))
    }
}
