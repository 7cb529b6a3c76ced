//! Workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, and the
//! ReplicationControllers that came before them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::edit::{default_to, ensure_object, integer, items_mut, present, remove, set, text};
use super::gated::pod_gated;
use super::meta::{validate_immutable, validate_nonnegative};
use super::pod::{default_template, pod_atomic_quantities, pod_quantities};
use super::pod_validation::{
    supported, validate_always_restarted, validate_counts, validate_template,
};
use super::row::{GenerationRule, Kind, UpdateOrder};
use super::verbs::{Scale, Subresource};
use super::{claim, edit, quantities, selectors, statuses, strategy};
use crate::field::{Errors, FieldError, Path};
use crate::names;
use crate::selector::{FieldLabel, FieldLabels};

const V1: (&str, &str) = ("apps", "v1");
const ALL: &[&str] = &["all"];
const SPEC: Path<'static> = Path::new("spec");
const STATUS: &[Subresource] = &[Subresource::STATUS];
const SCALED: &[Subresource] = &[Subresource::SCALE, Subresource::STATUS];
const SCALE: Scale = Scale {
    spec_replicas: "/spec/replicas",
    status_replicas: "/status/replicas",
    selector: "/spec/selector",
};
static REPLICAS_FIELD: FieldLabels =
    FieldLabels::of(&[FieldLabel::number("status.replicas", &["/status/replicas"])]);

