//! Events that the cluster itself writes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::edit::text;
use crate::rest::meta;
use crate::rest::write::{Part, Proposal, Writer};
use crate::server::Shared;
use crate::store::Range;

const TABLE: &str = "events";

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Warning,
}

/// Writes an event about an object. One that cannot be written is left out: nobody
/// may write into a namespace that is ending.
pub(crate) fn record(
    shared: &Arc<Shared>,
    source: &str,
    about: &Value,
    kind: Kind,
    reason: &str,
    message: &str,
) {
    let Some(resource) = shared.registry.find_table(TABLE) else {
        return;
    };
    let writer = Writer::of_server(shared, &resource, Part::Whole, source);
    let proposal = Proposal {
        object: event(shared, source, about, kind, reason, message),
        owned: false,
        ..Proposal::default()
    };
    if let Err(error) = writer.create(namespace(about), proposal) {
        tracing::debug!(%error, reason, "event not written");
    }
}

/// Whether an event about an object has been written that says this.
pub(crate) fn is_recorded(shared: &Shared, about: &Value, reason: &str, message: &str) -> bool {
    let prefix = format!("{}/", namespace(about));
    let inside = Range {
        prefix: &prefix,
        from: "",
    };
    let uid = meta::text(about, "uid");
    let page = shared.store.list(TABLE, &inside, None);
    let events = page.map(|page| page.objects).unwrap_or_default();
    events.iter().map(|event| event.value()).any(|event| {
        event["involvedObject"]["uid"] == uid
            && text(&event, "reason") == reason
            && text(&event, "message") == message
    })
}

fn namespace(about: &Value) -> &str {
    match meta::text(about, "namespace") {
        "" => "default",
        namespace => namespace,
    }
}

fn event(
    shared: &Shared,
    source: &str,
    about: &Value,
    kind: Kind,
    reason: &str,
    message: &str,
) -> Value {
    let now = shared.clock.timestamp();
    let name = meta::text(about, "name");
    let suffix = shared.random.uid().replace('-', "");
    let suffix = suffix.get(..16).unwrap_or(&suffix);
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{name}.{suffix}")},
        "involvedObject": {
            "apiVersion": text(about, "apiVersion"),
            "kind": text(about, "kind"),
            "namespace": meta::text(about, "namespace"),
            "name": name,
            "uid": meta::text(about, "uid"),
            "resourceVersion": meta::text(about, "resourceVersion"),
        },
        "reason": reason,
        "message": message,
        "source": {"component": source},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": match kind {
            Kind::Normal => "Normal",
            Kind::Warning => "Warning",
        },
        "eventTime": null,
        "reportingComponent": source,
        "reportingInstance": "",
    })
}
