//! One HTTP exchange, as it is on the wire: nothing is added to a request but the
//! administrator's token where no other credentials are named, nothing is taken from
//! an answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// No single answer takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest path that a request of `hyper` can have.
pub(crate) const LONG_PATH: usize = 65_534;

/// A server, and the right to talk to it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    tls: TlsConnector,
    token: String,
}

impl Endpoint {
    /// A server whose certificate is among `certificates` (PEM).
    pub(crate) fn new(address: SocketAddr, certificates: &[u8], token: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(certificates) {
            roots.add(certificate?)?;
        }
        let provider = tokio_rustls::rustls::crypto::ring::default_provider();
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address,
            tls: TlsConnector::from(Arc::new(config)),
            token: token.to_owned(),
        })
    }

    async fn reach(&self) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        Ok(self.tls.connect(name, stream).await?)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = self.reach().await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the sender; what goes wrong shows in the exchange.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// The headers that a request is sent with. The administrator's token is among them
    /// unless the message names credentials; empty ones are none.
    fn headers(&self, message: &Message) -> Vec<(String, String)> {
        let is_credential = |name: &str| name.eq_ignore_ascii_case("authorization");
        let mut headers = vec![("host".to_owned(), self.address.to_string())];
        if !message.headers.iter().any(|(name, _)| is_credential(name)) {
            let token = message.token.as_ref().unwrap_or(&self.token);
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        let named = message.headers.iter();
        let named = named.filter(|(name, value)| !(is_credential(name) && value.is_empty()));
        headers.extend(named.cloned());
        headers
    }

    /// Sends a request whose path is longer than libraries have them, without a body:
    /// by hand, in HTTP/1.0, whose answers end with their connection.
    async fn send_long(&self, message: &Message) -> Result<Answer> {
        let Message { method, path, .. } = message;
        let mut head = format!("{method} {path} HTTP/1.0\r\n");
        for (name, value) in self.headers(message) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut stream = self.reach().await?;
        stream.write_all(head.as_bytes()).await?;
        let mut bytes = Vec::new();
        // Some servers end a connection without the closing words of TLS.
        if let Err(error) = stream.read_to_end(&mut bytes).await
            && bytes.is_empty()
        {
            return Err(error.into());
        }
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.context("an answer without an end of its head")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.context("an answer without a status")?.parse()?;
        let pairs = lines.filter_map(|line| line.split_once(':'));
        Ok(Answer {
            status,
            headers: pairs
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
            body: Bytes::copy_from_slice(&bytes[end + 4..]),
        })
    }
}

/// What is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// The caller's token; the administrator's without one. A header `authorization`
    /// takes the place of both.
    pub(crate) token: Option<String>,
}

/// What comes back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// One caller, whose requests share a connection.
pub(crate) struct Caller {
    endpoint: Endpoint,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Caller {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self {
            endpoint: endpoint.clone(),
            sender: None,
        }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&mut self, message: &Message) -> Result<Answer> {
        let exchange = async {
            if message.path.len() > LONG_PATH {
                return self.endpoint.send_long(message).await;
            }
            let (parts, body) = self.open(message).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(answer(&parts, body))
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(answer) => answer,
            Err(_) => bail!("no answer to {} {}", message.method, message.path),
        }
    }

    async fn open(&mut self, message: &Message) -> Result<Response<Incoming>> {
        // A server may end a connection between two requests.
        if let Some(sender) = &mut self.sender
            && sender.ready().await.is_err()
        {
            self.sender = None;
        }
        let sender = match &mut self.sender {
            Some(sender) => sender,
            empty => empty.insert(self.endpoint.connect().await?),
        };
        let mut request = Request::builder()
            .method(message.method.as_str())
            .uri(&message.path);
        for (name, value) in self.endpoint.headers(message) {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(message.body.clone()))?;
        let answer = sender.send_request(request).await;
        answer.with_context(|| format!("{} {}", message.method, message.path))
    }
}

/// A watch that is being read.
pub(crate) struct Watch {
    lines: mpsc::UnboundedReceiver<String>,
    reader: JoinHandle<()>,
}

/// What a request for a watch came to.
pub(crate) enum Opened {
    Watch(Watch, Answer),
    Refused(Answer),
}

impl Watch {
    /// Opens a watch on a connection of its own.
    pub(crate) async fn open(endpoint: &Endpoint, message: &Message) -> Result<Opened> {
        let mut caller = Caller::new(endpoint);
        let (parts, mut body) = caller.open(message).await?.into_parts();
        if parts.status != 200 {
            let body = body.collect().await?.to_bytes();
            return Ok(Opened::Refused(answer(&parts, body)));
        }
        let (sender, lines) = mpsc::unbounded_channel();
        let reader = tokio::spawn(async move {
            let _caller = caller;
            let mut rest = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line).trim().to_owned();
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            }
        });
        let headers = answer(&parts, Bytes::new());
        Ok(Opened::Watch(Self { lines, reader }, headers))
    }

    /// The next event; none at the end of the watch, or when `patience` is over.
    pub(crate) async fn next(&mut self, patience: Duration) -> Next {
        match tokio::time::timeout(patience, self.lines.recv()).await {
            Ok(Some(line)) => Next::Event(line),
            Ok(None) => Next::End,
            Err(_) => Next::Silence,
        }
    }
}

/// What a watch had to say.
pub(crate) enum Next {
    Event(String),
    End,
    Silence,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn answer(parts: &hyper::http::response::Parts, body: Bytes) -> Answer {
    let headers = parts.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    Answer {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        body,
    }
}
