//! What is told of a pack that stands in nobody's way.

use super::is_of;
use crate::output::on_one_line;
use crate::pack::parts::Part;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use reeve_api::{ConditionType, Unit};
use serde_json::{Value, json};

/// A condition in which a part of the plugin, or the agent, tells that something is not as
/// somebody will have meant it. All else is in force.
pub(in crate::pack) struct Warning {
    pub(in crate::pack) plugin: String,
    pub(in crate::pack) condition: String,
    pub(in crate::pack) message: String,
}

impl Warning {
    /// What is told of a primary, by plugin and condition.
    pub(super) fn all(units: &[Unit], parts: &[Part], kind: &str, name: Option<&str>) -> Vec<Self> {
        let units = units.iter().filter(|unit| is_of(unit, parts, kind, name));
        let mut warnings: Vec<Self> = units.flat_map(Self::of).collect();
        warnings.sort_by(|one, other| {
            (&one.plugin, &one.condition).cmp(&(&other.plugin, &other.condition))
        });
        warnings
    }

    fn of(unit: &Unit) -> impl Iterator<Item = Self> {
        let status = unit.status.iter();
        let conditions = status.flat_map(|status| &status.conditions);
        conditions.filter(|one| warns(one)).map(|condition| Self {
            plugin: unit.spec.plugin.clone(),
            condition: condition.type_.clone(),
            message: on_one_line(&condition.message),
        })
    }

    pub(super) fn json(&self) -> Value {
        json!({"plugin": self.plugin, "condition": self.condition, "message": self.message})
    }
}

/// Whether a condition tells of something amiss beside what `Ready` is about. Those of plugins
/// say with True that all is well.
fn warns(condition: &Condition) -> bool {
    let is = |kind: ConditionType| condition.type_ == kind.as_str();
    if is(ConditionType::Contested) {
        return condition.status == "True";
    }
    let is_of_ready = [
        ConditionType::Ready,
        ConditionType::Reconciling,
        ConditionType::Stalled,
    ];
    condition.status == "False" && !is_of_ready.into_iter().any(is)
}
