//! Validation of admission policies and their bindings.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{FAILURE_POLICIES, validate_match_conditions, validate_match_resources};
use crate::cel::Environment;
use crate::cel::admission::{self, Expects, Known, Variables};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{items, present, text, text_at};
use crate::kinds::pod_validation::supported;
use crate::kinds::selectors;
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
/// Limits on annotations of the audit log.
const MOST_ANNOTATIONS: usize = 20;
const LONGEST_ANNOTATION: usize = 5 * 1024;

fn spec_of(policy: &Value) -> &Value {
    policy.get("spec").unwrap_or(&Value::Null)
}

/// Says what is wrong with a ValidatingAdmissionPolicy.
pub(super) fn validate(policy: &Value, errors: &mut Errors) {
    let spec = spec_of(policy);
    let has_params = spec.get("paramKind").is_some_and(Value::is_object);
    validate_frame(spec, errors);
    validate_match_conditions(&SPEC, spec, has_params, errors);
    let variables = validate_variables(spec, has_params, errors);
    let validations = SPEC.child("validations");
    let annotations = SPEC.child("auditAnnotations");
    if present(spec, "validations").is_none() && present(spec, "auditAnnotations").is_none() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(&validations, why));
        errors.push(FieldError::required(&annotations, why));
        return;
    }
    for (index, validation) in items(spec, "validations").enumerate() {
        let path = validations.index(index);
        validate_validation(&path, validation, has_params, &variables, errors);
    }
    let count = items(spec, "auditAnnotations").count();
    if count > MOST_ANNOTATIONS {
        errors.push(FieldError::invalid(
            &annotations,
            spec.get("auditAnnotations").unwrap_or(&Value::Null),
            format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations"),
        ));
    }
    let mut seen = HashSet::new();
    let name = text_at(policy, "/metadata/name");
    for (index, annotation) in items(spec, "auditAnnotations").enumerate() {
        let path = annotations.index(index);
        let known = Known {
            has_params,
            has_authorizer: true,
        };
        let environment = variables.environment(known);
        validate_annotation(&path, annotation, name, &environment, errors);
        let key = text(annotation, "key");
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(&path.child("key"), &key.into()));
        }
    }
}

/// Checks what policies of both sorts have: on failure, parameters, and what they are
/// about.
pub(super) fn validate_frame(spec: &Value, errors: &mut Errors) {
    supported(&SPEC, spec, "failurePolicy", &FAILURE_POLICIES, errors);
    if let Some(kind) = spec.get("paramKind").filter(|kind| kind.is_object()) {
        validate_param_kind(&SPEC.child("paramKind"), kind, errors);
    }
    let path = SPEC.child("matchConstraints");
    match spec
        .get("matchConstraints")
        .filter(|given| given.is_object())
    {
        None => errors.push(FieldError::required(&path, "")),
        Some(given) => {
            validate_match_resources(&path, given, errors);
            if present(given, "resourceRules").is_none() {
                errors.push(FieldError::required(&path.child("resourceRules"), ""));
            }
        }
    }
}

fn validate_param_kind(path: &Path<'_>, kind: &Value, errors: &mut Errors) {
    let api_version = text(kind, "apiVersion");
    let of_version = path.child("apiVersion");
    let mut complain = |value: &str, why: String| {
        errors.push(FieldError::invalid_str(&of_version, value, why));
    };
    let parts: Vec<&str> = api_version.split('/').collect();
    match parts.as_slice() {
        _ if api_version.is_empty() => errors.push(FieldError::required(&of_version, "")),
        _ if api_version == "/" => complain(api_version, "version must be specified".to_owned()),
        [version] | [_, version] => {
            let group = if let [group, _] = parts.as_slice() {
                *group
            } else {
                ""
            };
            let wrong = names::dns1123_subdomain(group);
            if !group.is_empty() && !wrong.is_empty() {
                complain(group, wrong.join(","));
            }
            let wrong = names::dns1035_label(version);
            if version.is_empty() {
                complain(api_version, "version must be specified".to_owned());
            } else if !wrong.is_empty() {
                complain(version, wrong.join(","));
            }
        }
        _ => complain(
            api_version,
            format!("unexpected GroupVersion string: {api_version}"),
        ),
    }
    let path = path.child("kind");
    let kind = text(kind, "kind");
    let wrong = names::dns1035_label(&kind.to_lowercase());
    if kind.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid_str(
            &path,
            kind,
            format!(
                "may have mixed case, but should otherwise match: {}",
                wrong.join(",")
            ),
        ));
    }
}

