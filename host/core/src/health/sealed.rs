//! SealedSecrets: Argo CD's rule. The Secret is there once it has been unsealed.

use super::object::Object;
use super::{Context, Health};

pub(super) fn sealed_secret(object: Object<'_>, _: &Context<'_>) -> Health {
    match object.condition("Synced") {
        Some(condition) if condition.is_true() => Health::healthy(),
        Some(condition) if condition.is_false() => Health::degraded(condition.says()),
        Some(condition) => Health::progressing(condition.says()),
        None => Health::progressing("it is not unsealed yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::check;
    use serde_json::json;

    #[test]
    fn a_secret_has_to_be_unsealed() {
        for (conditions, status, message) in [
            (json!(null), Progressing, "it is not unsealed yet"),
            (json!([{"type": "Synced", "status": "True"}]), Healthy, ""),
            (
                json!([{"type": "Synced", "status": "Unknown"}]),
                Progressing,
                "Synced",
            ),
            (
                json!([{"type": "Synced", "status": "False", "message": "no key could decrypt"}]),
                Degraded,
                "Synced: no key could decrypt",
            ),
        ] {
            let object = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
                "metadata": {"generation": 1},
                "status": {"observedGeneration": 1, "conditions": conditions}});
            check(&object, status, message);
        }
    }
}
