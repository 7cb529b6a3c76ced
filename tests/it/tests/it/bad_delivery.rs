//! ConfigMaps that deliver nothing usable: each says so on its Plugin, and
//! nothing else stops.

use reeve_it::{World, core_reference, guest, plugin};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;

/// Delivers to a plugin named `bad`, beside an honest one, and checks what is
/// said about it.
async fn check(data: &[(&str, Vec<u8>)], config: Option<Value>, reason: &str, texts: &[&str]) {
    let world = World::started().await;
    world
        .install(
            "limitranges",
            &[("plugin.wasm", plugin("limitranges"))],
            None,
        )
        .await;
    world.install("bad", data, config).await;
    world.settle().await;
    for kind in ["Ready", "Loaded"] {
        let found = world.plugin_condition("bad", kind).await;
        assert_eq!(
            (found.status.as_str(), found.reason.as_str()),
            ("False", reason),
            "{found:?}"
        );
        for text in texts {
            assert!(found.message.contains(text), "`{text}` is not in {found:?}");
        }
    }
    world.tenant("alice", &[]).await;
    world.settle().await;
    let limits = core_reference("LimitRange", "alice", "default-container-limits");
    assert!(
        world.get(&limits).await.is_some(),
        "the honest plugin works"
    );
}

fn plain(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![("plugin.wasm", bytes.to_vec())]
}

#[tokio::test(start_paused = true)]
async fn no_component() {
    check(
        &[],
        None,
        "ComponentAbsent",
        &["ConfigMap bad", "plugin.wasm"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_component() {
    check(&plain(b"hello"), None, "NotAComponent", &["component"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_core_module() {
    check(
        &plain(b"\0asm\x01\0\0\0"),
        None,
        "NotAComponent",
        &["core WebAssembly module", "encode it"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_component() {
    check(
        &plain(b"\0asm\x0d\0\x01\0"),
        None,
        "WrongWorld",
        &["controller-api"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_stream() {
    let data = vec![("plugin.wasm.zst", b"not zstd at all".to_vec())];
    check(&data, None, "DecompressionFailed", &["plugin.wasm.zst"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_decompression_bomb() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let megabyte = vec![0; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&megabyte).unwrap();
    }
    let data = vec![("plugin.wasm.zst", encoder.finish().unwrap())];
    check(
        &data,
        None,
        "TooLarge",
        &["33554432 bytes", "plugin.wasm.zst"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn configuration_that_does_not_fit_the_schema() {
    let config = Some(json!({"hard": {"pods": 7}}));
    check(
        &plain(&plugin("quotas")),
        config,
        "ConfigInvalid",
        &["/hard/pods"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn configuration_that_the_plugin_refuses() {
    let config = Some(json!({"describe": "refuse"}));
    check(
        &plain(&guest("chameleon")),
        config,
        "ConfigInvalid",
        &["/describe", "refused"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn describe_that_traps() {
    let config = Some(json!({"describe": "trap"}));
    check(
        &plain(&guest("chameleon")),
        config,
        "DescribeFailed",
        &["describe"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn describe_that_panics() {
    let config = Some(json!({"describe": "panic"}));
    check(
        &plain(&guest("chameleon")),
        config,
        "DescribeFailed",
        &["panicked, as told"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn describe_that_loops() {
    let config = Some(json!({"describe": "loop"}));
    check(
        &plain(&guest("chameleon")),
        config,
        "DescribeFailed",
        &["2 s"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_manifest_with_an_invalid_kind() {
    let config = Some(json!({"describe": "invalid-kind"}));
    check(
        &plain(&guest("chameleon")),
        config,
        "ManifestInvalid",
        &["writes[0].kind.kind", "not a kind"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_makes_no_sense() {
    let config = Some(json!({"primary": "Profile.v1.kubeflow.org"}));
    check(
        &plain(&guest("chameleon")),
        config,
        "ManifestInvalid",
        &["cluster-scoped"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_later() {
    let world = World::started().await;
    let config = json!({
        "primary": "Widget.v1.example.com", "scope": "cluster", "reconcile": {"do": "echo"},
    });
    let component = plain(&guest("chameleon"));
    world.install("chameleon", &component, Some(config)).await;
    world.settle().await;
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.reason, "KindNotServed", "{ready:?}");
    assert!(ready.message.contains("Widget.v1.example.com"), "{ready:?}");
    world.apply(&widgets()).await;
    world
        .apply(&reeve_test_support::samples::namespace("alice"))
        .await;
    world
        .apply(&json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "alice"},
        }))
        .await;
    world.wait(Duration::from_secs(11)).await;
    assert_eq!(
        world.plugin_condition("chameleon", "Ready").await.status,
        "True"
    );
    let made = core_reference("ConfigMap", "alice", "chameleon-w");
    assert!(world.get(&made).await.is_some());
}

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn gzip_is_unpacked() {
    let world = World::started().await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&plugin("limitranges")).unwrap();
    let data = [("plugin.wasm.gz", encoder.finish().unwrap())];
    world.install("limitranges", &data, None).await;
    world.settle().await;
    let ready = world.plugin_condition("limitranges", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
}
