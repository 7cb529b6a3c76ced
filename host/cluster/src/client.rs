//! A client as kube makes it, which looks at the fence once more when a request is
//! written to its connection.
//!
//! Whoever sends a request hands it to the queue of the [`Client`], and that to the
//! task of a connection, which may have to be made first. A process that is stopped
//! while a request waits there, for longer than its lease lasts, would send it on
//! waking up. The body of a guarded request can be had only while the fence is open,
//! and hyper asks for the body before it writes anything at all of a request.

use crate::lease::{LastLook, NotLeader};
use bytes::Bytes;
use http::{Request, Uri};
use http_body::{Frame, SizeHint};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::{BoxError, Service, ServiceBuilder};

/// A client of the cluster that a configuration describes. It repeats no request that was
/// sent.
///
/// # Errors
///
/// When the configuration is of no use: broken certificates, or a proxy, which this
/// build knows nothing of.
pub(crate) fn client(config: Config) -> Result<Client, kube::Error> {
    if config.proxy_url.is_some() {
        // It says best what is missing.
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    // Whether TLS is spoken is decided a layer above.
    connector.enforce_http(false);
    through(connector, config)
}

/// As [`client`], over connections that somebody makes.
fn through<C>(connector: C, config: Config) -> Result<Client, kube::Error>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: StdError + Send + Sync + 'static,
{
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    let client = client.build(connector);
    let base = config.cluster_url.clone();
    let under = base.path().len() > 1;
    let service = ServiceBuilder::new()
        .option_layer(under.then(|| config.base_uri_layer()))
        .map_request(move |request| match under {
            true => request,
            false => placed(&base, request),
        })
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .map_request(guarded)
        .service(client);
    Ok(Client::new(service, config.default_namespace))
}

/// Puts the place of a server before the path of a request. Of one whose API has a path of its
/// own kube does that; it composes each URI as a text and reads it.
fn placed(server: &Uri, request: Request<Body>) -> Request<Body> {
    let (mut head, body) = request.into_parts();
    let mut parts = head.uri.clone().into_parts();
    parts.scheme = server.scheme().cloned();
    parts.authority = server.authority().cloned();
    parts.path_and_query = parts
        .path_and_query
        .or_else(|| server.path_and_query().cloned());
    // What has all three is a URI.
    if let Ok(uri) = Uri::from_parts(parts) {
        head.uri = uri;
    }
    Request::from_parts(head, body)
}

/// Puts the guard that a request brings between its body and whoever reads it.
fn guarded(request: Request<Body>) -> Request<Guarded> {
    let (mut head, body) = request.into_parts();
    let guard = head.extensions.remove::<LastLook>();
    Request::from_parts(head, Guarded { body, guard })
}

/// The body of a request, which can be had only while its sender may write.
struct Guarded {
    body: Body,
    guard: Option<LastLook>,
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(Err(error)) = self.guard.as_ref().map(LastLook::check) {
            return Poll::Ready(Some(Err(error.into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether a request was not sent since its guard was against it.
pub(crate) fn was_held_back(error: &kube::Error) -> bool {
    let first: &(dyn StdError + 'static) = error;
    let mut chain = std::iter::successors(Some(first), |&error| error.source());
    chain.any(|error| error.is::<NotLeader>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;
    use crate::lease::{Fence, Moment, TokioClock};
    use crate::transport::{Call, CallError, TransportError};
    use hyper_util::rt::TokioIo;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::watch;

    /// A cluster behind a fence that is open, whose connections come only when they may.
    async fn behind(fence: &Fence, may: watch::Receiver<bool>) -> (Cluster, TcpListener) {
        fence.set_term(Some((1, Moment(Duration::ZERO))));
        fence.arm(1).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connector = tower::service_fn(move |_: Uri| {
            let mut may = may.clone();
            async move {
                may.wait_for(|may| *may).await.unwrap();
                TcpStream::connect(address).await.map(TokioIo::new)
            }
        });
        let config = Config::new(format!("http://{address}").parse().unwrap());
        let client = through(connector, config).unwrap();
        (Cluster::new(client).with_fence(fence.clone()), listener)
    }

    fn fence() -> Fence {
        Fence::closed(Arc::new(TokioClock::new()), crate::LeaseTiming::default())
    }

    fn write() -> Call {
        Call::new(http::Method::DELETE, "/api/v1/namespaces/a".into())
            .json(&serde_json::json!({"kind": "DeleteOptions"}))
    }

    #[tokio::test]
    async fn a_request_that_waits_when_the_fence_closes_is_not_sent() {
        for closes in [true, false] {
            let fence = fence();
            let (open, may) = watch::channel(false);
            let (cluster, listener) = behind(&fence, may).await;
            let call = tokio::spawn(async move { cluster.call(write()).await });
            // It waits for its connection.
            while open.receiver_count() < 2 {
                tokio::task::yield_now().await;
            }
            if closes {
                fence.disarm();
            }
            open.send(true).unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut sent = Vec::new();
            if closes {
                stream.read_to_end(&mut sent).await.unwrap();
                assert_eq!(String::from_utf8_lossy(&sent), "");
                let error = call.await.unwrap().unwrap_err();
                assert!(
                    matches!(
                        error,
                        CallError::Transport(TransportError::NotLeader(NotLeader))
                    ),
                    "{error:?}"
                );
                continue;
            }
            let body = br#"{"kind":"DeleteOptions"}"#;
            while !sent.ends_with(body) {
                assert_ne!(stream.read_buf(&mut sent).await.unwrap(), 0);
            }
            let text = String::from_utf8(sent).unwrap();
            assert!(text.starts_with("DELETE /api/v1/namespaces/a HTTP/1.1\r\n"));
            assert!(text.contains(&format!("content-length: {}\r\n", body.len())));
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer).await.unwrap();
            assert_eq!(call.await.unwrap().unwrap(), "{}");
        }
    }

    /// A server may have its API below a path, as behind Rancher.
    #[tokio::test]
    async fn requests_go_to_the_place_of_their_server() {
        for (path, expected) in [
            ("", "/api/v1/nodes?a=b"),
            ("/", "/api/v1/nodes?a=b"),
            ("/k8s/c", "/k8s/c/api/v1/nodes?a=b"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let config = Config::new(format!("http://{address}{path}").parse().unwrap());
            let cluster = Cluster::new(client(config).unwrap());
            let get = Call::get("/api/v1/nodes".into()).query("a", "b");
            let call = tokio::spawn(async move { cluster.call(get).await.map(drop) });
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut sent = Vec::new();
            while !sent.ends_with(b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut sent).await.unwrap(), 0);
            }
            call.abort();
            let text = String::from_utf8(sent).unwrap();
            assert!(
                text.starts_with(&format!("GET {expected} HTTP/1.1\r\n")),
                "{text}"
            );
            let host = format!("host: {address}\r\n");
            assert!(text.to_lowercase().contains(&host), "{text}");
        }
    }

    #[tokio::test]
    async fn what_needs_no_lease_is_sent_past_a_closed_fence() {
        let fence = fence();
        let (_open, may) = watch::channel(true);
        let (cluster, listener) = behind(&fence, may).await;
        fence.disarm();
        let call = tokio::spawn(async move { cluster.call(write().unfenced()).await });
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut sent = Vec::new();
        assert_ne!(stream.read_buf(&mut sent).await.unwrap(), 0);
        call.abort();
    }
}
