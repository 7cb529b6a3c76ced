//! Types of custom resources, from the structural schema of their definition.

use serde_json::Value;

use super::{
    Atom, DEDUCED, List, ListKey, ListRelation, Map, Scalar, Schema, TypeRef, UNTYPED_ATOMIC,
    base_types,
};
use crate::builtin;

/// Why an `openAPIV3Schema` gives no types. The server would not establish
/// such a definition, or would treat its objects as untyped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema, or a part of it, is not an object.
    #[error("{path}: schema is not an object")]
    NotAnObject {
        /// Where in the schema.
        path: String,
    },
    /// `type` is none of the seven that OpenAPI knows.
    #[error("{path}: unrecognized type {found:?}")]
    UnknownType {
        /// Where in the schema.
        path: String,
        /// What stands there.
        found: String,
    },
    /// An array without `items`.
    #[error("{path}: items must be specified on arrays")]
    NoItems {
        /// Where in the schema.
        path: String,
    },
    /// A list or map type that does not exist, or a keyed list without keys.
    #[error("{path}: invalid {extension}")]
    BadExtension {
        /// Where in the schema.
        path: String,
        /// The extension at fault.
        extension: &'static str,
    },
}

impl Schema {
    /// The schema of a custom resource, from
    /// `spec.versions[].schema.openAPIV3Schema`.
    ///
    /// `apiVersion`, `kind` and `metadata` are added at the root and wherever
    /// a resource is embedded, whatever the schema says of them.
    pub fn from_crd(open_api_v3_schema: &Value) -> Result<Schema, SchemaError> {
        let mut builder = Builder {
            types: base_types(),
        };
        let root = builder.atom(open_api_v3_schema, false, &mut Vec::new())?;
        let root = builder.add(root);
        Ok(Schema {
            types: builder.types,
            root,
        })
    }
}

struct Builder {
    types: Vec<Atom>,
}

impl Builder {
    fn add(&mut self, atom: Atom) -> TypeRef {
        let index = self.types.len();
        self.types.push(atom);
        TypeRef(u32::try_from(index).unwrap_or(DEDUCED.0))
    }

    /// `open` says that an ancestor preserves unknown fields, which in the
    /// server's reading covers all its descendants.
    fn atom(
        &mut self,
        schema: &Value,
        open: bool,
        path: &mut Vec<String>,
    ) -> Result<Atom, SchemaError> {
        if !schema.is_object() {
            return Err(SchemaError::NotAnObject { path: at(path) });
        }
        let open = open || is_true(schema, "x-kubernetes-preserve-unknown-fields");
        let scalar = |scalar| Atom {
            scalar: Some(scalar),
            ..Atom::default()
        };
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("");
        let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
        Ok(match kind {
            "" => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema, open, path)?),
                map: Some(self.map(schema, open, path)?),
            },
            "object" => Atom {
                map: Some(self.map(schema, open, path)?),
                ..Atom::default()
            },
            "array" => {
                if schema.get("items").is_none() {
                    return Err(SchemaError::NoItems { path: at(path) });
                }
                Atom {
                    list: Some(self.list(schema, open, path)?),
                    ..Atom::default()
                }
            }
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            "string" if matches!(format, "" | "byte") => scalar(Scalar::String),
            "string" => scalar(Scalar::Untyped),
            other => {
                return Err(SchemaError::UnknownType {
                    path: at(path),
                    found: other.to_owned(),
                });
            }
        })
    }

    fn child(
        &mut self,
        schema: &Value,
        open: bool,
        path: &mut Vec<String>,
        step: &str,
    ) -> Result<TypeRef, SchemaError> {
        path.push(step.to_owned());
        let atom = self.atom(schema, open, path)?;
        path.pop();
        Ok(self.add(atom))
    }

    fn map(
        &mut self,
        schema: &Value,
        open: bool,
        path: &mut Vec<String>,
    ) -> Result<Map, SchemaError> {
        let atomic = match schema.get("x-kubernetes-map-type").map(Value::as_str) {
            None | Some(Some("granular")) => false,
            Some(Some("atomic")) => true,
            Some(_) => {
                return Err(SchemaError::BadExtension {
                    path: at(path),
                    extension: "x-kubernetes-map-type",
                });
            }
        };
        let mut map = Map {
            atomic,
            ..Map::default()
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let ty = self.child(property, open, path, name)?;
            map.fields.insert(name.clone(), ty);
        }
        // Before the next step: a resource has properties, so it is not open.
        if path.is_empty() || is_true(schema, "x-kubernetes-embedded-resource") {
            self.add_object_fields(&mut map);
        }
        map.element = match schema.get("additionalProperties") {
            None if open || map.fields.is_empty() => Some(DEDUCED),
            None | Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(DEDUCED),
            Some(additional) => Some(self.child(additional, open, path, "*")?),
        };
        Ok(map)
    }

    fn list(
        &mut self,
        schema: &Value,
        open: bool,
        path: &mut Vec<String>,
    ) -> Result<List, SchemaError> {
        let element = match schema.get("items") {
            Some(items) => self.child(items, open, path, "[]")?,
            None => UNTYPED_ATOMIC,
        };
        let bad = |extension| SchemaError::BadExtension {
            path: at(path),
            extension,
        };
        let relation = match schema.get("x-kubernetes-list-type").map(Value::as_str) {
            None | Some(Some("atomic")) => ListRelation::Atomic,
            Some(Some("set")) => ListRelation::Set,
            Some(Some("map")) => {
                let keys = schema
                    .get("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array)
                    .ok_or_else(|| bad("x-kubernetes-list-map-keys"))?;
                let fields = schema.pointer("/items/properties");
                ListRelation::Keyed(
                    keys.iter()
                        .filter_map(Value::as_str)
                        .map(|name| ListKey {
                            name: name.to_owned(),
                            default: fields
                                .and_then(|fields| fields.get(name)?.get("default").cloned())
                                .filter(|default| !default.is_null()),
                        })
                        .collect(),
                )
            }
            Some(_) => return Err(bad("x-kubernetes-list-type")),
        };
        Ok(List { element, relation })
    }

    fn add_object_fields(&mut self, map: &mut Map) {
        let string = self.add(Atom {
            scalar: Some(Scalar::String),
            ..Atom::default()
        });
        map.fields.insert("apiVersion".to_owned(), string);
        map.fields.insert("kind".to_owned(), string);
        let metadata = builtin::object_meta(&mut self.types);
        map.fields.insert("metadata".to_owned(), metadata);
    }
}

