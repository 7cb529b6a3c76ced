//! The desired state: `desired-state.json`, which packs there are to be.

use reeve_sdk::names::check_dns_label;
use reeve_sdk::prelude::*;
use serde_json::Map;

use crate::catalog;
use crate::findings::{Findings, below};
use crate::graph::{self, Specs};
use crate::json;
use crate::pack::{Pack, Spec};

/// What people call the document.
pub(crate) const DOCUMENT: &str = "desired-state.json";

/// The only version of the document that there is.
const VERSION: &str = "0.1";

/// The packs that are to be there, each once, in the order of the document.
pub(crate) type DesiredState = Vec<Wanted>;

/// A pack that is to be there.
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) spec: Spec,
    /// Where the document says so.
    place: String,
}

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
        if let Some(first) = state.iter().find(|first| first.name == name) {
            findings.error(
                &below(&path, "name"),
                format_args!(
                    "{name} is the name of {} already; remove one of them",
                    first.place
                ),
            );
            continue;
        }
        state.push(Wanted {
            name: name.to_owned(),
            spec,
            place: path,
        });
    }
    if findings.errors.is_empty() {
        check_order(&state, findings);
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

/// What each pack says, by name.
pub(crate) fn specs(state: &DesiredState) -> Specs<'_> {
    let all = state.iter();
    all.map(|wanted| (&*wanted.name, &wanted.spec)).collect()
}

/// Keeps packs that are there as they are, whatever a state says of them.
pub(crate) fn keep<'a>(state: &mut DesiredState, packs: impl Iterator<Item = &'a Pack>) {
    for pack in packs.filter(|pack| !pack.is_going) {
        let spec = pack.spec.clone();
        match state.iter_mut().find(|wanted| wanted.name == pack.name) {
            Some(wanted) => wanted.spec = spec,
            None => state.push(Wanted {
                name: pack.name.clone(),
                spec,
                place: String::new(),
            }),
        }
    }
}

/// What a pack waits for has to be there, and to come to an end.
fn check_order(state: &DesiredState, findings: &mut Findings) {
    let packs = specs(state);
    for Wanted { name, spec, place } in state {
        for need in graph::needs(name, &packs) {
            if packs.get(need).is_some() {
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
    let first = packs.names().find_map(|name| graph::circle(name, &packs));
    if let Some(circle) = first {
        findings.error("/packs", graph::describe(&circle));
    }
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
