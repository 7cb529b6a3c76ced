//! Who owns which field of an object.

use super::shown::{Shown, hides, is_said_elsewhere, is_secret, path_of};
use reeve_ssa::{ManagedFields, ManagedFieldsError, ManagerId, PathElement};
use serde_json::Value;

/// Somebody who owns a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldOwner {
    /// The field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: &'static str,
    /// The subresource through which it was written; empty for the object itself.
    pub subresource: String,
    /// When its fields last changed (RFC 3339).
    pub since: Option<String>,
}

/// One field with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedField {
    /// Its path, such as `spec.hard["requests.cpu"]`.
    pub path: String,
    /// Its value.
    pub value: Shown,
    /// Who owns it: several where they agree on the value, nobody where the API
    /// server set it by itself.
    pub owners: Vec<FieldOwner>,
}

/// Every field of an object that has a value, with its owners, in the order of
/// their paths. What the API server decides is left out; the status is not.
///
/// # Errors
///
/// When `metadata.managedFields` of the object is malformed.
pub fn owned_fields(object: &Value) -> Result<Vec<OwnedField>, ManagedFieldsError> {
    let managed = ManagedFields::of(object)?;
    let mut owners = Vec::new();
    let mut sets: Vec<Vec<Vec<PathElement>>> = Vec::new();
    for (id, owned) in managed.iter() {
        let ManagerId {
            manager,
            operation,
            subresource,
            ..
        } = id;
        owners.push(FieldOwner {
            manager: manager.clone(),
            operation: operation.as_str(),
            subresource: subresource.clone(),
            since: owned.time.clone(),
        });
        sets.push(owned.set.iter().map(|path| path.0).collect());
    }
    let below: Vec<Vec<&[PathElement]>> = sets
        .iter()
        .map(|paths| paths.iter().map(Vec::as_slice).collect())
        .collect();
    let mut walk = Walk {
        secret: is_secret(object),
        owners,
        way: Vec::new(),
        found: Vec::new(),
    };
    walk.descend(object, &below, &[]);
    Ok(walk.found)
}

struct Walk {
    secret: bool,
    owners: Vec<FieldOwner>,
    way: Vec<String>,
    found: Vec<OwnedField>,
}

impl Walk {
    /// `below` are the owned paths of each owner as far as they lie below this
    /// value, `above` those who own it as a whole.
    fn descend(&mut self, value: &Value, below: &[Vec<&[PathElement]>], above: &[usize]) {
        let said = self.way.as_slice() != ["status"] && is_said_elsewhere(&self.way);
        if said {
            return;
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, child) in fields {
                    let is = |element: &PathElement| *element == PathElement::field(name.clone());
                    self.child(name.clone(), child, below, above, is);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    let is = |element: &PathElement| names_item(element, index, item);
                    let name = match item["name"].as_str() {
                        Some(name) => format!("[name={name}]"),
                        None => format!("[{index}]"),
                    };
                    self.child(name, item, below, above, is);
                }
            }
            leaf => {
                let hidden = self.secret && hides(&self.way);
                let mut owners: Vec<FieldOwner> = above
                    .iter()
                    .map(|index| self.owners[*index].clone())
                    .collect();
                owners.sort();
                self.found.push(OwnedField {
                    path: path_of(&self.way),
                    value: if hidden {
                        Shown::Hidden
                    } else {
                        Shown::Value(leaf.clone())
                    },
                    owners,
                });
            }
        }
    }

    fn child(
        &mut self,
        name: String,
        child: &Value,
        below: &[Vec<&[PathElement]>],
        above: &[usize],
        is: impl Fn(&PathElement) -> bool,
    ) {
        let below: Vec<Vec<&[PathElement]>> = below
            .iter()
            .map(|paths| {
                let here = paths.iter().filter_map(|path| match path {
                    [first, rest @ ..] if is(first) => Some(rest),
                    _ => None,
                });
                here.collect()
            })
            .collect();
        // Who owns a map or a list without owning anything in it owns all of it.
        let whole = |paths: &Vec<&[PathElement]>| {
            !paths.is_empty() && paths.iter().all(|path| path.is_empty())
        };
        let here: Vec<usize> = (0..below.len())
            .filter(|index| whole(&below[*index]))
            .collect();
        let above = if here.is_empty() { above } else { &here };
        self.way.push(name);
        self.descend(child, &below, above);
        self.way.pop();
    }
}

/// Whether an element names the item at this place of a list.
fn names_item(element: &PathElement, index: usize, item: &Value) -> bool {
    match element {
        PathElement::Field(_) => false,
        PathElement::Key(keys) => keys.iter().all(|(name, key)| {
            // Numbers of managed fields may have become floats on the way.
            item.get(name).is_some_and(|value| {
                PathElement::Value(value.clone()) == PathElement::Value(key.clone())
            })
        }),
        PathElement::Value(value) => {
            PathElement::Value(item.clone()) == PathElement::Value(value.clone())
        }
        PathElement::Index(place) => usize::try_from(*place) == Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "a literal wherever it is called"
    )]
    fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "subresource": subresource,
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn lines(object: &Value) -> Vec<String> {
        let fields = owned_fields(object).unwrap().into_iter();
        fields
            .map(|field| {
                let owners: Vec<_> = field.owners.iter().map(|o| o.manager.as_str()).collect();
                let hidden = if field.value == Shown::Hidden {
                    " hidden"
                } else {
                    ""
                };
                format!("{}{hidden}: {}", field.path, owners.join(", "))
            })
            .collect()
    }

    #[test]
    fn each_field_has_its_owners() {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "uid": "u", "labels": {"x": "1", "y": "2"},
                "managedFields": [
                    entry("ours", "Apply", "", json!({
                        "f:metadata": {"f:labels": {"f:x": {}}},
                        "f:spec": {
                            "f:selector": {},
                            "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}},
                            "f:args": {"v:\"one\"": {}},
                        },
                    })),
                    entry("edit", "Update", "", json!({
                        "f:metadata": {"f:labels": {".": {}, "f:x": {}, "f:y": {}}},
                    })),
                    entry("kubelet", "Update", "status", json!({"f:status": {"f:phase": {}}})),
                ],
            },
            "spec": {
                "selector": {"a": "b"},
                "containers": [{"name": "c", "image": "i", "policy": "p"}],
                "args": ["one", "two"],
            },
            "status": {"phase": "Running"},
        });
        assert_eq!(
            lines(&object),
            [
                "metadata.labels.x: edit, ours",
                "metadata.labels.y: edit",
                "spec.args[0]: ours",
                "spec.args[1]: ",
                "spec.containers[name=c].image: ours",
                "spec.containers[name=c].name: ours",
                "spec.containers[name=c].policy: ",
                "spec.selector.a: ours",
                "status.phase: kubelet",
            ]
        );
    }

    #[test]
    fn secrets_keep_their_values() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
            "data": {"k": "dmFsdWU="}, "type": "Opaque",
        });
        assert_eq!(lines(&secret), ["data.k hidden: ", "type: "]);
    }

    #[test]
    fn malformed_entries_are_told() {
        let object = json!({"metadata": {"managedFields": [{"manager": "a"}]}});
        assert!(owned_fields(&object).is_err());
    }
}
