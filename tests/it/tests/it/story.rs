//! From a ConfigMap to applied resources, and what happens to them then.

use reeve_it::{World, core_reference, plugin, plugin_reference, profile_reference};
use serde_json::{Value, json};

fn quota(tenant: &str) -> Value {
    core_reference("ResourceQuota", tenant, "quotas")
}

async fn world() -> World {
    let world = World::started().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    let component = zstd::encode_all(&plugin("limitranges")[..], 3).unwrap();
    world
        .install("limitranges", &[("plugin.wasm.zst", component)], None)
        .await;
    world
        .tenant("alice", &[("quotas.statcan.gc.ca/gpu", "4")])
        .await;
    world.tenant("bob", &[]).await;
    world.settle().await;
    world
}

async fn hard(world: &World, tenant: &str, key: &str) -> Value {
    world.get(&quota(tenant)).await.unwrap()["spec"]["hard"][key].clone()
}

#[tokio::test(start_paused = true)]
async fn plugins_apply_what_profiles_ask_for() {
    let world = world().await;
    assert_eq!(hard(&world, "alice", "requests.nvidia.com/gpu").await, "4");
    assert_eq!(hard(&world, "bob", "requests.nvidia.com/gpu").await, "2");
    let limits = world
        .get(&core_reference(
            "LimitRange",
            "bob",
            "default-container-limits",
        ))
        .await
        .unwrap();
    assert_eq!(limits["spec"]["limits"][0]["default"]["cpu"], "250m");
    let owner = &limits["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("Profile"), &json!(true))
    );
    for name in ["quotas", "limitranges"] {
        let ready = world.plugin_condition(name, "Ready").await;
        assert_eq!(ready.status, "True", "{name}: {ready:?}");
        let status = world.get(&plugin_reference(name)).await.unwrap()["status"].clone();
        assert_eq!(
            status["units"],
            json!({"total": 2, "ready": 2, "failing": 0})
        );
        assert_eq!(world.plugin_condition(name, "Granted").await.status, "True");
    }
    assert_eq!(
        world.unit("quotas", "alice").await,
        None,
        "a healthy unit has no object"
    );
}

