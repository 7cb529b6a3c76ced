//! What is kept of an object before it is deleted or overwritten.

use serde_json::{Map, Value, json};

/// Bytes of JSON that are kept of one object. An API server refuses objects of
/// more than about 1.5 MiB; what is kept is compressed, and shares one object
/// with the account of what was done.
pub const MAX_CONTENT: usize = 1024 * 1024;

/// Entries that a namespace keeps, the newest. At a few KiB each this stays
/// within what one list answers.
pub const MAX_ENTRIES: usize = 1000;

/// Of these entries, so many at most are about overwrites: whoever fights over a
/// field must not push out what was deleted.
pub const MAX_OVERWRITES: usize = 250;

/// What is kept of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The object, without what was left out; none when that is all of it.
    pub content: Option<Value>,
    /// JSON Pointers of what was left out.
    pub omitted: Vec<String>,
}

/// What to keep of an object: all of it but who manages which field, and but the
/// data of Secrets, which must not be found anywhere else than in a Secret.
pub fn keep(object: &Value) -> Kept {
    let mut content = object.clone();
    let mut omitted = Vec::new();
    if let Some(metadata) = content.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let is_secret = content["apiVersion"] == "v1" && content["kind"] == "Secret";
    if is_secret && let Some(fields) = content.as_object_mut() {
        for field in ["data", "stringData"] {
            if fields.remove(field).is_some() {
                omitted.push(format!("/{field}"));
            }
        }
        // kubectl keeps a copy of all that it applied there.
        let annotation = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        if remove(&mut content, annotation) {
            omitted.push(annotation.to_owned());
        }
    }
    if content.to_string().len() > MAX_CONTENT {
        return Kept {
            content: None,
            omitted: vec![String::new()],
        };
    }
    Kept {
        content: Some(content),
        omitted,
    }
}

fn remove(object: &mut Value, pointer: &str) -> bool {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return false;
    };
    let key = key.replace("~1", "/").replace("~0", "~");
    object
        .pointer_mut(parent)
        .and_then(Value::as_object_mut)
        .is_some_and(|parent| parent.remove(&key).is_some())
}

/// An object to create from what was kept: without what the API server decides,
/// without its status, without owners (they may be gone, and it would go after
/// them), and without marks of ours, since it belongs to whoever restores it.
pub fn restorable(content: &Value) -> Value {
    let mut object = content.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let name = metadata.get("name").cloned();
        let namespace = metadata.get("namespace").cloned();
        let mut kept = Map::new();
        for (field, value) in [("name", name), ("namespace", namespace)] {
            if let Some(value) = value {
                kept.insert(field.to_owned(), value);
            }
        }
        for field in ["labels", "annotations"] {
            let Some(Value::Object(entries)) = metadata.remove(field) else {
                continue;
            };
            let entries: Map<String, Value> = entries
                .into_iter()
                .filter(|(key, _)| !crate::ownership::HOST_OWNED.contains(&key.as_str()))
                .collect();
            if !entries.is_empty() {
                kept.insert(field.to_owned(), Value::Object(entries));
            }
        }
        *metadata = kept;
    }
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec {
        // Given by the API server, and refused from anybody else.
        if content["kind"] == "Service" && content["apiVersion"] == "v1" {
            let headless = spec.get("clusterIP") == Some(&json!("None"));
            if !headless {
                spec.remove("clusterIP");
                spec.remove("clusterIPs");
            }
            spec.remove("healthCheckNodePort");
        }
        if content["kind"] == "PersistentVolumeClaim" && content["apiVersion"] == "v1" {
            // The volume may have gone with it; a claim on one that is gone never
            // binds.
            spec.remove("volumeName");
        }
    }
    object
}

