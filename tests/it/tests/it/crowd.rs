//! Many at once: plugins whose outside does not answer, beside one that has nothing to do
//! with it; and units that all have to run, beside one to which something happens.

use crate::effects::capabilities;
use reeve_it::{NAMESPACE, World, core_reference, guest, plugin, plugin_reference};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, sleep};

/// Units that run at once by default.
const RUNS: usize = 16;

/// Plugins that wait, each with four calls: some of those end while others begin.
const PLUGINS: usize = 6;

/// Takes what it is sent, and never answers. Counts who waits.
async fn silent() -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let waiting = Arc::new(AtomicUsize::new(0));
    let counted = waiting.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut taken = [0; 1024];
                while stream.read(&mut taken).await.is_ok_and(|read| read > 0) {}
                counted.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    (format!("http://127.0.0.1:{port}/v1/"), waiting)
}

/// On real time: a paused clock would stand still while calls are outside.
#[tokio::test]
async fn who_has_no_effects_waits_for_nobody_outside() {
    let world = World::started().await;
    let (url, waiting) = silent().await;
    let mut token = core_reference("Secret", NAMESPACE, "token");
    token["stringData"] = json!({"token": "t"});
    world.apply(&token).await;
    let rules = json!([{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["token"], "verbs": ["get"],
    }]);
    let agent = json!({
        "kind": "User", "name": reeve_it::AGENT, "apiGroup": "rbac.authorization.k8s.io",
    });
    world.role("agent-token", &rules, &agent).await;
    let quotas = [("plugin.wasm", plugin("quotas"))];
    world.install("quotas", &quotas, None).await;
    for tenant in 0..8 {
        world.tenant(&format!("t{tenant}"), &[]).await;
    }
    world.settle().await;
    for number in 0..PLUGINS {
        let name = format!("envoy{number}");
        let mut policy = plugin_reference(&name);
        policy["spec"] = json!({"capabilities": capabilities(&url)});
        world.apply(&policy).await;
        let component = [("plugin.wasm", guest("envoy"))];
        world
            .install(&name, &component, Some(json!({"service": url})))
            .await;
    }
    // More than may run.
    let start = Instant::now();
    while waiting.load(Ordering::Relaxed) <= RUNS {
        let waiting = waiting.load(Ordering::Relaxed);
        assert!(start.elapsed() < Duration::from_secs(60), "{waiting} wait");
        sleep(Duration::from_millis(10)).await;
    }
    for tenant in 0..4 {
        let quota = core_reference("ResourceQuota", &format!("t{tenant}"), "quotas");
        let patch = json!({"spec": {"hard": {"pods": "7"}}});
        world.edit(&quota, patch).await;
        let start = Instant::now();
        while world.get(&quota).await.unwrap_or_default()["spec"]["hard"]["pods"] != "100" {
            sleep(Duration::from_millis(20)).await;
            assert!(start.elapsed() < Duration::from_secs(10), "t{tenant}");
        }
    }
}

/// After an upgrade all units run. What somebody changes meanwhile does not wait for them.
#[tokio::test(start_paused = true)]
async fn a_drift_is_repaired_while_an_upgrade_goes_on() {
    const TENANTS: usize = 300;
    let world = World::started().await;
    let quotas = [("plugin.wasm", plugin("quotas"))];
    world.install("quotas", &quotas, None).await;
    for tenant in 0..TENANTS {
        world.tenant(&format!("t{tenant}"), &[]).await;
    }
    world.settle().await;
    let with = async |pods: &str| {
        let like = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": ""}});
        let mut with = world.list(&like).await;
        with.retain(|quota| quota["spec"]["hard"]["pods"] == pods);
        with
    };
    assert_eq!(with("100").await.len(), TENANTS);

    // Of these, as many are written at once as may run.
    let slow = "latency: delay=100ms, verb=patch, resource=resourcequotas";
    world.server.set_faults(vec![slow.parse().unwrap()]);
    let config = json!({"hard": {"pods": "7"}});
    world.deliver("quotas", &quotas, Some(config)).await;
    let start = Instant::now();
    let changed = loop {
        assert!(start.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(20)).await;
        if let Some(changed) = with("7").await.pop() {
            break changed;
        }
    };
    let namespace = changed["metadata"]["namespace"].as_str().unwrap();
    let quota = core_reference("ResourceQuota", namespace, "quotas");
    let drift = json!({"spec": {"hard": {"pods": "9"}}});
    world.edit(&quota, drift).await;
    let start = Instant::now();
    while with("9").await.len() == 1 {
        assert!(start.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(20)).await;
    }
    let (waited, left) = (start.elapsed(), with("100").await.len());
    assert!(left > TENANTS / 2, "{left} are left after {waited:?}");

    world.server.set_faults(Vec::new());
    world.settle().await;
    assert_eq!(with("7").await.len(), TENANTS, "all have their turn");
}
