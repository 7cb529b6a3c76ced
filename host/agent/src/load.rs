//! From a package to a plugin that may run: one gate after another.
//!
//! Each gate either passes or gives a [`Problem`]; whatever ran before goes on
//! running until all of them have passed.

mod answers;
mod checks;
mod rights;
mod turns;

pub(crate) use rights::grant_command;
pub(crate) use turns::{Purpose, Turn, Turns, holding};

use crate::active::{Active, LoadKey, WatchPlan, Watches};
use crate::approval::{Approval, check_not_here};
use crate::artifacts::Artifacts;
use crate::bounds::LimitBounds;
use crate::calls::{GuestThreads, PluginThreads};
use crate::config_schema;
use crate::effects::Room;
use crate::findings::Findings;
use crate::granted::Granted;
use crate::left::{Left, Place};
use crate::policy;
use crate::problem::{Problem, chain};
use crate::secret_names::{self, Remembered};
use crate::secrets::Secrets;
use crate::signed::Signers;
use crate::sources::Sources;
use crate::unserved::Unserved;
use crate::version::Artifact;
use answers::{
    call_describe, call_metadata, check_manifest, config_schema_problem, load_problem,
    manifest_problem,
};
use bytes::Bytes;
use checks::{check_outside, check_scopes};
use futures::future::{Either, select};
use reeve_api::{PluginSpec, Reason};
use reeve_cluster::{
    AccessCheck, Cluster, ExpandError, Identity, Resource, Store, WatchHandle, WatchScope,
    WatchState,
};
use reeve_core::manifest::is_dns_subdomain;
use reeve_core::ownership::field_manager;
use reeve_core::plan::Schemas;
use reeve_core::printable::printable;
use reeve_core::prune;
use reeve_core::{Digest, GroupVersionKind, Manifest, Metadata};
use reeve_engine::{Component, Engine, Limits};
use reeve_outside::signature::VerifyingKey;
use rights::Asks;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// What loading needs of the agent.
#[derive(Clone)]
pub(crate) struct Loader {
    /// Whose turn it is.
    pub(crate) turns: Turns,
    pub(crate) engine: Engine,
    pub(crate) cluster: Cluster,
    pub(crate) store: Store,
    /// Namespace of the agent and of the ServiceAccounts of plugins.
    pub(crate) namespace: Arc<str>,
    /// What plugins may have.
    pub(crate) bounds: LimitBounds,
    /// Where they run.
    pub(crate) threads: GuestThreads,
    /// What was found out of components before.
    pub(crate) findings: Option<Findings>,
    /// Where they run while they wait for the outside.
    pub(crate) effect_threads: GuestThreads,
    /// How many of their runs may be outside.
    pub(crate) outside: Arc<Room>,
    /// Secrets of what they reach outside.
    pub(crate) secrets: Secrets,
    /// Their outside documents.
    pub(crate) sources: Sources,
    /// Whether the Secrets that they own are read as their accounts; else as whoever asks.
    pub(crate) impersonates: bool,
    /// Artifacts that they are.
    pub(crate) artifacts: Artifacts,
    /// Whose signatures the agent demands.
    pub(crate) signers: Signers,
}

/// How a version stands in the cluster: what is asked again while it runs.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Rules that are not granted everywhere, but may be where they are needed.
    pub(crate) ungranted: Vec<String>,
    /// The command that grants all that is asked for.
    pub(crate) grant_command: String,
    /// Why nothing can be written for it at all.
    pub(crate) powerless: Option<String>,
    /// Whether primaries can be made to wait for the end of their units.
    pub(crate) may_hold: bool,
    /// Whether a kind that it works with is defined otherwise than when it was loaded.
    pub(crate) outdated: bool,
    /// What earlier versions left where this one does not look.
    pub(crate) left: Vec<Left>,
}

