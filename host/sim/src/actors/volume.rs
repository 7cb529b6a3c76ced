//! PersistentVolumes: free, bound, and what becomes of them without their claim.

use serde_json::Value;

use super::context::{Context, MANAGER};
use super::tables::{CLAIMS, VOLUMES};
use crate::kinds::edit::{set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

pub(super) fn reconcile(context: &mut Context<'_>, volume: &Value) -> Result<(), ApiError> {
    let Some(reference) = volume.pointer("/spec/claimRef") else {
        return phase(context, volume, "Available");
    };
    // One that was set aside for a claim, by hand, waits for it.
    if text(reference, "uid").is_empty() {
        return phase(context, volume, "Available");
    }
    let key = format!(
        "{}/{}",
        text(reference, "namespace"),
        text(reference, "name")
    );
    let claim = context.get(CLAIMS, &key);
    let claimed = claim.is_some_and(|claim| meta::text(&claim, "uid") == text(reference, "uid"));
    if claimed {
        return Ok(());
    }
    // Also one that is being deleted: only then it is let go of.
    phase(context, volume, "Released")?;
    let policy = text_at(volume, "/spec/persistentVolumeReclaimPolicy");
    if policy == "Delete" && !meta::is_terminating(volume) {
        return context.delete(VOLUMES, volume);
    }
    Ok(())
}

fn phase(context: &Context<'_>, volume: &Value, phase: &str) -> Result<(), ApiError> {
    if text_at(volume, "/status/phase") == phase {
        return Ok(());
    }
    let now = context.timestamp();
    context.change_status(VOLUMES, volume, MANAGER, |volume| {
        set(&mut volume["status"], "phase", phase);
        set(
            &mut volume["status"],
            "lastPhaseTransitionTime",
            now.clone(),
        );
    })
}
