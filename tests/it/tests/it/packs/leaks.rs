//! Secrets of the configuration are in Secrets and nowhere else, whatever goes wrong.

use super::canaries::{Canaries, canary};
use super::{
    CERTIFICATE, DOCUMENTS, PRIVATE_KEY, configuration, install, keys, pack, pass, release,
};
use crate::endpoints::metrics;
use crate::logged::Log;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::Discovery;
use reeve_agent::planner::{Planner, PlannerConfig};
use reeve_core::GroupVersionKind;
use reeve_engine::{Compiler, Engine, EngineConfig};
use reeve_it::{NAMESPACE, World, core_reference, plugin_reference};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tracing::Level;

const DOCUMENT: &str = "system-manager-config.json";
/// Of which Secrets their entry is the user's.
const CONFIGURATION: &str = "system-manager-config";
/// The ConfigMap in which secrets have no business.
const OPEN: &str = "open-config";

/// Kinds of which there has to be something to look at.
const KINDS: [&str; 11] = [
    "ConfigMap",
    "Event",
    "Gateway",
    "HelmRelease",
    "HelmRepository",
    "Namespace",
    "OCIRepository",
    "Pack",
    "PackSet",
    "Plugin",
    "Secret",
];

/// A world with all packs, and what is to be nowhere in it but in Secrets.
struct Watched {
    world: World,
    canaries: Canaries,
    log: Log,
}

/// Text that is a key and says a canary in front of it, which PEM allows.
fn key_with(canary: &str, pem: &str) -> String {
    STANDARD.encode(format!("{canary}\n{pem}"))
}

fn secret(document: &[u8]) -> Value {
    super::secret(CONFIGURATION, DOCUMENT, document)
}

/// A configuration in which every secret is a canary that this names, and every other key is set.
fn good(canaries: &mut Canaries, salt: &str) -> Value {
    for key in keys().iter().filter(|key| key.is_secret()) {
        canaries.make(&format!("{salt}{}", key.path));
    }
    configuration(|key| {
        let canary = canary(&format!("{salt}{}", key.path));
        Some(match key.holds.as_str() {
            "text, secret" if key.name().ends_with("Url") || key.name().ends_with("Uri") => {
                json!(format!(
                    "postgres://user:{canary}@postgres.example.com:5432/db?a=%20"
                ))
            }
            "text, secret" => json!(canary),
            "PEM in base64, secret" => json!(key_with(&canary, PRIVATE_KEY)),
            _ => key.example(),
        })
    })
}

impl Watched {
    async fn new() -> Self {
        let mut canaries = Canaries::default();
        let log = Log::kept_from(Level::TRACE);
        let mut world = super::world().await;
        let good = good(&mut canaries, "");
        // The part of the key that is nobody else's to know.
        let body: String = PRIVATE_KEY.lines().skip(1).take(2).collect();
        canaries.mind("the private key", &body[40..104]);
        world.apply(&secret(good.to_string().as_bytes())).await;
        for (name, role) in [
            ("packs", "Releases"),
            ("packs-desired", "DesiredState"),
            ("packs-flux", "Flux"),
            ("packs-door", "FrontDoor"),
        ] {
            install(&world, name, role, json!({})).await;
        }
        world.start();
        pass(&world, 20).await;
        Self {
            world,
            canaries,
            log,
        }
    }

    async fn configure(&self, document: &[u8]) {
        self.world.apply(&secret(document)).await;
        pass(&self.world, 6).await;
    }

    /// What the unit of a pack says.
    async fn said(&self, plugin: &str, primary: &str) -> String {
        let ready = self.world.unit_condition(plugin, primary, "Ready").await;
        ready.message
    }

