//! The chart of the plugins of Profiles: what it renders, that it grants just what the
//! plugins ask for, and that they work and take over as it installs them.

mod grants;
mod takeover;
mod values;

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::helm::template_of;

const CHART: &str = "profile-plugins";

/// The objects that it renders with these settings.
fn rendered(home: &Path, settings: &[&str]) -> Result<Vec<Value>> {
    template_of(CHART, home, settings)
}

/// The component of a plugin of the chart.
fn component_of(plugin: &str) -> &str {
    match plugin {
        "gitea-unclassified" | "gitea-protected-b" => "gitea",
        other => other,
    }
}