/// `live` with the values that it had when `content` was kept: all of its fields but
/// the status, its labels and annotations as far as they are not ours, and nothing
/// that was left out of the content.
pub fn put_back(live: &Value, content: &Value, omitted: &[String]) -> Value {
    let mut object = live.clone();
    let kept = restorable(content);
    let (Some(fields), Some(kept)) = (object.as_object_mut(), kept.as_object()) else {
        return object;
    };
    let stays = |field: &str| {
        matches!(field, "apiVersion" | "kind" | "metadata" | "status")
            || omitted.contains(&format!("/{field}"))
    };
    fields.retain(|field, _| stays(field) || kept.contains_key(field));
    for (field, value) in kept.iter().filter(|(field, _)| !stays(field)) {
        // The API server gave these, and they still hold.
        match (field.as_str(), fields.get_mut(field), value) {
            ("spec", Some(Value::Object(spec)), Value::Object(value)) => {
                let given = [
                    "clusterIP",
                    "clusterIPs",
                    "healthCheckNodePort",
                    "volumeName",
                ];
                let before = content["spec"].as_object();
                spec.retain(|name, _| {
                    given.contains(&name.as_str())
                        && before.is_some_and(|before| before.contains_key(name))
                });
                spec.extend(value.clone());
            }
            _ => drop(fields.insert(field.clone(), value.clone())),
        }
    }
    let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    for kind in ["labels", "annotations"] {
        let mut entries = match metadata.remove(kind) {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        };
        entries.retain(|key, _| {
            let ours = crate::ownership::HOST_OWNED.contains(&key.as_str());
            let escaped = key.replace('~', "~0").replace('/', "~1");
            ours || omitted.contains(&format!("/metadata/{kind}/{escaped}"))
        });
        let kept = kept["metadata"][kind].as_object();
        entries.extend(
            kept.into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone())),
        );
        if !entries.is_empty() {
            metadata.insert(kind.to_owned(), Value::Object(entries));
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_overwritten_is_put_back_and_no_more() {
        let live = json!({
            "apiVersion": "v1", "kind": "Service", "status": {"x": 2},
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "9", "finalizers": ["f"],
                "labels": {"reeve.dev/plugin": "p", "app": "ours", "new": "x"},
                "ownerReferences": [{"uid": "o"}]},
            "spec": {"clusterIP": "10.0.0.1", "ports": [], "type": "NodePort"}, "extra": 1,
        });
        let content = json!({
            "apiVersion": "v1", "kind": "Service", "status": {"x": 1},
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "7",
                "labels": {"app": "theirs"}, "annotations": {"n": "1", "reeve.dev/applied": "x"}},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]},
        });
        let mut expected = live.clone();
        expected.as_object_mut().unwrap().remove("extra");
        expected["metadata"]["labels"] = json!({"reeve.dev/plugin": "p", "app": "theirs"});
        expected["metadata"]["annotations"] = json!({"n": "1"});
        expected["spec"] = json!({"clusterIP": "10.0.0.1", "ports": [{"port": 80}]});
        assert_eq!(put_back(&live, &content, &[]), expected);
    }

    #[test]
    fn what_was_not_kept_stays() {
        let secret = |data: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": "a"}, "data": {"k": data}})
        };
        let kept = keep(&secret("old"));
        let back = put_back(&secret("new"), &kept.content.unwrap(), &kept.omitted);
        assert_eq!(back, secret("new"));
    }

    #[test]
    fn secrets_leave_nothing_behind() {
        let canary = "c2VjcmV0LWNhbmFyeQ==";
        let kept = keep(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "a", "managedFields": [{"manager": "x"}], "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":\"{canary}\"}}"),
                "b": "c",
            }},
            "data": {"password": canary}, "stringData": {"password": canary}, "type": "Opaque",
        }));
        assert_eq!(
            kept.omitted,
            [
                "/data",
                "/stringData",
                "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"
            ]
        );
        let content = kept.content.unwrap();
        assert!(!content.to_string().contains(canary));
        assert_eq!(
            content,
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": "a", "annotations": {"b": "c"}}})
        );
    }

    #[test]
    fn what_is_too_large_is_left_out_whole() {
        let large = json!({"kind": "ConfigMap", "data": {"a": "x".repeat(MAX_CONTENT)}});
        let kept = keep(&large);
        assert_eq!((kept.content, kept.omitted), (None, vec![String::new()]));
        assert_eq!(keep(&json!(3)).content, Some(json!(3)));
    }

    #[test]
    fn a_restored_object_is_nobodys() {
        let restored = restorable(&json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2,
                "ownerReferences": [{"uid": "o"}], "finalizers": ["f"],
                "labels": {"reeve.dev/plugin": "p", "app": "x"},
                "annotations": {"reeve.dev/applied": "sha256:0"},
            },
            "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": []},
            "status": {"x": 1},
        }));
        assert_eq!(
            restored,
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "a", "namespace": "n", "labels": {"app": "x"}},
                "spec": {"ports": []}})
        );
        let headless = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
            "spec": {"clusterIP": "None"}});
        assert_eq!(restorable(&headless), headless);
    }
}
