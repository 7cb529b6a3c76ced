//! Namespaces: each has a service account, and none ends before what is in it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conditions::Remaining;
use super::ending::Ending;
use super::writer;
use crate::bootstrap;
use crate::rest::meta;
use crate::rest::write::{Part, Proposal};
use crate::server::Shared;
use crate::status::ApiError;

/// What holds a Namespace back until it is empty.
const FINALIZER: &str = "kubernetes";

/// Gives a namespace its default service account, unless it has one or is ending.
pub(super) fn ensure_service_account(shared: &Arc<Shared>, name: &str) -> Result<(), ApiError> {
    let store = &shared.store;
    let lives = store
        .get("namespaces", name)
        .is_some_and(|found| !found.is_terminating());
    if !lives
        || store
            .get("serviceaccounts", &format!("{name}/default"))
            .is_some()
    {
        return Ok(());
    }
    let Some(resource) = shared.registry.find_table("serviceaccounts") else {
        return Ok(());
    };
    let proposal = Proposal {
        object: bootstrap::service_account(),
        owned: false,
        ..Proposal::default()
    };
    writer(shared, &resource).create(name, proposal).map(drop)
}

/// Deletes what is in a namespace that is being deleted, and lets it end when
/// nothing is left.
pub(super) fn finish(
    shared: &Arc<Shared>,
    name: &str,
    ending: &mut Ending,
) -> Result<(), ApiError> {
    let remaining = ending.delete_contents(shared, name)?;
    tell(shared, name, remaining)?;
    if !remaining.is_empty() {
        return Ok(());
    }
    let Some(resource) = shared.registry.find_table("namespaces") else {
        return Ok(());
    };
    let mut writer = writer(shared, &resource);
    writer.part = Part::of(Some("finalize"));
    let written = writer.update(name, |live| {
        let mut object = live.clone();
        meta::of_mut(&mut object).remove("resourceVersion");
        let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
        let kept: Vec<&Value> = finalizers
            .into_iter()
            .flatten()
            .filter(|f| *f != FINALIZER)
            .collect();
        object["spec"]["finalizers"] = json!(kept);
        Ok(Proposal {
            object,
            owned: false,
            ..Proposal::default()
        })
    });
    match written {
        Err(error) if error.code() != 404 => Err(error),
        _ => Ok(()),
    }
}

/// Says in the status of a namespace what it waits for.
fn tell(shared: &Arc<Shared>, name: &str, remaining: &Remaining) -> Result<(), ApiError> {
    let Some(resource) = shared.registry.find_table("namespaces") else {
        return Ok(());
    };
    let mut writer = writer(shared, &resource);
    writer.part = Part::Status;
    let now = shared.clock.timestamp();
    let written = writer.update(name, |live| {
        let mut object = live.clone();
        meta::of_mut(&mut object).remove("resourceVersion");
        remaining.tell(&mut object["status"], &now);
        Ok(Proposal {
            object,
            owned: false,
            ..Proposal::default()
        })
    });
    match written {
        Err(error) if error.code() != 404 => Err(error),
        _ => Ok(()),
    }
}
