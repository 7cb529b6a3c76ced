//! The text of a statement, with names and values quoted.

use crate::scram;
use crate::secret::Secret;
use reeve_core::sql::{Part, SqlError};
use std::collections::BTreeMap;

/// PostgreSQL cuts longer names off, and two that differ beyond that would be one.
const NAME_BYTES: usize = 63;

/// Puts a statement together. `passwords` are the generated secrets that it may name.
pub(super) fn compose(
    parts: &[Part],
    passwords: &BTreeMap<String, Secret>,
    limit: usize,
) -> Result<String, SqlError> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(part) => {
                refuse_nul(part, "a statement")?;
                text.push_str(part);
            }
            Part::Identifier(name) => text.push_str(&identifier(name)?),
            Part::Literal(value) => text.push_str(&literal(value)?),
            Part::Password(name) => {
                let Some(password) = passwords.get(name) else {
                    return Err(SqlError::Invalid(format!(
                        "the action has no generated secret `{name}`; list it in the action's `secrets`"
                    )));
                };
                let verifier = scram::verifier(password)
                    .map_err(|error| SqlError::Connection(error.to_string()))?;
                text.push_str(&literal(&verifier)?);
            }
        }
        if text.len() > limit {
            return Err(SqlError::Invalid(format!(
                "a statement has more than {limit} bytes"
            )));
        }
    }
    Ok(text)
}

fn identifier(name: &str) -> Result<String, SqlError> {
    refuse_nul(name, "an identifier")?;
    if name.is_empty() || name.len() > NAME_BYTES {
        return Err(SqlError::Invalid(format!(
            "`{}` is no identifier: it must have 1 to {NAME_BYTES} bytes",
            name.chars().take(NAME_BYTES).collect::<String>()
        )));
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// The form in which a backslash means itself whatever the server is set to.
fn literal(value: &str) -> Result<String, SqlError> {
    refuse_nul(value, "a literal")?;
    let quoted = value.replace('\'', "''");
    Ok(if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    })
}

pub(super) fn refuse_nul(text: &str, what: &str) -> Result<(), SqlError> {
    if text.contains('\0') {
        return Err(SqlError::Invalid(format!(
            "{what} holds a zero character, which PostgreSQL has no way to write"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(parts: &[Part], expected: &str) {
        let found = match compose(parts, &BTreeMap::new(), 200) {
            Ok(text) => text,
            Err(error) => error.to_string(),
        };
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn names_and_values_are_quoted() {
        let text = |text: &str| Part::Text(text.into());
        let name = |text: &str| Part::Identifier(text.into());
        let value = |text: &str| Part::Literal(text.into());
        check(&[text("create role "), name("a")], r#"create role "a""#);
        check(
            &[name(r#"a"; drop table b; --"#)],
            r#""a""; drop table b; --""#,
        );
        check(&[name("ä b")], r#""ä b""#);
        check(&[value("it's")], "'it''s'");
        check(&[value(r"\' or 1=1")], r" E'\\'' or 1=1'");
        check(&[name("")], "`` is no identifier");
        check(&[name(&"a".repeat(64))], "`aaa");
        check(&[name("a\0b")], "an identifier holds a zero");
        check(&[value("\0")], "a literal holds a zero");
        check(&[text(&"x".repeat(201))], "a statement has more than 200");
        check(
            &[Part::Password("p".into())],
            "the action has no generated secret `p`",
        );
    }

    #[test]
    fn a_password_is_never_part_of_a_statement() {
        let password = Secret::new("hunter2");
        let known = BTreeMap::from([("p".to_owned(), password)]);
        let text = compose(&[Part::Password("p".into())], &known, 1000).unwrap();
        assert!(text.starts_with("'SCRAM-SHA-256$4096:"), "{text}");
        assert!(!text.contains("hunter2"));
    }
}
