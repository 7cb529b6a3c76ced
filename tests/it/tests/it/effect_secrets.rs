//! Secrets that are generated for effects: there before anything is made, and nobody
//! else's.

use crate::effects::{self, Service};
use reeve_it::{World, core_reference};
use serde_json::{Value, json};
use std::time::Duration;

/// A world in which alice asks for a database, whose Secret is all that there ever is of it:
/// no connection is granted.
async fn world() -> World {
    let (world, _, _): (World, Service, String) = effects::world(json!({"database": true})).await;
    effects::allow_secrets(&world).await;
    world
}

fn login() -> Value {
    core_reference("Secret", "alice", "login")
}

async fn password(world: &World) -> Value {
    let login = world.get(&login()).await.unwrap_or_default();
    login["data"]["password"].clone()
}

async fn database(world: &World) -> Value {
    let unit = world.unit("envoy", "alice").await.unwrap_or_default();
    let actions = unit["status"]["actions"].as_array().unwrap();
    let found = actions.iter().find(|action| action["key"] == "database");
    found.unwrap().clone()
}

/// Attempts, restarts and changes beside it are no reason for another value; only that it
/// is gone is.
#[tokio::test(start_paused = true)]
async fn a_value_stays_until_its_secret_is_deleted() {
    let mut world = world().await;
    world.wait(Duration::from_secs(60)).await;
    let first = password(&world).await;
    // In base64 as the API has it.
    assert_eq!(first.as_str().unwrap().len(), 60, "{first}");
    let failures = database(&world).await["failures"].as_u64().unwrap();
    assert!(failures > 1, "{failures}");

    world.stop().await;
    world.start();
    world.wait(Duration::from_secs(400)).await;
    assert_eq!(password(&world).await, first);
    let more = json!({"data": {"theirs": "eA=="}});
    world.edit(&login(), more).await;
    world.wait(Duration::from_secs(400)).await;
    assert_eq!(password(&world).await, first);

    world.delete(&login()).await;
    world.wait(Duration::from_secs(400)).await;
    let second = password(&world).await;
    assert_eq!(second.as_str().unwrap().len(), 60, "{second}");
    assert_ne!(second, first);
    // One that does not hold what is asked for is as good as none.
    let other = json!({"data": {"password": "c2hvcnQ="}});
    world.edit(&login(), other).await;
    world.wait(Duration::from_secs(400)).await;
    let third = password(&world).await;
    assert_eq!(third.as_str().unwrap().len(), 60, "{third}");
    assert!(third != first && third != second);
}

/// Who has a Secret of that name keeps it, and no password becomes known to them.
#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_else_is_left_alone() {
    let mut world = world().await;
    world.stop().await;
    if world.get(&login()).await.is_some() {
        world.delete(&login()).await;
    }
    let mut theirs = login();
    theirs["stringData"] = json!({"password": "theirs"});
    theirs["metadata"]["annotations"] = json!({"reeve.dev/generated-for": "somebody else"});
    world.apply(&theirs).await;
    let before = world.get(&login()).await;
    world.start();
    world.wait(Duration::from_secs(120)).await;
    assert_eq!(world.get(&login()).await, before);
    let message = database(&world).await["message"].clone();
    let expected = "Secret alice/login exists and was not generated for this action; delete it, or";
    assert!(message.as_str().unwrap().contains(expected), "{message}");

    world.delete(&login()).await;
    world.wait(Duration::from_secs(400)).await;
    let made = password(&world).await;
    assert_eq!(made.as_str().unwrap().len(), 60, "{made}");
}
