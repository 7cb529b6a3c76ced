//! The world of one scenario: a cluster, the plugin in it, an agent, a clock.

use crate::kinds::Kinds;
use crate::outside::{Effects, Sources};
use crate::reference::Reference;
use crate::scenario::{Fault, Object, Outage};
use crate::suite::Case;
use crate::tester::{ActionError, Tester};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use reeve_agent::delivery::parse_config;
use reeve_agent::{
    Agent, AgentConfig, EffectFeed, Findings, GivenEffects, GivenSources, GuestThreads, SourceFeed,
    VirtualClock,
};
use reeve_api::{APPROVE_ASKS_ANNOTATION, Plugin};
use reeve_core::backoff::Backoff;
use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::{Asks, Digest, GroupVersionKind, Manifest};
use reeve_engine::{Component, Engine, Limits};
use reeve_sim::{Clock, Config, Server};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// Where the agent works.
pub(crate) const NAMESPACE: &str = "reeve-system";
/// Who the tester is.
const TESTER: &str = "kubernetes-admin";
/// The ServiceAccount of the agent.
const AGENT: &str = "reeve";

/// Under which key a component is delivered.
const DELIVERED: &str = "plugin.wasm.zst";

/// When every scenario begins: 2026-01-01 00:00:00 UTC, in seconds.
const START: i64 = 1_767_225_600;

/// Uids, generated names and the delays between the agent's attempts are the same in each
/// run.
const SEED: u64 = 1;

/// How often the cluster tells a watch that nothing happened: not as often as a real one,
/// which does every minute, since scenarios in which nothing happens last for days; but
/// before the agent takes a watch for dead that says nothing (after 150 s), and lists all
/// that it watches anew.
const BOOKMARKS: Duration = Duration::from_secs(120);

/// Virtual time that an agent gets to finish what it has begun. More than its
/// longest wait for a watch; what waits for a retry counts as finished.
const PATIENCE: Duration = Duration::from_secs(120);

/// Virtual time that passes in a step during an outage or faults, in which nothing can be
/// finished.
const OUTAGE_TIME: Duration = Duration::from_secs(5);

/// The longest time between two looks at whether the agent has settled.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// A component ready to be put into ConfigMaps.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Its bytes, compressed, as base64: each world unpacks them anew.
    pub(crate) encoded: Arc<str>,
    /// The loaded component; none when it does not load, which a scenario may be
    /// about. Holding it keeps the compiled code for all scenarios.
    pub(crate) component: Option<Component>,
}

/// What all worlds share.
///
/// A world is a fork of a cluster with a plugin in it, that of one with its grants, that of
/// one with the definitions from files, and that of one with what all worlds have.
pub(crate) struct Stage {
    pub(crate) engine: Engine,
    findings: Findings,
    base: Template,
    defined: Mutex<HashMap<Vec<PathBuf>, Arc<Template>>>,
    /// By definitions and by what is granted: most configurations ask for the same.
    granted: Mutex<HashMap<GrantedKey, Arc<Template>>>,
    installed: Mutex<HashMap<TemplateKey, Arc<Template>>>,
}

/// The files with definitions, and the grants as JSON.
type GrantedKey = (Vec<PathBuf>, String);

/// What makes two scenarios begin with the same cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TemplateKey {
    plugin: String,
    component: PathBuf,
    config: Option<String>,
    files: Vec<PathBuf>,
}

/// A cluster that no agent has seen yet, and the kinds that it serves.
struct Template {
    server: Server,
    kinds: Kinds,
}

/// One world. Everything in it ends with it.
pub(crate) struct World {
    engine: Engine,
    /// What the agents of other worlds have found out of the same components.
    findings: Option<Findings>,
    server: Server,
    pub(crate) tester: Tester,
    plugin: String,
    clock: VirtualClock,
    agent: Option<Agent>,
    outage: Outage,
    /// Nothing outside is ever reached: this is all that there is.
    sources: watch::Sender<GivenSources>,
    effects: watch::Sender<GivenEffects>,
}

/// Why there can be no world at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    /// The embedded cluster does not answer.
    #[error("cannot ask for its kinds")]
    Kinds(#[from] kube::Error),
    /// What all worlds have cannot be written.
    #[error(transparent)]
    Object(#[from] ActionError),
}

/// A fault has struck nothing.
#[derive(Debug, thiserror::Error)]
#[error(
    "the fault \"{0}\" has struck nothing: no request that it names was made while it was on, \
     or no watch lasted until it was to break; let time pass, restart the agent, or correct \
     what it names"
)]
pub(crate) struct Unfelt(Box<reeve_sim::Fault>);

