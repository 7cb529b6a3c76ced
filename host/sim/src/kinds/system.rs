//! The rest of the core group: Namespaces, Nodes, Pods, Services, volumes.

use serde_json::Value;

use super::edit::{default_to, items_mut};
use super::gated::pod_gated;
use super::pod::{self, pod_atomic_quantities, pod_quantities};
use super::row::{GenerationRule, Kind};
use super::verbs::{Subresource, Verbs};
use super::{
    claim, endpoints, label_keys, namespace, node, persistent_volume, pod_parts, pod_status,
    pod_validation, service,
};
use crate::field::Path;
use crate::names;
use crate::selector::{FieldLabel, FieldLabels};

const V1: (&str, &str) = ("", "v1");
const ALL: &[&str] = &["all"];
const STATUS: &[Subresource] = &[Subresource::STATUS];
const CONNECT: &[&str] = &["create", "get"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];

static POD_FIELDS: FieldLabels = FieldLabels::of(&[
    FieldLabel::text("spec.nodeName", &["/spec/nodeName"]),
    FieldLabel::text("spec.restartPolicy", &["/spec/restartPolicy"]),
    FieldLabel::text("spec.schedulerName", &["/spec/schedulerName"]),
    FieldLabel::text("spec.serviceAccountName", &["/spec/serviceAccountName"]),
    FieldLabel::flag("spec.hostNetwork", &["/spec/hostNetwork"]),
    FieldLabel::text("status.phase", &["/status/phase"]),
    FieldLabel::text("status.podIP", &["/status/podIPs/0/ip", "/status/podIP"]),
    FieldLabel::text("status.podIPs", &["/status/podIPs/0/ip"]),
    FieldLabel::text("status.nominatedNodeName", &["/status/nominatedNodeName"]),
]);
static NODE_FIELDS: FieldLabels = FieldLabels::of(&[FieldLabel::flag(
    "spec.unschedulable",
    &["/spec/unschedulable"],
)])
.without_namespace();
static NAMESPACE_FIELDS: FieldLabels =
    FieldLabels::of(&[FieldLabel::text("status.phase", &["/status/phase"])]).without_namespace();
static SERVICE_FIELDS: FieldLabels = FieldLabels::of(&[
    FieldLabel::text("spec.clusterIP", &["/spec/clusterIP"]),
    FieldLabel::text("spec.type", &["/spec/type"]),
]);

/// What a Node has before its kubelet reports.
const NODE_STATUS: &str = r#"{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"architecture":"","bootID":"","containerRuntimeVersion":"","kernelVersion":"","kubeProxyVersion":"","kubeletVersion":"","machineID":"","operatingSystem":"","osImage":"","systemUUID":""}}"#;

