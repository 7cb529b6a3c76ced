//! An API server that is not there.

use reeve_it::{World, core_reference, plugin};
use reeve_sim::{Outage, Verb};
use std::time::Duration;

/// Readiness says what is wrong, of each watch of the agent's own.
fn check_is_told(watches: &[String], outage: Outage) {
    let words = match outage {
        Outage::Refused => "refused",
        _ => "(503)",
    };
    assert_eq!(watches.len(), 3, "{watches:?}");
    for (watch, kind) in watches.iter().zip(["configmaps", "plugins", "units"]) {
        let told = watch.to_lowercase();
        assert!(told.contains(kind) && told.contains(words), "{watches:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn gone_at_the_start() {
    for outage in [Outage::Refused, Outage::Unavailable] {
        let mut world = World::new().await;
        world
            .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
            .await;
        world.tenant("alice", &[]).await;
        world.server.faults().set_outage(outage);
        world.start();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let status = world.agent().status().borrow().clone();
        assert!(!status.synced);
        check_is_told(&status.own_watches, outage);
        world.server.faults().set_outage(Outage::None);
        world.wait(Duration::from_secs(30)).await;
        let quota = core_reference("ResourceQuota", "alice", "quotas");
        assert!(world.get(&quota).await.is_some(), "{outage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn gone_while_running() {
    for outage in [Outage::Refused, Outage::Unavailable] {
        let world = World::started().await;
        world
            .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
            .await;
        world.tenant("alice", &[]).await;
        world.settle().await;
        world.server.faults().set_outage(outage);
        tokio::time::sleep(Duration::from_secs(120)).await;
        let status = world.agent().status().borrow().clone();
        check_is_told(&status.own_watches, outage);
        world.server.faults().set_outage(Outage::None);
        // What happens now was not seen while it was away.
        let quota = core_reference("ResourceQuota", "alice", "quotas");
        world.delete(&quota).await;
        world.tenant("bob", &[]).await;
        world.wait(Duration::from_secs(30)).await;
        assert!(world.get(&quota).await.is_some(), "{outage:?}");
        assert!(
            world
                .get(&core_reference("ResourceQuota", "bob", "quotas"))
                .await
                .is_some()
        );
        let status = world.agent().status().borrow().clone();
        assert_eq!((status.synced, status.own_watches), (true, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_break_lose_nothing() {
    let world = World::started().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    for round in 0..10 {
        world.server.faults().drop_watches();
        if round == 5 {
            world.server.compact();
        }
        world.tenant(&format!("t{round}"), &[]).await;
        world.wait(Duration::from_secs(15)).await;
        let quota = core_reference("ResourceQuota", &format!("t{round}"), "quotas");
        assert!(world.get(&quota).await.is_some(), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_our_kinds_readiness_says_how_to_install_them() {
    let mut world = World::bare();
    world
        .apply(&reeve_test_support::samples::namespace(reeve_it::NAMESPACE))
        .await;
    let subject = reeve_core::grant::Subject::User(reeve_it::AGENT);
    for object in reeve_core::grant::agent_base(reeve_it::NAMESPACE, subject) {
        world.apply(&object).await;
    }
    // It waits to be loaded meanwhile.
    world
        .deliver("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.start();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let problems = world.agent().status().borrow().own_watches.join("\n");
    assert!(problems.contains("reeve crds"), "{problems}");
    world.install_crds().await;
    world.wait(Duration::from_secs(30)).await;
    assert!(world.agent().status().borrow().synced);
}

/// A new version that arrives while not every watch is back must not be lost.
#[tokio::test(start_paused = true)]
async fn a_version_delivered_during_an_outage_is_loaded() {
    for round in 0..5 {
        let world = World::started().await;
        world
            .install("swapped", &[("plugin.wasm", plugin("quotas"))], None)
            .await;
        world.tenant("alice", &[]).await;
        world.settle().await;
        world.server.faults().set_outage(Outage::Refused);
        tokio::time::sleep(Duration::from_secs(20 + round)).await;
        world.server.faults().set_outage(Outage::None);
        world
            .deliver("swapped", &[("plugin.wasm", plugin("limitranges"))], None)
            .await;
        world.wait(Duration::from_secs(40)).await;
        world.approve("swapped").await;
        world.settle().await;
        let made = core_reference("LimitRange", "alice", "default-container-limits");
        assert!(world.get(&made).await.is_some(), "round {round}");
    }
}

/// What fails is asked for again, at first soon and then every five to ten seconds.
#[tokio::test(start_paused = true)]
async fn attempts_grow_apart() {
    let world = World::started().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    let failing = format!("internal-error: user={}", reeve_it::AGENT);
    world.server.set_faults(vec![failing.parse().unwrap()]);
    world.server.faults().drop_watches();
    let asked = async |seconds| {
        world.server.reset_requests();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let requests = world.server.requests();
        let plugins = requests.iter();
        let plugins = plugins.filter(|(call, _)| call.resource == "plugins.reeve.dev");
        plugins.map(|(_, count)| count).sum::<u64>()
    };
    // 0.25 s, doubled six times, of which up to a half is chance.
    let first = asked(10).await;
    assert!((5..=8).contains(&first), "{first} in the first ten seconds");
    asked(10).await;
    let hour = asked(3600).await;
    assert!((360..=721).contains(&hour), "{hour} in an hour");
    world.server.set_faults(Vec::new());
    world.wait(Duration::from_secs(11)).await;
    assert!(world.agent().status().borrow().synced);
}

/// A server that has too much to do is asked as little as it says, by a plugin with many
/// units too, and units do not come back later than it says either.
#[tokio::test(start_paused = true)]
async fn who_is_told_to_come_back_later_does() {
    const UNITS: u64 = 40;
    let world = World::started().await;
    for number in 0..UNITS {
        world.tenant(&format!("t{number}"), &[]).await;
    }
    let text = "too-many-requests: retry-after=20s, resource=resourcequotas, verb=create|patch";
    world.server.set_faults(vec![text.parse().unwrap()]);
    world.server.reset_requests();
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    tokio::time::sleep(Duration::from_secs(110)).await;
    // As many as run at once, every 20 seconds; not each unit each time.
    let asked = world.server.requests();
    let asked =
        asked.count(Verb::Create, "resourcequotas") + asked.count(Verb::Patch, "resourcequotas");
    assert!((6..=6 * 16).contains(&asked), "{asked}");
    let ready = world.unit_condition("quotas", "t0", "Ready").await;
    assert_eq!(ready.reason, "Unreachable", "{ready:?}");
    assert!(ready.message.contains("come back later"), "{ready:?}");
    world.server.set_faults(Vec::new());
    world.wait(Duration::from_secs(20)).await;
    for number in 0..UNITS {
        let tenant = format!("t{number}");
        let quota = core_reference("ResourceQuota", &tenant, "quotas");
        assert!(world.get(&quota).await.is_some(), "{tenant}");
        assert_eq!(world.unit("quotas", &tenant).await, None, "{tenant}");
    }
}

/// A plugin that waits for something must not keep the agent busy meanwhile.
#[tokio::test(start_paused = true)]
async fn waiting_through_an_outage_costs_nothing() {
    let world = World::started().await;
    let config = serde_json::json!({"primary": "Widget.v1.example.com", "scope": "cluster"});
    let chameleon = vec![("plugin.wasm", reeve_it::guest("chameleon"))];
    world.install("chameleon", &chameleon, Some(config)).await;
    world.settle().await;
    world.server.faults().set_outage(Outage::Refused);
    // With time paused, a loop that never waits would never let an hour pass.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    world.server.faults().set_outage(Outage::None);
    world.wait(Duration::from_secs(30)).await;
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.reason, "KindNotServed", "{ready:?}");
}
