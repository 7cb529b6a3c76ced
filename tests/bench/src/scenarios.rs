//! The scenarios of the plugins, as their authors run them.

use crate::figure::{Figures, median};
use crate::process::reeve;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const ROUNDS: usize = 5;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let mut rates = Vec::new();
    let mut count = 0;
    for round in 0..=ROUNDS {
        let output = reeve()?
            .args([
                "test",
                "plugins/quotas",
                "plugins/limitranges",
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
    let what = format!("scenarios a second, {count} scenarios, median");
    figures.at_least(&what, median(&mut rates), "/s", 300.0);
    Ok(())
}
