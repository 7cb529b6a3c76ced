//! A plugin that is looked at: loaded, its watches synced, its units found.

use super::plan::to_reader;
use super::schemas::Schemas;
use super::{PlanError, Planner};
use crate::active::Active;
use crate::delivery::{self, Package};
use crate::needs::{Granting, needs};
use crate::plugin::PluginState;
use crate::policy_object::PolicyObject;
use crate::problem::Problem;
use crate::run::Runner;
use crate::version::{Artifact, VersionId};
use crate::written::Written;
use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use reeve_api::{
    APPROVE_DELETION_ANNOTATION, ArtifactSource, Plugin, PluginSpec, PluginStatus, Reason, SyncMode,
};
use reeve_cluster::{Answer, Object};
use reeve_core::ObjectReference;
use reeve_core::selector::Selector;
use std::sync::Arc;
use std::time::Duration;

/// A component that is not installed, or not yet.
#[derive(Clone, Debug)]
pub struct Given {
    /// Its bytes, as they are or compressed with zstd or gzip.
    pub component: Vec<u8>,
    /// Its configuration as YAML text; none takes that of the installed plugin of
    /// the same name, if there is one.
    pub config: Option<String>,
}

/// Outside documents that take longer than this are as good as absent.
const SOURCE_PATIENCE: Duration = Duration::from_secs(10);

/// A plugin whose units can be planned.
pub struct Opened<'a> {
    pub(super) runner: &'a Runner,
    pub(super) active: Arc<Active>,
    pub(super) state: PluginState,
    pub(super) schemas: Schemas,
    component: Bytes,
    warnings: Vec<String>,
}

/// That what is looked at is not what runs.
fn other_runs(status: &PluginStatus, newest: VersionId) -> Option<String> {
    // Without a digest nothing runs, whatever ran last.
    status.digest.as_ref()?;
    let running = VersionId::from_status(status.last_good.as_ref()?)?;
    let mut conditions = status.conditions.iter();
    let loaded = conditions.find(|one| one.type_ == "Loaded");
    (running != newest).then(|| {
        format!(
            "this is about the version that was delivered last, {}, which does not run for all \
             units ({}); what runs is {}",
            newest.beside(running),
            loaded
                .filter(|loaded| loaded.status != "True")
                .map_or("not taken up yet", |loaded| loaded.reason.as_str()),
            running.beside(newest),
        )
    })
}

