//! WASI is there and shows nothing.

use crate::guests::{World, data, limits, request, tourist};
use reeve_core::{Failure, GroupVersionKind, ObjectReference, Outcome, UnitKey};
use reeve_engine::{Called, Fault, FaultKind, Level, Limits, Request};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

async fn look(at: Value, limits: &Limits) -> Result<Called<Result<Outcome, Failure>>, Fault> {
    let world = Arc::new(World::default());
    tourist().await.reconcile(request(&at), world, limits).await
}

async fn sights() -> Value {
    let called = look(json!({}), &limits()).await.unwrap();
    data(&called.value.unwrap())
}

#[tokio::test]
async fn there_is_nothing_to_see() {
    let sights = sights().await;
    for (what, expected) in [
        ("environment", "[]"),
        ("arguments", "[]"),
        ("folder", "None"),
        ("stdin", "true"),
        ("preopens", "0"),
        ("monotonic", "0"),
        ("wall", "0.0"),
        ("lookup", "permanent-resolver-failure"),
        ("socket", "access-denied"),
    ] {
        assert_eq!(sights[what], expected, "{what}");
    }
}

#[tokio::test]
async fn random_numbers_are_the_same_at_every_call() {
    let (first, second) = (sights().await, sights().await);
    assert_eq!(first, second);
    // Not just zeroes.
    let zeroes = format!("{:?}", [0u8; 64]);
    assert_ne!(first["random"], zeroes);
    assert_ne!(first["insecure"], "0");
    assert_ne!(first["seed"], "(0, 0)");
}

/// What the guest sees for a unit, or for none.
async fn sights_for(unit: Option<(&str, &str)>) -> Value {
    let unit = unit.map(|(plugin, name)| {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        UnitKey::new(plugin, ObjectReference::new(kind, None, name))
    });
    let request = Request {
        unit,
        ..request(&json!({}))
    };
    let world = Arc::new(World::default());
    // How long it takes is not what is looked at.
    let limits = Limits::default();
    let called = tourist().await.reconcile(request, world, &limits).await;
    data(&called.unwrap().value.unwrap())
}

#[tokio::test]
async fn no_two_plugins_and_no_two_units_draw_the_same_numbers() {
    let units = [
        None,
        Some(("quotas", "alice")),
        Some(("quotas", "bob")),
        Some(("limits", "alice")),
    ];
    for what in ["random", "insecure", "seed"] {
        let mut drawn = BTreeSet::new();
        for unit in units {
            let first = sights_for(unit).await;
            assert_eq!(sights_for(unit).await, first, "{unit:?}");
            drawn.insert(first[what].to_string());
        }
        assert_eq!(drawn.len(), units.len(), "{what} {drawn:?}");
    }
}

#[tokio::test]
async fn sql_answers_in_actuate_only() {
    let called = look(json!({ "look": "sql" }), &limits()).await.unwrap();
    let answer = data(&called.value.unwrap())["sql"].to_string();
    let expected = "SQL answers in `actuate` only, not in `reconcile`";
    assert!(
        answer.contains("Forbidden") && answer.contains(expected),
        "{answer}"
    );
}

#[tokio::test]
async fn exit_ends_the_call() {
    let fault = look(json!({ "look": "exit" }), &limits())
        .await
        .unwrap_err();
    assert_eq!(
        fault.to_string(),
        "reconcile: the plugin called exit(1); a plugin returns a failure instead of ending its process"
    );
}

/// The test's clock is paused: a guest that really waited would be waited for.
#[tokio::test(start_paused = true)]
async fn sleeping_takes_no_time() {
    let before = tokio::time::Instant::now();
    let called = look(json!({ "look": "sleep" }), &limits()).await.unwrap();
    assert_eq!(data(&called.value.unwrap())["after"], "sleep");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn what_is_printed_goes_to_the_log() {
    let called = look(json!({ "look": "print" }), &limits()).await.unwrap();
    let lines: Vec<(Level, &str)> = called
        .logs
        .iter()
        .map(|line| (line.level, line.message.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (Level::Info, "one"),
            (Level::Info, "two, three"),
            (Level::Warn, "careful"),
        ]
    );
}

#[tokio::test]
async fn handles_are_limited() {
    let fault = look(json!({ "look": "litter" }), &Limits::default()).await;
    let fault = fault.unwrap_err();
    let FaultKind::Trap { trap, .. } = &*fault.kind else {
        panic!("{fault}");
    };
    assert!(trap.contains("resource table has no free keys"), "{trap}");
    assert!(fault.usage.host_calls <= 257, "{:?}", fault.usage);
}

/// Of requests that are never sent, the host keeps no more than servers take.
#[tokio::test]
async fn what_a_request_keeps_on_the_host_is_limited() {
    let called = look(json!({ "look": "hoard" }), &Limits::default()).await;
    let sights = data(&called.unwrap().value.unwrap());
    // As a scheme none of these is one.
    assert_eq!(sights["taken"], "8192: 3, 8193: 0, 1048576: 0");
    let piece: usize = sights["piece"].as_str().unwrap().parse().unwrap();
    assert!((1..=16 << 10).contains(&piece), "{piece}");
    // Header fields count with their names, and more of them end the call.
    let stuffed = async |fields: usize| {
        let config = json!({ "look": "stuff", "fields": fields });
        look(config, &Limits::default()).await
    };
    stuffed(28).await.unwrap();
    let text = stuffed(32).await.unwrap_err().to_string();
    assert!(
        text.contains("total size of fields exceeds limit"),
        "{text}"
    );
}

/// In a function of the host, for what never comes: there no epoch ends it.
#[tokio::test]
async fn who_waits_for_ever_ends_at_the_wall_time() {
    let short = Limits {
        wall_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let fault = look(json!({ "look": "stall" }), &short).await.unwrap_err();
    let expected = FaultKind::WallTime {
        limit: short.wall_time,
    };
    assert_eq!(*fault.kind, expected);
    assert!(fault.usage.wall >= short.wall_time);
    assert!(fault.usage.host_calls > 3, "{:?}", fault.usage);
}

#[tokio::test]
async fn random_bytes_are_limited() {
    let fault = look(json!({ "look": "gamble" }), &Limits::default()).await;
    let text = fault.unwrap_err().to_string();
    assert!(text.contains("exceeds limit 65536"), "{text}");
}

#[tokio::test]
async fn calls_of_wasi_count_as_host_calls() {
    let few = Limits {
        host_calls: 5,
        ..limits()
    };
    let fault = look(json!({}), &few).await.unwrap_err();
    assert!(
        matches!(*fault.kind, FaultKind::HostCalls { limit: 5 }),
        "{fault}"
    );
}
