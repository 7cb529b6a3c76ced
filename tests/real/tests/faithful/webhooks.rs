//! Webhooks: both servers ask the same program, which writes into objects what it was asked.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::{Request, Response};
use reeve_test_support::http::{self, Body, Certificate};
use serde_json::{Value, json};

use crate::corpus::{self, Scenario};
use crate::servers::Servers;
use crate::suite::{compare, folder, report};

/// Longer than the webhooks of the scenarios may take.
const SLOW: Duration = Duration::from_secs(3);

/// Starts the program. The answer is its address, and its certificate in PEM.
async fn start() -> Result<(String, String)> {
    let certificate = Certificate::of(&["127.0.0.1", "localhost"])?;
    let port = http::serve(Some(&certificate), serve).await?;
    Ok((format!("https://127.0.0.1:{port}"), certificate.pem))
}

async fn serve(request: Request<Bytes>) -> Response<Body> {
    let changes = request.uri().path() == "/change";
    let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
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
    let own = wanted.and_then(|wanted| wanted.strip_prefix("patch:"));
    if let Some(operations) = own.filter(|_| changes) {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(BASE64_STANDARD.encode(operations));
    } else if changes && !asked["object"].is_null() {
        let operations = json!([
            {"op": "add", "path": "/metadata/annotations/asked", "value": told(&review)},
            {"op": "add", "path": "/metadata/annotations/changed", "value": "yes"},
            {"op": "add", "path": "/spurious", "value": "dropped"},
        ]);
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(BASE64_STANDARD.encode(operations.to_string()));
    }
    let mut answer = json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
    });
    match wanted.unwrap_or_default() {
        "other-version" => answer["apiVersion"] = json!("admission.k8s.io/v1beta1"),
        "other-group" => answer["apiVersion"] = json!("example.com/v1"),
        "no-type" => answer = json!({"response": response}),
        "no-response" => answer["response"] = Value::Null,
        _ => {}
    }
    Response::new(http::whole(answer.to_string()))
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
    let mut differences = String::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let namespace = format!("webhooks-{number}");
        let found = compare(&servers, scenario, &namespace).await?;
        differences += &report(&scenario.name, &found);
    }
    ensure!(differences.is_empty(), "{differences}");
    Ok(())
}
