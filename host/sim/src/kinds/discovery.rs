//! EndpointSlices, PriorityClasses and RuntimeClasses.

use serde_json::Value;

use super::edit::{default_to, ensure_object, integer, items_mut, set, text_at};
use super::endpoints;
use super::meta::validate_immutable;
use super::pod_validation::supported;
use super::row::{GenerationRule, Kind};
use crate::field::{Errors, FieldError, Path};

/// User-defined priorities end here; those above are the system's.
const PRIORITY_MAX: i64 = 1_000_000_000;

/// The classes of the system, and their priorities.
const SYSTEM: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub(super) const ROWS: &[Kind] = &[
    Kind::namespaced(
        ("discovery.k8s.io", "v1"),
        "EndpointSlice",
        "endpointslices",
    )
    .generation(GenerationRule::Fields(&[
        "addressType",
        "endpoints",
        "ports",
        "metadata.labels",
    ]))
    .gated(&["endpoints[].deprecatedTopology"])
    .defaulted(default_slice)
    .validated(|slice, errors| {
        let kinds = ["FQDN", "IPv4", "IPv6"];
        if slice.get("addressType").is_none() {
            errors.push(FieldError::required(&Path::new("addressType"), ""));
        }
        supported(&Path::ROOT, slice, "addressType", &kinds, errors);
        endpoints::validate_slice(slice, errors);
    })
    .update_validated(|slice, old, errors| {
        let path = Path::new("addressType");
        validate_immutable(&path, slice, old, "addressType", errors);
    }),
    Kind::cluster(
        ("scheduling.k8s.io", "v1"),
        "PriorityClass",
        "priorityclasses",
    )
    .short(&["pc"])
    .generation(GenerationRule::Fields(&[]))
    .defaulted(|class| {
        default_to(class, "preemptionPolicy", "PreemptLowerPriority");
        default_to(class, "value", 0);
    })
    .validated(validate_priority)
    .update_validated(|class, old, errors| {
        if integer(class, "value") != integer(old, "value") {
            errors.push(FieldError::forbidden(
                &Path::new("value"),
                "may not be changed in an update.",
            ));
        }
        let path = Path::new("preemptionPolicy");
        validate_immutable(&path, class, old, "preemptionPolicy", errors);
    }),
    Kind::cluster(("node.k8s.io", "v1"), "RuntimeClass", "runtimeclasses")
        .created_on_update()
        .conditional()
        .update_validated(|class, old, errors| {
            validate_immutable(&Path::new("handler"), class, old, "handler", errors);
        }),
];

fn default_slice(slice: &mut Value) {
    // Both lists are written also where there is none.
    for list in ["endpoints", "ports"] {
        if slice.get(list).is_none() {
            set(slice, list, Value::Null);
        }
    }
    for endpoint in items_mut(slice, "endpoints") {
        ensure_object(endpoint, "conditions");
    }
    for port in items_mut(slice, "ports") {
        default_to(port, "name", "");
        default_to(port, "protocol", "TCP");
    }
}

fn validate_priority(class: &Value, errors: &mut Errors) {
    let name = text_at(class, "/metadata/name");
    let value = integer(class, "value").unwrap_or(0);
    if name.starts_with("system-") {
        let known = SYSTEM.iter().find(|(known, _)| *known == name);
        let wrong = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, wanted)) if *wanted != value => {
                Some(format!("value of {name} PriorityClass must be {wanted}"))
            }
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            errors.push(FieldError::forbidden(
                &Path::new("metadata").child("name"),
                format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {wrong}"
                ),
            ));
        }
    } else if value > PRIORITY_MAX {
        errors.push(FieldError::forbidden(
            &Path::new("value"),
            format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}"),
        ));
    }
    let policies = ["PreemptLowerPriority", "Never"];
    let root = Path::ROOT;
    supported(&root, class, "preemptionPolicy", &policies, errors);
}
