//! Many calls, many loads, many runtimes, one engine.

use crate::guests::{World, bytes, chameleon, config, deed, limits, reconcile};
use reeve_engine::{Engine, EngineConfig, FaultKind, Limits};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test]
async fn loads_at_the_same_time_share_one_compilation() {
    let engine = Engine::new(config()).unwrap();
    let mut loads = JoinSet::new();
    for _ in 0..20 {
        let engine = engine.clone();
        loads.spawn(async move { engine.load(bytes("tourist")).await.unwrap() });
    }
    let components = loads.join_all().await;
    assert_eq!(components.len(), 20);
    assert_eq!(engine.stats().compiled, 1);

    // And later, as long as somebody holds it.
    engine.load(bytes("tourist")).await.unwrap();
    assert_eq!(engine.stats().compiled, 1);
    drop(components);
    engine.load(bytes("tourist")).await.unwrap();
    assert_eq!(engine.stats().compiled, 2);
}

/// On one thread, so that the honest calls can only end if the loop yields.
#[tokio::test]
async fn a_hundred_calls_go_on_while_one_loops() {
    let long = Limits {
        run_time: Duration::from_secs(3600),
        ..Limits::default()
    };
    let looping = tokio::spawn(async move { reconcile(json!({ "do": "loop" }), &long).await });
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        calls.spawn(async { reconcile(json!({ "do": "echo" }), &limits()).await });
    }
    for called in calls.join_all().await {
        assert!(called.unwrap().value.is_ok());
    }
    assert!(!looping.is_finished());
    looping.abort();
    assert!(looping.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn looping_guests_share_the_thread_and_each_ends_at_its_limit() {
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        calls.spawn(async { reconcile(json!({ "do": "loop" }), &limits()).await });
    }
    for called in calls.join_all().await {
        let fault = called.unwrap_err();
        assert!(matches!(*fault.kind, FaultKind::Deadline { .. }), "{fault}");
        // Waiting for its turn is not charged, so none ends early.
        assert!(fault.usage.run_time >= limits().run_time);
    }
}

#[tokio::test]
async fn calls_beyond_the_pool_run_outside_of_it() {
    let engine = Engine::new(EngineConfig {
        max_instances: 1,
        ..config()
    })
    .unwrap();
    assert!(engine.stats().pooled);
    let component = engine.load(bytes("chameleon")).await.unwrap();
    let long = Limits {
        run_time: Duration::from_secs(3600),
        ..Limits::default()
    };
    let looping = tokio::spawn({
        let component = component.clone();
        async move {
            let world = Arc::new(World::default());
            let what = deed(&json!({ "do": "loop" }));
            component.reconcile(what, world, &long).await.map(drop)
        }
    });
    let call = async |what| {
        let world = Arc::new(World::default());
        component.reconcile(deed(&what), world, &limits()).await
    };
    // The loop has taken the one slot once it yields for the first time.
    tokio::task::yield_now().await;
    assert!(call(json!({ "do": "echo" })).await.unwrap().value.is_ok());
    assert_eq!(engine.stats().overflowed, 1);
    // Limits hold there as well.
    let fault = call(json!({ "do": "loop" })).await.unwrap_err();
    assert!(matches!(*fault.kind, FaultKind::Deadline { .. }), "{fault}");
    assert_eq!(engine.stats().compiled, 1);
    looping.abort();
}

#[tokio::test]
async fn an_engine_does_without_a_pool() {
    let engine = Engine::new(EngineConfig {
        max_instances: 0,
        ..config()
    })
    .unwrap();
    assert!(!engine.stats().pooled);
    let component = engine.load(bytes("chameleon")).await.unwrap();
    let world = Arc::new(World::default());
    let called = component
        .reconcile(deed(&json!({ "do": "echo" })), world, &limits())
        .await;
    assert!(called.unwrap().value.is_ok());
}

/// Runtimes come and go, their clocks stand still, and the engine stays.
#[test]
fn many_runtimes_share_an_engine() {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .start_paused(true)
                    .build()
                    .unwrap();
                runtime.block_on(async {
                    let before = tokio::time::Instant::now();
                    chameleon().await;
                    let called = reconcile(json!({ "do": "echo" }), &limits()).await;
                    assert!(called.unwrap().value.is_ok());
                    let fault = reconcile(json!({ "do": "loop" }), &limits()).await;
                    assert!(fault.is_err());
                    assert_eq!(before.elapsed(), Duration::ZERO);
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
