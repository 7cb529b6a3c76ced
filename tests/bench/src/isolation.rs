//! What honest plugins notice of each kind of hostile one, and what confining a compiler
//! costs a component.

mod crowd;
mod hostile;
mod sandbox;

pub(crate) use sandbox::{COMPILE, HERE, serve};

use crate::figure::{Figures, median};
use crate::process::{cpu_of, cpu_of_all};
use anyhow::{Result, ensure};
use crowd::{Crowd, Phase};
use hostile::Hostile;
use reeve_agent::GuestThreads;
use reeve_engine::{Compiler, CompilerProgram, Engine, EngineConfig};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How often each hostile plugin has its turn. Turns are short and come round again, so
/// that all of them have their share of a minute in which the machine has other things
/// to do.
const ROUNDS: usize = 5;
/// How often those have theirs once more that may be noticed, beside which a call seemed to
/// take more than so many times as long. A few turns tell no more than a fifth, some twenty a
/// tenth, and what is close to the limit needs more than that.
const AGAIN: [(f64, usize); 2] = [(1.0, 25), (1.05, 75)];
/// For how long calls are measured, with a hostile plugin or without.
const PHASE: Duration = Duration::from_millis(150);
/// Until an attack has begun, and until nothing is left of it: a guest that nobody wants
/// any more ends within an epoch, and whether anybody wants a compiler is looked at every
/// 50 ms.
const SETTLE: Duration = Duration::from_millis(60);
/// Until calls are over that began in the last phase, however slow they have become.
const LATE: Duration = Duration::from_secs(1);

/// What the median call may take beside a hostile plugin, over what it takes without.
const MOST: f64 = 1.1;

/// What is measured, and by what.
struct Bench {
    threads: GuestThreads,
    crowd: Crowd,
}

/// A phase without a hostile plugin.
#[derive(Clone, Copy)]
struct Quiet {
    phase: Phase,
    /// The part of the machine that others than this process used.
    others: f64,
}

/// One turn of a hostile plugin.
struct Turn {
    before: Quiet,
    beside: Phase,
    after: Quiet,
}

/// What honest plugins notice of a hostile one.
#[derive(Clone, Copy)]
struct Noticed {
    /// The part of the machine that others used around its turns.
    others: f64,
    /// The median call in seconds, without it and beside it.
    alone: f64,
    /// What the call beside it takes, over what it takes alone.
    ratio: f64,
}

/// Measures beside the hostile plugins whose words have `some` among them; where that is
/// empty, beside all, and what the sandbox of the compiler costs.
pub(crate) async fn measure(figures: &mut Figures, some: &str) -> Result<()> {
    if some.is_empty() {
        sandbox::measure(figures).await?;
    }
    let program = CompilerProgram::this_one(COMPILE)?;
    let engine = Engine::new(EngineConfig::new(Compiler::Process(program)))?;
    let mut all = Hostile::all(&engine).await?;
    all.retain(|hostile| hostile.is_harmless() || hostile.what.contains(some));
    ensure!(
        all.iter().any(|hostile| !hostile.is_harmless()),
        "there is no hostile plugin with {some:?} among the words of what it does"
    );
    for hostile in &all {
        hostile.probe().await?;
    }
    let threads = GuestThreads::default();
    let mut bench = Bench {
        crowd: Crowd::start(&engine, &threads).await?,
        threads,
    };
    let all: Vec<&Hostile> = all.iter().collect();
    let mut noticed = bench.look(&all, ROUNDS).await?;
    for (suspicious, rounds) in AGAIN {
        // The harmless one always: so nobody's turns follow each other at once.
        let suspected =
            |index: &usize| noticed[*index].ratio > suspicious || all[*index].is_harmless();
        let again: Vec<usize> = (0..all.len()).filter(suspected).collect();
        let those: Vec<&Hostile> = again.iter().map(|index| all[*index]).collect();
        for (index, anew) in again.into_iter().zip(bench.look(&those, rounds).await?) {
            noticed[index] = anew;
        }
    }
    bench.crowd.stop().await?;

    let mut row = |what: &str, of: fn(&Noticed) -> f64, unit: &str| {
        let mut values: Vec<f64> = noticed.iter().map(of).collect();
        figures.plain(what, median(&mut values), unit);
    };
    // Where they use all of it, the figures below are theirs.
    let what = "of the machine is used by others meanwhile";
    row(what, |noticed| noticed.others * 100.0, "%");
    let what = "call of one of 50 honest plugins, median";
    row(what, |noticed| noticed.alone * 1e6, "µs");
    for (hostile, noticed) in all.iter().zip(&noticed) {
        let what = format!("the same beside one that {}", hostile.what);
        if hostile.is_harmless() {
            figures.plain(&what, noticed.ratio, "×");
        } else {
            figures.limited(&what, noticed.ratio, "×", MOST);
        }
    }
    Ok(())
}

impl Bench {
    /// Lets hostile plugins have so many turns each.
    async fn look(&mut self, hostile: &[&Hostile], rounds: usize) -> Result<Vec<Noticed>> {
        let mut turns: Vec<Vec<Turn>> = hostile.iter().map(|_| Vec::new()).collect();
        // The first calls of all honest ones fill caches.
        self.quiet().await?;
        let mut before = self.quiet().await?;
        for _ in 0..rounds {
            for (hostile, turns) in hostile.iter().zip(&mut turns) {
                let attack = hostile.attack(&self.threads.of_plugin());
                sleep(SETTLE).await;
                let beside = self.crowd.measure(PHASE).await;
                drop(attack);
                sleep(SETTLE).await;
                let after = self.quiet().await?;
                turns.push(Turn {
                    before,
                    beside,
                    after,
                });
                before = after;
            }
        }
        sleep(LATE).await;
        let noticed = turns.into_iter().map(|turns| self.noticed(turns));
        noticed.collect()
    }

    async fn quiet(&mut self) -> Result<Quiet> {
        let used = || anyhow::Ok(cpu_of_all()? - cpu_of(std::process::id())?);
        let (begun, before) = (Instant::now(), used()?);
        let phase = self.crowd.measure(PHASE).await;
        let others = (used()? - before) / begun.elapsed().as_secs_f64();
        let processors = std::thread::available_parallelism()?.get();
        Ok(Quiet {
            phase,
            others: others / processors as f64,
        })
    }

    /// Sums up the turns of one hostile plugin. Those count around which others used the
    /// machine the least: beside a process that takes what is left of the processors, one
    /// more that computes is noticed by everybody, whatever keeps plugins apart.
    fn noticed(&mut self, mut turns: Vec<Turn>) -> Result<Noticed> {
        turns.sort_by(|one, other| one.others().total_cmp(&other.others()));
        turns.truncate(turns.len().div_ceil(2));
        let (mut alone, mut ratios) = (Vec::new(), Vec::new());
        for turn in &turns {
            let (before, after) = (turn.before.phase, turn.after.phase);
            let without = (self.crowd.median(before)? + self.crowd.median(after)?) / 2.0;
            alone.push(without);
            ratios.push(self.crowd.median(turn.beside)? / without);
        }
        Ok(Noticed {
            others: median(&mut turns.iter().map(Turn::others).collect::<Vec<_>>()),
            alone: median(&mut alone),
            ratio: median(&mut ratios),
        })
    }
}

impl Turn {
    fn others(&self) -> f64 {
        (self.before.others + self.after.others) / 2.0
    }
}
