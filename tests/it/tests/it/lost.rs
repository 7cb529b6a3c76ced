//! Writes whose answers were lost: what became of them is found out before the plugin is
//! asked again, also where no watch tells.

use crate::told::{PLUGIN, config_map, journal, tell, world};
use reeve_it::World;
use serde_json::{Value, json};
use std::time::Duration;

/// Writes of ConfigMaps that reached the server, since this was last asked.
fn sent(world: &World) -> u64 {
    let requests = world.server.requests();
    world.server.reset_requests();
    let writes = requests
        .iter()
        .filter(|(call, _)| call.resource == "configmaps" && call.verb.is_write() && !call.dry_run);
    writes.map(|(_, count)| count).sum()
}

fn faults(world: &World, texts: &[&str]) {
    let faults = texts.iter().map(|text| text.parse().unwrap());
    world.server.set_faults(faults.collect());
}

/// The object is written while watches are silent and this fault strikes the first write.
/// It is there after so many seconds and not before, and was sent so often.
async fn check(fault: &str, seconds: u64, times: u64) {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    world.wait(Duration::from_secs(5)).await;
    let fault = format!("{fault}verb=create|patch|update, resource=configmaps, count=1");
    faults(&world, &["silent-watch: resource=configmaps", &fault]);
    sent(&world);
    let object = config_map("alice", "c", &json!({"a": "1"}));
    tell(&world, "alice", &object).await;
    if seconds > 0 {
        world.wait(Duration::from_secs(seconds - 2)).await;
        assert_eq!(world.get(&object).await, None, "{fault}");
        let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
        assert_eq!(ready.reason, "Unreachable", "{ready:?}");
        for part in [
            "ConfigMap",
            "alice/c",
            "the answer to a write was lost",
            "The plugin is not asked again before that is known",
        ] {
            assert!(ready.message.contains(part), "{part}: {ready:?}");
        }
    }
    world.wait(Duration::from_secs(12)).await;
    let live = world.get(&object).await.unwrap();
    assert_eq!(live["data"]["a"], "1", "{fault}");
    assert_eq!(sent(&world), times, "{fault}");
    assert_eq!(world.unit(PLUGIN, "alice").await, None, "{fault}");
}

#[tokio::test(start_paused = true)]
async fn what_was_done_is_found_and_not_done_twice() {
    check("lost-answer: ", 0, 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_done_late_is_waited_for() {
    check("lost-answer: delay=7s, ", 7, 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_not_done_is_done_when_it_cannot_come_any_more() {
    check("reset: ", 10, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_not_repeated() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let object = config_map("alice", "c", &json!({"a": "1"}));
    tell(&world, "alice", &object).await;
    world.wait(Duration::from_secs(5)).await;
    let fault = "lost-answer: verb=delete, resource=configmaps";
    faults(&world, &["silent-watch: resource=configmaps", fault]);
    sent(&world);
    tell(&world, "alice", &Value::Null).await;
    world.wait(Duration::from_secs(30)).await;
    assert_eq!(world.get(&object).await, None);
    assert_eq!(sent(&world), 1);
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}

/// While nothing answers, nothing is known: the plugin is not asked on what was true
/// before its write.
#[tokio::test(start_paused = true)]
async fn it_is_not_known_while_nobody_answers() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    world.wait(Duration::from_secs(5)).await;
    let lost = "lost-answer: verb=create|patch, resource=configmaps, count=1";
    let silent = "silent-watch: resource=configmaps";
    let first = config_map("alice", "c", &json!({"a": "1"}));
    faults(&world, &[silent, lost]);
    sent(&world);
    tell(&world, "alice", &first).await;
    faults(&world, &[silent, "reset: verb=get, resource=configmaps"]);
    let second = config_map("alice", "d", &json!({"a": "2"}));
    tell(&world, "alice", &second).await;
    world.wait(Duration::from_secs(60)).await;
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "Unreachable", "{ready:?}");
    assert_eq!(sent(&world), 1, "{ready:?}");
    faults(&world, &[silent]);
    world.wait(Duration::from_secs(120)).await;
    // The first was made unseen, and is not forgotten now that it is not wanted.
    assert_eq!(world.get(&first).await, None);
    assert_eq!(world.get(&second).await.unwrap()["data"]["a"], "2");
}

/// What somebody sets while an apply is on its way is written down before it goes.
#[tokio::test(start_paused = true)]
async fn an_edit_that_meets_an_apply_is_not_lost() {
    let world = world("ConfigMap.v1", &json!({})).await;
    world.tenant("alice", &[]).await;
    let object = |data: Value| config_map("alice", "c", &data);
    tell(&world, "alice", &object(json!({"a": "1"}))).await;
    let slow = "latency: delay=5s, verb=patch, resource=configmaps, user=system:serviceaccount:*";
    faults(&world, &[slow]);
    let edit = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let patch = json!({"data": {"a": "edited"}});
        world.edit(&object(json!({})), patch).await;
    };
    let wanted = object(json!({"a": "1", "b": "2"}));
    tokio::join!(tell(&world, "alice", &wanted), edit);
    world.wait(Duration::from_secs(30)).await;
    let live = world.get(&wanted).await.unwrap();
    assert_eq!(live["data"], wanted["data"]);
    let entries = journal(&world).await;
    let text = ".data.a by \"kubectl-edit\"";
    assert!(
        entries.iter().any(|(operation, name, reason)| {
            operation == "Overwrite" && name == "c" && reason.contains(text)
        }),
        "{entries:?}"
    );
    assert_eq!(world.unit(PLUGIN, "alice").await, None);
}
