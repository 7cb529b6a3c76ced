//! The kinds that extend the API: CustomResourceDefinitions, whose rules are in
//! [`crate::crd`], and APIServices; and the rows of groups that are only stored.

use serde_json::{Value, json};

use super::edit::{
    default_number, default_to, ensure_object, flag, integer, items_mut, set, text, text_at,
};
use super::row::{Kind, METADATA_OF_CLIENTS, UpdateOrder};
use super::signing;
use super::verbs::Subresource;
use crate::crd;
use crate::field::{Errors, FieldError, Path};
use crate::selector::{FieldLabel, FieldLabels, Unsupported};

const CATEGORIES: &[&str] = &["api-extensions"];
const STATUS: &[Subresource] = &[Subresource::STATUS];
const CERTIFICATES: (&str, &str) = ("certificates.k8s.io", "v1");
const FLOW_CONTROL: (&str, &str) = ("flowcontrol.apiserver.k8s.io", "v1");
const RESOURCE: (&str, &str) = ("resource.k8s.io", "v1");
static SIGNER_FIELDS: FieldLabels =
    FieldLabels::of(&[FieldLabel::text("spec.signerName", &["/spec/signerName"])])
        .without_namespace();
static SLICE_FIELDS: FieldLabels = FieldLabels::of(&[
    FieldLabel::text("spec.nodeName", &["/spec/nodeName"]),
    FieldLabel::text("spec.driver", &["/spec/driver"]),
])
.without_namespace()
.refusing(Unsupported::NotSupportedFor("ResourceSlice"));

