//! A cluster with actors, a plugin that returns what its Bundles hold, and an
//! account of what happened to the objects.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use parking_lot::Mutex;
use reeve_it::{AGENT, NAMESPACE, World, guest};
use reeve_sim::Actors;
use reeve_test_support::workloads::{self, in_wave};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Namespace of the Bundles and of most objects.
pub(crate) const APPS: &str = "apps";
/// A namespace in which no Bundle is.
pub(crate) const OTHER: &str = "other";

/// The role that lets the agent see StorageClasses.
pub(crate) const AGENT_CLASSES: &str = "courier-agent-classes";

/// What the account of the plugin may write, by group and resource.
const KINDS: [(&str, &str); 8] = [
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "secrets"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "deployments"),
    ("batch", "jobs"),
    ("example.com", "gizmos"),
    ("example.com", "widgets"),
];

pub(crate) struct Stage {
    pub(crate) world: World,
    happened: Arc<Mutex<Vec<Entry>>>,
    _watches: JoinSet<()>,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Made,
    /// It has observed its newest generation, and is as it should be.
    Healthy,
    Changed,
    /// Its deletion was asked for, and something holds it.
    Deleting,
    Gone,
}

#[derive(Clone, Debug)]
struct Entry {
    at: Duration,
    what: Happened,
    /// `Kind/name`.
    name: String,
}

/// The configuration of the plugin `courier`.
pub(crate) fn config() -> Value {
    json!({
        "primary": "Bundle.v1.example.com",
        "writes": {
            "ConfigMap.v1": [APPS, OTHER],
            "PersistentVolumeClaim.v1": [APPS],
            "Secret.v1": [APPS],
            "Deployment.v1.apps": [APPS],
            "Job.v1.batch": [APPS],
            "Widget.v1.example.com": [APPS, OTHER],
        },
    })
}

impl Stage {
    /// A cluster whose widgets, workloads and jobs take a second, with the plugin
    /// in it.
    pub(crate) async fn new() -> Self {
        Self::with_plugin(json!({})).await
    }

    /// As [`Stage::new`], under a policy.
    pub(crate) async fn with_plugin(policy: Value) -> Self {
        Self::with(policy, config()).await
    }

    /// As [`Stage::new`], under a policy and with another configuration.
    pub(crate) async fn with(policy: Value, config: Value) -> Self {
        let actors = Actors {
            kinds: vec!["Widget.example.com".parse().unwrap()],
            ..Actors::default()
        };
        let mut world = World::with_actors(actors).await;
        for (kind, plural) in [("Bundle", "bundles"), ("Widget", "widgets")] {
            let definition = reeve_test_support::samples::open_crd(kind, plural);
            world.apply(&definition).await;
        }
        for namespace in [APPS, OTHER] {
            let namespace = reeve_test_support::samples::namespace(namespace);
            world.apply(&namespace).await;
        }
        allow(&world).await;
        if policy != json!({}) {
            let mut plugin = reeve_it::plugin_reference("courier");
            plugin["spec"] = policy;
            world.apply(&plugin).await;
        }
        world.start();
        let mut watches = JoinSet::new();
        let happened = Arc::default();
        let start = Instant::now();
        for like in [widget("", 0), job("", 0), deployment("", 0)] {
            let api = world.api(&like);
            let kind = like["kind"].as_str().unwrap().to_owned();
            watches.spawn(follow(api, kind, start, Arc::clone(&happened)));
        }
        let stage = Self {
            world,
            happened,
            _watches: watches,
        };
        stage.deliver(config).await;
        stage.world.settle().await;
        stage
    }

    /// Installs the plugin with a configuration.
    pub(crate) async fn deliver(&self, config: Value) {
        let component = [("plugin.wasm", guest("courier"))];
        self.world
            .deliver("courier", &component, Some(config))
            .await;
    }

    /// Makes or changes the Bundle of this name.
    pub(crate) async fn bundle(&self, name: &str, objects: &[Value]) {
        self.bundle_with(name, json!({"objects": objects})).await;
    }

