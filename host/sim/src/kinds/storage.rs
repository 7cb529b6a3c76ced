//! StorageClasses and what storage drivers publish.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::edit::{default_to, ensure_object, entries, integer, items, present, text};
use super::meta::validate_immutable;
use super::persistent_volume::{add_finalizer, validate_driver_name};
use super::pod_validation::supported;
use super::resources::quantity;
use super::row::{GenerationRule, Kind, METADATA_OF_CLIENTS};
use super::verbs::Subresource;
use super::{quantities, selectors, token_lifetime};
use crate::field::{Errors, FieldError, Path};
use crate::names;

const V1: (&str, &str) = ("storage.k8s.io", "v1");

pub(super) const ROWS: &[Kind] = &[
    Kind::cluster(V1, "CSIDriver", "csidrivers")
        .conditional()
        .returned_when_deleted()
        .generation(GenerationRule::OnUpdate(&["spec"]))
        .defaulted(default_driver)
        .validated(validate_driver),
    Kind::cluster(V1, "CSINode", "csinodes")
        .conditional()
        .returned_when_deleted()
        .defaulted(|node| {
            if let Some(spec) = ensure_object(node, "spec")
                && spec.get("drivers").is_none()
            {
                super::edit::set(spec, "drivers", Value::Null);
            }
        }),
    Kind::namespaced(V1, "CSIStorageCapacity", "csistoragecapacities")
        .conditional()
        .quantities(&["capacity", "maximumVolumeSize"])
        .validated(validate_capacity)
        .update_validated(|capacity, old, errors| {
            for field in ["nodeTopology", "storageClassName"] {
                validate_immutable(&Path::new(field), capacity, old, field, errors);
            }
        }),
    Kind::cluster(V1, "StorageClass", "storageclasses")
        .returned_when_deleted()
        .short(&["sc"])
        .defaulted(|class| {
            default_to(class, "reclaimPolicy", "Delete");
            default_to(class, "volumeBindingMode", "Immediate");
        })
        .validated(validate_class)
        .update_validated(|class, old, errors| {
            for field in [
                "parameters",
                "provisioner",
                "reclaimPolicy",
                "volumeBindingMode",
            ] {
                validate_immutable(&Path::new(field), class, old, field, errors);
            }
        }),
    Kind::cluster(V1, "VolumeAttachment", "volumeattachments")
        .conditional()
        .returned_when_deleted()
        .subresources(&[Subresource::STATUS])
        .status_keeps(&METADATA_OF_CLIENTS)
        .status(r#"{"attached":false}"#)
        .quantities(&["spec.source.inlineVolumeSpec.capacity.*"])
        .validated(validate_attachment)
        .update_validated(|attachment, old, errors| {
            let of = |object: &Value| object.get("spec").cloned().unwrap_or_default();
            let (spec, before) = (of(attachment), of(old));
            let group_version = ("storage.k8s.io", "v1");
            if !quantities::is_same_spec(group_version, "VolumeAttachment", &spec, &before) {
                validate_immutable(&Path::new("spec"), attachment, old, "spec", errors);
            }
        }),
    Kind::cluster(V1, "VolumeAttributesClass", "volumeattributesclasses")
        .returned_when_deleted()
        .short(&["vac"])
        .admitted(|class| add_finalizer(class, "kubernetes.io/vac-protection"))
        .validated(validate_attributes)
        .update_validated(|class, old, errors| {
            for field in ["driverName", "parameters"] {
                validate_immutable(&Path::new(field), class, old, field, errors);
            }
        }),
];

fn default_driver(driver: &mut Value) {
    let Some(spec) = ensure_object(driver, "spec") else {
        return;
    };
    default_to(spec, "attachRequired", true);
    default_to(spec, "podInfoOnMount", false);
    default_to(spec, "storageCapacity", false);
    default_to(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    default_to(spec, "volumeLifecycleModes", json!(["Persistent"]));
    default_to(spec, "requiresRepublish", false);
    default_to(spec, "seLinuxMount", false);
}

fn validate_driver(driver: &Value, errors: &mut Errors) {
    const SPEC: Path<'static> = Path::new("spec");
    let spec = driver.get("spec").unwrap_or(&Value::Null);
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    supported(&SPEC, spec, "fsGroupPolicy", &policies, errors);
    let list = SPEC.child("tokenRequests");
    let mut audiences = BTreeSet::new();
    for (index, request) in items(spec, "tokenRequests").enumerate() {
        let path = list.index(index);
        let audience = text(request, "audience");
        if !audiences.insert(audience) {
            errors.push(FieldError::duplicate(
                &path.child("audience"),
                &audience.into(),
            ));
            continue;
        }
        if let Some(seconds) = integer(request, "expirationSeconds") {
            token_lifetime::validate(&path, seconds, errors);
        }
    }
    let path = SPEC.child("volumeLifecycleModes");
    let modes = ["Persistent", "Ephemeral"];
    for mode in items(spec, "volumeLifecycleModes") {
        if !mode.as_str().is_some_and(|mode| modes.contains(&mode)) {
            errors.push(FieldError::not_supported(&path, mode, &modes));
        }
    }
}

fn validate_capacity(capacity: &Value, errors: &mut Errors) {
    if let Some(topology) = capacity
        .get("nodeTopology")
        .filter(|given| given.is_object())
    {
        selectors::validate(&Path::new("nodeTopology"), topology, errors);
    }
    let class = text(capacity, "storageClassName");
    for wrong in names::dns1123_subdomain(class) {
        errors.push(FieldError::invalid_str(
            &Path::new("storageClassName"),
            class,
            wrong,
        ));
    }
    if let Some(amount) = capacity.get("capacity")
        && quantity(amount).is_some_and(|amount| amount.is_negative())
    {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&Path::new("capacity"), amount, why));
    }
}

