//! What the charts render.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
pub(crate) use reeve_real::{chart_of, helm};
use serde_json::Value;

/// Where the chart of the agent is.
pub(crate) fn chart() -> PathBuf {
    chart_of("reeve")
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
