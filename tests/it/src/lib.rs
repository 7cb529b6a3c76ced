//! The whole agent with real components on the embedded cluster.
//!
//! A [`World`] is a fresh embedded API server with Reeve's kinds, the Profile
//! kind and the agent's base rights, and an agent on it that is no administrator.
//! Time is tokio's and paused: [`World::settle`] returns when nothing is left to
//! do, however long back-off would take.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this crate is nothing but tests"
)]

use k8s_openapi::ByteString;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use parking_lot::Mutex;
use reeve_agent::{Agent, AgentConfig, LimitBounds, VerifyingKey, VirtualClock};
use reeve_api::APPROVE_ASKS_ANNOTATION;
use reeve_cluster::lease::TokioClock;
use reeve_cluster::{ElectorSettings, LeaseName, LeaseTiming};
use reeve_core::Digest;
use reeve_core::grant::{self, ACCOUNT_ANNOTATION, Grantee, Served, Subject};
use reeve_core::manifest::Manifest;
use reeve_engine::{Compiler, Component, Engine, EngineConfig, Limits};
use reeve_sim::{Actors, Clock, Config, Server};
use reeve_test_cache::Compiled;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

/// Namespace of the agent.
pub const NAMESPACE: &str = "reeve-system";
/// The agent's user.
pub const AGENT: &str = "reeve:agent";

/// A cluster and an agent on it.
pub struct World {
    /// The API server.
    pub server: Server,
    /// A client with all rights.
    pub admin: kube::Client,
    agent: Option<Agent>,
    /// Where agents keep what they compile and run; nowhere if none.
    cache: Option<PathBuf>,
    /// Goes on when the agent is started anew.
    clock: Arc<dyn reeve_agent::Clock>,
}

/// When all of this happens, in seconds since 1970.
const START: u64 = 1_700_000_000;

/// One engine for all tests: what one of them compiled, the others need not. It
/// compiles in this process; tests of the compiler bring their own engine.
fn engine() -> Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let make =
        || Engine::new(EngineConfig::new(Compiler::InThisProcess)).expect("an engine can be made");
    ENGINE.get_or_init(make).clone()
}

/// Has the engine of all tests compile these bytes, and keeps what comes of them until
/// all tests have ended: an engine forgets a component that nobody holds, so each test
/// would compile what the one before has let go. Bytes that are no component are none
/// of its business.
async fn hold(bytes: &[u8]) {
    static HELD: Mutex<BTreeMap<Digest, Component>> = Mutex::new(BTreeMap::new());
    let digest = Digest::of(bytes);
    let held = |held: &BTreeMap<Digest, Component>| held.contains_key(&digest);
    if held(&HELD.lock()) {
        return;
    }
    if let Ok(component) = engine().load(bytes.to_owned().into()).await {
        HELD.lock().insert(digest, component);
    }
}

/// An engine that knows what agents before it kept in this folder, and nothing else. What
/// other programs of tests have compiled it need not compile once more.
fn caching_engine(folder: &Path) -> Engine {
    if let Some(compiled) = Compiled::shared().expect("the folder can be used") {
        compiled.give(folder).expect("a cache can be written");
    }
    let config = EngineConfig {
        cache: Some(folder.to_owned()),
        max_instances: 0,
        ..EngineConfig::new(Compiler::InThisProcess)
    };
    Engine::new(config).expect("an engine can be made")
}

/// What a component asks for with a configuration.
async fn manifest(component: &[u8], config: &Value) -> Manifest {
    let component = engine().load(component.to_owned().into()).await;
    let component = component.expect("it is a component");
    let config = config.to_string().into();
    let called = component.describe(config, &Limits::default()).await;
    let described = called.expect("the component answers").value;
    let raw = described.expect("the configuration can be used");
    Manifest::try_from(raw).expect("the manifest can be used")
}

/// Kinds that plugins here ask for and whose objects are in no namespace.
const CLUSTER_SCOPED: [&str; 6] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "Namespace",
    "Pack",
    "PackSet",
];

/// The name of a kind's resource, as nearly all kinds have it.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// A condition, as far as tests look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `True`, `False` or `Unknown`; empty when there is none.
    pub status: String,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