/// A version that has passed every gate but those of its rights.
pub(crate) struct Prepared {
    key: LoadKey,
    component: Component,
    signers: Arc<[VerifyingKey]>,
    metadata: Metadata,
    manifest: Manifest,
    config: Bytes,
    limits: Limits,
    withdrawals: prune::Policy,
    contributes: BTreeSet<String>,
    policy: reeve_core::plan::Policy,
    threads: PluginThreads,
    granted: Granted,
    identity: Identity,
    resources: HashMap<GroupVersionKind, Resource>,
    unserved: Unserved,
    /// Name of the ServiceAccount as which it is to write.
    pub(crate) account: String,
}

impl Prepared {
    fn asks(&self) -> Asks<'_> {
        Asks {
            identity: &self.identity,
            manifest: &self.manifest,
            resources: &self.resources,
        }
    }
}

/// What a prepared version sees of the cluster.
struct Opened {
    watches: Watches,
    schemas: Arc<Schemas>,
    /// See [`Active::schema_versions`].
    schema_versions: BTreeMap<String, String>,
}

/// Name of the ServiceAccount as which a plugin writes.
fn account_of(plugin: &str, policy: &PluginSpec) -> Result<String, Problem> {
    let Some(named) = policy.service_account_name.as_deref() else {
        return Ok(plugin.to_owned());
    };
    // It becomes a part of a user's name: nothing in it may be taken for another part.
    match is_dns_subdomain(named) {
        true => Ok(named.to_owned()),
        false => Err(Problem::lasting(
            Reason::PolicyInvalid,
            printable(format!(
                "Plugin spec.serviceAccountName: `{named}` is no name of a ServiceAccount; name \
                 one of the agent's namespace, in lower-case letters, digits, `-` and `.`"
            )),
        )),
    }
}

/// Does both at once. Where the first fails nobody waits for the second, and what is
/// wrong with the first is told, whichever of them ends first.
async fn and_meanwhile<A, B, E>(
    first: impl Future<Output = Result<A, E>>,
    second: impl Future<Output = B>,
) -> Result<(A, B), E> {
    match select(pin!(first), pin!(second)).await {
        Either::Left((first, second)) => Ok((first?, second.await)),
        Either::Right((second, first)) => Ok((first.await?, second)),
    }
}

/// The digest that makes two loads one.
pub(crate) fn key(
    artifact: &Artifact,
    policy: &PluginSpec,
    contributes: &BTreeSet<String>,
) -> LoadKey {
    // What does not concern loading must not cause a load.
    let policy = PluginSpec {
        suspend: false,
        mode: None,
        digest: None,
        artifact: None,
        signatures: None,
        deletion_policy: None,
        upgrade: None,
        ..policy.clone()
    };
    // Serialising our own type cannot fail; an empty text would only mean one
    // reload less.
    let policy = serde_json::to_vec(&policy).unwrap_or_default();
    LoadKey {
        component: artifact.digest(),
        settings: Digest::of_parts(
            [&artifact.config()[..], &policy[..]]
                .into_iter()
                .chain(contributes.iter().map(String::as_bytes)),
        ),
    }
}

impl Loader {
    /// Takes an artifact through all gates but those of an upgrade. `places` are where the plugin may have
    /// objects already.
    pub(crate) async fn load(
        &self,
        plugin: &str,
        artifact: Artifact,
        policy: &PluginSpec,
        approval: &Approval,
        places: &BTreeSet<Place>,
        contributes: &BTreeSet<String>,
    ) -> Result<(Active, Standing), Problem> {
        let (artifact, signers) = self.signers.verify(plugin, artifact, policy).await?;
        let account = account_of(plugin, policy)?;
        let version = artifact.version();
        let (mut prepared, consent) = and_meanwhile(
            Box::pin(self.prepare(plugin, artifact, policy, contributes)),
            Box::pin(self.check_consent(plugin, &account)),
        )
        .await?;
        prepared.signers = signers;
        let asks = reeve_core::Asks::of(&prepared.manifest);
        approval.check(plugin, &self.namespace, version, &asks)?;
        consent?;
        // Each takes a round trip or more, and none hangs on another.
        let standing = async {
            tokio::try_join!(
                self.powerless(plugin, &prepared.account),
                self.may_hold(prepared.asks()),
            )
        };
        let meanwhile = async { tokio::try_join!(self.watched(plugin, &prepared), standing) };
        let grants = Box::pin(self.check_grants(plugin, &prepared));
        let (ungranted, opened) = and_meanwhile(grants, Box::pin(meanwhile)).await?;
        let (opened, (powerless, may_hold)) = opened?;
        let active = self.activate(plugin, prepared, opened);
        let standing = Standing {
            ungranted,
            grant_command: self.grant_command(plugin),
            powerless,
            may_hold,
            outdated: false,
            left: self.left(plugin, &active, places).await,
        };
        Ok((active, standing))
    }

