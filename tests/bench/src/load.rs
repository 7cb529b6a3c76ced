//! Compiling a component, and loading it from the cache.

use crate::figure::{Figures, median};
use crate::setup::plugin;
use anyhow::{Result, ensure};
use reeve_engine::{Compiler, Engine, EngineConfig};
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 9;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let (mut compiled, mut cached) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir()?;
        let (time, stats) = load(folder.path()).await?;
        ensure!(stats == (1, 0), "the first load compiles");
        compiled.push(time);
        let (time, stats) = load(folder.path()).await?;
        ensure!(stats == (0, 1), "the second load finds it in the cache");
        cached.push(time);
    }
    // An eighth of what may pass between saving a plugin and running it.
    figures.limited("compile quotas, median", median(&mut compiled), "ms", 250.0);
    figures.limited(
        "load quotas from the cache, median",
        median(&mut cached),
        "ms",
        5.0,
    );
    Ok(())
}

async fn load(cache: &Path) -> Result<(f64, (u64, u64))> {
    let engine = Engine::new(EngineConfig {
        cache: Some(cache.to_owned()),
        ..EngineConfig::new(Compiler::InThisProcess)
    })?;
    let bytes = plugin("quotas")?;
    let begun = Instant::now();
    let component = engine.load(bytes).await?;
    let time = begun.elapsed().as_secs_f64() * 1e3;
    drop(component);
    let stats = engine.stats();
    Ok((time, (stats.compiled, stats.cached)))
}
