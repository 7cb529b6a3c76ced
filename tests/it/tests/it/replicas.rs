//! Several agents, of which one leads.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use reeve_agent::{Agent, Clock, Role, VirtualClock};
use reeve_it::{AGENT, World, core_reference, plugin, plugin_reference, profile_reference};
use reeve_sim::Outage;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The duration of the default lease.
const LEASE: Duration = Duration::from_secs(15);
/// The longest time between two looks at it, and what taking over takes.
const LOOK: Duration = Duration::from_secs(3);

/// Quotas is installed, and alice's are in place: one leads, two follows.
async fn world() -> (World, Agent, Agent) {
    world_by(None).await
}

/// The same, with agents that go by a clock of the test.
async fn world_by(clock: Option<Arc<WallClock>>) -> (World, Agent, Agent) {
    let mut world = World::new().await;
    if let Some(clock) = clock {
        world.go_by(clock);
    }
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.tenant("alice", &[]).await;
    let one = world.replica("one");
    leads(&one).await;
    let two = world.replica("two");
    sleep(Duration::from_secs(10)).await;
    assert!(quota(&world, "alice").await.is_some());
    (world, one, two)
}

async fn quota(world: &World, tenant: &str) -> Option<Value> {
    world
        .get(&core_reference("ResourceQuota", tenant, "quotas"))
        .await
}

async fn pods(world: &World, tenant: &str) -> Value {
    quota(world, tenant).await.unwrap_or_default()["spec"]["hard"]["pods"].clone()
}

async fn set_pods(world: &World, tenant: &str, pods: &str) {
    let quota = core_reference("ResourceQuota", tenant, "quotas");
    world
        .edit(&quota, json!({"spec": {"hard": {"pods": pods}}}))
        .await;
}

/// Waits until an agent leads, and says how long that took.
async fn leads(agent: &Agent) -> Duration {
    let start = Instant::now();
    let mut status = agent.status();
    let leading = status.wait_for(|status| status.leading);
    let patience = Duration::from_secs(600);
    tokio::time::timeout(patience, leading)
        .await
        .unwrap()
        .unwrap();
    start.elapsed()
}

/// Waits until a quota is as it should be.
async fn repaired(world: &World, tenant: &str) -> Duration {
    let start = Instant::now();
    while pods(world, tenant).await != "100" {
        assert!(start.elapsed() < Duration::from_secs(120), "never");
        sleep(Duration::from_millis(100)).await;
    }
    start.elapsed()
}

fn follows(agent: &Agent, leader: &str) {
    let status = agent.status().borrow().clone();
    assert!(!status.leading);
    let leader = Some(leader.to_owned());
    assert_eq!(status.role, Role::Follower { leader });
}

#[tokio::test(start_paused = true)]
async fn a_follower_is_ready_and_keeps_still() {
    let (world, one, two) = world().await;
    follows(&two, "one");
    let status = two.status().borrow().clone();
    assert!(status.synced && status.started, "{status:?}");
    assert_eq!(status.own_watches, Vec::<String>::new());
    // It has loaded what it may have to run.
    assert!(status.plugins[0].digest.is_some(), "{status:?}");
    assert_eq!((status.runs, status.running), (0, 0));

    // With the leader gone, nobody repairs before its lease has run out.
    one.stop().await;
    world.writes();
    set_pods(&world, "alice", "7").await;
    sleep(LEASE - LOOK).await;
    assert_eq!(pods(&world, "alice").await, "7");
    // The edit, and nothing else: a look at a lease is no write.
    assert_eq!(world.writes(), 1);
    let took = repaired(&world, "alice").await;
    assert!(took < LOOK + LOOK, "{took:?}");
}

/// A clock on the wall that somebody sets.
#[derive(Debug)]
struct WallClock {
    clock: VirtualClock,
    /// In seconds.
    set: AtomicI64,
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let set = SignedDuration::from_secs(self.set.load(Ordering::Relaxed));
        self.clock.now().checked_add(set).unwrap()
    }
}

