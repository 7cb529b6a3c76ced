//! Names of compute resources (`cpu`, `requests.memory`, `example.com/gpu`) and
//! their amounts.

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::names;
use crate::quantity::{Quantity, milli_value};

const CONTAINER: &[&str] = &["cpu", "memory", "ephemeral-storage"];

const QUOTA: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const HUGE_PAGES: &str = "hugepages-";

/// Whether the quota system knows an unprefixed name.
pub(super) fn is_standard_quota(name: &str) -> bool {
    QUOTA.contains(&name)
        || name.starts_with(HUGE_PAGES)
        || name
            .strip_prefix("requests.")
            .is_some_and(|rest| rest.starts_with(HUGE_PAGES))
}

fn is_standard(name: &str) -> bool {
    name == "storage" || is_standard_quota(name)
}

/// Names without a domain, or in `kubernetes.io`.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Names of what nodes have besides what every node has: `example.com/gpu`.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether more may be promised than is there.
pub(super) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

/// Checks a name anywhere.
pub(super) fn validate_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    let wrong = names::qualified_name(name);
    if !wrong.is_empty() {
        for wrong in wrong {
            errors.push(FieldError::invalid_str(path, name, wrong));
        }
    } else if !name.contains('/') && !is_standard(name) {
        errors.push(FieldError::invalid_str(
            path,
            name,
            "must be a standard resource type or fully qualified",
        ));
    }
}

/// Checks a name in the resources of a container.
pub(super) fn validate_container_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    validate_name(path, name, errors);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !name.starts_with(HUGE_PAGES) {
            errors.push(FieldError::invalid_str(
                path,
                name,
                "must be a standard resource for containers",
            ));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid_str(
            path,
            name,
            "doesn't follow extended resource name standard",
        ));
    }
}

/// Checks a name in a quota.
pub(super) fn validate_quota_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    validate_name(path, name, errors);
    if !name.contains('/') && !is_standard_quota(name) {
        errors.push(FieldError::invalid_str(
            path,
            name,
            "must be a standard resource for quota",
        ));
    }
}

/// Checks an amount of a named resource: not negative, and whole where the
/// resource is counted.
pub(super) fn validate_amount(path: &Path<'_>, name: &str, amount: &Value, errors: &mut Errors) {
    let Some(quantity) = quantity(amount) else {
        return;
    };
    if quantity.is_negative() {
        errors.push(FieldError::invalid(
            path,
            amount,
            "must be greater than or equal to 0",
        ));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && !is_integer(amount) {
        errors.push(FieldError::invalid(path, amount, "must be an integer"));
    }
}

/// Whether the server takes an amount for a whole one.
fn is_integer(amount: &Value) -> bool {
    let thousandths = amount.as_str().map(milli_value);
    thousandths.is_none_or(|value| value.is_ok_and(|value| value % 1000 == 0))
}

/// The amount of a stored quantity.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(rule: fn(&Path<'_>, &str, &mut Errors), name: &str, expected: &str) {
        let mut errors = Errors::new();
        rule(&Path::new("x"), name, &mut errors);
        let found: Vec<String> = errors.iter().map(|e| e.detail.clone()).collect();
        assert_eq!(found.join("; "), expected, "{name}");
    }

    #[test]
    fn names() {
        check(validate_quota_name, "cpu", "");
        check(validate_quota_name, "requests.nvidia.com/gpu", "");
        check(validate_quota_name, "count/pods", "");
        check(
            validate_quota_name,
            "storage",
            "must be a standard resource for quota",
        );
        check(
            validate_quota_name,
            "gpu",
            "must be a standard resource type or fully qualified; must be a standard resource for \
             quota",
        );
        check(validate_container_name, "memory", "");
        check(validate_container_name, "hugepages-2Mi", "");
        check(validate_container_name, "nvidia.com/gpu", "");
        check(
            validate_container_name,
            "pods",
            "must be a standard resource for containers",
        );
        check(
            validate_container_name,
            "requests.nvidia.com/gpu",
            "doesn't follow extended resource name standard",
        );
    }

    #[test]
    fn counts_are_whole_as_far_as_the_server_sees() {
        let check = |name: &str, amount: &str, expected: &str| {
            let mut errors = Errors::new();
            validate_amount(&Path::new("x"), name, &json!(amount), &mut errors);
            let found: Vec<&str> = errors.iter().map(|e| e.detail.as_str()).collect();
            assert_eq!(found.join("; "), expected, "{name} {amount}");
        };
        const WHOLE: &str = "must be an integer";
        check("pods", "3", "");
        check("pods", "1500m", WHOLE);
        check("example.com/gpu", "500m", WHOLE);
        check("cpu", "500m", "");
        check("pods", "9223372036854775", "");
        check("pods", "9223372036854776", WHOLE);
        check("pods", "9223372036854775807", "");
    }
}
