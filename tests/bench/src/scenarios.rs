//! The scenarios of the plugins, as their authors run them.

use crate::figure::{Figures, median};
use crate::process::reeve;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const ROUNDS: usize = 5;
/// How often each is played, where the clusters that scenarios begin with, and threads that
/// wait for the last one, are to be a small part of it.
const TIMES: &str = "10";

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let (count, mut rates) = play("1")?;
    let what = format!("scenarios a second, {count} played once, median");
    figures.plain(&what, median(&mut rates), "/s");
    let (count, mut rates) = play(TIMES)?;
    let what = format!("scenarios a second, {count} played, median");
    figures.at_least(&what, median(&mut rates), "/s", 500.0);
    Ok(())
}

fn play(times: &str) -> Result<(usize, Vec<f64>)> {
    let mut rates = Vec::new();
    let mut count = 0;
    for round in 0..=ROUNDS {
        let output = reeve()?
            .args([
                "test",
                "plugins/quotas",
                "plugins/limitranges",
                "--repeat",
                times,
                "-o",
                "json",
            ])
            .output()?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        ensure!(output.status.success(), "a scenario failed: {report:#}");
        count = report["scenarios"].as_array().context("scenarios")?.len();
        let seconds = report["seconds"].as_f64().context("seconds")?;
        // The first round may build the components.
        if round > 0 {
            rates.push(count as f64 / seconds);
        }
    }
    Ok((count, rates))
}
