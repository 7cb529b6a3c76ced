//! The fieldsV1 encoding of a field set.
//!
//! **Order.** The server writes a set in the order of its path elements:
//! `.` first, then fields, keys, values and indexes, keys compared by value
//! (port 80 before 443). For built-in kinds that text is stored and served as
//! it is. Custom resources pass through maps that Go's encoder sorts by text,
//! so there clients see `k:{"port":443}` before `k:{"port":80}`.
//! [`FieldSet::to_fields_v1_json`] gives the first; a `serde_json` map without
//! `preserve_order` gives the second, and with it the first.

use serde_json::{Map, Value};

use crate::encode;
use crate::path::{PathElement, PathError};
use crate::set::FieldSet;

/// Why a document is not a field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A node is neither an object nor null.
    #[error("a node of fieldsV1 is not an object")]
    NotAnObject,
    /// A key is not a path element.
    #[error("a key of fieldsV1 is not a path element")]
    Element(#[from] PathError),
}

impl FieldSet {
    /// Reads fieldsV1.
    ///
    /// Elements of an unknown type are dropped with all below them, as the
    /// server does, so that a newer server's sets can still be read.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, FieldsError> {
        Ok(read(fields)?.0)
    }

    /// The set as fieldsV1. See the module for the order of keys.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, member: bool) -> Map<String, Value> {
        let mut map = Map::new();
        if member {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, is_member, child) in self.nodes() {
            let below = child.map_or_else(Map::new, |child| child.to_map(is_member));
            map.insert(element.encode(), Value::Object(below));
        }
        map
    }

    /// The set as the text that the server stores, byte for byte.
    pub fn to_fields_v1_json(&self) -> String {
        let mut out = String::new();
        self.write(false, &mut out);
        out
    }

    fn write(&self, member: bool, out: &mut String) {
        out.push('{');
        let mut first = true;
        if member {
            out.push_str("\".\":{}");
            first = false;
        }
        for (element, is_member, child) in self.nodes() {
            if !first {
                out.push(',');
            }
            first = false;
            encode::string(out, &element.encode());
            out.push(':');
            match child {
                Some(child) => child.write(is_member, out),
                None => out.push_str("{}"),
            }
        }
        out.push('}');
    }

    /// Members and children of this level together, in order.
    fn nodes(&self) -> impl Iterator<Item = (&PathElement, bool, Option<&FieldSet>)> {
        let mut members = self.members.iter().peekable();
        let mut children = self.children.iter().peekable();
        std::iter::from_fn(move || match (members.peek(), children.peek()) {
            (None, None) => None,
            (Some(member), Some((element, _))) if *member == *element => {
                let (_, child) = children.next()?;
                members.next().map(|member| (member, true, Some(child)))
            }
            (Some(member), Some((element, _))) if *member < *element => {
                members.next().map(|member| (member, true, None))
            }
            (Some(_), None) => members.next().map(|member| (member, true, None)),
            _ => children
                .next()
                .map(|(element, child)| (element, false, Some(child))),
        })
    }
}

/// The set below a node, and whether the node itself is a member: it is when
/// it says so, or when nothing is below it.
fn read(node: &Value) -> Result<(FieldSet, bool), FieldsError> {
    let map = match node {
        Value::Object(map) => map,
        Value::Null => return Ok((FieldSet::new(), true)),
        _ => return Err(FieldsError::NotAnObject),
    };
    let mut set = FieldSet::new();
    let mut member = false;
    for (key, below) in map {
        if key == "." {
            member = true;
            continue;
        }
        let element = match PathElement::parse(key) {
            Ok(element) => element,
            Err(PathError::UnknownType(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let (child, child_is_member) = read(below)?;
        if !child.is_empty() {
            set.children.insert(element.clone(), child);
        }
        if child_is_member {
            set.members.insert(element);
        }
    }
    if set.is_empty() {
        member = true;
    }
    Ok((set, member))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_has_the_order_of_the_server() {
        let fields = json!({
            "f:spec": {
                "f:ports": {
                    ".": {},
                    "k:{\"port\":443,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                    "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                },
                "f:set": {"v:\"b\"": {}, "v:\"a\"": {}},
                "f:replicas": {},
            },
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        });
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(
            set.to_fields_v1_json(),
            r#"{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:replicas":{},"f:set":{"v:\"a\"":{},"v:\"b\"":{}}}}"#
        );
        assert_eq!(set.to_fields_v1(), fields);
    }

    #[test]
    fn a_node_without_children_is_a_member() {
        for (fields, members) in [
            (json!({}), 0),
            (json!(null), 0),
            (json!({"f:a": {}}), 1),
            (json!({"f:a": null}), 1),
            (json!({"f:a": {"f:b": {}}}), 1),
            (json!({"f:a": {".": {}, "f:b": {}}}), 2),
            (json!({".": {}, "f:a": {}}), 1),
            (json!({"f:a": {"z:unknown": {}}}), 1),
            (json!({"z:unknown": {"f:a": {}}}), 0),
        ] {
            let set = FieldSet::from_fields_v1(&fields).unwrap();
            assert_eq!(set.len(), members, "{fields}");
        }
    }

    #[test]
    fn garbage_is_refused() {
        for fields in [
            json!("x"),
            json!({"f:a": []}),
            json!({"a": {}}),
            json!({"k:x": {}}),
        ] {
            assert!(FieldSet::from_fields_v1(&fields).is_err(), "{fields}");
        }
    }
}
