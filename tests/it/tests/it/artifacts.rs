//! Plugins that are artifacts in a registry: pulled, moved, spoiled, signed, and run on
//! when the registry is away. It is one in this process, since it has to lie; a real
//! one is asked in tests against real servers.

mod signed;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use reeve_core::Digest;
use reeve_it::{World, config_map_reference, core_reference, guest, plugin_reference};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a registry has, by path, and what it answers instead.
#[derive(Default)]
struct Content {
    paths: BTreeMap<String, Vec<u8>>,
    fails: Option<StatusCode>,
    asked: Vec<String>,
}

#[derive(Clone)]
struct Registry {
    port: u16,
    content: Arc<Mutex<Content>>,
}

const REPOSITORY: &str = "team/chameleon";

impl Registry {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let this = Self {
            port: listener.local_addr().unwrap().port(),
            content: Arc::default(),
        };
        let app = Router::new()
            .fallback(answer)
            .with_state(this.content.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        this
    }

    fn image(&self, tag: &str) -> String {
        format!("127.0.0.1:{}/{REPOSITORY}:{tag}", self.port)
    }

    fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        let path = format!("/v2/{REPOSITORY}/{path}");
        self.content.lock().paths.insert(path, bytes.into());
    }

    fn blob(&self, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes);
        self.put(&format!("blobs/{digest}"), bytes);
        json!({
            "mediaType": "application/wasm", "digest": digest.to_string(), "size": bytes.len(),
        })
    }

    /// Puts a manifest under a tag; returns its digest.
    fn manifest(&self, tag: &str, config: &str, layers: &[Value]) -> Digest {
        let manifest = json!({
            "schemaVersion": 2, "config": {"mediaType": config}, "layers": layers,
        });
        let bytes = manifest.to_string();
        let digest = Digest::of(bytes.as_bytes());
        self.put(&format!("manifests/{digest}"), bytes.as_bytes());
        self.put(&format!("manifests/{tag}"), bytes);
        digest
    }

    fn push(&self, tag: &str, component: &[u8]) -> Digest {
        let layer = self.blob(component);
        self.manifest(tag, WASM, &[layer])
    }

    /// Puts signatures beside a manifest, as cosign does.
    fn sign(&self, of: Digest, signatures: &[(String, String)]) {
        let layers: Vec<Value> = signatures
            .iter()
            .map(|(payload, signature)| {
                let mut layer = self.blob(payload.as_bytes());
                layer["mediaType"] = json!("application/vnd.dev.cosign.simplesigning.v1+json");
                layer["annotations"] = json!({"dev.cosignproject.cosign/signature": signature});
                layer
            })
            .collect();
        let tag = of.to_string().replace(':', "-") + ".sig";
        self.manifest(&tag, "application/vnd.oci.image.config.v1+json", &layers);
    }

    fn fails(&self, with: Option<StatusCode>) {
        self.content.lock().fails = with;
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.content.lock().asked)
    }
}

const WASM: &str = "application/vnd.wasm.config.v0+json";

async fn answer(State(content): State<Arc<Mutex<Content>>>, uri: Uri) -> Response {
    let mut content = content.lock();
    content.asked.push(uri.path().to_owned());
    if let Some(status) = content.fails {
        return status.into_response();
    }
    match content.paths.get(uri.path()) {
        Some(bytes) => bytes.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The component in another edition: the same, with a custom section at its end.
fn edition(number: u8) -> Vec<u8> {
    let mut bytes = guest("chameleon");
    bytes.extend([0, 9, 7]);
    bytes.extend(b"edition");
    bytes.push(number);
    bytes
}

/// One configuration, or another that means the same.
fn config(number: usize) -> Value {
    json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reconcile": {"do": "echo"},
        "reads": vec!["ConfigMap.v1"; number],
    })
}

async fn set_artifact(world: &World, image: &str, more: Value) {
    let mut spec = json!({"artifact": {"image": image, "intervalSeconds": 86_400}});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let mut plugin = plugin_reference("chameleon");
    plugin["spec"] = spec;
    world.apply(&plugin).await;
    world.settle().await;
}

/// Looks the tag up now.
async fn look(world: &World, number: u32) {
    let annotations = json!({"reeve.dev/reconcile-at": number.to_string()});
    let patch = json!({"metadata": {"annotations": annotations}});
    world.edit(&plugin_reference("chameleon"), patch).await;
    // On real time nothing tells that the agent has not heard yet.
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.settle().await;
}

