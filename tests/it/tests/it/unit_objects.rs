//! `Unit` objects: what of them is sent, and that they are what the agent says of a unit.

use crate::told::{PLUGIN, config_map, tell, world};
use reeve_it::{NAMESPACE, World, plugin, plugin_reference};
use reeve_sim::Verb;
use reeve_test_support::samples;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Has the plugin want an object in a namespace that is not there: the unit waits for it.
async fn wait_for(world: &World, namespace: &str) -> Value {
    let object = config_map(namespace, "c", &json!({"a": "1"}));
    tell(world, "alice", &object).await;
    let unit = world.unit(PLUGIN, "alice").await.unwrap();
    assert!(unit["status"].to_string().contains(namespace), "{unit}");
    unit
}

async fn waiting() -> (World, Value) {
    let world = world("ConfigMap.v1", &Value::Null).await;
    world.tenant("alice", &[]).await;
    let unit = wait_for(&world, "later").await;
    (world, unit)
}

#[tokio::test(start_paused = true)]
async fn what_stands_is_not_sent_again() {
    let (world, _) = waiting().await;
    world.server.reset_requests();
    wait_for(&world, "much-later").await;
    let asked = world.server.requests();
    let patches = |resource: &str| asked.count(Verb::Patch, resource);
    assert!(patches("units/status.reeve.dev") > 0);
    assert_eq!(patches("units.reeve.dev"), 0);
}

/// Whoever reads the spec after a restart must find what the status is about, also where
/// the watch has not told that somebody else has written there.
#[tokio::test(start_paused = true)]
async fn what_the_watch_does_not_tell_is_put_right() {
    let (world, before) = waiting().await;
    let silent = "silent-watch: resource=units".parse().unwrap();
    world.server.set_faults(vec![silent]);
    let another = json!({"spec": {"primary": {"uid": "another"}}});
    world.edit(&before, another).await;
    let after = wait_for(&world, "much-later").await;
    assert_eq!(after["spec"], before["spec"]);
    assert_ne!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    let ready = &after["status"]["conditions"][0]["observedGeneration"];
    assert_eq!(*ready, after["metadata"]["generation"]);

    // And where it is gone, it is made again.
    world.delete(&after).await;
    let made = wait_for(&world, "later").await;
    assert_eq!(made["spec"], before["spec"]);
    assert_ne!(made["metadata"]["uid"], before["metadata"]["uid"]);
}

/// What stands as it should is not written, and what somebody makes of it is put right.
#[tokio::test(start_paused = true)]
async fn what_is_as_it_should_be_is_not_written() {
    let (world, unit) = waiting().await;
    world.server.reset_requests();
    // The unit is run, and nothing has changed.
    let at = |text: &str| json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": text}}});
    let primary = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Profile", "metadata": {"name": "alice"},
    });
    world.edit(&primary, at("once")).await;
    world.settle().await;
    let asked = world.server.requests();
    assert_eq!(asked.count(Verb::Patch, "units/status.reeve.dev"), 0);
    assert_eq!(asked.count(Verb::Patch, "units.reeve.dev"), 0);

    let another = json!({"spec": {"primary": {"uid": "another"}}});
    world.edit(&unit, another).await;
    world.settle().await;
    let after = world.unit(PLUGIN, "alice").await.unwrap();
    assert_eq!(after["spec"], unit["spec"]);
}

/// What was seen before is no proof of what is there: neither where an answer was lost, nor
/// where the watch is silent.
#[tokio::test(start_paused = true)]
async fn the_last_word_counts_where_the_watch_is_silent() {
    let (world, before) = waiting().await;
    let silent = "silent-watch: resource=units".parse().unwrap();
    world.server.set_faults(vec![silent]);
    wait_for(&world, "much-later").await;
    let after = wait_for(&world, "later").await;
    assert_eq!(
        after["status"]["conditions"][0]["message"],
        before["status"]["conditions"][0]["message"]
    );
}

/// So many objects of one plugin tell what is wrong with units.
const TOLD: usize = 1_000;
/// After this time, a unit that waits for a namespace has looked for it again.
const LOOKS: Duration = Duration::from_secs(40);

/// A plugin of which all units are in trouble does not fill the cluster with that.
#[tokio::test(start_paused = true)]
async fn of_many_units_in_trouble_a_part_is_told_of() {
    let world = World::started().await;
    let quotas = [("plugin.wasm", plugin("quotas"))];
    world.install("quotas", &quotas, None).await;
    let name = |number: usize| format!("t{number:04}");
    // Their namespaces are not there yet.
    for number in 0..TOLD + 2 {
        world.apply(&samples::profile(&name(number))).await;
    }
    world.settle().await;
    let units = async || {
        let like = json!({
            "apiVersion": "reeve.dev/v1alpha1", "kind": "Unit",
            "metadata": {"name": "", "namespace": NAMESPACE},
        });
        let units = world.list(&like).await;
        let primary = |unit: &Value| unit["spec"]["primary"]["name"].as_str().unwrap().to_owned();
        units.iter().map(primary).collect::<BTreeSet<_>>()
    };
    let untold = |units: &BTreeSet<String>| {
        let all = (0..TOLD + 2).map(name);
        all.filter(|name| !units.contains(name)).collect::<Vec<_>>()
    };
    let first = units().await;
    assert_eq!(first.len(), TOLD);
    let ready = world.plugin_condition("quotas", "Ready").await;
    assert!(ready.message.contains("1002 waiting"), "{}", ready.message);
    assert!(
        ready.message.contains("2 have no Unit object"),
        "{}",
        ready.message
    );

    let status = world.get(&plugin_reference("quotas")).await.unwrap();
    assert_eq!(status["status"]["units"]["untold"], 2);

    // One is well again, and another has its place.
    let well = first.first().unwrap();
    world.apply(&samples::namespace(well)).await;
    sleep(LOOKS).await;
    world.settle().await;
    let now = units().await;
    assert_eq!((now.len(), now.contains(well)), (TOLD, false));
    let [last] = &untold(&now)
        .into_iter()
        .filter(|one| one != well)
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", untold(&now));
    };

    // Who asks for one is told of it.
    let at = format!("1 Profile.kubeflow.org//{last}");
    let at = json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": at}}});
    world.edit(&plugin_reference("quotas"), at).await;
    world.settle().await;
    assert!(units().await.contains(last));

    // The last of them has its place where there is one.
    for number in 0..TOLD + 2 {
        world.apply(&samples::namespace(&name(number))).await;
    }
    sleep(LOOKS).await;
    world.settle().await;
    assert_eq!(units().await.len(), 0);
    let ready = world.plugin_condition("quotas", "Ready").await;
    assert!(
        ready.message.ends_with("1002 of 1002 units ready"),
        "{}",
        ready.message
    );
}
