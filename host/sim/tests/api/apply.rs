//! Server-side apply, through `kube::Client`.

use crate::support::{CONFIG_MAPS, admin, config_map};
use serde_json::{Value, json};

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

/// The server compares what comes with what is stored, where an empty list is none.
#[tokio::test]
async fn an_empty_list_changes_a_policy_each_time() {
    let (_server, http) = admin();
    let path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/a";
    let policy = |spec: serde_json::Value| json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"}, "spec": spec});
    let rules = json!([{"ports": [{"port": 80}]}]);
    for (spec, generation) in [
        (json!({"podSelector": {}, "ingress": []}), 1),
        (json!({"podSelector": {}, "ingress": []}), 2),
        (json!({"podSelector": {}, "ingress": []}), 3),
        (json!({"podSelector": {}}), 3),
        (json!({"podSelector": {}, "policyTypes": []}), 3),
        (json!({"podSelector": {}, "ingress": rules}), 4),
        (json!({"podSelector": {}, "ingress": rules}), 4),
        (
            json!({"podSelector": {"matchLabels": {}}, "ingress": rules}),
            5,
        ),
    ] {
        let (_, applied) = http.apply(path, "m", policy(spec.clone())).await;
        assert_eq!(applied["metadata"]["generation"], generation, "{spec}");
    }
}

/// The server does not take such amounts for equal, so whoever writes owns the list.
#[tokio::test]
async fn binary_amounts_in_metrics_belong_to_who_wrote_last() {
    let (_server, http) = admin();
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let made = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
    });
    let (code, made) = http.post(path, made).await;
    assert_eq!(code, 201, "{made}");
    let amount = |amount: &str| {
        let target = json!({"type": "AverageValue", "averageValue": amount});
        json!({"spec": {"metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}]}})
    };
    let label = json!({"metadata": {"labels": {"l": "1"}}});
    for (manager, patch, owner) in [
        ("ann", amount("0.5Gi"), "ann"),
        ("bob", label.clone(), "bob"),
        ("ann", amount("1000m"), "ann"),
        ("cat", label, "ann"),
        ("bob", amount("1000m"), "bob"),
    ] {
        let path = format!("{path}/a?fieldManager={manager}");
        let (code, patched) = http.call("PATCH", &path, patch).await;
        assert_eq!(code, 200, "{patched}");
        let entries = patched["metadata"]["managedFields"].as_array().unwrap();
        let owners = entries
            .iter()
            .filter(|entry| entry["fieldsV1"]["f:spec"]["f:metrics"].is_object());
        let owners: Vec<_> = owners.map(|entry| entry["manager"].clone()).collect();
        assert_eq!(owners, [owner], "{patched}");
    }
}

/// The empty parts of a custom resource's metadata are stored and never shown, so that each
/// such apply brings an object that is not the one that was read: with the times of its owners
/// anew, which is another one only in another second.
#[tokio::test]
async fn empty_metadata_is_written_once_a_second() {
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
    let (server, http) = admin();
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(http.post(definitions, definition).await.0, 201);
    let version = async |metadata: Value| {
        let mut widget = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
        widget["metadata"] = metadata;
        let (code, applied) = http.apply(&format!("{WIDGETS}/a"), "m", widget).await;
        assert!(code < 300, "{applied}");
        assert_eq!(applied["metadata"].get("annotations"), None);
        let version = applied["metadata"]["resourceVersion"].as_str();
        version.unwrap().parse::<u64>().unwrap()
    };
    let empty = || json!({"name": "a", "labels": {}, "annotations": {}});
    let made = version(empty()).await;
    assert_eq!(version(empty()).await, made);
    // Other empty parts are another object.
    let other = || json!({"name": "a", "labels": {}, "finalizers": []});
    let changed = version(other()).await;
    assert!(changed > made);
    assert_eq!(version(other()).await, changed);
    server.jump_clock(1000);
    let later = version(other()).await;
    assert!(later > changed);
    assert_eq!(version(other()).await, later);
    // Whoever else writes stores it as it is shown, and then nothing is to be written.
    let path = format!("{WIDGETS}/a");
    let (_, patched) = http.call("PATCH", &path, json!({})).await;
    let (_, again) = http.call("PATCH", &path, json!({})).await;
    assert_ne!(
        patched["metadata"]["resourceVersion"],
        json!(later.to_string())
    );
    assert_eq!(again, patched);
}
