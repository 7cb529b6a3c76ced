//! New versions that would do more than an upgrade may.

use reeve_core::upgrade;
use reeve_it::{
    NAMESPACE, World, config_map_reference, core_reference, guest, plugin_reference,
    profile_reference,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const NAMES: [&str; 5] = ["ann", "bob", "cyd", "dan", "eve"];

pub(crate) fn config(deed: &Value) -> Value {
    json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reconcile": deed,
    })
}

/// Another version of what it answers, and nothing else: its configuration is in what it
/// makes.
pub(crate) fn echo(version: u32) -> Value {
    let mut config = config(&json!({"do": "echo"}));
    config["reads"] = json!(vec!["ConfigMap.v1"; version as usize]);
    config
}

async fn send(world: &World, config: Value) {
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.deliver("chameleon", &component, Some(config)).await;
}

pub(crate) async fn deliver(world: &World, config: Value) {
    send(world, config).await;
    world.settle().await;
}

/// A fleet that a version serves.
async fn fleet_of(mut world: World, config: Value) -> World {
    world.start();
    for name in NAMES {
        world.tenant(name, &[]).await;
    }
    world.allow("chameleon").await;
    deliver(&world, config).await;
    world
}

pub(crate) async fn fleet(config: Value) -> World {
    fleet_of(World::new().await, config).await
}

pub(crate) async fn set_policy(world: &World, policy: Value) {
    let patch = json!({"spec": {"upgrade": policy}});
    world.edit(&plugin_reference("chameleon"), patch).await;
    world.settle().await;
}

pub(crate) async fn annotate(world: &World, annotations: Value) {
    let patch = json!({"metadata": {"annotations": annotations}});
    world.edit(&plugin_reference("chameleon"), patch).await;
    world.settle().await;
}

pub(crate) async fn status(world: &World) -> Value {
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    plugin["status"].clone()
}

/// Checks why the newest version does not run, and that the one before does. Returns
/// what is said.
pub(crate) async fn held(world: &World, reason: &str) -> String {
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(
        (loaded.status.as_str(), loaded.reason.as_str()),
        ("False", reason),
        "{loaded:?}"
    );
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
    loaded.message
}

pub(crate) async fn runs(world: &World) {
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
}

/// The token behind an annotation that a message names.
fn token(message: &str, annotation: &str) -> String {
    let (_, rest) = message
        .split_once(&format!("{annotation}="))
        .unwrap_or_else(|| panic!("no {annotation} in {message}"));
    let end = rest.find(|c: char| !c.is_ascii_hexdigit());
    rest[..end.unwrap_or(rest.len())].to_owned()
}

pub(crate) async fn made(world: &World) -> usize {
    let mut count = 0;
    for name in NAMES {
        let all = world.list(&core_reference("ConfigMap", name, "")).await;
        let ours = |object: &&Value| {
            let name = object["metadata"]["name"].as_str().unwrap();
            name.starts_with("chameleon")
        };
        count += all.iter().filter(ours).count();
    }
    count
}

/// What of the requests since the last reset writes to anything but reports.
fn writes(world: &World) -> Vec<String> {
    let requests = world.server.requests();
    let verbs = ["Create", "Patch", "Update", "Delete", "DeleteCollection"];
    let told = ["plugins", "events"];
    requests
        .iter()
        .filter(|(call, _)| verbs.contains(&format!("{:?}", call.verb).as_str()))
        .filter(|(call, _)| !call.resource.contains("reviews"))
        .filter(|(call, _)| !told.iter().any(|told| call.resource.starts_with(told)))
        .map(|(call, count)| format!("{call:?}: {count}"))
        .collect()
}

/// Checks that an object of the version that runs comes back.
pub(crate) async fn repairs(world: &World) {
    let object = core_reference("ConfigMap", "ann", "chameleon-ann");
    world.delete(&object).await;
    world.settle().await;
    assert!(world.get(&object).await.is_some(), "it does what it did");
}

