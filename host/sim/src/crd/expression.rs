//! CEL rules of a schema (`x-kubernetes-validations`).

use std::fmt;

use kube_cel::cel::Program;
use kube_cel::{CompiledSchema, ErrorKind, compile_schema, validate_compiled};
use serde_json::Value;

use crate::field::{ErrorType, Errors, FieldError, Path, printed};
use crate::kinds::edit::{items, text};

/// The rules of one schema, compiled.
pub(super) struct Rules {
    /// The schema with the rules of this level only: those below are checked
    /// where the change of a list's item can be followed.
    compiled: CompiledSchema,
    rules: Vec<Rule>,
}

/// What a rule says besides its expression.
#[derive(Debug)]
struct Rule {
    expression: String,
    reason: ErrorType,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}

/// Says why an expression cannot be compiled.
///
/// # Errors
///
/// With the compiler's text.
pub(super) fn check(expression: &str) -> Result<(), String> {
    Program::compile(expression)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

impl Rules {
    /// The rules of a schema, if it has some.
    pub(super) fn parse(schema: &Value) -> Option<Self> {
        let rules: Vec<Rule> = items(schema, FIELD)
            .map(|rule| Rule {
                expression: text(rule, "rule").to_owned(),
                reason: match text(rule, "reason") {
                    "FieldValueForbidden" => ErrorType::Forbidden,
                    "FieldValueRequired" => ErrorType::Required,
                    "FieldValueDuplicate" => ErrorType::Duplicate,
                    _ => ErrorType::Invalid,
                },
            })
            .collect();
        if rules.is_empty() {
            return None;
        }
        let mut own = schema.clone();
        keep_types(&mut own, true);
        Some(Rules {
            compiled: compile_schema(&own),
            rules,
        })
    }

    /// Checks a value, and the change from `old`.
    pub(super) fn check(
        &self,
        path: &Path<'_>,
        value: &Value,
        old: Option<&Value>,
        errors: &mut Errors,
    ) {
        let Err(found) = validate_compiled(&self.compiled, value, old) else {
            return;
        };
        for error in found.into_vec() {
            let at = if error.field_path.is_empty() {
                path.to_string()
            } else {
                let sub = error.field_path.trim_start_matches('.');
                path.child(sub).to_string()
            };
            let (value, detail) = match error.kind {
                ErrorKind::ValidationFailure => (shown(value), error.message),
                _ => (
                    Some(format!("\"{}\"", type_of(value))),
                    format!("{} evaluating rule: {}", error.message, error.rule),
                ),
            };
            let kind = self
                .rules
                .iter()
                .find(|rule| rule.expression == error.rule)
                .map_or(ErrorType::Invalid, |rule| rule.reason);
            errors.push(FieldError {
                value: match kind {
                    ErrorType::Forbidden | ErrorType::Required => None,
                    _ => value,
                },
                kind,
                field: at,
                detail,
            });
        }
    }
}

const FIELD: &str = "x-kubernetes-validations";

/// Leaves of a schema what says the types of values: the rules of the lower
/// levels, and all defaults, go.
fn keep_types(schema: &mut Value, top: bool) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if !top {
        fields.remove(FIELD);
    }
    for field in ["default", "allOf", "anyOf", "oneOf", "not"] {
        fields.remove(field);
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties
            .values_mut()
            .for_each(|schema| keep_types(schema, false));
    }
    for field in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(field) {
            keep_types(schema, false);
        }
    }
}

/// The value as a failed rule shows it: maps and lists are too long to show.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) | Value::Array(_) => None,
        scalar => Some(printed(scalar)),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
