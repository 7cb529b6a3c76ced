//! Nodes: what is true of a new one, and what may change.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::edit::{
    as_printed, ensure_object, entries, integer, items, present, remove, set, text, text_at,
};
use super::{addresses, resources};
use crate::decode;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const METADATA: Path<'static> = Path::new("metadata");
const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");

/// Annotations of old that say what fields do today; those that have them are checked.
const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOIDED: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Sets what was left out: a Node gives all that it has. Of the two fields for ranges of pods' addresses, that for one
/// counts where they differ, and tells the first (`Convert_v1_NodeSpec_To_core_NodeSpec`).
pub(super) fn default(node: &mut Value) {
    if let Some(status) = node.get_mut("status")
        && let Some(capacity) = present(status, "capacity").cloned()
        && present(status, "allocatable").is_none()
    {
        set(status, "allocatable", capacity);
    }
    let Some(spec) = ensure_object(node, "spec") else {
        return;
    };
    let one = text(spec, "podCIDR").to_owned();
    let first = items(spec, "podCIDRs").next().and_then(Value::as_str);
    let first = first.map(ToOwned::to_owned);
    if !one.is_empty() && first.as_ref() != Some(&one) {
        set(spec, "podCIDRs", json!([one]));
    } else if let Some(first) = first.filter(|first| *first != one) {
        set(spec, "podCIDR", first);
    }
}

/// A Node starts out as not ready.
pub(super) fn admit(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let Some(spec) = ensure_object(node, "spec") else {
        return;
    };
    let mut taints: Vec<Value> = items(spec, "taints").cloned().collect();
    let tainted = taints
        .iter()
        .any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule");
    if !tainted {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        set(spec, "taints", taints);
    }
}

/// Takes out of a status what no feature is on for, unless it was there before
/// (`nodeStatusStrategy`).
pub(super) fn restore_status(node: &mut Value, old: &Value) {
    if old.pointer("/status/config").is_none_or(Value::is_null)
        && let Some(status) = node.get_mut("status")
    {
        remove(status, "config");
    }
}

/// Checks all of a Node (`ValidateNode`).
pub(super) fn validate(node: &Value, errors: &mut Errors) {
    validate_annotations(node, errors);
    validate_own_taints(node, errors);
    validate_amounts(node, errors);
    let swap = node.pointer("/status/nodeInfo/swap");
    let swap = swap.and_then(|swap| integer(swap, "capacity"));
    if let Some(capacity) = swap.filter(|capacity| *capacity <= 0) {
        let path = METADATA.child("nodeSwapStatus");
        errors.push(FieldError::invalid(
            &path.child("capacity"),
            &capacity.into(),
            "must be greater than zero",
        ));
    }
    validate_features(node, errors);
    validate_ranges(node, errors);
}

/// Checks what changes of a Node by its own path (`ValidateNodeUpdate`), which looks at
/// much of what [`validate`] has looked at once more.
pub(super) fn validate_update(node: &Value, old: &Value, errors: &mut Errors) {
    validate_annotations(node, errors);
    validate_amounts(node, errors);
    validate_features(node, errors);
    validate_addresses(node, errors);
    validate_unchanged(node, old, errors);
    validate_own_taints(node, errors);
    let external = |node: &Value| text_at(node, "/spec/externalID").to_owned();
    if external(node) != external(old) {
        let path = SPEC.child("externalID");
        errors.push(FieldError::forbidden(&path, "may not be updated"));
    }
}

fn validate_annotations(node: &Value, errors: &mut Errors) {
    let at = METADATA.child("annotations");
    let annotation = |key: &str| {
        let annotations = node.pointer("/metadata/annotations");
        annotations.map_or("", |annotations| text(annotations, key))
    };
    let taints = annotation(TAINTS);
    if !taints.is_empty() {
        match read(taints, Value::is_array, "[]core.Taint") {
            Ok(list) => {
                let taints: Vec<Value> = list
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(any_case)
                    .collect();
                validate_taints(&at.child(TAINTS), taints.iter(), errors);
            }
            Err(why) => errors.push(FieldError::invalid_str(&at, TAINTS, why)),
        }
    }
    let avoided = annotation(AVOIDED);
    if avoided.is_empty() {
        return;
    }
    match read(avoided, Value::is_object, "v1.AvoidPods") {
        Ok(avoided) => {
            for (index, entry) in items(&avoided, "preferAvoidPods").enumerate() {
                let path = at.child(AVOIDED);
                let path = path.index(index);
                let path = path.child("PodSignature");
                match entry.pointer("/podSignature/podController") {
                    Some(owner) if owner.is_object() => {
                        if owner["controller"] == json!(false) {
                            let path = path.child("PodController");
                            errors.push(FieldError::invalid(
                                &path.child("Controller"),
                                &json!(false),
                                "must point to a controller",
                            ));
                        }
                    }
                    _ => errors.push(FieldError::required(&path, "")),
                }
            }
        }
        Err(why) => errors.push(FieldError::invalid_str(
            &at.child("AvoidPods"),
            AVOIDED,
            why,
        )),
    }
}

