//! How the pods of a workload are replaced.

use serde_json::Value;

use super::edit::{as_printed, text};
use super::meta::validate_nonnegative;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");

/// Checks how the pods of a Deployment are replaced.
pub(super) fn validate_deployment(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("strategy");
    let strategy = spec.get("strategy").unwrap_or(&Value::Null);
    match text(strategy, "type") {
        "Recreate" if strategy.get("rollingUpdate").is_some() => {
            errors.push(FieldError::forbidden(
                &path.child("rollingUpdate"),
                "may not be specified when strategy `type` is 'Recreate'",
            ));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let rolling = strategy.get("rollingUpdate").unwrap_or(&Value::Null);
            for field in ["maxUnavailable", "maxSurge"] {
                validate_share(&path.child(field), rolling.get(field), errors);
            }
            if share(rolling.get("maxUnavailable")) == 0 && share(rolling.get("maxSurge")) == 0 {
                errors.push(FieldError::invalid(
                    &path.child("maxUnavailable"),
                    rolling.get("maxUnavailable").unwrap_or(&Value::Null),
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            validate_at_most_all(
                &path.child("maxUnavailable"),
                rolling.get("maxUnavailable"),
                errors,
            );
        }
        _ => errors.push(FieldError::not_supported(
            &path,
            &printed(strategy),
            &["Recreate", "RollingUpdate"],
        )),
    }
}

/// The number of an integer or a percentage.
fn share(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::String(text)) => text.trim_end_matches('%').parse().unwrap_or(0),
        Some(other) => other.as_i64().unwrap_or(0),
        None => 0,
    }
}

/// Checks an integer or a percentage, neither of which may be negative.
pub(super) fn validate_share(path: &Path<'_>, value: Option<&Value>, errors: &mut Errors) {
    match value {
        Some(Value::String(text)) => {
            let percent = text
                .strip_suffix('%')
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            if !percent {
                errors.push(FieldError::invalid_str(
                    path,
                    text,
                    names::pattern(
                        "a valid percent string must be a numeric string followed by an ending \
                         '%'",
                        "[0-9]+%",
                        &["1%", "93%"],
                    ),
                ));
            }
        }
        Some(number) if share(value) < 0 => errors.push(FieldError::invalid(
            path,
            number,
            "must be greater than or equal to 0",
        )),
        _ => {}
    }
}

/// Pushes an error for a percentage above 100.
pub(super) fn validate_at_most_all(path: &Path<'_>, value: Option<&Value>, errors: &mut Errors) {
    if let Some(given @ Value::String(_)) = value
        && share(value) > 100
    {
        errors.push(FieldError::invalid(
            path,
            given,
            "must not be greater than 100%",
        ));
    }
}

/// Checks how the pods of a DaemonSet are replaced.
pub(super) fn validate_daemon_set(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("updateStrategy");
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            match strategy
                .get("rollingUpdate")
                .filter(|given| given.is_object())
            {
                None => errors.push(FieldError::required(&path, "")),
                Some(rolling) => validate_rolling_daemon_set(&path, rolling, errors),
            }
        }
        _ => errors.push(FieldError::not_supported(
            &path,
            &printed(strategy),
            &["RollingUpdate", "OnDelete"],
        )),
    }
}

fn validate_rolling_daemon_set(path: &Path<'_>, rolling: &Value, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    let (of_unavailable, of_surge) = (path.child("maxUnavailable"), path.child("maxSurge"));
    for check in [validate_share, validate_at_most_all] {
        check(&of_unavailable, unavailable, errors);
        check(&of_surge, surge, errors);
    }
    match (share(unavailable) != 0, share(surge) != 0) {
        (true, true) => errors.push(FieldError::invalid(
            &of_surge,
            surge.unwrap_or(&Value::Null),
            "may not be set when maxUnavailable is non-zero",
        )),
        (false, false) => errors.push(FieldError::required(
            &of_unavailable,
            "cannot be 0 when maxSurge is 0",
        )),
        _ => {}
    }
}

/// Checks how the pods of a StatefulSet are replaced.
pub(super) fn validate_stateful_set(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("updateStrategy");
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    let rolling = strategy
        .get("rollingUpdate")
        .filter(|given| given.is_object());
    match (text(strategy, "type"), rolling) {
        ("", _) => errors.push(FieldError::required(&path, "")),
        ("OnDelete", Some(rolling)) => errors.push(FieldError::invalid(
            &path.child("rollingUpdate"),
            &as_printed(
                rolling,
                &[
                    ("Partition", "partition"),
                    ("MaxUnavailable", "maxUnavailable"),
                ],
            ),
            "only allowed for updateStrategy 'RollingUpdate'",
        )),
        ("RollingUpdate", Some(rolling)) => {
            let path = path.child("rollingUpdate");
            validate_nonnegative(&path, rolling, "partition", errors);
            let given = rolling
                .get("maxUnavailable")
                .filter(|given| !given.is_null());
            let path = path.child("maxUnavailable");
            validate_share(&path, given, errors);
            if let Some(given) = given
                && share(Some(given)) == 0
            {
                errors.push(FieldError::invalid(&path, given, "cannot be 0"));
            }
            validate_at_most_all(&path, given, errors);
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => errors.push(FieldError::invalid(
            &path,
            &printed(strategy),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
}

/// A strategy as the server prints it.
fn printed(strategy: &Value) -> Value {
    as_printed(
        strategy,
        &[("Type", "type"), ("RollingUpdate", "rollingUpdate")],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(validate: fn(&Value, &mut Errors), strategy: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        validate(&json!({ "updateStrategy": strategy }), &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{strategy}");
    }

    #[test]
    fn daemon_sets_replace_one_way() {
        let rolling = |unavailable: Value, surge: Value| {
            let rolling = json!({"maxUnavailable": unavailable, "maxSurge": surge});
            json!({"type": "RollingUpdate", "rollingUpdate": rolling})
        };
        let check = |strategy: &Value, expected: &[&str]| {
            check(validate_daemon_set, strategy, expected);
        };
        check(&json!({"type": "OnDelete"}), &[]);
        check(&rolling(json!(1), json!(0)), &[]);
        check(&rolling(json!(0), json!("10%")), &[]);
        check(
            &rolling(json!(0), json!(0)),
            &[
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
            ],
        );
        check(
            &rolling(json!(1), json!("101%")),
            &[
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"101%\": must not be greater than 100%",
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"101%\": may not be set when maxUnavailable is non-zero",
            ],
        );
        check(
            &json!({"type": "Never"}),
            &[
                "spec.updateStrategy: Unsupported value: {\"RollingUpdate\":null,\"Type\":\"Never\"}: supported values: \"RollingUpdate\", \"OnDelete\"",
            ],
        );
    }

    #[test]
    fn stateful_sets_replace_at_least_one() {
        let check = |strategy: &Value, expected: &[&str]| {
            check(validate_stateful_set, strategy, expected);
        };
        let rolling = |rolling: Value| json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        check(&rolling(json!({"partition": 1})), &[]);
        check(
            &rolling(json!({"partition": -1})),
            &[
                "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
            ],
        );
        check(
            &rolling(json!({"maxUnavailable": "0%"})),
            &[
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": cannot be 0",
            ],
        );
        check(
            &json!({"type": "Never"}),
            &[
                "spec.updateStrategy: Invalid value: {\"RollingUpdate\":null,\"Type\":\"Never\"}: must be 'RollingUpdate' or 'OnDelete'",
            ],
        );
    }
}
