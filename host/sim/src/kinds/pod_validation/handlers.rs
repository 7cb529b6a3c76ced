//! What a container is asked and told while it runs: probes and hooks.

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{integer, items, object, present, text};
use crate::kinds::meta::validate_nonnegative;
use crate::names;

/// How long a pod has to end when it does not say so.
pub(super) const GRACE: i64 = 30;

/// Checks the hooks and probes of a container whose pod has `grace` seconds to end.
pub(super) fn validate(path: &Path<'_>, container: &Value, grace: i64, errors: &mut Errors) {
    if let Some(lifecycle) = object(container, "lifecycle") {
        let path = path.child("lifecycle");
        for hook in ["postStart", "preStop"] {
            if let Some(handler) = object(lifecycle, hook) {
                validate_handler(&path.child(hook), handler, grace, errors);
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = object(container, name) else {
            continue;
        };
        let path = path.child(name);
        validate_handler(&path, probe, grace, errors);
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            validate_nonnegative(&path, probe, field, errors);
        }
        let grace = integer(probe, "terminationGracePeriodSeconds");
        let mut refuse = |field: &str, number: i64, why: &str| {
            errors.push(FieldError::invalid(&path.child(field), &number.into(), why));
        };
        if let Some(grace) = grace.filter(|grace| *grace <= 0) {
            refuse(
                "terminationGracePeriodSeconds",
                grace,
                "must be greater than 0",
            );
        }
        if name == "readinessProbe" {
            if let Some(grace) = grace {
                let why = "must not be set for readinessProbes";
                refuse("terminationGracePeriodSeconds", grace, why);
            }
        } else {
            let threshold = integer(probe, "successThreshold").unwrap_or(1);
            if threshold != 1 {
                refuse("successThreshold", threshold, "must be 1");
            }
        }
    }
}

/// Checks that there is just one way to ask or tell, and that it can be gone.
fn validate_handler(path: &Path<'_>, handler: &Value, grace: i64, errors: &mut Errors) {
    let mut found = false;
    for sort in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = object(handler, sort) else {
            continue;
        };
        let path = path.child(sort);
        if found {
            errors.push(FieldError::forbidden(
                &path,
                "may not specify more than 1 handler type",
            ));
            continue;
        }
        found = true;
        match sort {
            "exec" if present(action, "command").is_none() => {
                errors.push(FieldError::required(&path.child("command"), ""));
            }
            "httpGet" => validate_http(&path, action, errors),
            "tcpSocket" | "grpc" => validate_port(&path.child("port"), action, errors),
            "sleep" => {
                let seconds = integer(action, "seconds").unwrap_or(0);
                if !(0..=grace).contains(&seconds) {
                    errors.push(FieldError::invalid(
                        &path,
                        &seconds.into(),
                        format!(
                            "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                        ),
                    ));
                }
            }
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn validate_http(path: &Path<'_>, action: &Value, errors: &mut Errors) {
    if text(action, "path").is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    validate_port(&path.child("port"), action, errors);
    super::supported(path, action, "scheme", &["HTTP", "HTTPS"], errors);
    for header in items(action, "httpHeaders") {
        let name = text(header, "name");
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || !name.bytes().all(fits) {
            let wrong = names::pattern(
                "a valid HTTP header must consist of alphanumeric characters or '-'",
                "[-A-Za-z0-9]+",
                &["X-Header-Name"],
            );
            errors.push(FieldError::invalid_str(
                &path.child("httpHeaders"),
                name,
                wrong,
            ));
        }
    }
}

/// Checks the port of an action: a number, or the name of one of the container's.
fn validate_port(path: &Path<'_>, action: &Value, errors: &mut Errors) {
    let port = action.get("port");
    match port.and_then(Value::as_str) {
        Some(name) => {
            for wrong in names::port_name(name) {
                errors.push(FieldError::invalid_str(path, name, wrong));
            }
        }
        None => {
            let number = port.and_then(Value::as_i64).unwrap_or(0);
            for wrong in names::port_number(number) {
                errors.push(FieldError::invalid(path, &number.into(), wrong));
            }
        }
    }
}