/// Leases go by time that passes, not by what clocks show: neither the agents' nor the
/// API server's.
#[tokio::test(start_paused = true)]
async fn clocks_that_jump_move_no_lease_and_stop_no_repair() {
    let clock = Arc::new(WallClock {
        clock: VirtualClock::new(Timestamp::from_second(1_700_000_000).unwrap()),
        set: AtomicI64::new(0),
    });
    let (world, one, two) = world_by(Some(clock.clone())).await;
    for hours in [5, -10, 2] {
        clock.set.fetch_add(hours * 3600, Ordering::Relaxed);
        let jump = format!("clock-jump: by={}h", -hours);
        world.server.set_faults(vec![jump.parse().unwrap()]);
        // Longer than repairs may be apart and still be a fight.
        for _ in 0..8 {
            sleep(LEASE).await;
            assert!(one.status().borrow().leading, "{hours}");
            follows(&two, "one");
        }
        set_pods(&world, "alice", "7").await;
        let took = repaired(&world, "alice").await;
        assert!(took < Duration::from_secs(1), "{hours}: {took:?}");
        assert_eq!(world.unit("quotas", "alice").await, None, "{hours}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_hands_over_at_once() {
    let (world, one, two) = world().await;
    let start = Instant::now();
    one.shutdown(Duration::from_secs(20)).await;
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    let took = leads(&two).await;
    assert!(took < LOOK, "{took:?}");
    // A takeover of what is in place writes nothing but the lease.
    world.writes();
    sleep(Duration::from_secs(1)).await;
    assert!(two.status().borrow().runs > 0);
    assert!(world.writes() <= 1);
    set_pods(&world, "alice", "7").await;
    assert!(repaired(&world, "alice").await < LOOK);

    // Who comes back follows.
    let one = world.replica("one again");
    sleep(LEASE * 2).await;
    follows(&one, "two");
}

/// Whoever gets the lease while it is still about to load what was loaded before has
/// nothing to say of it: that it is being loaded would be over before somebody reads it, and
/// since when all is well would be lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_starts_and_leads_says_nothing_anew() {
    let world = World::new().await;
    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.tenant("alice", &[]).await;
    let mut agent = world.replica("first");
    leads(&agent).await;
    let plugin = plugin_reference("quotas");
    let said = loop {
        sleep(Duration::from_millis(500)).await;
        let said = world.get(&plugin).await;
        let ready = said
            .as_ref()
            .map(|said| said["status"]["units"]["ready"] == 1);
        if ready == Some(true) {
            break said;
        }
    };
    // What it leads by is there last of all that it lists, so that it hears of several things
    // at once, in an order that is left to chance.
    let late = "latency: delay=50ms, verb=list, resource=units";
    world.server.set_faults(vec![late.parse().unwrap()]);
    for identity in 0..25 {
        agent.shutdown(Duration::from_secs(5)).await;
        agent = world.replica(&identity.to_string());
        leads(&agent).await;
        sleep(Duration::from_millis(250)).await;
        assert_eq!(world.get(&plugin).await, said, "{identity}");
    }
}

/// A write that has no answer when its leader stops may still arrive: nobody leads before
/// it can do no harm. One that has its answer in time hinders nobody.
#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_with_a_write_under_way_lets_the_lease_run_out() {
    for (delay, at_once) in [(2, true), (600, false)] {
        let (world, one, two) = world().await;
        let slow = format!("latency: delay={delay}s, verb=patch, resource=resourcequotas");
        set_pods(&world, "alice", "7").await;
        world.server.set_faults(vec![slow.parse().unwrap()]);
        sleep(Duration::from_millis(500)).await;
        assert_eq!(pods(&world, "alice").await, "7", "it was faster");
        one.shutdown(Duration::from_secs(5)).await;
        world.server.set_faults(Vec::new());
        let took = leads(&two).await;
        assert_eq!(took < LOOK, at_once, "{took:?}");
        assert!(took <= LEASE + LOOK, "{took:?}");
    }
}