#[tokio::test(start_paused = true)]
async fn every_write_is_the_plugins_own() {
    let world = world().await;
    let quota = world.get(&quota("alice")).await.unwrap();
    let managers: Vec<_> = quota["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        // What is used is counted by the cluster.
        .filter(|entry| entry["subresource"] != "status")
        .map(|entry| (entry["manager"].clone(), entry["operation"].clone()))
        .collect();
    assert_eq!(managers, [(json!("reeve/quotas"), json!("Apply"))]);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_changes_or_goes_is_followed() {
    let world = world().await;
    let alice = profile_reference("alice");
    let label = |value: Value| json!({"metadata": {"labels": {"quotas.statcan.gc.ca/gpu": value}}});
    world.edit(&alice, label(json!("7"))).await;
    world.settle().await;
    assert_eq!(hard(&world, "alice", "requests.nvidia.com/gpu").await, "7");
    world.edit(&alice, label(Value::Null)).await;
    world.settle().await;
    assert_eq!(hard(&world, "alice", "requests.nvidia.com/gpu").await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_hand_edit_is_put_back_and_a_foreign_field_stays() {
    let world = world().await;
    world
        .edit(
            &quota("bob"),
            json!({"spec": {"hard": {"pods": "9", "configmaps": "5"}}}),
        )
        .await;
    world.settle().await;
    assert_eq!(hard(&world, "bob", "pods").await, "100");
    assert_eq!(hard(&world, "bob", "configmaps").await, "5");
}

#[tokio::test(start_paused = true)]
async fn a_removed_field_or_label_of_ours_comes_back() {
    let world = world().await;
    for patch in [
        json!({"spec": {"hard": {"pods": null}}}),
        json!({"metadata": {"labels": {"reeve.dev/unit": null}}}),
        json!({"metadata": {"labels": {"reeve.dev/plugin": "other"}}}),
        json!({"metadata": {"annotations": {"reeve.dev/applied": "x"}}}),
    ] {
        let before = world.get(&quota("bob")).await.unwrap();
        world.edit(&quota("bob"), patch.clone()).await;
        world.settle().await;
        let after = world.get(&quota("bob")).await.unwrap();
        assert_eq!(after["spec"], before["spec"], "{patch}");
        assert_eq!(
            after["metadata"]["labels"], before["metadata"]["labels"],
            "{patch}"
        );
        assert_eq!(
            after["metadata"]["annotations"], before["metadata"]["annotations"],
            "{patch}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_by_hand_is_made_again() {
    let world = world().await;
    let before = world.get(&quota("bob")).await.unwrap();
    world.delete(&quota("bob")).await;
    world.settle().await;
    let after = world.get(&quota("bob")).await.unwrap();
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"], before["spec"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_profile_takes_its_objects_with_it() {
    let world = world().await;
    world.delete(&profile_reference("alice")).await;
    world.settle().await;
    assert_eq!(world.get(&quota("alice")).await, None);
    assert!(world.get(&quota("bob")).await.is_some());
    let status = world.get(&plugin_reference("quotas")).await.unwrap()["status"].clone();
    assert_eq!(status["units"]["total"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_converged_restart_writes_nothing() {
    let mut world = world().await;
    world.stop().await;
    world.writes();
    world.start();
    world.settle().await;
    let writes: Vec<_> = world
        .server
        .requests()
        .iter()
        .filter(|(call, _)| !format!("{call:?}").contains("reviews"))
        .map(|(call, count)| format!("{call:?}: {count}"))
        .filter(|call| {
            ["Create", "Patch", "Update", "Delete"]
                .iter()
                .any(|verb| call.contains(verb))
        })
        .collect();
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_comes_later_is_met() {
    let world = World::started().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world
        .apply(&reeve_test_support::samples::profile("carol"))
        .await;
    world.settle().await;
    let ready = world.unit_condition("quotas", "carol", "Ready").await;
    assert_eq!(ready.reason, "NamespaceAbsent", "{ready:?}");
    assert!(ready.message.contains("carol"), "{ready:?}");
    world
        .apply(&reeve_test_support::samples::namespace("carol"))
        .await;
    world.wait(std::time::Duration::from_secs(11)).await;
    assert!(world.get(&quota("carol")).await.is_some());
    assert_eq!(world.unit("quotas", "carol").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_bad_label_is_reported_once_and_hurts_nobody_else() {
    let world = world().await;
    world
        .tenant(
            "carol",
            &[
                ("quotas.statcan.gc.ca/pods", "two"),
                ("quotas.statcan.gc.ca/gpu", "abc"),
            ],
        )
        .await;
    world.settle().await;
    assert_eq!(hard(&world, "carol", "pods").await, "100");
    assert_eq!(hard(&world, "carol", "requests.nvidia.com/gpu").await, "0");
    let unit = world.unit("quotas", "carol").await.unwrap();
    assert_eq!(
        world
            .unit_condition("quotas", "carol", "Ready")
            .await
            .status,
        "True",
        "{unit}"
    );
    let text = unit["status"]["conditions"].to_string();
    assert!(
        text.contains("pods") && text.contains("two") && text.contains("gpu"),
        "{text}"
    );
    // Running again says nothing new.
    let carol = profile_reference("carol");
    world
        .edit(
            &carol,
            json!({"metadata": {"labels": {"quotas.statcan.gc.ca/limits.cpu": "7"}}}),
        )
        .await;
    world.settle().await;
    assert_eq!(hard(&world, "carol", "limits.cpu").await, "7");
    let events = world.events("carol").await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["type"], "Warning");
    // Mended, the report goes.
    let mended = json!({"metadata": {"labels": {"quotas.statcan.gc.ca/pods": "2", "quotas.statcan.gc.ca/gpu": null}}});
    world.edit(&carol, mended).await;
    world.settle().await;
    assert_eq!(world.unit("quotas", "carol").await, None);
    assert_eq!(hard(&world, "bob", "pods").await, "100");
}

/// A ConfigMap holds 1 MiB, and kubectl's annotation of an apply a quarter of it.
/// All plugins together are to fit a few of them.
#[test]
fn components_are_small() {
    let table = include_str!("../../../../docs/plugins.md");
    for (name, raw, packed) in [
        ("authpolicy", 250_000, 90_000),
        ("blobcsi", 250_000, 90_000),
        ("cloudmain", 250_000, 90_000),
        ("environments", 250_000, 90_000),
        ("gitea", 250_000, 90_000),
        ("limitranges", 150_000, 60_000),
        // Three builders, and JSON of many forms: to be made smaller.
        ("models", 760_000, 230_000),
        ("network", 250_000, 90_000),
        ("notebook", 250_000, 90_000),
        // Seven packs, four parts, three languages of patches and YAML in one, compiled for
        // speed.
        ("packs", 615_000, 194_000),
        ("quotas", 150_000, 60_000),
        ("rbac", 250_000, 90_000),
        ("s3proxy", 250_000, 90_000),
    ] {
        let component = plugin(name);
        let bytes = component.len();
        assert!(bytes <= raw, "{name}: {bytes} bytes");
        let small = zstd::encode_all(&component[..], 19).unwrap().len();
        assert!(small <= packed, "{name}: {small} bytes as zstd");
        // What is documented holds, but for a few KB.
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("| {name} | ")));
        let Some(row) = row else {
            let elsewhere = ["environments", "models", "packs"];
            assert!(elsewhere.contains(&name), "{name} has no row");
            continue;
        };
        let sizes = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let (kb, small_kb) = sizes.split_once(", ").unwrap();
        for (bytes, kb) in [(bytes, kb), (small, small_kb)] {
            let documented: usize = kb.parse().unwrap();
            let real = bytes / 1000;
            assert!(
                documented.abs_diff(real) <= 3,
                "{name}: {real} KB, not {kb}"
            );
        }
    }
}