impl Planner {
    /// Loads a plugin and finds its units.
    ///
    /// What the plugin may not do is a warning here and a plan is made all the same:
    /// whoever asks may want to know before granting it.
    ///
    /// # Errors
    ///
    /// When it is not installed, does not load, or what it works on cannot be seen.
    pub async fn open(&self, plugin: &str, given: Option<Given>) -> Result<Opened<'_>, PlanError> {
        let mut warnings = Vec::new();
        let failed = |problem: Problem| PlanError::NotLoaded {
            plugin: plugin.to_owned(),
            problem: problem.into(),
        };
        let installed = given.is_none();
        let package = self.package(plugin, given).await?;
        let component = package.component.clone();
        for watch in [&self.own.plugins, &self.own.units] {
            if let Err(problem) = self.seen(watch).await {
                warnings.push(format!(
                    "what the agent knows from before is not seen: {}",
                    to_reader(&problem.message)
                ));
            }
        }
        let snapshot = self.runner.store.snapshot();
        let namespace = &self.loader.namespace;
        let mut state = PluginState::new(plugin);
        let object = snapshot.get_in(self.own.plugins.spec(), Some(namespace), plugin);
        let object = object.found();
        let parsed = object.and_then(|one| serde_json::from_value::<Plugin>(one.value()).ok());
        if let Some(Plugin {
            metadata,
            spec,
            status,
        }) = parsed
        {
            let status = status.unwrap_or_default();
            warnings.extend(other_runs(&status, VersionId::of(&package)).filter(|_| installed));
            let kinds = status.contributes_to;
            state.contributions.record(kinds.into_iter().collect());
            let annotations = metadata.annotations.unwrap_or_default();
            let approvals = annotations.get(APPROVE_DELETION_ANNOTATION);
            state.approve(approvals.map(String::as_str), self.runner.clock.now());
            state.policy = Some((spec, metadata.generation));
        }
        let policy = state.policy.as_ref().map(|(spec, _)| spec.clone());
        let policy: PluginSpec = policy.unwrap_or_default();
        let prepared = self
            .loader
            .prepare(
                plugin,
                Artifact::Delivered(package),
                &policy,
                &state.contributions.recorded,
            )
            .await;
        let prepared = prepared.map_err(failed)?;
        let account = self.loader.check_account(plugin, &prepared.account).await;
        warnings.extend(account.err().map(|problem| to_reader(&problem.message)));
        match self.loader.check_grants(plugin, &prepared).await {
            Ok(unsure) if unsure.is_empty() => {}
            Ok(unsure) => warnings.push(format!(
                "not granted: {}; where its namespace does not grant it either, {} does",
                unsure.join("; "),
                self.loader.grant_command(plugin)
            )),
            Err(problem) => warnings.push(to_reader(&problem.message)),
        }
        let capabilities = policy.capabilities.clone().unwrap_or_default();
        let active = self.loader.open(plugin, prepared).await.map_err(failed)?;
        for need in needs(&active.manifest, &capabilities, namespace) {
            // Of a source, it is told besides what became of looking at it.
            if need.standing == Granting::Nothing && need.who.starts_with("action ") {
                warnings.push(format!(
                    "{}: to {} is not granted; `reeve plugin grant {plugin}` says what would \
                     grant it",
                    need.who, need.what
                ));
            }
        }
        let active = Arc::new(active);
        active.sources.looked_at(SOURCE_PATIENCE).await;
        warnings.extend(active.sources.problem().map(|(_, text)| text));
        let snapshot = self.runner.store.snapshot();
        let spec = active.watches.primary.spec();
        let primaries = snapshot.list_in(spec, None, &Selector::default());
        let Answer::Found(primaries) = primaries else {
            return Err(failed(Problem::passing(
                Reason::Syncing,
                "the watch of its primaries was lost; try again",
            )));
        };
        state.active = Some(active.clone());
        state.guard.lock().set_policy(active.withdrawals);
        state.take_stock(&active, &snapshot, &primaries);
        let written = Written::seen(plugin, &snapshot, self.own.units.spec());
        state.resume_syncs(&written.unwrap_or_default());
        Ok(Opened {
            runner: &self.runner,
            active,
            state,
            schemas: Schemas::default(),
            component,
            warnings,
        })
    }

    /// What is to be loaded: what is given, or else what the ConfigMap holds.
    async fn package(&self, plugin: &str, given: Option<Given>) -> Result<Package, PlanError> {
        let installed = match (self.plugins().await, &given) {
            (Ok(_), _) => {
                let spec = self.own.config_maps.spec();
                let namespace = Some(&*self.loader.namespace);
                let snapshot = self.runner.store.snapshot();
                snapshot.get_in(spec, namespace, plugin).found()
            }
            (Err(_), Some(_)) => None,
            (Err(error), None) => return Err(error),
        };
        let failed = |reason, message| PlanError::NotLoaded {
            plugin: plugin.to_owned(),
            problem: Problem::lasting(reason, message).into(),
        };
        let parse = |map: &Arc<Object>| {
            serde_json::from_str::<ConfigMap>(map.json()).map_err(|error| {
                let message = format!("ConfigMap {} cannot be read: {error}", map.name());
                failed(Reason::ComponentAbsent, message)
            })
        };
        let parsed = installed.as_ref().map(parse).transpose()?;
        if given.is_none()
            && let Some(source) = self.artifact(plugin).await
        {
            return self.pulled(plugin, &source, parsed).await;
        }
        let maps = match (given, parsed) {
            (None, Some(map)) => {
                let mut maps = vec![map];
                let others = self
                    .others(&maps[0])
                    .await
                    .map_err(|problem| failed(problem.reason, problem.message))?;
                for other in &others {
                    maps.push(parse(other)?);
                }
                maps
            }
            (None, None) => {
                let there = self.plugins().await?;
                return Err(PlanError::NotInstalled {
                    plugin: plugin.to_owned(),
                    namespace: self.loader.namespace.to_string(),
                    there: match there.as_slice() {
                        [] => "nothing is; give a file with --component, or name the agent's \
                               namespace with --namespace"
                            .to_owned(),
                        there => format!("there are {}", there.join(", ")),
                    },
                });
            }
            (Some(Given { component, config }), installed) => {
                let installed = installed.and_then(|mut map| map.data.take());
                vec![delivery::as_config_map(
                    plugin, component, config, installed,
                )]
            }
        };
        let name = plugin.to_owned();
        let unpacked = tokio::task::spawn_blocking(move || delivery::unpack(&name, &maps)).await;
        match unpacked {
            Ok(Ok(package)) => Ok(package),
            Ok(Err(error)) => Err(failed(error.reason(), error.to_string())),
            Err(error) => {
                let message = format!("unpacking failed: {error}");
                Err(failed(Reason::DecompressionFailed, message))
            }
        }
    }

    /// The artifact that the policy of a plugin names, if it can be seen.
    async fn artifact(&self, plugin: &str) -> Option<ArtifactSource> {
        self.seen(&self.own.plugins).await.ok()?;
        let namespace = Some(&*self.loader.namespace);
        let snapshot = self.runner.store.snapshot();
        let object = snapshot.get_in(self.own.plugins.spec(), namespace, plugin);
        PolicyObject::read(&*object.found()?).spec.ok()?.artifact
    }

    /// A plugin that is an artifact, with the configuration of its ConfigMap.
    async fn pulled(
        &self,
        plugin: &str,
        source: &ArtifactSource,
        map: Option<ConfigMap>,
    ) -> Result<Package, PlanError> {
        let failed = |problem: Problem| PlanError::NotLoaded {
            plugin: plugin.to_owned(),
            problem: problem.into(),
        };
        let config = delivery::unpack_config(plugin, map.as_slice());
        let config =
            config.map_err(|error| failed(Problem::lasting(error.reason(), error.to_string())))?;
        let plugin = plugin.into();
        let (artifacts, turns) = (&self.loader.artifacts, &self.loader.turns);
        let pulled = artifacts.pull(&plugin, source, false, turns);
        let (pulled, ..) = pulled.await.map_err(failed)?;
        Ok(pulled.package(config))
    }

    /// The ConfigMaps besides a plugin's own that its component may be in: parts,
    /// and the plugin whose component it runs.
    async fn others(&self, own: &ConfigMap) -> Result<Vec<Arc<Object>>, Problem> {
        self.seen(&self.own.parts).await?;
        let snapshot = self.runner.store.snapshot();
        let parts = snapshot.list_in(self.own.parts.spec(), None, &Selector::default());
        let mut others = parts.found().unwrap_or_default();
        if let Some(other) = delivery::component_of(own) {
            let namespace = Some(&*self.loader.namespace);
            let found = snapshot.get_in(self.own.config_maps.spec(), namespace, other);
            others.extend(found.found());
        }
        Ok(others)
    }
}

