//! Resuming what would otherwise leave behind what its controller has made.

use super::{Executor, Mark, write_problem};
use crate::active::Active;
use crate::journal::Deed;
use crate::problem::Problem;
use reeve_cluster::{Cluster, Identity, Object, Resume, WriteError};
use reeve_core::ownership::{PLUGIN_LABEL, plugin_label};
use reeve_core::plan::leaves_behind;

/// Field manager of resuming: what is resumed is no part of what a plugin applies.
const MANAGER: &str = "reeve-resume";

/// An object that is about to be deleted, as it then is to be deleted: what
/// [leaves something behind](leaves_behind) has been resumed, in a write of its own, since
/// its controller looks at that when it is deleted.
pub(crate) async fn resumed(
    cluster: &Cluster,
    identity: &Identity,
    live: Object,
) -> Result<Object, WriteError> {
    if !leaves_behind(live.kind(), &live.value()) {
        return Ok(live);
    }
    let resumed = cluster
        .resume(Resume {
            live: &live,
            manager: MANAGER,
            identity: Some(identity),
        })
        .await?;
    tracing::info!(object = %live.reference(), "resumed, since it is about to be deleted");
    Ok(resumed)
}

impl Executor {
    /// As [`resumed`], where a plugin made the object: what others made it may have no right to
    /// change.
    pub(super) async fn resumed(
        &self,
        active: &Active,
        deed: &Deed<'_>,
    ) -> Result<Object, Problem> {
        let live = deed.object;
        if live.label(PLUGIN_LABEL) != Some(plugin_label(&deed.unit.plugin).as_str()) {
            return Ok(live.clone());
        }
        let resumed = resumed(&self.cluster, &active.identity, live.clone()).await;
        resumed.map_err(|error| {
            let mark = Mark::written(Some(live));
            self.lost.note(live.resource(), &error, mark);
            write_problem(&live.reference(), &error)
        })
    }
}
