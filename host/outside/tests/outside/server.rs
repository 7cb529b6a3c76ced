//! An HTTPS server on a loopback port, and its certificate authority.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use reeve_outside::{Http, HttpLimits, KeyError, Keys, Networks, Roots, Rule, Signer};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What a server was asked: method, path and headers.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: http::HeaderMap,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) certificate: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Server {
    /// Serves HTTPS for these names, answering with `answer`.
    pub(crate) async fn https<F>(
        names: &[&str],
        answer: impl Fn(String, http::HeaderMap) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Bytes>> + Send + 'static,
    {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (log, answer) = (asked.clone(), Arc::new(answer));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, log, answer) = (acceptor.clone(), log.clone(), answer.clone());
                tokio::spawn(async move {
                    // Who does not trust us goes away.
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request: Request<Incoming>| {
                        let path = request.uri().path().to_owned();
                        let headers = request.headers().clone();
                        log.lock().push(Asked {
                            line: format!("{} {}", request.method(), request.uri()),
                            headers: headers.clone(),
                        });
                        let answer = answer(path, headers);
                        async move { Ok::<_, Infallible>(answer.await.map(Full::new)) }
                    });
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            port,
            certificate: certificate.pem(),
            asked,
            serving,
        }
    }

    /// What it has been asked since this was last called.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock())
    }

    /// A grant of everything on it, at a name.
    pub(crate) fn rule(&self, host: &str, path: &str) -> Rule {
        let mut rule = Rule::new(&self.url(host, path)).unwrap();
        rule.roots = Roots::Only(self.certificate.clone());
        rule.networks = loopback();
        rule
    }

    pub(crate) fn url(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}{path}", self.port)
    }
}

pub(crate) fn loopback() -> Networks {
    Networks::new(vec!["127.0.0.0/8".parse().unwrap()])
}

/// Keys of which nothing is known but these.
pub(crate) struct KnownKeys(pub(crate) BTreeMap<String, Arc<Signer>>);

impl Keys for KnownKeys {
    fn signer<'a>(
        &'a self,
        name: &'a str,
    ) -> futures::future::BoxFuture<'a, Result<Arc<Signer>, KeyError>> {
        let found = self.0.get(name).cloned();
        Box::pin(async move { found.ok_or(KeyError::NotGranted(name.to_owned())) })
    }
}

pub(crate) fn no_keys() -> Arc<dyn Keys> {
    Arc::new(KnownKeys(BTreeMap::new()))
}

pub(crate) fn http(rules: Vec<Rule>) -> Http {
    Http::new(rules, no_keys(), HttpLimits::default())
}

pub(crate) fn body(text: impl Into<Bytes>) -> Response<Bytes> {
    Response::new(text.into())
}

pub(crate) fn redirect(to: &str) -> Response<Bytes> {
    let response = Response::builder().status(302).header("location", to);
    response.body(Bytes::new()).unwrap()
}
