//! What a plugin leaves when it is removed: its objects, and primaries that wait for
//! it.

use super::reporting::is_unit_object_of;
use super::{Controller, Done, JobFor, jitter};
use crate::plugin::PluginState;
use crate::problem::Problem;
use crate::removal::{Removed, Remover};
use crate::secret_names::{self, Remembered};
use crate::written::has_effects;
use reeve_api::{DeletionPolicy, PLUGIN_CONFIG_MAP_LABEL, Reason, SyncMode};
use reeve_cluster::Identity;
use reeve_core::GroupVersionKind;
use reeve_core::backoff::Backoff;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Nothing is removed sooner than this after the ConfigMap has gone: `kubectl replace
/// --force` and some tools delete it to make it anew.
const GRACE: Duration = Duration::from_secs(30);

/// Objects that are going are looked at again this often.
const PACE: Duration = Duration::from_secs(2);

/// The removal of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Removing {
    /// When to go on; none while it goes on, and when it is done.
    pub(super) at: Option<Instant>,
    job: Option<AbortHandle>,
    failures: u32,
    /// Whether primaries waited for its units when it stopped.
    holding: bool,
    /// The last that is known.
    removed: Removed,
    problem: Option<String>,
}

impl Removing {
    /// Whether it has not come to an end for which primaries wait.
    fn is_awaited(&self) -> bool {
        self.holding && (self.at.is_some() || self.job.is_some())
    }

    /// Ends it, since the plugin is there again.
    fn end(self) {
        if let Some(job) = self.job {
            job.abort();
        }
    }
}

impl PluginState {
    fn deletion_policy(&self) -> DeletionPolicy {
        let policy = self.policy.as_ref();
        let said = policy.and_then(|(spec, _)| spec.deletion_policy);
        said.unwrap_or_default()
    }

    /// Ends a removal.
    pub(super) fn is_installed_again(&mut self) {
        if let Some(removing) = self.removing.take() {
            removing.end();
        }
    }

    /// What keeps it from running, when its ConfigMap is gone.
    pub(super) fn without_config_map(&self) -> Problem {
        let name = &self.name;
        let policy = self.deletion_policy();
        let what = match &self.removing {
            Some(removing) => match &removing.problem {
                Some(problem) => format!(
                    "{}; that does not go on: {problem}",
                    removing.removed.describe(policy)
                ),
                None if removing.at.is_some() && removing.removed == Removed::default() => {
                    "its objects stay for now".to_owned()
                }
                None => removing.removed.describe(policy),
            },
            None => "its objects stay".to_owned(),
        };
        let forget = match &self.removing {
            Some(removing) if removing.is_awaited() => {
                format!(
                    ". Primaries wait for it, and are let go when that is done: until then do not \
                     delete this Plugin, or let them go yourself with `reeve release {name}`"
                )
            }
            _ => String::new(),
        };
        let effects = match self.effects_left {
            0 => String::new(),
            units => format!(
                "; the outside effects of {units} units stay too, since only the plugin can take \
                 them away, and their Unit objects say which"
            ),
        };
        Problem::lasting(
            Reason::ConfigMapAbsent,
            format!(
                "ConfigMap {name} does not exist or lacks the label {PLUGIN_CONFIG_MAP_LABEL}=true; the plugin does not run, and {what}{effects}. Create it to run the plugin, or name an artifact in spec.artifact, or delete this Plugin to forget it{forget}"
            ),
        )
    }
}

impl Controller {
    /// Plans what becomes of what a plugin has that was removed, unless that is under
    /// way already. `holding` says whether primaries waited for it.
    pub(super) fn remove_later(&mut self, name: &str, holding: bool) {
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let holding = holding || plugin.removing.as_ref().is_some_and(|one| one.holding);
        let deletes = plugin.deletion_policy() == DeletionPolicy::Delete;
        let forbidden = plugin.is_suspended() || plugin.mode() == SyncMode::PlanOnly;
        if forbidden || !(deletes || holding) {
            if plugin.removing.is_some() && !plugin.is_installed() {
                self.metrics.removed(name);
            }
            plugin.is_installed_again();
            return;
        }
        let removing = plugin.removing.get_or_insert_default();
        removing.holding = holding;
        // One that has come to its end may have more to do under another policy.
        if removing.at.is_none() && removing.job.is_none() {
            removing.at = Some(Instant::now() + GRACE);
        }
    }

    /// Goes on with the removals that are due.
    pub(super) fn start_removals(&mut self) {
        let now = Instant::now();
        if !self.may_run() {
            return;
        }
        let due = self.state.plugins.values().filter(|plugin| {
            let at = plugin.removing.as_ref().and_then(|one| one.at);
            !plugin.is_installed() && at.is_some_and(|at| at <= now)
        });
        let due: Vec<Arc<str>> = due.map(|plugin| plugin.name.clone()).collect();
        for name in due {
            self.start_removal(&name);
        }
    }