/// The agent did not come to rest.
#[derive(Debug, thiserror::Error)]
#[error(
    "the agent is still busy after {} s of virtual time{}",
    PATIENCE.as_secs(), details(.0)
)]
pub(crate) struct Unsettled(Vec<String>);

fn details(details: &[String]) -> String {
    if details.is_empty() {
        String::new()
    } else {
        format!(": {}", details.join("; "))
    }
}

impl Stage {
    /// Fills a fresh cluster with Reeve's kinds and what the agent needs before there
    /// is any plugin. Must be called within a tokio runtime whose time is paused.
    ///
    /// # Errors
    ///
    /// When the embedded cluster does not answer, or refuses what all worlds have.
    pub(crate) async fn new(engine: Engine) -> Result<Self, StageError> {
        let server = Server::new(Config {
            clock: cluster_clock(),
            seed: Some(SEED),
            bookmark_interval: BOOKMARKS,
            ..Config::default()
        });
        let kinds = Kinds::discover(&server.client()).await?;
        let mut world = World::around(&engine, "", server, kinds);
        for crd in reeve_api::crds() {
            let crd = json!(crd);
            world.tester.kinds.define(&crd);
            world.create(crd).await?;
        }
        world.create(namespace(NAMESPACE)).await?;
        for object in grant::agent_base(NAMESPACE, Subject::ServiceAccount(AGENT)) {
            world.create(object).await?;
        }
        Ok(Self {
            engine,
            findings: Findings::default(),
            base: world.into_template().await,
            defined: Mutex::default(),
            granted: Mutex::default(),
            installed: Mutex::default(),
        })
    }

    /// The cluster with the definitions from the files of a scenario, made if it is
    /// the first with them.
    async fn defined(&self, case: &Case) -> Result<Arc<Template>, ActionError> {
        let key: Vec<PathBuf> = case.files().collect();
        if let Some(template) = self.defined.lock().get(&key) {
            return Ok(template.clone());
        }
        // Two threads may make the same one; the other is dropped.
        let mut world = World::fork(&self.engine, &case.plugin, &self.base);
        let definitions: Vec<&Object> = case.objects.iter().filter(|o| o.is_definition()).collect();
        world.give(&definitions).await?;
        let template = Arc::new(world.into_template().await);
        self.defined.lock().insert(key, template.clone());
        Ok(template)
    }

    /// The cluster with what the plugin of a scenario asks for, made if it is the first
    /// that asks for that.
    async fn granted(
        &self,
        case: &Case,
        package: &Package,
        config: Option<&Value>,
    ) -> Result<Arc<Template>, ActionError> {
        let defined = self.defined(case).await?;
        let world = World::fork(&self.engine, &case.plugin, &defined);
        let Some(component) = &package.component else {
            return Ok(defined);
        };
        let Some(manifest) = manifest(component, config).await else {
            return Ok(defined);
        };
        let grants = world.grants(&manifest);
        // The plugin is named in them.
        let key = (case.files().collect(), json!(grants).to_string());
        if let Some(template) = self.granted.lock().get(&key) {
            return Ok(template.clone());
        }
        // As above.
        world.make(grants).await?;
        let template = Arc::new(world.into_template().await);
        self.granted.lock().insert(key, template.clone());
        Ok(template)
    }

    /// The cluster with the plugin of a scenario, made if it is the first of its
    /// kind.
    async fn installed(
        &self,
        case: &Case,
        package: &Package,
    ) -> Result<Arc<Template>, ActionError> {
        let key = TemplateKey {
            plugin: case.plugin.clone(),
            component: case.component.clone(),
            config: case.scenario.given.config.as_ref().map(Value::to_string),
            files: case.files().collect(),
        };
        if let Some(template) = self.installed.lock().get(&key) {
            return Ok(template.clone());
        }
        // As above.
        let config = case.scenario.given.config.as_ref();
        let granted = self.granted(case, package, config).await?;
        let world = World::fork(&self.engine, &case.plugin, &granted);
        world.install(package, config).await?;
        let template = Arc::new(world.into_template().await);
        self.installed.lock().insert(key, template.clone());
        Ok(template)
    }
}

