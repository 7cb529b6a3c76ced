//! EndpointSlices, PriorityClasses and RuntimeClasses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::edit::{default_to, ensure_object, integer, items_mut, remove, set, text, text_at};
use super::endpoints;
use super::meta::{validate_immutable, validate_immutable_or, validate_labels};
use super::pod_validation::{amounts, placement, supported};
use super::row::{GenerationRule, Kind};
use crate::field::{Errors, FieldError, Path};
use crate::names;

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
    .prepared(fill_slice, |slice, _| fill_slice(slice))
    .validated(|slice, errors| {
        let kinds = ["FQDN", "IPv4", "IPv6"];
        if text(slice, "addressType").is_empty() {
            errors.push(FieldError::required(&Path::new("addressType"), ""));
        }
        supported(&Path::ROOT, slice, "addressType", &kinds, errors);
        endpoints::validate_slice(slice, errors);
    })
    .update_validated(|slice, old, errors| {
        endpoints::validate_slice_update(slice, old, errors);
        let path = Path::new("addressType");
        validate_immutable_or(&path, slice, old, "addressType", &json!(""), errors);
    }),
    Kind::cluster(
        ("scheduling.k8s.io", "v1"),
        "PriorityClass",
        "priorityclasses",
    )
    .short(&["pc"])
    .generation(GenerationRule::Fields(&[]))
    .defaulted(|class| default_to(class, "preemptionPolicy", "PreemptLowerPriority"))
    .prepared(
        |class| default_to(class, "value", 0),
        |class, _| default_to(class, "value", 0),
    )
    .create_validated(validate_priority)
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
        .quantities(&["overhead.podFixed{}"])
        .conditional()
        .validated(validate_runtime)
        .update_validated(|class, old, errors| {
            validate_immutable(&Path::new("handler"), class, old, "handler", errors);
        }),
];

/// Checks who runs pods, what that costs, and where it can be.
fn validate_runtime(class: &Value, errors: &mut Errors) {
    let handler = text(class, "handler");
    let path = Path::new("handler");
    if handler.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        for wrong in names::dns1123_label(handler) {
            errors.push(FieldError::invalid_str(&path, handler, wrong));
        }
    }
    if let Some(costs) = class.pointer("/overhead/podFixed") {
        let limits = json!({ "limits": costs });
        amounts::validate(&Path::new("overhead"), &limits, &BTreeSet::new(), errors);
    }
    if let Some(scheduling) = class.get("scheduling").filter(|given| given.is_object()) {
        let path = Path::new("scheduling");
        validate_labels(
            scheduling,
            &path.child("nodeSelector"),
            "nodeSelector",
            errors,
        );
        placement::validate_tolerations(&path.child("tolerations"), scheduling, errors);
    }
}

/// Both lists are written also where there is none, and then nobody owns them.
fn fill_slice(slice: &mut Value) {
    for list in ["endpoints", "ports"] {
        if slice.get(list).is_none() {
            set(slice, list, Value::Null);
        }
    }
}

fn default_slice(slice: &mut Value) {
    for list in ["endpoints", "ports"] {
        if slice.get(list).is_some_and(Value::is_null) {
            remove(slice, list);
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
