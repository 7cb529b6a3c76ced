//! Whose the id of a deployment is: there is one path for it, so one deployment has it.
//!
//! Who serves under an id says so on its record, by a label, in lower case: proxies may make
//! no difference. Who has it keeps it; of two that took it at the same time, the one with the
//! older record does.

use reeve_sdk::prelude::*;

use crate::names::{CONFIG_MAP, ID, Place};

/// What of records is read.
#[input]
struct Record {
    metadata: Labelled,
}

#[input]
struct Labelled {
    name: String,
    namespace: String,
    creation_timestamp: Option<String>,
}

const PARTS: [&str; 3] = [
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/creationTimestamp",
];

/// As it stands in the label.
pub(crate) fn label(id: &str) -> String {
    id.to_ascii_lowercase()
}

/// Whose an id is, as namespace and name, if it is another's in any of these namespaces.
pub(crate) fn taken(
    place: &Place,
    id: &str,
    namespaces: &[String],
    cx: &Context,
) -> Result<Option<String>, Failure> {
    let mut claims: Vec<Labelled> = Vec::new();
    for namespace in namespaces {
        let there = Place {
            name: place.name.clone(),
            namespace: namespace.clone(),
        };
        let query = there.labelled(CONFIG_MAP, ID, &label(id));
        let query = query.projection(PARTS);
        let found: Vec<Record> = cx.list(&query)?;
        claims.extend(found.into_iter().map(|record| record.metadata));
    }
    let own = place.record();
    let is_own = |claim: &Labelled| claim.name == own && claim.namespace == place.namespace;
    let holds = claims.iter().any(is_own);
    let rivals = claims.iter().filter(|claim| holds || !is_own(claim));
    let first = rivals.min_by_key(|claim| {
        let created = claim.creation_timestamp.clone().unwrap_or_default();
        (created, claim.namespace.clone(), claim.name.clone())
    });
    let Some(first) = first.filter(|first| !is_own(first)) else {
        return Ok(None);
    };
    let name = first.name.strip_suffix("-builds").unwrap_or(&first.name);
    Ok(Some(format!("{}/{name}", first.namespace)))
}
