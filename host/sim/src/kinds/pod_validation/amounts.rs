//! What a pod and its containers ask for: amounts of resources, and claims of devices.

use std::collections::BTreeSet;

use serde_json::Value;

use super::claims;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{entries, items, text, text_at};
use crate::kinds::resources::{self, quantity};
use crate::quantity::Quantity;

const HUGE_PAGES: &str = "hugepages-";
/// What a pod as a whole asks for.
const OF_POD: [&str; 3] = ["cpu", HUGE_PAGES, "memory"];

/// Checks requests and limits of a container: their names, amounts, and that no request
/// is more than its limit.
pub(in crate::kinds) fn validate(
    path: &Path<'_>,
    of: &Value,
    known: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let name = resources::validate_container_name;
    validate_with(path, of, name, known, errors);
}

fn validate_with(
    path: &Path<'_>,
    of: &Value,
    validate_name: fn(&Path<'_>, &str, &mut Errors),
    known: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let limits = path.child("limits");
    for (name, amount) in entries(of, "limits") {
        let path = limits.key(name);
        validate_name(&path, name, errors);
        resources::validate_amount(&path, name, amount, errors);
        validate_pages(&path, name, amount, errors);
    }
    let requests = path.child("requests");
    for (name, amount) in entries(of, "requests") {
        let path = requests.key(name);
        validate_name(&path, name, errors);
        resources::validate_amount(&path, name, amount, errors);
        let limit = of.get("limits").and_then(|limits| limits.get(name));
        validate_limit(&limits, &requests, (name.as_str(), amount), limit, errors);
        validate_pages(&path, name, amount, errors);
    }
    let asks = |wanted: fn(&str) -> bool| {
        let both = ["limits", "requests"];
        let mut names = both.iter().flat_map(|list| entries(of, list));
        names.any(|(name, _)| wanted(name))
    };
    let is_plain = |name: &str| matches!(name, "cpu" | "memory");
    if asks(|name| name.starts_with(HUGE_PAGES)) && !asks(is_plain) {
        errors.push(FieldError::forbidden(
            path,
            "HugePages require cpu or memory",
        ));
    }
    claims::validate(&path.child("claims"), of, known, errors);
}

fn validate_limit(
    limits: &Path<'_>,
    requests: &Path<'_>,
    (name, amount): (&str, &Value),
    limit: Option<&Value>,
    errors: &mut Errors,
) {
    let (Some(limit), Some(request)) = (limit.and_then(quantity), quantity(amount)) else {
        if !resources::is_overcommit_allowed(name) {
            errors.push(FieldError::required(
                limits,
                "Limit must be set for non overcommitable resources",
            ));
        }
        return;
    };
    let must = if request != limit && !resources::is_overcommit_allowed(name) {
        "equal to"
    } else if request > limit {
        "less than or equal to"
    } else {
        return;
    };
    let why = format!("must be {must} {name} limit of {limit}");
    errors.push(FieldError::invalid(requests, amount, why));
}

/// Huge pages are asked for in whole pages.
fn validate_pages(path: &Path<'_>, name: &str, amount: &Value, errors: &mut Errors) {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else {
        return;
    };
    let size = Quantity::parse(size).map_or(0, |size| size.ceil());
    let amount_of = quantity(amount).map_or(0, |amount| amount.ceil());
    if size <= 0 || amount_of % size != 0 {
        let shown = amount.as_str().unwrap_or_default();
        let why = format!("{shown} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid(path, amount, why));
    }
}

/// Checks what a pod as a whole asks for.
pub(super) fn validate_pod(
    path: &Path<'_>,
    spec: &Value,
    known: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let Some(whole) = spec.get("resources").filter(|whole| whole.is_object()) else {
        return;
    };
    if text_at(spec, "/os/name") == "windows" {
        errors.push(FieldError::forbidden(
            path,
            "may not be set for a windows pod",
        ));
        return;
    }
    if whole.get("claims").is_some_and(|claims| !claims.is_null()) {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), why));
    }
    validate_with(path, whole, validate_pod_name, known, errors);
    validate_sums(path, spec, whole, errors);
}

fn validate_pod_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    let count = errors.len();
    resources::validate_name(path, name, errors);
    let is_known = matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES);
    if errors.len() == count && !is_known {
        errors.push(FieldError::not_supported(path, &name.into(), &OF_POD));
    }
}

