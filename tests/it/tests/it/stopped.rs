//! A plugin that stops for a while, or might have, finds what it has done outside again.

use crate::effects::{self, Service, action, capabilities, fact};
use reeve_agent::Agent;
use reeve_it::{
    NAMESPACE, World, config_map_reference, guest, plugin_reference, profile_reference,
};
use reeve_sim::Outage;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than the answers about rights are fresh.
const RECHECK: Duration = Duration::from_secs(40);

/// A world in which alice's resource is made outside, and where that is.
async fn made() -> (World, Service, String) {
    let (world, service, url) = effects::world(json!({"retire": true})).await;
    grant(&world, &url).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    (world, service, url)
}

async fn grant(world: &World, url: &str) {
    let mut plugin = plugin_reference("envoy");
    plugin["spec"] = json!({"capabilities": capabilities(url)});
    world.apply(&plugin).await;
}

async fn deliver(world: &World, url: &str) {
    let component = [("plugin.wasm", guest("envoy"))];
    let config = json!({"retire": true, "service": url});
    world.deliver("envoy", &component, Some(config)).await;
}

/// Has alice's unit run, which asks about rights anew, and lets some time pass.
async fn recheck(world: &World) {
    tokio::time::sleep(RECHECK).await;
    let now = format!("{:?}", tokio::time::Instant::now());
    let patch = json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": now}}});
    world.edit(&profile_reference("alice"), patch).await;
    world.wait(RECHECK).await;
}

async fn unit(world: &World) -> Value {
    world.unit("envoy", "alice").await.unwrap_or_default()
}

fn faults(world: &World, texts: &[&str]) {
    let faults = texts.iter().map(|text| text.parse().unwrap());
    world.server.set_faults(faults.collect());
}

/// What was made is known as it was, and is not made again.
async fn is_known(world: &World, service: &Service, before: &Value) {
    let after = unit(world).await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let made = |unit: &Value| unit["status"]["actions"][0]["appliedAt"].clone();
    assert_eq!(made(&after), made(before));
    assert_eq!(fact(world).await, r#"{"answer":"made"}"#);
    let asked = service.asked();
    assert!(!asked.contains(&"PUT alice".to_owned()), "{asked:?}");
}

/// That the API server does not answer says nothing about an account.
#[tokio::test(start_paused = true)]
async fn an_account_that_cannot_be_read_stops_nothing() {
    for fault in [
        "unavailable",
        "internal-error",
        "too-many-requests",
        "reset",
    ] {
        let (world, service, _) = made().await;
        let before = unit(&world).await;
        faults(
            &world,
            &[&format!("{fault}: verb=get, resource=serviceaccounts")],
        );
        recheck(&world).await;
        let loaded = world.plugin_condition("envoy", "Loaded").await;
        assert_eq!(loaded.status, "True", "{fault}: {loaded:?}");
        faults(&world, &[]);
        recheck(&world).await;
        is_known(&world, &service, &before).await;
    }
}

/// Neither does an API server that is away altogether.
#[tokio::test(start_paused = true)]
async fn an_outage_makes_nothing_again() {
    for outage in [Outage::Refused, Outage::Unavailable] {
        let (world, service, _) = made().await;
        let before = unit(&world).await;
        world.server.faults().set_outage(outage);
        // Longer than a plugin is ever left unasked about.
        tokio::time::sleep(Duration::from_secs(700)).await;
        world.server.faults().set_outage(Outage::None);
        recheck(&world).await;
        is_known(&world, &service, &before).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_config_map_made_anew_makes_nothing_again() {
    let (world, service, url) = made().await;
    let before = unit(&world).await;
    world.delete(&config_map_reference("envoy")).await;
    world.wait(Duration::from_secs(5)).await;
    let loaded = world.plugin_condition("envoy", "Loaded").await;
    let said = "the outside effects of 1 units stay too";
    assert!(loaded.message.contains(said), "{loaded:?}");
    assert_eq!(action(&world).await["state"], "InPlace");
    deliver(&world, &url).await;
    world.wait(RECHECK).await;
    is_known(&world, &service, &before).await;
}

/// The role of a binding can be changed by making it anew alone.
#[tokio::test(start_paused = true)]
async fn rights_that_are_given_anew_make_nothing_again() {
    let (world, service, _) = made().await;
    let before = unit(&world).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "envoy-account"},
    });
    world.delete(&binding).await;
    recheck(&world).await;
    let granted = world.plugin_condition("envoy", "Granted").await;
    assert_eq!(granted.status, "False", "{granted:?}");
    world.allow("envoy").await;
    world.wait(RECHECK).await;
    let granted = world.plugin_condition("envoy", "Granted").await;
    assert_eq!(granted.status, "True", "{granted:?}");
    is_known(&world, &service, &before).await;
}

/// An effect whose primary is gone is known from its `Unit` object alone.
#[tokio::test(start_paused = true)]
async fn what_is_being_taken_away_survives_a_stop() {
    for restart in [false, true] {
        let (mut world, service, url) = made().await;
        *service.broken.lock() = true;
        world.delete(&profile_reference("alice")).await;
        world.settle().await;
        assert_eq!(action(&world).await["state"], "Retiring");
        world.delete(&config_map_reference("envoy")).await;
        world.wait(Duration::from_secs(90)).await;
        if restart {
            world.stop().await;
            world.start();
            world.settle().await;
        }
        assert_eq!(action(&world).await["state"], "Retiring");
        *service.broken.lock() = false;
        deliver(&world, &url).await;
        world.wait(Duration::from_secs(301)).await;
        assert!(service.there.lock().is_empty(), "restart: {restart}");
        assert_eq!(world.unit("envoy", "alice").await, None);
    }
}

/// Who deletes the `Plugin` of a plugin that is not installed wants nothing of it.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_is_forgotten_leaves_no_unit() {
    for away in [false, true] {
        let (mut world, _, _) = made().await;
        world.delete(&config_map_reference("envoy")).await;
        world.wait(Duration::from_secs(60)).await;
        assert_ne!(unit(&world).await, Value::Null);
        if away {
            world.stop().await;
        }
        world.delete(&plugin_reference("envoy")).await;
        if away {
            world.start();
        }
        world.settle().await;
        assert_eq!(unit(&world).await, Value::Null, "away: {away}");
    }
}

async fn leads(agent: &Agent) {
    let mut status = agent.status();
    let leading = status.wait_for(|status| status.leading);
    tokio::time::timeout(Duration::from_secs(600), leading)
        .await
        .unwrap()
        .unwrap();
}

/// What the leader before has done is read before anything is done.
#[tokio::test(start_paused = true)]
async fn a_new_leader_waits_for_what_was_written() {
    let (mut world, service, _) = made().await;
    world.stop().await;
    let one = world.replica("one");
    leads(&one).await;
    let two = world.replica("two");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let before = unit(&world).await;
    faults(&world, &["unavailable: verb=list|watch, resource=units"]);
    one.stop().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": reeve_core::grant::LEASE, "namespace": NAMESPACE},
    });
    let lease = world.get(&lease).await.unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "two");
    assert!(!two.status().borrow().leading);
    faults(&world, &[]);
    leads(&two).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    is_known(&world, &service, &before).await;
}
