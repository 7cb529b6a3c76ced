//! Calling a webhook: one HTTPS request on the loopback.
//!
//! Requests of clients are answered without waiting for anything; this is the one
//! exception. The exchange runs on a thread of its own, so that it goes on whatever the
//! caller's runtime is. Who reads waits as for anything else; a write keeps its thread, and
//! a runtime with several threads gives the other work of that to another of them meanwhile.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use super::trust;
use crate::field::quoted;
use crate::kinds::edit::{object, text};

/// The largest answer: what a request may have, too.
const LARGEST: usize = 3 << 20;
/// What an answer may come later than its time, so that who waits hears of it.
const MARGIN: Duration = Duration::from_secs(1);

static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(1).thread_name("webhooks");
    builder.enable_all().build().ok()
});

/// Whether a webhook of such a `clientConfig` is one that can be asked.
pub(crate) fn is_reachable(client: &Value) -> bool {
    place(client).is_ok() && !text(client, "caBundle").is_empty()
}

/// Whether a webhook of such a `clientConfig` is where this server asks any.
pub(crate) fn is_on_loopback(client: &Value) -> bool {
    place(client).is_ok()
}

/// Why a webhook has not answered.
#[derive(Debug)]
enum Failure {
    /// It was not reached, or broke off.
    Unreached(String),
    /// It answered that it does not.
    Refused(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Failure::Unreached(why)
    }
}

/// Sends `body` to a webhook, and returns what it answers.
///
/// # Errors
///
/// Why there is no answer, or none that counts, in the words of Go's HTTP client and of
/// client-go.
pub(crate) async fn ask(client: &Value, body: Bytes, patience: Duration) -> Result<Bytes, String> {
    let (sender, receiver) = oneshot::channel();
    // Who asked may have given up.
    send(client, body, patience, |answer| drop(sender.send(answer)))?;
    receiver
        .await
        .unwrap_or_else(|_| Err(late(client, patience)))
}

/// As [`ask`], for who can only wait with a thread.
///
/// # Errors
///
/// As [`ask`].
pub(crate) fn ask_now(client: &Value, body: Bytes, patience: Duration) -> Result<Bytes, String> {
    let (sender, receiver) = mpsc::channel();
    send(client, body, patience, move |answer| {
        drop(sender.send(answer))
    })?;
    let wait = || receiver.recv_timeout(patience + MARGIN);
    let is_one_of_several =
        Handle::try_current().is_ok_and(|at| at.runtime_flavor() == RuntimeFlavor::MultiThread);
    let answer = if is_one_of_several {
        tokio::task::block_in_place(wait)
    } else {
        wait()
    };
    match answer {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(late(client, patience))
        }
    }
}

/// Sends `body` to a webhook, and has `told` have what comes of it.
fn send(
    client: &Value,
    body: Bytes,
    patience: Duration,
    told: impl FnOnce(Result<Bytes, String>) + Send + 'static,
) -> Result<(), String> {
    let (uri, address) = place(client)?;
    let shown = shown(&uri, patience);
    let certificates = BASE64_STANDARD.decode(text(client, "caBundle"));
    let certificates = certificates.unwrap_or_default();
    let uri: Uri = shown
        .parse()
        .map_err(|why| unreached(&shown, &format!("{why}")))?;
    let Some(runtime) = &*RUNTIME else {
        return Err(unreached(&shown, "there is no thread to call it from"));
    };
    runtime.spawn(async move {
        let exchange = exchange(&uri, address, &certificates, body);
        let answer = tokio::time::timeout(patience, exchange).await;
        let answer = answer.unwrap_or_else(|_| Err(Failure::Unreached(LATE.to_owned())));
        told(answer.map_err(|failure| match failure {
            Failure::Unreached(why) => unreached(&shown, &why),
            Failure::Refused(why) => why,
        }));
    });
    Ok(())
}

/// What is said of a webhook that takes too long.
const LATE: &str = "context deadline exceeded";

fn late(client: &Value, patience: Duration) -> String {
    let shown = place(client).map(|(uri, _)| shown(&uri, patience));
    unreached(&shown.unwrap_or_default(), LATE)
}

/// The URL that is asked.
fn shown(uri: &Uri, patience: Duration) -> String {
    format!("{uri}?timeout={}s", patience.as_secs())
}

fn unreached(url: &str, why: &str) -> String {
    format!("Post {url:?}: {why}")
}

/// Where a webhook is.
fn place(client: &Value) -> Result<(Uri, SocketAddr), String> {
    if let Some(service) = object(client, "service") {
        let (name, namespace) = (text(service, "name"), text(service, "namespace"));
        return Err(format!(
            "this server reaches no Services, such as {namespace}/{name}; use the url of a webhook on the loopback"
        ));
    }
    let url = text(client, "url");
    let elsewhere = || format!("this server asks only webhooks on the loopback, not {url:?}");
    let uri: Uri = url.parse().map_err(|_| elsewhere())?;
    let host = uri.host().ok_or_else(elsewhere)?;
    let address = match host.trim_matches(['[', ']']) {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        other => other.parse().map_err(|_| elsewhere())?,
    };
    if uri.scheme_str() != Some("https") || !address.is_loopback() {
        return Err(elsewhere());
    }
    let port = uri.port_u16().unwrap_or(443);
    Ok((uri, SocketAddr::new(address, port)))
}

