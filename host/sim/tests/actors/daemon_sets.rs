//! DaemonSets.

use reeve_sim::Actors;
use serde_json::json;

use crate::world::{World, after, has, workload};

fn three_nodes() -> World {
    World::with(Actors {
        nodes: 3,
        ..Actors::default()
    })
}

#[tokio::test(start_paused = true)]
async fn every_node_gets_a_pod() {
    let world = three_nodes();
    world
        .create(workload("DaemonSet", "agent", &[], json!({})))
        .await;
    world.settle().await;
    has(
        &world.get("DaemonSet", "agent").await["status"],
        json!({"desiredNumberScheduled": 3,
        "currentNumberScheduled": 3, "numberReady": 0, "numberUnavailable": 3, "numberAvailable": null}),
    );
    after(2.0).await;
    has(
        &world.get("DaemonSet", "agent").await["status"],
        json!({"observedGeneration": 1,
        "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 3,
        "numberReady": 3, "numberAvailable": 3, "numberMisscheduled": 0, "numberUnavailable": null}),
    );
    let mut nodes: Vec<String> = world
        .list("Pod")
        .await
        .iter()
        .map(|pod| pod["spec"]["nodeName"].as_str().unwrap().to_owned())
        .collect();
    nodes.sort();
    assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
}

#[tokio::test(start_paused = true)]
async fn nodes_come_into_question_by_their_labels() {
    let world = three_nodes();
    let mut set = workload("DaemonSet", "agent", &[], json!({}));
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"gpu": "yes"});
    world.create(set).await;
    after(1.0).await;
    has(
        &world.get("DaemonSet", "agent").await["status"],
        json!({"observedGeneration": 1,
        "desiredNumberScheduled": 0, "numberReady": 0}),
    );
    world
        .patch(
            "Node",
            "node-2",
            json!({"metadata": {"labels": {"gpu": "yes"}}}),
        )
        .await;
    after(2.0).await;
    has(
        &world.get("DaemonSet", "agent").await["status"],
        json!({"desiredNumberScheduled": 1, "numberReady": 1}),
    );
    world
        .patch(
            "Node",
            "node-2",
            json!({"metadata": {"labels": {"gpu": null}}}),
        )
        .await;
    after(1.0).await;
    has(
        &world.get("DaemonSet", "agent").await["status"],
        json!({"desiredNumberScheduled": 0, "numberReady": 0}),
    );
    assert_eq!(world.names("Pod").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn new_templates_replace_one_pod_at_a_time() {
    let world = three_nodes();
    world
        .create(workload("DaemonSet", "agent", &[], json!({})))
        .await;
    after(2.0).await;
    world
        .patch(
            "DaemonSet",
            "agent",
            json!({"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}),
        )
        .await;
    world.settle().await;
    has(
        &world.get("DaemonSet", "agent").await["status"],
        json!({"observedGeneration": 2,
        "updatedNumberScheduled": 1, "numberAvailable": 2, "numberUnavailable": 1}),
    );
    after(5.0).await;
    has(
        &world.get("DaemonSet", "agent").await["status"],
        json!({"updatedNumberScheduled": 3, "numberAvailable": 3}),
    );
    assert_eq!(world.names("ControllerRevision").await.len(), 2);
}