/// The time at which a world begins, for agent and cluster.
fn start() -> Timestamp {
    Timestamp::from_second(START).unwrap_or_default()
}

/// The clock of a cluster that begins now.
fn cluster_clock() -> Clock {
    Clock::following_tokio(SystemTime::from(start()))
}

impl World {
    /// A world for a scenario: Reeve's kinds, what the agent needs before there is
    /// any plugin, the definitions from the files that are given, and the plugin.
    /// Must be called within a tokio runtime whose time is paused.
    pub(crate) async fn new(
        stage: &Stage,
        case: &Case,
        package: &Package,
    ) -> Result<Self, ActionError> {
        let template = stage.installed(case, package).await?;
        let mut world = Self::fork(&stage.engine, &case.plugin, &template);
        world.findings = Some(stage.findings.clone());
        let actors = &case.scenario.given.cluster.actors;
        world.server.set_actors(actors.actors());
        Ok(world)
    }

    fn fork(engine: &Engine, plugin: &str, template: &Template) -> Self {
        let server = template.server.fork(cluster_clock());
        Self::around(engine, plugin, server, template.kinds.clone())
    }

    fn around(engine: &Engine, plugin: &str, server: Server, kinds: Kinds) -> Self {
        Self {
            engine: engine.clone(),
            findings: None,
            tester: Tester::new(server.client(), kinds),
            server,
            plugin: plugin.to_owned(),
            clock: VirtualClock::new(start()),
            agent: None,
            outage: Outage::None,
            sources: watch::Sender::default(),
            effects: watch::Sender::default(),
        }
    }

    /// The cluster, once its own controllers have finished what they have to do.
    async fn into_template(self) -> Template {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Template {
            server: self.server,
            kinds: self.tester.kinds,
        }
    }

    /// Adds what a scenario gives: definitions first, then namespaces, then the
    /// rest in its order.
    pub(crate) async fn give(&mut self, objects: &[&Object]) -> Result<(), ActionError> {
        let rank = |object: &Object| match object.kind() {
            _ if object.is_definition() => 0,
            "Namespace" => 1,
            _ => 2,
        };
        let mut objects = objects.to_vec();
        objects.sort_by_key(|object| rank(object));
        for object in &objects {
            self.tester.kinds.define(object.value());
        }
        for object in objects {
            self.tester.apply(object).await?;
        }
        Ok(())
    }

    /// Learns of kinds that the scenario itself defines, now or in a later step,
    /// and grants the plugin what it asks for under their right names.
    pub(crate) async fn expect_kinds(
        &mut self,
        definitions: &[&Object],
        package: &Package,
        config: Option<&Value>,
    ) -> Result<(), ActionError> {
        for definition in definitions {
            self.tester.kinds.define(definition.value());
        }
        self.grant(package, config).await
    }

