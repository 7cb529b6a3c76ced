//! What the macros call that are written out (see [`crate::cel::macros`]).

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{ExecutionError, ResolveResult, Value};

use super::failed;
use crate::cel::budget;

/// So much is compared at most to sort one list, as values of one or 32 bytes of text.
const COMPARED: usize = 32 << 20;

/// What is in a list or a map, in pairs with places or keys.
pub(super) fn pairs(arguments: &[Value]) -> ResolveResult {
    let pair = |first: Value, second: &Value| Value::from(vec![first, second.clone()]);
    let pairs: Vec<Value> = match arguments {
        [Value::List(items)] => {
            let items = items.iter().zip(0_i64..);
            items.map(|(item, at)| pair(Value::Int(at), item)).collect()
        }
        [Value::Map(map)] => {
            let entries = map.map.iter();
            entries
                .map(|(key, value)| pair(of_key(key), value))
                .collect()
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::from(pairs))
}

fn of_key(key: &Key) -> Value {
    match key {
        Key::Int(number) => Value::Int(*number),
        Key::Uint(number) => Value::UInt(*number),
        Key::Bool(value) => Value::Bool(*value),
        Key::String(text) => Value::String(text.clone()),
    }
}

fn shown(key: &Key) -> String {
    match key {
        Key::Int(number) => number.to_string(),
        Key::Uint(number) => number.to_string(),
        Key::Bool(value) => value.to_string(),
        Key::String(text) => text.to_string(),
    }
}

/// A map with one entry more, or all of those of another. None may be there already.
pub(super) fn inserted(arguments: &[Value]) -> ResolveResult {
    let (map, more) = match arguments {
        [Value::Map(map), Value::Map(more)] => {
            let more = more.map.iter();
            (
                map,
                more.map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
            )
        }
        [Value::Map(map), key, value] => {
            let key: Result<Key, Value> = key.clone().try_into();
            let key = key.map_err(|_| failed("insert", "unsupported key type"))?;
            (map, vec![(key, value.clone())])
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let mut entries: HashMap<Key, Value> = HashMap::clone(&map.map);
    for (key, value) in more {
        if entries.contains_key(&key) {
            let why = format!("insert failed: key {} already exists", shown(&key));
            return Err(failed("insert", why));
        }
        entries.insert(key, value);
    }
    Ok(Value::Map(Map {
        map: Arc::new(entries),
    }))
}

/// A list in the order of what another says of its items.
pub(super) fn sorted(arguments: &[Value]) -> ResolveResult {
    let [Value::List(items), Value::List(keys)] = arguments else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let is_same = |key: &Value| keys.first().map(super::type_name) == Some(super::type_name(key));
    if !keys.iter().all(is_same) {
        return Err(failed("sortBy", "list elements must have the same type"));
    }
    // Of one type all have an order, or none has; but for what is no number, which has none
    // beside anything.
    let has_order = |key: &Value| {
        keys.first()
            .and_then(|first| key.partial_cmp(first))
            .is_some()
    };
    if keys.len() > 1 && !keys.iter().all(has_order) {
        return Err(failed("sortBy", "list elements must be comparable"));
    }
    let largest = keys.iter().map(super::room::size).max().unwrap_or(0);
    let rounds = usize::try_from(keys.len().checked_ilog2().unwrap_or(0)).unwrap_or(0) + 1;
    if largest.saturating_mul(rounds).saturating_mul(keys.len()) > COMPARED {
        budget::exceed();
        return Err(failed("sortBy", "the list is too large to be sorted"));
    }
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(items.iter()).collect();
    pairs.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    let sorted: Vec<Value> = pairs.into_iter().map(|(_, item)| item.clone()).collect();
    Ok(Value::from(sorted))
}
