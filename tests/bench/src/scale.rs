//! How much is measured, and in what.

use anyhow::{Context as _, Result};
use std::time::Duration;

/// Variable with a part of one, by which all counts and times are made smaller: to
/// see whether it all works. The figures then say nothing.
const SCALE: &str = "REEVE_BENCH_SCALE";

/// What has just happened is over: statuses are told, what was freed is given back.
pub(crate) const SETTLING: Duration = Duration::from_secs(2);

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
