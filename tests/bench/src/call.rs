//! A fresh instance and one call of `reconcile`, all limits on.

use crate::figure::{Figures, median};
use crate::setup::{Fixed, large_profile, plugin, request};
use anyhow::{Result, anyhow};
use reeve_engine::{Compiler, Engine, EngineConfig, Limits};
use std::sync::Arc;
use std::time::Instant;

const WARM_UP: usize = 2_000;
const CALLS: usize = 20_000;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let component = engine.load(plugin("quotas")?).await?;
    let (limits, view) = (Limits::default(), Arc::new(Fixed::default()));
    let profile = large_profile();
    let mut times = Vec::with_capacity(CALLS);
    for call in 0..WARM_UP + CALLS {
        let request = request(&profile);
        let begun = Instant::now();
        let called = component.reconcile(request, view.clone(), &limits).await?;
        let elapsed = begun.elapsed();
        let outcome = called.value?;
        if outcome.objects.len() != 1 {
            return Err(anyhow!(
                "one object was expected, not {}",
                outcome.objects.len()
            ));
        }
        if call >= WARM_UP {
            times.push(elapsed.as_secs_f64() * 1e6);
        }
    }
    let size = profile.to_string().len();
    let what = format!("fresh instance and reconcile, Profile of {size} bytes, median");
    figures.limited(&what, median(&mut times), "µs", 60.0);
    Ok(())
}
