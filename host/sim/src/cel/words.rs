//! What went wrong in an evaluation, in the words of the real server's library (cel-go).

use kube_cel::cel::{ExecutionError, Value};

use super::library::NO_OVERLOAD;
use super::library::type_name;

/// Why an expression came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A function or an operator does not take such arguments.
    NoOverload(String),
    /// Something else.
    Other(String),
}

impl Failure {
    /// What the evaluator found.
    pub(crate) fn of(error: &ExecutionError) -> Self {
        let why = words(error);
        if why.starts_with(NO_OVERLOAD) {
            Failure::NoOverload(why)
        } else {
            Failure::Other(why)
        }
    }
}

/// What an error is called there.
pub(super) fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, left, right) => overflow(left, right).to_owned(),
        ExecutionError::IndexOutOfBounds(index) => {
            format!("index out of bounds: {}", shown(index))
        }
        ExecutionError::UnsupportedListIndex(index) => {
            format!("unsupported index type '{}' in list", type_name(index))
        }
        ExecutionError::UnsupportedMapIndex(key) | ExecutionError::UnsupportedKeyType(key) => {
            format!("no such key: {}", shown(key))
        }
        ExecutionError::FunctionError { function, message } => match function.as_str() {
            "format" => formatted(message),
            _ => message.clone(),
        },
        ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::NoSuchOverload
        | ExecutionError::MissingArgumentOrTarget
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedIndex(..) => NO_OVERLOAD.to_owned(),
        other => other.to_string(),
    }
}

/// The overflow of an operator with these operands.
fn overflow(left: &Value, right: &Value) -> &'static str {
    match (left, right) {
        (Value::Timestamp(_), Value::Timestamp(_)) => "duration overflow",
        (Value::Timestamp(_), _) | (_, Value::Timestamp(_)) => "timestamp overflow",
        (Value::Duration(_), _) => "duration overflow",
        (Value::UInt(_), _) => "unsigned integer overflow",
        _ => "integer overflow",
    }
}

/// An index or a key.
fn shown(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::String(text) => text.to_string(),
        Value::Opaque(opaque) => opaque.runtime_type_name().to_owned(),
        other => type_name(other).to_owned(),
    }
}

/// What the evaluator says of texts that it cannot put values into, and the library.
const CLAUSES: [(&str, &str); 6] = [
    (
        "%d requires ",
        "decimal clause can only be used on integers",
    ),
    (
        "%f requires ",
        "fixed-point clause can only be used on doubles",
    ),
    (
        "%e requires ",
        "scientific clause can only be used on doubles",
    ),
    (
        "%b requires ",
        "only integers and bools can be formatted as binary",
    ),
    ("%o requires ", "octal clause can only be used on integers"),
    (
        "%x requires ",
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
];

/// The names of types to the evaluator, and to the library.
const TYPES: [(&str, &str); 11] = [
    ("Int", "int"),
    ("UInt", "uint"),
    ("Float", "double"),
    ("String", "string"),
    ("Bool", "bool"),
    ("Bytes", "bytes"),
    ("List", "list"),
    ("Map", "map"),
    ("Null", "null_type"),
    ("Timestamp", "google.protobuf.Timestamp"),
    ("Duration", "google.protobuf.Duration"),
];

fn formatted(message: &str) -> String {
    if message == "format string ends with '%'" {
        return "unexpected end of string".to_owned();
    }
    if message == "invalid precision in format string" {
        return "could not parse formatting clause: error while parsing precision: error while \
                converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax"
            .to_owned();
    }
    if let Some(rest) = message.strip_prefix("not enough arguments: ") {
        let given = rest.rsplit_once(' ').map_or("0", |(_, given)| given);
        return format!("index {given} out of range");
    }
    if let Some(verb) = message.strip_prefix("unknown format verb '%") {
        let verb = verb.trim_end_matches('\'');
        return format!(
            "could not parse formatting clause: unrecognized formatting clause \"{verb}\""
        );
    }
    let clause = CLAUSES.iter().find(|(ours, _)| message.starts_with(ours));
    if let (Some((_, clause)), Some((_, given))) = (clause, message.rsplit_once("got ")) {
        let known = TYPES.iter().find(|(ours, _)| *ours == given);
        let given = known.map_or(given, |(_, theirs)| theirs);
        return format!("error during formatting: {clause}, was given {given}");
    }
    message.to_owned()
}
