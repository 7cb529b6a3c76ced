//! Five hundred Profiles with all plugins at once, as their chart installs them, among the
//! servers that they need: what it takes to converge them, and to hold them.
//!
//! A bare loop sends what the plugins apply, and makes the same databases and containers by
//! requests and statements like theirs, each kind with as many at once as the agent. It
//! knows beforehand what all of them are, asks nobody about buckets, and writes nothing down.
//!
//! Both are measured until all is applied and made. Units are ready later, when kube-controller-manager
//! has bound their claims, whoever has made them: it sends twenty requests a second
//! (`--kube-api-qps`).

mod outside;

use super::agent::AgentProcess;
use crate::bare::{BareLoop, BareProcess, Follow};
use crate::figure::{Figures, median};
use crate::process::client;
use crate::scale::{MIB, SETTLING, scaled};
use crate::setup::spread;
use crate::world::{Wanted, Watched};
use anyhow::{Context as _, Result, ensure};
use outside::Outside;
use reeve_cluster::{Cluster, Delete};
use reeve_core::GroupVersionKind;
use reeve_core::ownership::{PLUGIN_LABEL, field_manager};
use reeve_core::selector::Selector;
use reeve_core::waves::Propagation;
use reeve_ssa::managed::{ManagedFields, ManagerId};
use reeve_ssa::schema::Schema;
use reeve_ssa::{builtin, typed};
use reeve_test_platform::buckets::of_gateways;
use reeve_test_platform::tenants::mixed;
use reeve_test_platform::{NAMESPACE, Platform, Preset, Tenant, World, absent};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::block_in_place;
use tokio::time::sleep;

const PROFILES: usize = 500;
const ROUNDS: usize = 3;
const IDLE_SECONDS: usize = 60;

/// An agent that has changed nothing for so long has nothing to change: nor does
/// kube-controller-manager, which looks at all claims every fifteen seconds
/// (`--pvclaimbinder-sync-period`).
const QUIET: Duration = Duration::from_secs(20);
/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(300);

/// Megabytes that an agent of all plugins may take.
const MEMORY: f64 = 150.0;
/// Of a core, when nothing happens.
const IDLE: f64 = 0.5;

/// The platform, and how its agent is started.
struct Stage {
    platform: Platform,
    kubeconfig: PathBuf,
    arguments: Vec<String>,
    cache: tempfile::TempDir,
    admin: Cluster,
    /// All kinds of which there are objects, as `kubectl` calls them.
    kinds: Vec<String>,
}

/// What is done, by the agent and by a bare loop.
struct Work {
    applies: Arc<[Wanted]>,
    outside: Outside,
    /// How many units are ready then.
    units: usize,
    tenants: Vec<Tenant>,
}

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let definitions = match absent() {
        Ok(folder) => folder,
        Err(absent) => {
            println!("fleet-platform: SKIPPED: {absent}");
            return Ok(());
        }
    };
    let tenants = mixed(scaled(PROFILES)?);
    let stage = Stage::set(&definitions, &tenants).await?;
    let (agent, units) = stage.first().await?;
    let applies: Arc<[Wanted]> = block_in_place(|| stage.applies())?.into();
    let outside = block_in_place(|| Outside::of(&stage.platform, &tenants))?;
    drop(agent);
    let work = Work {
        applies,
        outside,
        units,
        tenants,
    };
    let agent = stage.converge(figures, &work).await?;
    hold(figures, &agent).await?;
    drop(agent);
    block_in_place(move || drop(stage));
    Ok(())
}

async fn hold(figures: &mut Figures, agent: &AgentProcess) -> Result<()> {
    let resident = agent.process().resident()? / MIB;
    figures.limited("platform: agent, resident memory", resident, "MiB", MEMORY);
    let anonymous = agent.process().anonymous()? / MIB;
    figures.plain("platform: of which anonymous", anonymous, "MiB");
    let seconds = scaled(IDLE_SECONDS)?;
    let (begun, before) = (Instant::now(), agent.process().cpu()?);
    sleep(Duration::from_secs(seconds as u64)).await;
    let used = agent.process().cpu()? - before;
    let share = 100.0 * used / begun.elapsed().as_secs_f64();
    let what = format!("platform: idle agent over {seconds} s, of a core");
    figures.limited(&what, share, "%", IDLE);
    Ok(())
}

impl Stage {
    /// Everything is there but an agent.
    async fn set(definitions: &Path, tenants: &[Tenant]) -> Result<Self> {
        let platform = block_in_place(|| {
            let platform = Platform::start(definitions)?;
            let world = World {
                preset: Preset::Readme,
                buckets: of_gateways(tenants),
                ports: platform.ports(),
                groups: &["support"],
                editors: Vec::new(),
                plugin: json!({}),
                artifacts: Value::Null,
            };
            platform.install_plugins(&world)?;
            platform.add(tenants)?;
            anyhow::Ok(platform)
        })?;
        let (kubeconfig, arguments) = platform.installed.outside_of_pod(&platform.cluster)?;
        let admin = Cluster::new(client(&platform.cluster.kubeconfig()).await?);
        let kinds = block_in_place(|| {
            let ask = ["api-resources", "--verbs=list,delete", "--output=name"];
            platform.cluster.kubectl(&ask)
        })?;
        Ok(Self {
            platform,
            kubeconfig,
            arguments,
            cache: tempfile::tempdir()?,
            admin,
            kinds: kinds.lines().map(str::to_owned).collect(),
        })
    }

