//! HTTP and HTTPS servers that a test writes: a function that answers.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A body that is known whole.
pub fn whole(text: impl Into<Bytes>) -> Body {
    let body = Full::new(text.into()).map_err(|never| match never {});
    body.boxed_unsync()
}

/// A certificate that signs itself, and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate in PEM, for whoever is to trust it.
    pub pem: String,
    /// The key in PEM.
    pub key_pem: String,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// One for these hosts.
    ///
    /// # Errors
    ///
    /// When one of them is no name.
    pub fn of(hosts: &[&str]) -> Result<Self> {
        let key = KeyPair::generate()?;
        let hosts = hosts.iter().map(|&host| host.to_owned());
        let certificate = CertificateParams::new(hosts.collect::<Vec<_>>())?.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            certificate: certificate.der().to_vec(),
            key: key.serialize_der(),
        })
    }

    fn acceptor(&self) -> Result<TlsAcceptor> {
        let key = PrivateKeyDer::try_from(self.key.clone()).map_err(anyhow::Error::msg)?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(self.certificate.clone())], key)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Serves on a free port of 127.0.0.1, which is the answer, until the runtime in which it
/// was called ends; with a certificate over TLS.
///
/// # Errors
///
/// When there is no port.
pub async fn serve<A, R>(certificate: Option<&Certificate>, answer: A) -> Result<u16>
where
    A: Fn(Request<Bytes>) -> R + Clone + Send + 'static,
    R: Future<Output = Response<Body>> + Send,
{
    let acceptor = certificate.map(Certificate::acceptor).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            tokio::spawn(async move {
                match acceptor {
                    None => converse(stream, answer).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            converse(stream, answer).await;
                        }
                    }
                }
            });
        }
    });
    Ok(port)
}

async fn converse<A, R>(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, answer: A)
where
    A: Fn(Request<Bytes>) -> R + Clone + Send + 'static,
    R: Future<Output = Response<Body>> + Send,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>(answer(Request::from_parts(head, body)).await)
        }
    });
    // A client may go away.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
