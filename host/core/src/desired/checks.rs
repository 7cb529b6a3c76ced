//! The checks on an answer's parts, each for itself.

use super::error::{DesiredError, Entry};
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::manifest::{Manifest, is_dns_label};
use crate::outcome::Outcome;
use crate::ownership::{HOST_OWNED, OUR_DOMAIN, PEOPLE_OWNED};
use crate::printable::is_printable;
use serde_json::Value;

/// Conditions, and events, that one answer may carry: more than a person reads.
const MAX_REMARKS: usize = 32;
/// The API server's limit on the reason of an event.
pub(super) const MAX_WORD: usize = 128;

/// Fields of `metadata` that the API server decides, not a plugin.
const SERVER_OWNED: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "selfLink",
];

pub(super) fn check_remarks(outcome: &Outcome) -> Result<(), DesiredError> {
    for (list, got) in [
        ("conditions", outcome.conditions.len()),
        ("events", outcome.events.len()),
    ] {
        if got > MAX_REMARKS {
            return Err(DesiredError::TooMany {
                list,
                got,
                limit: MAX_REMARKS,
            });
        }
    }
    let conditions = outcome
        .conditions
        .iter()
        .enumerate()
        .flat_map(|(index, c)| {
            [
                ("conditions", index, "type", &c.kind),
                ("conditions", index, "reason", &c.reason),
            ]
        });
    let events = outcome.events.iter().enumerate();
    let events = events.map(|(index, event)| ("events", index, "reason", &event.reason));
    for (list, index, field, word) in conditions.chain(events) {
        let well_formed = word.len() <= MAX_WORD
            && word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !well_formed {
            return Err(DesiredError::Word {
                list,
                index,
                field,
                value: word.chars().take(40).collect(),
            });
        }
    }
    Ok(())
}

pub(super) fn reference_of(entry: Entry, body: &Value) -> Result<ObjectReference, DesiredError> {
    let error = |field, problem: &str| DesiredError::Field {
        entry,
        described: String::new(),
        field,
        problem: problem.to_owned(),
    };
    if !body.is_object() {
        return Err(error("$", "not a JSON object"));
    }
    let text = |pointer: &str, field: &'static str| match body.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
        None | Some(Value::String(_) | Value::Null) => {
            Err(error(field, "missing; every object needs it"))
        }
        Some(_) => Err(error(field, "not a string")),
    };
    let api_version = text("/apiVersion", "apiVersion")?;
    let kind = text("/kind", "kind")?;
    let kind = GroupVersionKind::from_fields(api_version, kind)
        .ok_or_else(|| error("apiVersion", "not of the form `version` or `group/version`"))?;
    if body
        .pointer("/metadata")
        .is_some_and(|metadata| !metadata.is_object())
    {
        return Err(error("metadata", "not an object"));
    }
    let name = match text("/metadata/name", "metadata.name") {
        Ok(name) => name.to_owned(),
        Err(DesiredError::Field { problem, .. }) => {
            return Err(DesiredError::Field {
                entry,
                described: format!(" ({kind})"),
                field: "metadata.name",
                problem,
            });
        }
        Err(other) => return Err(other),
    };
    let namespace = match body.pointer("/metadata/namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) => Some(namespace.clone()).filter(|n| !n.is_empty()),
        Some(_) => return Err(error("metadata.namespace", "not a string")),
    };
    Ok(ObjectReference::new(kind, namespace, name))
}

