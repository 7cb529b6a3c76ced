//! What the cluster itself is made of: classes, devices, certificates, priorities
//! and served groups.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout, NONE};
use super::duration::human;
use crate::kinds::edit::text;

const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const BARE: &[Column] = &[Column::NAME, Column::AGE];

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(
        "node.k8s.io",
        "RuntimeClass",
        &[Column::NAME, Column::text("Handler"), Column::AGE],
        |o| vec![o.name(), json!(o.text("/handler")), o.age()],
    ),
    Layout::of(
        "apiregistration.k8s.io",
        "APIService",
        &[
            Column::NAME,
            Column::text("Service"),
            Column::text("Available"),
            Column::AGE,
        ],
        |o| vec![o.name(), json!(service(o)), json!(availability(o)), o.age()],
    ),
    Layout::of(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        &[
            Column::NAME,
            Column::AGE,
            Column::text("SignerName"),
            Column::text("Requestor"),
            Column::text("RequestedDuration"),
            Column::text("Condition"),
        ],
        signing_request,
    ),
    Layout::of(
        FLOW_CONTROL,
        "FlowSchema",
        &[
            Column::NAME,
            Column::text("PriorityLevel"),
            Column::text("MatchingPrecedence"),
            Column::text("DistinguisherMethod"),
            Column::AGE,
            Column::text("MissingPL"),
        ],
        |o| {
            vec![
                o.name(),
                json!(o.text("/spec/priorityLevelConfiguration/name")),
                json!(o.number("/spec/matchingPrecedence")),
                json!(o.text_or("/spec/distinguisherMethod/type", NONE)),
                o.age(),
                json!(condition(o, "Dangling").map_or("?", |found| text(found, "status"))),
            ]
        },
    ),
    Layout::of(
        FLOW_CONTROL,
        "PriorityLevelConfiguration",
        &[
            Column::NAME,
            Column::text("Type"),
            Column::text("NominalConcurrencyShares"),
            Column::text("Queues"),
            Column::text("HandSize"),
            Column::text("QueueLengthLimit"),
            Column::AGE,
        ],
        |o| {
            let number = |pointer: &str| o.at(pointer).cloned().unwrap_or_else(|| json!(NONE));
            vec![
                o.name(),
                json!(o.text("/spec/type")),
                number("/spec/limited/nominalConcurrencyShares"),
                number("/spec/limited/limitResponse/queuing/queues"),
                number("/spec/limited/limitResponse/queuing/handSize"),
                number("/spec/limited/limitResponse/queuing/queueLengthLimit"),
                o.age(),
            ]
        },
    ),
    Layout::of(RESOURCE, "DeviceClass", BARE, |o| vec![o.name(), o.age()]),
    Layout::of(RESOURCE, "ResourceClaimTemplate", BARE, |o| {
        vec![o.name(), o.age()]
    }),
    Layout::of(
        RESOURCE,
        "ResourceClaim",
        &[Column::NAME, Column::text("State"), Column::AGE],
        |o| vec![o.name(), json!(claim(o)), o.age()],
    ),
    Layout::of(
        RESOURCE,
        "ResourceSlice",
        &[
            Column::NAME,
            Column::text("Node"),
            Column::text("Driver"),
            Column::text("Pool"),
            Column::AGE,
        ],
        |o| {
            vec![
                o.name(),
                json!(o.text("/spec/nodeName")),
                json!(o.text("/spec/driver")),
                json!(o.text("/spec/pool/name")),
                o.age(),
            ]
        },
    ),
];

fn condition<'a>(o: &Cells<'a>, of_type: &str) -> Option<&'a Value> {
    o.list("/status/conditions")
        .find(|condition| text(condition, "type") == of_type)
}

fn service(o: &Cells<'_>) -> String {
    match o.at("/spec/service").filter(|service| service.is_object()) {
        Some(service) => format!("{}/{}", text(service, "namespace"), text(service, "name")),
        None => "Local".to_owned(),
    }
}

fn availability(o: &Cells<'_>) -> String {
    let Some(available) = condition(o, "Available") else {
        return "Unknown".to_owned();
    };
    match (text(available, "status"), text(available, "reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

fn signing_request(o: &Cells<'_>) -> Vec<Value> {
    let seconds = o.at("/spec/expirationSeconds").and_then(Value::as_i64);
    let has = |condition_type: &str| condition(o, condition_type).is_some();
    let mut state = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !o.text("/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    vec![
        o.name(),
        o.age(),
        json!(o.text_or("/spec/signerName", NONE)),
        json!(o.text("/spec/username")),
        json!(seconds.map_or_else(|| NONE.to_owned(), human)),
        json!(state),
    ]
}

fn claim(o: &Cells<'_>) -> String {
    let mut states = Vec::new();
    if o.is_ending() {
        states.push("deleted");
    }
    if o.at("/status/allocation").is_some_and(Value::is_object) {
        states.push("allocated");
        if o.len("/status/reservedFor") > 0 {
            states.push("reserved");
        }
    } else if !o.is_ending() {
        states.push("pending");
    }
    states.join(",")
}
