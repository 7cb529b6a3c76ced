//! Claims on volumes, which may wait for the Pod that waits for them.

use serde_json::{Value, json};

use crate::stage::{AGENT_CLASSES, APPS, Stage, config_map, with};

fn class(name: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "example.com/none", "volumeBindingMode": mode,
    })
}

fn claim(name: &str, class: &str) -> Value {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": APPS},
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    // Nobody provisions it.
    with(claim, &[("actor.reeve.dev/stall", "true")])
}

async fn said(stage: &Stage) -> String {
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "Waiting", "{message}");
    message
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_for_a_pod_holds_nothing_up() {
    let stage = Stage::new().await;
    stage
        .world
        .apply(&class("late", "WaitForFirstConsumer"))
        .await;
    stage.world.apply(&class("early", "Immediate")).await;
    let objects = |class: &str| [claim(class, class), config_map(class, 1)];
    stage.bundle("two", &objects("late")).await;
    stage.bundle("one", &objects("early")).await;
    stage.pass(10).await;
    assert!(stage.exists(&config_map("late", 1)).await);
    assert_eq!(stage.unit("two").await, None);
    assert!(!stage.exists(&config_map("early", 1)).await);
    let message = said(&stage).await;
    assert!(message.contains("it is not bound yet"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_class_that_comes_later_is_noticed() {
    let stage = Stage::new().await;
    let objects = [claim("a", "late"), config_map("a", 1)];
    stage.bundle("one", &objects).await;
    stage.pass(10).await;
    said(&stage).await;
    stage
        .world
        .apply(&class("late", "WaitForFirstConsumer"))
        .await;
    stage.pass(2).await;
    assert!(stage.exists(&config_map("a", 1)).await);
    assert_eq!(stage.unit("one").await, None);
}

/// An agent that may not see StorageClasses does all else, and says what it lacks.
#[tokio::test(start_paused = true)]
async fn without_the_right_to_see_classes_claims_are_waited_for() {
    let stage = Stage::new().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": AGENT_CLASSES},
    });
    stage.world.delete(&role).await;
    stage
        .world
        .apply(&class("late", "WaitForFirstConsumer"))
        .await;
    let mut stage = stage;
    stage.restart().await;
    let objects = [config_map("b", -1), claim("a", "late"), config_map("a", 1)];
    stage.bundle("one", &objects).await;
    stage.pass(10).await;
    assert!(stage.exists(&config_map("b", -1)).await);
    assert!(!stage.exists(&config_map("a", 1)).await);
    let message = said(&stage).await;
    for part in ["StorageClass late cannot be seen", "storageclasses"] {
        assert!(message.contains(part), "{message}");
    }
    let ready = stage.world.plugin_condition("courier", "Loaded").await;
    assert_eq!(ready.status, "True", "{ready:?}");
}
