//! Namespaces, data, quotas, leases and events.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout};
use crate::kinds::edit::entries;

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(
        "",
        "Namespace",
        &[Column::NAME, Column::text("Status"), Column::AGE],
        |o| vec![o.name(), json!(o.text("/status/phase")), o.age()],
    ),
    Layout::of(
        "",
        "ConfigMap",
        &[Column::NAME, Column::text("Data"), Column::AGE],
        |o| {
            let entries = o.len("/data") + o.len("/binaryData");
            vec![o.name(), json!(entries), o.age()]
        },
    ),
    Layout::of(
        "",
        "Secret",
        &[
            Column::NAME,
            Column::text("Type"),
            Column::text("Data"),
            Column::AGE,
        ],
        |o| {
            vec![
                o.name(),
                json!(o.text("/type")),
                json!(o.len("/data")),
                o.age(),
            ]
        },
    ),
    Layout::of("", "ServiceAccount", &[Column::NAME, Column::AGE], |o| {
        vec![o.name(), o.age()]
    }),
    Layout::of(
        "",
        "ResourceQuota",
        &[
            Column::NAME,
            Column::text("Request"),
            Column::text("Limit"),
            Column::AGE,
        ],
        quota,
    ),
    Layout::of(
        "coordination.k8s.io",
        "Lease",
        &[Column::NAME, Column::text("Holder"), Column::AGE],
        |o| vec![o.name(), json!(o.text("/spec/holderIdentity")), o.age()],
    ),
    Layout::of(
        "scheduling.k8s.io",
        "PriorityClass",
        &[
            Column::NAME,
            Column::number("Value"),
            Column::flag("Global-Default"),
            Column::AGE,
            Column::text("PreemptionPolicy"),
        ],
        |o| {
            vec![
                o.name(),
                json!(o.number("/value")),
                json!(o.at("/globalDefault") == Some(&Value::Bool(true))),
                o.age(),
                json!(o.text_or("/preemptionPolicy", "PreemptLowerPriority")),
            ]
        },
    ),
    Layout::of("", "Event", EVENT, |o| {
        event(o, "/involvedObject", "/message", "")
    }),
    Layout::of("events.k8s.io", "Event", EVENT, |o| {
        event(o, "/regarding", "/note", "deprecated")
    }),
];

const EVENT: &[Column] = &[
    Column::text("Last Seen"),
    Column::text("Type"),
    Column::text("Reason"),
    Column::text("Object"),
    Column::wide("Subobject"),
    Column::wide("Source"),
    Column::text("Message"),
    Column::wide("First Seen"),
    Column::wide("Count"),
    Column::wide("Name").as_name(),
];

/// What is used of what may be used; limits apart from the rest.
fn quota(o: &Cells<'_>) -> Vec<Value> {
    let status = o.at("/status").unwrap_or(&Value::Null);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let mut hard: Vec<(&String, &Value)> = entries(status, "hard").collect();
    hard.sort_by_key(|(name, _)| name.as_str());
    for (name, hard) in hard {
        let used = status.pointer("/used").and_then(|used| used.get(name));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("0").to_owned();
        let entry = format!("{name}: {}/{}", text(used), text(Some(hard)));
        if name.starts_with("limits.") {
            limits.push(entry);
        } else {
            requests.push(entry);
        }
    }
    vec![
        o.name(),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        o.age(),
    ]
}

fn event(o: &Cells<'_>, involved: &str, message: &str, prefix: &str) -> Vec<Value> {
    let field = |name: &str| match prefix {
        "" => format!("/{name}"),
        prefix => {
            let (first, rest) = name.split_at(1);
            format!("/{prefix}{}{rest}", first.to_uppercase())
        }
    };
    let since = |pointer: &str| match o.text(pointer) {
        "" => None,
        time => Some(o.since_text(time)),
    };
    let first = since(&field("firstTimestamp")).unwrap_or_else(|| o.since("/eventTime"));
    let mut last = since(&field("lastTimestamp")).unwrap_or_else(|| first.clone());
    let mut count = o.number(&field("count")).max(1);
    if o.at("/series").is_some_and(Value::is_object) {
        last = o.since("/series/lastObservedTime");
        count = o.number("/series/count");
    }
    let of = |name: &str| o.text(&format!("{involved}/{name}"));
    let kind = of("kind").to_lowercase();
    let object = match of("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        json!(last),
        json!(o.text("/type")),
        json!(o.text("/reason")),
        json!(object),
        json!(of("fieldPath")),
        json!(source(o, &field("source"))),
        json!(o.text(message).trim()),
        json!(first),
        json!(count),
        o.name(),
    ]
}

fn source(o: &Cells<'_>, old: &str) -> String {
    let or = |new: &str, renamed: &str| match o.text(new) {
        "" => o.text(renamed),
        text => text,
    };
    let component = match o.text(&format!("{old}/component")) {
        "" => or("/reportingComponent", "/reportingController"),
        component => component,
    };
    let host = match o.text(&format!("{old}/host")) {
        "" => o.text("/reportingInstance"),
        host => host,
    };
    if host.is_empty() {
        component.to_owned()
    } else {
        format!("{component}, {host}")
    }
}