/// What another leader did while this one only watched is not done again, and what
/// happened while nobody led is made up for.
#[tokio::test(start_paused = true)]
async fn leadership_goes_back_and_forth_over_outages() {
    let (world, one, two) = world().await;
    for round in 0..4 {
        let tenant = format!("t{round}");
        world.server.faults().set_outage(Outage::Refused);
        sleep(Duration::from_secs(40)).await;
        for agent in [&one, &two] {
            assert!(!agent.status().borrow().leading, "round {round}");
        }
        world.server.faults().set_outage(Outage::None);
        world.tenant(&tenant, &[]).await;
        set_pods(&world, "alice", "7").await;
        tokio::select! {
            _ = leads(&one) => {}
            _ = leads(&two) => {}
        }
        repaired(&world, "alice").await;
        repaired(&world, &tenant).await;
        let leading = [&one, &two].map(|agent| agent.status().borrow().leading);
        assert_eq!(leading.iter().filter(|leads| **leads).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_reports_and_clears_what_the_old_one_reported() {
    let (world, one, two) = world().await;
    // A unit that waits for its namespace has a Unit object.
    let profile = reeve_test_support::samples::profile("bob");
    world.apply(&profile).await;
    sleep(Duration::from_secs(5)).await;
    let condition = world.unit_condition("quotas", "bob", "Ready").await;
    assert_eq!(condition.status, "False", "{condition:?}");
    one.stop().await;
    // Nobody sees this but the follower.
    world.delete(&profile_reference("bob")).await;
    leads(&two).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(world.unit("quotas", "bob").await, None);
    let ready = world.plugin_condition("quotas", "Ready").await;
    assert!(ready.message.contains("1 of 1 units ready"), "{ready:?}");
}

/// Entries that another leader has written count towards the bound of the journal, too.
#[tokio::test(start_paused = true)]
async fn who_leads_again_knows_the_whole_journal() {
    let (world, one, two) = world().await;
    two.stop().await;
    // Another user, so that a fault can keep the Lease from one of the two alone.
    let user = "another-agent";
    let other = world.replica_as("other", user, "system:masters");
    sleep(LEASE).await;
    let keep_lease_from = |user: &str| {
        let fault = format!("internal-error: user={user}, resource=leases");
        world.server.set_faults(vec![fault.parse().unwrap()]);
    };
    let journalled = async |tenant: &str| {
        // The same field of the same object is written down once.
        world.tenant(tenant, &[]).await;
        repaired(&world, tenant).await;
        set_pods(&world, tenant, "7").await;
        repaired(&world, tenant).await;
        sleep(Duration::from_secs(5)).await;
    };
    journalled("first").await;
    assert!(one.status().borrow().leading);
    keep_lease_from(AGENT);
    leads(&other).await;
    journalled("second").await;
    assert!(!one.status().borrow().leading);
    keep_lease_from(user);
    leads(&one).await;
    journalled("third").await;

    let like = json!({"apiVersion": "reeve.dev/v1alpha1", "kind": "JournalEntry",
        "metadata": {"name": "", "namespace": reeve_it::NAMESPACE}});
    let entries = world.list(&like).await.len();
    assert_eq!(one.footprint().await.unwrap().journal, entries);
    assert!(entries >= 3, "{entries}");
}

/// An event that could not be written before the lease was lost is not lost with it.
#[tokio::test(start_paused = true)]
async fn who_leads_again_tells_what_was_not_recorded() {
    let (world, one, two) = world().await;
    two.stop().await;
    let fault = format!("internal-error: user={AGENT}, resource=events");
    world.server.set_faults(vec![fault.parse().unwrap()]);
    let bad = [("quotas.statcan.gc.ca/gpu", "lots")];
    world.tenant("bob", &bad).await;
    while quota(&world, "bob").await.is_none() {
        sleep(Duration::from_millis(10)).await;
    }
    let events = async || {
        let all = world.list(&core_reference("Event", "default", "")).await;
        let about = all.into_iter();
        let about = about.filter(|event| event["involvedObject"]["name"] == "bob");
        about.count()
    };
    assert_eq!(events().await, 0);
    world.server.faults().set_outage(Outage::Refused);
    sleep(Duration::from_secs(40)).await;
    assert!(!one.status().borrow().leading);
    world.server.set_faults(Vec::new());
    world.server.faults().set_outage(Outage::None);
    leads(&one).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(events().await, 1);

    // However often that happens, there is room for what is new.
    for _ in 0..40 {
        world.server.faults().set_outage(Outage::Refused);
        sleep(Duration::from_secs(25)).await;
        assert!(!one.status().borrow().leading);
        world.server.faults().set_outage(Outage::None);
        leads(&one).await;
        sleep(Duration::from_secs(20)).await;
    }
    assert_eq!(events().await, 1);
    let more = json!({"metadata": {"labels": {"quotas.statcan.gc.ca/gpu": "more"}}});
    world.edit(&profile_reference("bob"), more).await;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(events().await, 2);
}
