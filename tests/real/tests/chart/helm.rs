//! Runs the real Helm.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use reeve_real::parts::HELM;
use reeve_real::without_collecting;
use serde_json::Value;

/// Where the chart of the agent is.
pub(crate) fn chart() -> PathBuf {
    chart_of("reeve")
}

/// Where a chart of this repository is.
pub(crate) fn chart_of(name: &str) -> PathBuf {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts");
    charts.join(name)
}

/// Runs Helm, with a home of its own, and returns what it printed.
pub(crate) fn helm(home: &Path, kubeconfig: Option<&Path>, arguments: &[&str]) -> Result<String> {
    let program = HELM.get()?.join("helm");
    let mut command = Command::new(&program);
    without_collecting(&mut command).args(arguments);
    for (variable, folder) in [
        ("HELM_CACHE_HOME", "cache"),
        ("HELM_CONFIG_HOME", "config"),
        ("HELM_DATA_HOME", "data"),
    ] {
        command.env(variable, home.join(folder));
    }
    // None but the one that is given.
    let none = home.join("no-kubeconfig");
    command.env("KUBECONFIG", kubeconfig.unwrap_or(&none));
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "`helm {}` failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The objects that the chart renders with these settings, each like
/// `image.tag=1` or, as JSON, `tolerations=[]`.
pub(crate) fn template(home: &Path, settings: &[&str]) -> Result<Vec<Value>> {
    template_of("reeve", home, settings)
}

/// The objects that a chart of this repository renders with these settings.
pub(crate) fn template_of(name: &str, home: &Path, settings: &[&str]) -> Result<Vec<Value>> {
    let mut arguments = vec!["--namespace", "reeve-system"];
    for setting in settings {
        arguments.extend(["--set-json", setting]);
    }
    template_with(name, name, home, &arguments)
}

/// The objects that a chart of this repository renders as this release, with these
/// arguments.
pub(crate) fn template_with(
    name: &str,
    release: &str,
    home: &Path,
    arguments: &[&str],
) -> Result<Vec<Value>> {
    let chart = chart_of(name);
    let chart = chart.to_string_lossy();
    let mut all = vec!["template", release, &chart];
    all.extend(arguments);
    let text = helm(home, None, &all)?;
    serde_saphyr::from_multiple(&text).context("what was rendered is no YAML")
}