pub(super) const ROWS: &[Kind] = &[
    Kind::namespaced(V1, "ControllerRevision", "controllerrevisions")
        .validated(|object, errors| validate_nonnegative(&Path::ROOT, object, "revision", errors))
        .create_validated(validate_revision_data)
        .update_validated(|object, old, errors| {
            // No data are other data than empty ones.
            let none = Value::Null;
            let (data, before) = (object.get("data"), old.get("data"));
            if data.unwrap_or(&none) != before.unwrap_or(&none) {
                let shown = data.unwrap_or(&none);
                errors.push(FieldError::invalid(&Path::new("data"), shown, "field is immutable"));
            }
        }),
    Kind::namespaced(V1, "DaemonSet", "daemonsets")
        .status_validated(statuses::validate_daemon_set)
        .short(&["ds"])
        .categories(ALL)
        .subresources(STATUS)
        .status(
            r#"{"currentNumberScheduled":0,"desiredNumberScheduled":0,"numberMisscheduled":0,"numberReady":0}"#,
        )
        .generation_of_spec()
        .quantities(pod_quantities!("spec.template.spec."))
        .atomic_quantities(pod_atomic_quantities!("spec.template.spec."))
        .gated(pod_gated!("spec.template.spec."))
        .defaulted(default_daemon_set)
        .prepared(|_| {}, update_daemon_set)
        .validated(validate_daemon_set)
        .update_validated(validate_selector_kept)
        .update_order(UpdateOrder::ChangeFirst),
    Kind::namespaced(V1, "Deployment", "deployments")
        .status_keeps(&["labels"])
        .status_validated(statuses::validate_deployment)
        .short(&["deploy"])
        .categories(ALL)
        .subresources(SCALED)
        .scale(SCALE)
        .status("{}")
        .generation(GenerationRule::Fields(&["spec", "metadata.annotations"]))
        .quantities(pod_quantities!("spec.template.spec."))
        .atomic_quantities(pod_atomic_quantities!("spec.template.spec."))
        .gated(pod_gated!("spec.template.spec."))
        .defaulted(default_deployment)
        .validated(validate_deployment)
        .update_validated(validate_selector_kept),
    Kind::namespaced(V1, "ReplicaSet", "replicasets")
        .status_validated(statuses::validate_replica_set)
        .short(&["rs"])
        .categories(ALL)
        .subresources(SCALED)
        .scale(SCALE)
        .status(r#"{"replicas":0}"#)
        .generation_of_spec()
        .fields(&REPLICAS_FIELD)
        .quantities(pod_quantities!("spec.template.spec."))
        .atomic_quantities(pod_atomic_quantities!("spec.template.spec."))
        .gated(pod_gated!("spec.template.spec."))
        .defaulted(default_replica_set)
        .validated(validate_replica_set)
        .update_validated(validate_selector_kept),
    Kind::namespaced(V1, "StatefulSet", "statefulsets")
        .status_validated(statuses::validate_stateful_set)
        .short(&["sts"])
        .categories(ALL)
        .subresources(SCALED)
        .scale(SCALE)
        .named(names::dns1123_label)
        .status(r#"{"availableReplicas":0,"replicas":0}"#)
        .generation_of_spec()
        .quantities(pod_quantities!("spec.template.spec."))
        .atomic_quantities(pod_atomic_quantities!(
            "spec.template.spec.",
            "spec.volumeClaimTemplates[].spec.resources.limits.*",
            "spec.volumeClaimTemplates[].spec.resources.requests.*",
            "spec.volumeClaimTemplates[].status.allocatedResources.*",
            "spec.volumeClaimTemplates[].status.capacity.*"
        ))
        .gated(&[
            "spec.template.spec.containers[].lifecycle.stopSignal",
            "spec.template.spec.initContainers[].lifecycle.stopSignal",
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
        ])
        .defaulted(default_stateful_set)
        .validated(validate_stateful_set)
        .create_validated(validate_new_stateful_set)
        .update_validated(validate_stateful_set_update),
    Kind::namespaced(("", "v1"), "ReplicationController", "replicationcontrollers")
        .status_validated(statuses::validate_replica_set)
        .short(&["rc"])
        .categories(ALL)
        .subresources(SCALED)
        .scale(SCALE)
        .status(r#"{"replicas":0}"#)
        .generation_of_spec()
        .fields(&REPLICAS_FIELD)
        .quantities(pod_quantities!("spec.template.spec."))
        .atomic_quantities(pod_atomic_quantities!("spec.template.spec."))
        .gated(pod_gated!("spec.template.spec."))
        .defaulted(default_replication_controller)
        .validated(validate_replication_controller),
];

fn validate_revision_data(revision: &Value, errors: &mut Errors) {
    let why = match revision.get("data") {
        None | Some(Value::Null) => "data is mandatory",
        Some(Value::Object(_)) => return,
        Some(_) => "data must be a valid JSON object",
    };
    errors.push(FieldError::required(&Path::new("data"), why));
}

fn default_deployment(deployment: &mut Value) {
    let Some(spec) = ensure_object(deployment, "spec") else {
        return;
    };
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = ensure_object(spec, "strategy") {
        default_to(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = ensure_object(strategy, "rollingUpdate")
        {
            default_to(rolling, "maxUnavailable", "25%");
            default_to(rolling, "maxSurge", "25%");
        }
    }
    default_selector(spec);
    default_template(spec);
}

fn default_replica_set(set: &mut Value) {
    let Some(spec) = ensure_object(set, "spec") else {
        return;
    };
    default_to(spec, "replicas", 1);
    default_selector(spec);
    default_template(spec);
}

fn default_daemon_set(daemon_set: &mut Value) {
    if let Some(annotations) =
        ensure_object(daemon_set, "metadata").and_then(|meta| ensure_object(meta, "annotations"))
    {
        default_to(annotations, TEMPLATE_GENERATION, "1");
    }
    let Some(spec) = ensure_object(daemon_set, "spec") else {
        return;
    };
    default_to(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = ensure_object(spec, "updateStrategy") {
        default_to(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            if let Some(rolling) = ensure_object(strategy, "rollingUpdate") {
                default_to(rolling, "maxUnavailable", 1);
                default_to(rolling, "maxSurge", 0);
            }
        } else if let Some(rolling) = strategy.get_mut("rollingUpdate") {
            // Written in full also where it says nothing.
            default_to(rolling, "maxUnavailable", 0);
            default_to(rolling, "maxSurge", 0);
        }
    }
    default_selector(spec);
    default_template(spec);
}

/// The generation of the template lives on as an annotation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the generation of the template, whatever a client says of it.
fn update_daemon_set(daemon_set: &mut Value, old: &Value) {
    let counted = i64::from(template_of(daemon_set) != template_of(old));
    let before = old
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(TEMPLATE_GENERATION));
    let before: i64 = before
        .and_then(Value::as_str)
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    if let Some(annotations) =
        ensure_object(daemon_set, "metadata").and_then(|meta| ensure_object(meta, "annotations"))
    {
        set(
            annotations,
            TEMPLATE_GENERATION,
            (before + counted).to_string(),
        );
    }
}

fn default_stateful_set(stateful_set: &mut Value) {
    let Some(spec) = ensure_object(stateful_set, "spec") else {
        return;
    };
    default_to(spec, "podManagementPolicy", "OrderedReady");
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    if let Some(policy) = ensure_object(spec, "persistentVolumeClaimRetentionPolicy") {
        default_to(policy, "whenDeleted", "Retain");
        default_to(policy, "whenScaled", "Retain");
    }
    if let Some(strategy) = ensure_object(spec, "updateStrategy") {
        let given = present(strategy, "type").is_some();
        default_to(strategy, "type", "RollingUpdate");
        // A strategy that is named but not described is left as it is given.
        if text(strategy, "type") == "RollingUpdate"
            && (!given || strategy.get("rollingUpdate").is_some())
            && let Some(rolling) = ensure_object(strategy, "rollingUpdate")
        {
            default_to(rolling, "partition", 0);
        }
    }
    for claim in items_mut(spec, "volumeClaimTemplates") {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
        claim::default(claim);
        set(claim, "status", json!({"phase": "Pending"}));
    }
    default_selector(spec);
    default_template(spec);
    if spec.get("serviceName").and_then(Value::as_str) == Some("") {
        remove(spec, "serviceName");
    }
}

fn default_replication_controller(controller: &mut Value) {
    let labels = controller
        .pointer("/spec/template/metadata/labels")
        .filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        .cloned();
    if let Some(labels) = labels {
        if let Some(spec) = ensure_object(controller, "spec")
            && present(spec, "selector").is_none()
        {
            set(spec, "selector", labels.clone());
        }
        if let Some(meta) = ensure_object(controller, "metadata")
            && present(meta, "labels").is_none()
        {
            set(meta, "labels", labels);
        }
    }
    if let Some(spec) = ensure_object(controller, "spec") {
        default_to(spec, "replicas", 1);
        if spec.get("template").is_some() {
            default_template(spec);
        }
    }
}

/// The server writes an absent selector as null.
fn default_selector(spec: &mut Value) {
    if spec.get("selector").is_none() {
        set(spec, "selector", Value::Null);
    }
}

fn spec_of(workload: &Value) -> &Value {
    workload.get("spec").unwrap_or(&Value::Null)
}

fn template_of(workload: &Value) -> &Value {
    spec_of(workload).get("template").unwrap_or(&Value::Null)
}

fn validate_deployment(deployment: &Value, errors: &mut Errors) {
    let spec = spec_of(deployment);
    validate_counts(&SPEC, spec, &["replicas"], errors);
    selectors::validate_workload(spec, "deployment", errors);
    let path = SPEC.child("template");
    validate_template(&path, template_of(deployment), errors);
    validate_always_restarted(&path, template_of(deployment), "ReplicaSet", errors);
    strategy::validate_deployment(spec, errors);
    let counts = [
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ];
    validate_counts(&SPEC, spec, &counts, errors);
    let min_ready = integer(spec, "minReadySeconds").unwrap_or(0);
    if let Some(deadline) = integer(spec, "progressDeadlineSeconds")
        && deadline <= min_ready
    {
        errors.push(FieldError::invalid(
            &SPEC.child("progressDeadlineSeconds"),
            &deadline.into(),
            "must be greater than minReadySeconds",
        ));
    }
}

fn validate_replica_set(replica_set: &Value, errors: &mut Errors) {
    let spec = spec_of(replica_set);
    validate_counts(&SPEC, spec, &["replicas", "minReadySeconds"], errors);
    // The server says "deployment" for ReplicaSets too.
    selectors::validate_workload(spec, "deployment", errors);
    let path = SPEC.child("template");
    validate_template(&path, template_of(replica_set), errors);
    validate_always_restarted(&path, template_of(replica_set), "ReplicaSet", errors);
}

fn validate_daemon_set(daemon_set: &Value, errors: &mut Errors) {
    let spec = spec_of(daemon_set);
    selectors::validate_workload(spec, "daemonset", errors);
    let path = SPEC.child("template");
    validate_template(&path, template_of(daemon_set), errors);
    validate_always_restarted(&path, template_of(daemon_set), "DaemonSet", errors);
    validate_counts(&SPEC, spec, &["minReadySeconds"], errors);
    strategy::validate_daemon_set(spec, errors);
    validate_counts(&SPEC, spec, &["revisionHistoryLimit"], errors);
}

fn validate_stateful_set(stateful_set: &Value, errors: &mut Errors) {
    let spec = spec_of(stateful_set);
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        errors.push(FieldError::invalid_str(
            &SPEC.child("podManagementPolicy"),
            policy,
            "must be 'OrderedReady' or 'Parallel'",
        ));
    }
    strategy::validate_stateful_set(spec, errors);
    validate_retention(spec, errors);
    validate_counts(&SPEC, spec, &["replicas", "minReadySeconds"], errors);
    if let Some(ordinals) = spec.get("ordinals") {
        validate_nonnegative(&SPEC.child("ordinals"), ordinals, "start", errors);
    }
    selectors::validate_workload(spec, "statefulset", errors);
    let path = SPEC.child("template");
    validate_template(&path, &template_with_claims(spec), errors);
    validate_always_restarted(&path, template_of(stateful_set), "StatefulSet", errors);
}

/// What cannot be changed later is looked at when it is made.
fn validate_new_stateful_set(stateful_set: &Value, errors: &mut Errors) {
    let spec = spec_of(stateful_set);
    let list = SPEC.child("volumeClaimTemplates");
    for (index, template) in edit::items(spec, "volumeClaimTemplates").enumerate() {
        let path = list.index(index);
        let spec = template.get("spec").unwrap_or(&Value::Null);
        claim::validate_spec(&path.child("spec"), spec, errors);
    }
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        for wrong in names::dns1123_label(service) {
            errors.push(FieldError::invalid_str(
                &SPEC.child("serviceName"),
                service,
                wrong,
            ));
        }
    }
}

/// The template of a StatefulSet as its pods come to be: with a volume of each claim,
/// in place of one of the same name, and with names that the controller gives.
fn template_with_claims(spec: &Value) -> Value {
    let mut template = spec.get("template").cloned().unwrap_or_default();
    let Some(pod) = template.get_mut("spec").filter(|spec| spec.is_object()) else {
        return template;
    };
    remove(pod, "hostname");
    remove(pod, "subdomain");
    let claims: Vec<&str> = edit::items(spec, "volumeClaimTemplates")
        .map(|claim| edit::text_at(claim, "/metadata/name"))
        .collect();
    if claims.is_empty() {
        return template;
    }
    // Of claims of one name there is one volume.
    let distinct: BTreeSet<&str> = claims.into_iter().collect();
    let mut volumes: Vec<Value> = distinct
        .iter()
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    let others =
        edit::items(pod, "volumes").filter(|volume| !distinct.contains(text(volume, "name")));
    volumes.extend(others.cloned());
    set(pod, "volumes", volumes);
    template
}

/// Checks what becomes of the claims.
fn validate_retention(spec: &Value, errors: &mut Errors) {
    const POLICIES: [&str; 2] = ["Retain", "Delete"];
    let Some(policy) = spec.get("persistentVolumeClaimRetentionPolicy") else {
        return;
    };
    let path = SPEC.child("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        supported(&path, policy, field, &POLICIES, errors);
    }
}

fn validate_stateful_set_update(stateful_set: &Value, old: &Value, errors: &mut Errors) {
    const MUTABLE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let strip = |stateful_set: &Value| {
        let mut spec = spec_of(stateful_set).clone();
        for field in MUTABLE {
            remove(&mut spec, field);
        }
        quantities::amounts(V1, "StatefulSet", &json!({ "spec": spec }))
    };
    if strip(stateful_set) != strip(old) {
        errors.push(FieldError::forbidden(
            &SPEC,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
             'template', 'updateStrategy', 'revisionHistoryLimit', \
             'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ));
    }
}

fn validate_selector_kept(workload: &Value, old: &Value, errors: &mut Errors) {
    validate_immutable(
        &SPEC.child("selector"),
        spec_of(workload),
        spec_of(old),
        "selector",
        errors,
    );
}

/// A selector, which is a map of labels, selects the pods that are made.
fn validate_selected(path: &Path<'_>, spec: &Value, template: &Value, errors: &mut Errors) {
    let labels = template.pointer("/metadata/labels").unwrap_or(&Value::Null);
    let is_kept = |(key, value): (&String, &Value)| labels.get(key) == Some(value);
    if !edit::entries(spec, "selector").all(is_kept) {
        let path = path.child("metadata.labels");
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path, labels, why));
    }
}

fn validate_replication_controller(controller: &Value, errors: &mut Errors) {
    let spec = spec_of(controller);
    validate_counts(&SPEC, spec, &["minReadySeconds"], errors);
    if present(spec, "selector").is_none() {
        errors.push(FieldError::required(&SPEC.child("selector"), ""));
    }
    validate_counts(&SPEC, spec, &["replicas"], errors);
    let path = SPEC.child("template");
    match spec.get("template") {
        None => errors.push(FieldError::required(&path, "")),
        Some(template) => {
            validate_selected(&path, spec, template, errors);
            validate_template(&path, template, errors);
            validate_always_restarted(&path, template, "ReplicationController", errors);
        }
    }
}
