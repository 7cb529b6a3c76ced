//! A day of work, in virtual time: what comes goes again, and nothing grows.

use crate::told::{PLUGIN, annotated, config_map, install, tell};
use reeve_agent::Footprint;
use reeve_it::{
    NAMESPACE, World, config_map_reference, core_reference, guest, plugin, profile_reference,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Work comes this often.
const ROUND: Duration = Duration::from_secs(20 * 60);
/// Rounds of a day.
const ROUNDS: usize = 24 * 3;
/// After so many rounds all kinds of work have been done, and begin anew.
const CYCLE: usize = 12;
/// Tenants that are there at once.
const TENANTS: usize = 4;

fn tenant(number: usize) -> String {
    format!("t{number}")
}

fn shared() -> Value {
    config_map("common", "shared", &json!({"theirs": "x"}))
}

/// One round: a tenant comes, the oldest goes, and to the others happens what happens.
async fn work(world: &World, round: usize) {
    let (new, old) = (tenant(round), round.checked_sub(TENANTS).map(tenant));
    world.tenant(&new, &[("round", "1")]).await;
    tell(
        world,
        &new,
        &config_map(&new, "c", &json!({"a": round.to_string()})),
    )
    .await;
    if let Some(old) = &old {
        world.delete(&profile_reference(old)).await;
        let namespace = reeve_test_support::samples::namespace(old);
        world.delete(&namespace).await;
    }
    let Some(other) = round.checked_sub(1).map(tenant) else {
        return;
    };
    match round % CYCLE {
        // What it wants changes, is edited by others, is withdrawn, is wrong.
        0 => {
            tell(
                world,
                &other,
                &config_map(&other, "c", &json!({"a": "other"})),
            )
            .await
        }
        1 => {
            let object = config_map(&other, "c", &json!({}));
            world.edit(&object, json!({"data": {"a": "edited"}})).await;
        }
        2 => tell(world, &other, &Value::Null).await,
        3 => {
            tell(
                world,
                &other,
                &config_map(&other, "c", &json!({"no key!": "x"})),
            )
            .await
        }
        // What belongs to others is contributed to, for as long as the tenant lives.
        4 => {
            let object = config_map("common", "shared", &json!({(&*other): "y"}));
            tell(
                world,
                &other,
                &annotated(object, "reeve.dev/apply", "Contribute"),
            )
            .await;
        }
        // A namespace is waited for that never comes.
        5 => tell(world, &other, &config_map("nowhere", "c", &json!({}))).await,
        // Somebody deletes what is not his.
        6 => {
            world
                .delete(&core_reference("ResourceQuota", &other, "quotas"))
                .await
        }
        // Versions come and go.
        7 => {
            let component = [("plugin.wasm", guest("chameleon"))];
            let config = json!({"primary": "Profile.v1.kubeflow.org", "writes": ["Service.v1"],
                "scope": "cluster", "reconcile": {"do": "nothing", "meant": true}});
            world.install("guest", &component, Some(config)).await;
        }
        8 => {
            world.delete(&config_map_reference("guest")).await;
            world.delete(&reeve_it::plugin_reference("guest")).await;
        }
        // Watches break, and lists are too old.
        9 => world.server.faults().drop_watches(),
        10 => {
            let at =
                json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": round.to_string()}}});
            world.edit(&reeve_it::plugin_reference(PLUGIN), at).await;
        }
        _ => {}
    }
}

/// Objects in the cluster, but for events, which the API server forgets by itself.
async fn objects(world: &World) -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for (api_version, kind, namespace) in [
        ("v1", "Namespace", None),
        ("kubeflow.org/v1", "Profile", None),
        ("v1", "ConfigMap", Some("common")),
        ("v1", "ConfigMap", Some(NAMESPACE)),
        ("reeve.dev/v1alpha1", "Plugin", Some(NAMESPACE)),
        ("reeve.dev/v1alpha1", "Unit", Some(NAMESPACE)),
    ] {
        let mut like = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": ""}});
        if let Some(namespace) = namespace {
            like["metadata"]["namespace"] = json!(namespace);
        }
        all.push((kind.to_owned(), world.list(&like).await.len()));
    }
    let shared = world.get(&shared()).await.unwrap();
    let owners = shared["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .len();
    all.push(("owners of a shared object".to_owned(), owners));
    all
}

#[tokio::test(start_paused = true)]
async fn nothing_grows_within_a_day() {
    let mut world = World::new().await;
    world
        .apply(&reeve_test_support::samples::namespace("common"))
        .await;
    world.apply(&shared()).await;
    install(&world, PLUGIN, "ConfigMap.v1").await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.start();
    world.settle().await;
    let mut seen: Vec<(Footprint, Vec<(String, usize)>)> = Vec::new();
    for round in 0..ROUNDS {
        work(&world, round).await;
        world.wait(ROUND).await;
        // The last round of each cycle leaves nothing that is under way.
        if round % CYCLE == CYCLE - 1 {
            let footprint = world.agent().footprint().await.unwrap();
            seen.push((footprint, objects(&world).await));
        }
    }
    let (first, last) = (&seen[1], seen.last().unwrap());
    assert!(first.0.objects > 0 && first.0.units > 0, "{first:?}");
    for ((name, before), (_, after)) in first.0.all().into_iter().zip(last.0.all()) {
        // The journal has a bound of its own, and is far from it here.
        let bound = match name {
            "journal" => reeve_core::journal::MAX_ENTRIES,
            _ => before,
        };
        assert!(
            after <= bound,
            "{name} grows from {before} to {after}: {seen:#?}"
        );
    }
    assert_eq!(first.1, last.1, "{seen:#?}");
    let journal = json!({"apiVersion": "reeve.dev/v1alpha1", "kind": "JournalEntry",
        "metadata": {"name": "", "namespace": NAMESPACE}});
    let journal = world.list(&journal).await.len();
    assert_eq!(journal, last.0.journal);
    for (plugin, failing) in [(PLUGIN, "0"), ("quotas", "0")] {
        let found = world
            .get(&reeve_it::plugin_reference(plugin))
            .await
            .unwrap();
        assert_eq!(
            found["status"]["units"]["failing"].to_string(),
            failing,
            "{found}"
        );
    }
}
