//! Volumes and claims in use: neither goes before it is let go of.

use std::sync::Arc;

use serde_json::Value;

use super::garbage::{has_finalizer, hold, release};
use crate::kinds::edit::{items, text, text_at};
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Object, Range};

pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const VOLUMES: &str = "persistentvolumes";
const PODS: &str = "pods";
const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// Lets a claim go that is being deleted, once no pod on a node uses it.
pub(super) fn release_claim(shared: &Arc<Shared>, key: &str) -> Result<(), ApiError> {
    let Some(claim) = shared.store.get(CLAIMS, key) else {
        return Ok(());
    };
    if !has_finalizer(&claim.value(), CLAIM_FINALIZER) || is_used(shared, &claim) {
        return Ok(());
    }
    let Some(resource) = shared.registry.find_table(CLAIMS) else {
        return Ok(());
    };
    release(shared, &resource, key, CLAIM_FINALIZER)
}

/// Lets a volume go that is being deleted, once it is bound to no claim.
pub(super) fn release_volume(shared: &Arc<Shared>, key: &str) -> Result<(), ApiError> {
    let Some(volume) = shared.store.get(VOLUMES, key) else {
        return Ok(());
    };
    let value = volume.value();
    if !has_finalizer(&value, VOLUME_FINALIZER) || text_at(&value, "/status/phase") == "Bound" {
        return Ok(());
    }
    let Some(resource) = shared.registry.find_table(VOLUMES) else {
        return Ok(());
    };
    release(shared, &resource, key, VOLUME_FINALIZER)
}

/// The finalizer by which objects of a table are protected, where this one should have it
/// and has not.
pub(super) fn lacks(table: &str, object: &Object) -> Option<&'static str> {
    let finalizer = match table {
        CLAIMS => CLAIM_FINALIZER,
        VOLUMES => VOLUME_FINALIZER,
        _ => return None,
    };
    let lacks = !object.is_terminating() && !has_finalizer(&object.value(), finalizer);
    lacks.then_some(finalizer)
}

/// Protects what somebody has taken the protection from.
pub(super) fn protect(shared: &Arc<Shared>, table: &str, key: &str) -> Result<(), ApiError> {
    let Some(object) = shared.store.get(table, key) else {
        return Ok(());
    };
    let resource = shared.registry.find_table(table);
    match (lacks(table, &object), resource) {
        (Some(finalizer), Some(resource)) => hold(shared, &resource, key, finalizer),
        _ => Ok(()),
    }
}

fn is_used(shared: &Shared, claim: &Object) -> bool {
    let prefix = format!("{}/", claim.namespace());
    let inside = Range {
        prefix: &prefix,
        from: "",
    };
    let page = shared.store.list(PODS, &inside, None);
    let pods = page.map(|page| page.objects).unwrap_or_default();
    pods.iter().any(|pod| mounts(&pod.value(), claim.name()))
}

fn mounts(pod: &Value, claim: &str) -> bool {
    let Some(spec) = pod
        .get("spec")
        .filter(|spec| !text(spec, "nodeName").is_empty())
    else {
        return false;
    };
    items(spec, "volumes")
        .any(|volume| text_at(volume, "/persistentVolumeClaim/claimName") == claim)
}
