//! PodDisruptionBudgets: kstatus's rule. How many disruptions one allows changes
//! all the time; that its controller has read it is what counts.

use super::object::Object;
use super::{Context, Health};

pub(super) fn budget(_: Object<'_>, _: &Context<'_>) -> Health {
    Health::healthy()
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, with};
    use serde_json::json;

    #[test]
    fn a_budget_has_to_be_observed() {
        let object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"generation": 2},
            "status": {"observedGeneration": 2, "disruptionsAllowed": 0, "conditions": [
                {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods"}]}});
        check(&object, Healthy, "");
        let behind = with(&object, &[("/status/observedGeneration", json!(1))]);
        let message = "its status is of generation 1, not yet of 2";
        check(&behind, Progressing, message);
        let new = with(&object, &[("/status", json!(null))]);
        check(&new, Progressing, "its controller has not seen it yet");
    }
}