async fn exchange(
    uri: &Uri,
    address: SocketAddr,
    certificates: &[u8],
    body: Bytes,
) -> Result<Bytes, Failure> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(|why| match why.kind() {
            std::io::ErrorKind::ConnectionRefused => {
                format!("dial tcp {address}: connect: connection refused")
            }
            _ => format!("dial tcp {address}: {why}"),
        })?;
    let host = uri
        .host()
        .unwrap_or_default()
        .trim_matches(['[', ']'])
        .to_owned();
    let name = ServerName::try_from(host).map_err(|why| why.to_string())?;
    let tls = trusting(certificates)?.connect(name, stream).await;
    let tls = tls.map_err(|why| format!("tls: {why}"))?;
    let (mut requests, connection) = http1::handshake(TokioIo::new(tls))
        .await
        .map_err(|why| why.to_string())?;
    // Ends with the request.
    tokio::spawn(connection);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Full::new(body))
        .map_err(|why| why.to_string())?;
    let answer = requests.send_request(request).await;
    let answer = answer.map_err(|why| why.to_string())?;
    let status = answer.status();
    let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
    let body = Limited::new(answer.into_body(), LARGEST).collect().await;
    let body = body.map_err(|why| why.to_string())?.to_bytes();
    // As client-go, which takes every code up to that of partial content.
    if (StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&status) {
        if body.is_empty() {
            let kind = kind.as_ref().and_then(|kind| kind.to_str().ok());
            return Err(Failure::Refused(format!(
                "0-length response with status code: {} and content type: {}",
                status.as_u16(),
                kind.unwrap_or("application/json")
            )));
        }
        return Ok(body);
    }
    let is_text = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/"));
    let said = is_text.then(|| String::from_utf8_lossy(&body).into_owned());
    let said = said.as_deref().map_or("unknown", str::trim);
    Err(Failure::Refused(refused(status, said)))
}

/// What client-go makes of an answer that is no success (`NewGenericServerResponse`), of
/// which it shows the first 2048 bytes.
fn refused(status: StatusCode, said: &str) -> String {
    const SHOWN: usize = 2048;
    let shown = said.get(..said.floor_char_boundary(SHOWN)).unwrap_or(said);
    let fixed = match status {
        StatusCode::CONFLICT => "the server reported a conflict",
        StatusCode::NOT_FOUND => "the server could not find the requested resource",
        StatusCode::BAD_REQUEST => "the server rejected our request for an unknown reason",
        StatusCode::UNAUTHORIZED => "the server has asked for the client to provide credentials",
        StatusCode::NOT_ACCEPTABLE if matches!(shown, "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports"
        }
        StatusCode::FORBIDDEN | StatusCode::NOT_ACCEPTABLE | StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            shown
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server does not allow this method on the requested resource"
        }
        StatusCode::UNPROCESSABLE_ENTITY => {
            "the server rejected our request due to an error in our request"
        }
        StatusCode::SERVICE_UNAVAILABLE => "the server is currently unable to handle the request",
        StatusCode::GATEWAY_TIMEOUT => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        StatusCode::TOO_MANY_REQUESTS => {
            "the server has received too many requests and has asked us to try again later"
        }
        status if status.is_server_error() => {
            return format!(
                "an error on the server ({}) has prevented the request from succeeding",
                quoted(shown)
            );
        }
        status => {
            return format!(
                "the server responded with the status code {} but did not return more information",
                status.as_u16()
            );
        }
    };
    fixed.to_owned()
}

fn trusting(certificates: &[u8]) -> Result<TlsConnector, String> {
    let certificates = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|why| format!("caBundle: {why}"))?;
    if certificates.is_empty() {
        return Err(
            "its clientConfig has no caBundle, and this server trusts nobody else".to_owned(),
        );
    }
    let config = trust::trusting(certificates)?;
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_are_told_as_by_client_go() {
        for (status, said, expected) in [
            (404, "x", "the server could not find the requested resource"),
            (403, "not you", "not you"),
            (
                406,
                "unknown",
                "the server was unable to respond with a content type that the client supports",
            ),
            (
                500,
                "a \"b\"",
                "an error on the server (\"a \\\"b\\\"\") has prevented the request from succeeding",
            ),
            (
                418,
                "x",
                "the server responded with the status code 418 but did not return more information",
            ),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(refused(status, said), expected);
        }
        // Not in the middle of a letter.
        let long = refused(
            StatusCode::FORBIDDEN,
            &format!("x{}", "\u{e9}".repeat(2000)),
        );
        assert_eq!(long.len(), 2047);
    }

    #[test]
    fn only_the_loopback_is_reached() {
        for (client, expected) in [
            (json!({"url": "https://127.0.0.1:8443/x"}), true),
            (json!({"url": "https://localhost/x"}), true),
            (json!({"url": "https://[::1]:8443"}), true),
            (json!({"url": "http://127.0.0.1:8443"}), false),
            (json!({"url": "https://10.0.0.1/x"}), false),
            (json!({"url": "https://localhost.example.com/"}), false),
            (json!({"url": "https://127.0.0.1.example.com/"}), false),
            (json!({"url": "https://example.com"}), false),
            (json!({"url": "nonsense"}), false),
            (json!({"service": {"name": "a", "namespace": "b"}}), false),
            (json!({}), false),
        ] {
            assert_eq!(place(&client).is_ok(), expected, "{client}");
            assert!(!is_reachable(&client), "{client}");
            let mut known = client.clone();
            known["caBundle"] = json!("AA==");
            assert_eq!(is_reachable(&known), expected, "{client}");
        }
    }
}
