//! What is special about some built-in kinds.

use crate::support::admin;
use serde_json::{Value, json};

#[tokio::test]
async fn events_are_the_same_in_both_groups() {
    let (_server, http) = admin();
    let event = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "action": "Reconcile",
        "reason": "Refused",
        "note": "no",
        "type": "Warning",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"},
    });
    let (code, made) = http
        .post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        .await;
    assert_eq!(code, 201, "{made}");
    let core = "/api/v1/namespaces/default/events";
    let (code, list) = http
        .get(&format!("{core}?fieldSelector=involvedObject.name%3Da"))
        .await;
    assert_eq!((code, &list["items"][0]["message"]), (200, &json!("no")));
    let (_, list) = http
        .get(&format!("{core}?fieldSelector=involvedObject.name%3Db"))
        .await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn services_get_addresses_of_their_own() {
    let (_server, http) = admin();
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80}], "selector": {"a": "b"}},
        })
    };
    let mut seen = std::collections::BTreeSet::new();
    for name in ["a", "b"] {
        let (code, made) = http.post(services, service(name)).await;
        assert_eq!(code, 201, "{made}");
        seen.insert(made["spec"]["clusterIP"].to_string());
        seen.insert(made["spec"]["ports"][0]["nodePort"].to_string());
        let patch = json!({"metadata": {"labels": {"l": "1"}}});
        let (_, later) = http
            .call("PATCH", &format!("{services}/{name}"), patch)
            .await;
        assert_eq!(later["spec"], made["spec"]);
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[tokio::test]
async fn status_and_scale_are_written_apart() {
    let (_server, http) = admin();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
        "status": {"replicas": 9},
    });
    let (code, made) = http.post(deployments, deployment).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        (
            &made["metadata"]["generation"],
            made["status"].get("replicas")
        ),
        (&json!(1), None)
    );
    let path = format!("{deployments}/d");
    let (code, got) = http
        .call(
            "PATCH",
            &format!("{path}/status"),
            json!({"spec": {"replicas": 7}, "status": {"replicas": 2}}),
        )
        .await;
    assert_eq!(code, 200, "{got}");
    assert_eq!(
        (
            &got["spec"]["replicas"],
            &got["status"]["replicas"],
            &got["metadata"]["generation"]
        ),
        (&json!(2), &json!(2), &json!(1))
    );
    let (code, scale) = http.get(&format!("{path}/scale")).await;
    assert_eq!(
        (
            code,
            &scale["spec"]["replicas"],
            &scale["status"]["selector"]
        ),
        (200, &json!(2), &json!("a=b"))
    );
    let (code, scale) = http
        .call(
            "PATCH",
            &format!("{path}/scale"),
            json!({"spec": {"replicas": 5}}),
        )
        .await;
    assert_eq!(
        (code, &scale["spec"]["replicas"]),
        (200, &json!(5)),
        "{scale}"
    );
    let (_, got) = http.get(&path).await;
    assert_eq!(
        (&got["spec"]["replicas"], &got["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
}

/// Who owns something of an object, in which version.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    let mut owners: Vec<_> = entries
        .iter()
        .map(|entry| format!("{} {}", text(entry, "manager"), text(entry, "apiVersion")))
        .collect();
    owners.sort();
    owners
}

#[tokio::test]
async fn autoscalers_of_both_versions_are_the_same() {
    let (_server, http) = admin();
    let path = |version: &str, name: &str| {
        format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers{name}")
    };
    let autoscaler = |version: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name}, "spec": spec,
        })
    };
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let memory = json!([{"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}}]);
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 60}});
    let two = json!({"maxReplicas": 3, "scaleTargetRef": target, "metrics": memory, "behavior": behavior});
    let made = autoscaler("v2", "two", two);
    let (code, made) = http
        .call(
            "POST",
            &format!("{}?fieldManager=ann", path("v2", "")),
            made,
        )
        .await;
    assert_eq!(code, 201, "{made}");
    let label = json!({"metadata": {"labels": {"l": "1"}}});
    let patch = format!("{}?fieldManager=bob", path("v1", "/two"));
    let (code, patched) = http.call("PATCH", &patch, label.clone()).await;
    assert_eq!(code, 200, "{patched}");
    let annotations = &patched["metadata"]["annotations"];
    assert!(
        annotations["autoscaling.alpha.kubernetes.io/metrics"].is_string(),
        "{patched}"
    );
    let (_, got) = http.get(&path("v2", "/two")).await;
    assert_eq!(got["spec"], made["spec"]);
    assert_eq!(got["metadata"].get("annotations"), None);
    assert_eq!(owners(&got), ["ann autoscaling/v2", "bob autoscaling/v1"]);

    let one =
        json!({"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50});
    let (code, made) = http
        .call(
            "POST",
            &format!("{}?fieldManager=ann", path("v1", "")),
            autoscaler("v1", "one", one),
        )
        .await;
    assert_eq!(code, 201, "{made}");
    let patch = format!("{}?fieldManager=bob", path("v2", "/one"));
    let (code, patched) = http.call("PATCH", &patch, label).await;
    assert_eq!(code, 200, "{patched}");
    let (_, got) = http.get(&path("v1", "/one")).await;
    assert_eq!(got["spec"], made["spec"]);
    assert_eq!(owners(&got), ["ann autoscaling/v1", "bob autoscaling/v2"]);
    // Whose writes change nothing writes nothing.
    let (_, again) = http
        .call(
            "PATCH",
            &path("v1", "/one"),
            json!({"metadata": {"labels": {"l": "1"}}}),
        )
        .await;
    assert_eq!(again, got);
}