    /// All objects of the cluster but what users wrote: entries of Secrets, which is what those are
    /// for, the configuration and components.
    async fn objects(&self) -> Vec<Value> {
        let admin = &self.world.admin;
        let discovery = Discovery::new(admin.clone()).run().await.unwrap();
        let mut objects = Vec::new();
        let resources = discovery
            .groups()
            .flat_map(|group| group.resources_by_stability());
        for (resource, capabilities) in resources {
            if !capabilities.supports_operation("list") {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(admin.clone(), &resource);
            for object in api.list(&ListParams::default()).await.unwrap() {
                let mut object = serde_json::to_value(object).unwrap();
                object["kind"] = json!(resource.kind);
                objects.push(object);
            }
        }
        for object in &mut objects {
            let is_open = object["metadata"]["name"] == OPEN;
            let fields: &mut Map<_, _> = object.as_object_mut().unwrap();
            match fields["kind"].as_str().unwrap() {
                "Secret" => drop(fields.remove("data")),
                "ConfigMap" => {
                    fields.remove("binaryData");
                    if is_open {
                        fields.remove("data");
                    }
                }
                "JournalEntry" => {
                    let packed = fields["spec"]["content"].as_str();
                    let packed = STANDARD.decode(packed.unwrap_or_default()).unwrap();
                    let content = zstd::decode_all(&packed[..]).unwrap_or_default();
                    fields.insert(
                        "unpacked".into(),
                        String::from_utf8(content).unwrap().into(),
                    );
                }
                _ => {}
            }
        }
        objects
    }

    /// What anybody can see of what was done, each with its place.
    async fn visible(&self) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        for object in self.objects().await {
            let place = format!("{} {}", object["kind"], object["metadata"]["name"]);
            texts.push((place, object.to_string()));
        }
        texts.push(("metrics".into(), metrics(&self.world).await));
        let status = format!("{:?}", self.world.agent().status().borrow());
        texts.push(("status of the agent".into(), status));
        let log = self.log.take().join("\n");
        assert!(log.contains("target=reeve"), "nothing was logged");
        texts.push(("log".into(), log));
        texts
    }

    /// Finds no canary where it has no business.
    async fn check(&self, when: &str) {
        self.check_texts(when, &self.visible().await);
    }

    fn check_texts(&self, when: &str, texts: &[(String, String)]) {
        let leaks: BTreeSet<String> = texts
            .iter()
            .flat_map(|(place, text)| {
                let found = self.canaries.found_in(text).into_iter();
                found.map(move |canary| format!("{canary} is in {place}"))
            })
            .collect();
        assert!(leaks.is_empty(), "{when}: {leaks:#?}");
    }

    /// What the Secrets hold that packs have made.
    async fn made(&self) -> String {
        let mut texts = Vec::new();
        for namespace in [
            "istio-ingress",
            "spicedb",
            "identity-service",
            "temporalf",
            "sgp",
        ] {
            for secret in self
                .world
                .list(&core_reference("Secret", namespace, ""))
                .await
            {
                texts.push(secret["data"].to_string());
            }
        }
        texts.join("\n")
    }

    async fn patch(&self, name: &str, patches: Value) {
        let patch = json!({"spec": {"patches": patches}});
        self.world.edit(&pack(name), patch).await;
        pass(&self.world, 3).await;
    }

