//! An HTTPS server with one document, which redirects, changes, and may be slow.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Between two bytes of a body that never ends: no single read takes long.
const PAUSE: Duration = Duration::from_millis(500);

/// The server. It ends with this.
pub(crate) struct Documents {
    state: Arc<Mutex<State>>,
    port: u16,
    _runtime: Runtime,
}

#[derive(Clone, Debug, Default)]
struct State {
    text: String,
    slow: bool,
    astray: bool,
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

impl Documents {
    /// Serves with a certificate and its key, both DER.
    pub(crate) fn serve(certificate: Vec<u8>, key: Vec<u8>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let key = PrivateKeyDer::try_from(key).map_err(anyhow::Error::msg)?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate)], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State {
            text: "one".to_owned(),
            ..State::default()
        }));
        let served = Arc::clone(&state);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, served) = (acceptor.clone(), Arc::clone(&served));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request: Request<Incoming>| {
                        let answered = answer(&request, &served);
                        async move { answered }
                    });
                    let builder = auto::Builder::new(TokioExecutor::new());
                    // A client may go away.
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Self {
            state,
            port,
            _runtime: runtime,
        })
    }

    /// Where the document is said to be; what is granted is one folder up.
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/v1/notes", self.port)
    }

    /// Changes the document.
    pub(crate) fn set(&self, text: &str) {
        locked(&self.state).text = text.to_owned();
    }

    /// Whether the body comes to no end.
    pub(crate) fn be_slow(&self, slow: bool) {
        locked(&self.state).slow = slow;
    }

    /// Whether it redirects to what is not granted.
    pub(crate) fn lead_astray(&self, astray: bool) {
        locked(&self.state).astray = astray;
    }
}

fn locked(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(
    request: &Request<Incoming>,
    shared: &Arc<Mutex<State>>,
) -> Result<Response<Body>, hyper::http::Error> {
    let state = locked(shared).clone();
    let tag = format!("\"{}\"", state.text);
    let text = |text: String| {
        Full::new(Bytes::from(text))
            .map_err(|never| match never {})
            .boxed_unsync()
    };
    let response = Response::builder();
    match request.uri().path() {
        "/v1/notes" if state.astray => response
            .status(StatusCode::FOUND)
            .header("location", "/elsewhere")
            .body(text(String::new())),
        "/v1/notes" => response
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header("location", "current")
            .body(text(String::new())),
        "/v1/current" if state.slow => {
            let shared = Arc::clone(shared);
            let bytes = stream::repeat(shared).then(async |shared| {
                tokio::time::sleep(PAUSE).await;
                match locked(&shared).slow {
                    true => Ok(Frame::data(Bytes::from_static(b"."))),
                    // What was never whole is nothing.
                    false => Err(io::Error::other("the exchange breaks off")),
                }
            });
            response.body(BodyExt::boxed_unsync(StreamBody::new(bytes)))
        }
        "/v1/current" => {
            let known = request.headers().get("if-none-match");
            if known.is_some_and(|known| *known == *tag) {
                let unchanged = response.status(StatusCode::NOT_MODIFIED);
                return unchanged.body(text(String::new()));
            }
            response.header("etag", tag).body(text(state.text))
        }
        "/elsewhere" => response.body(text("what nobody was to read".to_owned())),
        _ => response
            .status(StatusCode::NOT_FOUND)
            .body(text(String::new())),
    }
}
