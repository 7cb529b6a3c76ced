//! One change among a few objects and among very many, on the embedded API server,
//! which holds very many soon: what it costs the agent.

use super::agent::AgentProcess;
use super::probe::Probe;
use crate::figure::{Figures, median};
use crate::process::ClusterProcess;
use crate::scale::{SETTLING, scaled};
use crate::setup::plugin;
use crate::world::World;
use anyhow::{Result, ensure};
use reeve_engine::{Compiler, Engine, EngineConfig};
use std::path::Path;
use tokio::time::sleep;

/// Each Profile has a quota: these are half of the objects.
const FEW: usize = 500;
const MANY: usize = 50_000;
const ROUNDS: usize = 5;
/// The clock for processes ticks a hundred times a second, and a change takes about
/// a millisecond.
const CHANGES: usize = 400;

/// An agent at rest, with Profiles that can be changed.
struct Site {
    // Dropped in this order.
    agent: AgentProcess,
    probe: Probe,
    _cluster: ClusterProcess,
}

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let cache = tempfile::tempdir()?;
    let mut few = Site::open(&engine, cache.path(), scaled(FEW)?).await?;
    let mut many = Site::open(&engine, cache.path(), scaled(MANY)?).await?;
    let [mut costs_few, mut costs_many, mut ratios] = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        let (small, large) = (few.cost().await?, many.cost().await?);
        // The first round warms both up.
        if round > 0 {
            costs_few.push(small);
            costs_many.push(large);
            ratios.push(large / small);
        }
    }
    for (site, costs) in [(&few, &mut costs_few), (&many, &mut costs_many)] {
        let objects = 2 * site.probe.world().profiles();
        let what = format!("fleet: CPU of a change among {objects} objects, median");
        figures.plain(&what, median(costs) * 1e3, "ms");
    }
    figures.limited(
        "fleet: the latter / the former, median of the rounds",
        median(&mut ratios),
        "",
        1.2,
    );
    Ok(())
}

impl Site {
    async fn open(engine: &Engine, cache: &Path, profiles: usize) -> Result<Self> {
        let cluster = ClusterProcess::start()?;
        let kubeconfig = cluster.kubeconfig();
        let plugins = [("quotas", plugin("quotas")?)];
        let mut world = World::install(cluster.client().await?, engine, plugins).await?;
        world.populate(profiles).await?;
        let mut agent = AgentProcess::start(&kubeconfig, cache)?;
        agent.converged(world.units()).await?;
        sleep(SETTLING).await;
        let probe = Probe::open(world).await?;
        Ok(Self {
            agent,
            probe,
            _cluster: cluster,
        })
    }

    /// CPU seconds of the agent for a change, each made when the one before is
    /// answered.
    async fn cost(&mut self) -> Result<f64> {
        let changes = scaled(CHANGES)?;
        self.probe.listen().await?;
        let (written, failed) = self.agent.writes().await?;
        let before = self.agent.process().cpu()?;
        for _ in 0..changes {
            self.probe.change().await?;
        }
        // What is put off until the agent has nothing else to do belongs to it.
        sleep(SETTLING).await;
        let used = self.agent.process().cpu()? - before;
        let writes = self.agent.writes().await?;
        ensure!(
            writes == (written + changes, failed),
            "{changes} changes led from {:?} writes, and failures among them, to {writes:?}",
            (written, failed)
        );
        Ok(used / changes as f64)
    }
}