/// JSON in an annotation, of a form; why it is not in the words of the server's decoder.
fn read(json: &str, fits: fn(&Value) -> bool, form: &str) -> Result<Value, String> {
    decode::check_json(json.as_bytes())?;
    let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if fits(&value) || value.is_null() {
        return Ok(value);
    }
    let found = match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Null | Value::Object(_) => "object",
    };
    Err(format!(
        "json: cannot unmarshal {found} into Go value of type {form}"
    ))
}

/// A taint of an annotation, whose fields may be written in any case.
fn any_case(taint: &Value) -> Value {
    let mut read = json!({});
    for (field, value) in taint.as_object().into_iter().flatten() {
        for known in ["key", "value", "effect"] {
            if field.eq_ignore_ascii_case(known) {
                set(&mut read, known, value.clone());
            }
        }
    }
    read
}

fn validate_own_taints(node: &Value, errors: &mut Errors) {
    let spec = node.get("spec").unwrap_or(&Value::Null);
    // So called by the real server, too.
    validate_taints(&METADATA.child("taints"), items(spec, "taints"), errors);
}

fn validate_taints<'t>(
    list: &Path<'_>,
    taints: impl Iterator<Item = &'t Value>,
    errors: &mut Errors,
) {
    let mut known = BTreeSet::new();
    for (index, taint) in taints.enumerate() {
        let path = list.index(index);
        let (key, value, effect) = (
            text(taint, "key"),
            text(taint, "value"),
            text(taint, "effect"),
        );
        for wrong in names::qualified_name(key) {
            errors.push(FieldError::invalid_str(&path.child("key"), key, wrong));
        }
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            let wrong = wrong.join(";");
            errors.push(FieldError::invalid_str(&path.child("value"), value, wrong));
        }
        match effect {
            "" => errors.push(FieldError::required(&path.child("effect"), "")),
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            _ => errors.push(FieldError::not_supported(
                &path.child("effect"),
                &effect.into(),
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            )),
        }
        if !known.insert((effect, key)) {
            let mut shown = as_printed(taint, &[("TimeAdded", "timeAdded")]);
            for (theirs, ours) in [("Key", key), ("Value", value), ("Effect", effect)] {
                set(&mut shown, theirs, ours);
            }
            let mut error = FieldError::duplicate(&path, &shown);
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
}

fn validate_amounts(node: &Value, errors: &mut Errors) {
    let status = node.get("status").unwrap_or(&Value::Null);
    for list in ["capacity", "allocatable"] {
        let path = STATUS.child(list);
        for (name, amount) in entries(status, list) {
            resources::validate_amount(&path.child(name), name, amount, errors);
        }
    }
}

/// Checks the features that a kubelet says it has: by name, each once.
fn validate_features(node: &Value, errors: &mut Errors) {
    let status = node.get("status").unwrap_or(&Value::Null);
    let list = STATUS.child("declaredFeatures");
    let features = items(status, "declaredFeatures").filter_map(Value::as_str);
    let features: Vec<&str> = features.collect();
    for (index, feature) in features.iter().enumerate() {
        let path = list.index(index);
        if feature.len() > names::SUBDOMAIN_MAX {
            let why = format!(
                "invalid feature name {}: must be no more than {} characters",
                crate::field::quoted(feature),
                names::SUBDOMAIN_MAX
            );
            errors.push(FieldError::invalid_str(&path, feature, why));
        } else if !is_feature(feature) {
            let why = format!(
                "invalid feature name {}: must start with an UpperCamelCase segment, with \
                 subsequent segments separated by '/' (e.g., MyFeature or \
                 MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
                crate::field::quoted(feature)
            );
            errors.push(FieldError::invalid_str(&path, feature, why));
        }
        let Some(next) = features.get(index + 1) else {
            continue;
        };
        let path = list.index(index + 1);
        if feature == next {
            errors.push(FieldError::duplicate(&path, &(*next).into()));
        } else if feature > next {
            let why = "list must be sorted alphabetically";
            errors.push(FieldError::invalid_str(&path, next, why));
        }
    }
}

fn is_feature(name: &str) -> bool {
    let fits = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(fits)
}

/// Checks the ranges of pods' addresses: one, or one of each family.
fn validate_ranges(node: &Value, errors: &mut Errors) {
    let spec = node.get("spec").unwrap_or(&Value::Null);
    let list = SPEC.child("podCIDRs");
    let ranges: Vec<&str> = items(spec, "podCIDRs").filter_map(Value::as_str).collect();
    for (index, range) in ranges.iter().enumerate() {
        addresses::validate_range(&list.index(index), range, errors);
    }
    if ranges.len() < 2 {
        return;
    }
    let family = |range: &&str| {
        let (ip, _) = range.split_once('/')?;
        let length = range.rsplit('/').next()?.parse::<u8>();
        let ip = ip.parse::<IpAddr>();
        ip.ok().filter(|_| length.is_ok()).map(|ip| ip.is_ipv6())
    };
    let families: Vec<Option<bool>> = ranges.iter().map(family).collect();
    if let Some(index) = families.iter().position(Option::is_none) {
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: \
             <nil> (invalid CIDR address: {})",
            ranges[index]
        );
        errors.push(FieldError::internal(&list, why));
    }
    let is_broken = families.iter().any(Option::is_none);
    let has = |six: bool| families.contains(&Some(six));
    if is_broken || !(has(true) && has(false)) || ranges.len() > 2 {
        errors.push(FieldError::invalid(
            &list,
            &json!(ranges),
            "may specify no more than one CIDR for each IP family",
        ));
    }
}

