//! The places that a definition names for the scale of its objects, and what may be
//! there.

use serde_json::Value;

use super::custom::ScalePaths;
use crate::field::{Errors, FieldError, Path};
use crate::strategic::printed;

/// What is wrong at the places of the scale of an object. Only the status is looked
/// at where only that was written.
pub(super) fn check(object: &Value, paths: &ScalePaths, status: bool) -> Errors {
    let mut errors = Errors::new();
    if !status {
        check_number(object, &paths.spec_replicas, &mut errors);
    }
    check_number(object, &paths.status_replicas, &mut errors);
    if let Some(pointer) = &paths.selector
        && let Err(why) = look(object, pointer).and_then(|found| match found {
            None | Some(Value::String(_)) => Ok(()),
            Some(other) => Err(misplaced(pointer, other, "string")),
        })
    {
        errors.push(FieldError::invalid_str(
            &Path::new(&dotted(pointer)),
            "",
            why,
        ));
    }
    errors
}

/// Replicas are a whole number that fits 32 bits; none are zero.
fn check_number(object: &Value, pointer: &str, errors: &mut Errors) {
    let number = look(object, pointer).and_then(|found| match found {
        None => Ok(0),
        Some(value) => value
            .as_i64()
            .ok_or_else(|| misplaced(pointer, value, "int64")),
    });
    let (number, why) = match number {
        Err(why) => (0, why),
        Ok(number) if number < 0 => (number, "should be a non-negative integer".to_owned()),
        Ok(number) if number > i64::from(i32::MAX) => (
            number,
            format!("should be less than or equal to {}", i32::MAX),
        ),
        Ok(_) => return,
    };
    let path = dotted(pointer);
    errors.push(FieldError::invalid(&Path::new(&path), &number.into(), why));
}

/// The value at a pointer; an error where something on the way is no object.
fn look<'a>(object: &'a Value, pointer: &str) -> Result<Option<&'a Value>, String> {
    let mut at = object;
    let mut way = String::new();
    for part in pointer.split('/').skip(1) {
        way.push('/');
        way.push_str(part);
        match at {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(part) {
                Some(value) => at = value,
                None => return Ok(None),
            },
            other => return Err(misplaced(&way, other, "map[string]interface{}")),
        }
    }
    Ok(Some(at))
}

/// What is said of a value of another type than a definition promises.
pub(crate) fn misplaced(pointer: &str, value: &Value, wanted: &str) -> String {
    let (shown, sort) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(value) => (value.to_string(), "bool"),
        Value::Number(number) if number.is_i64() => (number.to_string(), "int64"),
        Value::Number(number) => (number.to_string(), "float64"),
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => (printed(value), "[]interface {}"),
        Value::Object(_) => (printed(value), "map[string]interface {}"),
    };
    format!(
        "{} accessor error: {shown} is of the type {sort}, expected {wanted}",
        dotted(pointer)
    )
}

/// A pointer as the definition writes it: `.spec.replicas`.
pub(crate) fn dotted(pointer: &str) -> String {
    pointer.replace('/', ".")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_are_whole_numbers_that_fit() {
        let paths = ScalePaths {
            spec_replicas: "/spec/count".to_owned(),
            status_replicas: "/status/count".to_owned(),
            selector: Some("/status/selector".to_owned()),
        };
        let check = |object: &Value, status: bool, expected: &[&str]| {
            let errors = check(object, &paths, status);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{object}");
        };
        check(&json!({}), false, &[]);
        check(
            &json!({"spec": {"count": 3}, "status": {"selector": "a=b"}}),
            false,
            &[],
        );
        check(
            &json!({"spec": {"count": "many"}}),
            false,
            &[
                ".spec.count: Invalid value: 0: .spec.count accessor error: many is of the type string, expected int64",
            ],
        );
        check(
            &json!({"spec": 5, "status": {"count": -1, "selector": 7}}),
            false,
            &[
                ".spec.count: Invalid value: 0: .spec.count accessor error: 5 is of the type int64, expected map[string]interface{}",
                ".status.count: Invalid value: -1: should be a non-negative integer",
                ".status.selector: Invalid value: \"\": .status.selector accessor error: 7 is of the type int64, expected string",
            ],
        );
        check(
            &json!({"spec": {"count": -1}, "status": {"count": 3_000_000_000_u32}}),
            true,
            &[
                ".status.count: Invalid value: 3000000000: should be less than or equal to 2147483647",
            ],
        );
    }
}
