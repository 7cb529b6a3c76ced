//! Leases of Nodes.

use serde_json::json;

use crate::world::{World, after, has};

#[tokio::test(start_paused = true)]
async fn a_node_has_a_lease_for_as_long_as_it_is_there() {
    let world = World::new();
    // Actors begin with the first request.
    let node = world.get("Node", "node-1").await;
    after(1.0).await;
    let lease = world.get("Lease", "node-1").await;
    has(
        &lease,
        json!({
            "metadata": {"ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": node["metadata"]["uid"],
            }]},
            "spec": {
                "holderIdentity": "node-1",
                "leaseDurationSeconds": 40,
                "renewTime": "2026-01-01T00:00:00.000000Z",
            },
        }),
    );
    // Of an idle cluster nothing is written.
    after(3600.0).await;
    let later = world.get("Lease", "node-1").await;
    assert_eq!(later, lease);

    world
        .patch(
            "Node",
            "node-1",
            json!({"metadata": {"labels": {"a": "b"}}}),
        )
        .await;
    after(1.0).await;
    let renewed = world.get("Lease", "node-1").await;
    has(
        &renewed,
        json!({"spec": {"renewTime": "2026-01-01T01:00:01.000000Z"}}),
    );

    // One that is deleted comes back, as long as its Node is there.
    world.delete("Lease", "node-1").await;
    after(1.0).await;
    let again = world.get("Lease", "node-1").await;
    has(
        &again,
        json!({
            "metadata": {"ownerReferences": lease["metadata"]["ownerReferences"]},
            "spec": {"holderIdentity": "node-1", "renewTime": "2026-01-01T01:00:02.000000Z"},
        }),
    );
    assert_ne!(again["metadata"]["uid"], lease["metadata"]["uid"]);

    world.delete("Node", "node-1").await;
    after(1.0).await;
    assert!(world.get("Lease", "node-1").await.is_null());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_lets_its_lease_lapse() {
    let world = World::new();
    let node = |name: &str, ready: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    };
    world.create(node("other", "True")).await;
    world.create(node("silent", "Unknown")).await;
    after(1.0).await;
    has(
        &world.get("Lease", "other").await,
        json!({"spec": {"holderIdentity": "other"}}),
    );
    assert!(world.get("Lease", "silent").await.is_null());
}
