//! The scale subresource takes nothing but a `Scale`.

use serde_json::{Value, json};

use crate::support::{Http, admin};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/web/scale";

async fn deployment(http: &Http) {
    let made = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
            },
            "template": {
                "metadata": {"labels": {"app": "web", "tier": "a"}},
                "spec": {"containers": [{"name": "c", "image": "x"}]},
            },
        },
    });
    let (code, made) = http.post(DEPLOYMENTS, made).await;
    assert_eq!(code, 201, "{made}");
}

#[tokio::test]
async fn what_is_no_scale_is_refused_and_nothing_is_stored() {
    let (_server, http) = admin();
    deployment(&http).await;
    let cannot = "Scale in version \"v1\" cannot be handled as a Scale: ";
    let field = "into Go struct field ScaleSpec.spec.replicas of type int32";
    for (spec, why) in [
        (
            json!({"replicas": "abc"}),
            format!("json: cannot unmarshal string {field}"),
        ),
        (
            json!({"replicas": 1.5}),
            format!("json: cannot unmarshal number 1.5 {field}"),
        ),
        (
            json!({"replicas": 3_000_000_000_u32}),
            format!("json: cannot unmarshal number 3000000000 {field}"),
        ),
        (
            json!({"replicas": []}),
            format!("json: cannot unmarshal array {field}"),
        ),
    ] {
        let body = json!({"metadata": {"name": "web"}, "spec": spec});
        let (code, refused) = http.call("PUT", SCALE, body).await;
        let expected = format!("{cannot}{why}");
        assert_eq!(
            (code, refused["message"].as_str()),
            (400, Some(expected.as_str())),
            "{spec}"
        );
        for (media, patch) in [
            ("application/merge-patch+json", json!({"spec": spec})),
            (
                "application/strategic-merge-patch+json",
                json!({"spec": spec}),
            ),
            (
                "application/json-patch+json",
                json!([{"op": "add", "path": "/spec", "value": spec}]),
            ),
        ] {
            let (code, refused) = http.call_as("PATCH", SCALE, media, patch).await;
            assert_eq!(code, 422, "{media} {spec}: {refused}");
        }
        let apply = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": spec});
        let (code, refused) = http.apply(SCALE, "m", apply).await;
        assert!(code >= 400, "{spec}: {code} {refused}");
    }
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}});
    let (code, refused) = http.call("PUT", SCALE, other).await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (
            400,
            Some(
                "ConfigMap in version \"v1\" cannot be handled as a Scale: converting (v1.ConfigMap) to (autoscaling.Scale): unknown conversion"
            )
        )
    );
    let (_, live) = http.get(&format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(live["spec"]["replicas"], 1);
    let unknown = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "more": 1}});
    let (code, refused) = http
        .call(
            "PUT",
            &format!("{SCALE}?fieldValidation=Strict"),
            unknown.clone(),
        )
        .await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (
            400,
            Some(format!("{cannot}strict decoding error: unknown field \"spec.more\"").as_str())
        )
    );
    let (code, scaled) = http.call("PUT", SCALE, unknown).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(2)));
    assert_eq!(scaled["status"]["selector"], "app=web,tier in (a,b)");
}

#[tokio::test]
async fn custom_resources_must_have_what_they_are_scaled_by() {
    let (_server, http) = admin();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                }}},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(http.post(definitions, definition).await.0, 201);
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
    assert_eq!(http.post(things, thing).await.0, 201);
    let scale = format!("{things}/a/scale");
    let message = |answer: (u16, Value)| {
        let message = answer.1["message"].as_str().unwrap_or_default().to_owned();
        (answer.0, message)
    };
    assert_eq!(
        message(http.get(&scale).await),
        (
            500,
            "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist"
                .to_owned()
        )
    );
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(
        message(http.call("PATCH", &scale, label).await),
        (
            400,
            "the spec replicas field \".spec.replicas\" cannot be empty".to_owned()
        )
    );
    let (code, scaled) = http
        .call("PATCH", &scale, json!({"spec": {"replicas": 4}}))
        .await;
    assert_eq!(
        (code, &scaled["spec"]["replicas"]),
        (200, &json!(4)),
        "{scaled}"
    );
    assert_eq!(http.get(&scale).await.1["spec"]["replicas"], 4);
}

#[tokio::test]
async fn who_scales_owns_the_replicas() {
    let (_server, http) = admin();
    deployment(&http).await;
    let owners = async || {
        let (_, live) = http.get(&format!("{DEPLOYMENTS}/web")).await;
        let entries = live["metadata"]["managedFields"].as_array().cloned();
        let by_scale = entries.unwrap_or_default().into_iter();
        let by_scale: Vec<Value> = by_scale
            .filter(|entry| entry["subresource"] == "scale")
            .collect();
        (live["spec"]["replicas"].clone(), by_scale)
    };
    let to = |replicas: u32| json!({"spec": {"replicas": replicas}});
    let (code, scaled) = http.call("PATCH", SCALE, to(5)).await;
    assert_eq!(code, 200, "{scaled}");
    assert!(
        scaled["metadata"].get("managedFields").is_none(),
        "{scaled}"
    );
    // Nobody owned what was only defaulted, but the object is tracked by others.
    let entry = json!({
        "manager": "tests", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "subresource": "scale",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    });
    let (replicas, found) = owners().await;
    assert_eq!(replicas, 5);
    assert!(found.is_empty() || found == [entry], "{found:?}");

    let wanted = |replicas: u32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": replicas}});
    let (code, refused) = http.apply(SCALE, "hpa", wanted(8)).await;
    assert_eq!(code, 409, "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with(" with subresource \"scale\" using autoscaling/v1: .spec.replicas"),
        "{message}"
    );
    let forced = format!("{SCALE}?force=true");
    let (code, scaled) = http.apply(&forced, "hpa", wanted(8)).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(8)));
    let (replicas, found) = owners().await;
    assert_eq!((replicas, found.len()), (json!(8), 1), "{found:?}");
    assert_eq!(
        (&found[0]["manager"], &found[0]["operation"]),
        (&json!("hpa"), &json!("Apply"))
    );

    // A scale of zero has no replicas, so nobody owns them.
    let (code, scaled) = http.call("PATCH", SCALE, to(0)).await;
    assert_eq!((code, &scaled["spec"]), (200, &json!({})), "{scaled}");
    assert_eq!(owners().await, (json!(0), Vec::new()));

    let other = json!({"metadata": {"uid": "other"}, "spec": {"replicas": 1}});
    let (code, refused) = http.call("PATCH", SCALE, other).await;
    let message = refused["message"].as_str().unwrap();
    assert_eq!(code, 409, "{refused}");
    assert!(
        message.contains(
            "deployments/scale.apps \"web\": Precondition failed: UID in precondition: other"
        ),
        "{message}"
    );
}
