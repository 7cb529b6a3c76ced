//! Taking values of Secrets out of what a plugin is about to be shown.

use super::{Answer, Question, Recording, Told};
use crate::fields::is_secret;
use serde_json::Value;
use std::collections::BTreeSet;

/// What stands for a value that is not shown: `redacted`, in the base64 that values of
/// Secrets have. It is the same for all of them, so that it tells nothing.
const ENCODED: &str = "cmVkYWN0ZWQ=";

/// The same where a text stands.
const TEXT: &str = "redacted";

/// kubectl keeps a copy of all that it applied there.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Replaces the values of a Secret, and says where it did, as JSON Pointers in order.
/// Keys stay, as does all that is no value. Nothing is done to other objects.
pub fn redact(object: &mut Value) -> Vec<String> {
    if !is_secret(object) {
        return Vec::new();
    }
    let mut fields = Vec::new();
    for (field, value) in [("data", ENCODED), ("stringData", TEXT)] {
        // Of another shape than a Secret can have, all of it may be secret.
        let Some(found) = object.get_mut(field) else {
            continue;
        };
        match found {
            Value::Object(entries) => {
                for (key, entry) in entries {
                    *entry = Value::from(value);
                    fields.push(format!("/{field}/{}", escaped(key)));
                }
            }
            Value::Null => {}
            other => {
                *other = Value::from(value);
                fields.push(format!("/{field}"));
            }
        }
    }
    let copy = format!("/metadata/annotations/{}", escaped(LAST_APPLIED));
    if let Some(applied) = object.pointer_mut(&copy) {
        *applied = Value::from(TEXT);
        fields.push(copy);
    }
    fields.sort();
    fields
}

/// The Secrets of which values are in a recording, as plugins name them, in order: those
/// that were read and those that were returned.
pub fn secrets(recording: &Recording) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut look = |bytes: &[u8]| {
        let Ok(object) = serde_json::from_slice::<Value>(bytes) else {
            return;
        };
        let mut redacted = object.clone();
        // What is redacted already does not change by it.
        if redact(&mut redacted).is_empty() || redacted == object {
            return;
        }
        let text = |field: &str| object["metadata"][field].as_str();
        let name = text("name").unwrap_or_default();
        found.insert(match text("namespace") {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        });
    };
    look(recording.input.primary.bytes());
    for read in &recording.input.reads {
        match (&read.question, &read.told) {
            (Question::Object { .. }, Told::Object(Some(body))) => look(body.bytes()),
            (_, Told::Objects(bodies)) => bodies.iter().for_each(|body| look(body.bytes())),
            _ => {}
        }
    }
    if let Answer::Outcome(outcome) = &recording.answer {
        outcome.objects.iter().for_each(|bytes| look(bytes));
    }
    found.into_iter().collect()
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_go_and_all_else_stays() {
        let applied = json!({LAST_APPLIED: "canary", "a": "b"});
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "a", "annotations": applied, "labels": {"c": "d"}},
            "type": "Opaque",
            "data": {"x/y": "canary", "z": "canary"},
            "stringData": {"w": "canary"},
        });
        assert_eq!(
            redact(&mut secret),
            [
                "/data/x~1y",
                "/data/z",
                "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
                "/stringData/w",
            ]
        );
        assert!(!secret.to_string().contains("canary"), "{secret}");
        assert_eq!(secret["metadata"]["annotations"]["a"], "b");
        assert_eq!(secret["metadata"]["labels"]["c"], "d");
        assert_eq!(secret["type"], "Opaque");
        assert_eq!(secret["data"]["z"], "cmVkYWN0ZWQ=");
    }

    #[test]
    fn what_is_no_secret_is_left_alone() {
        for object in [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}),
            json!({"apiVersion": "example.com/v1", "kind": "Secret", "data": {"a": "b"}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
            json!(null),
        ] {
            let mut same = object.clone();
            assert_eq!(redact(&mut same), Vec::<String>::new());
            assert_eq!(same, object);
        }
        let mut odd = json!({"apiVersion": "v1", "kind": "Secret", "data": ["canary"]});
        assert_eq!(redact(&mut odd), ["/data"]);
        assert!(!odd.to_string().contains("canary"));
    }
}
