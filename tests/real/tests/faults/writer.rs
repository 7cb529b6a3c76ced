//! Somebody who writes.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Api, Patch, PatchParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use reeve_real::ControlPlane;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Somebody who changes an object without end.
pub(crate) struct Writer {
    written: watch::Receiver<u64>,
    _runtime: Runtime,
}

impl Writer {
    /// Between two writes: more often than anybody could answer each.
    const PAUSE: Duration = Duration::from_millis(20);

    /// Merges what `patch` makes of a number that rises into the quota of a Profile.
    pub(crate) fn on_quota(
        cluster: &ControlPlane,
        profile: &str,
        patch: fn(u64) -> serde_json::Value,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let read = Kubeconfig::read_from(cluster.kubeconfig())?;
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(read, &options).await?;
            anyhow::Ok(kube::Client::try_from(config)?)
        })?;
        let quotas: Api<ResourceQuota> = Api::namespaced(client, profile);
        let (sender, written) = watch::channel(0);
        runtime.spawn(async move {
            for number in 1u64.. {
                let patch = Patch::Merge(patch(number));
                // Of those that are refused there is nothing to count.
                if quotas
                    .patch("quotas", &PatchParams::default(), &patch)
                    .await
                    .is_ok()
                {
                    sender.send_replace(number);
                }
                tokio::time::sleep(Self::PAUSE).await;
            }
        });
        Ok(Self {
            written,
            _runtime: runtime,
        })
    }

    /// Waits until it has written so often.
    pub(crate) fn wait_for(&self, writes: u64) -> Result<()> {
        reeve_real::eventually("somebody writes without end", || {
            let written = *self.written.borrow();
            (written >= writes)
                .then_some(())
                .context("it does not write")
        })
    }
}
