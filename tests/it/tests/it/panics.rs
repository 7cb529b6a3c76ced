//! A run in which the agent itself fails: its unit says so, and nothing else notices.

use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use reeve_agent::{Clock, VirtualClock};
use reeve_it::{World, core_reference, guest, profile_reference};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::Id;

/// A clock that panics, so many times, in a task that has never asked it before. Of
/// those that ask the time, runs of units are the ones that are begun anew.
struct Trap {
    clock: VirtualClock,
    known: Mutex<HashSet<Id>>,
    armed: Mutex<usize>,
}

impl Clock for Trap {
    fn now(&self) -> Timestamp {
        let task = tokio::task::try_id();
        let new = task.is_some_and(|id| self.known.lock().insert(id));
        let mut armed = self.armed.lock();
        if new && *armed > 0 {
            *armed -= 1;
            drop(armed);
            panic!("the clock is a trap");
        }
        self.clock.now()
    }
}

async fn told(world: &World, tenant: &str, text: &str) {
    let deed = json!({"do": "echo", "text": text}).to_string();
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed}}});
    world.edit(&profile_reference(tenant), patch).await;
}

async fn made(world: &World, tenant: &str) -> Option<Value> {
    let made = core_reference("ConfigMap", tenant, &format!("chameleon-{tenant}"));
    world.get(&made).await
}

#[tokio::test(start_paused = true)]
async fn a_run_that_panics_is_told_and_tried_again() {
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let trap = Arc::new(Trap {
        clock: VirtualClock::new(start),
        known: Mutex::default(),
        armed: Mutex::new(0),
    });
    let mut world = World::new().await;
    world.go_by(trap.clone());
    world.start();
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reconcile": {"do": "echo"},
    });
    let component = [("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
    for tenant in ["alice", "bob"] {
        world.tenant(tenant, &[]).await;
    }
    world.settle().await;
    let before = made(&world, "alice").await.unwrap();

    // So often that it is not over within this test.
    *trap.armed.lock() = 1000;
    told(&world, "alice", "new").await;
    world.wait(Duration::from_secs(5)).await;
    let ready = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(ready.status, "False", "{ready:?}");
    assert!(
        ready.message.contains("this is a bug of reeve"),
        "{ready:?}"
    );
    assert_eq!(made(&world, "alice").await.unwrap(), before);
    assert!(world.unit("chameleon", "bob").await.is_none(), "it is well");
    let left = *trap.armed.lock();
    assert!(left > 980, "it is tried with growing delays, not {left}");

    // The agent goes on, and so does the unit when the cause is gone.
    *trap.armed.lock() = 0;
    told(&world, "bob", "new").await;
    world.wait(Duration::from_secs(30)).await;
    let bob = made(&world, "bob").await.unwrap();
    assert!(bob["data"].to_string().contains("new"), "{bob}");
    let alice = made(&world, "alice").await.unwrap();
    assert!(alice["data"].to_string().contains("new"), "{alice}");
    assert_eq!(world.unit("chameleon", "alice").await, None);
}