/// A pod asks for no less than its containers together, and none of them for more.
fn validate_sums(path: &Path<'_>, spec: &Value, whole: &Value, errors: &mut Errors) {
    let list = path.child("requests");
    for (name, amount) in entries(whole, "requests") {
        let of_containers = together(spec, "requests", name);
        if quantity(amount).is_some_and(|amount| of_containers > amount) {
            let why = format!(
                "must be greater than or equal to aggregate container requests of {of_containers}"
            );
            errors.push(FieldError::invalid(&list.key(name), amount, why));
        }
    }
    let list = path.child("limits");
    for (name, amount) in entries(whole, "limits").filter(|(name, _)| name.starts_with(HUGE_PAGES))
    {
        let of_containers = together(spec, "limits", name);
        if quantity(amount).is_some_and(|amount| of_containers > amount) {
            let why = format!(
                "must be greater than or equal to aggregate container limits of {of_containers}"
            );
            errors.push(FieldError::invalid(&list.key(name), amount, why));
        }
    }
    let list = path.child("containers");
    for (index, container) in items(spec, "containers").enumerate() {
        let of = container.get("resources").unwrap_or(&Value::Null);
        for (name, amount) in entries(of, "limits") {
            let limit = whole.get("limits").and_then(|limits| limits.get(name));
            let (Some(limit), Some(asked)) = (limit.and_then(quantity), quantity(amount)) else {
                continue;
            };
            if asked > limit {
                let path = list.index(index);
                let path = path.key(name);
                let why = format!("must be less than or equal to pod limits of {limit}");
                errors.push(FieldError::invalid(&path.child("limits"), amount, why));
            }
        }
    }
}

/// What the containers of a pod ask for at most at one time: those that run together add
/// up, and an init container runs beside those that were started before it to stay.
fn together(spec: &Value, list: &str, name: &str) -> Quantity {
    let of = |container: &Value| {
        let amount = container.pointer(&format!("/resources/{list}"));
        let amount = amount.and_then(|amounts| quantity(amounts.get(name)?));
        amount.unwrap_or(Quantity::from_integer(0))
    };
    let (mut staying, mut most) = (Quantity::from_integer(0), Quantity::from_integer(0));
    for container in items(spec, "initContainers") {
        let asked = staying.plus(&of(container));
        if text(container, "restartPolicy") == "Always" {
            staying = asked.clone();
        }
        most = most.max(asked);
    }
    let running =
        items(spec, "containers").fold(staying, |sum, container| sum.plus(&of(container)));
    most.max(running)
}

/// Checks in which unit an amount is told: one of those that there are.
pub(super) fn validate_divisor(
    path: &Path<'_>,
    resource: &str,
    divisor: &Value,
    errors: &mut Errors,
) {
    const OF_SIZE: [&str; 13] = [
        "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
    ];
    let is_zero = quantity(divisor).is_none_or(|divisor| divisor.is_zero());
    let given = divisor.as_str().unwrap_or_default();
    let (_, what) = resource.split_once('.').unwrap_or(("", resource));
    let (units, called) = match what {
        "cpu" => (&["1m", "1"][..], "cpu"),
        "memory" => (&OF_SIZE[..], "memory"),
        "ephemeral-storage" => (&OF_SIZE[..], "local ephemeral storage"),
        what if what.starts_with(HUGE_PAGES) => (&OF_SIZE[..], "hugepages"),
        _ => return,
    };
    if !is_zero && !units.contains(&given) {
        let all = match called {
            "cpu" => "1m and 1".to_owned(),
            _ => units.join(", "),
        };
        let why = format!("only divisor's values {all} are supported with the {called} resource");
        errors.push(FieldError::invalid_str(
            &path.child("divisor"),
            resource,
            why,
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_ask_for_what_they_need_at_one_time() {
        let container = |cpu: &str, policy: &str| json!({"resources": {"requests": {"cpu": cpu}}, "restartPolicy": policy});
        let spec = json!({
            "initContainers": [container("4", ""), container("1", "Always"), container("2", "")],
            "containers": [container("1500m", ""), container("1", "")],
        });
        assert_eq!(together(&spec, "requests", "cpu").to_string(), "4");
        let spec = json!({
            "initContainers": [container("1", "Always"), container("2", "")],
            "containers": [container("1500m", ""), container("1", "")],
        });
        assert_eq!(together(&spec, "requests", "cpu").to_string(), "3500m");
        assert_eq!(together(&spec, "requests", "memory").to_string(), "0");
    }

    #[test]
    fn huge_pages_come_whole() {
        let check = |of: Value, expected: &str| {
            let mut errors = Errors::new();
            validate(&Path::new("r"), &of, &BTreeSet::new(), &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.join("; "), expected, "{of}");
        };
        let both = |pages: &str| {
            let amounts = json!({"hugepages-2Mi": pages, "cpu": "1"});
            json!({"limits": amounts, "requests": amounts})
        };
        check(both("4Mi"), "");
        let wrong = "Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi";
        check(
            both("3Mi"),
            &format!("r.limits[hugepages-2Mi]: {wrong}; r.requests[hugepages-2Mi]: {wrong}"),
        );
        check(
            json!({"limits": {"hugepages-2Mi": "2Mi"}}),
            "r: Forbidden: HugePages require cpu or memory",
        );
    }
}
