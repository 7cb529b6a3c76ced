//! Server-side apply, through `kube::Client`.

use crate::support::{CONFIG_MAPS, admin, config_map};
use serde_json::json;

#[tokio::test]
async fn apply_creates_then_owns_then_removes() {
    let (_server, http) = admin();
    let path = format!("{CONFIG_MAPS}/a");
    let (code, made) = http
        .apply(&path, "m", config_map("a", json!({"x": "1", "y": "1"})))
        .await;
    assert_eq!(
        (code, &made["data"]),
        (201, &json!({"x": "1", "y": "1"})),
        "{made}"
    );
    let owner = &made["metadata"]["managedFields"][0];
    assert_eq!(
        (&owner["manager"], &owner["operation"]),
        (&json!("m"), &json!("Apply"))
    );
    let (code, same) = http
        .apply(&path, "m", config_map("a", json!({"x": "1", "y": "1"})))
        .await;
    assert_eq!((code, &same), (200, &made), "applying again writes nothing");
    let (code, less) = http
        .apply(&path, "m", config_map("a", json!({"x": "1"})))
        .await;
    assert_eq!((code, &less["data"]), (200, &json!({"x": "1"})));
}

#[tokio::test]
async fn fields_of_others_conflict_until_forced() {
    let (_server, http) = admin();
    let path = format!("{CONFIG_MAPS}/a");
    http.post(CONFIG_MAPS, config_map("a", json!({"x": "1"})))
        .await;
    let wanted = config_map("a", json!({"x": "5"}));
    let (code, status) = http.apply(&path, "m", wanted.clone()).await;
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"tests\" using v1: .data.x"
    );
    assert_eq!(
        status["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"tests\" using v1", "field": ".data.x"}])
    );
    let (code, forced) = http.apply(&format!("{path}?force=true"), "m", wanted).await;
    assert_eq!((code, &forced["data"]["x"]), (200, &json!("5")));
    assert_eq!(
        forced["metadata"]["managedFields"][1]["fieldsV1"],
        json!({"f:data": {}})
    );
}

#[tokio::test]
async fn bad_configurations_are_refused() {
    let (_server, http) = admin();
    let path = format!("{CONFIG_MAPS}/a");
    let cases = [
        (
            json!({"data": {"x": "5"}}),
            400,
            "invalid object type: /, Kind=",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": [{}]}}),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
    ];
    for (config, code, message) in cases {
        let (got, status) = http.apply(&path, "m", config.clone()).await;
        assert_eq!(
            (got, status["message"].as_str()),
            (code, Some(message)),
            "{config}"
        );
    }
    let (code, status) = http
        .call_as(
            "PATCH",
            &path,
            "application/apply-patch+yaml",
            config_map("a", json!({})),
        )
        .await;
    assert_eq!(
        (code, status["message"].as_str()),
        (
            422,
            Some(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
            )
        )
    );
}
