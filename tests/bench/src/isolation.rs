//! What honest plugins notice of one that loops, and of compilers.

use crate::figure::{Figures, median};
use crate::setup::{Empty, guest, large_profile, plugin, request};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use reeve_agent::{GuestThreads, PluginThreads};
use reeve_engine::{Compiler, CompilerProgram, Component, Engine, EngineConfig, Limits, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Honest plugins that run at the same time.
const HONEST: usize = 50;
/// Between two calls of one of them: together they use a small part of a processor,
/// as plugins do.
const PAUSE: Duration = Duration::from_millis(50);
/// How long each round takes.
const ROUND: Duration = Duration::from_secs(3);
const ROUNDS: usize = 5;
/// Calls that the hostile one has under way, of which few run at once.
const HOSTILE: usize = 16;

/// The subcommand with which this program compiles.
pub(crate) const COMPILE: &str = "compile-component";

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    compiler(figures).await?;
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let honest = engine.load(plugin("quotas")?).await?;
    let hostile = engine.load(guest("chameleon")?).await?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let threads = GuestThreads::default();
        let calm = latency(&honest, &threads).await?;
        let loops = attack(&hostile, &threads.of_plugin());
        let attacked = latency(&honest, &threads).await?;
        drop(loops);
        // The first round warms up.
        if round > 0 {
            alone.push(calm * 1e6);
            beside.push(attacked * 1e6);
        }
    }
    let (alone, beside) = (median(&mut alone), median(&mut beside));
    figures.plain("call of one of 50 honest plugins", alone, "µs");
    figures.plain("the same beside one that loops", beside, "µs");
    figures.limited("that is", beside / alone, "×", 1.1);
    Ok(())
}

/// A process for nothing: what the sandbox of the compiler costs a component.
async fn compiler(figures: &mut Figures) -> Result<()> {
    let program = CompilerProgram::this_one(COMPILE)?;
    let engine = Engine::new(EngineConfig {
        max_instances: 0,
        ..EngineConfig::new(Compiler::Process(program))
    })?;
    let mut times = Vec::new();
    for round in 0..20u8 {
        // The head of a component, and nothing that could follow.
        let broken = [b"\0asm\x0d\0\x01\0", &[0xff, round][..]].concat();
        let begun = Instant::now();
        let refused = engine.load(Bytes::from(broken)).await;
        ensure!(refused.is_err(), "rubbish has been compiled");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let confinement = engine.confinement().context("a compiler is a process")?;
    println!("compilers have: {confinement}");
    figures.plain(
        "starting, confining and ending a compiler",
        median(&mut times),
        "ms",
    );
    Ok(())
}

/// Median time of a call when all honest plugins make theirs, in seconds.
async fn latency(component: &Component, threads: &GuestThreads) -> Result<f64> {
    let profile = large_profile();
    let mut plugins = JoinSet::new();
    for number in 0..HONEST {
        let (component, threads) = (component.clone(), threads.of_plugin());
        let request = request(&profile);
        plugins.spawn(async move {
            // Not all at the same moment.
            tokio::time::sleep(PAUSE.mul_f64(number as f64 / HONEST as f64)).await;
            let (begun, mut times) = (Instant::now(), Vec::new());
            while begun.elapsed() < ROUND {
                let call = call(&component, request.clone());
                let before = Instant::now();
                threads.run(call).await?;
                times.push(before.elapsed().as_secs_f64());
                tokio::time::sleep(PAUSE).await;
            }
            anyhow::Ok(times)
        });
    }
    let mut all = Vec::new();
    while let Some(times) = plugins.join_next().await {
        all.extend(times??);
    }
    Ok(median(&mut all))
}

/// Calls that loop until they are ended, again and again, until it is dropped.
fn attack(component: &Component, threads: &PluginThreads) -> JoinSet<()> {
    let mut loops = JoinSet::new();
    for _ in 0..HOSTILE {
        let (component, threads) = (component.clone(), threads.clone());
        loops.spawn(async move {
            loop {
                let mut request = request(&large_profile());
                request.config = Bytes::from_static(br#"{"reconcile":{"do":"loop"}}"#);
                // It ends at a limit, which is the point.
                let _ = threads.run(call(&component, request)).await;
            }
        });
    }
    loops
}

fn call(
    component: &Component,
    request: Request,
) -> impl Future<
    Output = Result<
        reeve_engine::Called<Result<reeve_core::Outcome, reeve_core::Failure>>,
        reeve_engine::Fault,
    >,
>
+ Send
+ 'static
+ use<> {
    let component = component.clone();
    async move {
        let view = Arc::new(Empty);
        component.reconcile(request, view, &Limits::default()).await
    }
}
