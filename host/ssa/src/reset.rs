//! Fields that a request cannot set, by where it goes.
//!
//! A server with a `status` subresource ignores the status in requests to the
//! object itself, and (nearly) everything but the status in requests to the
//! subresource. Such fields are never owned through that request. Which they
//! are is written in each kind's strategy, not in any document the server
//! gives out, so they are listed here.

use crate::path::Path;
use crate::set::FieldSet;

/// Built-in kinds with a `status` subresource, and what requests to it ignore
/// besides the spec.
const STATUS: [(&str, &str, &[&str]); 25] = [
    ("", "Namespace", &[]),
    ("", "Node", &[]),
    ("", "PersistentVolume", &[]),
    ("", "PersistentVolumeClaim", &[]),
    (
        "",
        "Pod",
        &["metadata.deletionTimestamp", "metadata.ownerReferences"],
    ),
    ("", "ReplicationController", &[]),
    ("", "ResourceQuota", &[]),
    ("", "Service", &[]),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        &["metadata"],
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition", &[]),
    ("apiregistration.k8s.io", "APIService", &["metadata"]),
    ("apps", "DaemonSet", &[]),
    ("apps", "Deployment", &["metadata.labels"]),
    ("apps", "ReplicaSet", &[]),
    ("apps", "StatefulSet", &[]),
    ("autoscaling", "HorizontalPodAutoscaler", &[]),
    ("batch", "CronJob", &[]),
    ("batch", "Job", &[]),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", &["metadata"]),
    (
        "flowcontrol.apiserver.k8s.io",
        "PriorityLevelConfiguration",
        &["metadata"],
    ),
    ("networking.k8s.io", "Ingress", &[]),
    ("networking.k8s.io", "ServiceCIDR", &["metadata"]),
    ("policy", "PodDisruptionBudget", &[]),
    ("resource.k8s.io", "ResourceClaim", &["metadata"]),
    ("storage.k8s.io", "VolumeAttachment", &["metadata"]),
];

/// What a request to a built-in kind, or to one of its subresources, cannot
/// set.
pub fn built_in(group: &str, kind: &str, subresource: &str) -> FieldSet {
    if (group, kind) == ("certificates.k8s.io", "CertificateSigningRequest") {
        return signing_request(subresource);
    }
    let Some((_, _, more)) = STATUS
        .iter()
        .find(|(its_group, its_kind, _)| *its_group == group && *its_kind == kind)
    else {
        return FieldSet::new();
    };
    match subresource {
        // Namespaces are finalized through a subresource that sets the spec.
        "" | "finalize" => fields(&["status"]),
        "status" => fields(&["spec"]).union(&fields(more)),
        _ => FieldSet::new(),
    }
}

/// A request to be signed is never changed, and two paths share its status.
fn signing_request(subresource: &str) -> FieldSet {
    match subresource {
        "" => fields(&["spec", "status"]),
        "status" => fields(&["spec", "status.conditions"]),
        "approval" => fields(&["spec", "status.certificate"]),
        _ => FieldSet::new(),
    }
}

/// What a request to a custom resource, or to one of its subresources, cannot
/// set. `has_status` says whether the version has the `status` subresource.
pub fn custom(has_status: bool, subresource: &str) -> FieldSet {
    match subresource {
        "" if has_status => fields(&["status"]),
        "status" => fields(&["metadata", "spec"]),
        _ => FieldSet::new(),
    }
}

fn fields(paths: &[&str]) -> FieldSet {
    paths
        .iter()
        .map(|path| Path::fields(path.split('.')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reset_depends_on_kind_and_subresource() {
        for (set, expected) in [
            (built_in("", "ConfigMap", ""), ""),
            (built_in("", "ResourceQuota", ""), ".status"),
            (built_in("", "ResourceQuota", "status"), ".spec"),
            (built_in("", "Namespace", "finalize"), ".status"),
            (
                built_in("apps", "Deployment", "status"),
                ".spec .metadata.labels",
            ),
            (built_in("apps", "Deployment", "scale"), ""),
            (
                built_in("resource.k8s.io", "ResourceClaim", "status"),
                ".metadata .spec",
            ),
            (
                built_in(
                    "certificates.k8s.io",
                    "CertificateSigningRequest",
                    "approval",
                ),
                ".spec .status.certificate",
            ),
            (custom(false, ""), ""),
            (custom(true, ""), ".status"),
            (custom(true, "status"), ".metadata .spec"),
        ] {
            let paths: Vec<_> = set.iter().map(|path| path.to_string()).collect();
            assert_eq!(paths.join(" "), expected);
        }
    }
}
