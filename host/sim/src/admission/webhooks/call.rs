//! Calling a webhook: one HTTPS request on the loopback.
//!
//! Requests of clients are answered without waiting for anything; this is the one
//! exception. The exchange runs on a thread of its own, so that it goes on whatever the
//! caller's runtime is, and one with several threads gives the caller's other work to
//! another of them meanwhile.

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
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

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

/// Sends `body` to a webhook, and returns what it answers.
///
/// # Errors
///
/// Why there is no answer, or none that counts.
pub(super) fn post(client: &Value, body: Bytes, patience: Duration) -> Result<Bytes, String> {
    let (uri, address) = place(client)?;
    let shown = format!("{uri}?timeout={}s", patience.as_secs());
    let told = |why: String| format!("failed to call webhook: Post {shown:?}: {why}");
    let certificates = BASE64_STANDARD.decode(text(client, "caBundle"));
    let certificates = certificates.unwrap_or_default();
    let uri: Uri = shown.parse().map_err(|why| told(format!("{why}")))?;
    let Some(runtime) = &*RUNTIME else {
        return Err(told("there is no thread to call it from".to_owned()));
    };
    let (sender, receiver) = mpsc::channel();
    runtime.spawn(async move {
        let exchange = exchange(&uri, address, &certificates, body);
        let answer = tokio::time::timeout(patience, exchange).await;
        let answer = answer.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        // Who asked may have given up.
        let _ = sender.send(answer);
    });
    let wait = || receiver.recv_timeout(patience + MARGIN);
    let is_one_of_several =
        Handle::try_current().is_ok_and(|at| at.runtime_flavor() == RuntimeFlavor::MultiThread);
    let answer = if is_one_of_several {
        tokio::task::block_in_place(wait)
    } else {
        wait()
    };
    match answer {
        Ok(answer) => answer.map_err(told),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(told("context deadline exceeded".to_owned()))
        }
    }
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
) -> Result<Bytes, String> {
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
    let body = Limited::new(answer.into_body(), LARGEST).collect().await;
    let body = body.map_err(|why| why.to_string())?.to_bytes();
    if status != StatusCode::OK {
        return Err(format!("it answered {status}"));
    }
    Ok(body)
}

fn trusting(certificates: &[u8]) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(certificates) {
        let certificate = certificate.map_err(|why| format!("caBundle: {why}"))?;
        roots
            .add(certificate)
            .map_err(|why| format!("caBundle: {why}"))?;
    }
    if roots.is_empty() {
        return Err(
            "its clientConfig has no caBundle, and this server trusts nobody else".to_owned(),
        );
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