fn validate_attachment(attachment: &Value, errors: &mut Errors) {
    const SPEC: Path<'static> = Path::new("spec");
    let spec = attachment.get("spec").unwrap_or(&Value::Null);
    validate_driver_name(&SPEC.child("attacher"), text(spec, "attacher"), errors);
    let path = SPEC.child("source");
    let source = spec.get("source").unwrap_or(&Value::Null);
    let volume = source.get("persistentVolumeName").and_then(Value::as_str);
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (volume, present(source, "inlineVolumeSpec")) {
        (None, None) => errors.push(FieldError::required(&path, why)),
        (Some(_), Some(_)) => errors.push(FieldError::forbidden(&path, why)),
        (Some(""), None) => errors.push(FieldError::required(
            &path.child("persistentVolumeName"),
            "must specify non empty persistentVolumeName",
        )),
        _ => {}
    }
    let node = text(spec, "nodeName");
    for wrong in names::dns1123_subdomain(node) {
        errors.push(FieldError::invalid_str(
            &SPEC.child("nodeName"),
            node,
            wrong,
        ));
    }
    if let Some(volume) = volume {
        for wrong in names::dns1123_subdomain(volume) {
            errors.push(FieldError::invalid_str(
                &path.child("persistentVolumeName"),
                volume,
                wrong,
            ));
        }
    }
}

fn validate_attributes(class: &Value, errors: &mut Errors) {
    validate_provisioner(class, "driverName", errors);
    validate_parameters(class, errors);
    if present(class, "parameters").is_none() {
        let why = "must contain at least one key/value pair";
        errors.push(FieldError::required(&Path::new("parameters"), why));
    }
}

/// Checks who makes volumes.
fn validate_provisioner(class: &Value, field: &str, errors: &mut Errors) {
    let path = Path::new(field);
    let provisioner = text(class, field);
    if provisioner.is_empty() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    let lower = provisioner.to_lowercase();
    for wrong in names::qualified_name(&lower) {
        errors.push(FieldError::invalid_str(&path, &lower, wrong));
    }
}

