//! The JSON Schema of a configuration, as a table made by the compiler.
//!
//! [`config`](crate::config) writes the table for a type of a plugin; here are
//! the types that a field may have, and the text of the schema.

use std::collections::BTreeMap;

/// What a configuration, or a part of it, may be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Schema {
    /// Any JSON.
    Any,
    /// True or false.
    Boolean,
    /// A whole number from `minimum` to `maximum`.
    Integer {
        /// Smallest.
        minimum: i64,
        /// Largest.
        maximum: u64,
    },
    /// A number.
    Number,
    /// A text.
    String,
    /// One of these texts.
    OneOf {
        /// For people.
        description: &'static str,
        /// The texts.
        values: &'static [&'static str],
    },
    /// This, or null.
    Optional(&'static Schema),
    /// A list.
    Array(&'static Schema),
    /// A map from any text.
    Map(&'static Schema),
    /// These properties and no others. None is required.
    Object {
        /// For people.
        description: &'static str,
        /// The properties.
        properties: &'static [Property],
    },
}

/// A property of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Property {
    /// Its name in JSON.
    pub name: &'static str,
    /// For people.
    pub description: &'static str,
    /// What it may be.
    pub schema: &'static Schema,
}

/// A type that may stand in a configuration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a configuration",
    note = "put `#[reeve_sdk::config]` on a struct or an enum of your own"
)]
pub trait ConfigSchema {
    /// What `serde` accepts for it.
    const SCHEMA: &'static Schema;
}

macro_rules! scalars {
    ($($type:ty => $schema:expr),* $(,)?) => {
        $(impl ConfigSchema for $type {
            const SCHEMA: &'static Schema = &$schema;
        })*
    };
}

macro_rules! integers {
    ($($type:ty),* $(,)?) => {
        scalars!($($type => Schema::Integer {
            minimum: <$type>::MIN as i64,
            maximum: <$type>::MAX as u64,
        }),*);
    };
}

scalars!(
    bool => Schema::Boolean,
    String => Schema::String,
    f64 => Schema::Number,
    serde_json::Value => Schema::Any,
    crate::Json => Schema::Any,
);
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

impl<T: ConfigSchema> ConfigSchema for Option<T> {
    const SCHEMA: &'static Schema = &Schema::Optional(T::SCHEMA);
}

impl<T: ConfigSchema> ConfigSchema for Vec<T> {
    const SCHEMA: &'static Schema = &Schema::Array(T::SCHEMA);
}

impl<T: ConfigSchema> ConfigSchema for BTreeMap<String, T> {
    const SCHEMA: &'static Schema = &Schema::Map(T::SCHEMA);
}

impl Schema {
    /// The schema as one JSON text, draft 2020-12.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = String::from(r#"{"$schema":"https://json-schema.org/draft/2020-12/schema""#);
        self.write_keywords(&mut text);
        text.push('}');
        text.into_bytes()
    }

    /// Appends the keywords, each with a comma in front.
    fn write_keywords(&self, text: &mut String) {
        match self {
            Self::Any => {}
            Self::Boolean => text.push_str(r#","type":"boolean""#),
            Self::Integer { minimum, maximum } => {
                text.push_str(r#","type":"integer","minimum":"#);
                text.push_str(&minimum.to_string());
                text.push_str(r#","maximum":"#);
                text.push_str(&maximum.to_string());
            }
            Self::Number => text.push_str(r#","type":"number""#),
            Self::String => text.push_str(r#","type":"string""#),
            Self::OneOf {
                description,
                values,
            } => {
                write_description(text, description);
                text.push_str(r#","enum":["#);
                for (index, value) in values.iter().enumerate() {
                    separate(text, index);
                    write_string(text, value);
                }
                text.push(']');
            }
            Self::Optional(inner) => {
                text.push_str(r#","anyOf":["#);
                inner.write_object(text, "");
                text.push_str(r#",{"type":"null"}]"#);
            }
            Self::Array(items) => {
                text.push_str(r#","type":"array","items":"#);
                items.write_object(text, "");
            }
            Self::Map(values) => {
                text.push_str(r#","type":"object","additionalProperties":"#);
                values.write_object(text, "");
            }
            Self::Object {
                description,
                properties,
            } => {
                write_description(text, description);
                text.push_str(r#","type":"object","additionalProperties":false,"properties":{"#);
                for (index, property) in properties.iter().enumerate() {
                    separate(text, index);
                    write_string(text, property.name);
                    text.push(':');
                    property.schema.write_object(text, property.description);
                }
                text.push('}');
            }
        }
    }

    /// Appends the schema of a part. What is said of the place where it stands
    /// goes before what is said of its type.
    fn write_object(&self, text: &mut String, description: &str) {
        let mut inner = String::new();
        let described = match self {
            Self::Object { properties, .. } if !description.is_empty() => Self::Object {
                description: "",
                properties,
            },
            Self::OneOf { values, .. } if !description.is_empty() => Self::OneOf {
                description: "",
                values,
            },
            other => *other,
        };
        write_description(&mut inner, description);
        described.write_keywords(&mut inner);
        text.push('{');
        // Of any JSON there may be nothing to say.
        text.push_str(inner.strip_prefix(',').unwrap_or_default());
        text.push('}');
    }
}

fn separate(text: &mut String, index: usize) {
    if index > 0 {
        text.push(',');
    }
}

fn write_description(text: &mut String, description: &str) {
    if !description.is_empty() {
        text.push_str(r#","description":"#);
        write_string(text, description);
    }
}

/// Appends a JSON string. Names and doc comments hold no control characters but
/// line breaks and tabs.
fn write_string(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests;
