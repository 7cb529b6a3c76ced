//! A share of units that gets a new version first.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which units get a new version first, for how long, and how many may fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryPolicy {
    /// How many units get it first: a number, or a percentage of all; one at least.
    pub units: IntOrString,
    /// For how long, in seconds, before all others get it. Default 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 604_800))]
    pub seconds: Option<u32>,
    /// How many of them may fail that did not before: a number, or a percentage of them.
    /// With one more, the version before runs for all units again. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failing: Option<IntOrString>,
}

/// Where a version is that a share of units got first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// Digest of its component.
    pub digest: String,
    /// Digest of its configuration, as JSON.
    pub config_digest: String,
    /// `Progressing` while some units have it, `Passed` when all do, `Returned` when
    /// too many failed and none does, `RolledBack` when a person did not want it.
    pub phase: String,
    /// Units that got it first.
    pub units: u32,
    /// Those of them that failed and did not before.
    #[serde(default, skip_serializing_if = "crate::plugin::is_zero")]
    pub failing: u32,
    /// The highest rank of a unit that got it, hexadecimal: what finds them again.
    pub highest: String,
    /// When they got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// What it asks for, one thing a line, while some units have it. A version that asks
    /// for no more than this one, or than the one before it, needs no approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<String>,
    /// Why it was returned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