    pub(crate) async fn bundle_with(&self, name: &str, spec: Value) {
        let mut bundle = bundle(name);
        bundle["spec"] = spec;
        self.world.apply(&bundle).await;
    }

    /// Lets seconds pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.world.wait(Duration::from_secs(seconds)).await;
    }

    /// Starts another agent in the place of the one that runs.
    pub(crate) async fn restart(&mut self) {
        self.world.stop().await;
        self.world.start();
        self.world.settle().await;
    }

    /// When something first happened to `Kind/name`, since the start.
    pub(crate) fn when(&self, what: Happened, name: &str) -> Option<Duration> {
        let happened = self.happened.lock();
        let mut entries = happened.iter();
        let found = entries.find(|entry| entry.what == what && entry.name == name);
        found.map(|entry| entry.at)
    }

    /// To what something happened, in order.
    pub(crate) fn all(&self, what: Happened) -> Vec<String> {
        let happened = self.happened.lock();
        let entries = happened.iter().filter(|entry| entry.what == what);
        let mut names: Vec<String> = entries.map(|entry| entry.name.clone()).collect();
        // One that is going changes once more when its last dependent is gone.
        if what == Happened::Deleting {
            names.dedup();
        }
        names
    }

    /// Forgets what has happened until now.
    pub(crate) fn forget(&self) {
        self.happened.lock().clear();
    }

    /// Each is healthy before the next is made.
    pub(crate) fn one_after_another(&self, names: &[&str]) {
        for pair in names.windows(2) {
            let healthy = self.when(Happened::Healthy, pair[0]);
            let made = self.when(Happened::Made, pair[1]);
            let (Some(healthy), Some(made)) = (healthy, made) else {
                panic!("{pair:?}: {:#?}", self.happened.lock());
            };
            assert!(healthy <= made, "{pair:?}: {:#?}", self.happened.lock());
        }
    }

    /// The Unit of a Bundle.
    pub(crate) async fn unit(&self, bundle: &str) -> Option<Value> {
        self.world.unit("courier", bundle).await
    }

    /// How far the sync of a Bundle is, as its Unit tells.
    pub(crate) async fn sync(&self, bundle: &str) -> Value {
        let unit = self.unit(bundle).await.unwrap_or_default();
        unit["status"]["sync"].clone()
    }

    /// The reason and message of a Unit's condition.
    pub(crate) async fn said(&self, bundle: &str, kind: &str) -> (String, String) {
        let found = self.world.unit_condition("courier", bundle, kind).await;
        (found.reason, found.message)
    }

    /// Counts of units as the Plugin tells.
    pub(crate) async fn counts(&self) -> Value {
        let plugin = self.world.get(&reeve_it::plugin_reference("courier")).await;
        plugin.unwrap()["status"]["units"].clone()
    }

    pub(crate) async fn exists(&self, object: &Value) -> bool {
        self.world.get(object).await.is_some()
    }

    pub(crate) async fn annotate(&self, object: &Value, key: &str, value: Value) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.world.edit(object, patch).await;
    }
}

async fn follow(
    api: Api<DynamicObject>,
    kind: String,
    start: Instant,
    happened: Arc<Mutex<Vec<Entry>>>,
) {
    let mut version = "0".to_owned();
    loop {
        let params = WatchParams::default().timeout(280);
        let Ok(stream) = api.watch(&params, &version).await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let mut stream = stream.boxed();
        while let Ok(Some(event)) = stream.try_next().await {
            let (object, what) = match event {
                WatchEvent::Added(object) => (object, Happened::Made),
                WatchEvent::Modified(object) => (object, Happened::Changed),
                WatchEvent::Deleted(object) => (object, Happened::Gone),
                WatchEvent::Bookmark(_) => continue,
                // The version is too old: what happened until now is not heard.
                WatchEvent::Error(_) => {
                    if let Ok(now) = api.list(&ListParams::default()).await {
                        version = now.metadata.resource_version.unwrap_or_default();
                    }
                    break;
                }
            };
            let value = serde_json::to_value(&object).unwrap();
            version = object.metadata.resource_version.unwrap_or_default();
            let what = match what {
                Happened::Changed if value["metadata"]["deletionTimestamp"].is_string() => {
                    Happened::Deleting
                }
                Happened::Changed if is_healthy(&value) => Happened::Healthy,
                what => what,
            };
            let name = format!("{kind}/{}", object.metadata.name.unwrap_or_default());
            let at = start.elapsed();
            happened.lock().push(Entry { at, what, name });
        }
    }
}