/// Checks the variables of a policy, each of which knows those before it.
pub(super) fn validate_variables(spec: &Value, has_params: bool, errors: &mut Errors) -> Variables {
    let path = SPEC.child("variables");
    let mut variables = Variables::default();
    let known = Known {
        has_params,
        has_authorizer: true,
    };
    for (index, variable) in items(spec, "variables").enumerate() {
        let path = path.index(index);
        let name = text(variable, "name");
        let of_name = path.child("name");
        if name.trim().is_empty() {
            errors.push(FieldError::required(&of_name, "name is not specified"));
        } else if !admission::is_identifier(name) {
            let why = "must be a valid CEL identifier";
            errors.push(FieldError::invalid_str(&of_name, name, why));
        }
        let expression = text(variable, "expression");
        let path = path.child("expression");
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&path, "expression is not specified"));
        } else if let Err(why) = variables.add(name, expression, known) {
            errors.push(FieldError::invalid_str(&path, expression, why));
        }
    }
    variables
}

fn validate_validation(
    path: &Path<'_>,
    validation: &Value,
    has_params: bool,
    variables: &Variables,
    errors: &mut Errors,
) {
    let expression = text(validation, "expression");
    let of_expression = path.child("expression");
    let environment = variables.environment(Known {
        has_params,
        has_authorizer: true,
    });
    if expression.trim().is_empty() {
        let why = "expression is not specified";
        errors.push(FieldError::required(&of_expression, why));
    } else if let Err(why) = admission::compile(expression, &environment, Expects::Bool) {
        errors.push(FieldError::invalid_str(&of_expression, expression, why));
    }
    let expression = text(validation, "messageExpression");
    let of_expression = path.child("messageExpression");
    let environment = variables.environment(Known {
        has_params,
        has_authorizer: false,
    });
    if !expression.is_empty() && expression.trim().is_empty() {
        let why = "must be non-empty if specified";
        errors.push(FieldError::invalid_str(&of_expression, expression, why));
    } else if !expression.is_empty()
        && let Err(why) = admission::compile(expression, &environment, Expects::Text)
    {
        errors.push(FieldError::invalid_str(&of_expression, expression, why));
    }
    let message = text(validation, "message");
    let of_message = path.child("message");
    if !message.is_empty() && message.trim().is_empty() {
        let why = "must be non-empty if specified";
        errors.push(FieldError::invalid_str(&of_message, message, why));
    } else if message.trim().contains(['\n', '\r']) {
        let why = "must not contain line breaks";
        errors.push(FieldError::invalid_str(&of_message, message, why));
    }
    supported(path, validation, "reason", &REASONS, errors);
}

fn validate_annotation(
    path: &Path<'_>,
    annotation: &Value,
    policy: &str,
    environment: &crate::cel::Environment,
    errors: &mut Errors,
) {
    let key = text(annotation, "key");
    let of_key = path.child("key");
    if policy.is_empty() {
        let why = "requires metadata.name be non-empty";
        errors.push(FieldError::invalid_str(&of_key, key, why));
    } else {
        let whole = format!("{policy}/{key}");
        for wrong in names::qualified_name(&whole) {
            errors.push(FieldError::invalid_str(&of_key, &whole, wrong));
        }
    }
    let given = text(annotation, "valueExpression");
    let expression = given.trim();
    let path = path.child("valueExpression");
    if expression.is_empty() {
        let why = "valueExpression is not specified";
        errors.push(FieldError::required(&path, why));
    } else if expression.len() > LONGEST_ANNOTATION {
        let why = format!("must not exceed {LONGEST_ANNOTATION} bytes in length");
        errors.push(FieldError::required(&path, why));
    } else if let Err(why) = admission::compile(expression, environment, Expects::TextOrNull) {
        errors.push(FieldError::invalid_str(&path, given, why));
    }
}

