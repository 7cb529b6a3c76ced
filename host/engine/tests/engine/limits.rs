//! Every way in which a call can end without an answer, and what the operator
//! then reads.

use crate::guests::{World, bytes, chameleon, deed, engine, limits, reconcile};
use reeve_engine::{Fault, FaultKind, Limits};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

async fn fault(what: Value, limits: &Limits) -> Fault {
    reconcile(what.clone(), limits)
        .await
        .err()
        .unwrap_or_else(|| panic!("{what} should not come back"))
}

/// The text that the operator reads, exactly.
async fn check(what: Value, limits: &Limits, text: &str) -> Fault {
    let fault = fault(what, limits).await;
    assert_eq!(fault.to_string(), text);
    fault
}

#[tokio::test]
async fn a_panic_is_reported_with_its_message() {
    let fault = fault(json!({ "do": "panic", "text": "no such unit" }), &limits()).await;
    let text = fault.to_string();
    assert!(
        text.starts_with("reconcile: the plugin gave up: "),
        "{text}"
    );
    assert!(text.contains("src/traps.rs"), "{text}");
    assert!(text.contains(r"\nno such unit; mend the plugin"), "{text}");
    assert!(matches!(
        *fault.kind,
        FaultKind::Trap {
            message: Some(_),
            ..
        }
    ));
    assert!(!fault.retries());
}

#[tokio::test]
async fn a_trap_is_reported_with_its_kind_and_place() {
    let fault = fault(json!({ "do": "trap" }), &limits()).await;
    let text = fault.to_string();
    let start = "reconcile: the plugin trapped: wasm trap: wasm `unreachable` instruction executed, in function ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("; mend the plugin; `reeve record`"), "{text}");
    let FaultKind::Trap {
        frames, message, ..
    } = &*fault.kind
    else {
        panic!("{fault:?}");
    };
    assert!(!frames.is_empty());
    assert_eq!(*message, None);
}

#[tokio::test]
async fn an_endless_loop_ends_at_its_limit() {
    let fault = check(
        json!({ "do": "loop" }),
        &limits(),
        "reconcile: the plugin ran for more than 50 ms; look for an endless loop, or raise its run time limit",
    )
    .await;
    assert!(fault.usage.run_time >= Duration::from_millis(50));
    assert!(fault.retries());
}

#[tokio::test]
async fn time_in_the_host_is_not_counted() {
    struct Slow;

    impl reeve_engine::View for Slow {
        fn get(
            &self,
            _: &reeve_core::ObjectReference,
            _: &[String],
        ) -> Result<Option<bytes::Bytes>, reeve_engine::ReadError> {
            Ok(None)
        }

        fn list(
            &self,
            _: &reeve_engine::ListQuery,
        ) -> Result<Vec<bytes::Bytes>, reeve_engine::ReadError> {
            // Longer than the guest may run, so epochs end meanwhile.
            std::thread::sleep(Duration::from_millis(120));
            Ok(Vec::new())
        }

        fn list_keys(
            &self,
            _: &reeve_engine::ListQuery,
        ) -> Result<Vec<reeve_core::ObjectReference>, reeve_engine::ReadError> {
            Ok(Vec::new())
        }

        fn now(&self) -> u64 {
            0
        }

        fn source_age(&self, name: &str) -> Result<u64, reeve_engine::SourceError> {
            Err(reeve_engine::SourceError::Undeclared(name.to_owned()))
        }
        fn source(&self, name: &str) -> Result<reeve_engine::Document, reeve_engine::SourceError> {
            Err(reeve_engine::SourceError::Undeclared(name.to_owned()))
        }
    }

    let called = chameleon()
        .await
        .reconcile(
            deed(&json!({ "do": "list", "kind": "Secret.v1" })),
            Arc::new(Slow),
            &Limits {
                run_time: Duration::from_millis(100),
                ..Limits::default()
            },
        )
        .await
        .unwrap();
    assert!(called.usage.wall >= Duration::from_millis(120));
    assert!(called.usage.run_time < called.usage.wall);
}

