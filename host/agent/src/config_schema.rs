//! Configuration against the schema that the component carries.
//!
//! The schema is a plugin's, and evaluating it happens in the agent itself: what it may
//! take of time, stack and memory is bounded before it begins.

mod effort;
mod words;

use crate::calls::GuestThreads;
use bytes::Bytes;
use jsonschema::PatternOptions;
use reeve_core::printable::printable;
use serde_json::Value;
use words::in_words;

/// Why configuration does not reach the plugin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The component's own schema is unusable.
    #[error("the component's configuration schema is unusable: {0}; this is a bug of the plugin")]
    Schema(String),
    /// The configuration does not fit.
    #[error("data[\"config.yaml\"]: {0}")]
    Config(String),
    /// It could not be found out.
    #[error("the configuration could not be held against the component's schema: {0}")]
    Interrupted(String),
}

impl SchemaError {
    fn printable(self) -> Self {
        match self {
            Self::Schema(text) => Self::Schema(printable(text)),
            Self::Config(text) => Self::Config(printable(text)),
            Self::Interrupted(text) => Self::Interrupted(printable(text)),
        }
    }
}

/// More than this many errors are not listed: the first ones are mended first.
const MAX_LISTED: usize = 5;

/// With more steps than this only the first error is said: the evaluator collects all of
/// them before it gives any.
const MAX_STEPS_FOR_ALL: u64 = 10_000;

/// Bytes of a schema. Those that are derived from types with their documentation have
/// some ten thousand.
const MAX_SCHEMA: usize = 128 * 1024;

/// Regular expressions in a schema, and bytes of each when it is compiled. `{n}` makes
/// of a few characters as much as the limit lets it.
const MAX_PATTERNS: usize = 200;
const MAX_PATTERN: usize = 256 * 1024;

/// Attempts of one expression that goes back, at one text.
const MAX_BACKTRACKS: usize = 10_000;

/// Stack for compiling and evaluating: a schema of the greatest size may consist of
/// nothing but subschemas within one another. What is not used takes no memory.
const STACK: usize = 128 << 20;

/// Checks configuration against a JSON Schema, without holding up anything else.
///
/// # Errors
///
/// When the schema is unusable, the configuration does not fit, or it cannot be found out. Of
/// what does not fit, each value is named by its JSON path.
pub async fn check_apart(
    threads: &GuestThreads,
    schema: Vec<u8>,
    config: Bytes,
) -> Result<(), SchemaError> {
    let checked = threads.aside(move || {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let checking = thread.spawn(move || check(&schema, &config));
        checking.map(std::thread::JoinHandle::join)
    });
    match checked.await {
        // Names and patterns in it are the plugin's own words.
        Ok(Ok(Ok(result))) => result.map_err(SchemaError::printable),
        Ok(Err(error)) => Err(SchemaError::Interrupted(error.to_string())),
        // The evaluator has panicked, or the agent is ending.
        Ok(Ok(Err(_))) => Err(SchemaError::Interrupted("it panicked".to_owned())),
        Err(error) => Err(SchemaError::Interrupted(error.to_string())),
    }
}

/// Checks configuration against a JSON Schema.
///
/// # Errors
///
/// Names the JSON path of each value that does not fit.
fn check(schema: &[u8], config: &[u8]) -> Result<(), SchemaError> {
    if schema.len() > MAX_SCHEMA {
        let size = schema.len();
        return Err(SchemaError::Schema(format!(
            "it has {size} bytes, more than {MAX_SCHEMA}"
        )));
    }
    let schema: Value =
        serde_json::from_slice(schema).map_err(|error| SchemaError::Schema(error.to_string()))?;
    let config: Value =
        serde_json::from_slice(config).map_err(|error| SchemaError::Config(error.to_string()))?;
    if patterns(&schema) > MAX_PATTERNS {
        return Err(SchemaError::Schema(format!(
            "it has more than {MAX_PATTERNS} regular expressions"
        )));
    }
    let steps = effort::count(&schema, &config)?;
    let regex = PatternOptions::fancy_regex()
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .backtrack_limit(MAX_BACKTRACKS);
    let validator = jsonschema::options()
        .with_pattern_options(regex)
        .build(&schema)
        .map_err(|error| SchemaError::Schema(error.to_string()))?;
    let Err(first) = validator.validate(&config) else {
        return Ok(());
    };
    let errors = match steps > MAX_STEPS_FOR_ALL {
        true => vec![in_words(&schema, &first)],
        false => {
            let all = validator.iter_errors(&config).take(MAX_LISTED);
            all.map(|error| in_words(&schema, &error)).collect()
        }
    };
    Err(SchemaError::Config(errors.join("; ")))
}