    fn start_agent(&self) -> Result<AgentProcess> {
        AgentProcess::start_with(&self.kubeconfig, self.cache.path(), &self.arguments)
    }

    /// An agent that has compiled everything and has nothing more to do, and how many units
    /// are ready then: a few have to say that something is wrong, or wait for what nobody
    /// plays here.
    async fn first(&self) -> Result<(AgentProcess, usize)> {
        let mut agent = self.start_agent()?;
        agent.started().await?;
        let begun = Instant::now();
        let mut last = (Instant::now(), 0, 0);
        while last.0.elapsed() < QUIET || last.1 == 0 {
            ensure!(begun.elapsed() < PATIENCE, "the agent finds no end");
            sleep(Duration::from_millis(200)).await;
            let (ready, (writes, _)) = (agent.ready().await?, agent.writes().await?);
            if (ready, writes) != (last.1, last.2) {
                last = (Instant::now(), ready, writes);
            }
        }
        Ok((agent, last.1))
    }

    /// What all plugins have applied, as they have: what their managers own.
    fn applies(&self) -> Result<Vec<Wanted>> {
        let accounts = self.accounts()?;
        let mut schemas = HashMap::new();
        let mut applies = Vec::new();
        for kind in &self.kinds {
            for object in self.of_plugins(kind)? {
                let plugin = text(&object["metadata"]["labels"][PLUGIN_LABEL]);
                // That is how plugins come.
                let Some(account) = accounts.get(&plugin) else {
                    continue;
                };
                if !schemas.contains_key(kind) {
                    schemas.insert(kind, self.schema(kind, &object)?);
                }
                let body = applied(&schemas[kind], &object, &field_manager(&plugin))?;
                applies.push(Wanted::new(&plugin, body)?.sent_as(account));
            }
        }
        Ok(applies)
    }

