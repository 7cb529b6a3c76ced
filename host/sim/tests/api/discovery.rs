//! Discovery, OpenAPI, health, tables: what kubectl asks besides objects.

use crate::support::{CONFIG_MAPS, Http, admin, config_map};
use http::Request;
use serde_json::{Value, json};

async fn accept(http: &Http, path: &str, accept: &str) -> (u16, Value) {
    let request = Request::get(path)
        .header("accept", accept)
        .body(Vec::new())
        .unwrap();
    http.send(request).await
}

#[tokio::test]
async fn documents_are_of_their_kind() {
    let (_server, http) = admin();
    let cases = [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/api/v1", "APIResourceList"),
        ("/apis/apps/v1", "APIResourceList"),
    ];
    for (path, kind) in cases {
        let (code, document) = http.get(path).await;
        assert_eq!(
            (code, document["kind"].as_str()),
            (200, Some(kind)),
            "{path}"
        );
    }
    assert_eq!(http.get("/version").await.1["minor"], "36");
    assert_eq!(http.get("/apis/nope").await.0, 404);
    assert_eq!(http.get("/apis/nope/v1/things").await.0, 404);
    for path in ["/readyz", "/livez", "/healthz"] {
        assert_eq!(http.get(path).await.0, 200);
    }
}

#[tokio::test]
async fn kube_finds_resources_by_discovery() {
    let (server, _http) = admin();
    let discovery = kube::Discovery::new(server.client())
        .run_aggregated()
        .await
        .unwrap();
    let gvk = kube::core::GroupVersionKind::gvk("apps", "v1", "Deployment");
    let (resource, capabilities) = discovery.resolve_gvk(&gvk).unwrap();
    assert_eq!(resource.plural, "deployments");
    assert!(capabilities.supports_operation(kube::discovery::verbs::PATCH));
    let discovery = kube::Discovery::new(server.client()).run().await.unwrap();
    assert!(discovery.resolve_gvk(&gvk).is_some());
}

#[tokio::test]
async fn openapi_says_which_writes_validate_fields() {
    let (_server, http) = admin();
    let (_, index) = http.get("/openapi/v3").await;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let (code, document) = http.get(url).await;
    assert_eq!(code, 200);
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"]["kind"],
        "Deployment"
    );
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|p| p["name"] == "fieldValidation"));
}

#[tokio::test]
async fn objects_are_shown_in_the_form_that_is_asked_for() {
    let (_server, http) = admin();
    http.post(CONFIG_MAPS, config_map("a", json!({"x": "1"})))
        .await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (code, shown) = accept(&http, CONFIG_MAPS, table).await;
    assert_eq!((code, &shown["kind"]), (200, &json!("Table")));
    assert_eq!(shown["columnDefinitions"][1]["name"], "Data");
    assert_eq!(shown["rows"][0]["cells"], json!(["a", 1, "0s"]));
    assert_eq!(shown["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let (_, shown) = accept(&http, CONFIG_MAPS, metadata).await;
    assert_eq!(
        (&shown["kind"], shown["items"][0].get("data")),
        (&json!("PartialObjectMetadataList"), None)
    );
    let (code, _) = accept(&http, CONFIG_MAPS, "application/vnd.kubernetes.protobuf").await;
    assert_eq!(code, 406);
}
