//! Claims and volumes.

use serde_json::{Value, json};

use crate::world::{World, addressed, after, has};

fn claim(annotations: &[(&str, &str)], spec: Value) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": addressed(annotations)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        claim["spec"][key] = value.clone();
    }
    claim
}

fn class(name: &str, mode: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "example.com/disks", "volumeBindingMode": mode})
}

fn user(claim: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": {
        "containers": [{"name": "main", "image": "example.com/app:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}})
}

async fn volume(world: &World) -> Value {
    world
        .list("PersistentVolume")
        .await
        .into_iter()
        .next()
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn claims_get_a_volume_of_the_default_class() {
    let world = World::new();
    world.create(claim(&[], json!({}))).await;
    after(0.5).await;
    has(
        &world.get("PersistentVolumeClaim", "data").await,
        json!({
        "spec": {"storageClassName": "standard"}, "status": {"phase": "Pending"}}),
    );
    after(1.0).await;
    let found = world.get("PersistentVolumeClaim", "data").await;
    let name = format!("pvc-{}", found["metadata"]["uid"].as_str().unwrap());
    has(
        &found,
        json!({
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes",
                "volume.kubernetes.io/storage-provisioner": "actor.reeve.dev/volumes"}},
            "spec": {"volumeName": name},
            "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
        }),
    );
    has(
        &volume(&world).await,
        json!({
            "metadata": {"name": name},
            "spec": {"capacity": {"storage": "1Gi"}, "storageClassName": "standard",
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {"namespace": "default", "name": "data", "uid": found["metadata"]["uid"]}},
            "status": {"phase": "Bound"},
        }),
    );
    world.delete("PersistentVolumeClaim", "data").await;
    world.settle().await;
    assert_eq!(
        world.get("PersistentVolumeClaim", "data").await,
        Value::Null
    );
    assert_eq!(volume(&world).await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn claims_that_wait_for_a_consumer_get_their_volume_with_it() {
    let world = World::new();
    world.create(class("local", "WaitForFirstConsumer")).await;
    world
        .create(claim(&[], json!({"storageClassName": "local"})))
        .await;
    after(60.0).await;
    has(
        &world.get("PersistentVolumeClaim", "data").await,
        json!({"status": {"phase": "Pending"}}),
    );
    assert_eq!(
        world.events("data").await,
        ["WaitForFirstConsumer: waiting for first consumer to be created before binding"]
    );
    world.create(user("data")).await;
    after(3.0).await;
    has(
        &world.get("PersistentVolumeClaim", "data").await,
        json!({"status": {"phase": "Bound"},
        "metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}}),
    );
    has(
        &world.get("Pod", "user").await["status"],
        json!({"phase": "Running"}),
    );
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_their_claims() {
    let world = World::new();
    world.create(user("data")).await;
    world.settle().await;
    let reason =
        |message: &str| json!({"conditions": [{"type": "PodScheduled", "message": message}]});
    has(
        &world.get("Pod", "user").await["status"],
        reason("persistentvolumeclaim \"data\" not found"),
    );
    world
        .create(claim(&[("ready-after", "10s")], json!({})))
        .await;
    after(5.0).await;
    has(
        &world.get("Pod", "user").await["status"],
        reason("pod has unbound immediate PersistentVolumeClaims"),
    );
    after(10.0).await;
    has(
        &world.get("Pod", "user").await["status"],
        json!({"phase": "Running"}),
    );
    // A claim in use stays until it is let go of.
    world.delete("PersistentVolumeClaim", "data").await;
    world.settle().await;
    assert_ne!(
        world.get("PersistentVolumeClaim", "data").await,
        Value::Null
    );
    world.delete("Pod", "user").await;
    world.settle().await;
    assert_eq!(
        world.get("PersistentVolumeClaim", "data").await,
        Value::Null
    );
}

#[tokio::test(start_paused = true)]
async fn volumes_that_are_there_are_taken_first() {
    let world = World::new();
    for (name, size) in [("big", "10Gi"), ("small", "2Gi"), ("tiny", "1Mi")] {
        world
            .create(
                json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size},
                "storageClassName": "manual", "hostPath": {"path": "/data"}}}),
            )
            .await;
    }
    world.settle().await;
    has(
        &world.get("PersistentVolume", "small").await["status"],
        json!({"phase": "Available"}),
    );
    world
        .create(claim(&[], json!({"storageClassName": "manual"})))
        .await;
    world.settle().await;
    has(
        &world.get("PersistentVolumeClaim", "data").await,
        json!({"spec": {"volumeName": "small"},
        "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}),
    );
    world.delete("PersistentVolumeClaim", "data").await;
    world.settle().await;
    has(
        &world.get("PersistentVolume", "small").await["status"],
        json!({"phase": "Released"}),
    );
}

#[tokio::test(start_paused = true)]
async fn claims_that_nobody_can_serve_say_why() {
    for (name, event) in [
        (
            "",
            "FailedBinding: no persistent volumes available for this claim and no storage class is set",
        ),
        (
            "none",
            "ProvisioningFailed: storageclass.storage.k8s.io \"none\" not found",
        ),
    ] {
        let world = World::new();
        world
            .create(claim(&[], json!({"storageClassName": name})))
            .await;
        after(60.0).await;
        has(
            &world.get("PersistentVolumeClaim", "data").await,
            json!({"status": {"phase": "Pending"}}),
        );
        assert_eq!(world.events("data").await, [event]);
    }
    let world = World::new();
    world.create(claim(&[("stall", "true")], json!({}))).await;
    after(3600.0).await;
    has(
        &world.get("PersistentVolumeClaim", "data").await,
        json!({"status": {"phase": "Pending"}}),
    );
}

/// As with a namespace, or a garbage collector, that deletes both at once.
#[tokio::test(start_paused = true)]
async fn a_volume_that_is_deleted_first_goes_with_its_claim() {
    let world = World::new();
    world
        .create(
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "kept"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": "example.com", "volumeHandle": "kept"}}}),
        )
        .await;
    let spec = json!({"storageClassName": "", "volumeName": "kept"});
    world.create(claim(&[], spec)).await;
    after(2.0).await;
    has(&volume(&world).await, json!({"status": {"phase": "Bound"}}));
    world.delete("PersistentVolume", "kept").await;
    after(60.0).await;
    has(&volume(&world).await, json!({"status": {"phase": "Bound"}}));
    world.delete("PersistentVolumeClaim", "data").await;
    world.settle().await;
    assert_eq!(volume(&world).await, Value::Null);
}
