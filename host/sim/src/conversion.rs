//! From one version of an object to another.
//!
//! Objects are brought into the version that is asked for when they are read. Custom
//! resources are stored in the storage version of their definition, others in the version
//! that they were written in, or in that which their kind names. Versions of custom
//! resources differ in their fields, most others in nothing but their name.
//!
//! A definition may have a webhook for that. It is asked on behalf of clients: what the
//! server does by itself to such objects it does in the version that they are stored in.

mod shown;
pub(crate) mod webhook;

use reeve_ssa::Conversion;
use serde_json::{Value, json};

use crate::kinds::{self, Kind};
use crate::resource::{Nature, Resource};

pub(crate) use shown::Converter;

/// Makes `value` an object of the version that `resource` is, by its webhook where it has
/// one. The caller's thread waits for that.
///
/// # Errors
///
/// What the webhook says, or why it says nothing that counts.
pub(crate) fn convert(value: Value, resource: &Resource) -> Result<Value, String> {
    if let Nature::Custom(custom) = &resource.nature
        && let Some(converter) = &custom.converter
    {
        return converter.webhook.convert_now(&value, &resource.api_version);
    }
    Ok(rename_to(value, resource))
}

/// Makes `value` an object of the version that `resource` is, by leaving out what that does
/// not have.
pub(crate) fn rename_to(value: Value, resource: &Resource) -> Value {
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

/// Who is asked what an object of this resource is like in the version of a name, where that
/// is a webhook.
pub(crate) fn asked(
    resource: &Resource,
) -> Option<impl Fn(&Value, &str) -> Result<Value, String> + Sync> {
    let converter = match &resource.nature {
        Nature::Custom(custom) => custom.converter.as_ref()?,
        Nature::Builtin(_) => return None,
    };
    Some(|object: &Value, to: &str| converter.webhook.convert_now(object, to))
}

/// How objects of one built-in version become those of another one, and back, for those who
/// own fields of them in either. Who owns fields of an Event in the words of the other group
/// is forgotten, as by the server.
pub(crate) fn between(from: &Resource, to: &Resource) -> Option<Conversion<'static>> {
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
        _ => match from.conversion(to)? {
            Conversion::Known { there, .. } => Some(there),
            Conversion::Asked(_) => None,
        },
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
        let [v2, v1] = &resources(&definition, false).served[..] else {
            panic!("two versions are served");
        };
        let object = |version: &str, spec: Value| {
            let metadata = json!({"name": "w"});
            json!({"apiVersion": version, "kind": "W", "metadata": metadata, "spec": spec})
        };
        // What is sent in the other version loses what is not stored.
        let mut sent = object("x.io/v2", json!({"a": "x", "b": "y", "two": "2"}));
        v2.encode(&mut sent).unwrap();
        assert_eq!(sent, object("x.io/v1", json!({"a": "x", "one": "1"})));
        v1.encode(&mut sent).unwrap();
        assert_eq!(rename_to(sent.clone(), v1), sent);
        assert_eq!(rename_to(sent, v2), object("x.io/v2", json!({"a": "x"})));
    }
}
