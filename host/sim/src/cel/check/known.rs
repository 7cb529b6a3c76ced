//! Types and names that are known without an environment.

use kube_cel::cel::common::ast::{Expr, LiteralValue};
use kube_cel::cel::parser::Expression;

use crate::cel::types::Type;

/// A type whose variables are counted from `first`.
pub(super) fn shifted(ty: &Type, first: usize) -> Type {
    match ty {
        Type::Variable(variable) => Type::Variable(first + variable),
        other => other.with_parts(|part| shifted(part, first)),
    }
}

/// A name with dots, where an expression is nothing else.
pub(super) fn qualified(expression: &Expression) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// The type of a literal.
pub(super) fn of_literal(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::Text,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// The type that a name stands for as a value.
pub(super) fn named_type(name: &str) -> Option<Type> {
    let ty = match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "dyn" => Type::Dyn,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::Map(Type::Dyn.into(), Type::Dyn.into()),
        "null_type" => Type::Null,
        "string" => Type::Text,
        "uint" => Type::Uint,
        "type" => Type::Dyn,
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "net.IP" | "net.CIDR" => Type::Dyn,
        _ => return None,
    };
    Some(Type::Meta(ty.into()))
}
