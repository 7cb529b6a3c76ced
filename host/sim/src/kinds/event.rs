//! Events, which two groups serve under different names.

use serde_json::{Value, json};

use super::edit::{ensure_object, integer, present, set, text, text_at};
use super::meta::validate_immutable;
use super::row::Kind;
use crate::field::{Errors, FieldError, Path};
use crate::names;
use crate::selector::{FieldLabel, FieldLabels};

/// An action or reason may have this many bytes.
const WORD_MAX: usize = 128;
const NOTE_MAX: usize = 1024;

static CORE_FIELDS: FieldLabels = FieldLabels::of(&[
    FieldLabel::text("involvedObject.kind", &["/involvedObject/kind"]),
    FieldLabel::text("involvedObject.namespace", &["/involvedObject/namespace"]),
    FieldLabel::text("involvedObject.name", &["/involvedObject/name"]),
    FieldLabel::text("involvedObject.uid", &["/involvedObject/uid"]),
    FieldLabel::text("involvedObject.apiVersion", &["/involvedObject/apiVersion"]),
    FieldLabel::text(
        "involvedObject.resourceVersion",
        &["/involvedObject/resourceVersion"],
    ),
    FieldLabel::text("involvedObject.fieldPath", &["/involvedObject/fieldPath"]),
    FieldLabel::text("reason", &["/reason"]),
    FieldLabel::text("reportingComponent", &["/reportingComponent"]),
    FieldLabel::text("source", &["/source/component", "/reportingComponent"]),
    FieldLabel::text("type", &["/type"]),
]);
static EVENTS_FIELDS: FieldLabels = FieldLabels::of(&[
    FieldLabel::text("regarding.kind", &["/regarding/kind"]),
    FieldLabel::text("regarding.namespace", &["/regarding/namespace"]),
    FieldLabel::text("regarding.name", &["/regarding/name"]),
    FieldLabel::text("regarding.uid", &["/regarding/uid"]),
    FieldLabel::text("regarding.apiVersion", &["/regarding/apiVersion"]),
    FieldLabel::text("regarding.resourceVersion", &["/regarding/resourceVersion"]),
    FieldLabel::text("regarding.fieldPath", &["/regarding/fieldPath"]),
    FieldLabel::text("reason", &["/reason"]),
    FieldLabel::text("reportingController", &["/reportingController"]),
    FieldLabel::text("type", &["/type"]),
]);

pub(super) const ROWS: &[Kind] = &[
    Kind::namespaced(("", "v1"), "Event", "events")
        .created_on_update()
        .short(&["ev"])
        .fields(&CORE_FIELDS)
        .defaulted(default_core)
        .validated(validate_core),
    Kind::namespaced(("events.k8s.io", "v1"), "Event", "events")
        .created_on_update()
        .short(&["ev"])
        .fields(&EVENTS_FIELDS)
        .defaulted(default_events)
        .validated(validate_both)
        .create_validated(validate_events)
        .update_validated(validate_events_update),
];

/// The names of the same fields in the two groups.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// An Event of the core group as `events.k8s.io` serves it.
pub fn to_events_group(event: &Value) -> Value {
    let mut renamed = rename(event, "events.k8s.io/v1", RENAMED);
    // Which this group leaves out when they are empty.
    for field in ["reportingController", "reportingInstance"] {
        if text(&renamed, field).is_empty()
            && let Some(fields) = renamed.as_object_mut()
        {
            fields.remove(field);
        }
    }
    renamed
}

/// An Event of `events.k8s.io` as the core group serves it.
pub fn to_core_group(event: &Value) -> Value {
    let mut event = rename(event, "v1", RENAMED.map(|(core, events)| (events, core)));
    for field in REPORTER {
        if event.get(field).is_none() {
            set(&mut event, field, "");
        }
    }
    event
}

/// Who reports it; written in the core group even when it is empty.
const REPORTER: [&str; 2] = ["reportingComponent", "reportingInstance"];

fn rename<const N: usize>(event: &Value, api_version: &str, names: [(&str, &str); N]) -> Value {
    let Some(fields) = event.as_object() else {
        return event.clone();
    };
    let mut renamed: Value = fields
        .iter()
        .map(|(name, value)| {
            let name = names
                .iter()
                .find(|(from, _)| from == name)
                .map_or(name.as_str(), |(_, to)| to);
            (name.to_owned(), value.clone())
        })
        .collect::<serde_json::Map<String, Value>>()
        .into();
    set(&mut renamed, "apiVersion", api_version);
    renamed
}