async fn status(world: &World) -> Value {
    let plugin = world.get(&plugin_reference("chameleon")).await.unwrap();
    plugin["status"].clone()
}

async fn world_with(config: Option<Value>) -> World {
    let world = World::new().await;
    world.tenant("alice", &[]).await;
    world.allow("chameleon").await;
    if let Some(config) = config {
        world.deliver("chameleon", &[], Some(config)).await;
    }
    world
}

/// Checks a condition of the plugin, and that this edition runs all the same.
async fn check(world: &World, kind: &str, reason: &str, says: &str, edition: &[u8]) {
    let condition = world.plugin_condition("chameleon", kind).await;
    let expected = if kind == "Loaded" { "False" } else { "True" };
    let found = (condition.status.as_str(), condition.reason.as_str());
    assert_eq!(found, (expected, reason), "{condition:?}");
    assert!(condition.message.contains(says), "{says}: {condition:?}");
    runs(world, edition).await;
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
}

async fn runs(world: &World, edition: &[u8]) {
    let status = status(world).await;
    assert_eq!(
        status["digest"],
        Digest::of(edition).to_string(),
        "{status}"
    );
}

async fn is_well(world: &World, edition: &[u8]) {
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");
    let stale = world.plugin_condition("chameleon", "ArtifactStale").await;
    assert_eq!(stale.status, "", "{stale:?}");
    runs(world, edition).await;
}

