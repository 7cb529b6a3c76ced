//! Clients that are a burden to the embedded API server: long bodies, refused and accepted,
//! answers that nobody reads, requests that never end, connections that nobody closes. What
//! the server has allocated for them is free again for the next.

use crate::figure::{Figures, median};
use crate::process::{ClusterProcess, client};
use crate::scale::{MIB, SETTLING, scaled};
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::{join_all, select_all};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use reeve_test_support::samples;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const NAMESPACE: &str = "bench";
const MAPS: &str = "/api/v1/namespaces/bench/configmaps";
/// Of each sort.
const BODIES: usize = 1_000;
const READERS: usize = 50;
const HALVES: usize = 200;
const CONNECTIONS: usize = 500;
/// Objects that are there, and written again and again.
const OBJECTS: usize = 10;
/// As many writes fill what the server remembers of the past, which is 64 MiB.
const REMEMBERED: usize = 100;
/// What a body holds: the longest that is read are of 3 MiB, and the longest data that an
/// object may have is of 1 MiB.
const DATA: usize = 900 << 10;
const LONG: usize = (3 << 20) - (4 << 10);
/// How long slow clients are slow.
const SLOW: Duration = Duration::from_secs(5);
/// More than a connection may take over its handshake.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// Megabytes by which it may be more: what is free is not all of use for what is next. A
/// thousand bodies of which a five-hundredth stays would be more.
const GROWTH: f64 = 4.0;
/// The server's allocator gives back what is free at once: what it would keep for a moment is
/// more than what is looked for.
const AT_ONCE: [(&str, &str); 1] = [("_RJEM_MALLOC_CONF", "dirty_decay_ms:0")];

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    reeve_sim::allow_many_connections();
    let server = ClusterProcess::start_with(AT_ONCE)?;
    let writer = server.client().await?;
    let namespace = samples::namespace(NAMESPACE).to_string();
    let made = send(&writer, "POST", "/api/v1/namespaces", namespace).await?;
    ensure!(made == StatusCode::CREATED, "the namespace: {made}");
    for number in 0..OBJECTS {
        let made = send(&writer, "POST", MAPS, Sort::Accepted.body(number)).await?;
        ensure!(made == StatusCode::CREATED, "an object: {made}");
    }
    // What happens once happens before it is measured.
    for number in 0..REMEMBERED {
        Sort::Accepted.send(&writer, number).await?;
    }
    let before = settled(&server).await?;
    figures.plain("embedded, allocated before any burden", before / MIB, "MiB");
    let count = scaled(BODIES)?;
    for sort in SORTS {
        let what = format!("{count} bodies of {}", sort.words());
        twice(&server, &what, figures, || bodies(&server, sort, count)).await?;
    }
    let count = scaled(READERS)?;
    let what = format!("{count} answers nobody reads");
    twice(&server, &what, figures, || readers(&server, count)).await?;
    let count = scaled(HALVES)?;
    let what = format!("{count} requests half sent");
    twice(&server, &what, figures, || halves(&server, count)).await?;
    let count = scaled(CONNECTIONS)?;
    let what = format!("2 × {count} open connections");
    twice(&server, &what, figures, || connections(&server, count)).await?;
    let after = settled(&server).await?;
    figures.plain("embedded, allocated after all burdens", after / MIB, "MiB");
    Ok(())
}

/// Bears a burden twice. What the first one has made the allocator ask of the system it may
/// keep, and the second one finds there: what of it is not free makes the second one ask for
/// as much again.
async fn twice<B: Future<Output = Result<()>>>(
    server: &ClusterProcess,
    what: &str,
    figures: &mut Figures,
    burden: impl Fn() -> B,
) -> Result<()> {
    burden().await?;
    let first = settled(server).await?;
    burden().await?;
    let second = settled(server).await?;
    figures.limited(
        &format!("{what}, allocated after the second time beyond the first"),
        (second - first) / MIB,
        "MiB",
        GROWTH,
    );
    Ok(())
}

/// The memory that the server has when nothing happens.
async fn settled(server: &ClusterProcess) -> Result<f64> {
    let mut all = Vec::new();
    for _ in 0..5 {
        tokio::time::sleep(SETTLING).await;
        all.push(server.process().anonymous()?);
    }
    Ok(median(&mut all))
}

/// A sort of long bodies.
#[derive(Clone, Copy)]
enum Sort {
    /// An object with a field that nobody knows, which is left out.
    Accepted,
    /// An object with more data than it may have.
    Invalid,
    /// What is no JSON at its end.
    Broken,
    /// More than is read of a body.
    TooLong,
}

const SORTS: [Sort; 4] = [Sort::Accepted, Sort::Invalid, Sort::Broken, Sort::TooLong];