pub(super) const ROWS: &[Kind] = &[
    Kind::cluster(
        ("apiextensions.k8s.io", "v1"),
        "CustomResourceDefinition",
        "customresourcedefinitions",
    )
    .short(&["crd", "crds"])
    .categories(CATEGORIES)
    .subresources(STATUS)
    .generation_of_spec()
    .status("{}")
    .status_prepared(crd::prepare_create)
    .defaulted(crd::default)
    .prepared(|_| {}, crd::prepare_update)
    .create_validated(crd::validate_create)
    .conditional()
    .update_validated(crd::validate_update)
    .update_order(UpdateOrder::WholeObject),
    Kind::cluster(
        ("apiregistration.k8s.io", "v1"),
        "APIService",
        "apiservices",
    )
    .status_keeps(&METADATA_OF_CLIENTS)
    .categories(CATEGORIES)
    .subresources(STATUS)
    .status("{}")
    .defaulted(|service| {
        if let Some(reference) = service
            .pointer_mut("/spec/service")
            .filter(|service| service.is_object())
        {
            default_to(reference, "port", 443);
        }
    })
    .validated(validate_api_service)
    .conditional(),
    Kind::cluster(
        CERTIFICATES,
        "CertificateSigningRequest",
        "certificatesigningrequests",
    )
    .short(&["csr"])
    // What was asked for is never changed.
    .prepared(
        |_| {},
        |request, old| {
            if let Some(spec) = old.get("spec") {
                set(request, "spec", spec.clone());
            }
        },
    )
    .status_restored(signing::restore_verdicts)
    .status_validated(signing::validate_status)
    .parts(|_, _, _| {}, signing::validate_approval)
    .fields(&SIGNER_FIELDS)
    .subresources(&[
        Subresource::of("approval", &["get", "patch", "update"]),
        Subresource::STATUS,
    ])
    .status("{}"),
    Kind::cluster(FLOW_CONTROL, "FlowSchema", "flowschemas")
        .defaulted(|schema| {
            if let Some(spec) = ensure_object(schema, "spec") {
                default_number(spec, "matchingPrecedence", 1000);
            }
        })
        .status_keeps(&METADATA_OF_CLIENTS)
        .subresources(STATUS)
        .generation_of_spec()
        .status("{}"),
    Kind::cluster(
        FLOW_CONTROL,
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
    )
    .defaulted(default_level)
    .status_keeps(&METADATA_OF_CLIENTS)
    .subresources(STATUS)
    .generation_of_spec()
    .status("{}"),
    Kind::cluster(RESOURCE, "DeviceClass", "deviceclasses")
        .returned_when_deleted()
        .generation_of_spec(),
    Kind::namespaced(RESOURCE, "ResourceClaim", "resourceclaims")
        .returned_when_deleted()
        .atomic_quantities(&[
            "spec.devices.requests[].exactly.capacity.requests{}",
            "spec.devices.requests[].firstAvailable[].capacity.requests{}",
            "status.allocation.devices.results[].consumedCapacity{}",
        ])
        .defaulted(|claim| default_devices(claim.pointer_mut("/spec/devices")))
        .status_keeps(&METADATA_OF_CLIENTS)
        .subresources(STATUS)
        .status("{}"),
    Kind::namespaced(RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates")
        .returned_when_deleted()
        .atomic_quantities(&[
            "spec.spec.devices.requests[].exactly.capacity.requests{}",
            "spec.spec.devices.requests[].firstAvailable[].capacity.requests{}",
        ])
        .defaulted(|template| {
            if let Some(spec) = ensure_object(template, "spec") {
                ensure_object(spec, "metadata");
            }
            default_devices(template.pointer_mut("/spec/spec/devices"));
        }),
    Kind::cluster(RESOURCE, "ResourceSlice", "resourceslices")
        .returned_when_deleted()
        .fields(&SLICE_FIELDS)
        .atomic_quantities(&[
            "spec.devices[].capacity{}.requestPolicy.default",
            "spec.devices[].capacity{}.requestPolicy.validRange.max",
            "spec.devices[].capacity{}.requestPolicy.validRange.min",
            "spec.devices[].capacity{}.requestPolicy.validRange.step",
            "spec.devices[].capacity{}.requestPolicy.validValues[]",
            "spec.devices[].capacity{}.value",
            "spec.devices[].consumesCounters[].counters{}.value",
            "spec.devices[].nodeAllocatableResourceMappings{}.allocationMultiplier",
            "spec.sharedCounters[].counters{}.value",
        ])
        .generation_of_spec(),
];

/// How much of the server a level gets, and how what waits is queued.
fn default_level(level: &mut Value) {
    for (kind, shares) in [("exempt", 0), ("limited", 30)] {
        if let Some(part) = level.pointer_mut(&format!("/spec/{kind}"))
            && part.is_object()
        {
            default_to(part, "nominalConcurrencyShares", shares);
            default_to(part, "lendablePercent", 0);
        }
    }
    if let Some(queuing) = level.pointer_mut("/spec/limited/limitResponse/queuing")
        && queuing.is_object()
    {
        default_number(queuing, "handSize", 8);
        default_number(queuing, "queues", 64);
        default_number(queuing, "queueLengthLimit", 50);
    }
}

/// What is asked of devices: one of them, unless it says otherwise.
fn default_devices(devices: Option<&mut Value>) {
    let Some(devices) = devices else {
        return;
    };
    let one = |request: &mut Value| {
        if !request.is_object() {
            return;
        }
        default_to(request, "allocationMode", "ExactCount");
        if text(request, "allocationMode") == "ExactCount" {
            default_number(request, "count", 1);
        }
    };
    for request in items_mut(devices, "requests") {
        if let Some(exactly) = request.get_mut("exactly") {
            one(exactly);
        }
        for alternative in items_mut(request, "firstAvailable") {
            one(alternative);
        }
    }
}

fn validate_api_service(service: &Value, errors: &mut Errors) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let name = text_at(service, "/metadata/name");
    let wanted = format!("{}.{}", text(spec, "version"), text(spec, "group"));
    let meta = Path::new("metadata");
    if name != wanted {
        errors.push(FieldError::invalid_str(
            &meta.child("name"),
            name,
            format!(
                "must be `spec.version+\".\"+spec.group`: {}",
                crate::field::quoted(&wanted)
            ),
        ));
    }
    let path = Path::new("spec");
    // The API server orders groups, and the versions of one, by these.
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let number = integer(spec, field).unwrap_or(0);
        if !(1..=most).contains(&number) {
            errors.push(FieldError::invalid(
                &path.child(field),
                &number.into(),
                format!("must be positive and less than {most}"),
            ));
        }
    }
    let insecure = flag(spec, "insecureSkipTLSVerify");
    let Some(reference) = spec.get("service").filter(|service| service.is_object()) else {
        if insecure {
            errors.push(FieldError::invalid(
                &path.child("insecureSkipTLSVerify"),
                &true.into(),
                "local APIServices may not have insecureSkipTLSVerify",
            ));
        }
        return;
    };
    let service = path.child("service");
    for field in ["namespace", "name"] {
        if text(reference, field).is_empty() {
            errors.push(FieldError::required(&service.child(field), ""));
        }
    }
    if insecure && !text(spec, "caBundle").is_empty() {
        errors.push(FieldError::invalid(
            &path.child("insecureSkipTLSVerify"),
            &true.into(),
            "may not be true if caBundle is present",
        ));
    }
}

/// Marks an APIService that is served here as available, as the aggregator
/// does at once.
pub fn mark_local_available(service: &mut Value, now: &str) {
    if service
        .pointer("/spec/service")
        .is_some_and(|s| s.is_object())
    {
        return;
    }
    if let Some(status) = ensure_object(service, "status") {
        set(
            status,
            "conditions",
            json!([{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": now,
                "reason": "Local",
                "message": "Local APIServices are always available",
            }]),
        );
    }
}
