//! What a person asks for goes before all that waits.

use reeve_it::{World, core_reference, guest, profile_reference};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Many times as many as run at once.
const TENANTS: usize = 160;

fn name(number: usize) -> String {
    format!("t{number:03}")
}

/// The tenants for which nothing is made yet.
async fn missing(world: &World) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    for tenant in (0..TENANTS).map(name) {
        let made = core_reference("ConfigMap", &tenant, &format!("chameleon-{tenant}"));
        if world.get(&made).await.is_none() {
            missing.insert(tenant);
        }
    }
    missing
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_a_unit_does_not_wait_for_all_others() {
    for annotation in ["reeve.dev/reconcile-at", "reeve.dev/sync-at"] {
        let world = World::started().await;
        for tenant in (0..TENANTS).map(name) {
            world.tenant(&tenant, &[]).await;
        }
        let config = json!({
            "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        });
        let component = vec![("plugin.wasm", guest("chameleon"))];
        world.install("chameleon", &component, Some(config)).await;
        // Each write of the plugin takes a second from here on.
        let slow = "latency: delay=1s, verb=patch, resource=configmaps";
        world.server.set_faults(vec![slow.parse().unwrap()]);
        while missing(&world).await.len() == TENANTS {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let waiting: Vec<String> = missing(&world).await.into_iter().collect();
        let chosen = [0, waiting.len() / 2, waiting.len() - 1];
        let chosen = chosen.map(|place| waiting[place].clone());
        for tenant in &chosen {
            let asks = json!({"metadata": {"annotations": {annotation: "1"}}});
            world.edit(&profile_reference(tenant), asks).await;
        }
        // What runs ends within a second, and what has begun by then and waits to write within
        // another; those asked for write with these, or next.
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        let missing = missing(&world).await;
        for tenant in &chosen {
            assert!(!missing.contains(tenant), "{tenant}: {missing:?}");
        }
        assert!(missing.len() > TENANTS / 2, "{}", missing.len());
    }
}
