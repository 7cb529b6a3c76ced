//! What goes in, what comes out, what the view is asked.

use crate::guests::{World, chameleon, data, deed, limits, reconcile, request};
use reeve_core::manifest::RawManifest;
use reeve_core::outcome::{ConditionStatus, Next};
use reeve_core::{Failure, GroupVersionKind, Scope};
use reeve_engine::{ConfigError, Fact, Generation, Level, Limits, ReadError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_component_says_who_it_is() {
    let component = chameleon().await;
    let called = component.metadata(&limits()).await.unwrap();
    assert_eq!(called.value.name, "chameleon");
    assert_eq!(called.value.version, "0.1.0");
    assert!(called.value.config_schema.starts_with(b"{\"type\""));
    assert_eq!(component.generation(), Generation::V0_1);
}

async fn describe(config: Value) -> Result<RawManifest, ConfigError> {
    let config = config.to_string().into();
    let called = chameleon().await.describe(config, &limits()).await;
    called.unwrap().value
}

#[tokio::test]
async fn a_manifest_arrives_whole() {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": ["a", "b"],
        "reads": ["Secret.v1"],
    });
    let manifest = describe(config).await.unwrap();
    let primary = manifest.primary.unwrap();
    assert_eq!(
        primary.kind,
        GroupVersionKind::new("kubeflow.org", "v1", "Profile")
    );
    assert_eq!(manifest.reads[0].scope, Scope::Cluster);
    let namespaces = Scope::Namespaces(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(manifest.writes[0].scope, namespaces);
    assert_eq!((manifest.sources.len(), manifest.actions.len()), (0, 0));
}

#[tokio::test]
async fn a_config_error_is_an_answer() {
    let error = describe(json!({ "describe": "refuse" })).await.unwrap_err();
    assert_eq!(error.to_string(), "/describe: refused, as told");
}

#[tokio::test]
async fn a_plugin_that_describes_itself_sees_no_cluster() {
    let error = describe(json!({ "describe": "ask-cluster" })).await;
    let text = error.unwrap_err().message;
    assert!(text.contains("in `reconcile` only"), "{text}");
}