#[tokio::test]
async fn a_tag_is_pulled_followed_and_missed() {
    let registry = Registry::start().await;
    let (one, two) = (edition(1), edition(2));
    let first = registry.push("1", &one);
    let folder = tempfile::tempdir().unwrap();
    let mut world = world_with(Some(config(1))).await;
    world.cache_in(folder.path());
    world.start();
    let image = registry.image("1");
    set_artifact(&world, &image, json!({})).await;
    is_well(&world, &one).await;
    let source = status(&world).await["source"].clone();
    assert_eq!(
        source,
        json!({
            "configMap": "chameleon", "digest": Digest::of(&one).to_string(),
            "artifact": {"image": image, "digest": first.to_string()},
        })
    );
    let made = core_reference("ConfigMap", "alice", "chameleon-alice");
    assert!(world.get(&made).await.is_some(), "it works");

    // A tag that has not moved costs one question.
    registry.asked();
    look(&world, 1).await;
    assert_eq!(registry.asked(), [format!("/v2/{REPOSITORY}/manifests/1")]);

    // Another configuration needs nothing of the registry but the news.
    registry.fails(Some(StatusCode::SERVICE_UNAVAILABLE));
    world.deliver("chameleon", &[], Some(config(2))).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.settle().await;
    check(
        &world,
        "ArtifactStale",
        "RegistryUnreachable",
        "answers 503; it is asked again; what was pulled before runs on",
        &one,
    )
    .await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.status, "True", "{loaded:?}");

    // A restart finds it in the cache.
    world.stop().await;
    world.start();
    world.settle().await;
    check(
        &world,
        "ArtifactStale",
        "RegistryUnreachable",
        "answers 503",
        &one,
    )
    .await;

    let mut number = 10;
    for (status, reason, says) in [
        (
            StatusCode::FORBIDDEN,
            "RegistryDenied",
            "refuses requests without a login",
        ),
        (
            StatusCode::NOT_FOUND,
            "ArtifactAbsent",
            "push it with `reeve plugin push`",
        ),
        (
            StatusCode::TOO_MANY_REQUESTS,
            "RegistryUnreachable",
            "answers 429",
        ),
    ] {
        registry.fails(Some(status));
        number += 1;
        look(&world, number).await;
        check(&world, "ArtifactStale", reason, says, &one).await;
    }
    registry.fails(None);
    look(&world, 20).await;
    is_well(&world, &one).await;

    // A tag that names something that is none: the version before runs.
    let layer = registry.blob(&two);
    let mut large = layer.clone();
    large["size"] = json!(100 << 20);
    let mut other = layer.clone();
    other["digest"] = json!(Digest::of(b"other").to_string());
    registry.put(&format!("blobs/{}", Digest::of(b"other")), two.clone());
    let text = registry.blob(b"text");
    type Put<'a> = &'a dyn Fn();
    let cases: [(Put<'_>, &str, &str); 6] = [
        (
            &|| registry.put("manifests/1", r#"{"manifests": []}"#),
            "ArtifactInvalid",
            "it is an index",
        ),
        (
            &|| {
                let _ = registry.manifest("1", "x", std::slice::from_ref(&layer));
            },
            "ArtifactInvalid",
            "it holds no plugin",
        ),
        (
            &|| {
                let _ = registry.manifest("1", WASM, &[layer.clone(), layer.clone()]);
            },
            "ArtifactInvalid",
            "it has 2 layers",
        ),
        (
            &|| {
                let _ = registry.manifest("1", WASM, std::slice::from_ref(&large));
            },
            "TooLarge",
            "has 104857600 bytes, more than the 33554432",
        ),
        (
            &|| {
                let _ = registry.manifest("1", WASM, std::slice::from_ref(&other));
            },
            "ArtifactCorrupt",
            "a layer with digest sha256:",
        ),
        (
            &|| {
                let _ = registry.manifest("1", WASM, std::slice::from_ref(&text));
            },
            "NotAComponent",
            "",
        ),
    ];
    number = 30;
    for (put, reason, says) in cases {
        put();
        number += 1;
        look(&world, number).await;
        check(&world, "Loaded", reason, says, &one).await;
    }
    // After a restart, too.
    world.stop().await;
    world.start();
    world.settle().await;
    check(&world, "Loaded", "NotAComponent", "", &one).await;

    // The tag moves.
    let second = registry.push("1", &two);
    look(&world, 40).await;
    is_well(&world, &two).await;
    let pulled = status(&world).await["source"]["artifact"]["digest"].clone();
    assert_eq!(pulled, second.to_string());

    // Pinned, it is what it is, and nobody asks.
    let pinned = format!("{}@{first}", registry.image("1"));
    set_artifact(&world, &pinned, json!({})).await;
    is_well(&world, &one).await;
    registry.asked();
    registry.fails(Some(StatusCode::SERVICE_UNAVAILABLE));
    look(&world, 50).await;
    is_well(&world, &one).await;
    assert_eq!(registry.asked(), [""; 0]);

    // A component in the ConfigMap besides is one too many.
    let both = [("plugin.wasm", two.clone())];
    world.deliver("chameleon", &both, Some(config(2))).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.settle().await;
    check(
        &world,
        "Loaded",
        "ComponentAmbiguous",
        "and Plugin spec.artifact names another",
        &one,
    )
    .await;

    // Without a Plugin that names it, the ConfigMap is what counts; and without that,
    // nothing runs.
    let mut plugin = plugin_reference("chameleon");
    plugin["spec"] = json!({"suspend": false});
    world.apply(&plugin).await;
    world.settle().await;
    is_well(&world, &two).await;
    world.delete(&config_map_reference("chameleon")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.settle().await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(loaded.reason, "ConfigMapAbsent", "{loaded:?}");
}

#[tokio::test]
async fn without_a_config_map_an_artifact_is_described_by_nothing() {
    let registry = Registry::start().await;
    registry.push("1", &edition(1));
    let mut world = world_with(None).await;
    world.start();
    registry.fails(Some(StatusCode::BAD_GATEWAY));
    set_artifact(&world, &registry.image("1"), json!({})).await;
    let loaded = world.plugin_condition("chameleon", "Loaded").await;
    assert_eq!(
        (&*loaded.status, &*loaded.reason),
        ("False", "RegistryUnreachable")
    );
    assert!(
        loaded.message.contains("answers 502; it is asked again"),
        "{loaded:?}"
    );
    let source = status(&world).await["source"].clone();
    assert_eq!(source, json!({}));

    for (more, reason, says) in [
        (
            json!({"image": "quotas"}),
            "PolicyInvalid",
            "spec.artifact.image of the Plugin: `quotas` names no artifact",
        ),
        (
            json!({"pullSecretName": "none"}),
            "RegistryDenied",
            "spec.artifact.pullSecretName of the Plugin: ",
        ),
    ] {
        let mut artifact = json!({"image": registry.image("1")});
        for (field, value) in more.as_object().unwrap() {
            artifact[field] = value.clone();
        }
        set_artifact(&world, "", json!({"artifact": artifact})).await;
        let loaded = world.plugin_condition("chameleon", "Loaded").await;
        assert_eq!(
            (&*loaded.status, &*loaded.reason),
            ("False", reason),
            "{loaded:?}"
        );
        assert!(loaded.message.contains(says), "{loaded:?}");
    }
    // The Plugin goes, and with it all that was known.
    world.delete(&plugin_reference("chameleon")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.settle().await;
    assert!(world.agent().status().borrow().plugins.is_empty());
}
