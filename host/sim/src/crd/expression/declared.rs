//! The types that a schema declares to its rules.

use serde_json::Value;

use super::values::escaped;
use crate::cel::{RESERVED, Type};
use crate::kinds::edit::{entries, flag, text};

/// The type of the values of a schema; none where rules cannot see them. A resource has
/// the fields that each has, whatever the schema says.
pub(in crate::crd) fn declared(schema: &Value, is_resource: bool) -> Option<Type> {
    named(schema, is_resource, "self")
}

fn named(schema: &Value, is_resource: bool, name: &str) -> Option<Type> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Some(Type::Dyn);
    }
    let below = |schema: &Value, part: &str| {
        let is_resource = flag(schema, "x-kubernetes-embedded-resource");
        named(schema, is_resource, &format!("{name}.{part}"))
    };
    let ty = match (text(schema, "type"), text(schema, "format")) {
        ("array", _) => Type::list(below(schema.get("items")?, "@idx")?),
        ("object", _) => {
            let additional = schema.get("additionalProperties");
            if let Some(values) = additional.filter(|values| values.is_object()) {
                return Some(Type::map(below(values, "@elem")?));
            }
            let own = entries(schema, "properties");
            let own =
                own.filter(|(field, _)| !is_resource || !OF_RESOURCES.contains(&field.as_str()));
            let own = own.filter_map(|(field, schema)| {
                let ty = below(schema, field)?;
                let plain = RESERVED.contains(&field.as_str()).then(|| field.clone());
                let names = [Some(escaped(field)?), plain].into_iter().flatten();
                Some(names.map(move |name| (name, ty.clone())))
            });
            let own: Vec<(String, Type)> = own.flatten().collect();
            let of_resources = is_resource.then(of_resources).into_iter().flatten();
            let fields = own.iter().map(|(field, ty)| (field.as_str(), ty.clone()));
            Type::object(name, fields.chain(of_resources))
        }
        ("string", "byte") => Type::Bytes,
        ("string", "duration") => Type::Duration,
        ("string", "date" | "date-time") => Type::Timestamp,
        ("string", _) => Type::Text,
        ("boolean", _) => Type::Bool,
        ("number", _) => Type::Double,
        ("integer", _) => Type::Int,
        _ => return None,
    };
    Some(ty)
}

const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn of_resources() -> [(&'static str, Type); 3] {
    let names = [("name", Type::Text), ("generateName", Type::Text)];
    let metadata = Type::object("self.metadata", names);
    [
        ("apiVersion", Type::Text),
        ("kind", Type::Text),
        ("metadata", metadata),
    ]
}
