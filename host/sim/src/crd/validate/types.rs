//! Types and sizes of JSON values, as schemas see them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::crd::structural::Kind;

pub(super) fn is_integer(value: &Value) -> bool {
    value
        .as_number()
        .is_some_and(|n| n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|n| n.fract() == 0.0))
}

pub(super) fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Any => "",
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
    }
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(super) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

pub(super) fn is_multiple(number: &Number, factor: &Number) -> bool {
    match (number.as_i64(), factor.as_i64()) {
        (Some(number), Some(factor)) if factor != 0 => number % factor == 0,
        _ => match (number.as_f64(), factor.as_f64()) {
            (Some(number), Some(factor)) if factor != 0.0 => {
                let quotient = number / factor;
                (quotient - quotient.round()).abs() < 1e-9
            }
            _ => true,
        },
    }
}