fn is_true(schema: &Value, extension: &str) -> bool {
    schema.get(extension).and_then(Value::as_bool) == Some(true)
}

fn at(path: &[String]) -> String {
    if path.is_empty() {
        "root".to_owned()
    } else {
        path.join(".")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::{Duplicates, field_set, validate};

    /// The fields of an object under a schema for its `spec`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn fields(spec: Value, object: Value) -> String {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::from_crd(&schema).unwrap();
        field_set(&schema, &json!({"spec": object})).to_fields_v1_json()
    }

    #[test]
    fn structure_decides_what_is_a_field() {
        let text = json!({"type": "string"});
        for (schema, object, expected) in [
            (
                json!({"type": "object"}),
                json!({"a": {"b": [1]}}),
                r#"{"f:spec":{"f:a":{".":{},"f:b":{}}}}"#,
            ),
            (
                json!({"type": "object", "additionalProperties": text}),
                json!({"a": "1"}),
                r#"{"f:spec":{"f:a":{}}}"#,
            ),
            (
                json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
                json!({"a": "1"}),
                r#"{"f:spec":{}}"#,
            ),
            (
                json!({"type": "array", "items": text}),
                json!(["a"]),
                r#"{"f:spec":{}}"#,
            ),
            (
                json!({"type": "array", "items": text, "x-kubernetes-list-type": "set"}),
                json!(["a"]),
                r#"{"f:spec":{"v:\"a\"":{}}}"#,
            ),
            (
                json!({
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["b", "a"],
                    "items": {"type": "object", "properties": {
                        "a": text, "b": {"type": "string", "default": "d"},
                    }},
                }),
                json!([{"a": "1"}]),
                r#"{"f:spec":{"k:{\"a\":\"1\",\"b\":\"d\"}":{".":{},"f:a":{}}}}"#,
            ),
            (
                json!({"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true}),
                json!({"kind": "X", "metadata": {"finalizers": ["f"]}, "data": {}}),
                r#"{"f:spec":{"f:data":{},"f:kind":{},"f:metadata":{"f:finalizers":{"v:\"f\"":{}}}}}"#,
            ),
        ] {
            assert_eq!(fields(schema, object), expected);
        }
    }

    #[test]
    fn unknown_fields_are_declared_nowhere_or_everywhere() {
        let nested = |extension: &str| {
            json!({"type": "object", "properties": {"spec": {
                "type": "object", extension: true,
                "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
            }}})
        };
        let object = json!({"kind": "X", "metadata": {"labels": {}}, "spec": {"a": {"new": 1}}});
        let check = |extension| {
            let schema = Schema::from_crd(&nested(extension)).unwrap();
            validate(&schema, &object, Duplicates::Refused).is_ok()
        };
        assert!(!check("x-other"));
        assert!(
            check("x-kubernetes-preserve-unknown-fields"),
            "it holds further down"
        );
    }

    #[test]
    fn broken_schemas_say_where() {
        for (spec, expected) in [
            (json!("x"), "spec: schema is not an object"),
            (json!({"type": "what"}), "spec: unrecognized type \"what\""),
            (
                json!({"type": "array"}),
                "spec: items must be specified on arrays",
            ),
            (
                json!({"type": "array", "items": {"type": "string", "x-kubernetes-map-type": "x", "properties": {}}}),
                "",
            ),
            (
                json!({"type": "array", "items": {}, "x-kubernetes-list-type": "bag"}),
                "spec: invalid x-kubernetes-list-type",
            ),
            (
                json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map"}),
                "spec: invalid x-kubernetes-list-map-keys",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "object", "x-kubernetes-map-type": "x"}}),
                "spec.*: invalid x-kubernetes-map-type",
            ),
        ] {
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            let text =
                Schema::from_crd(&schema).map_or_else(|error| error.to_string(), |_| String::new());
            assert_eq!(text, expected);
        }
    }
}