impl Drop for World {
    /// What was compiled is of use to the next run. Where it cannot be kept, that compiles.
    fn drop(&mut self) {
        if let (Some(cache), Ok(Some(compiled))) = (&self.cache, Compiled::shared()) {
            let _ = compiled.take(cache);
        }
    }
}

impl World {
    /// A cluster that is ready for plugins, without an agent.
    pub async fn new() -> Self {
        Self::bare().ready().await
    }

    /// As [`World::new`], with somebody who makes workloads run, on the same
    /// virtual time as the agent.
    pub async fn with_actors(actors: Actors) -> Self {
        let config = Config {
            clock: Clock::following_tokio(UNIX_EPOCH + Duration::from_secs(START)),
            actors: Some(actors),
            ..Config::default()
        };
        Self::of(Server::new(config)).ready().await
    }

    async fn ready(self) -> Self {
        let world = self;
        world
            .apply(&reeve_test_support::samples::profile_crd())
            .await;
        world.install_crds().await;
        world
            .apply(&reeve_test_support::samples::namespace(NAMESPACE))
            .await;
        for object in grant::agent_base(NAMESPACE, Subject::User(AGENT)) {
            world.apply(&object).await;
        }
        world
    }

    /// As [`World::new`], with an agent that runs.
    pub async fn started() -> Self {
        let mut world = Self::new().await;
        world.start();
        world
    }

    /// A cluster with nothing of ours in it.
    pub fn bare() -> Self {
        Self::of(Server::new(Config::default()))
    }

    fn of(server: Server) -> Self {
        let start = k8s_openapi::jiff::Timestamp::UNIX_EPOCH + Duration::from_secs(START);
        Self {
            admin: server.client(),
            server,
            agent: None,
            cache: None,
            clock: Arc::new(VirtualClock::new(start)),
        }
    }

    /// Installs Reeve's own kinds.
    pub async fn install_crds(&self) {
        for crd in reeve_api::crds() {
            let crd = serde_json::to_value(crd).expect("a CRD is JSON");
            self.apply(&crd).await;
        }
    }

    /// Lets agents that are started from here on have a cache in this folder, each
    /// with an engine of its own, as a process has.
    pub fn cache_in(&mut self, folder: &Path) {
        self.cache = Some(folder.to_owned());
    }

    /// Lets agents that are started from here on go by this clock.
    pub fn go_by(&mut self, clock: Arc<dyn reeve_agent::Clock>) {
        self.clock = clock;
    }

    /// Starts an agent.
    pub fn start(&mut self) {
        self.agent = Some(Agent::start(self.config()));
    }

    /// Starts an agent with an engine of its own.
    pub fn start_on(&mut self, engine: Engine) {
        let mut config = self.config();
        config.engine = engine;
        self.agent = Some(Agent::start(config));
    }

    /// Starts an agent that is another user.
    pub fn start_as(&mut self, user: &str) {
        let mut config = self.config();
        config.client = self.server.client_as(user, ["system:authenticated"]);
        self.agent = Some(Agent::start(config));
    }

    /// Starts an agent that lets only components run that are signed with one of these
    /// keys, PEM.
    pub fn start_demanding(&mut self, keys: &str) {
        let mut config = self.config();
        config.signature_keys = VerifyingKey::read_all(keys).expect("these are keys");
        self.agent = Some(Agent::start(config));
    }

    /// Starts an agent whose plugins may have so much.
    pub fn start_within(&mut self, limits: LimitBounds) {
        let mut config = self.config();
        config.limits = limits;
        self.agent = Some(Agent::start(config));
    }

    /// Starts one of several agents that agree on who leads.
    pub fn replica(&self, identity: &str) -> Agent {
        Agent::start(self.electing(identity))
    }

    /// Starts one of several agents that agree on who leads, as another user than the
    /// others.
    pub fn replica_as(&self, identity: &str, user: &str, group: &str) -> Agent {
        let mut config = self.electing(identity);
        config.client = self.server.client_as(user, ["system:authenticated", group]);
        Agent::start(config)
    }

