//! What the server itself notes in what it stores: times, and who asked.

use serde_json::{Map, Value, json};

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
pub(super) fn conditions_written(resource: &Resource, object: &mut Value, old: &Value, now: &str) {
    if !is_request(resource) {
        return;
    }
    let before = old.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = object.pointer_mut("/status/conditions");
    let conditions = conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        let has = |condition: &Map<String, Value>, field: &str| {
            condition.get(field).is_some_and(|value| !value.is_null())
        };
        if !has(condition, "lastUpdateTime") {
            condition.insert("lastUpdateTime".to_owned(), json!(now));
        }
        if has(condition, SINCE) {
            continue;
        }
        let mut before = before.into_iter().flatten().filter_map(Value::as_object);
        let same = before.find(|old| {
            ["type", "status"]
                .iter()
                .all(|field| old.get(*field) == condition.get(*field))
                && has(old, SINCE)
        });
        let since = same.and_then(|same| same.get(SINCE)).cloned();
        condition.insert(SINCE.to_owned(), since.unwrap_or_else(|| json!(now)));
    }
}

fn is_request(resource: &Resource) -> bool {
    resource.group == "certificates.k8s.io" && resource.plural == REQUESTS
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