#[tokio::test]
async fn memory_ends_at_its_limit() {
    let limits = Limits {
        memory_bytes: 8 << 20,
        ..Limits::default()
    };
    let hoard = fault(json!({ "do": "hoard" }), &limits).await;
    let text = hoard.to_string();
    assert!(text.starts_with("reconcile: the plugin needs "), "{text}");
    assert!(
        text.ends_with(
            ", more than its memory limit of 8 MiB; make it hold less at once, or raise the limit"
        ),
        "{text}"
    );
    assert!(hoard.usage.memory_bytes <= 8 << 20);

    let grab = fault(
        json!({ "do": "grab", "bytes": 100 << 20 }),
        &Limits::default(),
    )
    .await;
    let FaultKind::Memory { limit, wanted } = *grab.kind else {
        panic!("{grab:?}");
    };
    assert_eq!(limit, 64 << 20);
    assert!(wanted > 100 << 20);

    let fits = reconcile(
        json!({ "do": "grab", "bytes": 40 << 20 }),
        &Limits::default(),
    )
    .await;
    assert!(fits.unwrap().usage.memory_bytes > 40 << 20);
}

#[tokio::test]
async fn a_guest_that_starts_beyond_its_memory_does_not_start() {
    let limits = Limits {
        memory_bytes: 64 << 10,
        ..Limits::default()
    };
    let fault = fault(json!({ "do": "echo" }), &limits).await;
    assert!(
        matches!(*fault.kind, FaultKind::Memory { limit: 65_536, .. }),
        "{fault}"
    );
}

#[tokio::test]
async fn recursion_ends_at_the_stack() {
    let fault = fault(json!({ "do": "recurse" }), &Limits::default()).await;
    let text = fault.to_string();
    let start = "reconcile: the plugin used up its stack of 512 KiB; look for an endless recursion, in function ";
    assert!(text.starts_with(start), "{text}");
}

/// The same recursion needs a stack that depends on the limit, and nothing else
/// changes: not even the machine code. With much of it the guest uses up first what
/// its compiler set aside in its memory.
#[tokio::test]
async fn a_plugin_can_have_another_stack() {
    const MEMORY: &str = "trapped: wasm trap: out of bounds memory access, in function ";
    for (stack_bytes, shown) in [
        (1, "used up its stack of 64 KiB; "),
        (100_000, "used up its stack of 128 KiB; "),
        (256 << 10, "used up its stack of 256 KiB; "),
        (8 << 20, MEMORY),
        (u64::MAX, MEMORY),
    ] {
        let limits = Limits {
            stack_bytes,
            ..Limits::default()
        };
        let fault = fault(json!({ "do": "recurse" }), &limits).await;
        let text = fault.to_string();
        let start = format!("reconcile: the plugin {shown}");
        assert!(text.starts_with(&start), "{text}");
        let fits = reconcile(json!({ "do": "echo" }), &limits).await;
        assert!(fits.unwrap().value.is_ok(), "{shown}");
    }
}

#[tokio::test]
async fn a_call_ends_at_its_wall_time() {
    let limits = Limits {
        wall_time: Duration::from_millis(50),
        ..Limits::default()
    };
    let fault = check(
        json!({ "do": "loop" }),
        &limits,
        "reconcile: the plugin did not come to an end within 50 ms, waiting included; make it do less in one call, or raise its wall time limit",
    )
    .await;
    assert!(fault.usage.wall >= Duration::from_millis(50));
    assert!(fault.retries());
    assert_eq!(fault.kind.limit(), Some("wallMilliseconds"));
}

#[tokio::test]
async fn what_a_call_used_is_told() {
    let objects = reconcile(
        json!({ "do": "objects", "count": 7, "bytes": 100 }),
        &limits(),
    )
    .await
    .unwrap();
    assert_eq!(objects.usage.output_objects, 7);
    assert!(objects.usage.output_bytes > 700);
    let log = reconcile(json!({ "do": "log-flood", "lines": 3 }), &limits()).await;
    let log = log.unwrap();
    let kept: usize = log.logs.iter().map(|line| line.message.len()).sum();
    assert_eq!(log.usage.log_bytes, kept as u64);
    assert!(kept > 100);
}

#[tokio::test]
async fn output_is_limited_by_bytes() {
    let limits = Limits {
        output_bytes: 10_000,
        ..Limits::default()
    };
    let fault = fault(
        json!({ "do": "objects", "count": 1, "bytes": 10_000 }),
        &limits,
    )
    .await;
    let FaultKind::OutputBytes { limit: 10_000, got } = *fault.kind else {
        panic!("{fault:?}");
    };
    assert_eq!(
        fault.to_string(),
        format!(
            "reconcile: the plugin returned {got} bytes, more than its output limit of 10000 bytes; return fewer or smaller objects, or raise the limit"
        )
    );
    let fits = reconcile(
        json!({ "do": "objects", "count": 1, "bytes": 9_000 }),
        &limits,
    )
    .await;
    assert!(fits.unwrap().usage.output_bytes > 9_000);
}

