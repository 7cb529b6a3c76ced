//! Those between which a model is built: DataRobot with a store of packages, and what is
//! in front of a registry.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reeve_test_support::http::{self, Body, Certificate};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// What only DataRobot may see.
pub(super) const TOKEN: &str = "canary-of-the-api-token";

/// Kubernetes, the shell and curl each have a use of their own for what is in there.
const QUERY: &str = "of=$(KUBERNETES_SERVICE_HOST)&by=$$PACKAGE_SHA256&part=[1-2]";

/// The package of a model, which is no text.
pub(super) fn package(model: &str) -> Vec<u8> {
    [b"PK\x03\x04\x00\xff ", model.as_bytes(), b" \n\x00"].concat()
}

/// DataRobot, which sends whoever has the token on to a store that has one of its own. It
/// ends with this.
pub(super) struct Datarobot {
    seen: Arc<Mutex<Seen>>,
    port: u16,
    _runtime: Runtime,
}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Requests without the token.
    pub(super) strangers: usize,
    /// Requests to the store with it.
    pub(super) leaks: usize,
    /// Whether the store is away, once.
    away: bool,
    /// Requests to the store.
    pub(super) asked: usize,
}

impl Datarobot {
    pub(super) fn start(certificate: &Certificate) -> Result<Self> {
        let runtime = runtime()?;
        let seen = Arc::new(Mutex::new(Seen {
            strangers: 0,
            leaks: 0,
            away: true,
            asked: 0,
        }));
        let served = Arc::clone(&seen);
        let store = http::serve(Some(certificate), move |request| {
            let response = stored(&request, &mut locked(&served));
            async move { response }
        });
        let store = runtime.block_on(store)?;
        let served = Arc::clone(&seen);
        let answers = http::serve(Some(certificate), move |request| {
            let response = sent_on(&request, store, &mut locked(&served));
            async move { response }
        });
        let port = runtime.block_on(answers)?;
        Ok(Self {
            seen,
            port,
            _runtime: runtime,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Where the package of a model is.
    pub(super) fn package_url(&self, model: &str) -> String {
        format!("{}/packages/{model}?{QUERY}", self.url())
    }

    pub(super) fn seen(&self) -> Seen {
        locked(&self.seen).clone()
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sent_on(request: &Request<Bytes>, store: u16, seen: &mut Seen) -> Response<Body> {
    let token = request.headers().get("authorization");
    if token.is_none_or(|token| *token != *format!("Bearer {TOKEN}")) {
        seen.strangers += 1;
        return answer(StatusCode::UNAUTHORIZED, "Invalid Authorization header.");
    }
    let model = request.uri().path().strip_prefix("/packages/");
    let model = model.filter(|_| request.uri().query() == Some(QUERY));
    let Some(model) = model else {
        return answer(StatusCode::NOT_FOUND, "Not Found");
    };
    let mut response = answer(StatusCode::FOUND, "");
    let there = format!("https://localhost:{store}/{model}?signature=of-this-url");
    if let Ok(there) = there.parse() {
        response.headers_mut().insert("location", there);
    }
    response
}

fn stored(request: &Request<Bytes>, seen: &mut Seen) -> Response<Body> {
    seen.asked += 1;
    if request.headers().contains_key("authorization") {
        seen.leaks += 1;
        return answer(StatusCode::BAD_REQUEST, "Only one auth mechanism allowed");
    }
    if std::mem::take(&mut seen.away) {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "Slow Down");
    }
    let model = request.uri().path().trim_start_matches('/');
    answer(StatusCode::OK, package(model))
}

fn answer(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(http::whole(body));
    *response.status_mut() = status;
    response
}

/// A registry in which a tag that is there cannot be changed, as those of clouds can be
/// set up: in front of one in which it could. It ends with this.
pub(super) struct Front {
    port: u16,
    _runtime: Runtime,
}

impl Front {
    pub(super) fn start(registry: u16) -> Result<Self> {
        let runtime = runtime()?;
        let answers = http::serve(None, move |request| async move {
            match passed_on(request, registry).await {
                Ok(response) => response,
                Err(error) => answer(StatusCode::BAD_GATEWAY, format!("{error:#}")),
            }
        });
        let port = runtime.block_on(answers)?;
        Ok(Self {
            port,
            _runtime: runtime,
        })
    }

    /// Where it is, as the names of its artifacts say it.
    pub(super) fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// The name of an artifact in it.
    pub(super) fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.host())
    }
}

/// How a registry is asked for an image, which answers of no other kind otherwise.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

async fn passed_on(request: Request<Bytes>, registry: u16) -> Result<Response<Body>> {
    let path = request.uri().path().to_owned();
    let tag = path.split_once("/manifests/").map(|(_, tag)| tag);
    let tag = tag.filter(|tag| !tag.starts_with("sha256:"));
    if let Some(tag) = tag.filter(|_| request.method() == Method::PUT) {
        let mut look = Request::head(&path).header("accept", MANIFEST);
        for name in ["host", "authorization"] {
            if let Some(value) = request.headers().get(name) {
                look = look.header(name, value);
            }
        }
        let there = exchange(look.body(Bytes::new())?, registry).await?;
        if there.status().is_success() {
            let message = format!(
                "The image tag '{tag}' already exists in the repository and cannot be \
                 overwritten because the repository is immutable."
            );
            let errors = json!({"errors": [{"code": "TAG_INVALID", "message": message}]});
            return Ok(answer(StatusCode::BAD_REQUEST, errors.to_string()));
        }
    }
    exchange(request, registry).await
}

async fn exchange(request: Request<Bytes>, registry: u16) -> Result<Response<Body>> {
    let stream = TcpStream::connect(("127.0.0.1", registry)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request.map(http::whole)).await?;
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, http::whole(body)))
}

fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    Ok(runtime)
}