#[tokio::test]
async fn the_request_arrives_whole() {
    let mut request = request(&json!({}));
    request.facts.push(Fact {
        key: "database".to_owned(),
        value: "{\"url\":\"x\"}".into(),
    });
    let called = chameleon()
        .await
        .reconcile(request.clone(), Arc::new(World::default()), &limits())
        .await
        .unwrap();
    let data = data(&called.value.unwrap());
    assert_eq!(
        data["primary"].as_str().unwrap().as_bytes(),
        request.primary
    );
    assert_eq!(data["config"], "{}");
    let facts = data["facts"].as_str().unwrap();
    assert_eq!(facts, r#"[{"key":"database","value":"{\"url\":\"x\"}"}]"#);
}

#[tokio::test]
async fn the_outcome_arrives_whole() {
    let remark = reconcile(json!({ "do": "remark", "text": "hm" }), &limits()).await;
    let outcome = remark.unwrap().value.unwrap();
    let condition = &outcome.conditions[0];
    assert_eq!(
        (&*condition.kind, &*condition.message),
        ("Remarkable", "hm")
    );
    assert_eq!(condition.status, ConditionStatus::True);
    assert!(outcome.events[0].warning);
    assert_eq!(outcome.next, Next::OnChange);
    assert!(!outcome.empty_is_meant);

    let after = reconcile(json!({ "do": "after", "millis": 1500 }), &limits()).await;
    let next = after.unwrap().value.unwrap().next;
    assert_eq!(next, Next::After(Duration::from_millis(1500)));

    let nothing = reconcile(json!({ "do": "nothing", "meant": true }), &limits()).await;
    assert!(nothing.unwrap().value.unwrap().empty_is_meant);
}

#[tokio::test]
async fn a_failure_is_an_answer() {
    let why = || "why".to_owned();
    for (how, failure) in [
        ("retry", Failure::Retry(why())),
        ("terminal", Failure::Terminal(why())),
        ("not-ready", Failure::NotReady(why())),
    ] {
        let deed = json!({ "do": "fail", "how": how, "text": "why" });
        let called = reconcile(deed, &limits()).await.unwrap();
        assert_eq!(called.value, Err(failure));
    }
}

#[tokio::test]
async fn invalid_texts_pass_through_for_the_caller_to_judge() {
    let raw = json!({ "do": "raw", "text": "{", "byte": 255 });
    let outcome = reconcile(raw, &limits()).await.unwrap().value.unwrap();
    assert_eq!(outcome.objects, [b"{\xff"]);
}

#[tokio::test]
async fn reads_are_answered_by_the_view() {
    let cases = [
        (
            json!({ "do": "get", "kind": "Secret.v1", "namespace": "default", "name": "a" }),
            json!({ "0": "1" }),
            "get Secret default/a []",
        ),
        (
            json!({ "do": "get", "kind": "Secret.v1", "namespace": "default", "name": "none" }),
            json!({}),
            "get Secret default/none []",
        ),
        (
            json!({
                "do": "get", "kind": "Secret.v1", "namespace": "default", "name": "a",
                "projection": ["/data"],
            }),
            json!({ "0": "1" }),
            r#"get Secret default/a ["/data"]"#,
        ),
        (
            json!({ "do": "list", "kind": "Secret.v1", "selector": "a=b" }),
            json!({ "0": "1", "1": "2" }),
            "list Secret.v1 a=b",
        ),
        (
            json!({ "do": "list-keys", "kind": "Secret.v1", "selector": "" }),
            json!({ "0": "default/a", "1": "default/b" }),
            "keys Secret.v1 ",
        ),
    ];
    for (what, expected, asked) in cases {
        let world = Arc::new(World::default().with("a", json!(1)).with("b", json!(2)));
        let called = chameleon()
            .await
            .reconcile(deed(&what), Arc::clone(&world) as _, &limits())
            .await
            .unwrap();
        assert_eq!(data(&called.value.unwrap()), expected, "{asked}");
        assert_eq!(*world.seen.lock(), [asked]);
        assert_eq!(called.usage.host_calls, 1);
    }
}

#[tokio::test]
async fn each_read_error_keeps_its_kind() {
    let text = || "x".to_owned();
    for (error, expected) in [
        (
            ReadError::Forbidden(text()),
            Failure::Terminal("forbidden: x".to_owned()),
        ),
        (
            ReadError::Undeclared(text()),
            Failure::Terminal("undeclared: x".to_owned()),
        ),
        (
            ReadError::Invalid(text()),
            Failure::Terminal("invalid: x".to_owned()),
        ),
        (
            ReadError::NotSynced(text()),
            Failure::NotReady("not synced: x".to_owned()),
        ),
    ] {
        for what in ["list", "list-keys"] {
            let world = Arc::new(World::failing(error.clone()));
            let what = deed(&json!({ "do": what, "kind": "Secret.v1" }));
            let called = chameleon().await.reconcile(what, world, &limits()).await;
            assert_eq!(called.unwrap().value.as_ref(), Err(&expected));
        }
    }
}

#[tokio::test]
async fn sources_are_answered_by_the_view() {
    let called = reconcile(json!({ "do": "read-source", "name": "prices" }), &limits()).await;
    assert_eq!(
        data(&called.unwrap().value.unwrap()),
        json!({ "0": "1.25" })
    );
    let called = reconcile(json!({ "do": "read-source", "name": "odd" }), &limits()).await;
    let failure = called.unwrap().value.unwrap_err();
    assert!(failure.to_string().contains("Undeclared"), "{failure}");
}

#[tokio::test]
async fn the_clock_is_the_views_and_it_knows_that_it_was_asked() {
    let world = Arc::new(World::default());
    let called = chameleon()
        .await
        .reconcile(
            deed(&json!({ "do": "read-clock" })),
            Arc::clone(&world) as _,
            &limits(),
        )
        .await
        .unwrap();
    let expected = json!({ "0": World::NOW.to_string() });
    assert_eq!(data(&called.value.unwrap()), expected);
    assert_eq!(*world.seen.lock(), ["now"]);
}

#[tokio::test]
async fn the_same_call_has_the_same_answer() {
    for what in ["echo", "hash-seed", "nan-bits", "count-calls"] {
        let what = json!({ "do": what });
        let first = reconcile(what.clone(), &limits()).await.unwrap();
        let second = reconcile(what, &limits()).await.unwrap();
        assert_eq!(first.value.unwrap(), second.value.unwrap());
        assert_eq!(first.usage.memory_bytes, second.usage.memory_bytes);
        assert_eq!(first.usage.host_calls, second.usage.host_calls);
        assert_eq!(first.usage.output_bytes, second.usage.output_bytes);
    }
}

/// Sign and payload of a NaN are left open by the specification and differ between
/// processors; here it is always the canonical one.
#[tokio::test]
async fn what_is_no_number_has_the_same_bits_everywhere() {
    let called = reconcile(json!({ "do": "nan-bits" }), &limits()).await;
    let bits = data(&called.unwrap().value.unwrap());
    let bits: Vec<&Value> = bits.as_object().unwrap().values().collect();
    assert_eq!(bits.len(), 11);
    for text in bits {
        let canonical = ["7ff8000000000000", "7fc00000"];
        assert!(canonical.contains(&text.as_str().unwrap()), "{text}");
    }
}

/// What a call leaves in its statics no other call finds, of the same component or not,
/// one after another or at once.
#[tokio::test]
async fn nothing_is_remembered_between_calls() {
    let limits = limits();
    let count = || reconcile(json!({ "do": "count-calls" }), &limits);
    let (first, second, third) = tokio::join!(count(), count(), count());
    let fourth = count().await;
    for called in [first, second, third, fourth] {
        let counted = data(&called.unwrap().value.unwrap());
        let counted: Vec<&Value> = counted.as_object().unwrap().values().collect();
        assert_eq!(counted, ["1"]);
    }
}

#[tokio::test]
async fn log_lines_come_with_the_answer_up_to_the_limit() {
    let called = reconcile(json!({ "do": "log-flood", "lines": 3 }), &limits()).await;
    let called = called.unwrap();
    assert_eq!(called.logs.len(), 3);
    assert_eq!(called.logs[2].level, Level::Info);
    assert!(called.logs[2].message.ends_with("002"));
    assert!(!called.logs_dropped);

    let called = reconcile(
        json!({ "do": "log-flood", "lines": 10_000 }),
        &Limits::default(),
    )
    .await
    .unwrap();
    let kept: usize = called.logs.iter().map(|line| line.message.len()).sum();
    assert!(called.logs_dropped);
    assert!((30_000..=65_536).contains(&kept), "{kept}");
    assert!(
        called.logs[0].message.ends_with("000"),
        "the beginning is kept"
    );
}
