//! The chart of packs: what it renders, that it grants just what the parts of the plugin
//! ask for, and that they install packs as it installs them.

mod flux;
mod install;
mod left_out;
mod published;
mod schema;
mod values;

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::helm::template_of;

const CHART: &str = "packs";

/// The objects that it renders with these settings.
fn rendered(home: &Path, settings: &[&str]) -> Result<Vec<Value>> {
    template_of(CHART, home, settings)
}

/// All parts are of one component.
fn component_of(_: &str) -> &str {
    "packs"
}
