//! StatefulSets.

use serde_json::{Value, json};

use crate::world::{World, after, has, workload};

fn stateful_set(annotations: &[(&str, &str)], spec: Value) -> Value {
    let mut set = workload("StatefulSet", "db", annotations, spec);
    set["spec"]["serviceName"] = json!("db");
    set
}

async fn status(world: &World) -> Value {
    world.get("StatefulSet", "db").await["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn pods_come_one_after_the_other() {
    let world = World::new();
    world
        .create(stateful_set(&[], json!({"replicas": 3})))
        .await;
    for (at, names) in [
        (0.5, &["db-0"][..]),
        (1.0, &["db-0", "db-1"][..]),
        (1.0, &["db-0", "db-1", "db-2"][..]),
    ] {
        after(at).await;
        assert_eq!(world.names("Pod").await, names);
    }
    after(1.0).await;
    let status = status(&world).await;
    let revision = world.names("ControllerRevision").await;
    has(
        &status,
        json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3,
        "currentReplicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "collisionCount": 0,
        "currentRevision": revision[0], "updateRevision": revision[0]}),
    );
    has(
        &world.get("Pod", "db-1").await,
        json!({
            "metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "db-1",
                "apps.kubernetes.io/pod-index": "1", "controller-revision-hash": revision[0]}},
            "spec": {"hostname": "db-1", "subdomain": "db"},
        }),
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_holds_the_others_up() {
    let world = World::new();
    world
        .create(stateful_set(&[("stall", "true")], json!({"replicas": 3})))
        .await;
    after(60.0).await;
    assert_eq!(world.names("Pod").await, ["db-0"]);
    has(
        &status(&world).await,
        json!({"replicas": 1, "readyReplicas": null}),
    );
    let world = World::new();
    let spec = json!({"replicas": 3, "podManagementPolicy": "Parallel"});
    world.create(stateful_set(&[("stall", "true")], spec)).await;
    world.settle().await;
    assert_eq!(world.names("Pod").await, ["db-0", "db-1", "db-2"]);
}

#[tokio::test(start_paused = true)]
async fn updates_go_from_the_last_to_the_partition() {
    let world = World::new();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    world
        .create(stateful_set(
            &[],
            json!({"replicas": 3, "updateStrategy": strategy}),
        ))
        .await;
    after(5.0).await;
    let before = status(&world).await;
    world
        .patch(
            "StatefulSet",
            "db",
            json!({"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}),
        )
        .await;
    after(0.5).await;
    has(
        &status(&world).await,
        json!({"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 1}),
    );
    after(5.0).await;
    let after_partition = status(&world).await;
    has(
        &after_partition,
        json!({"readyReplicas": 3, "updatedReplicas": 2, "currentReplicas": 1,
        "currentRevision": before["currentRevision"]}),
    );
    assert_ne!(after_partition["updateRevision"], before["currentRevision"]);
    world
        .patch(
            "StatefulSet",
            "db",
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}),
        )
        .await;
    after(5.0).await;
    has(
        &status(&world).await,
        json!({"updatedReplicas": 3, "currentReplicas": 3,
        "currentRevision": after_partition["updateRevision"]}),
    );
}

#[tokio::test(start_paused = true)]
async fn claims_are_made_and_stay() {
    let world = World::new();
    let templates = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}]);
    world
        .create(stateful_set(
            &[],
            json!({"replicas": 2, "volumeClaimTemplates": templates}),
        ))
        .await;
    after(10.0).await;
    has(&status(&world).await, json!({"readyReplicas": 2}));
    assert_eq!(
        world.names("PersistentVolumeClaim").await,
        ["data-db-0", "data-db-1"]
    );
    has(
        &world.get("PersistentVolumeClaim", "data-db-0").await,
        json!({"status": {"phase": "Bound"}}),
    );
    world
        .patch("StatefulSet", "db", json!({"spec": {"replicas": 0}}))
        .await;
    after(1.0).await;
    assert_eq!(world.names("Pod").await, [""; 0]);
    assert_eq!(world.names("PersistentVolumeClaim").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_uses_no_quota() {
    let world = World::new();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few"}, "spec": {"hard": {"pods": "5"}},
    });
    world.create(quota).await;
    let stranger = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    world.create(stranger).await;
    world
        .create(workload("StatefulSet", "web", &[], json!({"replicas": 1})))
        .await;
    // Time passes, so somebody has come to rest.
    after(5.0).await;
    let quota = world.get("ResourceQuota", "few").await;
    assert_eq!(quota["status"]["used"], json!({"pods": "1"}));
    let before = quota["metadata"]["resourceVersion"].clone();
    after(60.0).await;
    let quota = world.get("ResourceQuota", "few").await;
    assert_eq!(quota["metadata"]["resourceVersion"], before);
}