impl Opened<'_> {
    /// Name under which it is installed.
    pub fn plugin(&self) -> &str {
        &self.state.name
    }

    /// What it calls itself.
    pub fn component(&self) -> &str {
        &self.active.metadata.name
    }

    /// Its version, by its own account.
    pub fn version(&self) -> &str {
        &self.active.metadata.version
    }

    /// Digest of the component.
    pub fn digest(&self) -> String {
        self.active.component.digest().to_string()
    }

    /// The component, unpacked.
    pub fn component_bytes(&self) -> &[u8] {
        &self.component
    }

    /// Its field manager.
    pub fn field_manager(&self) -> &str {
        &self.active.field_manager
    }

    /// Kind of its primaries.
    pub fn primary_kind(&self) -> String {
        self.active.manifest.primary().kind.to_string()
    }

    /// Whether its policy pauses it: then nothing of a plan is done.
    pub fn is_suspended(&self) -> bool {
        self.state.is_suspended()
    }

    /// When what a plan says is done.
    pub fn mode(&self) -> SyncMode {
        self.state.mode()
    }

    /// What keeps the agent from doing what a plan says.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Primaries of all units, in order; also those that are gone and have left
    /// something.
    pub fn units(&self) -> Vec<ObjectReference> {
        let units = self.state.units.keys();
        let mut units: Vec<_> = units.map(|primary| (**primary).clone()).collect();
        units.sort();
        units
    }
}
