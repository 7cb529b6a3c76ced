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
