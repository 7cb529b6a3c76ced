//! A thousand Profiles with fourteen objects each on a real API server: what it takes
//! to converge them, to hold them, and to answer a change.

use super::agent::AgentProcess;
use super::probe::Probe;
use crate::bare::{BareLoop, BareProcess, Follow};
use crate::figure::{Figures, median};
use crate::process::client;
use crate::scale::{MIB, SETTLING, scaled};
use crate::setup::{control_plane, guest, plugin};
use crate::world::{AGENT, Wanted, World, profile_name};
use anyhow::{Context as _, Result, ensure};
use reeve_engine::{Compiler, Engine, EngineConfig};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::block_in_place;
use tokio::time::sleep;

const PROFILES: usize = 1_000;
const ROUNDS: usize = 3;
const IDLE_SECONDS: usize = 60;
const CHANGES: usize = 200;
/// Between two changes: the agent is idle again.
const PAUSE: Duration = Duration::from_millis(40);

/// What one of the two took.
struct Spent {
    time: f64,
    cpu: f64,
}

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = control_plane(false).await?;
    let kubeconfig = server.kubeconfig_of(AGENT)?;
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let plugins = [
        ("quotas", plugin("quotas")?),
        ("limitranges", plugin("limitranges")?),
        ("warden", guest("warden")?),
    ];
    let admin = client(&server.kubeconfig()).await?;
    let mut world = World::install(admin, &engine, plugins).await?;
    let cache = tempfile::tempdir()?;
    AgentProcess::compile(&kubeconfig, cache.path()).await?;
    world.populate(scaled(PROFILES)?).await?;
    let agent = converge(figures, &world, &kubeconfig, cache.path()).await?;
    memory(figures, &world, &agent).await?;
    idle(figures, &agent).await?;
    answers(figures, world).await?;
    drop(agent);
    tokio::task::spawn_blocking(move || drop(server)).await?;
    Ok(())
}

/// The agent and two bare loops in turns: one that does what is needed to send the
/// same, and one that learns as much. Leaves the world converged, and the agent that
/// did it.
async fn converge(
    figures: &mut Figures,
    world: &World,
    kubeconfig: &Path,
    cache: &Path,
) -> Result<AgentProcess> {
    let applies = world.applies().await?;
    let sending = BareLoop {
        watches: vec![world.primaries().await?],
        follow: Follow::Keep,
        applies: applies.clone(),
    };
    let learning = BareLoop {
        watches: world.watched().await?,
        follow: Follow::Decode,
        applies: applies.clone(),
    };
    // This warms the server up.
    bare(kubeconfig, &sending).await?;
    world.clear(&applies).await?;
    let mut all = [const { Vec::new() }; 6];
    let agent = loop {
        let alone = bare(kubeconfig, &sending).await?;
        world.clear(&applies).await?;
        let watching = bare(kubeconfig, &learning).await?;
        world.clear(&applies).await?;
        let (agent, full) = converged(world, kubeconfig, cache).await?;
        let round = [
            alone.time,
            full.time,
            full.time / alone.time,
            watching.cpu,
            full.cpu,
            full.cpu / watching.cpu,
        ];
        for (all, one) in all.iter_mut().zip(round) {
            all.push(one);
        }
        if all[0].len() == ROUNDS {
            break agent;
        }
        drop(agent);
        world.clear(&applies).await?;
    };
    let profiles = world.profiles();
    let [alone, full, time, watching, full_cpu, cpu] = all.map(|mut all| median(&mut all));
    let what = format!("fleet: bare loop, {} applies, median", applies.len());
    figures.plain(&what, alone, "s");
    let what = format!("fleet: agent, {profiles} Profiles, three plugins, median");
    figures.plain(&what, full, "s");
    figures.limited(
        "fleet: agent / bare loop, median of the rounds",
        time,
        "",
        1.1,
    );
    let what = "fleet: CPU of a bare loop that watches and decodes the same";
    figures.plain(what, watching, "s");
    figures.plain("fleet: CPU of the agent", full_cpu, "s");
    figures.limited("fleet: agent / that bare loop, CPU", cpu, "", 1.3);
    Ok(agent)
}

