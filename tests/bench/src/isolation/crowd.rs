//! Honest plugins that run at the same time, as long as anything is measured.

use crate::figure::median;
use crate::setup::{Fixed, large_profile, plugin, request};
use anyhow::{Context as _, Result};
use reeve_agent::{GuestThreads, PluginThreads};
use reeve_engine::{Component, Engine, Limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

/// Honest plugins that run at the same time.
const HONEST: usize = 50;
/// Between two calls of one of them: together they use a small part of a processor,
/// as plugins do.
const PAUSE: Duration = Duration::from_millis(50);

/// No phase: calls that begin then are not kept.
const BETWEEN: usize = 0;
/// After the last phase.
const OVER: usize = usize::MAX;

/// Honest plugins, which call and call.
pub(super) struct Crowd {
    tasks: JoinSet<Result<()>>,
    phase: Arc<AtomicUsize>,
    last: usize,
    calls: UnboundedReceiver<Call>,
    /// How many seconds calls took, by their phase.
    times: Vec<Vec<f64>>,
}

/// A time in which calls were measured.
#[derive(Clone, Copy)]
pub(super) struct Phase(usize);

/// The phase in which a call began, and how many seconds it took.
struct Call(usize, f64);

impl Crowd {
    pub(super) async fn start(engine: &Engine, threads: &GuestThreads) -> Result<Self> {
        let component = engine.load(plugin("quotas")?).await?;
        let phase = Arc::new(AtomicUsize::new(BETWEEN));
        let (tell, calls) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for number in 0..HONEST {
            let (component, threads) = (component.clone(), threads.of_plugin());
            let (phase, tell) = (phase.clone(), tell.clone());
            tasks.spawn(async move {
                // Not all at the same moment.
                tokio::time::sleep(PAUSE.mul_f64(number as f64 / HONEST as f64)).await;
                go_on(&component, &threads, &phase, &tell).await
            });
        }
        Ok(Self {
            tasks,
            phase,
            last: BETWEEN,
            calls,
            times: Vec::new(),
        })
    }

    /// Measures calls for this long.
    pub(super) async fn measure(&mut self, time: Duration) -> Phase {
        self.last += 1;
        self.phase.store(self.last, Ordering::Relaxed);
        tokio::time::sleep(time).await;
        self.phase.store(BETWEEN, Ordering::Relaxed);
        Phase(self.last)
    }

    /// The median time in seconds of the calls that began in a phase and have come to
    /// their end.
    pub(super) fn median(&mut self, phase: Phase) -> Result<f64> {
        while let Ok(Call(phase, time)) = self.calls.try_recv() {
            self.times.resize_with(self.last + 1, Vec::new);
            self.times[phase].push(time);
        }
        let times = self.times.get_mut(phase.0);
        let times = times.filter(|times| !times.is_empty());
        Ok(median(times.context("no honest plugin came to a call")?))
    }

    /// Lets all of them end, none of which has failed.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.phase.store(OVER, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Calls until it is over.
async fn go_on(
    component: &Component,
    threads: &PluginThreads,
    phase: &AtomicUsize,
    tell: &UnboundedSender<Call>,
) -> Result<()> {
    let (request, view) = (request(&large_profile()), Arc::new(Fixed::default()));
    loop {
        let (component, view, request) = (component.clone(), view.clone(), request.clone());
        let call = async move { component.reconcile(request, view, &Limits::default()).await };
        let phase = phase.load(Ordering::Relaxed);
        if phase == OVER {
            return Ok(());
        }
        let begun = Instant::now();
        threads.run(call).await?.value?;
        if phase != BETWEEN {
            // Who measured is gone when something else has failed.
            let _ = tell.send(Call(phase, begun.elapsed().as_secs_f64()));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