#[tokio::test(start_paused = true)]
async fn what_would_be_deleted_is_counted_and_not_done() {
    let world = fleet(config(&json!({"do": "objects", "count": 10}))).await;
    assert_eq!(made(&world).await, 50);
    let fewer = config(&json!({"do": "objects", "count": 5}));
    send(&world, fewer).await;
    world.server.reset_requests();
    world.settle().await;
    assert_eq!(writes(&world), Vec::<String>::new());
    assert_eq!(made(&world).await, 50);
    let message = held(&world, "UpgradeHeld").await;
    for text in [
        "25 of 50 objects would be deleted, where 100 and 30% may",
        "0 objects would be created, 0 changed and 25 deleted, 0 of 5 units would newly fail, \
         and 0 stay as they are",
        "`reeve plugin diff chameleon --namespace reeve-system`",
        "`reeve plugin approve chameleon --namespace reeve-system`",
    ] {
        assert!(message.contains(text), "`{text}` is not in {message}");
    }
    let shadow = status(&world).await["shadow"].clone();
    for (field, expected) in [
        ("verdict", json!("Held")),
        ("units", json!(5)),
        ("unchanged", json!(0)),
        ("failing", json!(0)),
        ("created", json!(0)),
        ("changed", json!(0)),
        ("deleted", json!(25)),
        ("owned", json!(50)),
    ] {
        assert_eq!(shadow[field], expected, "{field} in {shadow}");
    }
    let examples = shadow["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 10);
    let first = examples[0].as_str().unwrap();
    assert!(
        first.starts_with("delete ConfigMap ann/chameleon-ann-"),
        "{first}"
    );
    let events = world.list(&core_reference("Event", NAMESPACE, "")).await;
    let event = events.iter().find(|event| event["reason"] == "UpgradeHeld");
    let event = event.unwrap_or_else(|| panic!("no event among {events:?}"));
    assert_eq!(event["involvedObject"]["name"], "chameleon");
    assert_eq!(event["type"], "Warning");
}

#[tokio::test(start_paused = true)]
async fn a_person_lets_one_version_and_no_other() {
    let world = fleet(config(&json!({"do": "objects", "count": 3}))).await;
    set_policy(&world, json!({"maxDeleted": 4})).await;
    deliver(&world, config(&json!({"do": "objects", "count": 2}))).await;
    let message = held(&world, "UpgradeHeld").await;
    assert!(
        message.contains("5 of 15 objects would be deleted, where 4 may"),
        "{message}"
    );
    let key = "reeve.dev/approve-upgrade";
    annotate(&world, json!({key: "0123456789abcdef0123"})).await;
    held(&world, "UpgradeHeld").await;
    let approved = token(&message, key);
    annotate(&world, json!({key: approved})).await;
    runs(&world).await;
    assert_eq!(made(&world).await, 10);
    assert_eq!(status(&world).await["shadow"]["verdict"], "Approved");
    // Another version is another matter, and what it is held for is new.
    deliver(&world, config(&json!({"do": "objects", "count": 1}))).await;
    let message = held(&world, "UpgradeHeld").await;
    assert_ne!(token(&message, key), approved);
    assert_eq!(made(&world).await, 10);
    // A policy that lets it is a word too.
    set_policy(&world, json!({"maxDeleted": "40%"})).await;
    runs(&world).await;
    assert_eq!(made(&world).await, 5);
}

#[tokio::test(start_paused = true)]
async fn changes_are_bounded_where_the_policy_says_so() {
    let world = fleet(echo(1)).await;
    deliver(&world, echo(2)).await;
    runs(&world).await;
    let shadow = status(&world).await["shadow"].clone();
    assert_eq!(
        (&shadow["verdict"], &shadow["changed"]),
        (&json!("Passed"), &json!(5)),
        "{shadow}"
    );
    set_policy(&world, json!({"maxChanged": 4})).await;
    deliver(&world, echo(3)).await;
    let message = held(&world, "UpgradeHeld").await;
    assert!(
        message.contains("5 of 5 objects would be changed, where 4 may"),
        "{message}"
    );
    // The same once more changes nothing.
    deliver(&world, echo(2)).await;
    runs(&world).await;
    // What is only reported takes over.
    set_policy(&world, json!({"maxChanged": 4, "shadow": "Report"})).await;
    deliver(&world, echo(3)).await;
    runs(&world).await;
    assert_eq!(status(&world).await["shadow"]["verdict"], "Reported");
    set_policy(&world, json!({"maxChanged": "many"})).await;
    deliver(&world, echo(4)).await;
    let message = held(&world, "PolicyInvalid").await;
    assert!(
        message.contains("spec.upgrade.maxChanged of the Plugin: `many`"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_traps_never_takes_over() {
    let world = fleet(echo(1)).await;
    let before = status(&world).await;
    for deed in [json!({"do": "trap"}), json!({"do": "panic", "text": "no"})] {
        deliver(&world, config(&deed)).await;
        let message = held(&world, "UpgradeBroken").await;
        assert!(message.contains("for all 5 units"), "{message}");
        let now = status(&world).await;
        assert_eq!(now["lastGood"], before["lastGood"]);
        assert_eq!(
            (&now["shadow"]["verdict"], &now["shadow"]["trapped"]),
            (&json!("Refused"), &json!(5))
        );
        repairs(&world).await;
    }
    // No approval lets it, but the policy does.
    let good = &status(&world).await["shadow"];
    let digest = |field: &str| good[field].as_str().unwrap().parse().unwrap();
    let token = upgrade::token(&digest("digest"), &digest("configDigest"));
    annotate(&world, json!({"reeve.dev/approve-upgrade": token})).await;
    held(&world, "UpgradeBroken").await;
    set_policy(&world, json!({"shadow": "Off"})).await;
    runs(&world).await;
    let ready = world.unit_condition("chameleon", "ann", "Ready").await;
    assert_eq!(ready.reason, "Trapped", "{ready:?}");
}

#[tokio::test(start_paused = true)]
async fn units_that_fail_are_counted_if_they_did_not_before() {
    let fails = json!({"do": "fail", "how": "terminal", "text": "refused"});
    let world = fleet(echo(1)).await;
    // One fails under any version, of its own doing.
    let deed = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": fails.to_string()}}});
    world.edit(&profile_reference("bob"), deed).await;
    world.settle().await;
    deliver(&world, config(&fails)).await;
    let message = held(&world, "UpgradeHeld").await;
    assert!(
        message.contains("4 of 5 units would fail that do not now, where 10% may"),
        "{message}"
    );
    let shadow = status(&world).await["shadow"].clone();
    assert_eq!(
        (
            &shadow["failing"],
            &shadow["failingAlike"],
            &shadow["trapped"]
        ),
        (&json!(4), &json!(1), &Value::Null)
    );
    assert!(
        shadow["examples"][0]
            .as_str()
            .unwrap()
            .starts_with("fail Profile ann: Terminal: "),
        "{shadow}"
    );
    deliver(&world, echo(2)).await;
    runs(&world).await;
    assert_eq!(status(&world).await["shadow"]["failingAlike"], 1);
}

/// Below every bound on deletions, but a person would be asked about each of these units.
#[tokio::test(start_paused = true)]
async fn who_wants_nothing_and_does_not_mean_it_does_not_take_over() {
    let world = fleet(config(&json!({"do": "objects", "count": 1}))).await;
    assert_eq!(made(&world).await, 5);
    deliver(&world, config(&json!({"do": "objects", "count": 0}))).await;
    let message = held(&world, "UpgradeHeld").await;
    assert!(
        message.contains("5 of 5 units would fail that do not now, where 10% may"),
        "{message}"
    );
    let shadow = status(&world).await["shadow"].clone();
    let example = shadow["examples"][0].as_str().unwrap();
    for text in [
        "fail Profile ann: DeletionHeld: ",
        "does not say that an empty set is meant",
        "all deletions of the unit (1) would be held",
    ] {
        assert!(example.contains(text), "`{text}` is not in {example}");
    }
    assert_eq!(made(&world).await, 5);
    // With nothing to lose it may want nothing.
    let world = fleet(config(&json!({"do": "objects", "count": 0}))).await;
    deliver(
        &world,
        config(&json!({"do": "objects", "count": 0, "bytes": 1})),
    )
    .await;
    runs(&world).await;
}

/// The agent goes on with the old version while the new one is looked at: for that, an
/// object of each unit is read, which takes twenty seconds each.
#[tokio::test(start_paused = true)]
async fn drift_is_repaired_while_a_version_is_looked_at() {
    let version = |deed: Value| {
        let mut config = config(&deed);
        config["scope"] = json!(NAMES);
        config["writes"] = json!(["ConfigMap.v1", "Service.v1"]);
        config
    };
    let world = fleet(version(json!({"do": "echo"}))).await;
    let fault = "latency: delay=20s, verb=get, resource=services, namespace=ann";
    world.server.set_faults(vec![fault.parse().unwrap()]);
    let absent = json!({"do": "absent", "kind": "Service.v1", "namespace": "ann", "name": "x"});
    send(&world, version(absent)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    for name in ["chameleon-ann", "chameleon-bob"] {
        let object = core_reference("ConfigMap", "ann", name);
        world.delete(&object).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(world.get(&object).await.is_some(), "{name} is not repaired");
    }
    let reconciling = world.plugin_condition("chameleon", "Reconciling").await;
    assert_eq!(
        reconciling.reason, "Loading",
        "the new one is still looked at"
    );
    assert_eq!(status(&world).await.get("shadow"), None);
    world.wait(Duration::from_secs(120)).await;
    runs(&world).await;
    assert_eq!(status(&world).await["shadow"]["units"], 5);
}

/// A fleet with a cache, whose agent then stops.
pub(crate) async fn stopped(cache: &Path, config: Value) -> World {
    let mut world = World::new().await;
    world.cache_in(cache);
    let mut world = fleet_of(world, config).await;
    world.stop().await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_no_way_around() {
    let fewer = config(&json!({"do": "objects", "count": 5}));
    let folder = tempfile::tempdir().unwrap();
    let mut world = stopped(
        folder.path(),
        config(&json!({"do": "objects", "count": 10})),
    )
    .await;
    for round in 0..2 {
        // It comes while no agent runs, and then is there at each start.
        send(&world, fewer.clone()).await;
        world.start();
        world.settle().await;
        held(&world, "UpgradeHeld").await;
        assert_eq!(made(&world).await, 50, "round {round}");
        world.stop().await;
    }
    // Where what ran is lost, nothing runs rather than that.
    let other = tempfile::tempdir().unwrap();
    world.cache_in(other.path());
    world.start();
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "UpgradeHeld", "{loaded:?}");
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "False", "{ready:?}");
    assert_eq!(made(&world).await, 50);
    // Nor is making the ConfigMap anew.
    world.delete(&config_map_reference("chameleon")).await;
    world.settle().await;
    deliver(&world, fewer).await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "UpgradeHeld", "{loaded:?}");
    assert_eq!(made(&world).await, 50);
}

fn grows(most: u64, apply: &str) -> Value {
    let mut config = config(&json!({"do": "grow", "most": most, "apply": apply}));
    config["reads"] = json!(["ConfigMap.v1"]);
    config
}

#[tokio::test(start_paused = true)]
async fn what_never_comes_to_rest_does_not_take_over() {
    let world = fleet(echo(1)).await;
    deliver(&world, grows(20, "Apply")).await;
    let message = held(&world, "NotConvergent").await;
    let said = "10 times in a row (the last time: objects[0] is another text)";
    assert!(message.contains(said), "{message}");
    repairs(&world).await;
    // What comes to rest in the end may take its steps, and nobody writes these again.
    for (most, apply, is) in [(4, "Apply", "4"), (1_000, "IfNotPresent", "4")] {
        deliver(&world, grows(most, apply)).await;
        runs(&world).await;
        for name in NAMES {
            let object = core_reference("ConfigMap", name, &format!("chameleon-{name}"));
            assert_eq!(world.get(&object).await.unwrap()["data"]["0"], is);
        }
    }
    // A person may know better, and it comes to rest in the end, if only slowly.
    set_policy(&world, json!({"shadow": "Off"})).await;
    deliver(&world, grows(20, "Apply")).await;
    runs(&world).await;
    tokio::time::sleep(Duration::from_secs(1_500)).await;
    world.settle().await;
    let object = core_reference("ConfigMap", "ann", "chameleon-ann");
    assert_eq!(world.get(&object).await.unwrap()["data"]["0"], "20");
    assert_eq!(world.unit("chameleon", "ann").await, None);
}

/// No version was tried for a primary that comes later.
#[tokio::test(start_paused = true)]
async fn what_never_comes_to_rest_is_let_go_on_ever_more_slowly() {
    let mut world = World::new().await;
    world.start();
    world.allow("chameleon").await;
    deliver(&world, grows(1_000_000, "Apply")).await;
    for name in NAMES {
        world.tenant(name, &[]).await;
    }
    world.settle().await;
    world.server.reset_requests();
    const HOUR: Duration = Duration::from_secs(3_600);
    tokio::time::sleep(HOUR).await;
    world.settle().await;
    // One in five minutes in the end; without a bound it would be some in each second.
    let requests = world.server.requests();
    let made = requests
        .iter()
        .filter(|(call, _)| call.resource == "configmaps" && format!("{:?}", call.verb) == "Patch");
    let made: u64 = made.map(|(_, count)| count).sum();
    assert!((50..150).contains(&made), "{made}");
    let ready = world.unit_condition("chameleon", "ann", "Ready").await;
    assert_eq!((&*ready.status, &*ready.reason), ("False", "NotConvergent"));
    let words = "times in a row the plugin wanted something else for what it had made itself";
    assert!(ready.message.contains(words), "{ready:?}");

    // Whoever asks for it begins anew.
    let object = core_reference("ConfigMap", "ann", "chameleon-ann");
    let number = |object: Option<Value>| -> u64 {
        let text = object.unwrap()["data"]["0"].as_str().unwrap().to_owned();
        text.parse().unwrap()
    };
    let before = number(world.get(&object).await);
    let at = json!({"metadata": {"annotations": {"reeve.dev/retry-at": "now"}}});
    world.edit(&profile_reference("ann"), at).await;
    world.settle().await;
    let after = number(world.get(&object).await);
    assert!(
        (before + 10..before + 14).contains(&after),
        "{before}, then {after}"
    );

    // Another version is none of its steps, and it goes as any other does.
    deliver(&world, echo(1)).await;
    runs(&world).await;
    assert_eq!(world.unit("chameleon", "ann").await, None);
    deliver(&world, grows(1_000_000, "Apply")).await;
    held(&world, "NotConvergent").await;
}

/// What it would run for later goes with it, and nothing is said of it any more.
#[tokio::test(start_paused = true)]
async fn a_primary_that_goes_is_forgotten_however_restless_it_was() {
    let mut world = World::new().await;
    world.start();
    world.allow("chameleon").await;
    deliver(&world, grows(1_000_000, "Apply")).await;
    world.tenant("ann", &[]).await;
    world.settle().await;
    let ready = world.unit_condition("chameleon", "ann", "Ready").await;
    assert_eq!(ready.reason, "NotConvergent");
    world.delete(&profile_reference("ann")).await;
    world.settle().await;
    tokio::time::sleep(Duration::from_secs(700)).await;
    world.settle().await;
    assert_eq!(world.unit("chameleon", "ann").await, None);
}
