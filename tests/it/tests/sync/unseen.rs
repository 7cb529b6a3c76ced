//! What the agent cannot see for a while: it is not taken for gone.

use reeve_it::NAMESPACE;
use reeve_sim::Verb;
use serde_json::{Value, json};

use crate::stage::{OTHER, Stage, bundle, config_map, widget};

fn agent_role() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "courier-agent"}})
}

/// Takes from the agent the right to see ConfigMaps, as somebody does who applies roles
/// anew. Returns the rules that it had.
async fn blind(stage: &Stage) -> Value {
    let role = stage.world.get(&agent_role()).await.unwrap();
    let rules = role["rules"].as_array().unwrap().iter();
    let fewer: Vec<&Value> = rules
        .filter(|rule| rule["resources"] != json!(["configmaps"]))
        .collect();
    stage
        .world
        .edit(&agent_role(), json!({"rules": fewer}))
        .await;
    stage.world.server.faults().drop_watches();
    stage.world.server.compact();
    stage.pass(30).await;
    role["rules"].clone()
}

async fn see(stage: &Stage, rules: &Value) {
    stage
        .world
        .edit(&agent_role(), json!({"rules": rules}))
        .await;
    stage.pass(60).await;
}

/// Out of reach of garbage collection.
fn far(name: &str) -> Value {
    let mut object = config_map(name, 0);
    object["metadata"]["namespace"] = json!(OTHER);
    object
}

async fn stage() -> Stage {
    let stage = Stage::new().await;
    stage.bundle("one", &[far("far"), widget("near", 0)]).await;
    stage.pass(20).await;
    assert!(stage.exists(&far("far")).await);
    assert_eq!(stage.unit("one").await, None);
    stage
}

#[tokio::test(start_paused = true)]
async fn what_is_withdrawn_unseen_is_deleted_when_it_is_seen_again() {
    let stage = stage().await;
    let rules = blind(&stage).await;
    stage.bundle("one", &[widget("near", 0)]).await;
    stage.pass(30).await;
    let (reason, message) = stage.said("one", "Ready").await;
    assert_eq!(reason, "Forbidden", "{message}");
    let text = format!("ConfigMap {OTHER}/far cannot be seen");
    assert!(message.contains(&text), "{message}");
    assert!(stage.exists(&far("far")).await);
    see(&stage, &rules).await;
    assert!(!stage.exists(&far("far")).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_a_primary_left_unseen_is_swept_up_when_it_is_seen_again() {
    let stage = stage().await;
    let rules = blind(&stage).await;
    stage.world.delete(&bundle("one")).await;
    stage.pass(30).await;
    assert!(!stage.exists(&bundle("one")).await);
    assert!(stage.exists(&far("far")).await);
    see(&stage, &rules).await;
    assert!(!stage.exists(&far("far")).await);
    assert_eq!(stage.unit("one").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_primary_that_waits_is_not_let_go_before_all_is_seen() {
    let stage = Stage::new().await;
    let patch =
        json!([{"apiGroups": ["example.com"], "resources": ["bundles"], "verbs": ["patch"]}]);
    let account = json!({"kind": "ServiceAccount", "name": "courier", "namespace": NAMESPACE});
    stage.world.role("courier-hold", &patch, &account).await;
    stage.pass(700).await;
    stage.bundle("one", &[far("far"), widget("near", 0)]).await;
    stage.pass(20).await;
    let rules = blind(&stage).await;
    stage.world.delete(&bundle("one")).await;
    stage.pass(30).await;
    assert!(stage.exists(&bundle("one")).await, "it waits");
    assert!(stage.exists(&far("far")).await);
    see(&stage, &rules).await;
    assert!(!stage.exists(&bundle("one")).await);
    assert!(!stage.exists(&far("far")).await);
}

/// No watch has told that somebody has marked what the primary left: one look at it is
/// enough.
#[tokio::test(start_paused = true)]
async fn what_was_marked_unheard_is_looked_at_once() {
    let stage = Stage::new().await;
    let mut held = far("far");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    stage.bundle("one", &[held.clone()]).await;
    stage.pass(20).await;
    let fault = "silent-watch: resource=configmaps".parse().unwrap();
    stage.world.server.set_faults(vec![fault]);
    stage.world.delete(&held).await;
    stage.world.server.reset_requests();
    stage.world.delete(&bundle("one")).await;
    stage.pass(5).await;
    let gets = stage.world.server.requests().count(Verb::Get, "configmaps");
    assert_eq!(gets, 1);
}