/// Says what is wrong with the binding of a ValidatingAdmissionPolicy.
pub(super) fn validate_binding(binding: &Value, errors: &mut Errors) {
    validate_mutating_binding(binding, errors);
    let spec = spec_of(binding);
    let path = SPEC.child("validationActions");
    let mut seen = HashSet::new();
    for (index, action) in items(spec, "validationActions").enumerate() {
        let given = action.as_str().unwrap_or_default();
        if !ACTIONS.contains(&given) {
            let path = path.index(index);
            errors.push(FieldError::not_supported(&path, action, &ACTIONS));
        }
        if !seen.insert(given) {
            errors.push(FieldError::duplicate(&path.index(index), action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        errors.push(FieldError::invalid(
            &path,
            spec.get("validationActions").unwrap_or(&Value::Null),
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        ));
    }
    if seen.is_empty() {
        let why = "at least one validation action is required";
        errors.push(FieldError::required(&path, why));
    }
}

/// Says what is wrong with the binding of a MutatingAdmissionPolicy.
pub(super) fn validate_mutating_binding(binding: &Value, errors: &mut Errors) {
    let spec = spec_of(binding);
    let name = text(spec, "policyName");
    let path = SPEC.child("policyName");
    if name.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        for wrong in names::dns1123_subdomain(name) {
            errors.push(FieldError::invalid_str(&path, name, wrong));
        }
    }
    if let Some(reference) = spec.get("paramRef").filter(|given| given.is_object()) {
        validate_param_ref(&SPEC.child("paramRef"), reference, errors);
    }
    if let Some(resources) = spec.get("matchResources").filter(|given| given.is_object()) {
        validate_match_resources(&SPEC.child("matchResources"), resources, errors);
    }
}

fn validate_param_ref(path: &Path<'_>, reference: &Value, errors: &mut Errors) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let name = text(reference, "name");
    let selector = reference.get("selector").filter(|given| given.is_object());
    if !name.is_empty() {
        let path = path.child("name");
        for wrong in names::path_segment(name) {
            errors.push(FieldError::invalid_str(&path, name, wrong));
        }
        if selector.is_some() {
            errors.push(FieldError::forbidden(&path, EXCLUSIVE));
        }
    }
    if let Some(selector) = selector {
        let path = path.child("selector");
        selectors::validate(&path, selector, errors);
        if !name.is_empty() {
            errors.push(FieldError::forbidden(&path, EXCLUSIVE));
        }
    }
    if name.is_empty() && selector.is_none() {
        let why = "one of name or selector must be specified";
        errors.push(FieldError::required(path, why));
    }
    if present(reference, "parameterNotFoundAction").is_none() {
        let path = path.child("parameterNotFoundAction");
        errors.push(FieldError::required(&path, ""));
    }
    let actions = ["Deny", "Allow"];
    supported(path, reference, "parameterNotFoundAction", &actions, errors);
}

/// Says what is wrong with a MutatingAdmissionPolicy.
pub(super) fn validate_mutating(policy: &Value, errors: &mut Errors) {
    let spec = spec_of(policy);
    let has_params = spec.get("paramKind").is_some_and(Value::is_object);
    validate_frame(spec, errors);
    validate_match_conditions(&SPEC, spec, has_params, errors);
    let variables = validate_variables(spec, has_params, errors);
    let path = SPEC.child("mutations");
    if present(spec, "mutations").is_none() {
        let why = "mutations must contain at least one item";
        errors.push(FieldError::required(&path, why));
    }
    let known = Known {
        has_params,
        has_authorizer: true,
    };
    let environment = variables.environment(known).making_objects();
    for (index, mutation) in items(spec, "mutations").enumerate() {
        validate_mutation(&path.index(index), mutation, &environment, errors);
    }
    let policies = ["IfNeeded", "Never"];
    let path = SPEC.child("reinvocationPolicy");
    if present(spec, "reinvocationPolicy").is_none() {
        errors.push(FieldError::required(&path, ""));
    }
    supported(&SPEC, spec, "reinvocationPolicy", &policies, errors);
}

/// The sorts of mutations, the field of each, and what its expression makes.
const MUTATIONS: [(&str, &str, Expects); 2] = [
    ("ApplyConfiguration", "applyConfiguration", Expects::Object),
    ("JSONPatch", "jsonPatch", Expects::Patch),
];

fn validate_mutation(
    path: &Path<'_>,
    mutation: &Value,
    environment: &Environment,
    errors: &mut Errors,
) {
    let sort = text(mutation, "patchType");
    if sort.is_empty() {
        errors.push(FieldError::required(&path.child("patchType"), ""));
        return;
    }
    let names = MUTATIONS.map(|(name, ..)| name);
    supported(path, mutation, "patchType", &names, errors);
    if !names.contains(&sort) {
        return;
    }
    for (name, field, expects) in MUTATIONS {
        let given = mutation.get(field).filter(|given| given.is_object());
        let path = path.child(field);
        match given {
            None if name == sort => {
                let why = format!("must be specified when patchType is {sort}");
                errors.push(FieldError::required(&path, why));
            }
            Some(given) if name == sort => {
                let path = path.child("expression");
                let expression = text(given, "expression").trim();
                if expression.is_empty() {
                    errors.push(FieldError::required(&path, ""));
                } else if let Err(why) = admission::compile(expression, environment, expects) {
                    errors.push(FieldError::invalid_str(&path, expression, why));
                }
            }
            Some(_) => {
                let why = format!("must not be specified when patchType is {sort}");
                let shown = format!("{{{field}}}");
                errors.push(FieldError::invalid_str(&path, &shown, why));
            }
            None => {}
        }
    }
}