    async fn set_mode(&self, mode: &str) {
        let patch = json!({"spec": {"mode": mode}});
        self.world.edit(&plugin_reference("packs"), patch).await;
        pass(&self.world, 6).await;
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_nowhere_else_while_all_is_well() {
    let mut watched = Watched::new().await;
    for (namespace, name) in [
        ("sgp", "sgp"),
        ("sgp", "reducto"),
        ("istio-ingress", "istio-gateway"),
    ] {
        let found = watched.world.get(&release(namespace, name)).await.unwrap();
        let conditions = found["status"]["conditions"].to_string();
        assert!(
            conditions.contains("InstallSucceeded"),
            "{name}: {conditions}"
        );
    }
    let secrets = keys().iter().filter(|key| key.is_secret()).count();
    assert!(secrets >= 7, "{secrets}");
    watched.check("installed").await;
    // They came where they belong, so that they could have come elsewhere.
    let made = watched.made().await;
    let arrived = watched.canaries.found_in(&made);
    let all = watched.canaries.names();
    assert_eq!(arrived, all);
    let objects = watched.objects().await;
    let kinds: BTreeSet<&str> = objects
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect();
    let missing = KINDS.iter().filter(|kind| !kinds.contains(**kind));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "{missing:?} of {kinds:?}");

    // Somebody edits one, which is written down and taken back.
    let by_hand = watched.canaries.make("by hand");
    let values = core_reference("Secret", "sgp", "reducto-values");
    let edit = json!({"stringData": {"values.yaml": by_hand}});
    watched.world.edit(&values, edit).await;
    pass(&watched.world, 6).await;
    assert_eq!(watched.canaries.found_in(&watched.made().await), all);
    watched.check("edited by hand").await;

    // Another value waits for approval first, where somebody wants to see what changes.
    watched.set_mode("OnRequest").await;
    let next = good(&mut watched.canaries, "next ");
    watched.configure(next.to_string().as_bytes()).await;
    let unit = watched.world.unit("packs", "sgp-apps").await.unwrap();
    let plan = unit["status"].to_string();
    assert!(plan.contains("registry-proxy-values"), "{plan}");
    watched.check("planned").await;
    watched.set_mode("Auto").await;
    let arrived = watched.made().await;
    let arrived = watched.canaries.found_in(&arrived);
    assert!(
        arrived.contains(&"next /aws/registryProxy/jwtSecret"),
        "{arrived:?}"
    );
    watched.check("rotated").await;

    let left = keys()
        .into_iter()
        .find(|key| key.path == "/initialDesiredState");
    let mut left = left.unwrap().example();
    left["packs"].as_array_mut().unwrap().pop();
    let state = super::secret(
        "desired-state",
        "desired-state.json",
        left.to_string().as_bytes(),
    );
    watched.world.apply(&state).await;
    pass(&watched.world, 5).await;
    assert_eq!(watched.world.get(&values).await, None);
    let journal = watched.objects().await;
    let journal = journal.iter().filter(|one| one["kind"] == "JournalEntry");
    let secrets = journal.filter(|one| one["spec"]["object"]["name"] == "reducto-values");
    assert!(secrets.count() > 0, "its deletion is written down");
    watched.check("deleted").await;
}

#[tokio::test(start_paused = true)]
async fn what_a_wrong_configuration_holds_is_not_told() {
    let mut watched = Watched::new().await;
    let canaries = &mut watched.canaries;
    let mut documents: Vec<(String, Vec<u8>, &str)> = Vec::new();
    // Each key holds what it may not, and may be a secret in a wrong place.
    for (form, make) in [
        ("object", (|text| json!({"a": text})) as fn(String) -> Value),
        ("list", |text| json!([text])),
        ("placeholder", |text| json!(format!("<{text}>"))),
        ("number", |text| {
            let digits: String = text
                .bytes()
                .map(|byte| (b'0' + byte % 10) as char)
                .collect();
            json!(digits[..18].parse::<u64>().unwrap() | 1 << 59)
        }),
    ] {
        let document = configuration(|key| {
            let name = format!("{form} {}", key.path);
            let value = make(canary(&name));
            match &value {
                Value::Number(number) => canaries.mind(&name, &number.to_string()),
                _ => drop(canaries.make(&name)),
            }
            match key.path.as_str() {
                "/cloudProvider" => Some(json!("aws")),
                // A number is JSON, and a list and an object are.
                _ if key.holds.starts_with("JSON") => Some(json!(canary(&name))),
                _ => Some(value),
            }
        });
        let text = document.to_string();
        documents.push((
            form.to_owned(),
            text.into(),
            "/aws/registryProxy/jwtSecret: ",
        ));
    }
    // Texts where something else is to be.
    let text = configuration(|key| {
        let canary = canaries.make(&format!("text {}", key.path));
        Some(match key.holds.as_str() {
            "`https` URL" => json!(format!("https://user:{canary}@ws.example.com")),
            "`oci` URL" => json!(format!("oci://user:{canary}@registry.example.com/charts")),
            _ if key.path == "/cloudProvider" => json!("aws"),
            _ => json!(canary),
        })
    });
    documents.push((
        "text".into(),
        text.to_string().into(),
        "/frontDoorSSLCertB64: ",
    ));
    let cloud = json!({"cloudProvider": canaries.make("cloud"), "aws": {}});
    documents.push(("cloud".into(), cloud.to_string().into(), "/cloudProvider: "));
    // Keys that are none, and those of another certificate.
    let rsa = include_str!("../../../../../plugins/packs/src/tests/pem/rsa.key");
    for (name, key, says) in [
        (
            "no PEM",
            STANDARD.encode(canaries.make("no PEM")),
            "unencrypted private key",
        ),
        (
            "cut PEM",
            STANDARD.encode(format!(
                "-----BEGIN PRIVATE KEY-----\n{}",
                canaries.make("cut PEM")
            )),
            "unencrypted private key",
        ),
        (
            "other key",
            key_with(&canaries.make("other key"), rsa),
            "not the key of the certificate",
        ),
        (
            "certificate as key",
            key_with(&canaries.make("certificate as key"), CERTIFICATE),
            "unencrypted private key",
        ),
    ] {
        let mut document = good(canaries, "");
        document["frontDoorSSLKeyB64"] = json!(key);
        documents.push((name.into(), document.to_string().into(), says));
    }
    // Texts that are no JSON: the parser stops before, in and after a secret.
    let whole = good(canaries, "").to_string();
    let jwt = canary("/aws/registryProxy/jwtSecret");
    let at = whole.find(&jwt).unwrap();
    let cannot = "cannot be used";
    for (name, text) in [
        ("cut", whole[..at + 20].to_owned()),
        ("no quotes", whole.replace(&format!("\"{jwt}\""), &jwt)),
        ("escape", whole.replace(&jwt, &format!("\\q{jwt}"))),
        (
            "no comma",
            whole.replace(&format!("\"{jwt}\""), &format!("\"{jwt}\" \"{jwt}\"")),
        ),
        ("secret alone", jwt.clone()),
        ("secret as text", format!("\"{jwt}\"")),
    ] {
        documents.push((name.into(), text.into(), cannot));
    }
    let mut bytes = whole.clone().into_bytes();
    bytes.insert(at + 20, 0xff);
    documents.push(("no UTF-8".into(), bytes, "is no UTF-8"));

    for (name, document, says) in &documents {
        watched.configure(document).await;
        let said = watched.said("packs", "sgp-apps").await;
        assert!(said.contains(says), "{name}: {said}");
        watched.check(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_a_config_map_is_refused_without_its_value() {
    let watched = Watched::new().await;
    let whole = good(&mut Canaries::default(), "").to_string();
    let mut open = core_reference("ConfigMap", DOCUMENTS, OPEN);
    open["data"] = json!({DOCUMENT: whole});
    watched.world.apply(&open).await;
    let config = json!({"configuration": {"configMap": OPEN}});
    install(&watched.world, "packs", "Releases", config).await;
    watched.world.settle().await;
    watched.world.approve("packs").await;
    pass(&watched.world, 6).await;
    // It would fail for all, so that a person is asked who is told why.
    let held = watched.world.plugin_condition("packs", "Loaded").await;
    assert!(held.message.contains("a secret, which"), "{held:?}");
    watched.check("held").await;
    let (_, token) = held
        .message
        .split_once("reeve.dev/approve-upgrade=")
        .unwrap();
    let approved = json!({"metadata": {"annotations": {"reeve.dev/approve-upgrade": token}}});
    watched
        .world
        .edit(&plugin_reference("packs"), approved)
        .await;
    pass(&watched.world, 6).await;
    let said = watched.said("packs", "sgp-apps").await;
    for key in keys().iter().filter(|key| key.is_secret()) {
        let refused = format!("{}: a secret, which a ConfigMap does not keep", key.path);
        assert!(said.contains(&refused), "{said}");
    }
    watched.check("in a ConfigMap").await;
}

#[tokio::test(start_paused = true)]
async fn patches_that_go_wrong_tell_nothing_of_secrets() {
    let watched = Watched::new().await;
    let target = json!({"kind": "Secret", "name": "reducto-values"});
    let json_patch = |patch: Value| json!([{"target": target, "patch": patch}]);
    let values = "/data/values.yaml";
    for (patches, says) in [
        (
            json_patch(json!([{"op": "test", "path": values, "value": "eA=="}])),
            "/spec/patches/0/patch/0",
        ),
        (
            json_patch(json!([{"op": "test", "path": "/data", "value": {}}])),
            "/spec/patches/0/patch/0",
        ),
        (
            json_patch(json!([{"op": "add", "path": "/data/values.yaml/a", "value": 1}])),
            "/spec/patches/0/patch/0",
        ),
        (
            json_patch(json!([{"op": "move", "from": values, "path": "/data/a/b"}])),
            "/spec/patches/0",
        ),
        // Kubernetes refuses what comes of these, and the agent before it.
        (
            json_patch(json!([{"op": "add", "path": "/data/other", "value": "no base64!"}])),
            "reducto-values",
        ),
        (
            json_patch(json!([{"op": "replace", "path": "/data", "value": ["a"]}])),
            "reducto-values",
        ),
        (
            json_patch(json!([{"op": "add", "path": "/immutable", "value": "maybe"}])),
            "reducto-values",
        ),
        (
            json_patch(json!([{"op": "move", "from": "/data", "path": "/immutable"}])),
            "reducto-values",
        ),
        (
            json_patch(json!([{"op": "move", "from": values, "path": "/metadata/labels/a"}])),
            "reducto-values",
        ),
        (
            json_patch(json!([{"op": "add", "path": "/type", "value": "kubernetes.io/tls"}])),
            "reducto-values",
        ),
        (
            json_patch(
                json!([{"op": "add", "path": "/metadata/labels/a", "value": "not a label!"}]),
            ),
            "reducto-values",
        ),
    ] {
        // What was said of the patches before is no answer to these.
        watched.patch("sgp-apps", json!([])).await;
        let unit = watched.world.unit("packs", "sgp-apps").await;
        let said = unit.unwrap_or_default()["status"]["conditions"].to_string();
        assert!(!said.contains(says), "{patches}: {said}");
        watched.patch("sgp-apps", patches.clone()).await;
        let said = watched.said("packs", "sgp-apps").await;
        assert!(said.contains(says), "{patches}: {said}");
        watched.check(&patches.to_string()).await;
    }
}

/// Nor does who looks at what the plugin would do see them, where that is asked for.
#[tokio::test(start_paused = true)]
async fn plans_and_redacted_recordings_have_no_secrets() {
    let mut watched = Watched::new().await;
    watched.set_mode("OnRequest").await;
    let next = good(&mut watched.canaries, "next ");
    watched.configure(next.to_string().as_bytes()).await;
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess)).unwrap();
    let client = watched.world.server.client();
    let planner = Planner::new(PlannerConfig::new(client, engine, NAMESPACE));
    let opened = planner.open("packs", None).await.unwrap();
    let mut texts = Vec::new();
    let mut changes = 0;
    for primary in opened.units() {
        let plan = opened.plan(&primary).await;
        changes += plan.changes.len();
        texts.push((format!("the plan of {primary}"), format!("{plan:?}")));
        let recording = opened.record(&primary, true).await.unwrap();
        texts.push((
            format!("the recording of {primary}"),
            recording.to_text().unwrap(),
        ));
    }
    assert!(changes > 0, "there are new secrets");
    let kind = GroupVersionKind::new("", "v1", "Secret");
    let explained = planner
        .explain(&kind, Some("sgp"), "reducto-values")
        .await
        .unwrap();
    texts.push(("the explanation".into(), format!("{explained:?}")));
    watched.check_texts("planner", &texts);
    // Without being asked for that, a recording has them: they would have been found.
    let apps = opened
        .units()
        .into_iter()
        .find(|one| one.name == "sgp-apps")
        .unwrap();
    let whole = opened
        .record(&apps, false)
        .await
        .unwrap()
        .to_text()
        .unwrap();
    assert!(!watched.canaries.found_in(&whole).is_empty());
}
