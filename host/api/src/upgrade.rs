//! What happens before a new version of a plugin takes over: its policy, and what it
//! found.

use crate::canary::CanaryPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a new version must not do, if it is to take the place of the running one
/// without a person. A new version is another component or another configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePolicy {
    /// What becomes of a shadow run: the new version is asked about every unit, and
    /// what it would do is counted; nothing of it is done. `Enforce` (the default):
    /// what is beyond the numbers below holds the new version until a person approves
    /// it, and the old one goes on. `Report`: it takes over, and the status says what
    /// was counted. `Off`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowMode>,
    /// How many objects the new version may delete: a number, or a percentage of the
    /// plugin's objects, which counts above 20 deletions. By default it is what
    /// `spec.limits` allows within an hour, both `deletionsPerHour` and
    /// `deletionPercent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_deleted: Option<IntOrString>,
    /// How many objects the new version may change: a number, or a percentage of the
    /// plugin's objects, which counts above 20 changes. Any by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_changed: Option<IntOrString>,
    /// For how many units the new version may fail or trap that the running one
    /// serves: a number, or a percentage of all units. Default `10%`. One that traps for
    /// all units never takes over, unless `shadow` is `Report` or `Off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failing: Option<IntOrString>,
    /// Units that get a new version before all others. By default all get it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryPolicy>,
}

/// What becomes of a shadow run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ShadowMode {
    /// It may hold the new version.
    #[default]
    Enforce,
    /// It is told.
    Report,
    /// It is not made.
    Off,
}

/// What the last shadow run found: what the new version would do beyond what the
/// running one would. The numbers are of the whole, and do not grow with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowStatus {
    /// Digest of the new version's component.
    pub digest: String,
    /// Digest of its configuration, as JSON.
    pub config_digest: String,
    /// What became of it: `Passed`, `Held` until a person approves it, `Approved` by a
    /// person, `Refused`, or `Reported` where the policy does not enforce it.
    pub verdict: String,
    /// Units that it was asked about: all whose primaries were there, and not being
    /// deleted.
    pub units: u32,
    /// Units for which nothing would be different.
    pub unchanged: u32,
    /// Units for which it fails and the running version does not.
    pub failing: u32,
    /// Those of them for which it traps or goes beyond a limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trapped: u32,
    /// Units for which both fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failing_alike: u32,
    /// Units for which it waits for something, or which are suspended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u32,
    /// Objects that it would make, and hooks that it would run.
    pub created: u32,
    /// Objects that it would change.
    pub changed: u32,
    /// Objects that it would delete.
    pub deleted: u32,
    /// Outside effects that it would make, make anew or take away.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub effects: u32,
    /// Objects that the plugin had in the cluster.
    pub owned: u32,
    /// Some of it, at most ten: deletions first, then failures, then changes.
    /// `reeve plugin diff` shows more, with fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
