//! What adds kinds to the API server: Argo CD's rules.

use super::object::{Condition, Object};
use super::{Context, Health};

/// A CustomResourceDefinition serves its kind once it is established. Discovery
/// is to be read again after that, before anything of the kind is applied.
pub(super) fn definition(object: Object<'_>, _: &Context<'_>) -> Health {
    if let Some(condition) = object.condition("Terminating").filter(|c| c.is_true()) {
        return Health::progressing(condition.says());
    }
    let names = object.condition("NamesAccepted").filter(|c| c.is_false());
    let schema = object
        .condition("NonStructuralSchema")
        .filter(|c| c.is_true());
    if let Some(condition) = names.or(schema) {
        return Health::degraded(condition.says());
    }
    match object.condition("Established") {
        Some(condition) if condition.is_true() => Health::healthy(),
        Some(condition) => Health::progressing(condition.says()),
        None => Health::progressing("it is not established yet"),
    }
}

pub(super) fn api_service(object: Object<'_>, _: &Context<'_>) -> Health {
    match object.condition("Available") {
        Some(condition) if Condition::is_true(condition) => Health::healthy(),
        Some(condition) => Health::progressing(condition.says()),
        None => Health::progressing("it is not available yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::check;
    use serde_json::{Value, json};

    #[test]
    fn a_definition_has_to_be_established() {
        let object = |conditions: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com", "generation": 1},
                "status": {"conditions": conditions}})
        };
        let accepted = json!({"type": "NamesAccepted", "status": "True"});
        let established = json!({"type": "Established", "status": "True"});
        for (conditions, status, message) in [
            (json!(null), Progressing, "it is not established yet"),
            (json!([accepted]), Progressing, "it is not established yet"),
            (json!([accepted, established]), Healthy, ""),
            (
                json!([accepted, {"type": "Established", "status": "False", "reason": "Installing"}]),
                Progressing,
                "Established: Installing",
            ),
            (
                json!([{"type": "NamesAccepted", "status": "False", "reason": "ListKindConflict"},
                    {"type": "Established", "status": "False"}]),
                Degraded,
                "NamesAccepted: ListKindConflict",
            ),
            (
                json!([accepted, established,
                    {"type": "NonStructuralSchema", "status": "True", "message": "spec: no type"}]),
                Degraded,
                "NonStructuralSchema: spec: no type",
            ),
            (
                json!([accepted, established, {"type": "Terminating", "status": "True"}]),
                Progressing,
                "Terminating",
            ),
        ] {
            check(&object(conditions), status, message);
        }
    }

    #[test]
    fn an_api_service_has_to_be_available() {
        for (conditions, status, message) in [
            (json!(null), Progressing, "it is not available yet"),
            (
                json!([{"type": "Available", "status": "True"}]),
                Healthy,
                "",
            ),
            (
                json!([{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]),
                Progressing,
                "Available: MissingEndpoints",
            ),
        ] {
            let object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "status": {"conditions": conditions}});
            check(&object, status, message);
        }
    }
}
