//! What of a manifest cannot be, whoever grants it.

use crate::problem::{Problem, chain};
use reeve_api::Reason;
use reeve_cluster::Resource;
use reeve_core::manifest::{Origin, without_query};
use reeve_core::{GroupVersionKind, Manifest};
use reeve_engine::Component;
use std::collections::HashMap;

/// Scopes must make sense for the kinds as they are served.
pub(super) fn check_scopes(
    manifest: &Manifest,
    resources: &HashMap<GroupVersionKind, Resource>,
) -> Result<(), Problem> {
    let namespaced = |kind: &GroupVersionKind| resources.get(kind).map(|found| found.namespaced);
    match manifest.misplaced(namespaced) {
        Some(problem) => Err(Problem::lasting(Reason::ManifestInvalid, problem)),
        None => Ok(()),
    }
}

/// What the manifest says of the outside must be something that can be granted, and
/// a component that declares effects must have the function that makes them.
pub(super) fn check_outside(component: &Component, manifest: &Manifest) -> Result<(), Problem> {
    let invalid = |text: String| Problem::lasting(Reason::ManifestInvalid, text);
    let check = |field: String, url: &str| {
        let parsed = reeve_outside::Rule::new(url);
        parsed
            .map(drop)
            .map_err(|error| invalid(format!("describe: {field}: {}", chain(&error))))
    };
    for (index, source) in manifest.sources.iter().enumerate() {
        if let Origin::Url(text) = &source.origin {
            // A query is part of what is fetched, not of what is granted.
            check(format!("sources[{index}].origin"), without_query(text))?;
        }
    }
    for (index, action) in manifest.actions.iter().enumerate() {
        for text in &action.http {
            check(format!("actions[{index}].http"), text)?;
        }
    }
    if !manifest.actions.is_empty() && !component.has_actions() {
        return Err(invalid(
            "describe: actions: declared, but the component does not export `actions-api`; build it for the world `controller-with-actions`"
                .to_owned(),
        ));
    }
    Ok(())
}
