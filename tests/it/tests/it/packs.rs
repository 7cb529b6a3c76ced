//! The parts of the plugin `packs` on a cluster in which Flux is played.

mod canaries;
mod files;
mod leaks;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_it::{World, core_reference, plugin};
use reeve_sim::Actors;
use serde_json::{Value, json};
use std::time::Duration;

/// The namespace of the documents.
const DOCUMENTS: &str = "sgp-system-manager";

const FILES: [&str; 4] = [
    include_str!("../../../../plugins/packs/crds/packs.yaml"),
    include_str!("../../../../plugins/packs/scenarios/crds/flux.yaml"),
    include_str!("../../../../plugins/packs/scenarios/crds/istio.yaml"),
    include_str!("../../../../plugins/packs/scenarios/shared/flux.yaml"),
];

const CERTIFICATE: &str = include_str!("../../../../plugins/packs/src/tests/pem/ec.crt");
const PRIVATE_KEY: &str = include_str!("../../../../plugins/packs/src/tests/pem/ec.key");

/// A cluster with Flux, the definitions of packs and a PackSet.
async fn world() -> World {
    let kinds = [
        "HelmRelease.helm.toolkit.fluxcd.io",
        "HelmRepository.source.toolkit.fluxcd.io",
        "OCIRepository.source.toolkit.fluxcd.io",
    ];
    let world = World::with_actors(Actors {
        kinds: kinds.iter().map(|kind| kind.parse().unwrap()).collect(),
        ..Actors::default()
    })
    .await;
    for file in FILES {
        let objects: Vec<Value> = serde_saphyr::from_multiple(file).unwrap();
        for object in objects {
            world.apply(&object).await;
        }
    }
    let set = json!({"apiVersion": "packs.reeve.dev/v1alpha1", "kind": "PackSet",
        "metadata": {"name": "sgp"}});
    world.apply(&set).await;
    world
}

/// Installs a part under a name, with this in its configuration.
async fn install(world: &World, name: &str, role: &str, more: Value) {
    let mut config = more;
    config["role"] = json!(role);
    let component = plugin("packs");
    world.install_granted(name, &component, &config).await;
}

fn pack(name: &str) -> Value {
    json!({"apiVersion": "packs.reeve.dev/v1alpha1", "kind": "Pack", "metadata": {"name": name}})
}

fn release(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": namespace}})
}

/// The Secret of a document, with these bytes in its only entry.
fn secret(name: &str, entry: &str, bytes: &[u8]) -> Value {
    let mut secret = core_reference("Secret", DOCUMENTS, name);
    secret["data"] = json!({entry: STANDARD.encode(bytes)});
    secret
}

/// Lets time pass until played Flux has done what it can do.
async fn pass(world: &World, minutes: u64) {
    world.wait(Duration::from_secs(60 * minutes)).await;
}

/// A key of the configuration, as the documentation has it for AWS.
struct Key {
    path: String,
    /// What it may hold.
    holds: String,
}

impl Key {
    fn is_secret(&self) -> bool {
        self.holds.ends_with("secret")
    }

    /// Its last name.
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// A value that it may hold.
    fn example(&self) -> Value {
        let packs = ["flux", "sgp-helm-repository", "istio", "spicedb"]
            .into_iter()
            .chain(["identity-service", "temporalf", "sgp-apps"]);
        let packs: Vec<Value> = packs.map(|name| json!({"name": name})).collect();
        match self.holds.as_str() {
            "text" | "text, secret" => json!(format!("{}-value", self.name())),
            "boolean" => json!(true),
            "host name" => json!(format!("{}.example.com", self.name().to_lowercase())),
            "`https` URL" => json!("https://ws.example.com"),
            "`oci` URL" => json!("oci://registry.example.com/charts"),
            "PEM in base64" => json!(STANDARD.encode(CERTIFICATE)),
            "PEM in base64, secret" => json!(STANDARD.encode(PRIVATE_KEY)),
            "JSON, or a text with it" => json!({"version": "0.1", "packs": packs}),
            words => json!(words.split(", ").next()),
        }
    }
}

/// All keys. That this table is what the plugin knows, a test of the plugin checks.
fn keys() -> Vec<Key> {
    let text = include_str!("../../../../docs/packs.md");
    let (_, table) = text.split_once("<!-- keys -->\n").unwrap();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let key = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let path = cells[1].trim_matches('`').replace('*', "backend");
        let holds = cells[4].to_owned();
        Key { path, holds }
    };
    rows.map(key).collect()
}

/// A configuration for AWS in which each key that this has a value for is set to it.
fn configuration(mut value: impl FnMut(&Key) -> Option<Value>) -> Value {
    let mut tree = json!({"aws": {}});
    for key in keys() {
        let Some(value) = value(&key) else {
            continue;
        };
        let mut place = &mut tree;
        for name in key.path.split('/').skip(1) {
            place = &mut place[name];
        }
        *place = value;
    }
    tree
}