impl Sort {
    fn words(self) -> &'static str {
        match self {
            Sort::Accepted => "3 MiB, accepted",
            Sort::Invalid => "3 MiB, invalid",
            Sort::Broken => "3 MiB, no JSON",
            Sort::TooLong => "4 MiB",
        }
    }

    fn body(self, number: usize) -> String {
        let object = |data: usize, unknown: usize| {
            let object = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": format!("object-{}", number % OBJECTS)},
                "data": {"number": number.to_string(), "text": "x".repeat(data)},
                "unknown": "y".repeat(unknown),
            });
            object.to_string()
        };
        match self {
            Sort::Accepted => object(DATA, LONG - DATA),
            Sort::Invalid => object(LONG, 0),
            Sort::Broken => format!("{}]", object(DATA, LONG - DATA - 1)),
            Sort::TooLong => object(DATA, 4 << 20),
        }
    }

    async fn send(self, client: &Client, number: usize) -> Result<()> {
        let path = format!("{MAPS}/object-{}", number % OBJECTS);
        let expected = match self {
            Sort::Accepted => StatusCode::OK,
            Sort::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Sort::Broken => StatusCode::BAD_REQUEST,
            Sort::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        };
        let answered = send(client, "PUT", &path, self.body(number)).await;
        // Nobody waits for the rest of what is too long, and who still sends it may find
        // the connection closed before there is an answer.
        if matches!(self, Sort::TooLong) && answered.is_err() {
            return Ok(());
        }
        let answered = answered?;
        ensure!(answered == expected, "{}: {answered}", self.words());
        Ok(())
    }
}

/// Sends so many bodies of a sort, by ten clients at once.
async fn bodies(server: &ClusterProcess, sort: Sort, count: usize) -> Result<()> {
    let mut clients = JoinSet::new();
    for first in 0..OBJECTS {
        let client = server.client().await?;
        // Each writes an object of its own.
        clients.spawn(async move {
            for number in (first..count).step_by(OBJECTS) {
                sort.send(&client, number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Ok(())
}

async fn send(client: &Client, method: &str, path: &str, body: String) -> Result<StatusCode> {
    let request = request(method, path).body(Body::from(body.into_bytes()))?;
    let answer = client.send(request).await?;
    let status = answer.status();
    answer.into_body().collect().await?;
    Ok(status)
}

fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
}

/// Lists of everything, of which each client reads the beginning.
async fn readers(server: &ClusterProcess, count: usize) -> Result<()> {
    let mut open = Vec::new();
    for _ in 0..count {
        let client = server.client().await?;
        let request = request("GET", MAPS).body(Body::empty())?;
        let answer = client.send(request).await?;
        ensure!(answer.status() == StatusCode::OK, "{}", answer.status());
        let mut body = answer.into_body();
        let first = body.frame().await.context("an empty list")??;
        open.push((client, body, first));
    }
    tokio::time::sleep(SLOW).await;
    // The server has time for others meanwhile.
    Sort::Accepted.send(&server.client().await?, 0).await
}

/// Objects of which half is sent, and the rest never.
async fn halves(server: &ClusterProcess, count: usize) -> Result<()> {
    let door = Door::of(server)?;
    let mut open = Vec::new();
    for number in 0..count {
        let mut stream = door.open().await?;
        let whole = Sort::Accepted.body(number);
        let head = format!(
            "PUT {MAPS}/object-{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            number % OBJECTS,
            door.address,
            door.token,
            whole.len()
        );
        stream.write_all(head.as_bytes()).await?;
        let half = whole.as_bytes().get(..whole.len() / 2);
        stream.write_all(half.unwrap_or_default()).await?;
        stream.flush().await?;
        open.push(stream);
    }
    let answered = open.iter_mut().map(|stream| Box::pin(stream.read_u8()));
    let answered = tokio::time::timeout(SLOW, select_all(answered)).await;
    ensure!(answered.is_err(), "half a request is answered");
    Sort::Accepted.send(&server.client().await?, 0).await
}

/// Connections that are open after a request, and such that say nothing at all, which the
/// server closes.
async fn connections(server: &ClusterProcess, count: usize) -> Result<()> {
    let kubeconfig = server.kubeconfig();
    let mut open = Vec::new();
    for _ in 0..count {
        let client = client(&kubeconfig).await?;
        let request = request("GET", "/version").body(Body::empty())?;
        let answer = client.send(request).await?;
        ensure!(answer.status() == StatusCode::OK, "{}", answer.status());
        answer.into_body().collect().await?;
        open.push(client);
    }
    let door = Door::of(server)?;
    let mut silent = Vec::new();
    for _ in 0..count {
        silent.push(TcpStream::connect(&door.address).await?);
    }
    Sort::Accepted.send(&server.client().await?, 0).await?;
    let closed = silent.iter_mut().map(|stream| stream.read_u8());
    let closed = tokio::time::timeout(HANDSHAKE, join_all(closed)).await;
    let closed = closed.context("a connection that says nothing stays open")?;
    ensure!(
        closed.iter().all(Result::is_err),
        "somebody was told something"
    );
    Ok(())
}

/// The way to a server without a client in between.
struct Door {
    address: String,
    token: String,
    connector: TlsConnector,
}

impl Door {
    fn of(server: &ClusterProcess) -> Result<Self> {
        let kubeconfig = std::fs::read_to_string(server.kubeconfig())?;
        let read: Value = serde_saphyr::from_str(&kubeconfig)?;
        let text = |pointer: &str| {
            let found = read.pointer(pointer).and_then(Value::as_str);
            found.with_context(|| format!("the kubeconfig has no {pointer}"))
        };
        let authority = text("/clusters/0/cluster/certificate-authority-data")?;
        let authority = CertificateDer::from_pem_slice(&STANDARD.decode(authority)?)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let url = text("/clusters/0/cluster/server")?;
        Ok(Self {
            address: url.trim_start_matches("https://").to_owned(),
            token: text("/users/0/user/token")?.to_owned(),
            connector: TlsConnector::from(Arc::new(config)),
        })
    }

    async fn open(&self) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(&self.address).await?;
        let name = ServerName::try_from("localhost")?;
        Ok(self.connector.connect(name, stream).await?)
    }
}
