//! Kinds that a plugin brings itself: its objects of them wait for these, and nothing
//! else does.

use reeve_test_support::samples;
use serde_json::{Value, json};

use crate::stage::{APPS, Stage, bundle, config, config_map, widget, with};

/// A plugin that writes definitions, and Gizmos, of which there is no definition.
async fn stage() -> Stage {
    let mut config = config();
    config["writes"]["CustomResourceDefinition.v1.apiextensions.k8s.io"] = json!("cluster");
    config["writes"]["Gizmo.v1.example.com"] = json!([APPS]);
    let stage = Stage::with(json!({}), config).await;
    let loaded = stage.world.plugin_condition("courier", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
    stage
}

fn definition() -> Value {
    samples::open_crd("Gizmo", "gizmos")
}

fn gizmo(name: &str, wave: &str) -> Value {
    let gizmo = json!({
        "apiVersion": "example.com/v1", "kind": "Gizmo",
        "metadata": {"name": name, "namespace": APPS},
    });
    with(gizmo, &[("reeve.dev/wave", wave)])
}

/// Whether there is such a Gizmo; none also where there are none at all.
async fn uid(stage: &Stage, name: &str) -> Option<Value> {
    let api = stage.world.api(&gizmo(name, "0"));
    let found = api.get_opt(name).await.ok().flatten();
    found.map(|found| json!(found.metadata.uid))
}

/// That the Bundle waits for the kind.
async fn waits(stage: &Stage, name: &str) {
    let blocked = stage.sync(name).await["blockedBy"].clone();
    assert_eq!(blocked["wave"], 1, "{blocked}");
    assert_eq!(blocked["status"], "Missing", "{blocked}");
    let (reason, message) = stage.said(name, "Ready").await;
    assert_eq!(reason, "Waiting", "{message}");
    let expected = "the api server does not serve Gizmo.v1.example.com yet";
    assert!(message.contains(expected), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_and_its_objects_are_one_answer() {
    let mut stage = stage().await;
    let early = [
        config_map("before", 0),
        gizmo("early", "1"),
        config_map("after", 2),
    ];
    stage.bundle("early", &early).await;
    stage.bundle("plain", &[widget("a", 0)]).await;
    stage.pass(20).await;
    waits(&stage, "early").await;
    assert!(stage.exists(&config_map("before", 0)).await);
    assert!(!stage.exists(&config_map("after", 2)).await);
    assert!(stage.exists(&widget("a", 0)).await);
    assert_eq!(stage.unit("plain").await, None, "others go on");

    // The definition is in the same wave as its objects, and comes first.
    stage.bundle("both", &[gizmo("g", "0"), definition()]).await;
    // A kind of which nothing is known is given ten seconds to say something.
    stage.pass(15).await;
    for name in ["early", "g"] {
        assert!(uid(&stage, name).await.is_some(), "{name}");
    }
    assert!(stage.exists(&config_map("after", 2)).await);
    for name in ["early", "both", "plain"] {
        assert_eq!(stage.unit(name).await, None, "{name}");
    }

    // It is deleted, with all of its objects, and made again.
    let before = uid(&stage, "early").await;
    stage.world.delete(&definition()).await;
    stage.pass(20).await;
    let after = uid(&stage, "early").await;
    assert!(after.is_some() && after != before, "{before:?} {after:?}");
    assert!(uid(&stage, "g").await.is_some());
    for name in ["early", "both", "plain"] {
        assert_eq!(stage.unit(name).await, None, "{name}");
    }
    stage.world.writes();
    stage.restart().await;
    assert_eq!(stage.world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_definition_of_somebody_else_is_noticed_too() {
    let stage = stage().await;
    stage.bundle("early", &[gizmo("early", "1")]).await;
    stage.pass(20).await;
    waits(&stage, "early").await;
    stage.world.apply(&definition()).await;
    stage.pass(35).await;
    assert!(uid(&stage, "early").await.is_some());
    assert_eq!(stage.unit("early").await, None);
    // It goes for good.
    stage.world.delete(&definition()).await;
    stage.pass(40).await;
    let blocked = stage.sync("early").await["blockedBy"].clone();
    assert_eq!(blocked["status"], "Missing", "{blocked}");
    // Nothing of it can be left, so that nothing holds the end of the unit.
    stage.world.delete(&bundle("early")).await;
    stage.pass(40).await;
    assert_eq!(stage.unit("early").await, None);
}

/// Where objects may be that are not seen, a unit has not come to its end.
#[tokio::test(start_paused = true)]
async fn another_version_of_a_kind_may_hide_objects() {
    let stage = stage().await;
    let mut other = definition();
    other["spec"]["versions"][0]["name"] = json!("v2");
    stage.world.apply(&other).await;
    let objects = [config_map("before", 0), gizmo("early", "1")];
    stage.bundle("early", &objects).await;
    stage.pass(40).await;
    waits(&stage, "early").await;
    stage.world.delete(&bundle("early")).await;
    stage.pass(40).await;
    let (reason, message) = stage.said("early", "Ready").await;
    assert_eq!(reason, "KindNotServed", "{message}");
    assert!(
        message.contains("serves Gizmo in version v2, and the plugin works with v1"),
        "{message}"
    );
    stage.world.delete(&other).await;
    stage.pass(400).await;
    assert!(!stage.exists(&config_map("before", 0)).await);
    assert_eq!(stage.unit("early").await, None);
}

/// A plugin that writes no definitions waits as a whole: the kind is somebody else's.
#[tokio::test(start_paused = true)]
async fn who_brings_no_kinds_waits_for_them() {
    let mut config = config();
    config["writes"]["Gizmo.v1.example.com"] = json!([APPS]);
    let stage = Stage::with(json!({}), config).await;
    let ready = stage.world.plugin_condition("courier", "Ready").await;
    assert_eq!(ready.reason, "KindNotServed", "{ready:?}");
    stage.world.apply(&definition()).await;
    stage.bundle("one", &[gizmo("g", "0")]).await;
    stage.pass(30).await;
    assert!(uid(&stage, "g").await.is_some());
}
