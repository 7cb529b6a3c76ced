//! A new version of a plugin with ten thousand units on a real API server: how long it is
//! tried on all of them, that nothing is written for it, and what somebody who breaks
//! something meanwhile notices of it.

use super::agent::AgentProcess;
use super::audit::audited;
use super::probe::Probe;
use crate::figure::{Figures, median};
use crate::process::client;
use crate::scale::{SETTLING, scaled};
use crate::setup::{control_plane, plugin};
use crate::wasm::another;
use crate::world::{AGENT, NAMESPACE, World};
use anyhow::{Context as _, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use reeve_api::Plugin;
use reeve_core::Digest;
use reeve_engine::{Compiler, Engine, EngineConfig};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const PROFILES: usize = 10_000;
const PLUGIN: &str = "quotas";
/// "In seconds", of a shadow run over all of them, is not in many.
const SECONDS: f64 = 10.0;
/// "The usual latency": the median of repairs meanwhile may be so many times that of
/// repairs at rest. The new version is tried on one of the two processors meanwhile, and
/// then runs for all units.
const USUAL: f64 = 2.0;
/// How long repairs are measured at rest.
const AT_REST: Duration = Duration::from_secs(5);
/// Between two looks at the Plugin.
const INTERVAL: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(300);
/// What the agent writes about the plugin, and not for it.
const REPORTS: [&str; 3] = [" plugins ", " events ", " leases "];

/// A new version that is on its way.
struct Upgrade {
    plugins: Api<Plugin>,
    digest: String,
    /// Runs of units that had ended when it was delivered.
    runs_before: usize,
    begun: Instant,
}

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = control_plane(true).await?;
    let kubeconfig = server.kubeconfig_of(AGENT)?;
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let bytes = plugin(PLUGIN)?;
    let admin = client(&server.kubeconfig()).await?;
    let mut world = World::install(admin, &engine, [(PLUGIN, bytes.clone())]).await?;
    world.populate(scaled(PROFILES)?).await?;
    let units = world.units();
    let cache = tempfile::tempdir()?;
    let mut agent = AgentProcess::start(&kubeconfig, cache.path())?;
    agent.converged(units).await?;
    sleep(SETTLING).await;
    let client = world.client().clone();
    let mut probe = Probe::open(world).await?;

    let before = audited(&server)?.len();
    let upgrade = Upgrade::deliver(&client, &agent, &another(&bytes, 1, 0)).await?;
    let tried = upgrade.tried(units).await?;
    agent.ran(upgrade.runs_before + units).await?;
    let ran = upgrade.begun.elapsed();
    sleep(SETTLING).await;
    let all = audited(&server)?;
    let (reports, written): (Vec<&String>, Vec<&String>) = all[before..]
        .iter()
        .partition(|write| REPORTS.iter().any(|report| write.contains(report)));
    ensure!(!reports.is_empty(), "what the agent writes is not seen");
    for write in &written {
        println!("the agent has written: {write}");
    }
    let what = format!("fleet: a new version, tried on {units} units");
    figures.limited(&what, tried.as_secs_f64(), "s", SECONDS);
    let what = "fleet: until all of them have run under it";
    figures.plain(what, ran.as_secs_f64(), "s");
    let what = "fleet: writes for that, but for reports";
    figures.limited(what, written.len() as f64, "", 0.0);

    // A unit from which something is taken three times in a minute answers later and
    // later: no unit has its turn twice.
    let most = units / 4;
    probe.listen().await?;
    let mut rest = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < AT_REST && rest.len() < most {
        rest.push(probe.drift().await?.as_secs_f64());
    }
    probe.listen().await?;
    let upgrade = Upgrade::deliver(&client, &agent, &another(&bytes, 2, 0)).await?;
    let mut meanwhile = Vec::new();
    let mut is_tried = false;
    while !is_tried
        || agent.runs().await? < upgrade.runs_before + units
        || agent.queued().await? > 0
    {
        match meanwhile.len() < 2 * most {
            true => meanwhile.push(probe.drift().await?.as_secs_f64()),
            false => sleep(INTERVAL).await,
        }
        is_tried = is_tried || upgrade.is_tried(units).await?;
        ensure!(upgrade.begun.elapsed() < PATIENCE, "it takes too long");
    }
    ensure!(meanwhile.len() > 2, "nothing was repaired meanwhile");
    let what = format!("fleet: repair at rest, median of {}", rest.len());
    let at_rest = median(&mut rest);
    figures.plain(&what, at_rest * 1e3, "ms");
    let count = meanwhile.len();
    let what = format!("fleet: repair during an upgrade, median of {count}");
    let during = median(&mut meanwhile);
    figures.plain(&what, during * 1e3, "ms");
    let longest = |sorted: &[f64]| sorted.last().copied().unwrap_or(f64::NAN) * 1e3;
    figures.plain("fleet: longest repair at rest", longest(&rest), "ms");
    figures.plain("fleet: longest repair during it", longest(&meanwhile), "ms");
    let what = "fleet: repair during an upgrade / at rest, medians";
    figures.limited(what, during / at_rest, "", USUAL);
    drop(agent);
    tokio::task::spawn_blocking(move || drop(server)).await?;
    Ok(())
}

impl Upgrade {
    async fn deliver(
        client: &kube::Client,
        agent: &AgentProcess,
        component: &[u8],
    ) -> Result<Self> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let bytes = ByteString(component.to_vec());
        let patch = Patch::Merge(json!({"binaryData": {"plugin.wasm": bytes}}));
        let runs_before = agent.runs().await?;
        let begun = Instant::now();
        maps.patch(PLUGIN, &PatchParams::default(), &patch).await?;
        Ok(Self {
            plugins: Api::namespaced(client.clone(), NAMESPACE),
            digest: Digest::of(component).to_string(),
            runs_before,
            begun,
        })
    }

    /// Whether it has been tried on all units, and runs.
    async fn is_tried(&self, units: usize) -> Result<bool> {
        let status = self.plugins.get(PLUGIN).await?.status.unwrap_or_default();
        if status.digest.as_ref() != Some(&self.digest) {
            return Ok(false);
        }
        let shadow = status.shadow.context("there was no shadow run")?;
        let (of_this, all) = (shadow.digest == self.digest, shadow.units as usize == units);
        ensure!(of_this && all, "{shadow:?}");
        Ok(true)
    }

    /// How long it took until then.
    async fn tried(&self, units: usize) -> Result<Duration> {
        while !self.is_tried(units).await? {
            ensure!(self.begun.elapsed() < PATIENCE, "it is not loaded");
            sleep(INTERVAL).await;
        }
        Ok(self.begun.elapsed())
    }
}
