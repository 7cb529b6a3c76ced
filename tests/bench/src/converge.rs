//! Converging many Profiles on a real API server, beside a bare loop that sends
//! the same applies.

use crate::figure::{Figures, median};
use crate::process::client;
use crate::setup::{Empty, plugin, request};
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use reeve_agent::{Agent, AgentConfig};
use reeve_cluster::{Apply, Cluster, Delete, Identity, Resource, Store, WatchSpec};
use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::ownership::{Owner, Stamped, field_manager};
use reeve_core::{Desired, GroupVersionKind, Manifest, ObjectReference, UnitKey};
use reeve_engine::{Compiler, Component, Engine, EngineConfig, Limits};
use reeve_real::{ControlPlane, User};
use reeve_test_support::samples;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROFILES: usize = 500;
const ROUNDS: usize = 5;
const NAMESPACE: &str = "reeve-system";
const AGENT: &str = "reeve-agent";
const PLUGINS: [&str; 2] = ["quotas", "limitranges"];

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = tokio::task::spawn_blocking(|| {
        ControlPlane::builder()
            .user(User::new(AGENT))
            .controllers([])
            .start()
    });
    let server = server.await??;
    let admin_client = client(&server.kubeconfig()).await?;
    let admin = Cluster::new(admin_client.clone());
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let plugins = prepare(&admin, &engine).await?;
    let agent_client = client(&server.kubeconfig_of(AGENT)?).await?;
    let applies = applies(&admin_client, &plugins).await?;
    let (mut bare, mut full, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let loop_time = bare_loop(&agent_client, &applies).await?;
        clear(&admin, &applies).await?;
        let agent_time = agent(&agent_client, &engine, applies.len()).await?;
        clear(&admin, &applies).await?;
        // The first round warms the server up.
        if round > 0 {
            bare.push(loop_time);
            full.push(agent_time);
            ratios.push(agent_time / loop_time);
        }
    }
    let count = applies.len();
    figures.plain(
        &format!("bare loop, {count} applies, median"),
        median(&mut bare),
        "s",
    );
    figures.plain(
        &format!("agent, {PROFILES} Profiles, two plugins, median"),
        median(&mut full),
        "s",
    );
    figures.limited(
        "agent / bare loop, median of the rounds",
        median(&mut ratios),
        "",
        1.3,
    );
    tokio::task::spawn_blocking(move || drop(server)).await?;
    Ok(())
}

struct Loaded {
    name: &'static str,
    component: Component,
    manifest: Manifest,
}

struct Send {
    stamped: Stamped,
    plugin: &'static str,
}

/// Installs everything but the agent.
async fn prepare(admin: &Cluster, engine: &Engine) -> Result<Vec<Loaded>> {
    for crd in reeve_api::crds() {
        apply(admin, &serde_json::to_value(crd)?).await?;
    }
    apply(admin, &samples::profile_crd()).await?;
    apply(admin, &samples::namespace(NAMESPACE)).await?;
    for object in grant::agent_base(NAMESPACE, Subject::User(AGENT)) {
        apply(admin, &object).await?;
    }
    let mut plugins = Vec::new();
    for name in PLUGINS {
        let bytes = plugin(name)?;
        let component = engine.load(bytes.clone()).await?;
        let described = component
            .describe(Bytes::from_static(b"{}"), &Limits::default())
            .await?;
        let manifest = match described.value {
            Ok(manifest) => Manifest::try_from(manifest)?,
            Err(error) => bail!("{}: {}", error.path, error.message),
        };
        let mut plurals = HashMap::new();
        for kind in manifest.kinds() {
            let Resource {
                plural, namespaced, ..
            } = admin.resolve(kind).await?;
            plurals.insert(kind.clone(), Served { plural, namespaced });
        }
        let grantee = Grantee {
            plugin: name,
            namespace: NAMESPACE,
            service_account: name,
            agent: Subject::User(AGENT),
        };
        let served = |kind: &GroupVersionKind| plurals.get(kind).cloned().unwrap_or_default();
        for object in grant::objects(&grantee, &manifest, served) {
            apply(admin, &object).await?;
        }
        apply(admin, &json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"reeve.dev/plugin": "true"}},
            "binaryData": {"plugin.wasm": k8s_openapi::ByteString(bytes.to_vec())},
        }))
        .await?;
        plugins.push(Loaded {
            name,
            component,
            manifest,
        });
    }
    let made = stream::iter(0..PROFILES)
        .map(async |number| {
            let name = format!("profile-{number:04}");
            apply(admin, &samples::namespace(&name)).await?;
            apply(admin, &samples::profile(&name)).await
        })
        .buffer_unordered(AgentConfig::CONCURRENCY);
    made.collect::<Vec<_>>()
        .await
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    Ok(plugins)
}

