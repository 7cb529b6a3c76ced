//! When plans are carried out, and plans that wait for a person.

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

/// What would be written for a unit, from beginning to end.
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