async fn bare(kubeconfig: &Path, work: &BareLoop) -> Result<Spent> {
    let mut process = block_in_place(|| BareProcess::start(kubeconfig, work))?;
    let before = process.process().cpu()?;
    let time = block_in_place(|| process.run())?.as_secs_f64();
    sleep(SETTLING).await;
    let cpu = process.process().cpu()? - before;
    Ok(Spent { time, cpu })
}

async fn converged(
    world: &World,
    kubeconfig: &Path,
    cache: &Path,
) -> Result<(AgentProcess, Spent)> {
    let mut agent = AgentProcess::start(kubeconfig, cache)?;
    let time = agent.converged(world.units()).await?.as_secs_f64();
    sleep(SETTLING).await;
    let cpu = agent.process().cpu()?;
    Ok((agent, Spent { time, cpu }))
}

async fn memory(figures: &mut Figures, world: &World, agent: &AgentProcess) -> Result<()> {
    let anonymous = agent.process().anonymous()? / MIB;
    let listed = world.listed().await?;
    let objects = 15 * world.profiles();
    ensure!(
        listed.objects == objects,
        "{} of {objects} objects are there",
        listed.objects
    );
    let json = listed.bytes as f64 / MIB;
    let what = format!("fleet: JSON of {objects} objects, Profiles included");
    figures.plain(&what, json, "MiB");
    let bare = listed.bare_bytes as f64 / MIB;
    figures.plain("fleet: the same without managedFields", bare, "MiB");
    let what = "fleet: agent, anonymous memory; limit: 1.3 × JSON + 30 MiB";
    figures.limited(what, anonymous, "MiB", 1.3 * json + 30.0);
    Ok(())
}

async fn idle(figures: &mut Figures, agent: &AgentProcess) -> Result<()> {
    let seconds = scaled(IDLE_SECONDS)?;
    let (begun, before) = (Instant::now(), agent.process().cpu()?);
    sleep(Duration::from_secs(seconds as u64)).await;
    let used = agent.process().cpu()? - before;
    let share = 100.0 * used / begun.elapsed().as_secs_f64();
    let what = format!("fleet: idle agent over {seconds} s, of a core");
    figures.limited(&what, share, "%", 0.1);
    let anonymous = agent.process().anonymous()? / MIB;
    figures.plain("fleet: its anonymous memory then", anonymous, "MiB");
    Ok(())
}

/// From the event of a changed Profile to the write that answers it.
///
/// The API server has two parts in this: it tells of the change, which our own watch
/// sees when the agent's does, and it takes the agent's write and tells us of it, as
/// long as an apply of our own takes from being sent to being seen.
async fn answers(figures: &mut Figures, world: World) -> Result<()> {
    let mut foreign = foreign_quota(&world).await?;
    let mut probe = Probe::open(world).await?;
    probe.apply(&mut foreign).await?;
    let (mut events, mut applies, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scaled(CHANGES)? {
        sleep(PAUSE).await;
        let apply = milliseconds(probe.apply(&mut foreign).await?);
        sleep(PAUSE).await;
        let seen = probe.change().await?;
        let event = milliseconds(seen.event);
        events.push(event);
        applies.push(apply);
        beyond.push(milliseconds(seen.write) - event - apply);
    }
    let event = median(&mut events);
    figures.plain("fleet: a change to its event, median", event, "ms");
    let apply = median(&mut applies);
    figures.plain("fleet: an apply to its event, median", apply, "ms");
    let what = "fleet: event to the write that answers, beyond an apply, median";
    figures.limited(what, median(&mut beyond), "ms", 3.0);
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A quota like that of the first Profile, that the agent neither owns nor watches.
async fn foreign_quota(world: &World) -> Result<Wanted> {
    let first = profile_name(0);
    let applies = world.applies().await?;
    let mut quota = applies
        .iter()
        .find(|wanted| {
            wanted.plugin == "quotas" && wanted.reference.namespace.as_deref() == Some(&first)
        })
        .cloned()
        .context("no quota")?;
    let name = "not-the-agents";
    quota.body["metadata"]["name"] = json!(name);
    // Its labels say whose it is, and ownerReferences have no part in this.
    quota.body["metadata"]["labels"] = json!({"app": "bench"});
    quota.body["metadata"]["ownerReferences"] = json!([]);
    Wanted::new(&quota.plugin, quota.body)
}