/// Checks what a driver is told.
fn validate_parameters(class: &Value, errors: &mut Errors) {
    const MOST: usize = 512;
    const LARGEST: usize = 256 * 1024;
    let path = Path::new("parameters");
    if entries(class, "parameters").count() > MOST {
        errors.push(FieldError::too_long(&path, MOST));
        return;
    }
    let mut size = 0;
    for (key, value) in entries(class, "parameters") {
        if key.is_empty() {
            errors.push(FieldError::invalid_str(
                &path,
                key,
                "field can not be empty.",
            ));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > LARGEST {
        errors.push(FieldError::too_long(&path, LARGEST));
    }
}

fn validate_class(class: &Value, errors: &mut Errors) {
    validate_provisioner(class, "provisioner", errors);
    validate_parameters(class, errors);
    let root = Path::ROOT;
    supported(&root, class, "reclaimPolicy", &["Delete", "Retain"], errors);
    supported(
        &root,
        class,
        "volumeBindingMode",
        &["Immediate", "WaitForFirstConsumer"],
        errors,
    );
    validate_topologies(class, errors);
}

/// Complaints about topologies that are alike: one for each pair in the real server, of
/// which a small request can have millions.
const DUPLICATES_MAX: usize = 10_000;

/// Checks on which nodes volumes may be made: terms of labels, no two of them alike.
fn validate_topologies(class: &Value, errors: &mut Errors) {
    const FIELD: &str = "allowedTopologies";
    let list = Path::new(FIELD);
    // A term without labels is like others that the real server has in its list before
    // it looks at the first one.
    let mut known = BTreeMap::from([(Topology::new(), items(class, FIELD).count())]);
    let mut left = DUPLICATES_MAX;
    for (index, term) in items(class, FIELD).enumerate() {
        let path = list.index(index);
        let path = path.child("matchLabelExpressions");
        let topology = validate_topology(&path, term, errors);
        let alike = known.entry(topology).or_default();
        for _ in 0..left.min(*alike) {
            errors.push(FieldError::duplicate(&path, &"".into()));
        }
        left -= left.min(*alike);
        *alike += 1;
    }
}

/// The values that labels may have.
type Topology<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn validate_topology<'a>(list: &Path<'_>, term: &'a Value, errors: &mut Errors) -> Topology<'a> {
    let mut topology = Topology::new();
    for (index, expression) in items(term, "matchLabelExpressions").enumerate() {
        let path = list.index(index);
        let values = path.child("values");
        if present(expression, "values").is_none() {
            errors.push(FieldError::required(&values, ""));
        }
        let mut allowed = BTreeSet::new();
        for (index, value) in items(expression, "values").enumerate() {
            let value = value.as_str().unwrap_or_default();
            if !allowed.insert(value) {
                errors.push(FieldError::duplicate(&values.index(index), &value.into()));
            }
        }
        selectors::validate_key(&path, expression, errors);
        let key = text(expression, "key");
        if topology.insert(key, allowed).is_some() {
            errors.push(FieldError::duplicate(&path.child("key"), &key.into()));
        }
    }
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_about_topologies_end() {
        let class = json!({ "allowedTopologies": vec![json!({}); 2000] });
        let mut errors = Errors::new();
        validate_topologies(&class, &mut errors);
        assert_eq!(errors.len(), DUPLICATES_MAX);
    }

    #[test]
    fn topologies_differ_and_have_values() {
        let check = |topologies: Value, expected: &[&str]| {
            let class = json!({ "allowedTopologies": topologies });
            let mut errors = Errors::new();
            validate_topologies(&class, &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        let zone =
            |zones: &[&str]| json!({"matchLabelExpressions": [{"key": "zone", "values": zones}]});
        check(json!(null), &[]);
        check(json!([zone(&["a", "b"]), zone(&["a"])]), &[]);
        check(
            json!([zone(&["a", "b"]), zone(&["b", "a"])]),
            &["allowedTopologies[1].matchLabelExpressions: Duplicate value: \"\""],
        );
        check(
            json!([{}]),
            &["allowedTopologies[0].matchLabelExpressions: Duplicate value: \"\""],
        );
        check(
            json!([zone(&[]), zone(&["a", "a"])]),
            &[
                "allowedTopologies[0].matchLabelExpressions[0].values: Required value",
                "allowedTopologies[1].matchLabelExpressions[0].values[1]: Duplicate value: \"a\"",
            ],
        );
        let twice = json!({"key": "zone", "values": ["a"]});
        check(
            json!([{"matchLabelExpressions": [twice, twice]}]),
            &["allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: \"zone\""],
        );
    }
}
