//! A restart of the agent with ten thousand Profiles of fourteen objects each that need
//! nothing, on a real API server: it writes nothing, and takes little more than to read it all.

use super::agent::AgentProcess;
use super::audit::audited;
use crate::bare::{BareLoop, BareProcess, Follow};
use crate::figure::{Figures, median};
use crate::process::client;
use crate::scale::{SETTLING, scaled};
use crate::setup::{control_plane, guest, plugin};
use crate::world::{AGENT, World};
use anyhow::Result;
use reeve_engine::{Compiler, Engine, EngineConfig};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use tokio::task::block_in_place;
use tokio::time::sleep;

const PROFILES: usize = 10_000;
const ROUNDS: usize = 3;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = control_plane(true).await?;
    let kubeconfig = server.kubeconfig_of(AGENT)?;
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let plugins = [
        ("quotas", plugin("quotas")?),
        ("limitranges", plugin("limitranges")?),
        ("warden", guest("warden")?),
    ];
    let admin = client(&server.kubeconfig()).await?;
    let mut world = World::install(admin, &engine, plugins).await?;
    world.populate(scaled(PROFILES)?).await?;
    let cache = tempfile::tempdir()?;
    let mut first = AgentProcess::start(&kubeconfig, cache.path())?;
    let converged = first.converged(world.units()).await?;
    sleep(SETTLING).await;
    drop(first);
    let profiles = world.profiles();
    let what = format!("fleet: first start with {profiles} Profiles, three plugins");
    figures.plain(&what, converged.as_secs_f64(), "s");
    let mut all = [const { Vec::new() }; 5];
    let before = audited(&server)?.len();
    for _ in 0..ROUNDS {
        let decoding = read(&kubeconfig, &world, Follow::Decode).await?;
        let keeping = read(&kubeconfig, &world, Follow::Keep).await?;
        let mut agent = AgentProcess::start(&kubeconfig, cache.path())?;
        let full = agent.converged(world.units()).await?.as_secs_f64();
        sleep(SETTLING).await;
        let round = [decoding, keeping, full, full / decoding, full / keeping];
        for (all, one) in all.iter_mut().zip(round) {
            all.push(one);
        }
    }
    let written = &audited(&server)?[before..];
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for write in written {
        *kinds.entry(write).or_default() += 1;
    }
    for (what, times) in kinds {
        println!("the agent has written, {times} times: {what}");
    }
    let [decoding, keeping, full, ratio, strict] = all.map(|mut all| median(&mut all));
    figures.plain("fleet: list and decode all of it, median", decoding, "s");
    figures.plain(
        "fleet: list it into the agent's store, median",
        keeping,
        "s",
    );
    figures.plain("fleet: restart of the agent, median", full, "s");
    let what = format!("fleet: writes of {ROUNDS} restarts");
    figures.limited(&what, written.len() as f64, "", 0.0);
    figures.limited("fleet: restart / list and decode, median", ratio, "", 1.2);
    figures.plain("fleet: restart / list into the store, median", strict, "");
    tokio::task::spawn_blocking(move || drop(server)).await?;
    Ok(())
}

/// Seconds to read all that the agent watches for its plugin, from the start of the
/// process.
async fn read(kubeconfig: &Path, world: &World, follow: Follow) -> Result<f64> {
    let work = BareLoop {
        watches: world.watched().await?,
        follow,
        applies: [].into(),
    };
    block_in_place(|| {
        let begun = Instant::now();
        let mut process = BareProcess::start(kubeconfig, &work)?;
        process.run()?;
        Ok(begun.elapsed().as_secs_f64())
    })
}
