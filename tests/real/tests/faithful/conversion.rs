//! Webhooks of definitions: both servers ask the same program what an object is like in
//! another version. Objects say in annotations what it is to answer.

use std::fs;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::{Request, Response, StatusCode};
use reeve_test_support::http::{self, Body, Certificate};
use serde_json::{Value, json};

use crate::corpus::{self, Scenario};
use crate::servers::Servers;
use crate::suite::{compare, folder, report};

/// The fields of a spec in either version.
const FIELDS: [(&str, &str); 2] = [("size", "amount"), ("unit", "measure")];

async fn serve(request: Request<Bytes>) -> Response<Body> {
    let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let asked = &review["request"];
    if request.uri().path() == "/judge" {
        return judged(&review);
    }
    let to = asked["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = asked["objects"].as_array().into_iter().flatten();
    let converted: Vec<Value> = objects
        .map(|object| converted(&review, object, to))
        .collect();
    let version = to.rsplit('/').next().unwrap_or_default();
    let wanted = format!("/objects/0/metadata/annotations/answer-{version}");
    let wanted = asked.pointer(&wanted).and_then(Value::as_str);
    let mut response = json!({
        "uid": asked["uid"], "convertedObjects": converted, "result": {"status": "Success"},
    });
    let mut answer = json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview"});
    let mut status = StatusCode::OK;
    let mut text = None;
    let object = &mut response["convertedObjects"][0];
    match wanted.unwrap_or_default() {
        "fail" => response["result"] = json!({"status": "Failure", "message": "it cannot be"}),
        "fail-plain" => response["result"] = json!({"status": "Failure"}),
        "no-result" => response["result"] = json!({}),
        "other-uid" => response["uid"] = json!("another"),
        "none" => response["convertedObjects"] = json!([]),
        "two" => response["convertedObjects"] = json!([object, object]),
        "unconverted" => *object = asked["objects"][0].clone(),
        "other-group" => object["apiVersion"] = json!("other.example.com/v1"),
        "odd-version" => object["apiVersion"] = json!("a/b/c"),
        "no-version" => drop(object.as_object_mut().map(|o| o.remove("apiVersion"))),
        "other-kind" => object["kind"] = json!("Other"),
        "renamed" => object["metadata"]["name"] = json!("renamed"),
        "moved" => object["metadata"]["namespace"] = json!("elsewhere"),
        "another" => object["metadata"]["uid"] = json!("another"),
        "no-metadata" => drop(object.as_object_mut().map(|o| o.remove("metadata"))),
        "text-labels" => object["metadata"]["labels"] = json!("text"),
        "number-label" => object["metadata"]["labels"] = json!({"l": 5}),
        "bad-label" => object["metadata"]["labels"] = json!({"l": "not so!"}),
        "bad-annotation" => object["metadata"]["annotations"]["not so!"] = json!("a"),
        "no-annotations" => {
            drop(
                object["metadata"]
                    .as_object_mut()
                    .map(|m| m.remove("annotations")),
            );
        }
        "label" => object["metadata"]["labels"] = json!({"in": version}),
        "other-metadata" => {
            object["metadata"]["finalizers"] = json!(["example.com/other"]);
            object["metadata"]["generation"] = json!(7);
            object["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
            object["metadata"]["managedFields"] = json!([]);
        }
        "unknown" => object["spec"]["unknown"] = json!("dropped"),
        "null" => {
            object["spec"]["unit"] = Value::Null;
            object["spec"]["measure"] = Value::Null;
        }
        "wrong-type" => object["spec"] = json!({"amount": [], "size": "text"}),
        "other-review" => answer["kind"] = json!("Other"),
        "older-review" => answer["apiVersion"] = json!("apiextensions.k8s.io/v1beta1"),
        "untyped-review" => answer = json!({}),
        "no-response" => response = Value::Null,
        "no-json" => text = Some("nonsense"),
        "list" => text = Some("[]"),
        "broken" => text = Some("{nonsense"),
        "null-object" => *object = Value::Null,
        "text-object" => *object = json!("text"),
        "null-metadata" => object["metadata"] = Value::Null,
        "text-metadata" => object["metadata"] = json!("text"),
        "text-annotations" => object["metadata"]["annotations"] = json!(["a"]),
        "no-spec" => drop(object.as_object_mut().map(|o| o.remove("spec"))),
        "empty" => text = Some(""),
        "error" => {
            text = Some("it broke \"here\"\n");
            status = StatusCode::INTERNAL_SERVER_ERROR;
        }
        "away" => {
            text = Some("not here");
            status = StatusCode::NOT_FOUND;
        }
        "teapot" => {
            text = Some("no coffee");
            status = StatusCode::IM_A_TEAPOT;
        }
        _ => {}
    }
    answer["response"] = response;
    let text = text.map_or_else(|| answer.to_string(), str::to_owned);
    let mut answer = Response::new(http::whole(text));
    *answer.status_mut() = status;
    answer
}

/// What is said of a request: that it is not allowed, and what it was seen as.
fn judged(review: &Value) -> Response<Body> {
    let asked = &review["request"];
    let object = &asked["object"];
    let message = json!([
        object["apiVersion"],
        object["spec"],
        asked["kind"],
        asked["requestKind"]
    ]);
    let answer = json!({
        "apiVersion": review["apiVersion"],
        "kind": "AdmissionReview",
        "response": {
            "uid": asked["uid"], "allowed": false, "status": {"message": message.to_string()},
        },
    });
    Response::new(http::whole(answer.to_string()))
}

/// An object in another version. It says what was asked where it is to.
fn converted(review: &Value, object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(to);
    for part in ["spec", "status"] {
        let Some(fields) = object.get_mut(part).and_then(Value::as_object_mut) else {
            continue;
        };
        for (v1, v2) in FIELDS {
            let (from, to) = if to.ends_with("/v1") {
                (v2, v1)
            } else {
                (v1, v2)
            };
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
    }
    let annotations = &mut object["metadata"]["annotations"];
    if annotations["tell"] == "yes" {
        let told = told(review);
        annotations["asked"] = json!(told);
    }
    object
}

/// What was asked, as a text, but for what differs from server to server.
fn told(review: &Value) -> String {
    let mut review = review.clone();
    let request = &mut review["request"];
    request["uid"] = json!(request["uid"].as_str().map(str::len));
    for object in request["objects"].as_array_mut().into_iter().flatten() {
        let metadata = object["metadata"].as_object().into_iter().flatten();
        let fields: Vec<&String> = metadata.map(|(field, _)| field).collect();
        *object = json!([object["apiVersion"], object["kind"], fields, object["spec"]]);
    }
    review.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_converted_alike() -> Result<()> {
    let certificate = Certificate::of(&["127.0.0.1", "localhost"])?;
    let port = http::serve(Some(&certificate), serve).await?;
    let text = fs::read_to_string(folder().join("conversion.yaml"))?;
    let text = text.replace("URL", &format!("https://127.0.0.1:{port}"));
    let text = text.replace(
        "caBundle: CA",
        &format!("caBundle: {}", BASE64_STANDARD.encode(&certificate.pem)),
    );
    let scenarios: Vec<Scenario> = corpus::parse(&text)?;
    let servers = Servers::start().await?;
    let mut differences = String::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let namespace = format!("conversion-{number}");
        let mut found = compare(&servers, scenario, &namespace).await?;
        for finding in &mut found {
            // Descriptions of columns are empty, and versions are other ones.
            finding.differences.retain(|difference| {
                let is_late = |said: &str| said.contains("Too large resource version: ");
                let both_late = is_late(&difference.real) && is_late(&difference.embedded);
                !difference.at.ends_with(".description") && !both_late
            });
        }
        found.retain(|finding| !finding.differences.is_empty());
        differences += &report(&scenario.name, &found);
    }
    ensure!(differences.is_empty(), "{differences}");
    Ok(())
}
