//! StorageClasses and what storage drivers publish.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::edit::{default_to, ensure_object, entries, flag, integer, items, present, text};
use super::meta::{IMMUTABLE, validate_immutable, validate_nonnegative};
use super::persistent_volume::{add_finalizer, validate_driver_name};
use super::pod_validation::supported;
use super::resources::quantity;
use super::row::{GenerationRule, Kind, METADATA_OF_CLIENTS, UpdateOrder};
use super::verbs::Subresource;
use super::{quantities, selectors, token_lifetime};
use crate::field::{Errors, FieldError, Path};
use crate::names;

const V1: (&str, &str) = ("storage.k8s.io", "v1");
const SPEC: Path<'static> = Path::new("spec");

pub(super) const ROWS: &[Kind] = &[
    Kind::cluster(V1, "CSIDriver", "csidrivers")
        .conditional()
        .returned_when_deleted()
        .generation(GenerationRule::OnUpdate(&["spec"]))
        .defaulted(default_driver)
        .validated(validate_driver)
        .update_validated(|driver, old, errors| {
            let spec = driver.get("spec").unwrap_or(&Value::Null);
            let old = old.get("spec").unwrap_or(&Value::Null);
            for (field, shown) in [
                ("attachRequired", "attachedRequired"),
                ("volumeLifecycleModes", "volumeLifecycleModes"),
            ] {
                validate_immutable(&SPEC.child(shown), spec, old, field, errors);
            }
        }),
    Kind::cluster(V1, "CSINode", "csinodes")
        .conditional()
        .returned_when_deleted()
        .update_order(UpdateOrder::WholeObject)
        .validated(validate_node)
        .update_validated(validate_node_update)
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
                let source = spec.get("source").unwrap_or(&Value::Null);
                let part = |field: &str| source.get(field).unwrap_or(&Value::Null);
                // In the names of the fields of its Go type.
                let shown = json!({
                    "Attacher": text(&spec, "attacher"),
                    "NodeName": text(&spec, "nodeName"),
                    "Source": {
                        "InlineVolumeSpec": part("inlineVolumeSpec"),
                        "PersistentVolumeName": part("persistentVolumeName"),
                    },
                });
                errors.push(FieldError::invalid(&SPEC, &shown, IMMUTABLE));
            }
        }),
    Kind::cluster(V1, "VolumeAttributesClass", "volumeattributesclasses")
        .returned_when_deleted()
        .short(&["vac"])
        .admitted(|class| add_finalizer(class, "kubernetes.io/vac-protection"))
        .update_order(UpdateOrder::ChangeFirst)
        .validated(validate_attributes)
        .update_validated(|class, old, errors| {
            for field in ["driverName", "parameters"] {
                if present(class, field) != present(old, field) {
                    let why = format!("updates to {field} are forbidden.");
                    errors.push(FieldError::forbidden(&Path::new(field), why));
                }
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
    if flag(spec, "serviceAccountTokenInSecrets") && present(spec, "tokenRequests").is_none() {
        errors.push(FieldError::invalid(
            &SPEC.child("serviceAccountTokenInSecrets"),
            &true.into(),
            "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
        ));
    }
}

/// Checks what the drivers of a node say of it.
fn validate_node(node: &Value, errors: &mut Errors) {
    /// The longest name that a driver may give to a node.
    const LONGEST: usize = 256;
    let list = SPEC.child("drivers");
    let mut names_seen = BTreeSet::new();
    for (index, driver) in drivers(node).enumerate() {
        let path = list.index(index);
        let name = text(driver, "name");
        validate_driver_name(&path.child("name"), name, errors);
        let of_node = path.child("nodeID");
        let id = text(driver, "nodeID");
        if id.is_empty() {
            errors.push(FieldError::required(&of_node, ""));
        } else if id.len() > LONGEST {
            let why = format!("must be {LONGEST} characters or less");
            errors.push(FieldError::invalid_str(&of_node, id, why));
        }
        if let Some(allocatable) = driver.get("allocatable") {
            validate_nonnegative(&path.child("allocatable"), allocatable, "count", errors);
        }
        if !names_seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), &name.into()));
        }
        validate_topology_keys(&path, driver, errors);
    }
}

fn validate_topology_keys(path: &Path<'_>, driver: &Value, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for key in items(driver, "topologyKeys") {
        let key = key.as_str().unwrap_or_default();
        if key.is_empty() {
            errors.push(FieldError::required(path, key));
        }
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(path, &key.into()));
        }
        for wrong in names::qualified_name(key) {
            errors.push(FieldError::invalid_str(path, key, wrong));
        }
    }
}

/// What a driver has said of a node stays, but for how many volumes fit there.
fn validate_node_update(node: &Value, old: &Value, errors: &mut Errors) {
    // In the names of the fields of its Go type.
    let shown = |driver: &Value| {
        json!({
            "Name": text(driver, "name"),
            "NodeID": text(driver, "nodeID"),
            "TopologyKeys": present(driver, "topologyKeys"),
            "Allocatable": null,
        })
    };
    let mut known: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for driver in drivers(old) {
        known
            .entry(text(driver, "name"))
            .or_default()
            .push(shown(driver));
    }
    for driver in drivers(node) {
        let now = shown(driver);
        let before = known.get(text(driver, "name")).into_iter().flatten();
        for _ in before.filter(|before| **before != now) {
            errors.push(FieldError::invalid(&SPEC.child("drivers"), &now, IMMUTABLE));
        }
    }
}

fn drivers(node: &Value) -> impl Iterator<Item = &Value> {
    items(node.get("spec").unwrap_or(&Value::Null), "drivers")
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