    fn start_removal(&mut self, name: &Arc<str>) {
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let account = plugin
            .policy
            .as_ref()
            .and_then(|(spec, _)| spec.service_account_name.as_deref());
        let contributes = plugin.contributions.kinds.iter();
        let remover = Remover {
            cluster: self.loader.cluster.clone(),
            journal: self.runner.executor.journal.clone(),
            metrics: self.runner.metrics.clone(),
            plugin: name.clone(),
            identity: Identity::service_account(&self.loader.namespace, account.unwrap_or(name)),
            policy: plugin.deletion_policy(),
            places: plugin.places.clone(),
            secrets: secret_names::of_plugin(&self.runner.store, &self.loader.namespace, name)
                .iter()
                .flat_map(Remembered::references)
                .collect(),
            contributes: contributes.filter_map(|kind| parse_kind(kind)).collect(),
            primary_kind: plugin.primary_kind.clone(),
        };
        let (loader, account) = (self.loader.clone(), account.unwrap_or(name).to_owned());
        let plugin_name = name.clone();
        let handle = self.state.jobs.spawn(async move {
            // Nobody acts as an account that does not agree, or no longer does.
            let agreed = loader.check_consent(&plugin_name, &account).await;
            let result = match agreed {
                Ok(()) => remover.advance().await,
                Err(problem) => Err(problem),
            };
            Done::Removal {
                plugin: plugin_name,
                result,
            }
        });
        self.state
            .job_ids
            .insert(handle.id(), JobFor::Removal(name.clone()));
        if let Some(removing) = &mut plugin.removing {
            removing.at = None;
            removing.job = Some(handle);
        }
        // What is written for it counts as long as it goes on.
        self.metrics.installed(name, self.runs_at_once(), None);
    }

    /// Takes in how far a removal is.
    pub(super) fn on_removed(&mut self, name: &Arc<str>, result: Result<Removed, Problem>) {
        let Some(plugin) = self.state.plugins.get_mut(name) else {
            return;
        };
        let Some(removing) = &mut plugin.removing else {
            return;
        };
        let (now, mut ended) = (Instant::now(), false);
        removing.job = None;
        match result {
            Ok(removed) => {
                removing.failures = 0;
                removing.problem = None;
                // What is kept may be permitted to go.
                removing.at = match (removed.left, removed.kept.is_empty()) {
                    (0, true) => None,
                    (0, false) => Some(now + Backoff::CONNECTION.cap),
                    _ => Some(now + PACE),
                };
                if removing.at.is_none() {
                    tracing::info!(plugin = %name, "what the plugin had is removed");
                    plugin.places.clear();
                    plugin.contributions.kinds.clear();
                    self.reports
                        .forget_names(|object| is_unit_object_of(name, object));
                }
                ended = removing.at.is_none();
                removing.removed = removed;
            }
            Err(problem) => {
                tracing::warn!(plugin = %name, reason = %problem.reason, message = problem.message, "what the plugin had is not removed");
                removing.failures = removing.failures.saturating_add(1);
                let jitter = jitter(name, removing.failures);
                removing.at = Some(now + Backoff::CONNECTION.delay(removing.failures, jitter));
                let message = problem.message;
                removing.problem = Some(match problem.reason {
                    Reason::Forbidden => format!(
                        "{message}. Grant that to the plugin's account and to the agent, or do it \
                         yourself: `reeve release {name}` lets primaries go"
                    ),
                    Reason::ServiceAccountUnusable => format!(
                        "{message}. Nothing is done as it before that, or do it yourself: \
                         `reeve release {name}` lets primaries go"
                    ),
                    _ => format!("{message}. It is tried again"),
                });
            }
        }
        plugin.problem = Some(plugin.without_config_map());
        if ended {
            self.metrics.removed(name);
            // No sync has hooks any more; what is outside is still there.
            if let Some(written) = self.written(name) {
                let keep = written.names(has_effects);
                self.drop_unit_objects(name, &keep.into_iter().collect());
            }
        }
        self.mark_stale(name);
    }
}

/// A kind as a status writes it: `Profile.v1.kubeflow.org`, `ConfigMap.v1`.
pub(crate) fn parse_kind(text: &str) -> Option<GroupVersionKind> {
    let mut parts = text.splitn(3, '.');
    let (kind, version) = (parts.next()?, parts.next()?);
    let group = parts.next().unwrap_or_default();
    Some(GroupVersionKind::new(group, version, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for kind in [
            GroupVersionKind::new("", "v1", "ConfigMap"),
            GroupVersionKind::new("kubeflow.org", "v1beta1", "Profile"),
        ] {
            assert_eq!(parse_kind(&kind.to_string()), Some(kind));
        }
        assert_eq!(parse_kind("Profile"), None);
    }
}