pub(super) fn check_metadata(
    entry: Entry,
    reference: &ObjectReference,
    body: &Value,
) -> Result<(), DesiredError> {
    let error = |field, problem: String| DesiredError::Field {
        entry,
        described: format!(" ({reference})"),
        field,
        problem,
    };
    check_names(entry, reference)?;
    let metadata = &body["metadata"];
    for field in SERVER_OWNED {
        if metadata.get(field).is_some_and(|value| !value.is_null()) {
            return Err(error(
                "metadata",
                format!("`{field}` is decided by the API server; leave it out"),
            ));
        }
    }
    for (field, path) in [
        ("labels", "metadata.labels"),
        ("annotations", "metadata.annotations"),
    ] {
        let Some(value) = metadata.get(field) else {
            continue;
        };
        let Some(entries) = value.as_object() else {
            return Err(error(path, "not a map of strings".to_owned()));
        };
        for (key, value) in entries {
            if !value.is_string() {
                return Err(error(path, format!("the value of `{key}` is not a string")));
            }
            let (domain, _) = key.split_once('/').unwrap_or_default();
            if (field == "labels" && domain == OUR_DOMAIN) || HOST_OWNED.contains(&key.as_str()) {
                return Err(error(
                    path,
                    format!("`{key}` is set by the host; leave it out"),
                ));
            }
            if PEOPLE_OWNED.contains(&key.as_str()) {
                return Err(error(
                    path,
                    format!("`{key}` is for people to set; leave it out"),
                ));
            }
        }
    }
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    let ours = |name: &&str| {
        let (domain, _) = name.split_once('/').unwrap_or_default();
        is_ours(domain)
    };
    let mut finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    if let Some(name) = finalizers.find(ours) {
        return Err(error(
            "metadata.finalizers",
            format!("`{name}` is set by the host; leave it out"),
        ));
    }
    if metadata.get("ownerReferences").is_some() {
        return Err(error(
            "metadata.ownerReferences",
            "set by the host; leave it out".to_owned(),
        ));
    }
    Ok(())
}

/// Whether a domain is the host's, or below it.
fn is_ours(domain: &str) -> bool {
    let above = domain.strip_suffix(OUR_DOMAIN);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

pub(super) fn check_names(entry: Entry, reference: &ObjectReference) -> Result<(), DesiredError> {
    let error = |field, problem: String| DesiredError::Field {
        entry,
        described: format!(" ({reference})"),
        field,
        problem,
    };
    // The API server checks names by kind; these would already mislead us when a
    // name becomes part of a URL.
    let name = &reference.name;
    if name.is_empty() || name.contains(['/', '%']) || name == "." || name == ".." {
        return Err(error(
            "metadata.name",
            format!("`{name}` cannot be part of a URL path"),
        ));
    }
    // It is shown in many places, and no API server takes such a name.
    if !is_printable(name) {
        return Err(error(
            "metadata.name",
            format!("`{name}` has characters that cannot be seen"),
        ));
    }
    match &reference.namespace {
        Some(namespace) if !is_dns_label(namespace) => Err(error(
            "metadata.namespace",
            format!("`{namespace}` is not the name of a namespace (a DNS-1123 label)"),
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_scope(
    entry: Entry,
    reference: &ObjectReference,
    manifest: &Manifest,
    primary: &ObjectReference,
    namespaced: impl Fn(&ObjectReference) -> bool,
) -> Result<(), DesiredError> {
    let mut rules = manifest
        .writes
        .iter()
        .filter(|rule| rule.kind == reference.kind)
        .peekable();
    if rules.peek().is_none() {
        return Err(DesiredError::UndeclaredKind {
            entry,
            object: Box::new(reference.clone()),
            kind: Box::new(reference.kind.clone()),
        });
    }
    let error = |problem: &str| DesiredError::Field {
        entry,
        described: format!(" ({reference})"),
        field: "metadata.namespace",
        problem: problem.to_owned(),
    };
    match (&reference.namespace, namespaced(reference)) {
        (None, true) => return Err(error("missing; the kind lives in namespaces")),
        (Some(_), false) => return Err(error("set, but the kind is cluster-scoped; leave it out")),
        _ => {}
    }
    let mut allowed = Vec::new();
    for rule in rules {
        let namespaces = rule
            .scope
            .namespaces(primary.namespace.as_deref(), &primary.name);
        match (namespaces, &reference.namespace) {
            (None, _) => return Ok(()),
            (Some(names), Some(namespace)) if names.contains(&namespace.as_str()) => return Ok(()),
            (Some(names), _) => allowed.extend(names.into_iter().map(str::to_owned)),
        }
    }
    Err(DesiredError::OutsideScope {
        entry,
        object: Box::new(reference.clone()),
        allowed: format!(
            "{} may be written in namespace {}",
            reference.kind.kind,
            allowed.join(", ")
        ),
    })
}
