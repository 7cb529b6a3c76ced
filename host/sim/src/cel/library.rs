//! The functions that expressions call when they are evaluated: those that the evaluator
//! lacks or gets wrong are here, and all count what they cost.

mod addresses;
mod conversions;
mod cost;
mod formats;
mod lists;
mod macros;
mod patterns;
mod room;
mod texts;
mod times;
mod uris;
mod urls;
mod versions;

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};
use kube_cel::cel::objects::{Key, Map, Opaque, OptionalValue};
use kube_cel::cel::parser::Expression;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, ResolveResult, Value};

pub(crate) use self::lists::{ListKind, Lists};
pub(super) use self::patterns::is_pattern;
pub(super) use self::room::size;
use super::budget::spend;
use super::types::Type;
use super::{functions, meter, rights};

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
            if operator == operators::ADD {
                room::hold(operator, arguments.get(..2).unwrap_or_default())?;
            }
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
    let pairs: Function = Box::new(|call| macros::pairs(&arguments(call)?));
    context.add_function(super::macros::PAIRS, pairs);
    let inserted: Function = Box::new(|call| macros::inserted(&arguments(call)?));
    context.add_function(super::macros::INSERT, inserted);
    let sorted: Function = Box::new(|call| macros::sorted(&arguments(call)?));
    context.add_function(super::macros::SORT, sorted);
    let negated: Function = Box::new(|call| {
        let arguments = arguments(call)?;
        pay(1)?;
        match arguments.as_slice() {
            [Value::Int(number)] => {
                let negative = number.checked_neg().map(Value::Int);
                negative.ok_or_else(|| failed(operators::NEGATE, "integer overflow"))
            }
            [Value::Float(number)] => Ok(Value::Float(-number)),
            _ => Err(ExecutionError::NoSuchOverload),
        }
    });
    context.add_function(meter::NEGATE, negated);
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
    let held: Function = Box::new(|call| {
        let mut arguments = arguments(call)?;
        room::hold(meter::HELD, &arguments)?;
        arguments.pop().ok_or(ExecutionError::NoSuchOverload)
    });
    context.add_function(meter::HELD, held);
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
        && !name.contains('@')
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

/// What is said of a value that cannot be made one of another type.
fn unconverted(name: &str, from: &str, to: &str) -> ExecutionError {
    failed(
        name,
        format!("type conversion error from '{from}' to '{to}'"),
    )
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
    // These the evaluator calls with arguments of any type.
    if matches!(name, "contains" | "sum")
        && let Some(mismatch) = mismatch(name, &arguments, is_member)
    {
        return Err(mismatch);
    }
    let made = own(name, &arguments).unwrap_or_else(|| evaluated(name, &arguments, is_member));
    // The evaluator says in other ways that a function takes no such arguments.
    let made = made.map_err(|error| mismatch(name, &arguments, is_member).unwrap_or(error))?;
    pay(cost::after(name, &made))?;
    Ok(made)
}

/// What is said of a call with arguments that the function has no overload for, which
/// is seen late where their types are known late; none where it has one.
fn mismatch(name: &str, arguments: &[Value], is_member: bool) -> Option<ExecutionError> {
    let takes = |overload: &functions::Overload| {
        let types = &overload.arguments;
        overload.is_member == is_member
            && types.len() == arguments.len()
            && types
                .iter()
                .zip(arguments)
                .all(|(ty, value)| fits(ty, value))
    };
    if functions::named(name)?.iter().any(takes) {
        return None;
    }
    Some(failed(
        name,
        match name {
            "contains" | "endsWith" | "matches" | "startsWith" => NO_OVERLOAD.to_owned(),
            "size" => format!("{NO_OVERLOAD}: size"),
            _ => {
                let types: Vec<&str> = arguments.iter().map(type_name).collect();
                format!("{NO_OVERLOAD}: {name}({})", types.join(", "))
            }
        },
    ))
}

/// How it starts what is said of a call with arguments that a function has no overload
/// for.
pub(super) const NO_OVERLOAD: &str = "no such overload";

/// Whether a value may be of a type.
fn fits(ty: &Type, value: &Value) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Error | Type::Variable(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::UInt(_))
        | (Type::Double, Value::Float(_))
        | (Type::Text, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Map(..) | Type::Object(_), Value::Map(_))
        | (Type::Meta(_) | Type::Optional(_), Value::Opaque(_)) => true,
        (Type::List(item), Value::List(list)) => list.iter().all(|value| fits(item, value)),
        (Type::Opaque(name), Value::Opaque(opaque)) => opaque.runtime_type_name() == *name,
        _ => false,
    }
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
        .or_else(|| addresses::own(name, arguments))
        .or_else(|| versions::own(name, arguments))
        .or_else(|| formats::own(name, arguments))
        .or_else(|| conversions::own(name, arguments))
        .or_else(|| {
            let made = rights::called(name, arguments)?;
            Some(made.map_err(|why| failed(name, why)))
        })
        .or_else(|| of_types(name, arguments))
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
pub(super) fn type_name(value: &Value) -> &str {
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
        ("dyn", [value]) => value.clone(),
        _ => return None,
    };
    Some(Ok(made))
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
        ("min" | "max", [Value::List(list)]) if list.is_empty() => {
            return Some(Err(failed(name, format!("{name} called on empty list"))));
        }
        ("slice", [Value::List(list), Value::Int(start), Value::Int(end)]) => {
            let refused = |why: String| {
                let why = format!("cannot slice({start}, {end}), {why}");
                Some(Err(failed(name, why)))
            };
            if *start < 0 || *end < 0 {
                return refused("negative indexes not supported".to_owned());
            }
            if start > end {
                return refused("start index must be less than or equal to end index".to_owned());
            }
            let (from, to) = (usize::try_from(*start), usize::try_from(*end));
            match from
                .ok()
                .zip(to.ok())
                .and_then(|(from, to)| list.get(from..to))
            {
                Some(part) => Value::List(Arc::new(part.to_vec())),
                None => return refused(format!("list is length {}", list.len())),
            }
        }
        ("flatten", [Value::List(_), Value::Int(level)]) if *level < 0 => {
            return Some(Err(failed(name, "level must be non-negative")));
        }
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
