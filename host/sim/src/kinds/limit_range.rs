//! LimitRanges: what follows from a maximum, and which amounts contradict.

use std::collections::BTreeSet;

use serde_json::Value;

use super::edit::{ensure_object, entries, items, items_mut, present, set, text};
use super::resources::{self, quantity};
use crate::field::{Errors, FieldError, Path};
use crate::names;
use crate::quantity::Quantity;

pub(super) fn default(range: &mut Value) {
    let Some(spec) = ensure_object(range, "spec") else {
        return;
    };
    for limit in items_mut(spec, "limits") {
        if text(limit, "type") == "Container" {
            fill(limit, "default", "max");
            fill(limit, "defaultRequest", "default");
            fill(limit, "defaultRequest", "min");
        }
    }
}

/// Copies to the map `to` the entries of the map `from` that it lacks.
fn fill(limit: &mut Value, to: &str, from: &str) {
    let missing: Vec<(String, Value)> = entries(limit, from)
        .filter(|(name, _)| limit.get(to).is_none_or(|to| to.get(*name).is_none()))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if missing.is_empty() {
        return;
    }
    if let Some(to) = ensure_object(limit, to) {
        for (name, amount) in missing {
            set(to, &name, amount);
        }
    }
}

pub(super) fn validate(range: &Value, errors: &mut Errors) {
    let spec = range.get("spec").unwrap_or(&Value::Null);
    let path = Path::new("spec");
    let path = path.child("limits");
    let mut types = BTreeSet::new();
    for (index, limit) in items(spec, "limits").enumerate() {
        let path = path.index(index);
        let kind = text(limit, "type");
        validate_type(&path.child("type"), kind, errors);
        if !types.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), &kind.into()));
        }
        validate_names(&path, limit, kind, errors);
        let mut named = BTreeSet::new();
        for field in ["max", "min", "maxLimitRequestRatio"] {
            named.extend(entries(limit, field).map(|(name, _)| name.as_str()));
        }
        if kind != "Pod" {
            for field in ["default", "defaultRequest"] {
                named.extend(entries(limit, field).map(|(name, _)| name.as_str()));
            }
        }
        for name in named {
            Amounts::of(limit, kind, name).validate(&path, name, errors);
        }
    }
}

fn validate_type(path: &Path<'_>, kind: &str, errors: &mut Errors) {
    let wrong = names::qualified_name(kind);
    if !wrong.is_empty() {
        for wrong in wrong {
            errors.push(FieldError::invalid_str(path, kind, wrong));
        }
    } else if !kind.contains('/') && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
    {
        errors.push(FieldError::invalid_str(
            path,
            kind,
            "must be a standard limit type or fully qualified",
        ));
    }
}

fn validate_names(path: &Path<'_>, limit: &Value, kind: &str, errors: &mut Errors) {
    let rule = match kind {
        "Pod" | "Container" => resources::validate_container_name,
        _ => resources::validate_name,
    };
    let check = |field: &str, errors: &mut Errors| {
        let path = path.child(field);
        for (name, _) in entries(limit, field) {
            rule(&path.key(name), name, errors);
        }
    };
    check("max", errors);
    check("min", errors);
    for field in ["default", "defaultRequest"] {
        if kind != "Pod" {
            check(field, errors);
        } else if present(limit, field).is_some() {
            errors.push(FieldError::forbidden(
                &path.child(field),
                "may not be specified when `type` is 'Pod'",
            ));
        }
    }
    let bounds_storage = ["min", "max"]
        .into_iter()
        .any(|field| entries(limit, field).any(|(name, _)| name == "storage"));
    if kind == "PersistentVolumeClaim" && !bounds_storage {
        errors.push(FieldError::required(
            &path.child("limits"),
            "either minimum or maximum storage value is required, but neither was provided",
        ));
    }
    check("maxLimitRequestRatio", errors);
}

/// What one limit says about one resource.
struct Amounts {
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

impl Amounts {
    fn of(limit: &Value, kind: &str, name: &str) -> Self {
        let get = |field: &str| quantity(limit.get(field)?.get(name)?);
        let defaults = |field| if kind == "Pod" { None } else { get(field) };
        Amounts {
            min: get("min"),
            max: get("max"),
            default: defaults("default"),
            request: defaults("defaultRequest"),
            ratio: get("maxLimitRequestRatio"),
        }
    }

