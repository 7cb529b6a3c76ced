//! What actors cost when nothing happens.

use std::time::Duration;

use reeve_sim::{Actors, Clock, Config, Server};
use serde_json::json;

use crate::world::{World, after, has, workload};

#[tokio::test(start_paused = true)]
async fn a_day_in_which_nothing_happens_is_one_step() {
    let world = World::new();
    world
        .create(workload("Deployment", "web", &[], json!({"replicas": 3})))
        .await;
    world
        .create(workload("DaemonSet", "agent", &[], json!({})))
        .await;
    after(5.0).await;
    let before = world.get("Deployment", "web").await;
    let version = before["metadata"]["resourceVersion"].clone();
    // Whoever wakes up at any time would end this sleep's leap over the day.
    let metrics = tokio::runtime::Handle::current().metrics();
    let _ = metrics.num_alive_tasks();
    let begun = std::time::Instant::now();
    after(24.0 * 3600.0).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    let found = world.get("Deployment", "web").await;
    has(&found, json!({"metadata": {"resourceVersion": version}}));
    let made = world
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))
        .await;
    let number = |version: &serde_json::Value| version.as_str().unwrap().parse::<u64>().unwrap();
    let pods = world.list("Pod").await;
    let latest = pods
        .iter()
        .map(|pod| number(&pod["metadata"]["resourceVersion"]))
        .max()
        .unwrap();
    assert!(
        number(&made["metadata"]["resourceVersion"]) < latest + 20,
        "nothing was written meanwhile"
    );
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stands_still_keeps_nobody_busy() {
    let server = Server::new(Config {
        clock: Clock::new(|| std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
        actors: Some(Actors::default()),
        ..Config::default()
    });
    let client = server.client();
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::default_namespaced(client);
    let pod = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {
        "containers": [{"name": "main", "image": "example.com/app:1"}]}}))
    .unwrap();
    pods.create(&kube::api::PostParams::default(), &pod)
        .await
        .unwrap();
    // With timers that never come due, this would not end.
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    let found = pods.get("a").await.unwrap();
    assert_eq!(found.status.unwrap().phase.as_deref(), Some("Running"));
}
