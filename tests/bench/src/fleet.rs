//! A fleet: many Profiles under `reeve run`, which is a process of its own, as is the
//! bare loop beside it.

mod agent;
mod audit;
pub(crate) mod change;
pub(crate) mod models;
pub(crate) mod platform;
mod probe;
pub(crate) mod restart;
pub(crate) mod thousand;
pub(crate) mod upgrade;

use anyhow::{Context as _, Result};

/// Variable with a part of one, by which all counts and times are made smaller: to
/// see whether it all works. The figures then say nothing.
const SCALE: &str = "REEVE_BENCH_SCALE";

/// What has just happened is over: statuses are told, what was freed is given back.
pub(crate) const SETTLING: std::time::Duration = std::time::Duration::from_secs(2);

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// So many, or as many of them as are asked for.
pub(crate) fn scaled(count: usize) -> Result<usize> {
    let Ok(scale) = std::env::var(SCALE) else {
        return Ok(count);
    };
    let scale: f64 = scale.parse().context(SCALE)?;
    // Whatever becomes of the fraction, there is something to measure.
    Ok(((count as f64 * scale) as usize).clamp(5, count))
}