    /// All of a kind that carry a plugin's label.
    fn of_plugins(&self, kind: &str) -> Result<Vec<Value>> {
        let ask = [
            "get",
            kind,
            "--all-namespaces",
            "--output=json",
            "--show-managed-fields",
        ];
        let label = format!("--selector={PLUGIN_LABEL}");
        let found = self
            .platform
            .cluster
            .kubectl(&[&ask[..], &[&label]].concat())?;
        let mut found: Value = serde_json::from_str(&found)?;
        match found["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// The accounts of the plugins.
    fn accounts(&self) -> Result<BTreeMap<String, String>> {
        let plugins = self.platform.cluster.list("plugins.reeve.dev", NAMESPACE)?;
        let account = |plugin: &Value| {
            let name = text(&plugin["metadata"]["name"]);
            let account = plugin["spec"]["serviceAccountName"].as_str();
            (name.clone(), account.map_or(name, str::to_owned))
        };
        Ok(plugins.iter().map(account).collect())
    }

    fn schema(&self, kind: &str, object: &Value) -> Result<Schema> {
        let gvk = kind_of(object)?;
        if let Some(schema) = builtin::schema(&gvk.group, &gvk.version, &gvk.kind) {
            return Ok(schema.clone());
        }
        let definition = self.platform.cluster.get("crd", "", kind)?;
        let definition = definition.with_context(|| format!("no definition of {kind}"))?;
        let versions = definition["spec"]["versions"].as_array();
        let version = versions.into_iter().flatten();
        let mut version = version.filter(|version| version["name"] == *gvk.version);
        let version = version.next().context("no such version")?;
        Ok(Schema::from_crd(&version["schema"]["openAPIV3Schema"])?)
    }

    /// The agent and a bare loop in turns. Leaves the world converged, and the agent that
    /// did it.
    async fn converge(&self, figures: &mut Figures, work: &Work) -> Result<AgentProcess> {
        let Work { applies, .. } = work;
        let profiles = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let sending = BareLoop {
            watches: vec![Watched {
                resource: self.admin.resolve(&profiles).await?,
                selector: Selector::default(),
            }],
            follow: Follow::Keep,
            applies: applies.clone(),
        };
        let mut all = [const { Vec::new() }; 3];
        let agent = loop {
            self.clear(work).await?;
            let bare = self.bare(&sending, &work.outside).await?;
            self.clear(work).await?;
            let mut agent = self.start_agent()?;
            let full = agent.written(applies.len()).await?.as_secs_f64();
            agent.converged(work.units).await?;
            sleep(SETTLING).await;
            let round = [bare, full, full / bare];
            for (all, one) in all.iter_mut().zip(round) {
                all.push(one);
            }
            if all[0].len() == ROUNDS {
                break agent;
            }
        };
        let [bare, full, ratio] = all.map(|mut all| median(&mut all));
        let (databases, containers) = work.outside.counts();
        let what = format!(
            "platform: bare loop, {} applies, {databases} databases, {containers} containers, median",
            applies.len()
        );
        figures.plain(&what, bare, "s");
        let (count, units) = (work.tenants.len(), work.units);
        let what = format!("platform: agent, {count} Profiles, all plugins, {units} units");
        figures.plain(&what, full, "s");
        let what = "platform: agent / bare loop, median of the rounds";
        figures.limited(what, ratio, "", 1.1);
        Ok(agent)
    }

    /// Seconds until both are over.
    async fn bare(&self, sending: &BareLoop, outside: &Outside) -> Result<f64> {
        let mut process = block_in_place(|| BareProcess::start(&self.kubeconfig, sending))?;
        let begun = Instant::now();
        let sent = tokio::task::spawn_blocking(move || process.run());
        outside.make().await?;
        sent.await??;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Nothing is left of what plugins have made, databases included; containers of blobs
    /// stay.
    async fn clear(&self, work: &Work) -> Result<()> {
        let Work {
            applies, tenants, ..
        } = work;
        let shared = (self.admin.clone(), applies.clone());
        let delete = move |(admin, applies): (Cluster, Arc<[Wanted]>), number: usize| async move {
            let reference = &applies[number].reference;
            let resource = admin.resolve(&reference.kind).await?;
            admin
                .delete(Delete {
                    resource: &resource,
                    namespace: reference.namespace.as_deref(),
                    name: &reference.name,
                    uid: None,
                    resource_version: None,
                    propagation: Propagation::Background,
                    dry_run: false,
                    identity: None,
                })
                .await?;
            Ok(())
        };
        spread(applies.len(), shared, delete).await?;
        block_in_place(|| self.forget(tenants))?;
        self.gone(applies).await?;
        // What the caches of the server still tell of them must not meet the next.
        sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    /// What is known about units, and what was made outside of the cluster.
    fn forget(&self, tenants: &[Tenant]) -> Result<()> {
        let units = [
            "delete",
            "units.reeve.dev",
            "--all",
            "--namespace",
            NAMESPACE,
            // It would look at each of thousands, and nothing holds them.
            "--wait=false",
        ];
        self.platform.cluster.kubectl(&units)?;
        for tenant in tenants.iter().filter(|tenant| tenant.has_gitea()) {
            let names = ["unclassified", "protected-b"]
                .map(|class| format!("gitea-postgresql-secret-{class}"));
            let delete = ["delete", "secret", "--ignore-not-found", "--namespace"];
            let names = [&tenant.name, &names[0], &names[1]].map(String::as_str);
            self.platform
                .cluster
                .kubectl(&[&delete[..], &names].concat())?;
            let database = tenant.database();
            for server in &self.platform.databases {
                server.admin(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE);"))?;
                server.admin(&format!("DROP ROLE IF EXISTS {database};"))?;
            }
        }
        Ok(())
    }

    /// Waits until what was deleted is gone: others have a say in that.
    async fn gone(&self, applies: &[Wanted]) -> Result<()> {
        let begun = Instant::now();
        loop {
            let left = block_in_place(|| {
                let mut left = 0;
                for kind in ["persistentvolumes", "persistentvolumeclaims"] {
                    left += self.of_plugins(kind)?.len();
                }
                anyhow::Ok(left)
            })?;
            if left == 0 {
                return Ok(());
            }
            let all = applies.len();
            ensure!(begun.elapsed() < PATIENCE, "{left} of {all} objects stay");
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// What a manager has applied of an object.
fn applied(schema: &Schema, object: &Value, manager: &str) -> Result<Value> {
    let managed = ManagedFields::of(object)?;
    let owned = managed.get(&ManagerId::apply(manager, ""));
    let owned = owned.with_context(|| format!("{manager} owns nothing of {object}"))?;
    let others = typed::field_set(schema, object).difference(&owned.set);
    let mut body = typed::remove(schema, object, &others);
    drop_nothings(&mut body);
    for name in ["apiVersion", "kind"] {
        body[name] = object[name].clone();
    }
    for name in ["name", "namespace"] {
        let value = &object["metadata"][name];
        if value.is_string() {
            body["metadata"][name] = value.clone();
        }
    }
    Ok(body)
}

/// What all is taken from is left as null.
fn drop_nothings(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            drop_nothings(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_nothings),
        _ => {}
    }
}

fn kind_of(object: &Value) -> Result<GroupVersionKind> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let kind = GroupVersionKind::from_fields(text("apiVersion"), text("kind"));
    kind.with_context(|| format!("no kind: {}", json!(object)))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
