//! A call's inputs are what it read: nothing hidden reaches the guest, and what
//! it read wakes it, and nothing else does.

use reeve_it::{World, core_reference, guest, plugin, profile_reference};
use serde_json::{Value, json};
use std::time::Duration;

async fn world(deed: Value, reads: &[&str]) -> World {
    world_of(deed, json!(reads)).await
}

async fn world_of(deed: Value, reads: Value) -> World {
    let world = World::started().await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reads": reads,
        "reconcile": deed,
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    world
}

/// All text that the guest put into the object that it made.
async fn data(world: &World) -> String {
    let made = core_reference("ConfigMap", "alice", "chameleon-alice");
    let made = world.get(&made).await;
    let Some(made) = made else {
        let ready = world.unit_condition("chameleon", "alice", "Ready").await;
        panic!("nothing made: {ready:?}");
    };
    made["data"].to_string()
}

fn note(name: &str, content: &str) -> Value {
    let mut note = core_reference("ConfigMap", "alice", name);
    note["metadata"]["labels"] = json!({"app": "note"});
    note["data"] = json!({"content": content});
    note
}

#[tokio::test(start_paused = true)]
async fn the_primary_comes_without_bookkeeping_and_status() {
    let world = world(json!({"do": "echo"}), &[]).await;
    let alice = reeve_it::profile_reference("alice");
    world
        .edit(
            &alice,
            json!({"metadata": {"annotations": {"seen": "yes"}}}),
        )
        .await;
    world.settle().await;
    let data = data(&world).await;
    assert!(
        data.contains("seen") && data.contains("alice@example.com"),
        "{data}"
    );
    for hidden in ["managedFields", "resourceVersion", "generation", "status"] {
        assert!(!data.contains(hidden), "{hidden} in {data}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_read_comes_without_bookkeeping() {
    let read = json!({"do": "get", "kind": "ConfigMap.v1", "namespace": "alice", "name": "note"});
    let mut narrow = read.clone();
    narrow["projection"] = json!(["/data"]);
    let list =
        json!({"do": "list", "kind": "ConfigMap.v1", "namespace": "alice", "selector": "app=note"});
    for (deed, hidden) in [
        (&read, &[][..]),
        (&narrow, &["labels"][..]),
        (&list, &[][..]),
    ] {
        let world = world(deed.clone(), &["ConfigMap.v1"]).await;
        world.apply(&note("note", "first")).await;
        world.settle().await;
        let stored = world.get(&note("note", "")).await.unwrap();
        let data = data(&world).await;
        assert!(data.contains("first"), "{data}");
        assert_eq!(data.contains("app"), hidden.is_empty(), "{data}");
        for field in ["managedFields", "resourceVersion"] {
            assert!(stored["metadata"].get(field).is_some(), "{stored}");
            assert!(!data.contains(field), "{field} in {data}");
        }
        for field in hidden {
            assert!(!data.contains(field), "{field} in {data}");
        }
    }
}

/// Quotas reads the labels of a Profile, and nothing else of it.
#[tokio::test(start_paused = true)]
async fn only_what_is_projected_wakes() {
    let world = World::started().await;
    let component = vec![("plugin.wasm", plugin("quotas"))];
    world.install("quotas", &component, None).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    let alice = profile_reference("alice");
    let runs = || world.agent().status().borrow().runs;
    let label = |value: &str| json!({"metadata": {"labels": {"team": value}}});
    for (patch, more) in [
        (json!({"metadata": {"annotations": {"seen": "yes"}}}), 0),
        (json!({"spec": {"owner": {"name": "somebody"}}}), 0),
        (label("red"), 1),
        (json!({"spec": {"owner": {"name": "nobody"}}}), 0),
        (label("blue"), 1),
    ] {
        let before = runs();
        world.edit(&alice, patch.clone()).await;
        world.settle().await;
        assert_eq!(runs() - before, more, "{patch}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_read_wakes_its_reader() {
    let deed = json!({"do": "get", "kind": "ConfigMap.v1", "namespace": "alice", "name": "note"});
    let world = world(deed, &["ConfigMap.v1"]).await;
    world.apply(&note("note", "first")).await;
    world.settle().await;
    assert!(
        data(&world).await.contains("first"),
        "its arrival is a change of what was read"
    );
    world.apply(&note("note", "second")).await;
    world.settle().await;
    assert!(data(&world).await.contains("second"));
    // Another object is none of its business.
    world.settle().await;
    let runs = || world.agent().status().borrow().runs;
    let before = runs();
    world.apply(&note("other", "x")).await;
    world.settle().await;
    assert_eq!(runs(), before, "nobody has read it");
    world.apply(&note("note", "third")).await;
    world.settle().await;
    assert!(runs() > before);
}

#[tokio::test(start_paused = true)]
async fn what_a_unit_makes_does_not_wake_it() {
    let world = world(json!({"do": "echo"}), &[]).await;
    let runs = || world.agent().status().borrow().runs;
    let before = runs();
    world.tenant("bob", &[]).await;
    world.settle().await;
    let made = core_reference("ConfigMap", "bob", "chameleon-bob");
    assert!(world.get(&made).await.is_some());
    assert_eq!(runs(), before + 1, "one run made all that there is to make");
    // What somebody else makes of it does.
    world.delete(&made).await;
    world.settle().await;
    assert!(world.get(&made).await.is_some(), "it is made again");
}

#[tokio::test(start_paused = true)]
async fn a_list_wakes_for_what_it_selects() {
    let deed = json!({"do": "list-keys", "kind": "ConfigMap.v1", "namespace": "alice", "selector": "app=note"});
    let world = world(deed, &["ConfigMap.v1"]).await;
    for name in ["one", "two"] {
        world.apply(&note(name, "x")).await;
    }
    world.settle().await;
    let both = data(&world).await;
    assert!(both.contains("one") && both.contains("two"), "{both}");
    world.delete(&note("one", "x")).await;
    world.settle().await;
    let left = data(&world).await;
    assert!(!left.contains("one") && left.contains("two"), "{left}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_with_a_selector_covers_narrower_lists() {
    let reads = json!([{"kind": "ConfigMap.v1", "scope": "cluster", "selector": "app"}]);
    let list = |selector: &str| json!({"do": "list-keys", "kind": "ConfigMap.v1", "namespace": "alice", "selector": selector});
    let mut other = core_reference("ConfigMap", "alice", "other");
    other["metadata"]["labels"] = json!({"app": "other"});
    let world = world_of(list("app=note"), reads.clone()).await;
    for made in [note("one", "x"), other] {
        world.apply(&made).await;
    }
    world.settle().await;
    let found = data(&world).await;
    assert!(found.contains("one") && !found.contains("other"), "{found}");
    for wider in ["", "app!=other", "!app", "team=a"] {
        let world = world_of(list(wider), reads.clone()).await;
        let ready = world.unit_condition("chameleon", "alice", "Ready").await;
        assert!(ready.message.contains("undeclared"), "{wider}: {ready:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn absent_and_undeclared_are_different_answers() {
    let get = json!({"do": "get", "kind": "ConfigMap.v1", "namespace": "alice", "name": "none"});
    let world_with = world(get.clone(), &["ConfigMap.v1"]).await;
    let absent = world_with
        .unit_condition("chameleon", "alice", "Ready")
        .await;
    let world_without = world(get, &[]).await;
    let undeclared = world_without
        .unit_condition("chameleon", "alice", "Ready")
        .await;
    assert_ne!(absent.message, undeclared.message);
    assert!(
        undeclared.message.to_lowercase().contains("undeclared"),
        "{undeclared:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_the_hosts() {
    let world = world(json!({"do": "read-clock"}), &[]).await;
    let data = data(&world).await;
    assert!(data.contains("17000000"), "{data} is not the virtual time");
}

#[tokio::test(start_paused = true)]
async fn a_plugin_may_ask_to_be_run_again() {
    // Where nobody watches, an answer that asks for the time would not change.
    let world = world(json!({"do": "after", "millis": 60_000}), &[]).await;
    let calls = || world.agent().status().borrow().runs;
    let before = calls();
    world.wait(Duration::from_secs(61)).await;
    assert_eq!(calls(), before + 1);
    world.wait(Duration::from_secs(181)).await;
    assert_eq!(calls(), before + 4);
}

#[tokio::test(start_paused = true)]
async fn random_is_a_constant_stream() {
    let first = data(&world(json!({"do": "hash-seed"}), &[]).await).await;
    let second = data(&world(json!({"do": "hash-seed"}), &[]).await).await;
    assert_eq!(first, second);
}

#[tokio::test(start_paused = true)]
async fn remarks_reach_the_unit_and_the_events() {
    let world = world(json!({"do": "remark", "text": "look here"}), &[]).await;
    let found = world
        .unit_condition("chameleon", "alice", "Remarkable")
        .await;
    assert!(found.message.contains("look here"), "{found:?}");
    let ready = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(ready.status, "True");
    let events = world.events("alice").await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0]["message"].as_str().unwrap().contains("look here"));
}

/// What changes while the call that reads it for the first time still runs must
/// not be lost.
#[tokio::test(start_paused = true)]
async fn a_change_during_the_first_read_is_seen() {
    for round in 0..20 {
        let deed =
            json!({"do": "get", "kind": "ConfigMap.v1", "namespace": "alice", "name": "note"});
        let world = World::started().await;
        world.tenant("alice", &[]).await;
        world.apply(&note("note", "old")).await;
        let config = json!({
            "primary": "Profile.v1.kubeflow.org",
            "scope": "namespace-named-like-primary",
            "reads": ["ConfigMap.v1"],
            "reconcile": deed,
        });
        let component = vec![("plugin.wasm", guest("chameleon"))];
        world.install("chameleon", &component, Some(config)).await;
        // A little more of the way to the first answer in each round.
        for _ in 0..round * 10 {
            tokio::task::yield_now().await;
        }
        world.apply(&note("note", "new")).await;
        world.settle().await;
        let data = data(&world).await;
        assert!(data.contains("new"), "round {round}: {data}");
    }
}

/// What may not be seen is another answer than what is not there, and so is what nobody
/// serves.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_seen_is_told_apart() {
    let get = |kind: &str| json!({"do": "get", "kind": kind, "namespace": "alice", "name": "none"});
    let ask_again = async |world: &World, at: &str| {
        let patch = json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": at}}});
        world
            .edit(&reeve_it::profile_reference("alice"), patch)
            .await;
        world.settle().await;
        world.unit_condition("chameleon", "alice", "Ready").await
    };

    // The agent's right to see them is taken away, and given back.
    let world = world(get("Service.v1"), &["Service.v1"]).await;
    let absent = world.unit_condition("chameleon", "alice", "Ready").await;
    assert!(!absent.message.contains("forbidden"), "{absent:?}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "chameleon-agent"},
    });
    let before = world.get(&role).await.unwrap();
    let mut rules = before["rules"].clone();
    let resources = rules[0]["resources"].as_array_mut().unwrap();
    resources.retain(|resource| resource != "services");
    world.edit(&role, json!({"rules": rules})).await;
    world.server.faults().drop_watches();
    world.wait(Duration::from_secs(5)).await;
    let forbidden = ask_again(&world, "1").await;
    for part in [
        "forbidden: the agent may not list and watch Service.v1",
        "services",
    ] {
        assert!(forbidden.message.contains(part), "{forbidden:?}");
    }
    world.edit(&role, json!({"rules": before["rules"]})).await;
    world.wait(Duration::from_secs(120)).await;
    let again = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(again.message, absent.message);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_serves_is_not_absent() {
    let definition = reeve_test_support::samples::open_crd("Widget", "widgets");
    let mut world = World::new().await;
    world.apply(&definition).await;
    world.start();
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reads": ["Widget.v1.example.com"],
        "reconcile": {
            "do": "get", "kind": "Widget.v1.example.com", "namespace": "alice", "name": "none",
        },
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    let absent = world.unit_condition("chameleon", "alice", "Ready").await;
    world.delete(&definition).await;
    world.wait(Duration::from_secs(5)).await;
    let patch = json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": "1"}}});
    world
        .edit(&reeve_it::profile_reference("alice"), patch)
        .await;
    world.settle().await;
    let unserved = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(unserved.reason, "NotReady", "{unserved:?}");
    let expected = "not synced: Widget.v1.example.com: the api server does not serve this kind";
    assert!(unserved.message.contains(expected), "{unserved:?}");
    assert_ne!(unserved.message, absent.message);
}

/// What a plugin does not return since it was not shown all that it asked for stays,
/// though it has caught that.
#[tokio::test(start_paused = true)]
async fn nothing_goes_for_what_could_not_be_seen() {
    let get = json!({"do": "get", "kind": "Service.v1", "namespace": "alice", "name": "none"});
    let instead = json!({"do": "objects", "count": 1});
    let catch = json!({"do": "catch", "first": get, "instead": instead});
    let world = world(catch, &["Service.v1"]).await;
    let object = |name: &str| core_reference("ConfigMap", "alice", name);
    let (whole, poor) = (object("chameleon-alice"), object("chameleon-alice-0"));
    assert!(world.get(&whole).await.is_some() && world.get(&poor).await.is_none());
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "chameleon-agent"},
    });
    let before = world.get(&role).await.unwrap();
    let mut rules = before["rules"].clone();
    let resources = rules[0]["resources"].as_array_mut().unwrap();
    resources.retain(|resource| resource != "services");
    world.edit(&role, json!({"rules": rules})).await;
    world.server.faults().drop_watches();
    world.wait(Duration::from_secs(5)).await;
    let patch = json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": "1"}}});
    world.edit(&profile_reference("alice"), patch).await;
    world.settle().await;
    let told = async || {
        let ready = world.unit_condition("chameleon", "alice", "Ready").await;
        assert_eq!(ready.reason, "DeletionHeld", "{ready:?}");
        for part in [
            "forbidden: the agent may not list and watch Service.v1",
            "stays until it can be shown that: ConfigMap alice/chameleon-alice",
            "reeve plugin grant chameleon",
        ] {
            assert!(ready.message.contains(part), "{part}: {ready:?}");
        }
    };
    // What is new is made, and nothing goes for it.
    assert!(world.get(&whole).await.is_some() && world.get(&poor).await.is_some());
    told().await;
    // The answer is remembered with that.
    world.delete(&poor).await;
    world.settle().await;
    assert!(world.get(&whole).await.is_some() && world.get(&poor).await.is_some());
    told().await;
    world.edit(&role, json!({"rules": before["rules"]})).await;
    world.wait(Duration::from_secs(120)).await;
    assert!(world.get(&whole).await.is_some() && world.get(&poor).await.is_none());
    assert_eq!(world.unit("chameleon", "alice").await, None);
}
