//! Configuration against the schema that the component carries.

use serde_json::Value;

/// Why configuration does not reach the plugin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    /// The component's own schema is unusable.
    #[error("the component's configuration schema is unusable: {0}; this is a bug of the plugin")]
    Schema(String),
    /// The configuration does not fit.
    #[error("data[\"config.yaml\"]: {0}")]
    Config(String),
}

/// More than this many errors are not listed: the first ones are mended first.
const MAX_LISTED: usize = 5;

/// Checks configuration against a JSON Schema.
///
/// # Errors
///
/// Names the JSON path of each value that does not fit.
pub(crate) fn check(schema: &[u8], config: &[u8]) -> Result<(), SchemaError> {
    let schema: Value =
        serde_json::from_slice(schema).map_err(|error| SchemaError::Schema(error.to_string()))?;
    let config: Value =
        serde_json::from_slice(config).map_err(|error| SchemaError::Config(error.to_string()))?;
    let validator = jsonschema::validator_for(&schema)
        .map_err(|error| SchemaError::Schema(error.to_string()))?;
    let errors: Vec<String> = validator
        .iter_errors(&config)
        .take(MAX_LISTED)
        .map(|error| {
            let path = error.instance_path().to_string();
            let path = if path.is_empty() { "/" } else { &path };
            format!("{path}: {error}")
        })
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(SchemaError::Config(errors.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                Err("data[\"config.yaml\"]: /: Additional properties"),
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
}
