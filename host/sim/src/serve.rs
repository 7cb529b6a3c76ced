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
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_util::sync::CancellationToken;

use crate::http::{self, Caller, HEAD_LIMIT};
use crate::identity::Identity;
use crate::kubeconfig;
use crate::server::{Server, Shared};
use crate::state::{Known, StateError};

/// The names that the certificate is for.
pub(crate) const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// What of one is read before it is refused: a little more, so that the refusal is heard.
const HEAD_BUFFER: usize = HEAD_LIMIT + 64 * 1024;
/// How many headers one may have. The real server knows no such limit.
const HEADERS: usize = 1024;
/// How long a head may be in HTTP/2: the library resets the streams of longer paths, which
/// clients take for a bad connection and try again for ever, while it answers longer heads.
const HEAD_LIMIT_2: u32 = 64 * 1024;
/// The longest frame of HTTP/2. Whoever heeds it sends any head in one, so that it is not
/// taken for a flood of them.
const FRAME: u32 = 1024 * 1024;
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
    /// Where the server listens cannot be kept.
    #[error("cannot keep the address")]
    State(#[source] StateError),
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
    /// themselves with bearer tokens. Who brings none is `system:anonymous` and may do
    /// what rules grant to that, as with the real server: to see whether the server is
    /// up and which version it has. The answer to a token that is nobody's is 401.
    ///
    /// A server that was opened from a state has the certificate and the token that it
    /// had before, and with port 0 the port, unless somebody else has that now: a
    /// kubeconfig goes on working.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened on, or no certificate can be made.
    pub async fn serve(&self, address: SocketAddr) -> Result<Serving, ServeError> {
        let shared = &self.shared;
        let kept = shared.kept.get();
        let known = match kept {
            Some(kept) => kept.known(),
            None => {
                let token = self.token(Identity::admin());
                Known::new(token).map_err(ServeError::Certificate)?
            }
        };
        let acceptor = tls(&known)?;
        let listener = listen(address, known.address).await?;
        let bound = listener.local_addr();
        let address = bound.map_err(|source| ServeError::Listen { address, source })?;
        if let Some(kept) = kept {
            kept.listens(address).map_err(ServeError::State)?;
        }
        *shared.certificate.lock() = Some(known.certificate.as_str().into());
        shared.store.nudge();
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, acceptor, shared.clone(), stop.clone()));
        Ok(Serving {
            address,
            certificate: known.certificate,
            token: known.token,
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

/// Lets this process have as many files open as the system allows it at most. Each
/// connection is one, and each watch of HTTP/1.1 a connection, while most systems let a
/// process begin with 1,024, for the sake of programs that use `select`: nothing here does.
/// Where the system refuses, there are as many as before.
pub fn allow_many_connections() {
    let before = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::warn!(%error, "no more files may be open than before");
    }
}

/// Listens on `address`; where that leaves the port open, on that of `before` if it is
/// free.
async fn listen(
    address: SocketAddr,
    before: Option<SocketAddr>,
) -> Result<TcpListener, ServeError> {
    let again = before.filter(|before| address.port() == 0 && before.ip() == address.ip());
    if let Some(again) = again {
        match TcpListener::bind(again).await {
            Ok(listener) => return Ok(listener),
            Err(error) => {
                tracing::warn!(%error, address = %again, "the address of the last time cannot be listened on; another one is taken, which earlier kubeconfigs do not know");
            }
        }
    }
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| ServeError::Listen { address, source })
}

fn tls(known: &Known) -> Result<TlsAcceptor, ServeError> {
    let unusable = |why: &str| ServeError::Tls(rustls::Error::General(why.to_owned()));
    let key = PrivateKeyDer::from_pem_slice(known.key.as_bytes());
    let key = key.map_err(|why| unusable(&why.to_string()))?;
    let certificate = CertificateDer::from_pem_slice(known.certificate.as_bytes());
    let chain = vec![certificate.map_err(|why| unusable(&why.to_string()))?];
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(ServeError::Tls)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
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
    builder
        .http1()
        .timer(TokioTimer::new())
        .max_buf_size(HEAD_BUFFER)
        .max_headers(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_LIMIT_2)
        .max_frame_size(FRAME);
    if let Err(error) = builder
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "connection ended");
    }
}
