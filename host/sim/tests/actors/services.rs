//! Services, what is behind them, and disruption budgets.

use serde_json::{Value, json};

use crate::world::{World, addressed, after, conditions, has, workload};

fn service(kind: &str, annotations: &[(&str, &str)]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "annotations": addressed(annotations)},
        "spec": {"type": kind, "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    })
}

#[tokio::test(start_paused = true)]
async fn load_balancers_get_an_address() {
    let world = World::new();
    world
        .create(service("LoadBalancer", &[("ready-after", "5s")]))
        .await;
    after(4.0).await;
    has(
        &world.get("Service", "web").await,
        json!({"status": {"loadBalancer": {"ingress": null}}}),
    );
    after(2.0).await;
    has(
        &world.get("Service", "web").await,
        json!({
        "metadata": {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]},
        "status": {"loadBalancer": {"ingress": [{"ip": "198.18.0.1", "ipMode": "VIP"}]}}}),
    );
    world
        .patch("Service", "web", json!({"spec": {"type": "ClusterIP"}}))
        .await;
    world.settle().await;
    has(
        &world.get("Service", "web").await,
        json!({"metadata": {"finalizers": null},
        "status": {"loadBalancer": {"ingress": null}}}),
    );
    world
        .patch("Service", "web", json!({"spec": {"type": "LoadBalancer"}}))
        .await;
    world.settle().await;
    world.delete("Service", "web").await;
    world.settle().await;
    assert_eq!(world.get("Service", "web").await, Value::Null);
    let world = World::new();
    world
        .create(service("LoadBalancer", &[("stall", "true")]))
        .await;
    after(3600.0).await;
    has(
        &world.get("Service", "web").await,
        json!({"status": {"loadBalancer": {"ingress": null}}}),
    );
}

#[tokio::test(start_paused = true)]
async fn endpoints_are_the_pods_behind_a_service() {
    let world = World::new();
    world.create(service("ClusterIP", &[])).await;
    world
        .create(workload("Deployment", "web", &[], json!({"replicas": 2})))
        .await;
    after(0.5).await;
    let slice = |world: Vec<Value>| world.into_iter().next().unwrap();
    has(
        &slice(world.list("EndpointSlice").await),
        json!({"endpoints": [
        {"conditions": {"ready": false}}, {"conditions": {"ready": false}}]}),
    );
    has(
        &world.get("Endpoints", "web").await,
        json!({"subsets": [{"addresses": null,
        "notReadyAddresses": [{"ip": "10.128.0.1"}, {"ip": "10.128.0.2"}]}]}),
    );
    after(1.0).await;
    has(
        &slice(world.list("EndpointSlice").await),
        json!({
            "metadata": {"labels": {"kubernetes.io/service-name": "web"},
                "ownerReferences": [{"kind": "Service", "name": "web"}]},
            "addressType": "IPv4",
            "ports": [{"port": 8080, "protocol": "TCP", "name": ""}],
            "endpoints": [
                {"conditions": {"ready": true, "serving": true, "terminating": false}, "nodeName": "node-1"},
                {"conditions": {"ready": true, "serving": true, "terminating": false}, "nodeName": "node-1"},
            ],
        }),
    );
    has(
        &world.get("Endpoints", "web").await,
        json!({"subsets": [{"notReadyAddresses": null,
        "addresses": [{"ip": "10.128.0.1"}, {"ip": "10.128.0.2"}], "ports": [{"port": 8080}]}]}),
    );
    world.delete("Service", "web").await;
    world.settle().await;
    assert_eq!(world.names("EndpointSlice").await, [""; 0]);
    assert_eq!(world.names("Endpoints").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn budgets_say_how_many_may_go() {
    let world = World::new();
    world.create(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}})).await;
    world
        .create(workload("Deployment", "web", &[], json!({"replicas": 3})))
        .await;
    after(0.5).await;
    let found = world.get("PodDisruptionBudget", "web").await;
    has(
        &found["status"],
        json!({"currentHealthy": 0, "desiredHealthy": 2, "disruptionsAllowed": 0,
        "expectedPods": 3, "observedGeneration": 1}),
    );
    assert_eq!(
        conditions(&found),
        ["DisruptionAllowed=False InsufficientPods"]
    );
    after(1.0).await;
    let found = world.get("PodDisruptionBudget", "web").await;
    has(
        &found["status"],
        json!({"currentHealthy": 3, "disruptionsAllowed": 1}),
    );
    assert_eq!(
        conditions(&found),
        ["DisruptionAllowed=True SufficientPods"]
    );
}
