//! Webhooks: both servers ask the same program, which writes into objects what it was asked.

use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::corpus::{self, Scenario};
use crate::servers::Servers;
use crate::suite::{compare, folder, report};

/// Longer than the webhooks of the scenarios may take.
const SLOW: Duration = Duration::from_secs(3);

/// Starts the program. The answer is its address, and its certificate in PEM.
async fn start() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names)?.self_signed(&key)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("https://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    // Who asked may go away.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(serve))
                        .await;
                }
            });
        }
    });
    Ok((url, certificate.pem()))
}

async fn serve(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let changes = request.uri().path() == "/change";
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let asked = &review["request"];
    let annotations = |field: &str| &asked[field]["metadata"]["annotations"];
    let wanted = match asked["object"].is_null() {
        true => &annotations("oldObject")["on-deletion"],
        false => &annotations("object")["answer"],
    };
    let wanted = wanted.as_str();
    let mut response = json!({"uid": asked["uid"], "allowed": true});
    match wanted.unwrap_or_default() {
        "deny" => {
            response["allowed"] = json!(false);
            response["status"] = json!({"message": "it may not be", "code": 418});
        }
        "deny-plain" => response["allowed"] = json!(false),
        "deny-reason" => {
            response["allowed"] = json!(false);
            response["status"] = json!({"reason": "Forbidden", "code": 200});
        }
        "taken" => {
            response["allowed"] = json!(false);
            response["status"] = json!({"reason": "AlreadyExists", "code": 409});
        }
        "other-uid" => response["uid"] = json!("another"),
        "slow" => tokio::time::sleep(SLOW).await,
        "warn" => response["warnings"] = json!(["beware of it"]),
        _ => {}
    }
    if changes && wanted == Some("no-object") {
        let operations = json!([{"op": "replace", "path": "", "value": [1]}]);
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(BASE64_STANDARD.encode(operations.to_string()));
    } else if changes && !asked["object"].is_null() {
        let operations = json!([
            {"op": "add", "path": "/metadata/annotations/asked", "value": told(&review)},
            {"op": "add", "path": "/metadata/annotations/changed", "value": "yes"},
            {"op": "add", "path": "/spurious", "value": "dropped"},
        ]);
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(BASE64_STANDARD.encode(operations.to_string()));
    }
    let answer = json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
    });
    Ok(Response::new(Full::new(answer.to_string().into())))
}

/// What was asked, as a text, but for what differs from server to server and how.
fn told(review: &Value) -> String {
    let mut review = review.clone();
    let request = &mut review["request"];
    for field in ["uid", "userInfo"] {
        request[field] = json!(request[field].is_null());
    }
    request["options"] = request["options"]["kind"].take();
    for field in ["object", "oldObject"] {
        let object = &request[field];
        request[field] = match object["metadata"]["name"].as_str() {
            Some(name) => json!([object["apiVersion"], object["kind"], name]),
            None => json!(object.is_null()),
        };
    }
    review.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_asked_alike() -> Result<()> {
    let (url, certificate) = start().await?;
    let text = fs::read_to_string(folder().join("webhooks.yaml"))?;
    let text = text.replace("URL", &url);
    let text = text.replace(
        "caBundle: CA",
        &format!("caBundle: {}", BASE64_STANDARD.encode(certificate)),
    );
    let scenarios: Vec<Scenario> = corpus::parse(&text)?;
    let servers = Servers::start().await?;
    for (number, scenario) in scenarios.iter().enumerate() {
        let namespace = format!("webhooks-{number}");
        let found = compare(&servers, scenario, &namespace).await?;
        ensure!(found.is_empty(), "{}", report(&scenario.name, &found));
    }
    Ok(())
}
