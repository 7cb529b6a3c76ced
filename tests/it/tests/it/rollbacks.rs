//! Versions that are gone back from.

use crate::upgrades::{
    annotate, config, deliver, echo, fleet, held, made, repairs, runs, set_policy, status, stopped,
};
use reeve_core::upgrade;
use reeve_it::{World, config_map_reference, core_reference, plugin_reference};
use serde_json::{Value, json};

/// Whether the object of a unit is what the version with so many reads makes.
async fn is_of(world: &World, version: u32) -> bool {
    let object = core_reference("ConfigMap", "ann", "chameleon-ann");
    let object = world.get(&object).await.unwrap();
    let config = object["data"]["config"].as_str().unwrap();
    let config: Value = serde_json::from_str(config).unwrap();
    config["reads"].as_array().unwrap().len() == version as usize
}

async fn roll_back(world: &World) {
    let good = &status(world).await["lastGood"];
    let digest = |field: &str| good[field].as_str().unwrap().parse().unwrap();
    let token = upgrade::token(&digest("digest"), &digest("configDigest"));
    annotate(world, json!({"reeve.dev/roll-back": token})).await;
}

async fn check_rollback(mut world: World, cache: bool) {
    deliver(&world, echo(2)).await;
    assert!(is_of(&world, 2).await);
    let first = status(&world).await["previous"].clone();
    roll_back(&world).await;
    let message = held(&world, "RolledBack").await;
    assert!(
        message.contains("`reeve plugin rollback chameleon --namespace reeve-system --undo`"),
        "{message}"
    );
    assert!(is_of(&world, 1).await);
    let now = status(&world).await;
    assert_eq!((&now["lastGood"], now.get("previous")), (&first, None));
    repairs(&world).await;
    assert!(is_of(&world, 1).await);
    if cache {
        world.stop().await;
        world.start();
        world.settle().await;
        held(&world, "RolledBack").await;
        repairs(&world).await;
        assert!(is_of(&world, 1).await);
    }
    annotate(&world, json!({"reeve.dev/roll-back": null})).await;
    runs(&world).await;
    assert!(is_of(&world, 2).await);
    assert_eq!(status(&world).await["previous"], first);
    // A newer version is not the one that was gone back from.
    roll_back(&world).await;
    held(&world, "RolledBack").await;
    deliver(&world, echo(3)).await;
    runs(&world).await;
    assert!(is_of(&world, 3).await);
    assert_eq!(status(&world).await["previous"], first);
    // One that is held is not in the way.
    roll_back(&world).await;
    assert!(is_of(&world, 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_version_is_gone_back_from() {
    check_rollback(fleet(echo(1)).await, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_stays_gone_back_from_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = stopped(folder.path(), echo(1)).await;
    world.start();
    world.settle().await;
    check_rollback(world, true).await;
}

#[tokio::test(start_paused = true)]
async fn there_may_be_nothing_to_go_back_to() {
    let world = fleet(echo(1)).await;
    roll_back(&world).await;
    let message = held(&world, "RollbackFailed").await;
    assert!(
        message.contains("no version is known that ran before it"),
        "{message}"
    );
    assert!(is_of(&world, 1).await);
    annotate(&world, json!({"reeve.dev/roll-back": null})).await;
    runs(&world).await;
}

/// A newer version that is refused keeps nobody from leaving the one that runs.
#[tokio::test(start_paused = true)]
async fn a_version_is_gone_back_from_while_a_newer_one_is_held() {
    let world = fleet(echo(1)).await;
    deliver(&world, echo(2)).await;
    deliver(&world, config(&json!({"do": "trap"}))).await;
    held(&world, "UpgradeBroken").await;
    assert!(is_of(&world, 2).await);
    roll_back(&world).await;
    let message = held(&world, "UpgradeBroken").await;
    for said in ["with configuration sha256:", "--undo` returns to"] {
        assert!(message.contains(said), "{message}");
    }
    assert!(is_of(&world, 1).await);
}

/// What was gone back from while a newer version is refused is not lost.
async fn check_regained(mut world: World, cache: bool) {
    deliver(&world, echo(2)).await;
    let second = status(&world).await["lastGood"].clone();
    deliver(&world, config(&json!({"do": "trap"}))).await;
    roll_back(&world).await;
    assert!(is_of(&world, 1).await);
    assert_eq!(status(&world).await["rolledBackFrom"], second);
    if cache {
        for undone in [false, true] {
            world.stop().await;
            if undone {
                let metadata = json!({"annotations": {"reeve.dev/roll-back": null}});
                let undo = json!({"metadata": metadata});
                world.edit(&plugin_reference("chameleon"), undo).await;
            }
            world.start();
            world.settle().await;
            let message = held(&world, "UpgradeBroken").await;
            assert_eq!(message.contains("rolled back to on request"), !undone);
            assert!(is_of(&world, if undone { 2 } else { 1 }).await);
        }
    } else {
        annotate(&world, json!({"reeve.dev/roll-back": null})).await;
    }
    let message = held(&world, "UpgradeBroken").await;
    assert!(!message.contains("rolled back to on request"), "{message}");
    assert!(is_of(&world, 2).await);
    let now = status(&world).await;
    assert_eq!(now["lastGood"], second);
    assert_eq!(now.get("rolledBackFrom"), None);
    // And may be gone back from once more.
    roll_back(&world).await;
    assert!(is_of(&world, 1).await);
    deliver(&world, echo(3)).await;
    runs(&world).await;
    assert!(is_of(&world, 3).await);
    assert_eq!(status(&world).await.get("rolledBackFrom"), None);
}

#[tokio::test(start_paused = true)]
async fn what_was_gone_back_from_runs_again_though_the_newest_does_not() {
    check_regained(fleet(echo(1)).await, false).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_gone_back_from_runs_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = stopped(folder.path(), echo(1)).await;
    world.start();
    world.settle().await;
    check_regained(world, true).await;
}

/// What was gone back from is forgotten with the going back: the newest that is refused
/// later does not bring it up.
#[tokio::test(start_paused = true)]
async fn what_was_gone_back_from_does_not_come_up_later() {
    let undo = async |world: &World| {
        annotate(world, json!({"reeve.dev/roll-back": null})).await;
    };
    let broken = || config(&json!({"do": "trap"}));
    // The ConfigMap has what was gone back to.
    let world = fleet(echo(1)).await;
    deliver(&world, echo(2)).await;
    roll_back(&world).await;
    deliver(&world, echo(1)).await;
    assert_eq!(status(&world).await.get("rolledBackFrom"), None);
    undo(&world).await;
    runs(&world).await;
    deliver(&world, broken()).await;
    held(&world, "UpgradeBroken").await;
    assert!(is_of(&world, 1).await);

    // There was nothing to go back to, and another one was delivered for that.
    let world = fleet(echo(1)).await;
    roll_back(&world).await;
    held(&world, "RollbackFailed").await;
    deliver(&world, echo(2)).await;
    runs(&world).await;
    let now = status(&world).await;
    assert_eq!(
        (now.get("previous"), now.get("rolledBackFrom")),
        (None, None)
    );
    undo(&world).await;
    deliver(&world, broken()).await;
    held(&world, "UpgradeBroken").await;
    assert!(is_of(&world, 2).await);

    // It was removed and installed again.
    let world = fleet(echo(1)).await;
    deliver(&world, echo(2)).await;
    roll_back(&world).await;
    world.delete(&config_map_reference("chameleon")).await;
    world.settle().await;
    undo(&world).await;
    deliver(&world, echo(1)).await;
    runs(&world).await;
    deliver(&world, broken()).await;
    held(&world, "UpgradeBroken").await;
    assert!(is_of(&world, 1).await);
}

/// Another version that a person does not want is none that the one from before is wanted
/// again for.
#[tokio::test(start_paused = true)]
async fn what_was_gone_back_from_does_not_come_up_for_another() {
    let world = fleet(echo(1)).await;
    deliver(&world, echo(2)).await;
    roll_back(&world).await;
    deliver(&world, config(&json!({"do": "trap"}))).await;
    held(&world, "UpgradeBroken").await;
    let shadow = status(&world).await["shadow"].clone();
    let digest = |field: &str| shadow[field].as_str().unwrap().parse().unwrap();
    let token = upgrade::token(&digest("digest"), &digest("configDigest"));
    annotate(&world, json!({"reeve.dev/roll-back": token})).await;
    held(&world, "RolledBack").await;
    assert!(is_of(&world, 1).await);
}

/// What a version is held for is what it would do beyond the one that runs, which another
/// one does when a person has gone back.
#[tokio::test(start_paused = true)]
async fn a_held_version_is_held_against_what_was_gone_back_to() {
    let objects = |count: usize, bytes: usize| {
        config(&json!({"do": "objects", "count": count, "bytes": bytes}))
    };
    let world = fleet(objects(2, 10)).await;
    set_policy(&world, json!({"shadow": "Off"})).await;
    deliver(&world, objects(1, 10)).await;
    runs(&world).await;
    let policy = json!({"shadow": null, "maxDeleted": 0, "maxChanged": 0});
    set_policy(&world, policy).await;
    deliver(&world, objects(1, 20)).await;
    held(&world, "UpgradeHeld").await;
    let counts = async || {
        let shadow = status(&world).await["shadow"].clone();
        (shadow["changed"].as_u64(), shadow["deleted"].as_u64())
    };
    assert_eq!(counts().await, (Some(5), Some(0)));
    roll_back(&world).await;
    held(&world, "UpgradeHeld").await;
    assert_eq!(made(&world).await, 10);
    assert_eq!(counts().await, (Some(5), Some(5)));
    annotate(&world, json!({"reeve.dev/roll-back": null})).await;
    held(&world, "UpgradeHeld").await;
    assert_eq!(made(&world).await, 5);
    assert_eq!(counts().await, (Some(5), Some(0)));
}

/// Without a cache a restart loses the version that was gone back to. The one that was
/// gone back from does not run for that.
#[tokio::test(start_paused = true)]
async fn a_restart_without_a_cache_loses_what_was_gone_back_to() {
    let mut world = fleet(echo(1)).await;
    deliver(&world, echo(2)).await;
    roll_back(&world).await;
    world.stop().await;
    world.start();
    world.settle().await;
    for kind in ["Loaded", "Ready"] {
        let found = world.plugin_condition("chameleon", kind).await;
        assert_eq!(
            (found.status.as_str(), found.reason.as_str()),
            ("False", "RollbackFailed"),
            "{found:?}"
        );
        assert!(found.message.contains("without --cache"), "{found:?}");
    }
    assert!(is_of(&world, 1).await);
    annotate(&world, json!({"reeve.dev/roll-back": null})).await;
    runs(&world).await;
    assert!(is_of(&world, 2).await);
}
