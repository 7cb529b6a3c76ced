//! ConfigMaps that deliver nothing usable: each says so on its Plugin, and
//! nothing else stops.

use crate::widgets::{crd, widget};
use reeve_it::{NAMESPACE, World, config_map_reference, core_reference, guest, plugin};
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
    let words = ["no WebAssembly component", "name the built `.wasm` file"];
    check(&plain(b"hello"), None, "NotAComponent", &words).await;
}

/// `kubectl create configmap --from-file=quotas.wasm` names the key as the file.
#[tokio::test(start_paused = true)]
async fn a_component_under_another_key() {
    for (key, file) in [
        ("quotas.wasm", "--from-file=plugin.wasm=quotas.wasm"),
        ("Plugin.wasm", "--from-file=plugin.wasm=Plugin.wasm"),
        (
            "plugin.wasm.zstd",
            "--from-file=plugin.wasm.zst=plugin.wasm.zstd",
        ),
        (
            "quotas.wasm.gz",
            "--from-file=plugin.wasm.gz=quotas.wasm.gz",
        ),
        ("component", "--from-file=plugin.wasm --dry-run"),
    ] {
        let unread = format!("nobody reads \"{key}\"");
        let texts = ["ConfigMap bad has no component", &unread, file];
        check(&[(key, plugin("quotas"))], None, "ComponentAbsent", &texts).await;
    }
}

/// `kubectl create configmap --from-file` puts a file of text into `data`.
#[tokio::test(start_paused = true)]
async fn text_that_is_no_component() {
    let world = World::started().await;
    world.allow("bad").await;
    for text in ["hello", ""] {
        world
            .apply(&json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "bad", "namespace": NAMESPACE, "labels": {"reeve.dev/plugin": "true"},
                },
                "data": {"plugin.wasm": text},
            }))
            .await;
        world.settle().await;
        let loaded = world.plugin_condition("bad", "Loaded").await;
        assert_eq!(loaded.reason, "NotAComponent", "{loaded:?}");
        for words in [
            "ConfigMap bad: plugin.wasm",
            "text or empty",
            "name the built file",
        ] {
            assert!(loaded.message.contains(words), "{loaded:?}");
        }
    }
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

/// A component that imports this, and exports nothing.
fn importing(name: &str) -> Vec<u8> {
    // An instance type without members, and an import of it.
    let mut section = vec![1, 0, u8::try_from(name.len()).unwrap()];
    section.extend(name.as_bytes());
    section.extend([5, 0]);
    let mut component = b"\0asm\x0d\0\x01\0\x07\x03\x01\x42\0\x0a".to_vec();
    component.push(u8::try_from(section.len()).unwrap());
    component.extend(section);
    component
}

#[tokio::test(start_paused = true)]
async fn an_import_that_no_plugin_has() {
    check(
        &plain(&importing("evil:host/door")),
        None,
        "WrongWorld",
        &["it imports `evil:host/door`", "controller-api"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn corrupt_streams() {
    let mut cut = zstd::encode_all(&plugin("quotas")[..], 3).unwrap();
    cut.truncate(cut.len() / 2);
    for (key, bytes) in [
        ("plugin.wasm.zst", b"not zstd at all".to_vec()),
        ("plugin.wasm.zst", cut),
        ("plugin.wasm.gz", b"not gzip at all".to_vec()),
    ] {
        let texts = ["ConfigMap bad", key, "compress the component again"];
        check(&[(key, bytes)], None, "DecompressionFailed", &texts).await;
    }
}

#[tokio::test(start_paused = true)]
async fn decompression_bombs() {
    let megabyte = vec![0; 1 << 20];
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..64 {
        zstd.write_all(&megabyte).unwrap();
        gzip.write_all(&megabyte).unwrap();
    }
    for (key, bytes) in [
        ("plugin.wasm.zst", zstd.finish().unwrap()),
        ("plugin.wasm.gz", gzip.finish().unwrap()),
    ] {
        let texts = ["ConfigMap bad", key, "33554432 bytes", "build it smaller"];
        check(&[(key, bytes)], None, "TooLarge", &texts).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_components() {
    let data = [
        ("plugin.wasm", plugin("quotas")),
        ("plugin.wasm.gz", vec![0]),
    ];
    let texts = ["plugin.wasm and plugin.wasm.gz", "keep one"];
    check(&data, None, "ComponentAmbiguous", &texts).await;
}

#[tokio::test(start_paused = true)]
async fn configuration_that_is_no_yaml() {
    let world = World::started().await;
    let component = plain(&plugin("quotas"));
    world.install("quotas", &component, None).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    let set = async |text: &str| {
        let patch = json!({"data": {"config.yaml": text}});
        world.edit(&config_map_reference("quotas"), patch).await;
        world.settle().await;
    };
    let quota = core_reference("ResourceQuota", "alice", "quotas");
    let pods = async || world.get(&quota).await.unwrap()["spec"]["hard"]["pods"].clone();
    set("hard: {pods: \"7\"}\n").await;
    assert_eq!(pods().await, "7");
    set("hard:\n  pods: [\n").await;
    let loaded = world.plugin_condition("quotas", "Loaded").await;
    assert_eq!(
        (loaded.status.as_str(), loaded.reason.as_str()),
        ("False", "ConfigInvalid")
    );
    for text in ["ConfigMap quotas", "config.yaml", "line", "as YAML or JSON"] {
        assert!(
            loaded.message.contains(text),
            "`{text}` is not in {loaded:?}"
        );
    }
    assert_eq!(pods().await, "7", "what ran goes on");
    set("hard: {pods: \"8\"}\n").await;
    assert_eq!(pods().await, "8");
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
        &[
            "describe: the plugin trapped: ",
            "unreachable",
            "mend the plugin and deliver it again",
        ],
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
        &["panicked, as told", "mend the plugin and deliver it again"],
    )
    .await;
}

/// What to do stands at the end, and is not what is cut off.
#[tokio::test(start_paused = true)]
async fn describe_that_panics_at_length() {
    let config = Some(json!({"describe": "panic-long"}));
    check(
        &plain(&guest("chameleon")),
        config,
        "DescribeFailed",
        &[
            "panicked, at length",
            "…",
            "mend the plugin and deliver it again",
        ],
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
    for words in ["Widget.v1.example.com", "starts by itself"] {
        assert!(ready.message.contains(words), "{ready:?}");
    }
    world.apply(&crd("widgets")).await;
    world
        .apply(&reeve_test_support::samples::namespace("alice"))
        .await;
    world.apply(&widget("alice", "w")).await;
    world.wait(Duration::from_secs(11)).await;
    assert_eq!(
        world.plugin_condition("chameleon", "Ready").await.status,
        "True"
    );
    let made = core_reference("ConfigMap", "alice", "chameleon-w");
    assert!(world.get(&made).await.is_some());
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
