//! Converging many Profiles on a real API server, beside a bare loop that sends
//! the same applies.

use crate::bare::{BareLoop, Follow};
use crate::figure::{Figures, median};
use crate::process::client;
use crate::setup::{control_plane, plugin};
use crate::world::{AGENT, NAMESPACE, World};
use anyhow::{Context as _, Result};
use reeve_agent::{Agent, AgentConfig};
use reeve_engine::{Compiler, Engine, EngineConfig};
use std::time::{Duration, Instant};

const PROFILES: usize = 500;
/// What is left of noise on a machine with two processors is a few hundredths over so many.
const ROUNDS: u32 = 48;
const PLUGINS: [&str; 2] = ["quotas", "limitranges"];

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = control_plane(false).await?;
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let mut plugins = Vec::new();
    for name in PLUGINS {
        plugins.push((name, plugin(name)?));
    }
    let admin = client(&server.kubeconfig()).await?;
    let mut world = World::install(admin, &engine, plugins).await?;
    world.populate(PROFILES).await?;
    let agent_client = client(&server.kubeconfig_of(AGENT)?).await?;
    let applies = world.applies().await?;
    let bare_loop = BareLoop {
        watches: vec![world.primaries().await?],
        follow: Follow::Keep,
        applies: applies.clone(),
    };
    let (mut bare, mut full, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut starts = Vec::new();
    let bare_time = async || {
        collect(world.client()).await?;
        let begun = Instant::now();
        let following = bare_loop.run(agent_client.clone()).await?;
        let time = begun.elapsed().as_secs_f64();
        drop(following);
        world.clear(&applies).await?;
        anyhow::Ok(time)
    };
    let full_times = async || {
        collect(world.client()).await?;
        let times = agent(&agent_client, &engine, world.units()).await?;
        world.clear(&applies).await?;
        anyhow::Ok(times)
    };
    for round in 0..=ROUNDS {
        // Whoever is second finds the server as the first has left it, but for its garbage.
        let (loop_time, (start, agent_time)) = if round.count_ones() % 2 == 0 {
            (bare_time().await?, full_times().await?)
        } else {
            let times = full_times().await?;
            (bare_time().await?, times)
        };
        // The first round warms the server up.
        if round > 0 {
            bare.push(loop_time);
            full.push(agent_time);
            starts.push(start);
            ratios.push(agent_time / loop_time);
        }
    }
    let ratio = full.iter().sum::<f64>() / bare.iter().sum::<f64>();
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
    figures.plain(
        "of which until the first unit is ready, median",
        median(&mut starts),
        "s",
    );
    figures.plain(
        "agent / bare loop, median of the rounds",
        median(&mut ratios),
        "",
    );
    figures.limited("agent / bare loop, all rounds together", ratio, "", 1.3);
    tokio::task::spawn_blocking(move || drop(server)).await?;
    Ok(())
}

/// Has the API server collect its garbage. It does so by itself when it has allocated as
/// much as it holds, which is about once in a round and takes a third of one: in some rounds
/// twice and in some not at all, whoever sends, unless all begin with the same.
async fn collect(admin: &kube::Client) -> Result<()> {
    // A profile of its memory, as text, before which it collects.
    let request = http::Request::get("/debug/pprof/heap?gc=1&debug=1").body(Vec::new())?;
    admin.request_text(request).await?;
    Ok(())
}

/// The agent, from its start to the first unit that is ready, and to the last object in
/// place.
pub(crate) async fn agent(
    client: &kube::Client,
    engine: &Engine,
    units: usize,
) -> Result<(f64, f64)> {
    let begun = Instant::now();
    let agent = Agent::start(AgentConfig::new(client.clone(), engine.clone(), NAMESPACE));
    let mut status = agent.status();
    let converged = async {
        let mut first = None;
        loop {
            let ready: u32 = status
                .borrow_and_update()
                .plugins
                .iter()
                .map(|p| p.units.ready)
                .sum();
            let now = begun.elapsed().as_secs_f64();
            if ready > 0 {
                first.get_or_insert(now);
            }
            if ready as usize >= units {
                return anyhow::Ok((first.unwrap_or(now), now));
            }
            status.changed().await?;
        }
    };
    let converged = tokio::time::timeout(Duration::from_secs(300), converged).await;
    let problems = format!("{:?}", agent.status().borrow());
    agent.stop().await;
    converged.with_context(|| format!("not converged: {problems}"))?
}