    fn validate(&self, path: &Path<'_>, name: &str, errors: &mut Errors) {
        // Of each pair the first must not exceed the second. The field that is
        // blamed and the value that is shown are the server's choice.
        let mut ordered = |low: (&str, &Option<Quantity>),
                           high: (&str, &Option<Quantity>),
                           field: &str,
                           shown: &Option<Quantity>| {
            if let (Some(a), Some(b), Some(shown)) = (low.1, high.1, shown)
                && a > b
            {
                let path = path.child(field);
                errors.push(FieldError::invalid_str(
                    &path.key(name),
                    &shown.to_string(),
                    format!("{} value {a} is greater than {} value {b}", low.0, high.0),
                ));
            }
        };
        let min = ("min", &self.min);
        let max = ("max", &self.max);
        let request = ("default request", &self.request);
        ordered(min, max, "min", &self.min);
        ordered(min, request, "defaultRequest", &self.request);
        ordered(request, max, "defaultRequest", &self.request);
        ordered(
            request,
            ("default limit", &self.default),
            "defaultRequest",
            &self.request,
        );
        ordered(min, ("default", &self.default), "default", &self.min);
        ordered(("default", &self.default), max, "default", &self.max);
        self.validate_ratio(path, name, errors);
        if !resources::is_overcommit_allowed(name)
            && let (Some(limit), Some(request)) = (&self.default, &self.request)
            && limit != request
        {
            let path = path.child("defaultRequest");
            errors.push(FieldError::invalid_str(
                &path.key(name),
                &request.to_string(),
                format!(
                    "default value {limit} must equal to defaultRequest value {request} in {name}"
                ),
            ));
        }
    }

    fn validate_ratio(&self, path: &Path<'_>, name: &str, errors: &mut Errors) {
        let Some(ratio) = &self.ratio else { return };
        let path = path.child("maxLimitRequestRatio");
        let path = path.key(name);
        if *ratio < Quantity::from_integer(1) {
            errors.push(FieldError::invalid_str(
                &path,
                &ratio.to_string(),
                format!("ratio {ratio} is less than 1"),
            ));
        }
        if let (Some(min), Some(max)) = (&self.min, &self.max)
            && let Some(limit) = ratio.exceeds(max, min)
        {
            errors.push(FieldError::invalid_str(
                &path,
                &ratio.to_string(),
                format!("ratio {ratio} is greater than max/min = {limit}"),
            ));
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaints(limit: Value) -> Vec<String> {
        let mut range = json!({"spec": {"limits": [limit]}});
        default(&mut range);
        let mut errors = Errors::new();
        validate(&range, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_maximum_is_the_default() {
        let mut range = json!({"spec": {"limits": [
            {"type": "Container", "default": {"cpu": "1"}, "max": {"memory": "1Gi"}, "min": {"cpu": "100m"}},
            {"type": "Pod", "max": {"cpu": "2"}},
        ]}});
        default(&mut range);
        assert_eq!(
            range["spec"]["limits"],
            json!([
                {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"},
                 "defaultRequest": {"cpu": "1", "memory": "1Gi"},
                 "max": {"memory": "1Gi"}, "min": {"cpu": "100m"}},
                {"type": "Pod", "max": {"cpu": "2"}},
            ])
        );
    }

    #[test]
    fn contradictions() {
        assert!(complaints(json!({"type": "Container", "max": {"cpu": "1"}})).is_empty());
        assert_eq!(
            complaints(json!({"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}})),
            [
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max \
                 value 1"
            ]
        );
        assert_eq!(
            complaints(json!({"type": "Pod", "default": {"cpu": "1"}})),
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"]
        );
        assert_eq!(
            complaints(json!({"type": "PersistentVolumeClaim"})),
            [
                "spec.limits[0].limits: Required value: either minimum or maximum storage value is \
                 required, but neither was provided"
            ]
        );
        assert_eq!(
            complaints(
                json!({"type": "Pod", "max": {"cpu": "3"}, "min": {"cpu": "1"},
                "maxLimitRequestRatio": {"cpu": "4"}})
            ),
            [
                "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"4\": ratio 4 is \
                 greater than max/min = 3.000000"
            ]
        );
    }
}