    /// Takes an artifact through the gates that only the component itself can fail,
    /// and those that the kinds which the cluster serves can.
    pub(crate) async fn prepare(
        &self,
        plugin: &str,
        artifact: Artifact,
        policy: &PluginSpec,
        contributes: &BTreeSet<String>,
    ) -> Result<Prepared, Problem> {
        let key = key(&artifact, policy, contributes);
        let config = artifact.config().clone();
        let usual = self.engine.compile_limits();
        let allowed = self.bounds.limits(policy.limits.as_ref(), usual)?;
        let (limits, withdrawals) = (allowed.call, allowed.deletion);
        let threads = self.threads.of_plugin();
        let apply_policy = policy::read(policy)?;
        let granted = Granted::read(policy.capabilities.as_ref(), &self.secrets)?;
        let component = match artifact {
            Artifact::Delivered(package) => {
                match self.engine.loaded(package.digest, &allowed.compile) {
                    Some(component) => component,
                    None => self
                        .engine
                        .load_within(package.component, allowed.compile)
                        .await
                        .map_err(|error| load_problem(&package.place, &error))?,
                }
            }
            Artifact::Compiled { component, .. } => component,
        };
        let metadata = call_metadata(&component, &limits, &threads).await?;
        self.check_config(&metadata, &config).await?;
        let mut raw = call_describe(&component, &config, &limits, &threads).await?;
        if self.bounds.allows_wildcards() {
            let expanded = self.cluster.expand(&mut raw).await;
            expanded.map_err(|error| match error {
                ExpandError::Manifest(error) => manifest_problem(&error),
                ExpandError::Resolve(error) => crate::unserved::problem(&error),
            })?;
        }
        let manifest = check_manifest(raw)?;
        check_outside(&component, &manifest)?;
        let (resources, unserved) = Unserved::resolve(&self.cluster, &manifest).await?;
        check_scopes(&manifest, &resources)?;
        check_not_here(&manifest, &self.namespace)?;
        let account = account_of(plugin, policy)?;
        Ok(Prepared {
            identity: Identity::service_account(&self.namespace, &account),
            key,
            signers: Arc::default(),
            component,
            metadata,
            manifest,
            config,
            limits,
            withdrawals,
            contributes: contributes.clone(),
            policy: apply_policy,
            threads,
            granted,
            resources,
            unserved,
            account,
        })
    }

    /// Holds the configuration against what the component says of it.
    async fn check_config(&self, metadata: &Metadata, config: &Bytes) -> Result<(), Problem> {
        let schema = &metadata.config_schema;
        let findings = self.findings.as_ref();
        if findings.is_some_and(|findings| findings.fits(schema, config)) {
            return Ok(());
        }
        let checked =
            config_schema::check_apart(&self.threads, schema.clone(), config.clone()).await;
        checked.map_err(|error| config_schema_problem(&error))?;
        if let Some(findings) = findings {
            findings.keep_fitting(schema.clone(), config.clone());
        }
        Ok(())
    }

    /// Opens the watches of a prepared version, and waits until they have seen
    /// everything.
    pub(crate) async fn open(&self, plugin: &str, prepared: Prepared) -> Result<Active, Problem> {
        let opened = self.watched(plugin, &prepared).await?;
        Ok(self.activate(plugin, prepared, opened))
    }

