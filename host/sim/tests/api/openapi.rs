//! OpenAPI: one document of all that is served, and one of each group and version.

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::support::{Http, admin};

const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A response as it is: status, headers and body.
async fn raw(http: &Http, headers: &[(&str, &str)]) -> (StatusCode, http::HeaderMap, Vec<u8>) {
    let mut request = Request::get("/openapi/v2");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(kube::client::Body::empty()).unwrap();
    let answer = http.0.send(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    (parts.status, parts.headers, body)
}

fn definition(fields: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                }}},
            }],
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGET: &str = "com.example.v1.Widget";

/// Every reference leads somewhere.
fn check_references(document: &Value) {
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[tokio::test]
async fn one_document_has_all_kinds_and_requests() {
    let (_server, http) = admin();
    let (code, document) = http.get("/openapi/v2").await;
    assert_eq!(code, 200);
    assert_eq!(document["swagger"], "2.0");
    check_references(&document);
    let spec = &document["definitions"]["io.k8s.api.core.v1.PodSpec"];
    let containers = &spec["properties"]["containers"];
    assert_eq!(spec["required"], json!(["containers"]));
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(
        containers["items"],
        json!({"$ref": "#/definitions/io.k8s.api.core.v1.Container"})
    );
    let text = spec.to_string();
    for unknown in ["\"default\":", "\"oneOf\":", "\"allOf\":", "/components/"] {
        assert!(!text.contains(unknown), "{unknown}");
    }
    let path = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"];
    assert_eq!(path["patch"]["operationId"], "patchCoreV1NamespacedPod");
    // By these kubectl knows what it may ask for.
    let parameters = path["patch"]["parameters"].as_array().unwrap();
    for name in ["dryRun", "fieldValidation"] {
        assert!(parameters.iter().any(|p| p["name"] == name), "{name}");
    }
}

#[tokio::test]
async fn definitions_come_change_and_go() {
    let (_server, http) = admin();
    let tag = async || raw(&http, &[]).await.1["etag"].to_str().unwrap().to_owned();
    let none = tag().await;
    assert_eq!(tag().await, none);
    let fields = json!({"size": {"type": "integer", "nullable": true, "default": 1}});
    let made = http.post(DEFINITIONS, definition(&fields)).await;
    assert_eq!(made.0, 201);
    let first = tag().await;
    assert_ne!(first, none);
    let (_, document) = http.get("/openapi/v2").await;
    check_references(&document);
    let widget = &document["definitions"][WIDGET];
    assert_eq!(
        widget["properties"]["spec"]["properties"]["size"],
        json!({})
    );
    assert_eq!(
        widget["x-kubernetes-group-version-kind"],
        json!([{"group": "example.com", "version": "v1", "kind": "Widget"}])
    );
    let path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status";
    let methods: Vec<&String> = document["paths"][path]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(methods, ["get", "parameters", "patch", "put"]);

    let mut changed = made.1;
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["size"] = json!({"type": "string"});
    let url = format!("{DEFINITIONS}/widgets.example.com");
    let (_, known) = http.get(&url).await;
    changed["metadata"] = known["metadata"].clone();
    assert_eq!(http.call("PUT", &url, changed).await.0, 200);
    let second = tag().await;
    assert_ne!(second, first);
    let (_, document) = http.get("/openapi/v2").await;
    let spec = &document["definitions"][WIDGET]["properties"]["spec"];
    assert_eq!(spec["properties"]["size"], json!({"type": "string"}));

    assert_eq!(http.delete(&url).await.0, 200);
    crate::support::settle().await;
    assert_eq!(tag().await, none);
    let (_, document) = http.get("/openapi/v2").await;
    assert!(document["definitions"].get(WIDGET).is_none());
}

#[tokio::test]
async fn who_has_the_document_is_not_sent_it_again() {
    let (_server, http) = admin();
    let (status, headers, body) = raw(&http, &[]).await;
    assert_eq!(
        (status, headers["vary"].as_bytes()),
        (StatusCode::OK, &b"Accept"[..])
    );
    assert!(body.len() > 500_000, "{}", body.len());
    let tag = headers["etag"].to_str().unwrap();
    for known in [tag, "*", &format!("\"other\", W/{tag}")] {
        let (status, headers, body) = raw(&http, &[("if-none-match", known)]).await;
        assert_eq!(
            (status, body.len()),
            (StatusCode::NOT_MODIFIED, 0),
            "{known}"
        );
        assert_eq!(headers["etag"], tag);
    }
    let (status, _, _) = raw(&http, &[("if-none-match", "\"other\"")]).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn the_document_is_given_in_protobuf_as_well() {
    let (_server, http) = admin();
    for accept in [
        PROTOBUF,
        OLD_PROTOBUF,
        "application/json;q=0.5, */xml, application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    ] {
        let (status, headers, body) = raw(&http, &[("accept", accept)]).await;
        assert_eq!(status, StatusCode::OK, "{accept}");
        assert_eq!(headers["content-type"], PROTOBUF);
        assert!(body.starts_with(b"\x0a\x032.0\x12"), "{accept}");
        let deployment = b"io.k8s.api.apps.v1.Deployment";
        assert!(
            body.windows(deployment.len())
                .any(|part| part == deployment)
        );
    }
    let (status, headers, body) = raw(&http, &[("accept", "text/plain")]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_ACCEPTABLE, 0));
    assert!(headers.get("content-type").is_none());
}

#[tokio::test]
async fn documents_of_groups_say_values_keys_and_lists() {
    let (_server, http) = admin();
    for path in [
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/apps/v1",
        "/openapi/v3/apis/policy/v1",
    ] {
        let (code, document) = http.get(path).await;
        assert_eq!(code, 200, "{path}");
        check_references_v3(&document);
    }
    let (_, document) = http.get("/openapi/v3/api/v1").await;
    let container =
        &document["components"]["schemas"]["io.k8s.api.core.v1.Container"]["properties"];
    assert_eq!(
        container["imagePullPolicy"]["enum"],
        json!(["Always", "IfNotPresent", "Never"])
    );
    let ports = &container["ports"];
    assert_eq!(ports["x-kubernetes-list-type"], "map");
    assert_eq!(ports["x-kubernetes-patch-merge-key"], "containerPort");
    let list = &document["components"]["schemas"]["io.k8s.api.core.v1.PodList"];
    assert_eq!(list["required"], json!(["items"]));
}

fn check_references_v3(document: &Value) {
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"].get(name).is_some(),
            "{name}"
        );
    }
}