    fn electing(&self, identity: &str) -> AgentConfig {
        let mut config = self.config();
        config.election = Some(ElectorSettings {
            lease: LeaseName {
                namespace: NAMESPACE.to_owned(),
                name: grant::LEASE.to_owned(),
            },
            identity: identity.to_owned(),
            timing: LeaseTiming::default(),
            clock: Arc::new(TokioClock::new()),
        });
        config
    }

    fn config(&self) -> AgentConfig {
        let client = self.server.client_as(AGENT, ["system:authenticated"]);
        let engine = match &self.cache {
            None => engine(),
            Some(folder) => caching_engine(folder),
        };
        let mut config = AgentConfig::new(client, engine, NAMESPACE);
        config.clock = self.clock.clone();
        config
    }

    /// Stops the agent.
    pub async fn stop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.stop().await;
        }
    }

    /// The agent.
    pub fn agent(&self) -> &Agent {
        self.agent.as_ref().expect("the agent has been started")
    }

    /// Waits until the agent has nothing left to do but to wait.
    pub async fn settle(&self) {
        // With time paused, a millisecond passes only when every task waits. With
        // real time, what was just written may still be on its way to the agent
        // while other tests keep all cores busy.
        let (mut calm, mut paused) = (0, false);
        for _ in 0..20_000 {
            let start = std::time::Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            // A millisecond that took less is none of the real time.
            paused |= start.elapsed() < Duration::from_millis(1);
            let enough = if paused { 20 } else { 200 };
            calm = if self.agent().is_settled() {
                calm + 1
            } else {
                0
            };
            if calm > enough {
                return;
            }
        }
        panic!("not settled: {:?}", self.agent().status().borrow());
    }

    /// Waits until an object exists, then settles: for tests on real time, which
    /// cannot tell an agent that is done from one that has not heard yet.
    pub async fn settle_with(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        for _ in 0..60_000 {
            let found = self.api(object).get_opt(name).await;
            if found.expect("an administrator may read").is_some() {
                return self.settle().await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!(
            "{object} did not come: {:?}",
            self.agent().status().borrow()
        );
    }

    /// Lets time pass, then settles.
    pub async fn wait(&self, time: Duration) {
        tokio::time::sleep(time).await;
        self.settle().await;
    }

    /// The API of an object's kind.
    pub fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let api_version = text("/apiVersion").expect("an object has an apiVersion");
        let kind = text("/kind").expect("an object has a kind");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &plural(kind));
        match text("/metadata/namespace") {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            None => Api::all_with(self.admin.clone(), &resource),
        }
    }

    /// Applies an object as an administrator.
    pub async fn apply(&self, object: &Value) {
        self.apply_as("test", object).await;
    }

    /// Applies an object under the name of a field manager.
    pub async fn apply_as(&self, manager: &str, object: &Value) {
        let name = object["metadata"]["name"]
            .as_str()
            .expect("an object has a name");
        let params = PatchParams::apply(manager).force();
        let patch = Patch::Apply(object);
        let applied = self.api(object).patch(name, &params, &patch).await;
        applied.unwrap_or_else(|error| panic!("cannot apply {object}: {error}"));
    }

    /// Edits an object by hand: a merge patch by another manager.
    pub async fn edit(&self, object: &Value, patch: Value) {
        let name = object["metadata"]["name"]
            .as_str()
            .expect("an object has a name");
        let params = PatchParams {
            field_manager: Some("kubectl-edit".to_owned()),
            ..PatchParams::default()
        };
        let edited = self
            .api(object)
            .patch(name, &params, &Patch::Merge(patch))
            .await;
        edited.unwrap_or_else(|error| panic!("cannot edit {object}: {error}"));
    }

    /// Deletes an object.
    pub async fn delete(&self, object: &Value) {
        let name = object["metadata"]["name"]
            .as_str()
            .expect("an object has a name");
        let deleted = self
            .api(object)
            .delete(name, &DeleteParams::default())
            .await;
        deleted.unwrap_or_else(|error| panic!("cannot delete {object}: {error}"));
    }

    /// An object as it is now.
    pub async fn get(&self, object: &Value) -> Option<Value> {
        let name = object["metadata"]["name"]
            .as_str()
            .expect("an object has a name");
        let found = self
            .api(object)
            .get_opt(name)
            .await
            .expect("objects can be read");
        found.map(|found| serde_json::to_value(found).expect("an object is JSON"))
    }

    /// All objects of the kind and namespace of this one.
    pub async fn list(&self, like: &Value) -> Vec<Value> {
        let list = self.api(like).list(&ListParams::default()).await;
        let items = list.expect("objects can be listed").items;
        let value = |object| serde_json::to_value(object).expect("an object is JSON");
        items.into_iter().map(value).collect()
    }

    /// Makes a tenant: a Profile and the Namespace of its name.
    pub async fn tenant(&self, name: &str, labels: &[(&str, &str)]) {
        self.apply(&reeve_test_support::samples::namespace(name))
            .await;
        let profile = reeve_test_support::samples::profile_with_labels(name, labels);
        self.apply(&profile).await;
    }

    /// Installs a plugin: its ConfigMap, and generous rights for its account.
    pub async fn install(&self, name: &str, data: &[(&str, Vec<u8>)], config: Option<Value>) {
        self.allow(name).await;
        self.deliver(name, data, config).await;
    }

    /// Installs a plugin with just the rights that it asks for. Their namespaces are made.
    pub async fn install_granted(&self, name: &str, component: &[u8], config: &Value) {
        let served = |kind: &reeve_core::GroupVersionKind| Served {
            plural: plural(&kind.kind),
            namespaced: !CLUSTER_SCOPED.contains(&kind.kind.as_str()),
        };
        let grantee = Grantee {
            plugin: name,
            namespace: NAMESPACE,
            service_account: name,
            agent: Subject::User(AGENT),
        };
        let manifest = manifest(component, config).await;
        let mut grants = grant::objects(&grantee, &manifest, served);
        grants.extend(grant::holding(&grantee, &manifest, served));
        for grant in &grants {
            if let Some(namespace) = grant["metadata"]["namespace"].as_str() {
                let namespace = reeve_test_support::samples::namespace(namespace);
                self.apply(&namespace).await;
            }
            self.apply(grant).await;
        }
        let data = [("plugin.wasm", component.to_owned())];
        self.deliver(name, &data, Some(config.clone())).await;
    }

    /// Writes just the ConfigMap of a plugin.
    pub async fn deliver(&self, name: &str, data: &[(&str, Vec<u8>)], config: Option<Value>) {
        let component = data.iter().find(|(key, _)| *key == "plugin.wasm");
        if let Some((_, bytes)) = component
            && self.cache.is_none()
        {
            hold(bytes).await;
        }
        let binary: serde_json::Map<_, _> = data
            .iter()
            .map(|(key, bytes)| ((*key).to_owned(), json!(ByteString(bytes.clone()))))
            .collect();
        let config = config.map(|config| json!({"config.yaml": config.to_string()}));
        self.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": NAMESPACE, "labels": {"reeve.dev/plugin": "true"},
            },
            "binaryData": binary,
            "data": config.unwrap_or(json!({})),
        }))
        .await;
    }

    /// Approves, as a person would, a version that is held since it asks for more
    /// than the one before. Panics when none is held.
    pub async fn approve(&self, name: &str) {
        let loaded = self.plugin_condition(name, "Loaded").await;
        assert_eq!(loaded.reason, "ApprovalRequired", "{loaded:?}");
        let (_, rest) = loaded
            .message
            .split_once(&format!("{APPROVE_ASKS_ANNOTATION}="))
            .expect("the message names the annotation");
        let token = rest.split(|c: char| !c.is_ascii_hexdigit()).next();
        let annotations = json!({APPROVE_ASKS_ANNOTATION: token});
        let patch = json!({"metadata": {"annotations": annotations}});
        self.edit(&plugin_reference(name), patch).await;
    }

    /// Gives a plugin's account, and the agent for it, what tests need.
    pub async fn allow(&self, name: &str) {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "annotations": {ACCOUNT_ANNOTATION: name},
            },
        }))
        .await;
        let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        let read = ["get", "list", "watch"];
        let all = ["get", "list", "watch", "create", "patch", "delete"];
        let kinds = ["configmaps", "resourcequotas", "limitranges", "services"];
        let profiles = rule("kubeflow.org", &["profiles"], &read);
        let tests = rule("example.com", &["widgets"], &all);
        self.role(
            &format!("{name}-account"),
            &json!([rule("", &kinds, &all), profiles, tests]),
            &json!({
                "kind": "ServiceAccount", "name": name, "namespace": NAMESPACE,
            }),
        )
        .await;
        let impersonate = json!({
            "apiGroups": [""], "resources": ["serviceaccounts"],
            "verbs": ["impersonate"], "resourceNames": [name],
        });
        let widgets = rule("example.com", &["widgets"], &read);
        let rules = json!([rule("", &kinds, &read), profiles, widgets, impersonate]);
        let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
        self.role(&format!("{name}-agent"), &rules, &agent).await;
    }

    /// A ClusterRole and its binding.
    pub async fn role(&self, name: &str, rules: &Value, subject: &Value) {
        let api = "rbac.authorization.k8s.io/v1";
        self.apply(&json!({
            "apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
        }))
        .await;
        self.apply(&json!({
            "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        }))
        .await;
    }

    /// A condition of a Plugin.
    pub async fn plugin_condition(&self, plugin: &str, kind: &str) -> Condition {
        let plugin = self
            .get(&plugin_reference(plugin))
            .await
            .unwrap_or_default();
        condition(&plugin, kind)
    }

    /// The Unit of a plugin and a primary, if there is one.
    pub async fn unit(&self, plugin: &str, primary: &str) -> Option<Value> {
        let like = json!({
            "apiVersion": "reeve.dev/v1alpha1", "kind": "Unit",
            "metadata": {"name": "", "namespace": NAMESPACE},
        });
        self.list(&like).await.into_iter().find(|unit| {
            unit["spec"]["plugin"] == plugin && unit["spec"]["primary"]["name"] == primary
        })
    }

    /// A condition of the Unit of a plugin and a primary.
    pub async fn unit_condition(&self, plugin: &str, primary: &str, kind: &str) -> Condition {
        let unit = self.unit(plugin, primary).await.unwrap_or_default();
        condition(&unit, kind)
    }

    /// Events on an object of this name.
    pub async fn events(&self, name: &str) -> Vec<Value> {
        let mut events = Vec::new();
        for namespace in ["default", name] {
            let like = json!({
                "apiVersion": "v1", "kind": "Event",
                "metadata": {"name": "", "namespace": namespace},
            });
            events.extend(self.list(&like).await);
        }
        events.retain(|event| event["involvedObject"]["name"] == name);
        events
    }

    /// Writes that reached the server since this was last asked.
    pub fn writes(&self) -> u64 {
        let writes = self.server.requests().writes();
        self.server.reset_requests();
        writes
    }
}

/// A condition of an object. Those of a Plugin are sentences, with one blank between two words;
/// a Unit's may quote others.
pub fn condition(object: &Value, kind: &str) -> Condition {
    let conditions = object["status"]["conditions"].as_array();
    for said in conditions.into_iter().flatten() {
        let message = said["message"].as_str().unwrap_or_default();
        assert!(
            object["kind"] != "Plugin" || !message.contains("  "),
            "{said}"
        );
    }
    let found = conditions.into_iter().flatten().find(|c| c["type"] == kind);
    let text = |field: &str| {
        let value = found.and_then(|condition| condition[field].as_str());
        value.unwrap_or_default().to_owned()
    };
    Condition {
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
    }
}

/// Names a Plugin.
pub fn plugin_reference(name: &str) -> Value {
    json!({
        "apiVersion": "reeve.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": name, "namespace": NAMESPACE},
    })
}

/// Names the ConfigMap of a plugin.
pub fn config_map_reference(name: &str) -> Value {
    core_reference("ConfigMap", NAMESPACE, name)
}

/// Names an object of the core group.
pub fn core_reference(kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    })
}

/// Names a Profile.
pub fn profile_reference(name: &str) -> Value {
    json!({"apiVersion": "kubeflow.org/v1", "kind": "Profile", "metadata": {"name": name}})
}

/// The bytes of a plugin of this repository.
pub fn plugin(name: &str) -> Vec<u8> {
    read(&reeve_test_support::component(name))
}

/// The bytes of a guest for tests.
pub fn guest(name: &str) -> Vec<u8> {
    read(&reeve_test_support::guest(name))
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
