//! The rules in CEL that a schema may have.

use serde_json::Value;

use super::costs::{Costs, most_below};
use super::field_path;
use crate::crd::expression::{Checked, check, declared, extent};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, items, text};

const RULES: &str = "x-kubernetes-validations";

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Where in a schema rules are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// Whether the value is a resource, with the fields that each has.
    pub(super) is_resource: bool,
    /// The outermost list around whose items have no past.
    pub(super) uncorrelated: Option<&'a str>,
    /// Whether rules are looked into.
    pub(super) is_compiled: bool,
    /// How many values there are at most; none where there is no limit.
    pub(super) count: Option<u64>,
}

/// What comes out when rules are looked into.
#[derive(Debug)]
pub(super) struct Findings {
    /// What is wrong with them.
    pub(super) errors: Errors,
    pub(super) costs: Costs,
}

impl Place<'_> {
    /// That of a schema right below another.
    pub(super) fn of(self, schema: &Value, above: &Value) -> Self {
        let count = self.count.zip(most_below(above));
        Place {
            is_resource: flag(schema, "x-kubernetes-embedded-resource"),
            count: count.map(|(count, most)| count.saturating_mul(most)),
            ..self
        }
    }
}

/// Checks the rules of one schema; what they say only where it `is_sound`.
pub(super) fn expressions(
    path: &Path<'_>,
    schema: &Value,
    place: Place<'_>,
    is_sound: bool,
    errors: &mut Errors,
    found: &mut Findings,
) {
    if items(schema, RULES).next().is_none() {
        return;
    }
    let path = path.child(RULES);
    let before = errors.len();
    for (index, rule) in items(schema, RULES).enumerate() {
        form(&path.index(index), schema, rule, errors);
    }
    if !is_sound || errors.len() > before || !place.is_compiled {
        return;
    }
    let declared = declared(schema, place.is_resource);
    let Some((ty, extent)) = declared.zip(extent(schema, place.is_resource)) else {
        let why = "internal error: failed to construct type information for \
                   x-kubernetes-validations rules: unable to convert structural schema to CEL \
                   declarations";
        found.errors.push(FieldError::internal(&path, why));
        return;
    };
    for (index, rule) in items(schema, RULES).enumerate() {
        let checked = check(rule, &ty, &extent);
        let count = place.count.unwrap_or_else(|| extent.at_most());
        content(&path.index(index), rule, checked, (place, count), found);
    }
}

/// Checks the form of a rule.
fn form(path: &Path<'_>, schema: &Value, rule: &Value, errors: &mut Errors) {
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let (expression, given) = (text(rule, "rule").trim(), text(rule, "message"));
    let message = given.trim();
    let of_message = path.child("message");
    if expression.is_empty() {
        let why = "rule is not specified";
        errors.push(FieldError::required(&path.child("rule"), why));
    } else if !given.is_empty() && message.is_empty() {
        let why = "must be non-empty if specified";
        errors.push(FieldError::invalid_str(&of_message, given, why));
    } else if has_lines(message) {
        let why = "must not contain line breaks";
        errors.push(FieldError::invalid_str(&of_message, given, why));
    } else if has_lines(expression) && message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&of_message, why));
    }
    let is_blank = |field: &str| {
        let given = text(rule, field);
        !given.is_empty() && given.trim().is_empty()
    };
    if is_blank("messageExpression") {
        let why = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(&path.child("messageExpression"), why));
    }
    let reason = text(rule, "reason");
    if rule.get("reason").is_some() && !REASONS.contains(&reason) {
        errors.push(FieldError::not_supported(
            &path.child("reason"),
            &reason.into(),
            &REASONS,
        ));
    }
    let field = text(rule, "fieldPath");
    let of_field = path.child("fieldPath");
    let mut complain = |why: &str| errors.push(FieldError::invalid_str(&of_field, field, why));
    if is_blank("fieldPath") {
        complain("must be non-empty if specified");
    }
    if has_lines(field) {
        complain("must not contain line breaks");
    }
    if !field.is_empty() && !field_path::is_valid(field, schema) {
        complain("must be a valid path");
    }
}

/// Says what came out when a rule was looked into, of which there are so many values.
fn content(
    path: &Path<'_>,
    rule: &Value,
    checked: Checked,
    (place, count): (Place<'_>, u64),
    found: &mut Findings,
) {
    let of_rule = path.child("rule");
    let Findings { errors, costs } = found;
    let cost = checked.cost.saturating_mul(count);
    costs.count(&of_rule, "estimated rule cost", cost, errors);
    if let Some(why) = checked.rule {
        errors.push(FieldError::invalid(&of_rule, rule, why));
    }
    if let Some(why) = checked.message {
        let path = path.child("messageExpression");
        errors.push(FieldError::invalid(&path, rule, why));
    } else if let Some(cost) = checked.cost_of_message {
        let path = path.child("messageExpression");
        costs.count(&path, "estimated messageExpression cost", cost, errors);
    }
    match (checked.uses_old, place.uncorrelated) {
        (true, Some(list)) => errors.push(FieldError::invalid_str(
            &of_rule,
            text(rule, "rule"),
            format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
            ),
        )),
        (false, _) if rule.get("optionalOldSelf").is_some_and(Value::is_boolean) => {
            let path = path.child("optionalOldSelf");
            let given = rule.get("optionalOldSelf").unwrap_or(&Value::Null);
            let why = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(&path, given, why));
        }
        _ => {}
    }
}