    async fn watched(&self, plugin: &str, prepared: &Prepared) -> Result<Opened, Problem> {
        let watches = self.watch(
            plugin,
            &prepared.manifest,
            &prepared.resources,
            &prepared.contributes,
            self.impersonates.then_some(&prepared.identity),
        );
        let schemas = async {
            // First, so that a change while they are read is seen as one.
            let versions = self.schema_versions(&prepared.manifest).await;
            Ok((versions, self.schemas(&prepared.manifest).await))
        };
        let (watches, (schema_versions, schemas)) = tokio::try_join!(watches, schemas)?;
        Ok(Opened {
            watches,
            schemas: Arc::new(schemas),
            schema_versions: schema_versions.unwrap_or_default(),
        })
    }

    fn activate(&self, plugin: &str, prepared: Prepared, opened: Opened) -> Active {
        let plugin: Arc<str> = plugin.into();
        let granted = Arc::new(prepared.granted);
        let sources = self.sources.open(&plugin, &prepared.manifest, &granted);
        Active {
            outside: self.outside.of_plugin(),
            effect_threads: self.effect_threads.of_plugin(),
            granted,
            sources,
            plugin: plugin.clone(),
            field_manager: field_manager(&plugin),
            key: prepared.key,
            component: prepared.component,
            signers: prepared.signers,
            metadata: prepared.metadata,
            manifest: prepared.manifest,
            config: prepared.config,
            limits: prepared.limits,
            withdrawals: prepared.withdrawals,
            contributes: prepared.contributes,
            threads: prepared.threads,
            policy: prepared.policy,
            schemas: opened.schemas,
            schema_versions: opened.schema_versions,
            identity: prepared.identity,
            resources: prepared.resources,
            unserved: prepared.unserved,
            watches: opened.watches,
            account: prepared.account,
        }
    }

    /// Asks again whether what runs may still do so: whether its account agrees,
    /// and what it is granted. And whether what was left is still there.
    pub(crate) async fn recheck(
        &self,
        plugin: &str,
        active: &Active,
        places: &BTreeSet<Place>,
    ) -> Result<Standing, Problem> {
        self.check_account(plugin, &active.account).await?;
        let asks = Asks {
            identity: &active.identity,
            manifest: &active.manifest,
            resources: &active.resources,
        };
        let ungranted = self.check_rules(plugin, asks).await?;
        Ok(Standing {
            ungranted,
            grant_command: self.grant_command(plugin),
            powerless: self.powerless(plugin, &active.account).await?,
            may_hold: self.may_hold(asks).await?,
            outdated: active.unserved.has_come(&self.cluster).await
                || self.has_other_schemas(active).await,
            left: self.left(plugin, active, places).await,
        })
    }

    /// Which schemas the custom kinds that a plugin writes have now; none where the API
    /// server does not say.
    async fn schema_versions(&self, manifest: &Manifest) -> Option<BTreeMap<String, String>> {
        let known = Schemas::default();
        let kinds = manifest.writes.iter().map(|write| &write.kind);
        let custom: BTreeSet<_> = kinds.filter(|kind| known.lacks(kind)).cloned().collect();
        match self.cluster.schema_versions(&custom).await {
            Ok(versions) => Some(versions),
            Err(error) => {
                tracing::debug!(error = chain(&error), "versions of schemas not known");
                None
            }
        }
    }

    /// Whether a definition has changed since a version was loaded.
    async fn has_other_schemas(&self, active: &Active) -> bool {
        let now = self.schema_versions(&active.manifest).await;
        now.is_some_and(|now| now != active.schema_versions)
    }

    /// Whether the plugin's account may put a finalizer on any primary. Not to be told
    /// is neither yes nor no: who took it for no would let primaries go that wait for
    /// their units.
    async fn may_hold(&self, asks: Asks<'_>) -> Result<bool, Problem> {
        let Some(resource) = asks.resources.get(&asks.manifest.primary().kind) else {
            return Ok(false);
        };
        let check = AccessCheck {
            verb: "patch",
            resource,
            subresource: None,
            namespace: None,
            name: None,
        };
        let allowed = self.cluster.allowed(asks.identity, check).await;
        allowed.map_err(|error| Problem::passing(Reason::Unreachable, chain(&error)))
    }

