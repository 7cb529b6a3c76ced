//! StorageClasses and what storage drivers publish.

use serde_json::{Value, json};

use super::edit::{default_to, ensure_object, text};
use super::meta::validate_immutable;
use super::persistent_volume::add_finalizer;
use super::pod_validation::supported;
use super::row::{GenerationRule, Kind, METADATA_OF_CLIENTS};
use super::verbs::Subresource;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const V1: (&str, &str) = ("storage.k8s.io", "v1");

pub(super) const ROWS: &[Kind] = &[
    Kind::cluster(V1, "CSIDriver", "csidrivers")
        .conditional()
        .returned_when_deleted()
        .generation(GenerationRule::OnUpdate(&["spec"]))
        .defaulted(default_driver),
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
        .quantities(&["capacity", "maximumVolumeSize"]),
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
        .status_keeps(METADATA_OF_CLIENTS)
        .status(r#"{"attached":false}"#),
    Kind::cluster(V1, "VolumeAttributesClass", "volumeattributesclasses")
        .returned_when_deleted()
        .short(&["vac"])
        .admitted(|class| add_finalizer(class, "kubernetes.io/vac-protection"))
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

fn validate_class(class: &Value, errors: &mut Errors) {
    let provisioner = text(class, "provisioner");
    let path = Path::new("provisioner");
    if provisioner.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        let lower = provisioner.to_lowercase();
        for wrong in names::qualified_name(&lower) {
            errors.push(FieldError::invalid_str(&path, &lower, wrong));
        }
    }
    let root = Path::ROOT;
    supported(&root, class, "reclaimPolicy", &["Delete", "Retain"], errors);
    supported(
        &root,
        class,
        "volumeBindingMode",
        &["Immediate", "WaitForFirstConsumer"],
        errors,
    );
}
