//! Requests as they are on the wire, in either version of HTTP, without a client that
//! asks again or hides how a connection ended.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Version {
    One,
    Two,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// One connection of the administrator.
pub(crate) struct Wire {
    sender: Sender,
    url: String,
    token: String,
}

impl Wire {
    pub(crate) async fn connect(kubeconfig: &Path, version: Version) -> Self {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let text = |pointer: &str| {
            config
                .pointer(pointer)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        let url = text("/clusters/0/cluster/server");
        let certificate = text("/clusters/0/cluster/certificate-authority-data");
        let certificate = STANDARD.decode(certificate).unwrap();
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&certificate).unwrap())
            .unwrap();
        let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let protocol = match version {
            Version::One => "http/1.1",
            Version::Two => "h2",
        };
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let address = url.strip_prefix("https://").unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream);
        let stream = TokioIo::new(stream.await.unwrap());
        let sender = match version {
            Version::One => {
                let (sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                Sender::One(sender)
            }
            Version::Two => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .unwrap();
                tokio::spawn(connection);
                Sender::Two(sender)
            }
        };
        Self {
            sender,
            token: text("/users/0/user/token"),
            url,
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> hyper::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("user-agent", "wire");
        let body = Full::new(Bytes::from(body.to_owned()));
        match &mut self.sender {
            Sender::One(sender) => {
                let host = self.url.trim_start_matches("https://");
                let request = request.uri(path).header("host", host);
                sender.ready().await?;
                sender.send_request(request.body(body).unwrap()).await
            }
            Sender::Two(sender) => {
                let request = request.uri(format!("{}{path}", self.url));
                sender.ready().await?;
                sender.send_request(request.body(body).unwrap()).await
            }
        }
    }

    /// Opens a watch, which has to be allowed.
    pub(crate) async fn watch(&mut self, path: &str) -> Watch {
        let answer = self.send("GET", &format!("{path}?watch=true"), "").await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        Watch {
            body: answer.into_body(),
            rest: Vec::new(),
        }
    }
}

/// A watch that is read event by event.
pub(crate) struct Watch {
    body: Incoming,
    rest: Vec<u8>,
}

impl Watch {
    /// The name of the object that the next event is about; none at its end.
    ///
    /// # Errors
    ///
    /// When the watch breaks.
    pub(crate) async fn told(&mut self) -> hyper::Result<Option<String>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).unwrap();
                let name = event["object"]["metadata"]["name"].as_str().unwrap();
                return Ok(Some(name.to_owned()));
            }
            let Some(frame) = self.body.frame().await.transpose()? else {
                return Ok(None);
            };
            if let Ok(data) = frame.into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }
}