/// How many regular expressions a schema has, at most.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Object(fields) => {
            let own = fields.iter().map(|(keyword, value)| match &**keyword {
                "pattern" => 1,
                "patternProperties" => value.as_object().map_or(0, serde_json::Map::len),
                _ => 0,
            });
            own.sum::<usize>() + fields.values().map(patterns).sum::<usize>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SCHEMA: &[u8] = br#"{
        "type": "object",
        "properties": {"hard": {"type": "object", "additionalProperties": {"type": "string"}}},
        "additionalProperties": false
    }"#;

    #[test]
    fn errors_name_the_path() {
        for (config, expected) in [
            (r#"{}"#, Ok(())),
            (r#"{"hard": {"pods": "1"}}"#, Ok(())),
            (
                r#"{"hard": {"pods": 1}}"#,
                Err("data[\"config.yaml\"]: /hard/pods: 1 is not"),
            ),
            (
                r#"{"hart": {}}"#,
                Err("data[\"config.yaml\"]: /hart: there is no such setting; there are hard"),
            ),
            (
                r#"{"hard": {"pods": "1"}, "a/b": 1, "c": 2}"#,
                Err("data[\"config.yaml\"]: /a~1b: there is no such setting; /c: there"),
            ),
        ] {
            match (check(SCHEMA, config.as_bytes()), expected) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(start)) => {
                    let text = error.to_string();
                    assert!(text.starts_with(start), "{text}");
                }
                (found, _) => panic!("{config}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_broken_schema_is_the_plugins_fault() {
        for schema in ["{", r#"{"type": "nothing"}"#] {
            let error = check(schema.as_bytes(), b"{}").unwrap_err();
            assert!(matches!(error, SchemaError::Schema(_)), "{error:?}");
        }
    }

    /// Two to the power of forty steps, some of them failing, and more like that.
    #[tokio::test]
    async fn a_schema_cannot_hold_up_the_agent() {
        let mut definitions = serde_json::Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
            definitions.insert(format!("a{level}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("a40".to_owned(), json!(false));
        let doubling = json!({"$defs": definitions, "$ref": "#/$defs/a0"});
        let chain: serde_json::Map<String, Value> = (0..3_000)
            .map(|n| {
                (
                    format!("a{n}"),
                    json!({"$ref": format!("#/$defs/a{}", n + 1)}),
                )
            })
            .chain([("a3000".to_owned(), json!({}))])
            .collect();
        let pattern = |text: &str| json!({"properties": {"a": {"pattern": text}}});
        let many: Vec<Value> = (0..201).map(|n| pattern(&n.to_string())).collect();
        for (schema, config, says) in [
            (doubling, json!({}), "more than 200000 steps"),
            // Nothing of it is evaluated, but all of it is compiled.
            (json!({"$defs": chain}), json!({}), ""),
            (json!({"$ref": "#"}), json!({}), "leads back"),
            (json!({"title": "x".repeat(MAX_SCHEMA)}), json!({}), "bytes"),
            (json!({"allOf": many}), json!({}), "regular expressions"),
            (
                pattern("((a{99}){99}){99}"),
                json!({"a": "a"}),
                "not a \"regex\"",
            ),
            (
                pattern("^(?=a)(a+)+$"),
                json!({"a": format!("{}!", "a".repeat(64))}),
                "/a: ",
            ),
        ] {
            let (schema, config) = (schema.to_string(), config.to_string());
            let threads = GuestThreads::default();
            let checked = check_apart(&threads, schema.into(), config.into()).await;
            match says {
                "" => assert_eq!(checked, Ok(())),
                says => {
                    let error = checked.unwrap_err().to_string();
                    assert!(error.contains(says), "{says}: {error}");
                }
            }
        }
    }

    /// As many errors as steps: one is enough then.
    #[test]
    fn errors_beyond_counting_are_not_collected() {
        let schema = json!({"properties": {"a": {"items": {"type": "string"}}}});
        let config = |count| json!({"a": vec![0; count]}).to_string();
        for (count, listed) in [(1, 1), (3, 3), (100, MAX_LISTED), (50_000, 1)] {
            let error = check(schema.to_string().as_bytes(), config(count).as_bytes());
            let text = error.unwrap_err().to_string();
            assert_eq!(text.matches("is not of type").count(), listed, "{count}");
        }
    }
}
