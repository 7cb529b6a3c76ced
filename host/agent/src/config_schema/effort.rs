//! How much work it is to hold a configuration against a schema, counted before any of
//! it is done.
//!
//! The schema is a plugin's, and the evaluator can neither be interrupted nor bounded:
//! forty definitions that each refer twice to the next take 2^40 steps, and one that
//! refers to itself never ends. Here each pair of a subschema and a part of the
//! configuration is looked at once, so that counting is cheap where evaluating is not.

use super::SchemaError;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Steps, each of them one subschema held against one part of the configuration. A
/// large configuration takes some ten thousand; this many take well under a second,
/// and their errors some ten megabytes.
const MAX_STEPS: u64 = 200_000;

/// Subschemas within one another, references followed. The evaluator takes stack for
/// each.
const MAX_DEPTH: usize = 250;

/// Stands for the names of properties, which are texts.
static NAME: Value = Value::Null;

/// A subschema and a part of the configuration, by their places in memory.
type Pair = (*const Value, *const Value);

/// Counts the steps that it takes to hold a configuration against a schema; the count
/// is never too low.
///
/// # Errors
///
/// When they are too many or without end, or cannot be counted since the schema refers
/// to something other than its own parts.
pub(super) fn count(schema: &Value, config: &Value) -> Result<u64, SchemaError> {
    let mut counting = Counting {
        root: schema,
        known: HashMap::new(),
        open: HashSet::new(),
    };
    counting.steps(schema, config)
}

struct Counting<'a> {
    root: &'a Value,
    known: HashMap<Pair, u64>,
    /// Pairs that are being counted.
    open: HashSet<Pair>,
}

impl<'a> Counting<'a> {
    fn steps(&mut self, schema: &'a Value, part: &'a Value) -> Result<u64, SchemaError> {
        let Value::Object(keywords) = schema else {
            return Ok(1);
        };
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(part));
        if let Some(steps) = self.known.get(&pair) {
            return Ok(*steps);
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(unusable(format!(
                "more than {MAX_DEPTH} subschemas are within one another"
            )));
        }
        if !self.open.insert(pair) {
            return Err(unusable(
                "a `$ref` leads back to where it is without going deeper into the configuration"
                    .to_owned(),
            ));
        }
        let mut steps: u64 = 1;
        for (keyword, value) in keywords {
            let more = self.keyword(schema, keyword, value, part)?;
            steps = steps.saturating_add(more);
        }
        // To find out what was not evaluated, everything beside it is evaluated again.
        if keywords.contains_key("unevaluatedProperties")
            || keywords.contains_key("unevaluatedItems")
        {
            steps = steps.saturating_mul(2);
        }
        if steps > MAX_STEPS {
            return Err(unusable(format!(
                "holding this configuration against it takes more than {MAX_STEPS} steps"
            )));
        }
        self.open.remove(&pair);
        self.known.insert(pair, steps);
        Ok(steps)
    }

    /// The steps for one keyword of a schema.
    fn keyword(
        &mut self,
        schema: &'a Value,
        keyword: &str,
        value: &'a Value,
        part: &'a Value,
    ) -> Result<u64, SchemaError> {
        let here = std::slice::from_ref(part);
        match keyword {
            "$ref" => match value.as_str() {
                Some(reference) => self.steps(self.find(reference)?, part),
                None => Ok(1),
            },
            "$dynamicRef" | "$recursiveRef" => Err(unusable(format!(
                "`{keyword}` cannot be used; use `$ref` with a reference such as `#/$defs/a`"
            ))),
            // It would be what references within it refer to.
            "$id" | "id" if value.is_string() && !std::ptr::eq(schema, self.root) => Err(unusable(
                format!("`{keyword}` cannot be used in a subschema"),
            )),
            "allOf" | "anyOf" | "oneOf" => self.all(value.as_array().into_iter().flatten(), here),
            "not" | "if" | "then" | "else" => self.steps(value, part),
            "dependentSchemas" | "dependencies" => self.all(fields(value), here),
            "properties" => {
                let mut steps: u64 = 0;
                for (name, schema) in value.as_object().into_iter().flatten() {
                    if let Some(part) = part.get(name) {
                        steps = steps.saturating_add(self.steps(schema, part)?);
                    }
                }
                Ok(steps)
            }
            "patternProperties" => self.all(fields(value), fields(part)),
            "additionalProperties" | "unevaluatedProperties" => {
                self.all(std::slice::from_ref(value), fields(part))
            }
            "propertyNames" => {
                let names = part.as_object().map_or(0, serde_json::Map::len);
                let steps = self.steps(value, &NAME)?;
                Ok(steps.saturating_mul(names as u64))
            }
            "items" | "prefixItems" | "additionalItems" | "contains" | "unevaluatedItems" => {
                let schemas = match value {
                    Value::Array(schemas) => schemas.as_slice(),
                    schema => std::slice::from_ref(schema),
                };
                self.all(schemas, part.as_array().into_iter().flatten())
            }
            "uniqueItems" => Ok(part.as_array().map_or(0, Vec::len) as u64),
            // Texts and values that are compared one after another.
            _ => Ok(value.as_array().map_or(0, Vec::len) as u64),
        }
    }

    /// The steps to hold all of these parts against all of these schemas.
    fn all(
        &mut self,
        schemas: impl IntoIterator<Item = &'a Value>,
        parts: impl IntoIterator<Item = &'a Value>,
    ) -> Result<u64, SchemaError> {
        let parts: Vec<&Value> = parts.into_iter().collect();
        let mut steps: u64 = 0;
        for schema in schemas {
            for part in &parts {
                steps = steps.saturating_add(self.steps(schema, part)?);
                if steps > MAX_STEPS {
                    // The caller says so.
                    return Ok(steps);
                }
            }
        }
        Ok(steps)
    }

    /// What a reference refers to.
    fn find(&self, reference: &str) -> Result<&'a Value, SchemaError> {
        let unknown = |why: &str| unusable(format!("`$ref` to `{reference}` {why}"));
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(unknown("leads out of it; define it under `$defs`"));
        };
        // Others are names, and names in URLs may be written in several ways.
        let plain = pointer.is_empty() || pointer.starts_with('/');
        if !plain || pointer.contains('%') {
            return Err(unknown("cannot be followed; write it as `#/$defs/a`"));
        }
        let found = self.root.pointer(pointer);
        found.ok_or_else(|| unknown("leads nowhere"))
    }
}