fn validate_addresses(node: &Value, errors: &mut Errors) {
    let status = node.get("status").unwrap_or(&Value::Null);
    let list = STATUS.child("addresses");
    let mut known = BTreeSet::new();
    for (index, address) in items(status, "addresses").enumerate() {
        if !known.insert((text(address, "type"), text(address, "address"))) {
            let mut shown = json!({});
            for (theirs, ours) in [("Type", "type"), ("Address", "address")] {
                set(&mut shown, theirs, text(address, ours));
            }
            errors.push(FieldError::duplicate(&list.index(index), &shown));
        }
    }
}

/// Refuses another range or provider than the one that was said once.
fn validate_unchanged(node: &Value, old: &Value, errors: &mut Errors) {
    let spec = |node: &Value| node.get("spec").cloned().unwrap_or_default();
    let (now, was) = (spec(node), spec(old));
    let ranges = |spec: &Value| -> Vec<Value> { items(spec, "podCIDRs").cloned().collect() };
    let (now_has, had) = (ranges(&now), ranges(&was));
    // Each that differs is told of, unless there are more or fewer of them.
    let differ = match now_has.len() == had.len() {
        _ if had.is_empty() => 0,
        false => 1,
        true => now_has
            .iter()
            .zip(&had)
            .filter(|(one, other)| one != other)
            .count(),
    };
    for _ in 0..differ {
        errors.push(FieldError::forbidden(
            &SPEC.child("podCIDRs"),
            "node updates may not change podCIDR except from \"\" to valid",
        ));
    }
    let provider = text(&was, "providerID");
    if !provider.is_empty() && text(&now, "providerID") != provider {
        errors.push(FieldError::forbidden(
            &SPEC.child("providerID"),
            "node updates may not change providerID except from \"\" to valid",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(metadata: Value, spec: Value, status: Value) -> Value {
        let parts = [("metadata", metadata), ("spec", spec), ("status", status)];
        parts
            .map(|(name, part)| (name.to_owned(), part))
            .into_iter()
            .collect()
    }

    fn told(errors: &Errors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_node_is_wrong_by_itself() {
        let annotated = |key: &str, text: &str| {
            let mut annotations = json!({});
            set(&mut annotations, key, text);
            node(json!({"annotations": annotations}), json!({}), json!({}))
        };
        let spec = |spec: Value| node(json!({}), spec, json!({}));
        let status = |status: Value| node(json!({}), json!({}), status);
        let both = json!({"key": "a", "value": "b", "effect": "NoSchedule"});
        for (node, expected) in [
            (
                spec(json!({"taints": [{"key": "a"}]})),
                &["metadata.taints[0].effect: Required value"][..],
            ),
            (
                spec(json!({"taints": [{"key": "a", "effect": "Never"}]})),
                &[
                    "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                ],
            ),
            (
                spec(json!({"taints": [both, both]})),
                &[
                    "metadata.taints[1]: Duplicate value: {\"Effect\":\"NoSchedule\",\"Key\":\"a\",\"TimeAdded\":null,\"Value\":\"b\"}: taints must be unique by key and effect pair",
                ],
            ),
            (
                spec(json!({"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]})),
                &[
                    "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no more than one CIDR for each IP family",
                ],
            ),
            (spec(json!({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]})), &[]),
            (
                status(json!({"capacity": {"cpu": "-1"}, "allocatable": {"pods": "500m"}})),
                &[
                    "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                    "status.allocatable.pods: Invalid value: \"500m\": must be an integer",
                ],
            ),
            (
                status(json!({"nodeInfo": {"swap": {"capacity": 0}}})),
                &["metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero"],
            ),
            (
                status(json!({"declaredFeatures": ["B/c", "A", "A"]})),
                &[
                    "status.declaredFeatures[1]: Invalid value: \"A\": list must be sorted alphabetically",
                    "status.declaredFeatures[2]: Duplicate value: \"A\"",
                ],
            ),
            (
                annotated(TAINTS, "{}"),
                &[
                    "metadata.annotations: Invalid value: \"scheduler.alpha.kubernetes.io/taints\": json: cannot unmarshal object into Go value of type []core.Taint",
                ],
            ),
            (
                annotated(TAINTS, r#"[{"Key": "a"}]"#),
                &[
                    "metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Required value",
                ],
            ),
            (
                annotated(AVOIDED, r#"{"preferAvoidPods": [{}]}"#),
                &[
                    "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value",
                ],
            ),
        ] {
            let mut errors = Errors::new();
            validate(&node, &mut errors);
            assert_eq!(told(&errors), expected, "{node}");
        }
    }

    #[test]
    fn what_is_said_of_a_node_stays() {
        let spec = |spec: Value| node(json!({}), spec, json!({}));
        let was = spec(json!({
            "podCIDRs": ["10.0.0.0/24", "fd00::/64"], "providerID": "a", "externalID": "b",
        }));
        let ranges = "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid";
        for (now, expected) in [
            (was.clone(), &[][..]),
            (
                spec(json!({"podCIDRs": ["10.0.0.0/24"], "providerID": "a", "externalID": "b"})),
                &[ranges],
            ),
            (
                spec(json!({"podCIDRs": ["10.1.0.0/24", "fd01::/64"]})),
                &[
                    ranges,
                    ranges,
                    "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
                    "spec.externalID: Forbidden: may not be updated",
                ],
            ),
        ] {
            let mut errors = Errors::new();
            validate_update(&now, &was, &mut errors);
            assert_eq!(told(&errors), expected, "{now}");
        }
        let mut errors = Errors::new();
        let set_once = spec(json!({"podCIDRs": ["10.0.0.0/24"], "providerID": "a"}));
        validate_update(&set_once, &spec(json!({})), &mut errors);
        assert!(errors.is_empty(), "{:?}", told(&errors));
        let address = json!({"type": "InternalIP", "address": "10.0.0.1"});
        let twice = node(
            json!({}),
            json!({}),
            json!({"addresses": [address, address]}),
        );
        validate_update(&twice, &spec(json!({})), &mut errors);
        let expected = "status.addresses[1]: Duplicate value: {\"Address\":\"10.0.0.1\",\"Type\":\"InternalIP\"}";
        assert_eq!(told(&errors), [expected]);
    }

    #[test]
    fn what_is_left_out_is_set() {
        for (given, expected) in [
            (
                json!({"podCIDR": "10.0.0.0/24"}),
                json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
            ),
            (
                json!({"podCIDRs": ["10.0.0.0/24"]}),
                json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
            ),
            (
                json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"]}),
                json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
            ),
        ] {
            let mut found = json!({"spec": given});
            default(&mut found);
            assert_eq!(found["spec"], expected);
        }
        let mut found = json!({"status": {"capacity": {"cpu": "4"}}});
        default(&mut found);
        assert_eq!(found["status"]["allocatable"], json!({"cpu": "4"}));
    }
}
