//! Agents that start where a newest version is refused: what ran before runs
//! again, if it was kept.

use reeve_it::{World, config_map_reference, core_reference, guest, plugin, plugin_reference};
use serde_json::{Value, json};
use std::path::Path;

/// What the newest version is like.
type Newest = (Vec<u8>, Value);

fn config(text: &str) -> Value {
    json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reconcile": {"do": "echo"},
        "reads": [],
        // The guest puts its configuration into what it makes.
        "writes": text,
    })
}

fn good() -> Newest {
    (guest("chameleon"), config("ConfigMap.v1"))
}

async fn deliver(world: &World, (component, config): &Newest) {
    let data = [("plugin.wasm", component.clone())];
    world
        .deliver("chameleon", &data, Some(config.clone()))
        .await;
}

fn made() -> Value {
    core_reference("ConfigMap", "alice", "chameleon-alice")
}

/// A cluster in which a good version ran, with a cache in the folder if there is
/// one, and the agent then stopped. Beside it is an honest plugin.
async fn stopped(cache: Option<&Path>) -> World {
    let mut world = World::new().await;
    if let Some(cache) = cache {
        world.cache_in(cache);
    }
    world.start();
    world.tenant("alice", &[]).await;
    let honest = [("plugin.wasm", plugin("limitranges"))];
    world.install("limitranges", &honest, None).await;
    world.allow("chameleon").await;
    deliver(&world, &good()).await;
    world.settle().await;
    assert!(world.get(&made()).await.is_some());
    world.stop().await;
    world
}

async fn digest(world: &World) -> Value {
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    plugin["status"]["digest"].clone()
}

/// That the version from before the restart runs, and the reason why the newest
/// does not is said.
async fn check_old_one_runs(world: &World, reason: &str) {
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(
        (loaded.status.as_str(), loaded.reason.as_str()),
        ("False", reason),
        "{loaded:?}"
    );
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
    assert!(ready.message.contains("still running sha256:"), "{ready:?}");
    world.delete(&made()).await;
    world.settle().await;
    assert!(world.get(&made()).await.is_some(), "it does what it did");
}

