//! What webhooks of all sorts are called by: where they are, and in which versions of a
//! review they are asked.

use std::collections::HashSet;

use serde_json::Value;

use super::edit::{integer, items, object, text};
use crate::field::{Errors, FieldError, Path};
use crate::names;

/// The versions of reviews that a server sends.
pub(crate) const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Checks the versions in `field` of what is at `path`; `missing` says why there have to
/// be any.
pub(crate) fn validate_versions(
    path: &Path<'_>,
    webhook: &Value,
    field: &str,
    missing: &str,
    errors: &mut Errors,
) {
    let path = path.child(field);
    let given: Vec<&str> = items(webhook, field)
        .map(|version| version.as_str().unwrap_or_default())
        .collect();
    if given.is_empty() {
        errors.push(FieldError::required(&path, missing));
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in given.iter().copied().enumerate() {
        let path = path.index(index);
        if !seen.insert(version) {
            errors.push(FieldError::invalid_str(&path, version, "duplicate version"));
            continue;
        }
        for wrong in names::dns1035_label(version) {
            errors.push(FieldError::invalid_str(&path, version, wrong));
        }
    }
    if !given.iter().any(|version| VERSIONS.contains(version)) {
        errors.push(FieldError::invalid(
            &path,
            webhook.get(field).unwrap_or(&Value::Null),
            format!("must include at least one of {}", VERSIONS.join(", ")),
        ));
    }
}

/// Checks where a webhook is.
pub(crate) fn validate_client(path: &Path<'_>, config: &Value, errors: &mut Errors) {
    let url = config.get("url").and_then(Value::as_str);
    let service = object(config, "service");
    match (url, service) {
        (Some(_), Some(_)) | (None, None) => errors.push(FieldError::required(
            path,
            "exactly one of url or service is required",
        )),
        (Some(url), None) => validate_url(&path.child("url"), url, errors),
        (None, Some(service)) => validate_service(&path.child("service"), service, errors),
    }
}

fn validate_url(path: &Path<'_>, url: &str, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = match url.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", url),
    };
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut complain = |value: &str, why: &str| {
        errors.push(FieldError::invalid_str(path, value, why));
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" {
        complain(
            &scheme,
            &format!("'https' is the only allowed URL scheme{FORM}"),
        );
    }
    if host.is_empty() {
        complain(host, &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        complain(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        complain(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        complain(query, "query parameters are not permitted in the URL");
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn validate_service(path: &Path<'_>, service: &Value, errors: &mut Errors) {
    // The real server takes the one for the other, and complains alike.
    for (field, given) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, given).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let port = integer(service, "port").unwrap_or(0);
    let wrong = names::port_number(port);
    if !wrong.is_empty() {
        let why = format!("port is not valid: {}", wrong.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), &port.into(), why));
    }
    let path = path.child("path");
    let given = text(service, "path");
    if given.is_empty() || given == "/" {
        return;
    }
    let mut complain = |why: String| errors.push(FieldError::invalid_str(&path, given, why));
    if given == "//" {
        complain("segment[0] may not be empty".to_owned());
        return;
    }
    if !given.starts_with('/') {
        complain("must start with a '/'".to_owned());
    }
    let mut steps = given.chars();
    steps.next();
    let steps = steps.as_str();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            complain(format!("segment[{index}] may not be empty"));
            continue;
        }
        for wrong in names::dns1123_subdomain(step) {
            complain(format!("segment[{index}]: {wrong}"));
        }
    }
}
