//! Effects of many units: few are outside at once, and the others wait for that.

use crate::effects::world_under;
use reeve_it::{World, plugin_reference};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Many times as many as may be outside.
const TENANTS: usize = 80;

async fn tenants(world: &World, count: usize) {
    for tenant in 0..count {
        world.tenant(&format!("t{tenant}"), &[]).await;
    }
}

/// What makes room is told to those that wait, so that none has to look at a clock. It
/// stands still while calls are outside.
#[tokio::test(start_paused = true)]
async fn many_effects_are_made_one_after_another_without_a_pause() {
    let (world, service, _) = world_under(json!({}), Some("Auto")).await;
    let suspend = async |value: bool| {
        let policy = json!({"spec": {"suspend": value}});
        world.edit(&plugin_reference("envoy"), policy).await;
    };
    suspend(true).await;
    tenants(&world, TENANTS).await;
    world.settle().await;
    // All want the same at once.
    let start = Instant::now();
    suspend(false).await;
    // With `alice`.
    while service.there.lock().len() <= TENANTS {
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{} after {:?}",
            service.there.lock().len(),
            start.elapsed()
        );
        sleep(Duration::from_millis(10)).await;
    }
    world.settle().await;
    assert_eq!(service.asked().len(), TENANTS + 1, "each was made once");
    let status = world.agent().status().borrow().plugins[0].units.clone();
    assert_eq!(status.ready as usize, TENANTS + 1, "{status:?}");
}

/// Who asks for a new attempt is told that it was made when it was, and not when a unit has
/// found that it must wait for others.
#[tokio::test(start_paused = true)]
async fn what_a_person_asked_for_is_done_when_it_was_tried() {
    let (world, service, _) = world_under(json!({}), Some("Auto")).await;
    *service.broken.lock() = true;
    tenants(&world, TENANTS).await;
    world.wait(Duration::from_secs(240)).await;
    *service.broken.lock() = false;
    let request = json!({"metadata": {"annotations": {"reeve.dev/retry-at": "1"}}});
    world.edit(&plugin_reference("envoy"), request).await;
    let start = Instant::now();
    loop {
        let plugin = world.get(&plugin_reference("envoy")).await.unwrap();
        if plugin["status"]["lastHandledRetryAt"] == "1" {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{plugin}");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(service.there.lock().len(), TENANTS + 1);
}

/// On real time, as calls are outside all the while.
#[tokio::test]
async fn a_unit_is_not_ready_while_its_effect_waits_for_room() {
    let (world, service, _) = world_under(json!({}), Some("Auto")).await;
    service.be_silent();
    tenants(&world, 20).await;
    let text = "action service (service), apply: waits for others that are under way";
    let start = Instant::now();
    let mut waiting = 0;
    let mut one = String::new();
    while waiting < 12 {
        assert!(start.elapsed() < Duration::from_secs(25), "{waiting} wait");
        sleep(Duration::from_millis(50)).await;
        waiting = 0;
        for tenant in 0..20 {
            let tenant = format!("t{tenant}");
            if world.unit("envoy", &tenant).await.is_some() {
                let ready = world.unit_condition("envoy", &tenant, "Ready").await;
                if ready.reason == "Waiting" && ready.message == text {
                    waiting += 1;
                    one = tenant;
                }
            }
        }
    }
    let status = world.agent().status().borrow().plugins[0].units.clone();
    assert!(
        status.ready <= 1,
        "only `alice` may have been answered: {status:?}"
    );
    // What a person asks of such a unit is not done by finding no room once more.
    let request = format!("1 Profile.kubeflow.org//{one}");
    let request = json!({"metadata": {"annotations": {"reeve.dev/retry-at": request}}});
    world.edit(&plugin_reference("envoy"), request).await;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        sleep(Duration::from_millis(100)).await;
        let plugin = world.get(&plugin_reference("envoy")).await.unwrap();
        assert_eq!(plugin["status"].get("lastHandledRetryAt"), None, "{plugin}");
    }
}
