//! How large the values are that an evaluation makes.
//!
//! The evaluator copies values where the real server's shares them, so that a list which
//! holds another one twice takes twice the memory, and what costs one unit there could take
//! all the memory there is: in a row of such lists each doubles the one before.

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{ExecutionError, Value};

use super::super::budget;
use super::failed;

/// So many bytes of a text count as a value.
const BYTES: usize = 32;

/// Counts values that are put into another one. All that an evaluation puts somewhere is
/// counted.
///
/// # Errors
///
/// When there is no room for them.
pub(super) fn hold(name: &str, values: &[Value]) -> Result<(), ExecutionError> {
    if budget::hold(values.iter().map(size).sum()) {
        return Ok(());
    }
    Err(failed(name, "the values are too large"))
}

/// How many values a value is with all that is in it, and a part for so many bytes of each
/// text.
pub(crate) fn size(value: &Value) -> usize {
    let sum = |values: &mut dyn Iterator<Item = &Value>| values.map(size).sum::<usize>();
    1 + match value {
        Value::String(text) => text.len() / BYTES,
        Value::Bytes(bytes) => bytes.len() / BYTES,
        Value::List(list) => sum(&mut list.iter()),
        Value::Map(map) => map.map.len() + sum(&mut map.map.values()),
        Value::Opaque(opaque) => {
            let optional = opaque.downcast_ref::<OptionalValue>();
            optional.and_then(OptionalValue::value).map_or(0, size)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn all_that_is_in_a_value_counts() {
        let doubled = |times| {
            (0..times).fold(Value::Int(1), |value, _| {
                Value::List(Arc::new(vec![value.clone(), value]))
            })
        };
        assert_eq!(size(&doubled(0)), 1);
        assert_eq!(size(&doubled(10)), (1 << 11) - 1);
        assert_eq!(size(&Value::String(Arc::new("a".repeat(64)))), 3);
        let map = super::super::map([("a", doubled(1)), ("b", Value::Null)]);
        assert_eq!(size(&map), 7);
    }
}