    /// Installs the plugin, to which everything is granted: puts it into a ConfigMap.
    async fn install(&self, package: &Package, config: Option<&Value>) -> Result<(), ActionError> {
        let mut config_map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.plugin,
                "namespace": NAMESPACE,
                "labels": {reeve_api::PLUGIN_CONFIG_MAP_LABEL: "true"},
            },
            "binaryData": {DELIVERED: &*package.encoded},
        });
        if let Some(config) = config {
            config_map["data"] = json!({"config.yaml": config.to_string()});
        }
        self.create(config_map).await
    }

    /// Gives the plugin another configuration or another component.
    pub(crate) async fn reinstall(
        &self,
        package: &Package,
        config: Option<&Value>,
        changed: Changed,
    ) -> Result<(), ActionError> {
        self.grant(package, config).await?;
        let patch = match changed {
            Changed::Config => {
                json!({"data": {"config.yaml": config.map(ToString::to_string)}})
            }
            Changed::Component => json!({"binaryData": {DELIVERED: &*package.encoded}}),
        };
        let config_map = Reference {
            kind: "ConfigMap".to_owned(),
            version: None,
            namespace: Some(NAMESPACE.to_owned()),
            name: self.plugin.clone(),
        };
        self.tester.edit(&config_map, &patch).await
    }

    /// Grants the rights that the plugin's manifest asks for, as `reeve dev` does.
    /// A plugin that has no manifest is granted nothing.
    async fn grant(&self, package: &Package, config: Option<&Value>) -> Result<(), ActionError> {
        let Some(component) = &package.component else {
            return Ok(());
        };
        let Some(manifest) = manifest(component, config).await else {
            return Ok(());
        };
        self.make(self.grants(&manifest)).await?;
        self.approve(&manifest, component, config).await;
        Ok(())
    }

    /// The objects that grant a plugin what it asks for.
    fn grants(&self, manifest: &Manifest) -> Vec<Value> {
        let grantee = Grantee {
            plugin: &self.plugin,
            namespace: NAMESPACE,
            service_account: &self.plugin,
            agent: Subject::ServiceAccount(AGENT),
        };
        let kinds = &self.tester.kinds;
        let served = |kind: &GroupVersionKind| Served {
            plural: kinds.plural(&kind.group, &kind.kind),
            namespaced: kinds.namespaced(&kind.group, &kind.kind),
        };
        let mut objects = grant::objects(&grantee, manifest, served);
        // As an ordinary grant has it, but without the policy that keeps the account to the
        // finalizers: nothing else is written with it here, and it would be compiled for
        // every scenario.
        if !grant::holding_policy(&grantee, manifest, served).is_empty() {
            objects.extend(grant::holding(&grantee, manifest, served));
        }
        objects
    }

    /// Makes grants, and the namespaces that they are in: rights in those that the
    /// manifest names need them.
    async fn make(&self, grants: Vec<Value>) -> Result<(), ActionError> {
        let namespaces: BTreeSet<String> = grants
            .iter()
            .filter_map(|object| object["metadata"]["namespace"].as_str())
            .filter(|namespace| *namespace != NAMESPACE)
            .map(str::to_owned)
            .collect();
        for name in namespaces {
            self.apply(namespace(&name)).await?;
        }
        for object in grants {
            self.apply(object).await?;
        }
        Ok(())
    }

    /// Here the author is the operator: a new version may ask for more. The first
    /// needs no approval, and has no Plugin yet; where approving goes wrong
    /// otherwise, the Plugin says that it waits for it.
    async fn approve(&self, manifest: &Manifest, component: &Component, config: Option<&Value>) {
        let plugins: Api<Plugin> = Api::namespaced(self.server.client(), NAMESPACE);
        // As the agent reads it; what it cannot read, it says.
        let text = config.map(ToString::to_string).unwrap_or_default();
        let config = parse_config(&text).unwrap_or_default();
        let token = Asks::of(manifest).token(&component.digest(), &Digest::of(&config));
        let patch = json!({"metadata": {"annotations": {APPROVE_ASKS_ANNOTATION: token}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        drop(plugins.patch(&self.plugin, &params, &patch).await);
    }

    /// Why the newest version of the plugin does not run, if it does not.
    pub(crate) fn problem(&self, plugin: &str) -> Option<String> {
        let status = self.agent.as_ref()?.status();
        let status = status.borrow();
        let report = status.plugins.iter().find(|report| report.name == plugin);
        report?.problem.clone()
    }

    /// Starts an agent, in place of one that runs. It has the rights of its own
    /// ServiceAccount and no others.
    pub(crate) async fn start_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.stop().await;
        }
        let user = format!("system:serviceaccount:{NAMESPACE}:{AGENT}");
        let client = self.server.client_as(&user, [] as [&str; 0]);
        let mut config = AgentConfig::new(client, self.engine.clone(), NAMESPACE);
        config.clock = Arc::new(self.clock);
        config.seed = Some(SEED);
        // The world has one thread, and its time stands still meanwhile.
        config.threads = GuestThreads::none();
        config.findings.clone_from(&self.findings);
        config.sources = SourceFeed::Given(self.sources.subscribe());
        config.effects = EffectFeed::Given(self.effects.subscribe());
        self.agent = Some(Agent::start(config));
    }

    /// Puts these outside documents in place of those of the same names.
    pub(crate) fn give_sources(&self, sources: &Sources) {
        self.sources.send_modify(|given| {
            let given = Arc::make_mut(given);
            given.extend(
                sources
                    .iter()
                    .map(|(name, one)| (name.clone(), one.0.clone())),
            );
        });
    }

    /// Says what comes of outside effects from now on.
    pub(crate) fn give_effects(&self, effects: &Effects) {
        self.effects.send_modify(|given| {
            let given = Arc::make_mut(given);
            given.extend(
                effects
                    .iter()
                    .map(|(name, one)| (name.clone(), one.0.clone())),
            );
        });
    }

    /// Starts or ends an outage. After its end, time passes until the agent has
    /// tried every connection again.
    pub(crate) async fn set_outage(&mut self, outage: Outage) {
        let ended = self.outage != Outage::None && outage == Outage::None;
        self.outage = outage;
        self.apply_outage(outage);
        if ended {
            tokio::time::sleep(Backoff::CONNECTION.cap).await;
        }
    }

    /// Puts these faults in place of those that are on. They strike everybody but the
    /// tester. After the last, time passes until the agent has tried every connection
    /// again.
    ///
    /// # Errors
    ///
    /// When one of those that are on has struck nothing: what was seen meanwhile says
    /// nothing of it.
    pub(crate) async fn set_faults(&self, faults: &[Fault]) -> Result<(), Unfelt> {
        self.check_faults()?;
        let switches = self.server.faults();
        switches.spare(TESTER);
        let struck = self.is_struck();
        let faults = faults.iter().map(|fault| fault.0.clone());
        self.server.set_faults(faults.collect());
        if struck && !self.is_struck() {
            tokio::time::sleep(Backoff::CONNECTION.cap).await;
        }
        Ok(())
    }

    /// Finds that a fault which is on has struck nothing so far.
    pub(crate) fn check_faults(&self) -> Result<(), Unfelt> {
        match self.server.faults().unfelt().into_iter().next() {
            Some(fault) => Err(Unfelt(Box::new(fault))),
            None => Ok(()),
        }
    }

    /// Whether anything goes wrong at present, so that nothing may be finished.
    fn is_struck(&self) -> bool {
        !self.server.faults().active().is_empty()
    }

    /// Lets the tester through during an outage. The agent does not notice: no
    /// virtual time passes, and it is time that it waits for.
    pub(crate) fn lift_outage(&self) {
        if self.outage != Outage::None {
            self.apply_outage(Outage::None);
        }
    }

    /// Ends what [`Self::lift_outage`] began.
    pub(crate) fn resume_outage(&self) {
        if self.outage != Outage::None {
            self.apply_outage(self.outage);
        }
    }

    fn apply_outage(&self, outage: Outage) {
        self.server.faults().set_outage(match outage {
            Outage::None => reeve_sim::Outage::None,
            Outage::Unavailable => reeve_sim::Outage::Unavailable,
            Outage::Refused => reeve_sim::Outage::Refused,
        });
    }

    /// Writes that were sent by anybody but the tester.
    pub(crate) fn writes(&self) -> u64 {
        self.server.writes().saturating_sub(self.tester.writes())
    }

    /// Waits until nothing happens any more.
    ///
    /// With time paused, a sleep ends only when every task waits for something: so
    /// one short sleep is enough unless the agent waits for time itself.
    pub(crate) async fn settle(&self) -> Result<(), Unsettled> {
        if self.outage != Outage::None || self.is_struck() {
            tokio::time::sleep(OUTAGE_TIME).await;
            return Ok(());
        }
        let Some(agent) = &self.agent else {
            return Ok(());
        };
        let begun = tokio::time::Instant::now();
        let mut look = Duration::from_millis(1);
        loop {
            tokio::time::sleep(look).await;
            if agent.is_settled() {
                return Ok(());
            }
            if begun.elapsed() >= PATIENCE {
                let status = agent.status().borrow().clone();
                let mut details = status.own_watches;
                let unseen = |resource| format!("not all {resource} have been seen yet");
                details.extend(status.syncing.into_iter().map(unseen));
                details.extend(
                    status
                        .plugins
                        .into_iter()
                        .filter_map(|plugin| plugin.problem),
                );
                return Err(Unsettled(details));
            }
            look = (look * 2).min(LONGEST_LOOK);
        }
    }

    async fn create(&self, object: Value) -> Result<(), ActionError> {
        match Object::try_from(object) {
            Ok(object) => self.tester.create(&object).await,
            // What we make ourselves has a kind and a name.
            Err(_) => Ok(()),
        }
    }

    async fn apply(&self, object: Value) -> Result<(), ActionError> {
        match Object::try_from(object) {
            Ok(object) => self.tester.apply(&object).await,
            Err(_) => Ok(()),
        }
    }
}

/// What of a plugin is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Config,
    Component,
}

async fn manifest(component: &Component, config: Option<&Value>) -> Option<Manifest> {
    let config = config.map_or_else(|| "{}".to_owned(), ToString::to_string);
    let limits = Limits::default();
    let called = component.describe(config.into(), &limits).await.ok()?;
    Manifest::try_from(called.value.ok()?).ok()
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}