async fn apply(admin: &Cluster, object: &Value) -> Result<()> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = GroupVersionKind::from_fields(
        text("/apiVersion").context("apiVersion")?,
        text("/kind").context("kind")?,
    )
    .context("kind")?;
    let mut attempts = 0;
    let resource = loop {
        match admin.resolve(&kind).await {
            Err(_) if attempts < 100 => {
                attempts += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            resolved => break resolved?,
        }
    };
    admin
        .apply(Apply {
            resource: &resource,
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").context("name")?,
            body: object,
            manager: "bench",
            force: true,
            dry_run: false,
            identity: None,
        })
        .await?;
    Ok(())
}

/// What the agent will send, computed beforehand by the same components.
async fn applies(client: &kube::Client, plugins: &[Loaded]) -> Result<Vec<Send>> {
    let profile_kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    let resource = ApiResource::from_gvk_with_plural(
        &kube::core::GroupVersionKind::gvk("kubeflow.org", "v1", "Profile"),
        "profiles",
    );
    let profiles: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let profiles = profiles.list(&ListParams::default()).await?;
    let mut applies = Vec::new();
    for profile in profiles {
        let name = profile.metadata.name.clone().context("name")?;
        let uid = profile.metadata.uid.clone().context("uid")?;
        let reference = ObjectReference::new(profile_kind.clone(), None, name);
        for plugin in plugins {
            let request = request(&serde_json::to_value(&profile)?);
            let view = Arc::new(Empty);
            let called = plugin
                .component
                .reconcile(request, view, &Limits::default())
                .await?;
            let desired = Desired::check(called.value?, &plugin.manifest, &reference, |_| true)?;
            let owner = Owner {
                unit: UnitKey::new(plugin.name, reference.clone()),
                uid: uid.clone(),
            };
            applies.extend(desired.objects.into_iter().map(|object| Send {
                stamped: owner.stamp(object.reference, object.body),
                plugin: plugin.name,
            }));
        }
    }
    Ok(applies)
}

/// One watch on the primaries, then all applies, with the same impersonation and
/// at the same concurrency as the agent's.
async fn bare_loop(client: &kube::Client, applies: &[Send]) -> Result<f64> {
    let begun = Instant::now();
    let cluster = Cluster::new(client.clone());
    let (store, _changes) = Store::new(cluster.clone());
    let profiles = cluster
        .resolve(&GroupVersionKind::new("kubeflow.org", "v1", "Profile"))
        .await?;
    let watch = store.watch(WatchSpec::all(profiles));
    watch.synced().await;
    let sent = stream::iter(applies)
        .map(|send| {
            let cluster = &cluster;
            async move {
                let reference = &send.stamped.reference;
                let resource = cluster.resolve(&reference.kind).await?;
                cluster
                    .apply(Apply {
                        resource: &resource,
                        namespace: reference.namespace.as_deref(),
                        name: &reference.name,
                        body: &send.stamped.body,
                        manager: &field_manager(send.plugin),
                        force: false,
                        dry_run: false,
                        identity: Some(&Identity::service_account(NAMESPACE, send.plugin)),
                    })
                    .await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AgentConfig::CONCURRENCY);
    sent.collect::<Vec<_>>()
        .await
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The agent, from its start to the last object in place.
async fn agent(client: &kube::Client, engine: &Engine, objects: usize) -> Result<f64> {
    let begun = Instant::now();
    let agent = Agent::start(AgentConfig::new(client.clone(), engine.clone(), NAMESPACE));
    let mut status = agent.status();
    let converged = async {
        loop {
            let ready: u32 = status
                .borrow_and_update()
                .plugins
                .iter()
                .map(|p| p.units.ready)
                .sum();
            if ready as usize >= objects {
                return anyhow::Ok(begun.elapsed().as_secs_f64());
            }
            status.changed().await?;
        }
    };
    let converged = tokio::time::timeout(Duration::from_secs(300), converged).await;
    let problems = format!("{:?}", agent.status().borrow());
    agent.stop().await;
    converged.with_context(|| format!("not converged: {problems}"))?
}

/// Deletes what was made.
async fn clear(admin: &Cluster, applies: &[Send]) -> Result<()> {
    let deleted = stream::iter(applies)
        .map(async |send| {
            let reference = &send.stamped.reference;
            let resource = admin.resolve(&reference.kind).await?;
            admin
                .delete(Delete {
                    resource: &resource,
                    namespace: reference.namespace.as_deref(),
                    name: &reference.name,
                    uid: None,
                    resource_version: None,
                    dry_run: false,
                    identity: None,
                })
                .await?;
            anyhow::Ok(())
        })
        .buffer_unordered(AgentConfig::CONCURRENCY);
    deleted
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    // What the caches of the server still tell of them must not meet the next.
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}