fn fields(value: &Value) -> impl Iterator<Item = &Value> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, value)| value)
}

fn unusable(why: String) -> SchemaError {
    SchemaError::Schema(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Definitions that refer to the next one so often each.
    fn doubling(levels: usize, times: usize, leaf: &Value) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
            definitions.insert(format!("a{level}"), json!({"allOf": vec![next; times]}));
        }
        definitions.insert(format!("a{levels}"), leaf.clone());
        json!({"$defs": definitions, "$ref": "#/$defs/a0"})
    }

    #[test]
    fn ordinary_schemas_are_counted() {
        let tree = json!({
            "$id": "https://example.com/config",
            "type": "object",
            "properties": {
                "tree": {"$ref": "#/$defs/node"},
                "names": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
                "id": {"type": "string"},
            },
            "$defs": {"node": {
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                "additionalProperties": false,
            }},
        });
        let leaf = json!({"children": []});
        for (schema, config, at_most) in [
            (json!(true), json!({}), 1),
            (json!({}), json!({"a": 1}), 1),
            (tree.clone(), json!({}), 2),
            (tree.clone(), json!({"names": vec!["a"; 1000]}), 2_100),
            (
                tree,
                json!({"tree": {"children": vec![leaf; 100]}, "id": "a"}),
                1_000,
            ),
            (doubling(1, 10, &json!({})), json!({}), 40),
        ] {
            let steps = count(&schema, &config).unwrap();
            assert!((1..=at_most).contains(&steps), "{steps}: {schema}");
        }
    }

    #[test]
    fn what_takes_too_long_or_cannot_be_counted_is_refused() {
        let nested = |depth| (0..depth).fold(json!(0), |inner, _| json!([inner]));
        // Twice as much at each level of the configuration.
        let twice = json!({
            "items": {"$ref": "#"}, "allOf": [{"items": {"$ref": "#"}}],
        });
        let unevaluated = (0..30).fold(
            json!({}),
            |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
        );
        for (schema, config, says) in [
            (doubling(40, 2, &json!({})), json!({}), "200000 steps"),
            (doubling(25, 2, &json!(false)), json!({}), "200000 steps"),
            (twice, nested(40), "200000 steps"),
            (unevaluated, json!({}), "200000 steps"),
            (
                json!({"items": {"enum": vec![0; 1000]}}),
                json!(vec![1; 1000]),
                "200000 steps",
            ),
            (doubling(2_000, 1, &json!({})), json!({}), "250 subschemas"),
            (json!({"$ref": "#"}), json!({}), "leads back"),
            (
                json!({"anyOf": [{"not": {"$ref": "#/anyOf/0"}}]}),
                json!({}),
                "leads back",
            ),
            (json!({"$ref": "#/a"}), json!({}), "leads nowhere"),
            (json!({"$ref": "#name"}), json!({}), "cannot be followed"),
            (
                json!({"$ref": "https://example.com"}),
                json!({}),
                "leads out of it",
            ),
            (
                json!({"allOf": [{"$id": "b", "$ref": "#"}]}),
                json!({}),
                "in a subschema",
            ),
            (json!({"$dynamicRef": "#a"}), json!({}), "`$dynamicRef`"),
        ] {
            let error = count(&schema, &config).unwrap_err().to_string();
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}
