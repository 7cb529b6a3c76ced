//! The schema of a version as a typed tree, made once and used for every write.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::expression::Rules;
use super::pattern::{self, Pattern};
use crate::kinds::edit::{entries, flag, items, text};

/// A schema of a custom resource, or of a part of one.
#[derive(Debug, Default)]
pub struct Schema {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    pub(super) preserve_unknown: bool,
    pub(super) embedded: bool,
    pub(super) list_type: ListType,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Schema>>,
    pub(super) limits: Limits,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
    pub(super) rules: Option<Rules>,
    /// Whether this or a schema below has rules.
    pub(super) has_rules: bool,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any, or an integer or a string.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// How the items of a list are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// What an object may hold besides its properties.
#[derive(Debug, Default)]
pub(super) enum Additional {
    /// Nothing; what is there is pruned.
    #[default]
    None,
    /// Anything.
    Any,
    /// Values of a schema.
    Of(Box<Schema>),
}

/// The bounds on a value.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) required: Vec<String>,
    pub(super) values: Vec<Value>,
    pub(super) format: Option<String>,
    pub(super) pattern: Option<Pattern>,
    pub(super) maximum: Option<Number>,
    pub(super) minimum: Option<Number>,
    pub(super) exclusive_maximum: bool,
    pub(super) exclusive_minimum: bool,
    pub(super) multiple_of: Option<Number>,
    pub(super) max_length: Option<usize>,
    pub(super) min_length: Option<usize>,
    pub(super) max_items: Option<usize>,
    pub(super) min_items: Option<usize>,
    pub(super) max_properties: Option<usize>,
    pub(super) min_properties: Option<usize>,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A type that does not exist.
    #[error("unknown type {0:?}")]
    Type(String),
    /// A pattern that is no regular expression.
    #[error("invalid pattern {0:?}: {1}")]
    Pattern(String, String),
    /// A schema nested deeper than any object can be.
    #[error("nested more than {MAX_DEPTH} levels deep")]
    Depth,
}

/// Deeper schemas are refused rather than recursed into.
const MAX_DEPTH: usize = 100;

impl Schema {
    /// Parses the `openAPIV3Schema` of a version.
    ///
    /// # Errors
    ///
    /// When it is no schema that [`validate_schema`](super::validate_schema)
    /// would accept.
    pub fn parse(schema: &Value) -> Result<Self, SchemaError> {
        Self::parse_at(schema, 0)
    }

    fn parse_at(schema: &Value, depth: usize) -> Result<Self, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::Depth);
        }
        let nested = |schema: &Value| Self::parse_at(schema, depth + 1);
        let list = |field: &str| -> Result<Vec<Schema>, SchemaError> {
            items(schema, field).map(nested).collect()
        };
        let boxed = |field: &str| -> Result<Option<Box<Schema>>, SchemaError> {
            schema
                .get(field)
                .filter(|schema| schema.is_object())
                .map(|schema| nested(schema).map(Box::new))
                .transpose()
        };
        let properties = entries(schema, "properties")
            .map(|(name, schema)| Ok((name.clone(), nested(schema)?)))
            .collect::<Result<BTreeMap<_, _>, SchemaError>>()?;
        let additional = match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => Additional::None,
            Some(Value::Object(_)) => {
                boxed("additionalProperties")?.map_or(Additional::Any, Additional::Of)
            }
            Some(_) => Additional::Any,
        };
        let mut parsed = Schema {
            kind: kind(text(schema, "type"))?,
            nullable: flag(schema, "nullable"),
            int_or_string: flag(schema, "x-kubernetes-int-or-string"),
            preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
            list_type: list_type(schema),
            default: schema.get("default").cloned(),
            properties,
            additional,
            items: boxed("items")?,
            limits: Limits::parse(schema)?,
            all_of: list("allOf")?,
            any_of: list("anyOf")?,
            one_of: list("oneOf")?,
            not: boxed("not")?,
            rules: Rules::parse(schema),
            has_rules: false,
        };
        let below = parsed.properties.values().any(|schema| schema.has_rules)
            || parsed.items.as_ref().is_some_and(|schema| schema.has_rules)
            || matches!(&parsed.additional, Additional::Of(schema) if schema.has_rules);
        parsed.has_rules = parsed.rules.is_some() || below;
        Ok(parsed)
    }

    /// The schema of a field of an object.
    pub(super) fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(match &self.additional {
            Additional::Of(schema) => Some(schema),
            Additional::None | Additional::Any => None,
        })
    }
}

fn kind(name: &str) -> Result<Kind, SchemaError> {
    Ok(match name {
        "" => Kind::Any,
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        other => return Err(SchemaError::Type(other.to_owned())),
    })
}

fn list_type(schema: &Value) -> ListType {
    match text(schema, "x-kubernetes-list-type") {
        "set" => ListType::Set,
        "map" => ListType::Map(
            items(schema, "x-kubernetes-list-map-keys")
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect(),
        ),
        _ => ListType::Atomic,
    }
}

impl Limits {
    fn parse(schema: &Value) -> Result<Self, SchemaError> {
        let number = |field: &str| schema.get(field).and_then(Value::as_number).cloned();
        let count = |field: &str| {
            schema
                .get(field)
                .and_then(Value::as_u64)
                .and_then(|count| usize::try_from(count).ok())
        };
        let pattern = match text(schema, "pattern") {
            "" => None,
            given => Some(
                pattern::compile(given)
                    .map_err(|why| SchemaError::Pattern(given.to_owned(), why))?,
            ),
        };
        let format = text(schema, "format");
        Ok(Limits {
            required: items(schema, "required")
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            values: items(schema, "enum").cloned().collect(),
            format: (!format.is_empty()).then(|| format.to_owned()),
            pattern,
            maximum: number("maximum"),
            minimum: number("minimum"),
            exclusive_maximum: flag(schema, "exclusiveMaximum"),
            exclusive_minimum: flag(schema, "exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            max_items: count("maxItems"),
            min_items: count("minItems"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
        })
    }
}
