//! Writing `Plugin` objects.

use super::{FIELD_MANAGER, Reporter, body};
use reeve_api::{PluginSpec, PluginStatus};
use reeve_cluster::{Create, WriteError};
use serde_json::json;

impl Reporter {
    /// Writes how a plugin is, into its `Plugin`, which is made where there is none.
    pub(super) async fn write_plugin(
        &self,
        name: &str,
        status: &PluginStatus,
    ) -> Result<(), WriteError> {
        // Once it is seen, it is reported with its generation, which was written then.
        let made = self.reports.0.pending.lock().made.remove(name);
        if made.as_ref() == Some(status) {
            return Ok(());
        }
        // One that nobody has seen is most likely not there.
        let is_seen = status.observed_generation.is_some();
        if is_seen {
            match self.write_plugin_status(name, status).await {
                Err(WriteError::Absent { .. }) => {}
                written => return written,
            }
        }
        let plugin = body(&self.plugins, name, "spec", &json!(PluginSpec::default()));
        let create = Create {
            resource: &self.plugins,
            namespace: Some(&self.namespace),
            name,
            body: &plugin,
            manager: FIELD_MANAGER,
            identity: None,
        };
        let generation = match self.cluster.create(create).await {
            Ok(created) => created.generation(),
            // Somebody else has made it.
            Err(WriteError::Precondition { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut status = status.clone();
        if generation.is_some() {
            status.observe(generation);
        }
        self.write_plugin_status(name, &status).await?;
        let mut pending = self.reports.0.pending.lock();
        if generation.is_some() && !pending.muted {
            pending.made.insert(name.to_owned(), status);
        }
        Ok(())
    }

    async fn write_plugin_status(
        &self,
        name: &str,
        status: &PluginStatus,
    ) -> Result<(), WriteError> {
        let status = body(&self.plugins, name, "status", &json!(status));
        let apply = self.apply(&self.plugins, name, &status);
        self.cluster.apply_status(apply).await.map(drop)
    }
}
