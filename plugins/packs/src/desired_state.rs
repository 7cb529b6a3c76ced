//! The desired state: `desired-state.json`, which packs there are to be.

use std::collections::BTreeMap;

use reeve_sdk::names::check_dns_label;
use reeve_sdk::prelude::*;
use serde_json::Map;

use crate::catalog;
use crate::findings::{Findings, below};
use crate::graph;
use crate::json;
use crate::pack::Spec;

/// What people call the document.
pub(crate) const DOCUMENT: &str = "desired-state.json";

/// The only version of the document that there is.
const VERSION: &str = "0.1";

/// The packs that are to be there, by name.
pub(crate) type DesiredState = BTreeMap<String, Spec>;

/// Reads a desired state, noting all that is wrong with it.
pub(crate) fn parse(text: &str, allow_empty: bool, findings: &mut Findings) -> DesiredState {
    let mut state = DesiredState::new();
    let document = match json::parse(text) {
        Ok(document) => document,
        Err(error) => {
            findings.error(error.path(), error.message());
            return state;
        }
    };
    let Some(document) = document.as_object() else {
        findings.error("", "expected a JSON object");
        return state;
    };
    warn_of_unknown("", document, &["version", "packs"], findings);
    if document.get("version").and_then(Value::as_str) != Some(VERSION) {
        findings.error("/version", format_args!("expected {VERSION:?}"));
    }
    let Some(packs) = document.get("packs").and_then(Value::as_array) else {
        findings.error("/packs", "expected a list of packs");
        return state;
    };
    if packs.is_empty() && !allow_empty {
        findings.error(
            "/packs",
            "empty, which would remove every pack; if that is meant, set spec.allowEmpty of the \
             PackSet",
        );
    }
    let mut places = BTreeMap::new();
    for (index, pack) in packs.iter().enumerate() {
        let path = format!("/packs/{index}");
        let Some(pack) = pack.as_object() else {
            findings.error(&path, "expected an object with a name");
            continue;
        };
        let mut known = vec!["name"];
        known.extend(Spec::FIELDS);
        warn_of_unknown(&path, pack, &known, findings);
        let spec = Spec::read(&path, pack, findings);
        let Some(name) = name(&path, pack, findings) else {
            continue;
        };
        if let Some(first) = places.insert(name.to_owned(), path.clone()) {
            let name_path = below(&path, "name");
            findings.error(
                &name_path,
                format_args!("{name} is the name of {first} already; remove one of them"),
            );
            continue;
        }
        state.insert(name.to_owned(), spec);
    }
    if findings.errors.is_empty() {
        check_order(&state, &places, findings);
    }
    state
}

fn name<'a>(path: &str, pack: &'a Map<String, Value>, findings: &mut Findings) -> Option<&'a str> {
    let path = below(path, "name");
    let Some(name) = pack.get("name").and_then(Value::as_str) else {
        findings.error(&path, "expected the name of a pack");
        return None;
    };
    if let Err(error) = check_dns_label(name) {
        findings.error(&path, error);
        return None;
    }
    if catalog::find(name).is_none() {
        findings.error(&path, format_args!("{name}: {}", catalog::unknown()));
        return None;
    }
    Some(name)
}

/// What a pack waits for has to be there, and to come to an end.
fn check_order(state: &DesiredState, places: &BTreeMap<String, String>, findings: &mut Findings) {
    let packs = by_name(state);
    for (name, spec) in state {
        let place = places.get(name).map(String::as_str).unwrap_or_default();
        for need in graph::needs(name, &packs) {
            if packs.contains_key(need) {
                continue;
            }
            let listed = spec.depends_on.as_ref();
            let index = listed.and_then(|list| list.iter().position(|one| one == need));
            match index {
                Some(index) => findings.error(
                    &format!("{place}/dependsOn/{index}"),
                    format_args!("{need} is not among the packs; add it, or take it out here"),
                ),
                None => findings.error(
                    place,
                    format_args!(
                        "{name} needs {need}, which is not among the packs; add it, or say in \
                         dependsOn what {name} needs"
                    ),
                ),
            }
        }
    }
    let first = packs.keys().find_map(|name| graph::circle(name, &packs));
    if let Some(circle) = first {
        findings.error("/packs", graph::describe(&circle));
    }
}

/// What each pack says, by name.
pub(crate) fn by_name(state: &DesiredState) -> BTreeMap<&str, &Spec> {
    state
        .iter()
        .map(|(name, spec)| (name.as_str(), spec))
        .collect()
}

/// A newer document may have more in it. It is never written here, so nothing of that
/// is lost.
fn warn_of_unknown(
    path: &str,
    object: &Map<String, Value>,
    known: &[&str],
    findings: &mut Findings,
) {
    for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
        findings.warn(
            &below(path, key),
            "this version does not know the key, and leaves it where it is",
        );
    }
}
