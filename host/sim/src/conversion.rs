//! From one version of an object to another.
//!
//! Objects are stored in the version that they were written in, and are brought
//! into the version that is asked for when they are read. Versions of custom
//! resources, and most others, differ in nothing but their name.

use serde_json::{Value, json};

use crate::kinds;

/// Makes `value` an object of `api_version`.
pub(crate) fn convert(value: Value, api_version: &str) -> Value {
    let from = value["apiVersion"].as_str().unwrap_or_default();
    match (from, api_version, value["kind"].as_str()) {
        _ if from == api_version => value,
        ("v1", "events.k8s.io/v1", Some("Event")) => kinds::to_events_group(&value),
        ("events.k8s.io/v1", "v1", Some("Event")) => kinds::to_core_group(&value),
        _ => {
            let mut value = value;
            value["apiVersion"] = json!(api_version);
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_change_their_fields_and_others_only_their_version() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "message": "m", "reason": "r"});
        let events =
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "m", "reason": "r"});
        assert_eq!(convert(core.clone(), "events.k8s.io/v1"), events);
        assert_eq!(convert(events, "v1"), core);
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "note": "m"});
        assert_eq!(
            convert(widget, "example.com/v2"),
            json!({"apiVersion": "example.com/v2", "kind": "Widget", "note": "m"})
        );
    }
}
