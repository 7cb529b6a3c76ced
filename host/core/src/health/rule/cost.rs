//! Bounds on expressions that strangers write: how deep, how large, how long.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{EntryExpr, Expr};
use serde_json::Value;

/// The functions that are offered: those of the standard that build nothing
/// larger than what they are given. Operators and macros have names of their own.
const FUNCTIONS: [&str; 25] = [
    "contains",
    "size",
    "startsWith",
    "endsWith",
    "matches",
    "min",
    "max",
    "string",
    "bytes",
    "double",
    "int",
    "uint",
    "bool",
    "type",
    "timestamp",
    "duration",
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfWeek",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    "dyn",
];

/// The deepest nesting of brackets in a text; those in strings count too.
///
/// A run of prefix operators nests just as well, and counts by its length.
pub(super) fn nesting(source: &str) -> usize {
    let (mut depth, mut prefix, mut deepest) = (0_usize, 0_usize, 0_usize);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            // The right side of a conditional is parsed inside of it.
            b'?' => depth += 1,
            _ => {}
        }
        match byte {
            b'!' | b'-' => prefix += 1,
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => prefix = 0,
        }
        deepest = deepest.max(depth + prefix);
    }
    deepest
}

/// How many parts an expression has.
pub(super) fn nodes(expression: &IdedExpr) -> usize {
    1 + children(expression).into_iter().map(nodes).sum::<usize>()
}

/// How deep an expression nests.
pub(super) fn depth(expression: &IdedExpr) -> usize {
    1 + children(expression)
        .into_iter()
        .map(depth)
        .max()
        .unwrap_or(0)
}

/// What an expression uses that evaluation would not survive, or that could make
/// it last.
pub(super) fn not_offered(expression: &IdedExpr) -> Option<String> {
    let own = match &expression.expr {
        Expr::Struct(made) => Some(format!("the type {}", made.type_name)),
        Expr::Unspecified => Some("an empty expression".to_owned()),
        Expr::Call(call) if !is_operator(&call.func_name) => {
            let offered = FUNCTIONS.contains(&call.func_name.as_str());
            (!offered).then(|| format!("the function {}", call.func_name))
        }
        Expr::Map(map) => map
            .entries
            .iter()
            .any(|entry| matches!(entry.expr, EntryExpr::StructField(_)))
            .then(|| "a field of a type".to_owned()),
        _ => None,
    };
    own.or_else(|| children(expression).into_iter().find_map(not_offered))
}

/// Operators are functions whose names no one can write: `_&&_`, `!_`, `@in`.
fn is_operator(name: &str) -> bool {
    name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '.')
}

/// An upper bound of the steps that an evaluation takes on an object none of
/// whose lists or maps has more than `size` items.
pub(super) fn estimate(expression: &IdedExpr, size: u64) -> u64 {
    // No list is longer than the longest of all, as often as lists are joined.
    let length = size
        .max(longest_literal(expression))
        .max(1)
        .saturating_mul(concatenations(expression) + 1);
    steps(expression, length)
}

fn steps(expression: &IdedExpr, length: u64) -> u64 {
    let below = |expressions: &[&IdedExpr]| {
        expressions
            .iter()
            .fold(1_u64, |sum, child| sum.saturating_add(steps(child, length)))
    };
    match &expression.expr {
        Expr::Comprehension(comprehension) => {
            let c = comprehension;
            let once = below(&[&c.iter_range, &c.accu_init, &c.result]);
            // A list that grows is copied at each step.
            let growth = if matches!(c.accu_init.expr, Expr::List(_)) {
                length
            } else {
                1
            };
            let each = below(&[&c.loop_cond, &c.loop_step]).saturating_add(growth);
            once.saturating_add(each.saturating_mul(length))
        }
        _ => below(&children(expression)),
    }
}

fn concatenations(expression: &IdedExpr) -> u64 {
    let own = match &expression.expr {
        Expr::Call(call) if call.func_name == "_+_" => 1,
        _ => 0,
    };
    children(expression)
        .into_iter()
        .map(concatenations)
        .fold(own, u64::saturating_add)
}

fn longest_literal(expression: &IdedExpr) -> u64 {
    let own = match &expression.expr {
        Expr::List(list) => list.elements.len(),
        Expr::Map(map) => map.entries.len(),
        _ => 0,
    };
    let below = children(expression).into_iter().map(longest_literal).max();
    below.unwrap_or(0).max(own as u64)
}

fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect(),
        Expr::Comprehension(c) => vec![
            &c.iter_range,
            &c.accu_init,
            &c.loop_cond,
            &c.loop_step,
            &c.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(made) => entries(&made.entries),
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entries(entries: &[kube_cel::cel::common::ast::IdedEntryExpr]) -> Vec<&IdedExpr> {
    entries
        .iter()
        .flat_map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => vec![&field.value],
            EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        })
        .collect()
}

/// The length of the longest list or map in an object.
pub(super) fn largest(value: &Value) -> u64 {
    let (own, below) = match value {
        Value::Array(items) => (items.len(), items.iter().map(largest).max()),
        Value::Object(fields) => (fields.len(), fields.values().map(largest).max()),
        _ => (0, None),
    };
    below.unwrap_or(0).max(own as u64)
}
