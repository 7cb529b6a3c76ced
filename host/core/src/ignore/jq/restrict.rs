//! What of jq is offered.

use super::JqError;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::{Part, Path};

/// The deepest nesting of parts: evaluation recurses along it.
pub(super) const MAX_DEPTH: usize = 24;
/// The most parts of one expression.
pub(super) const MAX_PARTS: usize = 120;

/// Functions that are offered. None takes longer, or makes anything larger, than
/// what it is given.
const FUNCTIONS: [&str; 31] = [
    "all",
    "any",
    "arrays",
    "ascii_downcase",
    "booleans",
    "contains",
    "empty",
    "endswith",
    "false",
    "first",
    "has",
    "in",
    "inside",
    "iterables",
    "keys",
    "last",
    "length",
    "map",
    "not",
    "null",
    "nulls",
    "numbers",
    "objects",
    "scalars",
    "select",
    "startswith",
    "strings",
    "test",
    "to_entries",
    "true",
    "type",
];

/// Definitions of the standard library that these are, or are made of.
pub(super) const DEFINED: [&str; 30] = [
    "all",
    "any",
    "arrays",
    "booleans",
    "empty",
    "false",
    "first",
    "in",
    "inside",
    "isarray",
    "isboolean",
    "isempty",
    "isnumber",
    "isobject",
    "isstring",
    "iterables",
    "keys",
    "last",
    "map",
    "not",
    "null",
    "nulls",
    "numbers",
    "objects",
    "scalars",
    "select",
    "strings",
    "to_entries",
    "true",
    "type",
];

/// Checks that an expression stays within what is offered.
pub(super) fn check(term: &Term<&str>) -> Result<(), JqError> {
    let mut parts = 0;
    walk(term, 1, &mut parts)
}

fn walk(term: &Term<&str>, depth: usize, parts: &mut usize) -> Result<(), JqError> {
    *parts += 1;
    if depth > MAX_DEPTH || *parts > MAX_PARTS {
        return Err(JqError::TooLarge);
    }
    let refused = |what: &str| Err(JqError::NotOffered(what.to_owned()));
    let mut below = |term: &Term<&str>| walk(term, depth + 1, parts);
    match term {
        Term::Id | Term::Recurse | Term::Num(_) => Ok(()),
        Term::Str(None, text) => {
            let plain = |part: &StrPart<_, _>| !matches!(part, StrPart::Term(_));
            if text.iter().all(plain) {
                Ok(())
            } else {
                refused("text with an expression in it")
            }
        }
        Term::Str(Some(_), _) => refused("a text format"),
        Term::Arr(None) => Ok(()),
        Term::Arr(Some(term)) => below(term),
        Term::Neg(term) if matches!(**term, Term::Num(_)) => Ok(()),
        Term::Neg(_) => refused("arithmetic"),
        Term::BinOp(left, operator, right) => {
            match operator {
                BinaryOp::Pipe(None)
                | BinaryOp::Comma
                | BinaryOp::Alt
                | BinaryOp::Or
                | BinaryOp::And
                | BinaryOp::Cmp(_) => {}
                BinaryOp::Pipe(Some(_)) => return refused("variables"),
                BinaryOp::Math(_) => return refused("arithmetic"),
                BinaryOp::Assign
                | BinaryOp::Update
                | BinaryOp::UpdateMath(_)
                | BinaryOp::UpdateAlt => return refused("assignment"),
            }
            below(left)?;
            below(right)
        }
        Term::TryCatch(tried, caught) => {
            below(tried)?;
            caught.as_deref().map_or(Ok(()), below)
        }
        Term::IfThenElse(cases, otherwise) => {
            for (condition, then) in cases {
                below(condition)?;
                below(then)?;
            }
            otherwise.as_deref().map_or(Ok(()), below)
        }
        Term::Call(name, arguments) => {
            if !FUNCTIONS.contains(name) {
                return refused(&format!("the function {name}"));
            }
            arguments.iter().try_for_each(below)
        }
        Term::Path(term, Path(path)) => {
            below(term)?;
            for (part, _) in path {
                match part {
                    Part::Index(index) => below(index)?,
                    Part::Range(None, None) => {}
                    Part::Range(..) => return refused("parts of lists"),
                }
            }
            Ok(())
        }
        Term::Obj(_) => refused("making objects"),
        Term::Label(..) | Term::Break(_) => refused("labels"),
        Term::Fold(name, ..) => refused(name),
        Term::Def(..) => refused("definitions"),
        Term::Var(_) => refused("variables"),
    }
}
