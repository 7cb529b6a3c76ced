//! How deep an object may nest: as deep as what is stored can be read back.

use serde_json::Value;

use crate::status::ApiError;

/// The most lists and maps inside of one another that `serde_json` reads, which
/// stops before its 128th. The real server reads 10,000.
pub(crate) const READABLE: usize = 127;

/// How many lists and maps are inside of one another; 0 for a scalar. Takes no
/// more stack for a deep value than for a flat one.
pub(crate) fn of(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, level)) = open.pop() {
        match value {
            Value::Array(items) => {
                deepest = deepest.max(level + 1);
                open.extend(items.iter().filter(|v| nests(v)).map(|v| (v, level + 1)));
            }
            Value::Object(fields) => {
                deepest = deepest.max(level + 1);
                open.extend(fields.values().filter(|v| nests(v)).map(|v| (v, level + 1)));
            }
            _ => {}
        }
    }
    deepest
}

fn nests(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Refuses an object that could not be read back.
///
/// # Errors
///
/// 400 that names the limit.
pub(crate) fn check(object: &Value) -> Result<(), ApiError> {
    if of(object) > READABLE {
        return Err(too_deep());
    }
    Ok(())
}

/// 400 about an object that nests too deep.
pub(crate) fn too_deep() -> ApiError {
    ApiError::bad_request(message())
}

/// What is said about an object that nests too deep.
pub(crate) fn message() -> String {
    format!(
        "the object with its managedFields nests deeper than {READABLE} levels, which is all that this server reads: make it flatter"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_maps_count_and_scalars_do_not() {
        for (value, expected) in [
            (json!(1), 0),
            (json!([]), 1),
            (json!({"a": 1}), 1),
            (json!([{"a": [1]}, [], {}]), 3),
        ] {
            assert_eq!(of(&value), expected, "{value}");
        }
    }

    #[test]
    fn the_limit_is_what_can_be_read() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let deepest: Value = serde_json::from_str(&nested(READABLE)).unwrap();
        assert_eq!(of(&deepest), READABLE);
        assert_eq!(check(&deepest), Ok(()));
        assert_eq!(check(&json!([deepest])), Err(too_deep()));
        assert!(serde_json::from_str::<Value>(&nested(READABLE + 1)).is_err());
    }
}
