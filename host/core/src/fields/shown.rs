//! What of a field may be shown.

use crate::ownership::HOST_OWNED;
use serde_json::Value;

/// One side of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// It is not there.
    Absent,
    /// It is there, and nobody is to see its value.
    Hidden,
    /// Its value.
    Value(Value),
}

/// kubectl keeps a copy of all that it applied there.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether an object is a Secret.
pub fn is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "Secret"
}

/// Whether a field of a Secret, named by its way from the root, holds what is
/// secret.
pub(super) fn hides(way: &[String]) -> bool {
    match way {
        [field, ..] if field == "data" || field == "stringData" => true,
        [metadata, annotations, name] => {
            metadata == "metadata" && annotations == "annotations" && name == LAST_APPLIED
        }
        _ => false,
    }
}

/// Fields of `metadata` that the API server decides.
const DECIDED: [&str; 7] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "deletionTimestamp",
];

/// Whether a field, named by its way from the root, says nothing about what an
/// object is meant to be: its name, and what the API server decides.
pub(super) fn is_said_elsewhere(way: &[String]) -> bool {
    match way {
        [field] => matches!(field.as_str(), "apiVersion" | "kind" | "status"),
        [metadata, field] if metadata == "metadata" => {
            DECIDED.contains(&field.as_str()) || matches!(field.as_str(), "name" | "namespace")
        }
        _ => false,
    }
}

/// Whether a path of a [`super::FieldChange`] is a mark of ownership that the host
/// puts on each object: of interest to few.
pub fn is_bookkeeping(path: &str) -> bool {
    let mark = |place: &str| {
        path.strip_prefix(place)
            .and_then(|rest| rest.strip_suffix("\"]"))
            .is_some_and(|name| HOST_OWNED.contains(&name))
    };
    mark("metadata.labels[\"")
        || mark("metadata.annotations[\"")
        || path.starts_with("metadata.ownerReferences")
}

/// The path of a field, as people write it: `spec.hard["requests.cpu"]`.
pub(super) fn path_of(way: &[String]) -> String {
    let mut path = String::new();
    for step in way {
        let plain = !step.is_empty()
            && step
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if step.starts_with('[') {
            path.push_str(step);
        } else if plain {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(step);
        } else {
            path.push_str(&format!("[{}]", Value::String(step.clone())));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_read() {
        for (way, path) in [
            (vec!["spec", "hard", "pods"], "spec.hard.pods"),
            (
                vec!["spec", "hard", "requests.cpu"],
                "spec.hard[\"requests.cpu\"]",
            ),
            (
                vec!["spec", "containers", "[name=app]", "image"],
                "spec.containers[name=app].image",
            ),
            (vec!["data", "a\"b"], "data[\"a\\\"b\"]"),
        ] {
            let way: Vec<String> = way.into_iter().map(str::to_owned).collect();
            assert_eq!(path_of(&way), path);
        }
    }

    #[test]
    fn marks_of_ownership_are_bookkeeping() {
        for (path, expected) in [
            ("metadata.labels[\"reeve.dev/plugin\"]", true),
            ("metadata.annotations[\"reeve.dev/applied\"]", true),
            ("metadata.ownerReferences[0].uid", true),
            ("metadata.annotations[\"reeve.dev/prune\"]", false),
            ("metadata.labels.app", false),
        ] {
            assert_eq!(is_bookkeeping(path), expected, "{path}");
        }
    }
}
