//! What the server itself notes in what it stores: times, and who asked.

use serde_json::{Value, json};

use crate::identity::Identity;
use crate::kinds::{self, edit::present};
use crate::resource::Resource;

const PODS: &str = "pods";
const VOLUMES: &str = "persistentvolumes";
const SERVICES: &str = "apiservices.apiregistration.k8s.io";
/// Requests for certificates.
const REQUESTS: &str = "certificatesigningrequests";
/// Since when a condition holds.
const SINCE: &str = "lastTransitionTime";
/// When a volume came into its phase.
const TRANSITION: &str = "lastPhaseTransitionTime";

/// Notes when an object was made.
pub(super) fn created(resource: &Resource, object: &mut Value, now: &str) {
    match &*resource.table {
        VOLUMES => object["status"][TRANSITION] = json!(now),
        SERVICES => kinds::mark_local_available(object, now),
        PODS if present(&object["spec"], "schedulingGates").is_some() => {
            object["status"]["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": null,
                "lastTransitionTime": now,
            }]);
        }
        _ => {}
    }
}

/// Notes when a write of the status changed what is dated there.
pub(super) fn status_written(resource: &Resource, object: &mut Value, old: &Value, now: &str) {
    let (new, old) = (&object["status"], &old["status"]);
    // Who says another time is believed.
    let dated = new[TRANSITION] != old[TRANSITION] && !new[TRANSITION].is_null();
    if *resource.table == *VOLUMES && new["phase"] != old["phase"] && !dated {
        object["status"][TRANSITION] = json!(now);
    }
}

/// Dates the conditions of a CertificateSigningRequest that say not when they were written,
/// or since when they hold.
pub(super) fn conditions_written(
    resource: &Resource,
    object: &mut Value,
    old: &Value,
    approval: bool,
    now: &str,
) {
    if resource.plural != REQUESTS {
        return;
    }
    let before = old.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = object.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if approval && condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = json!(now);
        }
        if !condition[SINCE].is_null() {
            continue;
        }
        let same = before
            .into_iter()
            .flatten()
            .find(|old| old["type"] == condition["type"] && old["status"] == condition["status"]);
        condition[SINCE] = match same {
            Some(same) => same[SINCE].clone(),
            None => json!(now),
        };
    }
}

/// Says in a CertificateSigningRequest who made it, whatever was sent.
pub(super) fn requested(resource: &Resource, object: &mut Value, user: &Identity) {
    if (resource.group.as_str(), resource.plural.as_str()) != ("certificates.k8s.io", REQUESTS) {
        return;
    }
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let said = [
        ("username", json!(user.name)),
        ("uid", json!(user.uid)),
        ("groups", json!(user.groups)),
        ("extra", json!(user.extra)),
    ];
    for (field, value) in said {
        let empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => true,
        };
        if empty {
            spec.remove(field);
        } else {
            spec.insert(field.to_owned(), value);
        }
    }
}
