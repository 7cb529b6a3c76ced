//! Looking up the tags of artifacts now and then.

use super::{Controller, Done, JobFor, jitter};
use crate::artifacts::{Looked, Seen, pause};
use crate::plugin::PluginState;
use crate::problem::Problem;
use reeve_api::{ArtifactSource, ArtifactStatus};
use std::sync::Arc;
use tokio::time::Instant;

/// The artifact that a plugin is, if it is one.
#[derive(Debug, Default)]
pub(crate) struct Tag {
    /// What was pulled last.
    pub(crate) pulled: Option<ArtifactStatus>,
    /// Why it is not known whether that is the newest.
    pub(crate) stale: Option<Problem>,
    /// When it is looked up again; none while it is, or when it is not.
    at: Option<Instant>,
    failures: u32,
}

impl Tag {
    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }

    /// Looks no more, until something is loaded again.
    pub(super) fn rest(&mut self) {
        self.at = None;
    }
}

impl PluginState {
    /// Whether there is something to load: a ConfigMap, or an artifact that the policy
    /// names.
    pub(crate) fn is_installed(&self) -> bool {
        self.config_map.is_some() || self.artifact().is_some()
    }

    /// The artifact that the policy names.
    pub(crate) fn artifact(&self) -> Option<&ArtifactSource> {
        let (spec, _) = self.policy.as_ref()?;
        spec.artifact.as_ref()
    }

    /// Takes in what a load has seen of the artifact, if it is one.
    pub(super) fn saw(&mut self, seen: Option<Seen>) {
        let Some(seen) = seen.filter(|_| self.artifact().is_some()) else {
            self.tag = Tag::default();
            return;
        };
        self.tag.pulled = seen.status.or(self.tag.pulled.take());
        self.stale(seen.stale);
    }

    /// Notes whether the registry tells, and when it is asked again.
    fn stale(&mut self, problem: Option<Problem>) {
        self.tag.failures = match &problem {
            Some(_) => self.tag.failures.saturating_add(1),
            None => 0,
        };
        self.tag.stale = problem;
        let failures = self.tag.failures;
        // All at once would be a load for a registry that many plugins are in.
        let jitter = jitter(&self.name, failures);
        let pause = self
            .artifact()
            .and_then(|source| pause(source, failures, jitter));
        self.tag.at = pause.map(|pause| Instant::now() + pause + pause.mul_f64(jitter / 10.0));
    }
}

impl Controller {
    /// Looks up what is due.
    pub(super) fn start_looks(&mut self, now: Instant) {
        let due = self.state.plugins.values_mut();
        let due = due.filter(|plugin| plugin.tag.at.is_some_and(|at| at <= now));
        let mut looks = Vec::new();
        for plugin in due {
            plugin.tag.rest();
            // A load asks, too.
            if plugin.loading.is_none()
                && let Some(source) = plugin.artifact()
            {
                looks.push((plugin.name.clone(), source.clone()));
            }
        }
        for (plugin, source) in looks {
            let (artifacts, name) = (self.loader.artifacts.clone(), plugin.clone());
            let turns = self.loader.turns.clone();
            let handle = self.state.jobs.spawn(async move {
                let looked = artifacts.look(&name, &source, &turns).await;
                let plugin = name;
                Done::Look { plugin, looked }
            });
            self.state.job_ids.insert(handle.id(), JobFor::Look(plugin));
            self.state.loads += 1;
        }
    }

    pub(super) fn on_looked(&mut self, name: &Arc<str>, looked: Looked) {
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        // What was asked for meanwhile says better.
        if plugin.loading.is_some() || plugin.artifact().is_none() {
            return;
        }
        match looked {
            Looked::Same => plugin.stale(None),
            Looked::Other => {
                tracing::info!(plugin = %name, "the tag of the artifact names another");
                return self.start_load(name);
            }
            Looked::Unknown(problem) => {
                tracing::warn!(plugin = %name, reason = %problem.reason, message = problem.message, "tag not looked up");
                plugin.stale(Some(problem));
            }
        }
        self.mark_stale(name);
    }
}
