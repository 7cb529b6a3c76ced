//! Calls that go wrong: the unit says what and where, and no other unit notices.

use crate::logged::Log;
use reeve_it::{World, core_reference, guest};
use serde_json::{Value, json};

/// Runs a deed for the tenant `bad` beside an honest tenant, and checks what is
/// said about it.
async fn check(deed: Value, reason: &str, texts: &[&str]) {
    let world = World::started().await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reconcile": {"do": "echo"},
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
    world.tenant("good", &[]).await;
    world
        .apply(&reeve_test_support::samples::namespace("bad"))
        .await;
    let profile = reeve_test_support::samples::profile("bad");
    world.apply(&profile).await;
    world.settle().await;
    // What it was right about before must survive what it is wrong about now.
    let made = |tenant: &str| core_reference("ConfigMap", tenant, &format!("chameleon-{tenant}"));
    let before = world.get(&made("bad")).await;
    assert!(before.is_some(), "made while all was well");
    let log = Log::kept();
    let wrong = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed.to_string()}}});
    world.edit(&profile, wrong).await;
    world.settle().await;
    let ready = world.unit_condition("chameleon", "bad", "Ready").await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", reason),
        "{ready:?}"
    );
    for text in texts {
        assert!(ready.message.contains(text), "`{text}` is not in {ready:?}");
    }
    if reason != "NotReady" {
        assert!(log.has(texts), "the log has not {texts:?}");
    }
    assert_eq!(
        world.get(&made("bad")).await,
        before,
        "nothing is changed or pruned"
    );
    assert!(
        world.get(&made("good")).await.is_some(),
        "the other unit works"
    );
    assert_eq!(world.unit("chameleon", "good").await, None);
    let plugin = world.plugin_condition("chameleon", "Ready").await;
    let how = if reason == "NotReady" {
        "1 waiting"
    } else {
        "1 failing"
    };
    assert!(plugin.message.contains(how), "{plugin:?}");
    // Mended, it is forgotten.
    let mended = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": null}}});
    world.edit(&profile, mended).await;
    world.settle().await;
    assert!(world.get(&made("bad")).await.is_some());
    assert_eq!(world.unit("chameleon", "bad").await, None);
}

macro_rules! cases {
    ($($name:ident: $deed:tt => $reason:literal, $texts:expr;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                check(json!($deed), $reason, &$texts).await;
            }
        )*
    };
}

cases! {
    a_trap: {"do": "trap"} => "Trapped", ["reconcile", "unreachable", "`reeve record`"];
    a_panic: {"do": "panic", "text": "no such tenant"} => "Trapped", ["no such tenant", "`reeve record`"];
    a_loop: {"do": "loop"} => "LimitExceeded", ["2 s", "endless loop"];
    a_recursion: {"do": "recurse"} => "LimitExceeded", ["stack"];
    too_much_memory: {"do": "hoard"} => "LimitExceeded", ["memory limit of 64 MiB"];
    too_many_objects: {"do": "objects", "count": 1001} => "LimitExceeded", ["1001 objects", "1000"];
    too_large_an_answer: {"do": "objects", "count": 2, "bytes": 3_000_000} => "LimitExceeded", ["4 MiB"];
    too_many_calls: {"do": "call-flood", "calls": 200_000} => "LimitExceeded", ["100000 times"];
    invalid_json: {"do": "raw", "text": "{\"a\""} => "OutcomeRefused", ["objects[0]", "JSON", "return each object as one JSON object"];
    invalid_utf8: {"do": "raw", "text": "\"", "byte": 255} => "OutcomeRefused", ["objects[0]", "JSON", "return each object as one JSON object"];
    no_name: {"do": "no-name"} => "OutcomeRefused", ["objects[0]", "metadata.name"];
    an_undeclared_kind: {"do": "undeclared-kind"} => "OutcomeRefused", ["Service", "declare it in `writes`"];
    the_same_object_twice: {"do": "duplicate"} => "OutcomeRefused", ["objects[1]", "twice", "return each object once"];
    a_foreign_namespace: {"do": "foreign-namespace", "namespace": "kube-system"} => "OutcomeRefused", ["kube-system", "may be written in namespace bad"];
    deep_nesting: {"do": "nested", "depth": 100_000} => "OutcomeRefused", ["objects[0]", "recursion"];
    an_object_that_the_server_refuses: {"do": "raw", "text": "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"Not_A_Name\",\"namespace\":\"bad\"}}"}
        => "ApplyFailed", ["ConfigMap bad/Not_A_Name", "metadata.name: Invalid value", "lowercase RFC 1123"];
    a_field_of_the_wrong_type: {"do": "raw", "text": "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":\"bad\"},\"data\":7}"}
        => "ApplyFailed", ["ConfigMap bad/a", "data"];
    an_object_that_is_none: {"do": "raw", "text": "[]"} => "OutcomeRefused", ["objects[0]", "not a JSON object"];
    a_terminal_failure: {"do": "fail", "how": "terminal", "text": "no such plan"} => "Terminal", ["no such plan"];
    a_retried_failure: {"do": "fail", "how": "retry", "text": "try later"} => "Retrying", ["try later"];
    not_ready: {"do": "fail", "how": "not-ready", "text": "no secret yet"} => "NotReady", ["no secret yet"];
}
