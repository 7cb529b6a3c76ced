//! Secrets that are generated for effects: there before anything is made, and nobody
//! else's.

use crate::effects::{self, Service};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::PostParams;
use reeve_core::ownership::{
    ADOPTED_VALUE_ANNOTATION, GENERATED_BY_ANNOTATION, GENERATED_FOR_ANNOTATION,
};
use reeve_it::{World, core_reference, plugin_reference};
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
    let expected =
        "Secret alice/login exists and was not generated for this action; delete it, which";
    assert!(message.as_str().unwrap().contains(expected), "{message}");

    world.delete(&login()).await;
    world.wait(Duration::from_secs(400)).await;
    let made = password(&world).await;
    assert_eq!(made.as_str().unwrap().len(), 60, "{made}");
}

/// Where a plugin may adopt what others made, their value goes on, and is the plugin's from
/// then on; one that could be guessed does not, nor one that is somebody's.
#[tokio::test(start_paused = true)]
async fn a_secret_is_adopted_with_its_value() {
    let mut world = world().await;
    world.wait(Duration::from_secs(60)).await;
    let spec = json!({"spec": {"adoption": "IfUnowned"}});
    world.edit(&plugin_reference("envoy"), spec).await;
    let theirs = "Theirs-2q2_7AAAAAAAAAAAAAAAAAAAAAAAAAAAAA0=";
    for (value, labels, adopted) in [
        (theirs, json!({}), true),
        (&theirs[..15], json!({}), false),
        (
            theirs,
            json!({"app.kubernetes.io/managed-by": "Helm"}),
            false,
        ),
    ] {
        world.stop().await;
        world.delete(&login()).await;
        let mut secret = login();
        let data = [("user", "reeve_alice"), ("password", value)];
        let data = data.map(|(key, text)| (key, STANDARD.encode(text)));
        secret["data"] = json!(BTreeMap::from(data));
        secret["metadata"]["labels"] = labels;
        let params = PostParams {
            field_manager: Some("controller".to_owned()),
            ..PostParams::default()
        };
        let secret = serde_json::from_value(secret).unwrap();
        let created = world.api(&login()).create(&params, &secret).await;
        created.unwrap();
        let before = world.get(&login()).await.unwrap();
        world.start();
        world.wait(Duration::from_secs(400)).await;
        let after = world.get(&login()).await.unwrap();
        assert_eq!(after["data"], before["data"], "{value}");
        if !adopted {
            assert_eq!(after, before, "{value}");
            let message = database(&world).await["message"].clone();
            let message = message.as_str().unwrap();
            assert!(message.contains("it is not adopted, since"), "{message}");
            continue;
        }
        let mut expected = annotations();
        expected[ADOPTED_VALUE_ANNOTATION] = json!("true");
        assert_eq!(after["metadata"]["annotations"], expected);
        // Neither a restart nor what somebody else puts beside it changes that.
        world.stop().await;
        world
            .edit(&login(), json!({"data": {"theirs": "eA=="}}))
            .await;
        world.start();
        world.wait(Duration::from_secs(400)).await;
        assert_eq!(password(&world).await, before["data"]["password"]);
        // A value that somebody else writes into it is not taken.
        let other = STANDARD.encode("Other-2q2_7AAAAAAAAAAAAAAAAAAAAAAAAAAAAA0=");
        world
            .edit(&login(), json!({"data": {"password": other}}))
            .await;
        world.wait(Duration::from_secs(700)).await;
        let message = database(&world).await["message"].clone();
        let message = message.as_str().unwrap();
        assert!(message.contains("did not write its entry"), "{message}");
    }
}

/// The login with other annotations and values, written by a manager.
async fn write(world: &World, manager: &str, annotations: Value, password: &str) {
    if world.get(&login()).await.is_some() {
        world.delete(&login()).await;
    }
    let mut forged = login();
    forged["metadata"]["annotations"] = annotations;
    let data = [("user", "reeve_alice"), ("password", password)];
    let data = data.map(|(key, text)| (key, STANDARD.encode(text)));
    forged["data"] = json!(BTreeMap::from(data));
    world.apply_as(manager, &forged).await;
}

