//! PersistentVolumeClaims.
//!
//! A claim whose class waits for the first consumer stays pending until a Pod
//! uses it. Were that Pod in a later wave, both would wait for each other, so
//! such a claim satisfies the gate (Argo CD issues 12840 and 29201 ask for this).

use super::object::Object;
use super::{Context, Health, HealthStatus, VolumeBinding};

pub(super) fn claim(object: Object<'_>, context: &Context<'_>) -> Health {
    match object.text("/status/phase") {
        Some("Bound") => Health::healthy(),
        Some("Lost") => Health::degraded("the volume that it was bound to is gone"),
        _ if context.volume_binding == Some(VolumeBinding::WaitForFirstConsumer) => Health::new(
            HealthStatus::Healthy,
            "it waits for the first Pod that uses it",
        ),
        _ => Health::progressing("it is not bound yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::VolumeBinding::{self, *};
    use super::super::testing::{check_in, context};
    use serde_json::{Value, json};

    #[test]
    fn pending_may_be_all_there_is_to_wait_for() {
        let pending = "it is not bound yet";
        let lost = "the volume that it was bound to is gone";
        let waits = "it waits for the first Pod that uses it";
        let cases: [(Value, Option<VolumeBinding>, _, _); 8] = [
            (json!("Bound"), None, Healthy, ""),
            (json!("Bound"), Some(WaitForFirstConsumer), Healthy, ""),
            (json!("Pending"), None, Progressing, pending),
            (json!("Pending"), Some(Immediate), Progressing, pending),
            (json!("Pending"), Some(WaitForFirstConsumer), Healthy, waits),
            (json!(null), Some(WaitForFirstConsumer), Healthy, waits),
            (json!("Lost"), Some(WaitForFirstConsumer), Degraded, lost),
            (json!(7), None, Progressing, pending),
        ];
        for (phase, binding, status, message) in cases {
            let object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "spec": {"storageClassName": "local"}, "status": {"phase": phase}});
            let mut context = context();
            context.volume_binding = binding;
            check_in(&object, &context, status, message);
        }
    }
}
