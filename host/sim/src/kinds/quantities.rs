//! Quantities inside objects: found by path, stored in canonical form.

use std::borrow::Cow;
use std::convert::Infallible;

use serde_json::{Value, json};

use crate::quantity::{Quantity, QuantityError};

/// Why an object cannot be decoded as its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A text that is no quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// A base64 text that is none.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
}

/// Rewrites the quantities at `path` of `object` into canonical form. A path is
/// dotted; `[]` after a name stands for each item, `{}` for each entry, and `*` for each
/// entry of a list of resources, whose amounts are kept to thousandths.
pub(super) fn canonicalize(object: &mut Value, path: &str) -> Result<(), DecodeError> {
    visit(object, path, |value, listed| {
        *value = Value::String(canonical(value, listed)?);
        Ok(())
    })
}

/// Whether the quantities at a path can be read; they stay as they are.
pub(super) fn check(object: &mut Value, path: &str) -> Result<(), DecodeError> {
    visit(object, path, |value, listed| {
        canonical(value, listed).map(|_| ())
    })
}

/// The object with the amount of each quantity, so that two compare as equal that differ
/// in how these are written.
pub(super) fn amounts((group, version): (&str, &str), kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(schema) = reeve_ssa::builtin::schema(group, version, kind) {
        schema.amounts(&mut object);
    }
    object
}

/// Whether two specs of a kind are the same, however their quantities are written.
pub(super) fn is_same_spec(
    group_version: (&str, &str),
    kind: &str,
    one: &Value,
    other: &Value,
) -> bool {
    let of = |spec: &Value| amounts(group_version, kind, &json!({"spec": spec}));
    one == other || of(one) == of(other)
}

/// Makes another amount of each quantity at `path` that has a binary suffix.
pub(super) fn unsettle(object: &mut Value, path: &str) {
    let other = |value: &mut Value, _: bool| {
        if value.as_str().is_some_and(|text| text.ends_with('i')) {
            *value = Value::String("0".to_owned());
        }
        Ok::<(), Infallible>(())
    };
    let Ok(()) = visit(object, path, other);
}

/// Shows each quantity at a path, with whether it is in a list of resources.
fn visit<E>(
    object: &mut Value,
    path: &str,
    show: impl Fn(&mut Value, bool) -> Result<(), E> + Copy,
) -> Result<(), E> {
    let (step, rest) = match path.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (path, None),
    };
    let below = |value: &mut Value| match rest {
        Some(rest) => visit(value, rest, show),
        None => show(value, false),
    };
    let entries = |value: Option<&mut Value>, show: &dyn Fn(&mut Value) -> Result<(), E>| {
        let entries = value.and_then(Value::as_object_mut).into_iter().flatten();
        entries.map(|(_, value)| value).try_for_each(show)
    };
    if step == "*" {
        entries(Some(object), &|value| show(value, true))
    } else if let Some(name) = step.strip_suffix("{}") {
        entries(object.get_mut(name), &below)
    } else if let Some(name) = step.strip_suffix("[]") {
        let items = object.get_mut(name).and_then(Value::as_array_mut);
        items.into_iter().flatten().try_for_each(below)
    } else {
        object.get_mut(step).map_or(Ok(()), below)
    }
}

fn canonical(value: &Value, listed: bool) -> Result<String, DecodeError> {
    let text = match value {
        Value::String(text) => Cow::Borrowed(text.trim()),
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Null => Cow::Borrowed("0"),
        _ => return Err(QuantityError::Format.into()),
    };
    let quantity = Quantity::parse(&text)?;
    let quantity = if listed {
        quantity.to_milli()
    } else {
        quantity
    };
    Ok(quantity.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rewrites_in_place() {
        let check = |path: &str, mut object: Value, expected: Value| {
            canonicalize(&mut object, path).unwrap();
            assert_eq!(object, expected);
        };
        check(
            "spec.hard.*",
            json!({"spec": {"hard": {"cpu": "0.1", "pods": 1000, "gpu": "1n"}}}),
            json!({"spec": {"hard": {"cpu": "100m", "pods": "1k", "gpu": "1m"}}}),
        );
        check(
            "spec.limits[].max.*",
            json!({"spec": {"limits": [{"max": {"cpu": "1000m"}}, {}]}}),
            json!({"spec": {"limits": [{"max": {"cpu": "1"}}, {}]}}),
        );
        check(
            "capacity",
            json!({"capacity": " 1n "}),
            json!({"capacity": "1n"}),
        );
        check(
            "spec.devices[].capacity{}.value",
            json!({"spec": {"devices": [{"capacity": {"a": {"value": "0.1u"}, "b": {}}}]}}),
            json!({"spec": {"devices": [{"capacity": {"a": {"value": "100n"}, "b": {}}}]}}),
        );
        check(
            "policy.values[]",
            json!({"policy": {"values": ["1000m", 2]}}),
            json!({"policy": {"values": ["1", "2"]}}),
        );
        check("spec.hard.*", json!({}), json!({}));
    }

    #[test]
    fn what_is_checked_stays_as_it_is() {
        let mut object = json!({"a": ["1000m"]});
        assert_eq!(check(&mut object, "a[]"), Ok(()));
        assert_eq!(object, json!({"a": ["1000m"]}));
        assert!(check(&mut json!({"a": ["much"]}), "a[]").is_err());
    }

    #[test]
    fn only_binary_suffixes_are_unsettled() {
        let mut object = json!({"a": [{"x": "512Mi"}, {"x": "1"}, {"x": 3}, {}]});
        unsettle(&mut object, "a[].x");
        assert_eq!(object, json!({"a": [{"x": "0"}, {"x": "1"}, {"x": 3}, {}]}));
    }

    #[test]
    fn refuses_other_texts() {
        let mut object = json!({"spec": {"hard": {"cpu": "much"}}});
        let error = canonicalize(&mut object, "spec.hard.*").unwrap_err();
        assert_eq!(error, DecodeError::Quantity(QuantityError::Format));
    }
}