/// What the login says, and who says so.
fn annotations() -> Value {
    json!({
        GENERATED_FOR_ANNOTATION: "Profile.kubeflow.org//alice database password",
        GENERATED_BY_ANNOTATION: "envoy",
    })
}

/// Whoever may write Secrets may write what those say that are generated, a value of the
/// right form among it, and knows the password then.
#[tokio::test(start_paused = true)]
async fn a_forged_secret_is_no_password() {
    let mut world = world().await;
    world.wait(Duration::from_secs(60)).await;
    let made = world.get(&login()).await.unwrap();
    assert_eq!(made["metadata"]["annotations"], annotations());
    world.stop().await;
    let known = "a".repeat(43);
    write(&world, "reeve/courier", annotations(), &known).await;
    let before = world.get(&login()).await;
    world.start();
    world.wait(Duration::from_secs(400)).await;
    assert_eq!(world.get(&login()).await, before);
    let message = database(&world).await["message"].clone();
    let expected = "Secret alice/login says that it was generated for this action, and reeve/envoy did not write that; ";
    assert!(message.as_str().unwrap().contains(expected), "{message}");

    // A person who knows better says so.
    let mut kept = before.unwrap();
    kept["metadata"] = json!({
        "name": "login", "namespace": "alice", "annotations": annotations(),
    });
    world.apply_as("reeve/envoy", &kept).await;
    world.wait(Duration::from_secs(400)).await;
    let message = database(&world).await["message"].clone();
    assert!(
        !message.to_string().contains("Secret alice/login"),
        "{message}"
    );
    assert_eq!(password(&world).await, kept["data"]["password"]);

    // Nor does a value become known that is written into the one that was generated.
    let edit = json!({"stringData": {"password": "b".repeat(43)}});
    world.edit(&login(), edit).await;
    world.wait(Duration::from_secs(400)).await;
    let message = database(&world).await["message"].clone();
    let expected = "reeve/envoy did not write its entry password; delete it, which makes";
    assert!(message.as_str().unwrap().contains(expected), "{message}");
}

/// What a version made that did not name the plugin keeps its value.
#[tokio::test(start_paused = true)]
async fn a_secret_of_a_version_before_is_kept() {
    let mut world = world().await;
    world.wait(Duration::from_secs(60)).await;
    world.stop().await;
    let mut former = annotations();
    former
        .as_object_mut()
        .unwrap()
        .remove(GENERATED_BY_ANNOTATION);
    write(&world, "reeve/envoy", former, &"a".repeat(43)).await;
    let before = world.get(&login()).await;
    world.start();
    world.wait(Duration::from_secs(400)).await;
    assert_eq!(world.get(&login()).await, before);
    let message = database(&world).await["message"].clone();
    assert!(
        !message.to_string().contains("Secret alice/login"),
        "{message}"
    );
}

/// Nor is one that was generated for another plugin, with the same name and primary.
#[tokio::test(start_paused = true)]
async fn a_value_is_of_one_plugin() {
    let mut world = world().await;
    world.wait(Duration::from_secs(60)).await;
    world.stop().await;
    let mut other = annotations();
    other[GENERATED_BY_ANNOTATION] = json!("courier");
    write(&world, "reeve/courier", other, &"a".repeat(43)).await;
    let before = world.get(&login()).await;
    world.start();
    world.wait(Duration::from_secs(400)).await;
    assert_eq!(world.get(&login()).await, before);
    let message = database(&world).await["message"].clone();
    let expected =
        "Secret alice/login exists and was not generated for this action; delete it, which";
    assert!(message.as_str().unwrap().contains(expected), "{message}");
}