/// Far beyond the limit, the answer is refused before the host copies it.
#[tokio::test]
async fn huge_output_never_reaches_the_host() {
    for what in [
        json!({ "do": "objects", "count": 1, "bytes": 8 << 20 }),
        json!({ "do": "objects", "count": 50_000, "bytes": 10 }),
    ] {
        check(
            what,
            &Limits::default(),
            "reconcile: the plugin returned far more than its output limit of 4 MiB, or than its limit of 1000 objects; return fewer or smaller objects, or raise the limit",
        )
        .await;
    }
}

#[tokio::test]
async fn output_is_limited_by_objects() {
    check(
        json!({ "do": "objects", "count": 1_001 }),
        &Limits::default(),
        "reconcile: the plugin returned 1001 objects, more than its limit of 1000; return fewer, or raise the limit",
    )
    .await;
    let fits = reconcile(
        json!({ "do": "objects", "count": 1_000 }),
        &Limits::default(),
    )
    .await;
    assert_eq!(fits.unwrap().value.unwrap().objects.len(), 1_000);
}

#[tokio::test]
async fn host_calls_are_limited() {
    let limits = Limits {
        host_calls: 1_000,
        ..Limits::default()
    };
    let fault = check(
        json!({ "do": "call-flood", "calls": 1_001 }),
        &limits,
        "reconcile: the plugin called the host more than 1000 times; list objects instead of getting each, or raise the limit",
    )
    .await;
    assert_eq!(fault.usage.host_calls, 1_001);
    let fits = reconcile(json!({ "do": "call-flood", "calls": 1_000 }), &limits).await;
    assert_eq!(fits.unwrap().usage.host_calls, 1_000);
}

#[tokio::test]
async fn reads_are_limited_by_bytes() {
    let limits = Limits {
        host_call_bytes: 1 << 20,
        ..Limits::default()
    };
    let world = World::default().with("a", json!("x".repeat(1000)));
    let fault = chameleon()
        .await
        .reconcile(
            deed(&json!({ "do": "read-flood", "kind": "Secret.v1" })),
            Arc::new(world),
            &limits,
        )
        .await
        .unwrap_err();
    assert_eq!(
        fault.to_string(),
        "reconcile: the plugin read more than 1 MiB in one call; narrow its lists by namespace, selector or projection, or raise the limit"
    );
}

#[tokio::test]
async fn one_argument_is_limited_too() {
    let fault = fault(
        json!({ "do": "long-line", "bytes": 20 << 20 }),
        &Limits::default(),
    )
    .await;
    let text = fault.to_string();
    let start = "reconcile: the plugin passed more than 4 MiB to one host function, in function ";
    assert!(text.starts_with(start), "{text}");
}

#[tokio::test]
async fn describe_is_limited_like_any_call() {
    let cases = [
        ("loop", "describe: the plugin ran for more than 50 ms; "),
        ("trap", "describe: the plugin trapped: "),
        ("panic", "describe: the plugin gave up: "),
        (
            "ask-time",
            "describe: the plugin called clock.now, which answers only in `reconcile`",
        ),
    ];
    for (how, start) in cases {
        let config = json!({ "describe": how }).to_string().into();
        let fault = chameleon().await.describe(config, &limits()).await;
        let text = fault.unwrap_err().to_string();
        assert!(text.starts_with(start), "{text}");
        // Nothing keeps a call of `describe`.
        assert!(!text.contains("reeve record"), "{text}");
    }
}

#[tokio::test]
async fn what_was_logged_before_a_fault_is_kept() {
    let limits = Limits {
        host_calls: 5,
        ..limits()
    };
    let fault = fault(json!({ "do": "log-flood", "lines": 10 }), &limits).await;
    assert_eq!(
        fault.logs.len(),
        6,
        "the line of the call too many included"
    );
    assert!(!fault.logs_dropped);
}

/// The guest's own name, spoiled in its data.
#[tokio::test]
async fn a_string_that_is_no_utf_8_is_a_malformed_value() {
    let mut bytes = bytes("chameleon").to_vec();
    let name = b"chameleon";
    let places: Vec<usize> = bytes
        .windows(name.len())
        .enumerate()
        .filter_map(|(place, window)| (window == name).then_some(place))
        .collect();
    for place in places {
        bytes[place] = 0xff;
    }
    let component = engine().load(bytes.into()).await.unwrap();
    let fault = component.metadata(&limits()).await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "metadata: the plugin returned a malformed value: invalid utf-8 sequence of 1 bytes from index 0; this is a bug of the SDK it was built with"
    );
}
