//! Others who change what is ours.

use crate::told::{PLUGIN, config_map, journal, tell, world};
use reeve_it::{World, guest, profile_reference};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_fight_is_told_with_the_other_side_and_ends() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let object = config_map("alice", "c", &json!({"a": "1", "b": "2"}));
    tell(&world, "alice", &object).await;
    let mut repaired = 0;
    for round in 0..10 {
        let theirs = json!({"data": {"a": format!("theirs {round}")}});
        world.edit(&object, theirs).await;
        world.settle().await;
        repaired += u32::from(world.get(&object).await.unwrap()["data"]["a"] == "1");
    }
    assert!(
        (3..9).contains(&repaired),
        "the other is answered later and later: {repaired}"
    );
    let contested = world.unit_condition(PLUGIN, "alice", "Contested").await;
    assert_eq!(
        (&*contested.status, &*contested.reason),
        ("True", "FieldsContested")
    );
    for text in [
        "ConfigMap alice/c: .data.a by \"kubectl-edit\"",
        "reeve.dev/ignore",
    ] {
        assert!(contested.message.contains(text), "{text}: {contested:?}");
    }
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.status, "True", "it does what it can: {ready:?}");
    let events = world.events("alice").await;
    let about = |event: &&serde_json::Value| event["reason"] == "FieldsContested";
    assert_eq!(events.iter().filter(about).count(), 1, "{events:?}");
    // What they set is in the journal, once and not ten times.
    let entries = journal(&world).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!((&*entries[0].0, &*entries[0].1), ("Overwrite", "c"));
    assert!(
        entries[0].2.contains(".data.a by \"kubectl-edit\""),
        "{entries:?}"
    );
    // They give up.
    world.wait(Duration::from_secs(1200)).await;
    assert_eq!(world.get(&object).await.unwrap()["data"]["a"], "1");
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}

/// What somebody writes after a run has applied an object, and before the run looks at what
/// came of that, is not how the API server takes what was sent.
#[tokio::test(start_paused = true)]
async fn what_is_written_while_a_run_goes_on_is_repaired_as_well() {
    let world = World::started().await;
    world.tenant("alice", &[]).await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "writes": ["ConfigMap.v1"],
        "scope": "namespace-named-like-primary",
        "reconcile": {"do": "nothing", "meant": true},
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
    let objects = async |bytes: usize| {
        let deed = json!({"do": "objects", "count": 2, "bytes": bytes}).to_string();
        let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed}}});
        world.edit(&profile_reference("alice"), patch).await;
    };
    objects(1).await;
    world.settle().await;
    // One of the two takes a while, and the run with it.
    let faults = world.server.faults();
    faults.spare("kubernetes-admin");
    let slow = "latency: delay=4s, verb=patch, resource=configmaps, count=1";
    world.server.set_faults(vec![slow.parse().unwrap()]);
    objects(2).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let both =
        [0, 1].map(|number| config_map("alice", &format!("chameleon-alice-{number}"), &json!({})));
    let mut done = 0;
    for object in &both {
        if world.get(object).await.unwrap()["data"]["x"] == "xx" {
            done += 1;
            world.edit(object, json!({"data": {"x": "theirs"}})).await;
        }
    }
    assert_eq!(done, 1, "the run goes on");
    world.wait(Duration::from_secs(30)).await;
    for object in &both {
        let live = world.get(object).await.unwrap();
        assert_eq!(live["data"]["x"], "xx", "{live}");
    }
}

/// Who writes another field without end is in nobody's way.
#[tokio::test(start_paused = true)]
async fn a_constant_writer_does_not_keep_an_object_from_being_changed() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let object = config_map("alice", "c", &json!({"a": "1"}));
    tell(&world, "alice", &object).await;
    // One edit after another: no time passes in which an attempt could be made later.
    let writer = async {
        for round in 0..2000 {
            let theirs = json!({"data": {"b": format!("theirs {round}")}});
            world.edit(&object, theirs).await;
            let data = world.get(&object).await.unwrap()["data"].clone();
            if data["a"] == "2" {
                return data;
            }
        }
        panic!("it was never changed");
    };
    let wanted = config_map("alice", "c", &json!({"a": "2"}));
    let (data, ()) = tokio::join!(writer, tell(&world, "alice", &wanted));
    assert!(
        data["b"].as_str().unwrap().starts_with("theirs"),
        "what is theirs stays: {data}"
    );
    world.settle().await;
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
    assert_eq!(journal(&world).await, []);
}

/// A field that the plugin wants from now on, and that somebody has set meanwhile.
#[tokio::test(start_paused = true)]
async fn what_is_overwritten_is_written_down_first() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let object = config_map("alice", "c", &json!({"a": "1"}));
    tell(&world, "alice", &object).await;
    world.edit(&object, json!({"data": {"b": "theirs"}})).await;
    world.settle().await;
    assert_eq!(journal(&world).await, []);
    tell(
        &world,
        "alice",
        &config_map("alice", "c", &json!({"a": "1", "b": "theirs"})),
    )
    .await;
    assert_eq!(journal(&world).await, [], "the same value is shared");
    world.edit(&object, json!({"data": {"c": "theirs"}})).await;
    tell(
        &world,
        "alice",
        &config_map("alice", "c", &json!({"a": "1", "c": "ours"})),
    )
    .await;
    let entries = journal(&world).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert!(
        entries[0].2.contains(".data.c by \"kubectl-edit\""),
        "{entries:?}"
    );
    let data = world.get(&object).await.unwrap()["data"].clone();
    assert_eq!(data, json!({"a": "1", "b": "theirs", "c": "ours"}));
}