/// The server writes these fields even when they are empty.
fn default_core(event: &mut Value) {
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        write_null(event, field);
    }
    for field in REPORTER {
        if event.get(field).is_none() {
            set(event, field, "");
        }
    }
    ensure_object(event, "source");
    ensure_object(event, "involvedObject");
}

fn default_events(event: &mut Value) {
    for field in [
        "deprecatedFirstTimestamp",
        "deprecatedLastTimestamp",
        "eventTime",
    ] {
        write_null(event, field);
    }
    ensure_object(event, "deprecatedSource");
    ensure_object(event, "regarding");
}

fn write_null(event: &mut Value, field: &str) {
    if event.get(field).is_none() {
        set(event, field, Value::Null);
    }
}

fn validate_core(event: &Value, errors: &mut Errors) {
    validate_common(event, "reportingComponent", errors);
}

fn validate_both(event: &Value, errors: &mut Errors) {
    validate_common(&to_core_group(event), "reportingController", errors);
}

/// One that was made through the core group may be changed, but for what it says.
fn validate_events_update(event: &Value, old: &Value, errors: &mut Errors) {
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        validate_immutable(&Path::new(shown), event, old, field, errors);
    }
}

/// What the newer group asks of an Event that is made through it.
fn validate_events(event: &Value, errors: &mut Errors) {
    if present(event, "eventTime").is_none() {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid_str(
            &Path::new("type"),
            "",
            format!("has invalid value: {kind}"),
        ));
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        if present(event, field).is_some_and(|value| *value != json!(0)) {
            errors.push(FieldError::invalid_str(
                &Path::new(shown),
                "",
                "needs to be unset",
            ));
        }
    }
}

/// What both groups ask for, on an Event of the core group. `controller` is how
/// the group calls the reporting component.
fn validate_common(event: &Value, controller: &str, errors: &mut Errors) {
    let namespace = text_at(event, "/metadata/namespace");
    let involved = text_at(event, "/involvedObject/namespace");
    let involved_path = Path::new("involvedObject");
    let mismatch = || {
        FieldError::invalid_str(
            &involved_path.child("namespace"),
            involved,
            "does not match event.namespace",
        )
    };
    if present(event, "eventTime").is_none() {
        let agrees = if involved.is_empty() {
            matches!(namespace, "" | "default")
        } else {
            namespace == involved
        };
        if !agrees {
            errors.push(mismatch());
        }
    } else {
        if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.push(mismatch());
        }
        validate_report(event, controller, errors);
    }
    for wrong in names::dns1123_subdomain(namespace) {
        errors.push(FieldError::invalid_str(
            &Path::new("namespace"),
            namespace,
            wrong,
        ));
    }
}

/// What an Event with a time must say about who reports what.
fn validate_report(event: &Value, controller: &str, errors: &mut Errors) {
    let path = Path::new(controller);
    let reporter = text(event, "reportingComponent");
    if reporter.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for wrong in names::qualified_name(reporter) {
        errors.push(FieldError::invalid_str(&path, reporter, wrong));
    }
    for field in ["reportingInstance", "action", "reason", "message"] {
        let path = Path::new(field);
        let value = text(event, field);
        let limit = if field == "message" {
            NOTE_MAX
        } else {
            WORD_MAX
        };
        if value.is_empty() && field != "message" {
            errors.push(FieldError::required(&path, ""));
        }
        if value.len() > limit {
            errors.push(FieldError::invalid_str(
                &path,
                "",
                format!("can have at most {limit} characters"),
            ));
        }
    }
    let series = event.get("series").filter(|series| series.is_object());
    if let Some(series) = series
        && integer(series, "count").unwrap_or(0) < 2
        && controller == "reportingController"
    {
        errors.push(FieldError::invalid_str(
            &Path::new("series.count"),
            "",
            "should be at least 2",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_same_in_both_groups() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"},
            "involvedObject": {"name": "x"}, "message": "m", "count": 2, "reason": "R",
            "reportingComponent": "c", "reportingInstance": "",
        });
        let events = to_events_group(&core);
        assert_eq!(
            events,
            json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"},
                "regarding": {"name": "x"}, "note": "m", "deprecatedCount": 2, "reason": "R",
                "reportingController": "c",
            })
        );
        assert_eq!(to_core_group(&events), core);
    }
}
