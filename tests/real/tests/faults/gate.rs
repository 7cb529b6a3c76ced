//! A way to the API server on which requests can be refused, as it does itself when it
//! has too much to do, or held back, to arrive late or more than once. Unlike a proxy of
//! connections it understands what is said, so the client speaks plain HTTP with it.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reeve_real::{ControlPlane, eventually};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Requests that were on their way when the first of their user was refused.
const UNDER_WAY: Duration = Duration::from_millis(300);

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The way. It ends with this.
pub(crate) struct Gate {
    shared: Arc<Shared>,
    port: u16,
    runtime: Runtime,
}

struct Shared {
    address: SocketAddr,
    tls: TlsConnector,
    state: Mutex<State>,
    /// Another value breaks all connections.
    connections: watch::Sender<u32>,
}

#[derive(Default)]
struct State {
    /// Seconds after which whoever is refused may come back.
    refusing: Option<u32>,
    refused: Refused,
    /// Since when users wait and until when.
    waiting: HashMap<String, (Instant, Instant)>,
    /// Requests to come that are held back, each by its method and path.
    holding: Vec<(Method, String)>,
    held: Vec<Held>,
}

/// A request that is held back. Whoever sent it hears nothing, and may be gone.
pub(crate) struct Held {
    request: Request<Bytes>,
    /// Who waits for the answer.
    sender: Option<oneshot::Sender<Response<Bytes>>>,
}

/// What was refused.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refused {
    pub(crate) requests: usize,
    /// Of these, those that change something.
    pub(crate) writes: usize,
    /// Of all that accounts of plugins have sent, those that came sooner than these were
    /// told to come back. (What the agent sends for itself are many things that know
    /// nothing of one another.)
    pub(crate) early: usize,
}

impl Gate {
    /// A way that is open.
    pub(crate) fn start(cluster: &ControlPlane) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(cluster.certificate())? {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let shared = Arc::new(Shared {
            address: (Ipv4Addr::LOCALHOST, cluster.port()).into(),
            tls: TlsConnector::from(Arc::new(config)),
            state: Mutex::default(),
            connections: watch::Sender::new(0),
        });
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let port = listener.local_addr()?.port();
        runtime.spawn(serve(shared.clone(), listener));
        Ok(Self {
            shared,
            port,
            runtime,
        })
    }

    /// A kubeconfig file for a user who goes this way.
    pub(crate) fn kubeconfig(&self, cluster: &ControlPlane, user: &str) -> Result<PathBuf> {
        cluster.kubeconfig_at(&format!("http://127.0.0.1:{}", self.port), user)
    }

    /// Refuses all requests from here on, and asks to come back after so many seconds;
    /// or lets them pass again. What is open stays so.
    pub(crate) fn refuse(&self, seconds: Option<u32>) {
        self.shared.state().refusing = seconds;
    }

    /// Breaks the connections that are open.
    pub(crate) fn reset(&self) {
        self.shared.connections.send_modify(|number| *number += 1);
    }

    /// Holds back the next request of this method and path.
    pub(crate) fn hold(&self, method: Method, path: &str) {
        self.shared.state().holding.push((method, path.to_owned()));
    }

    /// Waits until a request for this path is held back, and returns it.
    pub(crate) fn held(&self, path: &str) -> Result<Held> {
        eventually(&format!("a request for {path} is held back"), || {
            let held = &mut self.shared.state().held;
            let found = held.iter().position(|one| one.request.uri().path() == path);
            found.map(|at| held.remove(at)).context("there is none")
        })
    }

