//! What values of a type look like, without the prose: made from its schemas,
//! once, when it is first needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::{OBJECT_META, Type};

/// What a value may be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// Anything, or something that has rules of its own.
    Any,
    /// A text.
    Text,
    /// Bytes, as base64.
    Bytes,
    /// A moment.
    Time,
    Boolean,
    /// An integer of so many bits.
    Integer(u32),
    Number,
    /// An integer or a text.
    IntOrString,
    List(Box<Shape>),
    Map(Box<Shape>),
    /// The struct of this name.
    Struct(String),
}

/// The fields of a struct.
pub(super) type Fields = HashMap<String, Shape>;

/// A type with all that it consists of.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) root: String,
    structs: HashMap<String, Fields>,
    /// Names that stand for something else than a struct.
    aliases: HashMap<String, Shape>,
}

impl Shapes {
    /// The shapes of a built-in kind.
    pub(super) fn of(kind: &'static Type) -> &'static Shapes {
        type Key = (&'static str, &'static str, &'static str);
        static MADE: Mutex<BTreeMap<Key, &'static Shapes>> = Mutex::new(BTreeMap::new());
        let key = (kind.group, kind.version, kind.kind);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(key).or_insert_with(|| {
            let schemas = super::definitions(kind.add);
            Box::leak(Box::new(Shapes::new((kind.name)(), &schemas)))
        })
    }

    /// The shapes of `metadata`.
    pub(super) fn of_metadata() -> &'static Shapes {
        static MADE: LazyLock<Shapes> =
            LazyLock::new(|| Shapes::new(OBJECT_META.to_owned(), &super::metadata_schemas()));
        &MADE
    }

    fn new(root: String, schemas: &Map<String, Value>) -> Self {
        let mut shapes = Shapes {
            root,
            ..Shapes::default()
        };
        for (name, schema) in schemas {
            match schema.get("properties").and_then(Value::as_object) {
                Some(properties) => {
                    let fields = properties.iter();
                    let fields = fields.map(|(name, schema)| (name.clone(), shape(schema)));
                    shapes.structs.insert(name.clone(), fields.collect());
                }
                None => {
                    shapes.aliases.insert(name.clone(), shape(schema));
                }
            }
        }
        shapes
    }

    /// The fields of a struct.
    pub(super) fn fields(&self, name: &str) -> Option<&Fields> {
        self.structs.get(name)
    }

    /// What `shape` means, where it is only a name.
    pub(super) fn resolve<'a>(&'a self, shape: &'a Shape) -> &'a Shape {
        match shape {
            Shape::Struct(name) => self.aliases.get(name).unwrap_or(shape),
            other => other,
        }
    }
}

fn shape(schema: &Value) -> Shape {
    let reference = schema
        .get("$ref")
        .or_else(|| schema.pointer("/allOf/0/$ref"));
    if let Some(name) = reference.and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or_default();
        return Shape::Struct(name.to_owned());
    }
    let text = |field: &str| {
        schema
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match (text("type"), text("format")) {
        ("string", "byte") => Shape::Bytes,
        ("string", "date-time") => Shape::Time,
        ("string", _) => Shape::Text,
        ("boolean", _) => Shape::Boolean,
        ("integer", "int64") => Shape::Integer(64),
        ("integer", _) => Shape::Integer(32),
        ("number", _) => Shape::Number,
        (_, "int-or-string") => Shape::IntOrString,
        ("array", _) => Shape::List(Box::new(schema.get("items").map_or(Shape::Any, shape))),
        ("object", _) => match schema.get("additionalProperties") {
            Some(values) => Shape::Map(Box::new(shape(values))),
            None => Shape::Any,
        },
        _ => Shape::Any,
    }
}