    /// Asks whether a prepared version is granted what it asks for.
    pub(crate) async fn check_grants(
        &self,
        plugin: &str,
        prepared: &Prepared,
    ) -> Result<Vec<String>, Problem> {
        self.check_rules(plugin, prepared.asks()).await
    }

    /// What the custom resources that a plugin writes look like. Without that they
    /// are compared as far as can be seen from themselves.
    async fn schemas(&self, manifest: &Manifest) -> Schemas {
        let mut schemas = Schemas::default();
        for write in &manifest.writes {
            let kind = &write.kind;
            if !schemas.lacks(kind) {
                continue;
            }
            let added = match self.cluster.schema(kind).await {
                Ok(Some(schema)) => schemas
                    .add(kind.clone(), &schema)
                    .map_err(|error| chain(&error)),
                Ok(None) => continue,
                Err(error) => Err(chain(&error)),
            };
            if let Err(error) = added {
                tracing::debug!(%kind, error, "schema not known");
            }
        }
        schemas
    }

    async fn watch(
        &self,
        plugin: &str,
        manifest: &Manifest,
        resources: &HashMap<GroupVersionKind, Resource>,
        contributes: &BTreeSet<String>,
        reader: Option<&Identity>,
    ) -> Result<Watches, Problem> {
        let plan = WatchPlan::of(plugin, manifest, resources, contributes, reader);
        let Some(plan) = plan else {
            return Err(Problem::passing(
                Reason::KindNotServed,
                "a kind of the manifest has gone while the plugin was loaded",
            ));
        };
        let open = |spec: &reeve_cluster::WatchSpec| self.store.watch(spec.clone());
        let own = |spec: &reeve_cluster::WatchSpec| match &spec.scope {
            WatchScope::Named { .. } => {
                let remembered = secret_names::of_plugin(&self.store, &self.namespace, plugin);
                let names = remembered.iter().map(Remembered::held);
                self.store.watch_names(spec.clone(), names)
            }
            _ => open(spec),
        };
        let watches = Watches {
            primary: open(&plan.primary),
            reads: plan
                .reads
                .iter()
                .map(|specs| specs.iter().map(open).collect())
                .collect(),
            owned: plan.owned.iter().map(own).collect(),
            contributed: plan.contributed.iter().map(open).collect(),
            classes: plan.classes.as_ref().map(open),
        };
        for (handle, spec) in watches.all().zip(plan.all()) {
            let synced = self.synced(handle, &spec.resource).await;
            synced.map_err(|mut problem| {
                if problem.reason == Reason::Forbidden {
                    let command = self.grant_command(plugin);
                    problem.message = format!("{}; grant it with {command}", problem.message);
                }
                problem
            })?;
        }
        Ok(watches)
    }

    /// Waits until all objects of a watch have been seen.
    pub(crate) async fn synced(
        &self,
        handle: &WatchHandle,
        resource: &Resource,
    ) -> Result<(), Problem> {
        /// A list of 100,000 objects takes some ten seconds; a server that needs
        /// longer is met again by the next attempt, which continues where it is.
        const PATIENCE: Duration = Duration::from_secs(60);
        let settled = async {
            let mut states = handle.states();
            loop {
                let state = states.borrow_and_update().clone();
                match state {
                    WatchState::Synced => return Ok(()),
                    WatchState::Forbidden { message } => {
                        return Err(Problem::passing(
                            Reason::Forbidden,
                            format!("the agent may not list and watch {resource}: {message}"),
                        ));
                    }
                    WatchState::NotServed => {
                        self.cluster.forget(&resource.kind);
                        return Err(Problem::passing(
                            Reason::KindNotServed,
                            format!("the cluster does not serve {}", resource.kind),
                        ));
                    }
                    WatchState::Syncing | WatchState::Failing { .. } => {}
                }
                if states.changed().await.is_err() {
                    return Err(Problem::passing(Reason::Syncing, "the watch was given up"));
                }
            }
        };
        tokio::time::timeout(PATIENCE, settled)
            .await
            .unwrap_or_else(|_| {
                Err(Problem::passing(
                    Reason::Syncing,
                    format!("the list of {resource} is not complete yet"),
                ))
            })
    }
}
