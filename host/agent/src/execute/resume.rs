//! Resuming what would otherwise leave behind what its controller has made.

use super::{Executor, Mark, write_problem};
use crate::active::Active;
use crate::journal::Deed;
use crate::problem::Problem;
use reeve_cluster::{Cluster, Delete, Identity, Object, Resume, WriteError};
use reeve_core::ownership::{PLUGIN_LABEL, plugin_label};
use reeve_core::plan::leaves_behind;

/// Field manager of resuming: what is resumed is no part of what a plugin applies.
const MANAGER: &str = "reeve-resume";

/// The request by which an object is to be deleted, once what
/// [leaves something behind](leaves_behind) was resumed: its controller looks at that when it is
/// deleted.
///
/// Nothing is resumed that could not be deleted. Whose controller hears that it goes on may
/// write its status before it is deleted, so that goes by its uid.
pub(crate) async fn resumed<'a>(
    cluster: &Cluster,
    identity: &Identity,
    live: &Object,
    request: Delete<'a>,
) -> Result<Delete<'a>, WriteError> {
    if !leaves_behind(live.kind(), || live.value()) {
        return Ok(request);
    }
    cluster
        .delete(Delete {
            dry_run: true,
            ..request
        })
        .await?;
    let resume = Resume {
        live,
        manager: MANAGER,
        identity: Some(identity),
    };
    cluster.resume(resume).await?;
    tracing::info!(object = %live.reference(), "resumed, since it is about to be deleted");
    Ok(Delete {
        resource_version: None,
        ..request
    })
}

impl Executor {
    /// As [`resumed`], where a plugin made the object: what others made it may have no right to
    /// change.
    pub(super) async fn resumed<'a>(
        &self,
        active: &Active,
        deed: &Deed<'_>,
        request: Delete<'a>,
    ) -> Result<Delete<'a>, Problem> {
        let live = deed.object;
        if live.label(PLUGIN_LABEL) != Some(plugin_label(&deed.unit.plugin).as_str()) {
            return Ok(request);
        }
        let resumed = resumed(&self.cluster, &active.identity, live, request).await;
        resumed.map_err(|error| {
            let mark = Mark::written(Some(live));
            self.lost.note(live.resource(), &error, mark);
            write_problem(&live.reference(), &error)
        })
    }
}
