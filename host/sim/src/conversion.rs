//! From one version of an object to another.
//!
//! Objects are brought into the version that is asked for when they are read. Custom
//! resources are stored in the storage version of their definition, others in the version
//! that they were written in, or in that which their kind names. Versions of custom
//! resources differ in their fields, most others in nothing but their name.

use reeve_ssa::Conversion;
use serde_json::{Value, json};

use crate::kinds::{self, Kind};
use crate::resource::{Nature, Resource};

/// Makes `value` an object of the version that `resource` is.
pub(crate) fn convert(value: Value, resource: &Resource) -> Value {
    if value["apiVersion"] == *resource.api_version {
        return value;
    }
    let mut value = rename(value, &resource.api_version);
    if let Nature::Custom(custom) = &resource.nature {
        custom.trim(&mut value);
    }
    value
}

/// Gives `value` another version, and what has other fields in it.
fn rename(mut value: Value, api_version: &str) -> Value {
    let kind = value["kind"].as_str().unwrap_or_default();
    let of = |api_version: &str| {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        kinds::by_kind(group, version, kind)
    };
    let from = value["apiVersion"].as_str().unwrap_or_default();
    if let (Some(from), Some(to)) = (of(from), of(api_version))
        && let Some(shown) = shown(from, to)
    {
        return shown(&value);
    }
    value["apiVersion"] = json!(api_version);
    value
}

/// How objects of one version become those of another one, and back, for those who own
/// fields of them in either. Who owns fields of an Event in the words of the other group
/// is forgotten, as by the server.
pub(crate) fn between(from: &Resource, to: &Resource) -> Option<Conversion> {
    match (&from.nature, &to.nature) {
        (Nature::Builtin(from), Nature::Builtin(to)) => from.conversion(to),
        _ => None,
    }
}

/// How an object of one kind is shown as another, where the two differ in their fields.
fn shown(from: &Kind, to: &Kind) -> Option<fn(&Value) -> Value> {
    match (from.kind, from.group, to.group) {
        ("Event", "", "events.k8s.io") => Some(kinds::to_events_group),
        ("Event", "events.k8s.io", "") => Some(kinds::to_core_group),
        _ => from.conversion(to).map(|conversion| conversion.there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::definition::resources;

    #[test]
    fn events_change_their_fields() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "message": "m", "reason": "r"});
        let events =
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "m", "reason": "r"});
        assert_eq!(rename(core.clone(), "events.k8s.io/v1"), events);
        let mut core = core;
        core["reportingComponent"] = json!("");
        core["reportingInstance"] = json!("");
        assert_eq!(rename(events, "v1"), core);
    }

    #[test]
    fn custom_resources_have_the_fields_of_the_version_that_is_asked_for() {
        let schema = |fields: Value| {
            let spec = json!({"type": "object", "properties": fields});
            json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})
        };
        let text = json!({"type": "string"});
        let of_v1 = schema(json!({"a": text, "one": {"type": "string", "default": "1"}}));
        let of_v2 =
            schema(json!({"a": text, "b": text, "two": {"type": "string", "default": "2"}}));
        let definition = json!({"spec": {
            "group": "x.io",
            "names": {"plural": "ws", "kind": "W"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": of_v1},
                {"name": "v2", "served": true, "storage": false, "schema": of_v2},
            ],
        }});
        let [v2, v1] = &resources(&definition)[..] else {
            panic!("two versions are served");
        };
        let object = |version: &str, spec: Value| {
            let metadata = json!({"name": "w"});
            json!({"apiVersion": version, "kind": "W", "metadata": metadata, "spec": spec})
        };
        // What is sent in the other version loses what is not stored.
        let mut sent = object("x.io/v2", json!({"a": "x", "b": "y", "two": "2"}));
        v2.encode(&mut sent);
        assert_eq!(sent, object("x.io/v1", json!({"a": "x", "one": "1"})));
        v1.encode(&mut sent);
        assert_eq!(convert(sent.clone(), v1), sent);
        assert_eq!(convert(sent, v2), object("x.io/v2", json!({"a": "x"})));
    }
}
