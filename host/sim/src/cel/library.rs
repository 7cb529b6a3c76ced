//! The functions that expressions call when they are evaluated: those that the evaluator
//! lacks or gets wrong are here, and all count what they cost.

mod cost;
mod lists;
mod patterns;
mod texts;
mod times;
mod urls;

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};
use kube_cel::cel::objects::{Key, Map, Opaque, OptionalValue};
use kube_cel::cel::parser::Expression;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, ResolveResult, Value};

pub(crate) use self::lists::{ListKind, Lists};
pub(super) use self::patterns::is_pattern;
use super::budget::spend;
use super::{functions, meter};

/// Functions whose arguments are evaluated only where they are needed, or whose values are
/// of no type that is named; the evaluator has them right.
const NATIVE: [&str; 7] = [
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "value",
    "hasValue",
    "or",
    "orValue",
];

/// Operators that are called as functions, and what they stand for.
const OPERATORS: [(&str, &str); 4] = [
    (meter::EQUALS, operators::EQUALS),
    (meter::DIFFERS, operators::NOT_EQUALS),
    (meter::ADD, operators::ADD),
    (meter::IN, operators::IN),
];

type Function = Box<dyn Fn(&mut FunctionContext<'_, '_>) -> ResolveResult + Send + Sync>;

thread_local! {
    /// The functions as the evaluator has them.
    static EVALUATOR: Context<'static> = Context::default().with_all();
}

/// All that an expression may refer to, but for its variables.
pub(crate) fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    for name in functions::names().filter(|name| has(name)) {
        let function: Function = Box::new(move |call| called(name, call));
        context.add_function(name, function);
    }
    for (name, operator) in OPERATORS.into_iter().chain(compared()) {
        let function: Function = Box::new(move |call| {
            let arguments = arguments(call)?;
            pay(cost::of_operator(operator, &arguments))?;
            match (
                operator,
                arguments.as_slice(),
                lists::operated(operator, &arguments),
            ) {
                (_, _, Some(made)) => Ok(made),
                // The evaluator finds no two values that may be absent alike.
                (operators::EQUALS, [left @ Value::Opaque(_), right @ Value::Opaque(_)], _) => {
                    Ok(Value::Bool(left == right))
                }
                (operators::NOT_EQUALS, [left @ Value::Opaque(_), right @ Value::Opaque(_)], _) => {
                    Ok(Value::Bool(left != right))
                }
                _ => evaluated(operator, arguments.get(..2).unwrap_or_default(), false),
            }
        });
        context.add_function(name, function);
    }
    let spent: Function = Box::new(|call| {
        match call.args.first().map(|cost| &cost.expr) {
            Some(Expr::Literal(LiteralValue::Int(cost))) => {
                pay(u64::try_from(*cost.inner()).unwrap_or(u64::MAX))?;
            }
            _ => return Err(ExecutionError::NoSuchOverload),
        }
        Ok(Value::Bool(true))
    });
    context.add_function(meter::SPEND, spent);
    for name in [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
    ] {
        context.add_variable_from_value(name, TypeName::value(name));
    }
    let protobuf = map([
        ("Duration", TypeName::value(DURATION)),
        ("Timestamp", TypeName::value(TIMESTAMP)),
    ]);
    context.add_variable_from_value("google", map([("protobuf", protobuf)]));
    context
}

fn compared() -> impl Iterator<Item = (&'static str, &'static str)> {
    meter::COMPARE
        .into_iter()
        .map(|(operator, name)| (name, operator))
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
    Value::Map(Map {
        map: Arc::new(HashMap::from(entries)),
    })
}

/// Whether a function is one of these, and counts what it costs.
pub(super) fn has(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !NATIVE.contains(&name)
        && functions::named(name).is_some()
}

fn pay(cost: u64) -> Result<(), ExecutionError> {
    if spend(cost) {
        Ok(())
    } else {
        Err(failed(
            "cost",
            "operation cancelled: actual cost limit exceeded",
        ))
    }
}

fn failed(name: &str, why: impl Into<String>) -> ExecutionError {
    ExecutionError::function_error(name, why.into())
}

/// The arguments of a call; what a function is called on is the first.
fn arguments(call: &FunctionContext<'_, '_>) -> Result<Vec<Value>, ExecutionError> {
    let this = call.this.clone().map(Ok);
    let given = call
        .args
        .iter()
        .map(|given| Value::resolve(given, call.ptx));
    this.into_iter().chain(given).collect()
}

fn called(name: &'static str, call: &FunctionContext<'_, '_>) -> ResolveResult {
    let is_member = call.this.is_some();
    let arguments = arguments(call)?;
    pay(cost::before(name, &arguments))?;
    let made = match own(name, &arguments) {
        Some(made) => made?,
        None => evaluated(name, &arguments, is_member)?,
    };
    pay(cost::after(name, &made))?;
    Ok(made)
}