    /// Lets a request arrive that was held back, and returns the status of the answer.
    /// Whoever sent it hears of it the first time.
    pub(crate) fn deliver(&self, held: &mut Held) -> Result<StatusCode> {
        let request = held.request.clone();
        let response = self.runtime.block_on(async {
            let response = pass_on(&self.shared, request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            anyhow::Ok(Response::from_parts(head, body))
        })?;
        let status = response.status();
        if let Some(sender) = held.sender.take() {
            // It may be gone.
            let _ = sender.send(response);
        }
        Ok(status)
    }

    /// Nothing is held back, and nothing to come will be.
    pub(crate) fn holds_nothing(&self) -> Result<()> {
        let state = self.shared.state();
        ensure!(state.holding.is_empty() && state.held.is_empty());
        Ok(())
    }

    /// What has been refused so far.
    pub(crate) fn refused(&self) -> Refused {
        self.shared.state().refused
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After how many seconds to come back, if a request is refused.
    fn refuses(&self, request: &Request<Incoming>) -> Option<u32> {
        let mut state = self.state();
        let seconds = state.refusing?;
        let user = request.headers().get("impersonate-user");
        let user = user.and_then(|user| user.to_str().ok()).unwrap_or_default();
        let now = Instant::now();
        let until = now + Duration::from_secs(seconds.into());
        let known = state.waiting.get(user).copied();
        let known = known.filter(|(_, until)| *until > now);
        state.refused.requests += 1;
        state.refused.writes += usize::from(!request.method().is_safe());
        match known {
            Some((since, _)) => {
                let early = !user.is_empty() && now > since + UNDER_WAY;
                state.refused.early += usize::from(early);
            }
            None => drop(state.waiting.insert(user.to_owned(), (now, until))),
        }
        Some(seconds)
    }
}

impl Shared {
    /// Whether a request is to be held back. Questions are not.
    fn holds(&self, request: &Request<Incoming>) -> bool {
        let (method, uri) = (request.method(), request.uri());
        if uri.query().is_some_and(|query| query.contains("dryRun=")) {
            return false;
        }
        let holding = &mut self.state().holding;
        let found = holding
            .iter()
            .position(|(one, path)| one == method && path == uri.path());
        found.map(|at| holding.remove(at)).is_some()
    }

    /// Holds a request back, and answers it once it has arrived.
    async fn hold(&self, request: Request<Incoming>) -> Result<Response<Body>, io::Error> {
        let (head, body) = request.into_parts();
        // All of it is on the way, whatever becomes of its sender.
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let (sender, answer) = oneshot::channel();
        self.state().held.push(Held {
            request: Request::from_parts(head, body),
            sender: Some(sender),
        });
        let answer = answer.await.map_err(io::Error::other)?;
        Ok(answer.map(|body| {
            Full::new(body)
                .map_err(|never| match never {})
                .boxed_unsync()
        }))
    }
}

async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        let mut connections = shared.connections.subscribe();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(shared.clone(), request));
            let connection = server::Builder::new().serve_connection(TokioIo::new(stream), service);
            // However it ends, it has ended.
            tokio::select! {
                _ = connection => {}
                _ = connections.changed() => {}
            }
        });
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, io::Error> {
    if let Some(seconds) = shared.refuses(&request) {
        // In the words of the API server.
        let text = "Too many requests, please try again later.\n";
        let body = Full::new(Bytes::from_static(text.as_bytes()));
        return Response::builder()
            .status(StatusCode::TOO_MANY_REQUESTS)
            .header("content-type", "text/plain; charset=utf-8")
            .header("retry-after", seconds)
            .body(body.map_err(|never| match never {}).boxed_unsync())
            .map_err(io::Error::other);
    }
    if shared.holds(&request) {
        return shared.hold(request).await;
    }
    pass_on(&shared, request).await
}

async fn pass_on<B>(shared: &Shared, request: Request<B>) -> Result<Response<Body>, io::Error>
where
    B: hyper::body::Body<Data = Bytes, Error: Error + Send + Sync> + Send + 'static,
{
    let stream = TcpStream::connect(shared.address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::from(shared.address.ip());
    let stream = shared.tls.connect(name, stream).await?;
    let (mut sender, connection) = client::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(connection);
    let answered = sender.send_request(request).await;
    let response = answered.map_err(io::Error::other)?;
    Ok(response.map(|body| {
        let body = body.map_frame(move |frame| {
            // The connection lasts as long as its sender.
            let _open = &sender;
            frame
        });
        body.map_err(io::Error::other).boxed_unsync()
    }))
}
