//! Expressions in CEL: how they are read, and what is wrong with those that cannot be
//! evaluated.

pub(crate) mod admission;
mod budget;
mod check;
mod estimate;
mod facts;
mod functions;
mod library;
mod macros;
mod made;
mod meter;
pub(crate) mod optional;
pub(crate) mod rights;
mod scope;
mod source;
mod types;
mod words;

use kube_cel::cel::parser::{Expression, Parser};

pub(crate) use budget::{Budget, Exceeded};
pub(crate) use check::Environment;
pub(crate) use estimate::{Extent, cost};
pub(crate) use facts::Facts;
pub(crate) use library::{ListKind, Lists, context};
pub(crate) use scope::{Outcome, Scope};
pub(crate) use types::Type;
pub(crate) use words::Failure;

/// Words of the language, which are no names.
pub(crate) const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Reads an expression.
///
/// # Errors
///
/// All that is wrong with it, each with the line where it is.
pub(crate) fn parse(text: &str) -> Result<Expression, String> {
    source::check_size(text)?;
    if source::depth(text) > SHALLOW {
        let parsed = on_a_large_stack(|| parse_here(text));
        return parsed.unwrap_or_else(|| Err("there is no thread to read it in".to_owned()));
    }
    parse_here(text)
}

fn parse_here(text: &str) -> Result<Expression, String> {
    let parser = Parser::new().enable_optional_syntax(true);
    parser.parse(text).map_err(|refused| {
        let errors = refused.errors.iter().map(|error| {
            let (line, column) = error.pos;
            let place = (count(line), count(column).saturating_sub(1));
            source::at(text, place, &error.msg)
        });
        errors.collect::<Vec<_>>().join("\n")
    })
}

/// Makes an expression, which was checked, one that can be evaluated with the functions
/// of [`context`] and is paid for from a [`Budget`].
pub(crate) fn make_ready(expression: &mut Expression) {
    if let Some(written) = macros::written_out(expression) {
        *expression = written;
    }
    meter::metered(expression);
    macros::paired(expression);
}

/// Texts that nest deeper are read where there is more of a stack: the parser makes sixteen
/// calls for each bracket, of which fifteen brackets fill the usual stack of a thread without
/// optimisation.
const SHALLOW: usize = 8;
/// Expressions that nest deeper are checked and evaluated where there is more of a stack.
const DEEP: usize = 24;
/// What those get of it; only what is used is ever backed by memory.
const STACK: usize = 256 << 20;

/// Whether an expression is evaluated by [`on_a_large_stack`].
pub(crate) fn is_deep(expression: &Expression) -> bool {
    meter::depth(expression) > DEEP
}

/// Does something for which the usual stack might not do. None where there is no thread
/// to do it in.
pub(crate) fn on_a_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

fn count(number: isize) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The type of an expression that was read from `text`.
///
/// # Errors
///
/// All parts whose types do not go together, each with the line where it is.
pub(crate) fn check(
    expression: &Expression,
    text: &str,
    environment: &Environment,
) -> Result<Type, String> {
    checked(expression, text, environment).map(|(ty, _)| ty)
}

/// As [`check`], with what is known of the parts.
///
/// # Errors
///
/// As [`check`].
pub(crate) fn checked(
    expression: &Expression,
    text: &str,
    environment: &Environment,
) -> Result<(Type, Facts), String> {
    if !is_deep(expression) {
        return checked_here(expression, text, environment);
    }
    // What is written in place of macros is several times as deep.
    on_a_large_stack(|| checked_here(expression, text, environment)).unwrap_or_else(|| {
        Err("there is no thread to check the expression in; try again".to_owned())
    })
}

fn checked_here(
    expression: &Expression,
    text: &str,
    environment: &Environment,
) -> Result<(Type, Facts), String> {
    let misused = macros::misused(&mut expression.clone());
    if !misused.is_empty() {
        return Err(source::shown(text, &misused));
    }
    let check = |expression: &Expression| {
        let checked = check::check(expression, environment);
        checked.map_err(|faults| source::shown(text, &faults))
    };
    let (ty, facts) = check(expression)?;
    Ok(match macros::written_in_place(expression) {
        Some(written) => (check(&written)?.0, facts),
        None => (ty, facts),
    })
}

#[cfg(test)]
mod tests;
