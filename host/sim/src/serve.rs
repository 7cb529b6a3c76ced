//! The server on a socket: HTTP over TLS on the loopback, for kubectl and
//! everything else that is not in this process.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rcgen::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_util::sync::CancellationToken;

use crate::http::{self, Caller};
use crate::identity::Identity;
use crate::kubeconfig;
use crate::server::{Server, Shared};

/// The names that the certificate is for.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// How long a connection may take over its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why the server cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No certificate could be made.
    #[error("cannot make a certificate")]
    Certificate(#[source] rcgen::Error),
    /// The certificate is refused by the TLS library.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}; choose another port, or 0 for any that is free")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kubeconfig cannot be written.
    #[error("cannot write kubeconfig to {}; name a file in a folder that you may write to", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A server that listens. It stops when this is dropped, or shut down.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    certificate: String,
    token: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves HTTPS on `address`, port 0 for any free one. Callers identify
    /// themselves with bearer tokens; without one the answer is 401.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on, or no certificate can be made.
    pub async fn serve(&self, address: SocketAddr) -> Result<Serving, ServeError> {
        let (acceptor, certificate) = tls()?;
        let listen = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(
            listener,
            acceptor,
            self.shared.clone(),
            stop.clone(),
        ));
        Ok(Serving {
            address,
            certificate,
            token: self.token(Identity::admin()),
            stop,
            task,
        })
    }
}

impl Serving {
    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate to trust, in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The administrator's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> String {
        kubeconfig::text(&self.url(), &self.certificate, &self.token, "default")
    }

    /// A kubeconfig of the holder of another token.
    pub fn kubeconfig_for(&self, token: &str) -> String {
        kubeconfig::text(&self.url(), &self.certificate, token, "default")
    }

    /// Writes the administrator's kubeconfig, readable only by its owner. Its
    /// context is in `namespace`, so that kubectl looks there unless it is told
    /// otherwise.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write_kubeconfig(&self, path: &Path, namespace: &str) -> Result<(), ServeError> {
        let text = kubeconfig::text(&self.url(), &self.certificate, &self.token, namespace);
        kubeconfig::write(path, &text).map_err(|source| ServeError::Kubeconfig {
            path: path.to_owned(),
            source,
        })
    }

    /// Stops listening and breaks the open connections.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        // A task that panicked has stopped, too.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn tls() -> Result<(TlsAcceptor, String), ServeError> {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(NAMES.map(str::to_owned))
            .map_err(ServeError::Certificate)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der())
        .map_err(|why| ServeError::Tls(rustls::Error::General(why.to_owned())))?;
    let chain = vec![CertificateDer::from(cert.der().to_vec())];
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(ServeError::Tls)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), cert.pem()))
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, acceptor.clone(), shared.clone()));
                }
                // Such as too many open files: the next one may fare better.
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    // Small answers must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake timed out"),
    };
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move {
            // An error ends the connection without an answer.
            let answer = http::handle(&shared, request, Caller::Socket).await;
            answer.map_err(io::Error::other)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new());
    if let Err(error) = builder
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "connection ended");
    }
}