pub(super) const ROWS: &[Kind] = &[
    Kind::namespaced(V1, "Binding", "bindings").verbs(Verbs::Create),
    Kind::cluster(V1, "ComponentStatus", "componentstatuses")
        .deprecated("v1 ComponentStatus is deprecated in v1.19+")
        .short(&["cs"])
        .verbs(Verbs::Read),
    Kind::namespaced(V1, "Endpoints", "endpoints")
        .created_on_update()
        .deprecated("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        .short(&["ep"])
        .defaulted(default_endpoints)
        .validated(endpoints::validate)
        .update_validated(endpoints::validate_update),
    Kind::cluster(V1, "Namespace", "namespaces")
        .short(&["ns"])
        .verbs(Verbs::NoDeleteCollection)
        .named(names::dns1123_label)
        .fields(&NAMESPACE_FIELDS)
        .subresources(&[
            Subresource::of("finalize", &["update"]),
            Subresource::STATUS,
        ])
        .status(r#"{"phase":"Active"}"#)
        .defaulted(namespace::default)
        .filled_late(("", ""))
        .prepared(namespace::prepare_create, namespace::prepare_update)
        .validated(namespace::validate)
        .status_validated(namespace::validate_status),
    Kind::cluster(V1, "Node", "nodes")
        .short(&["no"])
        .fields(&NODE_FIELDS)
        .quantities(&["status.capacity.*", "status.allocatable.*"])
        .subresources(&[Subresource::of("proxy", PROXY), Subresource::STATUS])
        .status(NODE_STATUS)
        .client_status()
        .gated(&["spec.configSource", "status.config"])
        .defaulted(node::default)
        .admitted(node::admit)
        .validated(node::validate)
        .update_validated(node::validate_update)
        .update_order(super::row::UpdateOrder::WholeObjectFirst)
        .status_restored(node::restore_status)
        .status_validated(node::validate_update),
    Kind::namespaced(V1, "PersistentVolumeClaim", "persistentvolumeclaims")
        .returned_when_deleted()
        .short(&["pvc"])
        .subresources(STATUS)
        .status("{}")
        .quantities(&[
            "spec.resources.requests.*",
            "spec.resources.limits.*",
            "status.capacity.*",
            "status.allocatedResources.*",
        ])
        .defaulted(claim::default_whole)
        .filled_late(("", ""))
        .admitted(claim::admit)
        .prepared(
            |given| claim::prepare(given, None),
            |given, old| claim::prepare(given, Some(old)),
        )
        .validated(claim::validate)
        .update_validated(claim::validate_update)
        .update_order(super::row::UpdateOrder::WholeObject)
        .status_validated(claim::validate_status),
    Kind::cluster(V1, "PersistentVolume", "persistentvolumes")
        .returned_when_deleted()
        .short(&["pv"])
        .subresources(STATUS)
        .status(r#"{"phase":"Pending"}"#)
        .quantities(&["spec.capacity.*"])
        .defaulted(persistent_volume::default_volume)
        .filled_late(("", ""))
        .admitted(persistent_volume::admit_volume)
        .validated(persistent_volume::validate_volume)
        .update_validated(persistent_volume::validate_volume_update),
    Kind::namespaced(V1, "Pod", "pods")
        .status_keeps(&["ownerReferences"])
        .returned_when_deleted()
        .short(&["po"])
        .categories(ALL)
        .fields(&POD_FIELDS)
        .subresources(&[
            Subresource::of("attach", CONNECT).with_body("", "v1", "PodAttachOptions"),
            Subresource::of("binding", &["create"]).with_body("", "v1", "Binding"),
            Subresource::of("ephemeralcontainers", READ_WRITE),
            Subresource::of("eviction", &["create"]).with_body("policy", "v1", "Eviction"),
            Subresource::of("exec", CONNECT).with_body("", "v1", "PodExecOptions"),
            Subresource::of("log", &["get"]),
            Subresource::of("portforward", CONNECT).with_body("", "v1", "PodPortForwardOptions"),
            Subresource::of("proxy", PROXY).with_body("", "v1", "PodProxyOptions"),
            Subresource::of("resize", READ_WRITE),
            Subresource::STATUS,
        ])
        .generation_of_spec()
        .status("{}")
        .quantities(pod_quantities!(
            "spec.",
            "status.allocatedResources.*",
            "status.resources.limits.*",
            "status.resources.requests.*"
        ))
        .atomic_quantities(pod_atomic_quantities!(
            "spec.",
            "status.containerStatuses[].allocatedResources.*",
            "status.containerStatuses[].resources.limits.*",
            "status.containerStatuses[].resources.requests.*",
            "status.initContainerStatuses[].allocatedResources.*",
            "status.initContainerStatuses[].resources.limits.*",
            "status.initContainerStatuses[].resources.requests.*",
            "status.ephemeralContainerStatuses[].allocatedResources.*",
            "status.ephemeralContainerStatuses[].resources.limits.*",
            "status.ephemeralContainerStatuses[].resources.requests.*",
            "status.nodeAllocatableResourceClaimStatuses[].resources{}"
        ))
        .gated(pod_gated!("spec."))
        .defaulted(pod::default)
        .admitted(pod::admit)
        .status_prepared(pod::prepare_status)
        .status_restored(pod_status::restore)
        .status_validated(pod_status::validate)
        .prepared(label_keys::resolve, pod::prepare_update)
        .parts(pod_parts::prepare, pod_parts::validate)
        .validated(pod_validation::validate)
        .create_validated(pod_validation::validate_create)
        .update_validated(pod_validation::validate_update),
    Kind::namespaced(V1, "PodTemplate", "podtemplates")
        .returned_when_deleted()
        .generation(GenerationRule::Fields(&["template"]))
        .quantities(pod_quantities!("template.spec."))
        .atomic_quantities(pod_atomic_quantities!("template.spec."))
        .gated(pod_gated!("template.spec."))
        .defaulted(pod::default_template)
        .validated(|object, errors| {
            let template = object.get("template").unwrap_or(&Value::Null);
            pod_validation::validate_template(&Path::new("template"), template, errors);
        }),
    Kind::namespaced(V1, "Service", "services")
        .created_on_update()
        .returned_when_deleted()
        .short(&["svc"])
        .categories(ALL)
        .named(names::dns1123_label)
        .fields(&SERVICE_FIELDS)
        .subresources(&[
            Subresource::of("proxy", PROXY).with_body("", "v1", "ServiceProxyOptions"),
            Subresource::STATUS,
        ])
        .status(r#"{"loadBalancer":{}}"#)
        .defaulted(service::default)
        .prepared(service::prepare_create, service::prepare_update)
        .validated(service::validate)
        .status_validated(service::validate_status)
        .update_validated(service::validate_update)
        .update_order(super::row::UpdateOrder::ChangeFirst),
];

fn default_endpoints(endpoints: &mut Value) {
    for subset in items_mut(endpoints, "subsets") {
        for port in items_mut(subset, "ports") {
            default_to(port, "protocol", "TCP");
        }
    }
}
