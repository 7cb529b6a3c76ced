//! What is special about some built-in kinds.

use crate::support::admin;
use serde_json::json;

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
