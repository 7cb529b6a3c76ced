//! New versions that a share of units gets first: for a time, back again when they fail,
//! over restarts, and taken back by a person.

use crate::upgrades::{self, annotate, status};
use kube::api::{Patch, PatchParams};
use reeve_core::upgrade;
use reeve_it::{NAMESPACE, World, core_reference, guest, plugin_reference, profile_reference};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

const NAMES: [&str; 10] = [
    "ann", "bob", "cyd", "dan", "eve", "fay", "gil", "hal", "ivy", "jim",
];

/// What each unit makes tells under which version it ran.
fn config(version: &str) -> Value {
    json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reads": ["ConfigMap.v1"],
        "reconcile": {"do": "objects", "count": 1, "bytes": version.len()},
    })
}

/// One of several that trap.
fn bad(number: usize) -> Value {
    let mut config = config("bad");
    config["reconcile"] = json!({"do": "trap"});
    config["reads"] = json!(vec!["ConfigMap.v1"; number]);
    config
}

/// What every unit has made, and how large it is.
async fn made(world: &World) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for name in NAMES {
        let all = world.list(&core_reference("ConfigMap", name, "")).await;
        let ours = all.into_iter().filter(|object| {
            let name = object["metadata"]["name"].as_str().unwrap();
            name.starts_with("chameleon")
        });
        let size = ours.map(|object| object["data"].to_string().len()).sum();
        found.push((name.to_owned(), size));
    }
    found
}

/// The units whose objects differ between two looks.
fn differing(one: &[(String, usize)], other: &[(String, usize)]) -> BTreeSet<String> {
    let pairs = one.iter().zip(other);
    let differ = pairs.filter(|(one, other)| one.1 != other.1);
    differ.map(|(one, _)| one.0.clone()).collect()
}

async fn send(world: &World, config: Value) {
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.deliver("chameleon", &component, Some(config)).await;
    world.settle().await;
}

async fn fleet(world: World) -> World {
    fleet_under(world, config("1")).await
}

async fn fleet_under(mut world: World, first: Value) -> World {
    world.start();
    for name in NAMES {
        world.tenant(name, &[]).await;
    }
    world.allow("chameleon").await;
    send(&world, first).await;
    world
}

async fn set_policy(world: &World, canary: Value) {
    // What a shadow run sees beforehand is another test's.
    upgrades::set_policy(world, json!({"canary": canary, "shadow": "Off"})).await;
}

async fn token(world: &World) -> String {
    let canary = status(world).await["canary"].clone();
    let digest = |field: &str| canary[field].as_str().unwrap().parse().unwrap();
    upgrade::token(&digest("digest"), &digest("configDigest"))
}

/// Checks where the newest version is, in the status and for people.
async fn is_at(world: &World, phase: &str, loaded: &str) {
    let found = status(world).await["canary"]["phase"].clone();
    assert_eq!(found, phase);
    let condition = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(condition.reason, loaded, "{condition:?}");
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
}

