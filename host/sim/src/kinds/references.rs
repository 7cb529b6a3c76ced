//! References to objects of any kind, in the same namespace or beside it.

use serde_json::Value;

use super::edit::{present, text};
use super::pod_validation::supported;
use crate::field::{Errors, FieldError, Path};
use crate::names;

/// Checks the group, the kind and the name of a reference.
pub(super) fn validate(path: &Path<'_>, reference: &Value, errors: &mut Errors) {
    if let Some(group) = reference.get("apiGroup").and_then(Value::as_str) {
        for wrong in names::dns1123_subdomain(group) {
            errors.push(FieldError::invalid_str(
                &path.child("apiGroup"),
                group,
                wrong,
            ));
        }
    }
    for field in ["kind", "name"] {
        let given = text(reference, field);
        let path = path.child(field);
        if given.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        for wrong in names::path_segment(given) {
            errors.push(FieldError::invalid_str(&path, given, wrong));
        }
    }
}

/// Checks a text such as `example.com/name`.
pub(super) fn validate_domain_path(path: &Path<'_>, given: &str, errors: &mut Errors) {
    const RULE: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    if given.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let parts = given.split_once('/');
    let Some((domain, name)) =
        parts.filter(|(domain, name)| !domain.is_empty() && !name.is_empty())
    else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid_str(path, given, why));
        return;
    };
    for wrong in names::dns1123_subdomain(domain) {
        errors.push(FieldError::invalid_str(path, domain, wrong));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !name.chars().all(is_plain) {
        let wrong = names::pattern("Invalid path", RULE, &[]);
        errors.push(FieldError::invalid_str(path, name, wrong));
    }
}

/// As [`validate`], of a reference that says in which scope it is.
pub(super) fn validate_scoped(path: &Path<'_>, reference: &Value, errors: &mut Errors) {
    validate(path, reference, errors);
    supported(path, reference, "scope", &["Cluster", "Namespace"], errors);
    let namespace = present(reference, "namespace").and_then(Value::as_str);
    let path = path.child("namespace");
    match (text(reference, "scope"), namespace) {
        ("Namespace", None) => {
            let why = "`parameters.scope` is set to 'Namespace'";
            errors.push(FieldError::required(&path, why));
        }
        ("Namespace", Some(namespace)) => {
            for wrong in names::dns1123_label(namespace) {
                errors.push(FieldError::invalid_str(&path, namespace, wrong));
            }
        }
        ("Cluster", Some(_)) => {
            let why = "`parameters.scope` is set to 'Cluster'";
            errors.push(FieldError::forbidden(&path, why));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_whole() {
        let check = |reference: Value, expected: &str| {
            let mut errors = Errors::new();
            validate_scoped(&Path::new("r"), &reference, &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.join("; "), expected, "{reference}");
        };
        let of = |more: &[(&str, &str)]| {
            let mut reference = json!({"kind": "K", "name": "n", "scope": "Cluster"});
            for (field, value) in more {
                reference[*field] = json!(value);
            }
            reference
        };
        check(of(&[]), "");
        check(of(&[("kind", "")]), "r.kind: Required value");
        check(
            of(&[("name", "a/b")]),
            "r.name: Invalid value: \"a/b\": may not contain '/'",
        );
        check(
            of(&[("scope", "Namespace")]),
            "r.namespace: Required value: `parameters.scope` is set to 'Namespace'",
        );
        check(
            of(&[("namespace", "x")]),
            "r.namespace: Forbidden: `parameters.scope` is set to 'Cluster'",
        );
        check(of(&[("scope", "Namespace"), ("namespace", "x")]), "");
    }
}