/// By what the documents of these kinds say; not by the code that is tested.
fn is_healthy(object: &Value) -> bool {
    let status = &object["status"];
    let is_true = |kind: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut of_kind = conditions.filter(|condition| condition["type"] == kind);
        of_kind.any(|condition| condition["status"] == "True")
    };
    let observed = status["observedGeneration"] == object["metadata"]["generation"];
    match object["kind"].as_str() {
        Some("Job") => is_true("Complete"),
        Some("Deployment") => {
            let replicas = &object["spec"]["replicas"];
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            observed && counts.iter().all(|count| status[count] == *replicas)
        }
        _ => observed && is_true("Ready"),
    }
}

async fn allow(world: &World) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "courier", "namespace": NAMESPACE,
            "annotations": {"reeve.dev/plugin": "courier"}},
    });
    world.apply(&account).await;
    let rules = |verbs: &[&str]| -> Vec<Value> {
        let kinds = KINDS.iter();
        kinds
            .map(|(group, resource)| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}))
            .collect()
    };
    let bundles = json!({"apiGroups": ["example.com"], "resources": ["bundles"], "verbs": ["get", "list", "watch"]});
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    let mut account = rules(&all);
    account.push(bundles.clone());
    let subject = json!({"kind": "ServiceAccount", "name": "courier", "namespace": NAMESPACE});
    world
        .role("courier-account", &Value::from(account), &subject)
        .await;
    let mut agent = rules(&["get", "list", "watch"]);
    agent.push(bundles);
    agent.push(
        json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"],
        "resourceNames": ["courier"]}),
    );
    let subject = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world
        .role("courier-agent", &Value::from(agent), &subject)
        .await;
    let classes = json!([{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"],
        "verbs": ["get", "list", "watch"]}]);
    world.role(AGENT_CLASSES, &classes, &subject).await;
}

/// Names a Bundle.
pub(crate) fn bundle(name: &str) -> Value {
    named("example.com/v1", "Bundle", name)
}

fn named(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": APPS}})
}

/// Adds annotations to an object.
pub(crate) fn with(object: Value, annotations: &[(&str, &str)]) -> Value {
    workloads::annotated(object, annotations)
}

/// A custom resource that takes a second to become ready.
pub(crate) fn widget(name: &str, wave: i64) -> Value {
    in_wave(workloads::widget(APPS, name), wave)
}

pub(crate) fn config_map(name: &str, wave: i64) -> Value {
    let mut config_map = named("v1", "ConfigMap", name);
    config_map["data"] = json!({"key": "value"});
    in_wave(config_map, wave)
}

/// A Job that takes a second to complete.
pub(crate) fn job(name: &str, wave: i64) -> Value {
    in_wave(workloads::job(APPS, name), wave)
}

pub(crate) fn deployment(name: &str, wave: i64) -> Value {
    in_wave(workloads::deployment(APPS, name), wave)
}

/// The token that a message about held deletions names: its one word of 20
/// hexadecimal digits.
pub(crate) fn token(message: &str) -> String {
    let words = message.split(|c: char| !c.is_ascii_alphanumeric());
    let mut tokens = words.filter(|word| word.parse::<reeve_core::prune::Token>().is_ok());
    tokens.next().unwrap().to_owned()
}