#[tokio::test(start_paused = true)]
async fn a_share_of_units_gets_a_version_first_and_then_all() {
    let world = fleet(World::new().await).await;
    set_policy(&world, json!({"units": "30%", "seconds": 100})).await;
    let before = made(&world).await;
    send(&world, config("longer")).await;
    is_at(&world, "Progressing", "Canary").await;
    let first = differing(&before, &made(&world).await);
    assert_eq!(first.len(), 3, "{first:?}");
    let said = world.plugin_condition("chameleon", "Loaded").await.message;
    assert!(
        said.contains("runs for 3 of 10 units, and for all of them from "),
        "{said}"
    );

    // Drift is repaired by the version that a unit is under.
    let during = made(&world).await;
    for name in NAMES {
        let all = world.list(&core_reference("ConfigMap", name, "")).await;
        for object in all {
            let object = object["metadata"]["name"].as_str().unwrap();
            if object.starts_with("chameleon") {
                world
                    .delete(&core_reference("ConfigMap", name, object))
                    .await;
            }
        }
    }
    world.settle().await;
    assert_eq!(made(&world).await, during);

    world.wait(Duration::from_secs(60)).await;
    is_at(&world, "Progressing", "Canary").await;
    assert_eq!(made(&world).await, during);
    world.wait(Duration::from_secs(60)).await;
    is_at(&world, "Passed", "Running").await;
    let after = made(&world).await;
    assert_eq!(differing(&before, &after).len(), NAMES.len());
    let events = world.list(&core_reference("Event", NAMESPACE, "")).await;
    for reason in ["CanaryStarted", "CanaryPassed"] {
        assert!(
            events.iter().any(|event| event["reason"] == reason),
            "{events:?}"
        );
    }
    let last = status(&world).await;
    assert_eq!(
        last["lastGood"]["configDigest"],
        last["canary"]["configDigest"]
    );
    assert_ne!(last["previous"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_version_under_which_units_fail_is_returned() {
    let world = fleet(World::new().await).await;
    set_policy(&world, json!({"units": 2, "seconds": 100})).await;
    let before = made(&world).await;
    send(&world, bad(1)).await;
    is_at(&world, "Returned", "CanaryReturned").await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert!(
        loaded
            .message
            .contains("was run for 2 units first, and 1 of them failed"),
        "{loaded:?}"
    );
    let units = status(&world).await["units"].clone();
    assert_eq!(units["ready"], 10, "{units}");
    // It stays away, whatever is asked.
    world.wait(Duration::from_secs(200)).await;
    annotate(&world, json!({"reeve.dev/retry-at": "1"})).await;
    is_at(&world, "Returned", "CanaryReturned").await;
    assert_eq!(made(&world).await, before);
    let events = world.list(&core_reference("Event", NAMESPACE, "")).await;
    let returned = events
        .iter()
        .filter(|event| event["reason"] == "CanaryReturned");
    assert_eq!(returned.count(), 1, "{events:?}");

    // A better one is tried anew.
    send(&world, config("longer")).await;
    is_at(&world, "Progressing", "Canary").await;
    assert_eq!(differing(&before, &made(&world).await).len(), 2);

    // One that comes meanwhile takes its place; what it is returned to is what all
    // others run.
    send(&world, bad(2)).await;
    is_at(&world, "Returned", "CanaryReturned").await;
    assert_eq!(made(&world).await, before);

    // A person lets it take over, whatever comes of it.
    let token = token(&world).await;
    // To let it do what it was held for would be less than that.
    annotate(&world, json!({"reeve.dev/approve-upgrade": token})).await;
    is_at(&world, "Returned", "CanaryReturned").await;
    let token = format!("{token}/all");
    annotate(&world, json!({"reeve.dev/approve-upgrade": token})).await;
    assert_eq!(status(&world).await.get("canary"), None);
    let units = status(&world).await["units"].clone();
    assert_eq!(units["failing"], 10, "{units}");
}

/// Whatever a version says that can only be its own doing counts at once; what may pass,
/// when it has not.
#[tokio::test(start_paused = true)]
async fn failures_that_a_version_reports_return_it() {
    for (how, at_once) in [("terminal", true), ("retry", false)] {
        let world = fleet(World::new().await).await;
        set_policy(&world, json!({"units": 2, "seconds": 100})).await;
        let before = made(&world).await;
        let mut failing = config("bad");
        failing["reconcile"] = json!({"do": "fail", "how": how, "text": "no such thing"});
        send(&world, failing).await;
        let phase = status(&world).await["canary"]["phase"].clone();
        assert_eq!(phase == "Returned", at_once, "{how}: {phase}");
        world.wait(Duration::from_secs(10)).await;
        is_at(&world, "Returned", "CanaryReturned").await;
        let loaded = world.plugin_condition("chameleon", "Loaded").await;
        assert!(loaded.message.contains("no such thing"), "{loaded:?}");
        assert_eq!(made(&world).await, before);
    }
}

/// Those that may fail may, and one more may not.
#[tokio::test(start_paused = true)]
async fn as_many_units_may_fail_as_the_policy_says() {
    for bound in [json!(1), json!("50%")] {
        let world = fleet(World::new().await).await;
        let policy = json!({"units": 3, "seconds": 1000, "maxFailing": bound});
        set_policy(&world, policy).await;
        let before = made(&world).await;
        send(&world, config("longer")).await;
        let first = differing(&before, &made(&world).await);
        let all: Vec<String> = first.into_iter().collect();
        let [one, two, _] = &all[..] else {
            panic!("{all:?}");
        };
        let trap = json!({"do": "trap"}).to_string();
        let trap = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": trap}}});
        world.edit(&profile_reference(one), trap.clone()).await;
        world.settle().await;
        let canary = status(&world).await["canary"].clone();
        assert_eq!(
            (&canary["phase"], &canary["failing"]),
            (&json!("Progressing"), &json!(1))
        );
        world.edit(&profile_reference(two), trap).await;
        world.settle().await;
        let canary = status(&world).await["canary"].clone();
        assert_eq!(
            (&canary["phase"], &canary["failing"]),
            (&json!("Returned"), &json!(2))
        );
        let said = canary["message"].as_str().unwrap();
        assert!(
            said.contains("was run for 3 units first, and 2 of them failed"),
            "{said}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    restart(folder.path(), config("1")).await;
}

/// The version before goes on with what it asks for, though the new one asks for less.
#[tokio::test(start_paused = true)]
async fn a_restart_asks_nobody_about_the_version_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut wider = config("1");
    wider["reads"] = json!(["ConfigMap.v1", "Service.v1"]);
    restart(folder.path(), wider).await;
}

async fn restart(folder: &Path, first: Value) {
    let mut world = World::new().await;
    world.cache_in(folder);
    let mut world = fleet_under(world, first).await;
    set_policy(&world, json!({"units": "30%", "seconds": 1000})).await;
    send(&world, config("longer")).await;
    is_at(&world, "Progressing", "Canary").await;
    let during = made(&world).await;
    let started = status(&world).await["canary"]["startedAt"].clone();
    world.wait(Duration::from_secs(600)).await;
    world.stop().await;
    world.writes();
    world.start();
    world.settle().await;
    is_at(&world, "Progressing", "Canary").await;
    assert_eq!(made(&world).await, during);
    assert_eq!(status(&world).await["canary"]["startedAt"], started);
    let requests = world.server.requests();
    let changes = requests.iter().filter(|(call, _)| {
        let verb = format!("{:?}", call.verb);
        call.resource.starts_with("configmaps") && ["Create", "Patch", "Delete"].contains(&&*verb)
    });
    let changes: Vec<String> = changes.map(|(call, _)| format!("{call:?}")).collect();
    assert_eq!(changes, [""; 0], "nothing goes back and forth");

    // A person takes it back.
    let new = token(&world).await;
    annotate(&world, json!({"reeve.dev/roll-back": new})).await;
    is_at(&world, "RolledBack", "RolledBack").await;
    assert_eq!(differing(&during, &made(&world).await).len(), 3);
    world.wait(Duration::from_secs(2000)).await;
    is_at(&world, "RolledBack", "RolledBack").await;
    // And goes forward again: it begins anew.
    annotate(&world, json!({"reeve.dev/roll-back": null})).await;
    is_at(&world, "Progressing", "Canary").await;
    assert_eq!(made(&world).await, during);
    // Without a policy it takes over when it is looked at next.
    set_policy(&world, Value::Null).await;
    world.wait(Duration::from_secs(10)).await;
    is_at(&world, "Passed", "Running").await;
}

/// Without a cache the new one runs for all after a restart. It is no canary then, and what
/// it was approved for ends with it.
#[tokio::test(start_paused = true)]
async fn a_version_that_some_units_ran_approves_nothing_later() {
    let mut world = fleet(World::new().await).await;
    set_policy(&world, json!({"units": "30%", "seconds": 1000})).await;
    let wider = |version: &str| {
        let mut config = config(version);
        config["reads"] = json!(["ConfigMap.v1", "Service.v1"]);
        config
    };
    send(&world, wider("longer")).await;
    world.approve("chameleon").await;
    world.settle().await;
    is_at(&world, "Progressing", "Canary").await;
    let asks = status(&world).await["canary"]["asks"].to_string();
    assert!(asks.contains("read Service"), "{asks}");
    world.stop().await;
    world.start();
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "Running", "{loaded:?}");
    assert_eq!(status(&world).await.get("canary"), None);
    set_policy(&world, Value::Null).await;
    send(&world, config("narrow again")).await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "Running", "{loaded:?}");
    send(&world, wider("something else")).await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "ApprovalRequired", "{loaded:?}");
}

/// A replica that has no cache runs the new one for all, and says so when it leads: whatever
/// the leader before has said while this one stood by.
#[tokio::test(start_paused = true)]
async fn a_replica_without_the_version_before_does_not_go_on_with_a_canary() {
    let world = World::new().await;
    let one = world.replica("one");
    for name in NAMES {
        world.tenant(name, &[]).await;
    }
    world.allow("chameleon").await;
    let component = [("plugin.wasm", guest("chameleon"))];
    let deliver = async |version: &str| {
        let config = Some(config(version));
        world.deliver("chameleon", &component, config).await;
        sleep(Duration::from_secs(30)).await;
    };
    deliver("1").await;
    let before = made(&world).await;
    let canary = json!({"units": 2, "seconds": 1000});
    let policy = json!({"spec": {"upgrade": {"canary": canary, "shadow": "Off"}}});
    let plugin = plugin_reference("chameleon");
    world.edit(&plugin, policy).await;
    deliver("longer").await;
    let two = world.replica("two");
    sleep(Duration::from_secs(30)).await;
    // Now the leader says it once more.
    world.tenant("kim", &[]).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(status(&world).await["canary"]["phase"], "Progressing");
    assert_eq!(differing(&before, &made(&world).await).len(), 2);
    one.stop().await;
    sleep(Duration::from_secs(60)).await;
    assert!(two.status().borrow().leading);
    assert_eq!(differing(&before, &made(&world).await).len(), NAMES.len());
    assert_eq!(status(&world).await.get("canary"), None);
}

/// To let a version do what it was held for is not to let it do that everywhere at once.
#[tokio::test(start_paused = true)]
async fn a_version_that_was_approved_runs_for_some_first_all_the_same() {
    let world = fleet(World::new().await).await;
    let policy = json!({"maxChanged": 0, "canary": {"units": 2, "seconds": 100}});
    upgrades::set_policy(&world, policy).await;
    let before = made(&world).await;
    send(&world, config("another")).await;
    let held = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(held.reason, "UpgradeHeld", "{held:?}");
    let (_, token) = held.message.rsplit_once('=').unwrap();
    annotate(&world, json!({"reeve.dev/approve-upgrade": token})).await;
    is_at(&world, "Progressing", "Canary").await;
    assert_eq!(differing(&before, &made(&world).await).len(), 2);
    world.wait(Duration::from_secs(120)).await;
    is_at(&world, "Passed", "Running").await;
}

/// Taken back, a version that some units run leaves all with the one that they had, and not
/// with one that was gone back from before.
#[tokio::test(start_paused = true)]
async fn a_version_is_taken_back_after_another_was_gone_back_from() {
    let world = fleet(World::new().await).await;
    let before = made(&world).await;
    send(&world, config("second")).await;
    let good = status(&world).await["lastGood"].clone();
    let digest = |field: &str| good[field].as_str().unwrap().parse().unwrap();
    let second = upgrade::token(&digest("digest"), &digest("configDigest"));
    annotate(&world, json!({"reeve.dev/roll-back": second})).await;
    assert_eq!(made(&world).await, before);
    assert_eq!(status(&world).await["rolledBackFrom"], good);
    set_policy(&world, json!({"units": 2, "seconds": 100})).await;
    send(&world, config("the third")).await;
    is_at(&world, "Progressing", "Canary").await;
    assert_eq!(status(&world).await.get("rolledBackFrom"), None);
    let third = token(&world).await;
    annotate(&world, json!({"reeve.dev/roll-back": third})).await;
    is_at(&world, "RolledBack", "RolledBack").await;
    assert_eq!(made(&world).await, before);
}

/// What runs for all goes on after a restart, also where a status of before still says that
/// it was taken back, and the word that let it was for what it was held for.
#[tokio::test(start_paused = true)]
async fn a_version_that_took_over_goes_on_whatever_was_said_before() {
    let mut world = fleet(World::new().await).await;
    set_policy(&world, json!({"units": 2, "seconds": 100})).await;
    send(&world, bad(1)).await;
    is_at(&world, "Returned", "CanaryReturned").await;
    let canary = status(&world).await["canary"].clone();
    let token = token(&world).await;
    let word = |text: String| json!({"reeve.dev/approve-upgrade": text});
    annotate(&world, word(format!("{token}/all"))).await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "Running", "{loaded:?}");
    world.stop().await;

    let plugin = plugin_reference("chameleon");
    let metadata = json!({"annotations": word(token)});
    world.edit(&plugin, json!({"metadata": metadata})).await;
    let before = json!({"status": {"canary": canary}});
    let plugins = world.api(&plugin);
    let (params, before) = (PatchParams::default(), Patch::Merge(&before));
    plugins
        .patch_status("chameleon", &params, &before)
        .await
        .unwrap();
    assert_eq!(status(&world).await["canary"]["phase"], "Returned");
    world.start();
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "Running", "{loaded:?}");
}

/// What a newer version is held for is what it would do beyond the one that runs, which is
/// another once the one that some units had first has all of them.
#[tokio::test(start_paused = true)]
async fn a_newer_version_is_held_against_the_one_that_passes() {
    let objects = |count: usize, bytes: usize| {
        upgrades::config(&json!({"do": "objects", "count": count, "bytes": bytes}))
    };
    let world = fleet_under(World::new().await, objects(2, 10)).await;
    let canary = json!({"units": "30%", "seconds": 100});
    upgrades::set_policy(&world, json!({"canary": canary, "maxChanged": 0})).await;
    send(&world, objects(1, 10)).await;
    is_at(&world, "Progressing", "Canary").await;
    send(&world, objects(1, 20)).await;
    let counts = async || {
        let shadow = status(&world).await["shadow"].clone();
        (shadow["changed"].as_u64(), shadow["deleted"].as_u64())
    };
    is_at(&world, "Progressing", "UpgradeHeld").await;
    assert_eq!(counts().await, (Some(10), Some(7)));
    // Long before anybody looks again by the clock.
    world.wait(Duration::from_secs(101)).await;
    is_at(&world, "Passed", "UpgradeHeld").await;
    assert_eq!(counts().await, (Some(10), Some(0)));
}
