//! The functions that expressions may call.
//!
//! `functions.txt` has one overload a line:
//!
//! ```text
//! size(list(A)) int
//! string : startsWith(string) bool
//! ```
//!
//! What stands before ` : ` is the type of the value that the function is called on.
//! Types are written as messages print them; a single letter is any type, the same
//! wherever it stands in the line.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::types::Type;

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// Whether it is called on a value, which is then the first argument.
    pub(super) is_member: bool,
    /// The types of the arguments.
    pub(super) arguments: Vec<Type>,
    /// What comes out.
    pub(super) result: Type,
    /// How many variables these have, which are counted from zero.
    pub(super) variables: usize,
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    let lines = include_str!("functions.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        if let Some((name, overload)) = overload(line) {
            functions.entry(name).or_default().push(overload);
        }
    }
    functions
});

/// The ways to call a function; none where there is no such function.
pub(super) fn named(name: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

/// The names of all functions, operators among them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

fn overload(line: &'static str) -> Option<(&'static str, Overload)> {
    let (on, call) = match line.split_once(" : ") {
        Some((on, call)) => (Some(on), call),
        None => (None, line),
    };
    // Operators have no parenthesis in their names.
    let (name, rest) = call.split_once('(')?;
    let end = closing(rest)?;
    let mut letters = Vec::new();
    let arguments = on.into_iter().chain(listed(rest.get(..end)?));
    let arguments: Vec<Type> = arguments.map(|ty| parse(ty, &mut letters)).collect();
    let result = parse(rest.get(end + 1..)?.trim(), &mut letters);
    let overload = Overload {
        is_member: on.is_some(),
        arguments,
        result,
        variables: letters.len(),
    };
    Some((name, overload))
}

/// Where the parenthesis closes that was opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.find(|c: char| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return true,
            ')' => depth -= 1,
            _ => {}
        }
        false
    })
}

/// The parts of a list with commas, which may hold lists themselves.
fn listed(text: &'static str) -> Vec<&'static str> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

fn parse(text: &'static str, letters: &mut Vec<&'static str>) -> Type {
    if let Some((name, rest)) = text.split_once('(') {
        let inside = listed(rest.strip_suffix(')').unwrap_or(rest));
        let mut parts = inside
            .into_iter()
            .map(|part| Arc::new(parse(part, letters)));
        return match (name, parts.next(), parts.next()) {
            ("list", Some(item), _) => Type::List(item),
            ("map", Some(key), Some(value)) => Type::Map(key, value),
            ("optional_type", Some(value), _) => Type::Optional(value),
            ("type", Some(ty), _) => Type::Meta(ty),
            _ => Type::Dyn,
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        letter if letter.len() == 1 => {
            let known = letters.iter().position(|known| *known == letter);
            Type::Variable(known.unwrap_or_else(|| {
                letters.push(letter);
                letters.len() - 1
            }))
        }
        name => Type::Opaque(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_it_is_written() {
        for line in include_str!("functions.txt").lines() {
            if line.starts_with('#') {
                continue;
            }
            let (name, overload) = overload(line).unwrap();
            let mut arguments = overload.arguments.iter().map(ToString::to_string);
            let on = overload.is_member.then(|| arguments.next().unwrap());
            let on = on.map(|on| format!("{on} : ")).unwrap_or_default();
            let arguments: Vec<String> = arguments.collect();
            let mut read = format!("{on}{name}({}) {}", arguments.join(", "), overload.result);
            for (number, letter) in ["A", "B"].iter().enumerate() {
                read = read.replace(&format!("_var{number}"), letter);
            }
            assert_eq!(read, line);
        }
        assert_eq!(named("_+_").map(<[Overload]>::len), Some(9));
        assert!(named("optional.of").is_some());
        assert!(named("no").is_none());
    }
}