/// Whether a function makes something of a text.
pub(super) fn takes(name: &str, text: &str) -> bool {
    let arguments = [Value::String(Arc::new(text.to_owned()))];
    let made = own(name, &arguments).unwrap_or_else(|| evaluated(name, &arguments, false));
    made.is_ok()
}

/// What the evaluator's function makes of its arguments.
fn evaluated(name: &str, arguments: &[Value], is_member: bool) -> ResolveResult {
    let plain = |expr| Expression { id: 0, expr };
    let mut names = (0..arguments.len()).map(|index| plain(Expr::Ident(format!("x{index}"))));
    let (target, func_name) = match name.split_once('.') {
        Some((prefix, name)) => (Some(plain(Expr::Ident(prefix.to_owned()))), name),
        None if is_member => (names.next(), name),
        None => (None, name),
    };
    let call = plain(Expr::Call(CallExpr {
        func_name: func_name.to_owned(),
        target: target.map(Box::new),
        args: names.collect(),
    }));
    EVALUATOR.with(|evaluator| {
        let mut context = evaluator.new_inner_scope();
        for (index, argument) in arguments.iter().enumerate() {
            context.add_variable_from_value(format!("x{index}"), argument.clone());
        }
        Value::resolve(&call, &context)
    })
}

/// What functions make that are ours; none where the evaluator's is right.
fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    texts::own(name, arguments)
        .or_else(|| times::own(name, arguments))
        .or_else(|| patterns::own(name, arguments))
        .or_else(|| urls::own(name, arguments))
        .or_else(|| of_types(name, arguments))
        .or_else(|| of_formats(name, arguments))
        .or_else(|| of_lists(name, arguments))
}

const DURATION: &str = "google.protobuf.Duration";
const TIMESTAMP: &str = "google.protobuf.Timestamp";

/// A type as a value.
#[derive(Debug, PartialEq, Eq)]
struct TypeName(String);

impl Opaque for TypeName {
    fn runtime_type_name(&self) -> &str {
        "type"
    }
}

impl TypeName {
    fn value(name: &str) -> Value {
        Value::Opaque(Arc::new(TypeName(name.to_owned())))
    }
}

/// The name of the type of a value.
fn type_name(value: &Value) -> &str {
    match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Duration(_) => DURATION,
        Value::Timestamp(_) => TIMESTAMP,
        Value::Opaque(opaque) => opaque.runtime_type_name(),
        Value::Null => "null_type",
        Value::Function(..) => "function",
    }
}

fn of_types(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let made = match (name, arguments) {
        ("type", [value]) => TypeName::value(type_name(value)),
        ("dyn", [value])
        | ("bool", [value @ Value::Bool(_)])
        | ("bytes", [value @ Value::Bytes(_)]) => value.clone(),
        ("bool", [Value::String(text)]) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Value::Bool(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Value::Bool(false),
            _ => {
                return Some(Err(failed(
                    name,
                    "type conversion error from 'string' to 'bool'",
                )));
            }
        },
        ("int", [Value::Float(number)]) => {
            const END: f64 = 9_223_372_036_854_775_808.0;
            if !(-END..END).contains(number) {
                return Some(Err(failed(name, "integer overflow")));
            }
            #[expect(clippy::cast_possible_truncation, reason = "it was looked at before")]
            let whole = *number as i64;
            Value::Int(whole)
        }
        _ => return None,
    };
    Some(Ok(made))
}

/// Names of formats are looked up, and what fits one has nothing to say.
fn of_formats(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let is_member = match name {
        "format.named" => false,
        "validate" => true,
        _ => return None,
    };
    Some(evaluated(name, arguments, is_member).map(|made| {
        let found = match made {
            Value::Null => None,
            Value::List(list) if list.is_empty() => None,
            made => Some(made),
        };
        optional(found)
    }))
}

fn optional(value: Option<Value>) -> Value {
    if let Some(Value::Opaque(opaque)) = &value
        && opaque.downcast_ref::<OptionalValue>().is_some()
    {
        return Value::Opaque(Arc::clone(opaque));
    }
    let made = match value {
        Some(value) => OptionalValue::of(value),
        None => OptionalValue::none(),
    };
    Value::Opaque(Arc::new(made))
}

fn of_lists(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let made = match (name, arguments) {
        ("first", [Value::List(list)]) => optional(list.first().cloned()),
        ("last", [Value::List(list)]) => optional(list.last().cloned()),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            let present = list.iter().filter_map(|item| match item {
                Value::Opaque(opaque) => opaque.downcast_ref::<OptionalValue>()?.value().cloned(),
                _ => None,
            });
            Value::List(Arc::new(present.collect()))
        }
        _ => return None,
    };
    Some(Ok(made))
}

#[cfg(test)]
mod tests;
