//! How large the values of a schema may be, as the estimate of costs takes it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::values::escaped;
use crate::cel::Extent;
use crate::kinds::edit::{entries, flag, items, text};

/// How large the values of a schema may be; none where rules cannot see them. A resource
/// has the fields that each has.
pub(in crate::crd) fn extent(schema: &Value, is_resource: bool) -> Option<Extent> {
    let longest = whole(schema, "maxLength").map(|length| length.max(0));
    // A character is up to four bytes.
    let in_bytes = longest.map(|length| length.wrapping_mul(4));
    if flag(schema, "x-kubernetes-int-or-string") {
        return Some(Extent::scalar(1, in_bytes.unwrap_or(Extent::unlimited())));
    }
    let extent = match (text(schema, "type"), text(schema, "format")) {
        ("array", _) => Extent::list(below(schema.get("items")?)?, whole(schema, "maxItems")),
        ("object", _) => {
            let additional = schema.get("additionalProperties");
            if let Some(values) = additional.filter(|values| values.is_object()) {
                return Some(Extent::map(below(values)?, whole(schema, "maxProperties")));
            }
            object(schema, is_resource)
        }
        ("string", "byte") => Extent::scalar(2, longest.unwrap_or(Extent::unlimited())),
        ("string", "duration") => Extent::scalar(3, 32),
        ("string", "date") => Extent::scalar(12, 12),
        ("string", "date-time") => Extent::scalar(21, 32),
        ("string", _) => {
            let known = items(schema, "enum").filter_map(Value::as_str);
            let known = known.map(|text| i64::try_from(text.len()).unwrap_or(i64::MAX));
            let of_known = items(schema, "enum")
                .next()
                .map(|_| known.max().unwrap_or(0));
            let most = in_bytes.or(of_known).unwrap_or(Extent::unlimited());
            Extent::scalar(2, most)
        }
        ("boolean", _) => Extent::scalar(4, 0),
        ("number" | "integer", _) => Extent::scalar(1, 0),
        _ => return None,
    };
    Some(extent)
}

fn below(schema: &Value) -> Option<Extent> {
    extent(schema, flag(schema, "x-kubernetes-embedded-resource"))
}

fn object(schema: &Value, is_resource: bool) -> Extent {
    let mut fields: HashMap<&str, Extent> = entries(schema, "properties")
        .filter_map(|(field, schema)| Some((field.as_str(), below(schema)?)))
        .collect();
    let required: HashSet<&str> = items(schema, "required")
        .filter_map(Value::as_str)
        .collect();
    let is_required = |field: &str| required.contains(field);
    let has_default = |field: &str| {
        let declared = schema.get("properties").and_then(|all| all.get(field));
        let default = declared.and_then(|declared| declared.get("default"));
        default.is_some_and(|default| !default.is_null())
    };
    let is_own = !is_resource || is_whole(schema);
    if !is_own {
        fields.extend(of_resources());
    }
    let mut bytes = 0_i64;
    for (field, extent) in &fields {
        let is_given = !is_own && OF_RESOURCES.contains(field);
        if is_required(field) && (is_given || !has_default(field)) {
            let name = i64::try_from(field.len()).unwrap_or(i64::MAX);
            bytes = bytes
                .saturating_add(name)
                .saturating_add(extent.bytes())
                .saturating_add(4);
        }
    }
    let fields = fields.into_iter();
    let fields = fields.filter_map(|(field, extent)| Some((escaped(field)?, extent)));
    Extent::object(fields.collect(), bytes)
}

const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Whether a schema of resources says itself what each of them has.
fn is_whole(schema: &Value) -> bool {
    let is = |pointer: &str, ty: &str| {
        let declared = schema.pointer(pointer);
        declared.is_some_and(|declared| text(declared, "type") == ty)
    };
    is("/properties/kind", "string")
        && is("/properties/apiVersion", "string")
        && is("/properties/metadata", "object")
        && is("/properties/metadata/properties/name", "string")
        && is("/properties/metadata/properties/generateName", "string")
}

fn of_resources() -> [(&'static str, Extent); 3] {
    let text = || Extent::scalar(2, Extent::unlimited());
    let metadata = ["name", "generateName"].map(|name| (name.to_owned(), text()));
    [
        ("apiVersion", text()),
        ("kind", text()),
        ("metadata", Extent::object(HashMap::from(metadata), 0)),
    ]
}

/// A whole number of a schema.
pub(in crate::crd) fn whole(schema: &Value, field: &str) -> Option<i64> {
    let number = schema.get(field)?;
    // One with a fraction of zero is whole as well.
    number
        .as_i64()
        .or_else(|| number.as_f64().map(|number| number as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::expression::{check, declared};

    /// What a rule costs more than a message tells.
    const MANY: u64 = 1_000_000_000;

    #[test]
    fn rules_cost_what_the_real_server_says() {
        let mut schema = Value::Null;
        let mut wrong = String::new();
        for line in include_str!("costs.txt").lines() {
            let (cost, rule) = line.split_once(' ').unwrap();
            match cost {
                "#" => continue,
                "=" => {
                    schema = serde_json::from_str(rule).unwrap();
                    continue;
                }
                _ => {}
            }
            let (ty, extent) = (declared(&schema, false), extent(&schema, false));
            let checked = check(&json!({"rule": rule}), &ty.unwrap(), &extent.unwrap());
            assert_eq!(checked.rule, None, "{rule}");
            let told = match checked.cost {
                cost if cost > MANY => "many".to_owned(),
                cost => cost.to_string(),
            };
            if told != cost {
                wrong += &format!("{rule}: {told} instead of {cost}\n");
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn resources_say_themselves_what_they_have() {
        let text = json!({"type": "string", "maxLength": 3});
        let whole = json!({"type": "object", "required": ["kind"], "properties": {
            "kind": text,
            "apiVersion": text,
            "metadata": {"type": "object", "properties": {"name": text, "generateName": text}},
        }});
        let mut other = whole.clone();
        other["properties"]["metadata"]["properties"] = json!({"name": text});
        for (schema, cost) in [(whole, 8), (other, 314_579)] {
            let ty = declared(&schema, true).unwrap();
            let found = extent(&schema, true).unwrap();
            // The braces, and the kind with its quotes, a colon and an empty text.
            assert_eq!(found.bytes(), 12);
            let rule = json!({"rule": "self.metadata.name == self.metadata.generateName"});
            assert_eq!(check(&rule, &ty, &found).cost, cost);
        }
    }
}
