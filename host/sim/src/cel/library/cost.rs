//! What calls cost, as in the real server (`CostEstimator.CallCost` and the defaults of
//! its library).

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators;

/// Going through a text costs a unit for so many characters.
const PER_UNIT: u64 = 10;
/// And a pattern for so many of its own.
const PER_UNIT_OF_PATTERN: u64 = 4;

/// Asking about a right costs so much that an expression does it twice at most.
const CHECK: u64 = 350_000;

/// What a function costs that is called with these, before its result is known.
pub(super) fn before(name: &str, arguments: &[Value]) -> u64 {
    let size = |index: usize| arguments.get(index).map_or(1, size);
    let text = |index: usize| size(index).div_ceil(PER_UNIT);
    match name {
        "startsWith" | "endsWith" | "bytes" | "strings.quote" | "format" | "url" | "isURL"
        | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => text(0),
        "string" if matches!(arguments, [Value::Bytes(_)]) => text(0),
        "replace" | "split" | "ip.isCanonical" => (size(0) * 2).div_ceil(PER_UNIT),
        "contains" => text(0) * text(1),
        "matches" | "find" | "findAll" => {
            (size(0) + 1).div_ceil(PER_UNIT) * size(1).div_ceil(PER_UNIT_OF_PATTERN)
        }
        // The longest pattern of a format has some hundred characters.
        "validate" => (size(1) + 1).div_ceil(PER_UNIT) * 25,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "sort" | "flatten"
        | "reverse" | "slice" => arguments.first().map_or(1, traversal),
        "distinct" => size(0) * size(0),
        "sets.contains" | "sets.equivalent" | "sets.intersects" => size(0) * size(1),
        "lists.range" => match arguments.first() {
            Some(Value::Int(length)) => u64::try_from(*length).unwrap_or(1),
            _ => 1,
        },
        "join" => 0,
        "check" => CHECK,
        _ => 1,
    }
}

/// What it costs besides, by what came out.
pub(super) fn after(name: &str, made: &Value) -> u64 {
    match name {
        "join" => (size(made) * 2).div_ceil(PER_UNIT),
        _ => 0,
    }
}

/// What an operator costs.
pub(super) fn of_operator(operator: &str, operands: &[Value]) -> u64 {
    let [left, right, ..] = operands else {
        return 1;
    };
    match (operator, left) {
        (operators::IN, _) => match right {
            Value::List(list) => list.len() as u64,
            _ => 1,
        },
        (operators::ADD, Value::String(_) | Value::Bytes(_)) => {
            (size(left) + size(right)).div_ceil(PER_UNIT)
        }
        (operators::ADD, _) => 1,
        _ => size(left).min(size(right)).div_ceil(PER_UNIT),
    }
}

fn size(value: &Value) -> u64 {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.map.len(),
        _ => 1,
    };
    size as u64
}

/// What it costs to go through a value with all that is in it.
fn traversal(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 / PER_UNIT,
        Value::Bytes(bytes) => bytes.len() as u64 / PER_UNIT,
        Value::List(list) => list.iter().map(traversal).sum(),
        Value::Map(map) => map.map.values().map(|value| traversal(value) + 1).sum(),
        _ => 1,
    }
}
