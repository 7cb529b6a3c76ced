//! When plans are carried out, and plans that wait for a person.

use crate::plugin::is_zero;
use crate::unit::PrimaryReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When what a plugin wants is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SyncMode {
    /// At once, and drift is repaired.
    #[default]
    Auto,
    /// When a person has approved the plan that the `Unit` shows, the repair of
    /// drift included.
    OnRequest,
    /// Never: plans are made and shown, and nothing is written.
    PlanOnly,
}

/// What would be done for a unit, from beginning to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// What approves exactly this plan, once: as the value of the annotation
    /// `reeve.dev/approve-plan` on this object. Any other plan has another.
    pub id: String,
    /// Objects that would be created, hooks among them.
    #[serde(default)]
    pub create: u32,
    /// Objects that would be changed, those of others to which fields are
    /// contributed among them.
    #[serde(default)]
    pub change: u32,
    /// Objects that would be deleted.
    #[serde(default)]
    pub delete: u32,
    /// The first fifty of these steps, in order.
    #[serde(default)]
    pub steps: Vec<PlanStep>,
    /// Effects outside of the cluster that would be made or taken away besides, the
    /// first fifty of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<PlanEffect>,
    /// How many effects that are in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub effect_count: u32,
}

/// An effect outside of the cluster in a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanEffect {
    /// `Apply` (it would be made, or made anew) or `Retire` (it would be taken away).
    pub verb: String,
    /// Name of the action.
    pub name: String,
    /// Its key among those of the primary.
    pub key: String,
}

/// One step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// `Create`, `Change`, `Repair` (somebody changed it), `Run` (a hook),
    /// `Contribute`, `Release` (fields are given up) or `Delete`.
    pub action: String,
    /// The object; its uid where it exists.
    pub object: PrimaryReference,
}
