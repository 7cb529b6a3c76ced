//! The order in which objects can be made: what others need comes first.

use serde_json::Value;
use std::collections::HashMap;

/// An object, as owners are named: group, kind, namespace, name.
type Key = (String, String, String, String);

/// Puts definitions first, then namespaces, then what objects refer to, then the rest,
/// and every owner before what it owns. References to owners that are not among the
/// objects are taken out, since garbage collection would take their objects with
/// them. The answer is how many objects have lost one.
pub(super) fn arrange(objects: &mut Vec<Value>) -> usize {
    let keys: HashMap<Key, usize> = objects.iter().map(key).zip(0..).collect();
    let mut orphans = 0;
    let mut owners = Vec::with_capacity(objects.len());
    for object in objects.iter_mut() {
        let namespace = text(object, "/metadata/namespace").to_owned();
        let find = |owner: &Value| {
            let key = |namespace: &str| {
                let field = |name: &str| owner[name].as_str().unwrap_or_default().to_owned();
                let group = group(&field("apiVersion")).to_owned();
                (group, field("kind"), namespace.to_owned(), field("name"))
            };
            let found = keys.get(&key(&namespace)).or_else(|| keys.get(&key("")));
            found.copied()
        };
        let mut own = Vec::new();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(Value::Array(references)) = metadata.get_mut("ownerReferences")
        {
            let before = references.len();
            references.retain(|owner| match find(owner) {
                Some(found) => {
                    own.push(found);
                    true
                }
                None => false,
            });
            orphans += usize::from(references.len() < before);
            if references.is_empty() {
                metadata.remove("ownerReferences");
            }
        }
        owners.push(own);
    }
    let mut wanted: Vec<usize> = (0..objects.len()).collect();
    wanted.sort_by_cached_key(|at| objects.get(*at).map(rank));
    let mut order = Vec::with_capacity(objects.len());
    let mut seen = vec![false; objects.len()];
    for at in wanted {
        visit(at, &owners, &mut seen, &mut order);
    }
    let mut taken: Vec<Option<Value>> = objects.drain(..).map(Some).collect();
    objects.extend(order.into_iter().filter_map(|at| taken.get_mut(at)?.take()));
    orphans
}

/// Adds an object after its owners. Of owners in a circle, which nobody can make, the
/// first one comes first.
fn visit(at: usize, owners: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    // Chains of owners are as long as people make them: no recursion.
    let mut way = vec![(at, false)];
    while let Some((at, is_done)) = way.pop() {
        if is_done {
            order.push(at);
            continue;
        }
        match seen.get_mut(at) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        way.push((at, true));
        let of = owners.get(at).into_iter().flatten().rev();
        way.extend(of.map(|owner| (*owner, false)));
    }
}

fn key(object: &Value) -> Key {
    (
        group(text(object, "/apiVersion")).to_owned(),
        text(object, "/kind").to_owned(),
        text(object, "/metadata/namespace").to_owned(),
        text(object, "/metadata/name").to_owned(),
    )
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// What has to be there before others comes early, what holds others back comes late.
fn rank(object: &Value) -> (u8, String, Key) {
    let kind = text(object, "/kind");
    let rank = match kind {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        "PriorityClass" | "RuntimeClass" | "StorageClass" | "ServiceAccount" => 2,
        "ConfigMap" | "Secret" | "PersistentVolume" | "PersistentVolumeClaim" => 3,
        "Role" | "ClusterRole" => 4,
        "RoleBinding" | "ClusterRoleBinding" => 5,
        "LimitRange" | "PodDisruptionBudget" | "ResourceQuota" => 8,
        _ if text(object, "/apiVersion").starts_with("admissionregistration.k8s.io/") => 9,
        _ => 6,
    };
    (rank, kind.to_owned(), key(object))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, name: &str, owners: &[(&str, &str)]) -> Value {
        let api_version = match kind {
            "Deployment" | "ReplicaSet" => "apps/v1",
            _ => "v1",
        };
        let owners = owners.iter().map(|(kind, name)| {
            let api_version = match *kind {
                "Pod" | "Node" => "v1",
                // Owners are found in whichever version they are named.
                _ => "apps/v1beta2",
            };
            json!({"apiVersion": api_version, "kind": kind, "name": name})
        });
        let owners: Vec<Value> = owners.collect();
        let mut metadata = json!({"name": name, "namespace": "n"});
        if !owners.is_empty() {
            metadata["ownerReferences"] = json!(owners);
        }
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    }

    #[test]
    fn owners_come_first_and_missing_ones_are_forgotten() {
        let mut objects = vec![
            object("ResourceQuota", "q", &[]),
            object("ConfigMap", "c", &[("Deployment", "d")]),
            object("Pod", "p", &[("ReplicaSet", "r"), ("Node", "gone")]),
            object("Pod", "q", &[("Node", "gone")]),
            object("ReplicaSet", "r", &[("Deployment", "d")]),
            object("Deployment", "d", &[]),
            object("Namespace", "n", &[]),
            object("Pod", "a", &[("Pod", "b")]),
            object("Pod", "b", &[("Pod", "a")]),
        ];
        assert_eq!(arrange(&mut objects), 2);
        let names: Vec<String> = objects
            .iter()
            .map(|object| {
                format!(
                    "{} {}",
                    text(object, "/kind"),
                    text(object, "/metadata/name")
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                "Namespace n",
                "Deployment d",
                "ConfigMap c",
                "Pod b",
                "Pod a",
                "ReplicaSet r",
                "Pod p",
                "Pod q",
                "ResourceQuota q",
            ]
        );
        assert_eq!(objects[7]["metadata"].get("ownerReferences"), None);
        let owners = objects[6]["metadata"]["ownerReferences"].as_array();
        assert_eq!(owners.unwrap().len(), 1);
    }
}
