//! Flux as it is published: YAML at an address that leads to another one.

use anyhow::Result;
use hyper::{Request, Response, StatusCode};
use reeve_test_support::http::{self, Body};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Where a release is asked for, and where its files are.
const RELEASE: &str = "/releases/download/v2.9.4/install.yaml";
const ASSET: &str = "/assets/1";

/// Servers that publish manifests, for as long as this lives.
pub(super) struct Published {
    /// Where they are.
    pub(super) url: String,
    /// Where that leads.
    pub(super) redirect: String,
    _runtime: Runtime,
}

impl Published {
    pub(super) fn new(manifests: &[Value]) -> Result<Self> {
        let mut text = "# This manifest was generated.\n".to_owned();
        for manifest in manifests {
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(manifest)?);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let files = runtime.block_on(http::serve(None, move |request: Request<_>| {
            let (path, text) = (request.uri().path().to_owned(), text.clone());
            async move { answer(path == ASSET, StatusCode::OK, text, None) }
        }))?;
        let redirect = format!("http://127.0.0.1:{files}/assets/");
        let asset = format!("http://127.0.0.1:{files}{ASSET}");
        let releases = runtime.block_on(http::serve(None, move |request: Request<_>| {
            let (path, asset) = (request.uri().path().to_owned(), asset.clone());
            async move {
                answer(
                    path == RELEASE,
                    StatusCode::FOUND,
                    String::new(),
                    Some(&asset),
                )
            }
        }))?;
        Ok(Self {
            url: format!("http://127.0.0.1:{releases}{RELEASE}"),
            redirect,
            _runtime: runtime,
        })
    }
}

fn answer(known: bool, status: StatusCode, text: String, location: Option<&str>) -> Response<Body> {
    let mut answer = Response::new(http::whole(text));
    *answer.status_mut() = if known { status } else { StatusCode::NOT_FOUND };
    let location = location.and_then(|location| location.parse().ok());
    if let Some(location) = location {
        answer.headers_mut().insert("location", location);
    }
    answer
}