/// That nothing runs, which is said together with these texts, and that the honest
/// plugin works.
async fn check_nothing_runs(world: &World, reason: &str, texts: &[&str]) {
    for kind in ["Ready", "Loaded"] {
        let found = world.plugin_condition("chameleon", kind).await;
        assert_eq!(
            (found.status.as_str(), found.reason.as_str()),
            ("False", reason),
            "{found:?}"
        );
        for text in texts {
            assert!(found.message.contains(text), "`{text}` is not in {found:?}");
        }
    }
    world.delete(&made()).await;
    let limits = core_reference("LimitRange", "alice", "default-container-limits");
    world.delete(&limits).await;
    world.settle().await;
    assert_eq!(world.get(&made()).await, None);
    assert!(world.get(&limits).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_last_good_version_runs_while_the_newest_is_refused() {
    let mut broken_config = config("ConfigMap.v1");
    broken_config["describe"] = json!("refuse");
    let mut trapping = config("ConfigMap.v1");
    trapping["describe"] = json!("trap");
    for (newest, reason) in [
        (
            (b"rubbish".to_vec(), config("ConfigMap.v1")),
            "NotAComponent",
        ),
        ((guest("chameleon"), broken_config), "ConfigInvalid"),
        (
            (guest("chameleon"), json!({"describe": 7})),
            "ConfigInvalid",
        ),
        ((guest("chameleon"), trapping), "DescribeFailed"),
        (
            (guest("chameleon"), config("Widget.v1.example.com")),
            "KindNotServed",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut world = stopped(Some(folder.path())).await;
        let before = digest(&world).await;
        deliver(&world, &newest).await;
        world.start();
        world.settle().await;
        check_old_one_runs(&world, reason).await;
        assert_eq!(digest(&world).await, before, "{reason}");

        // It is still the last good one after the next restart.
        world.stop().await;
        world.start();
        world.settle().await;
        check_old_one_runs(&world, reason).await;

        // The next good version takes over.
        deliver(&world, &good()).await;
        world.settle().await;
        let loaded = world.plugin_condition("chameleon", "Loaded").await;
        assert_eq!(loaded.status, "True", "{reason}: {loaded:?}");
    }
}

/// Starts the agent anew and returns what it writes until it rests.
async fn writes_of_a_restart(world: &mut World) -> Vec<String> {
    world.server.reset_requests();
    world.start();
    world.settle().await;
    let requests = world.server.requests();
    let writes = requests
        .iter()
        .map(|(call, count)| format!("{call:?}: {count}"));
    writes
        .filter(|call| !call.contains("reviews"))
        .filter(|call| {
            ["Create", "Patch", "Update", "Delete"]
                .iter()
                .any(|verb| call.contains(verb))
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_converged_restart_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for cache in [None, Some(folder.path())] {
        let mut world = stopped(cache).await;
        let writes = writes_of_a_restart(&mut world).await;
        assert_eq!(writes, Vec::<String>::new());
    }
}

/// However long it takes until all is loaded and every unit has run: what was said
/// before stands meanwhile.
#[tokio::test(start_paused = true)]
async fn a_slow_restart_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for cache in [None, Some(folder.path())] {
        let mut world = stopped(cache).await;
        let slow = "latency: delay=1s".parse().unwrap();
        world.server.set_faults(vec![slow]);
        let writes = writes_of_a_restart(&mut world).await;
        assert_eq!(writes, Vec::<String>::new());
        // What changes after that is said, once the watches are there: the last of them
        // may still be on its way.
        world.server.set_faults(Vec::new());
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        world.tenant("bob", &[]).await;
        world.settle().await;
        let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
        assert_eq!(plugin["status"]["units"]["total"], 2, "{plugin}");
    }
}

/// What is otherwise than was said before is said as soon as it is known.
#[tokio::test(start_paused = true)]
async fn a_slow_restart_says_what_is_otherwise() {
    let mut world = stopped(None).await;
    world.tenant("bob", &[]).await;
    deliver(&world, &(b"rubbish".to_vec(), config("ConfigMap.v1"))).await;
    world
        .server
        .set_faults(vec!["latency: delay=1s".parse().unwrap()]);
    world.start();
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "NotAComponent", "{loaded:?}");
    let honest = world.get(&plugin_reference("limitranges")).await.unwrap();
    assert_eq!(honest["status"]["units"]["total"], 2, "{honest}");
    assert_eq!(honest["status"]["units"]["ready"], 2, "{honest}");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_kept_is_said_to_be_lost() {
    let rubbish = (b"rubbish".to_vec(), config("ConfigMap.v1"));

    let mut world = stopped(None).await;
    let before = digest(&world).await;
    deliver(&world, &rubbish).await;
    world.start();
    world.settle().await;
    let texts = [
        "no WebAssembly component",
        before.as_str().unwrap(),
        "without --cache",
    ];
    check_nothing_runs(&world, "NotAComponent", &texts).await;

    // On another node, which has a cache of its own.
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = stopped(Some(first.path())).await;
    let before = digest(&world).await;
    deliver(&world, &rubbish).await;
    world.cache_in(second.path());
    world.start();
    world.settle().await;
    let texts = [
        "no WebAssembly component",
        before.as_str().unwrap(),
        "not in this agent's cache",
    ];
    check_nothing_runs(&world, "NotAComponent", &texts).await;
}

/// An entry in a cache proves what ran here once, not that nothing ran since.
#[tokio::test(start_paused = true)]
async fn an_outdated_cache_is_not_gone_back_to() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = stopped(Some(first.path())).await;
    // A newer version runs elsewhere.
    let mut newer = config("ConfigMap.v1");
    newer["describe"] = json!("declare");
    deliver(&world, &(guest("chameleon"), newer)).await;
    world.cache_in(second.path());
    world.start();
    world.settle().await;
    world.stop().await;
    deliver(&world, &(b"rubbish".to_vec(), json!({}))).await;
    world.cache_in(first.path());
    world.start();
    world.settle().await;
    check_nothing_runs(&world, "NotAComponent", &["not in this agent's cache"]).await;
}

/// Rights that the last good version lost are not to be had by a broken newest one.
#[tokio::test(start_paused = true)]
async fn the_last_good_version_passes_the_gates_of_today() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = stopped(Some(folder.path())).await;
    deliver(&world, &(b"rubbish".to_vec(), json!({}))).await;
    let account = core_reference("ServiceAccount", reeve_it::NAMESPACE, "chameleon");
    let other = json!({"metadata": {"annotations": {"reeve.dev/plugin": "other"}}});
    world.edit(&account, other).await;
    world.start();
    world.settle().await;
    let texts = ["no WebAssembly component", "is for plugin other"];
    check_nothing_runs(&world, "NotAComponent", &texts).await;
    // Restored, it starts by itself.
    let own = json!({"metadata": {"annotations": {"reeve.dev/plugin": "chameleon"}}});
    world.edit(&account, own).await;
    world.wait(std::time::Duration::from_secs(11)).await;
    check_old_one_runs(&world, "NotAComponent").await;
}

/// Whoever deletes a plugin does not get it back with a broken next one.
#[tokio::test(start_paused = true)]
async fn a_deleted_plugin_stays_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = stopped(Some(folder.path())).await;
    world.delete(&config_map_reference("chameleon")).await;
    world.start();
    world.settle().await;
    world.stop().await;
    deliver(&world, &(b"rubbish".to_vec(), json!({}))).await;
    world.start();
    world.settle().await;
    check_nothing_runs(&world, "NotAComponent", &["no WebAssembly component"]).await;
    let status = world.get(&plugin_reference("chameleon")).await.unwrap()["status"].clone();
    assert_eq!(status.get("lastGood"), None, "{status}");
}
