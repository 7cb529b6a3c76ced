//! Runs the real Helm on the charts of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::parts::HELM;
use crate::server::without_collecting;

/// Where a chart of this repository is.
pub fn chart_of(name: &str) -> PathBuf {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts");
    charts.join(name)
}

/// Runs Helm, with a home of its own, and returns what it printed.
///
/// # Errors
///
/// When it cannot be built, or fails; the message has its own.
pub fn helm(home: &Path, kubeconfig: Option<&Path>, arguments: &[&str]) -> Result<String> {
    let program = HELM.get()?.join("helm");
    let mut command = Command::new(&program);
    without_collecting(&mut command).args(arguments);
    for (variable, folder) in [
        ("HELM_CACHE_HOME", "cache"),
        ("HELM_CONFIG_HOME", "config"),
        ("HELM_DATA_HOME", "data"),
        ("KUBECACHEDIR", "discovery"),
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
