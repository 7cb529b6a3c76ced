//! A plugin that has passed every gate and may run.

use crate::calls::PluginThreads;
use crate::effects::PluginRoom;
use crate::granted::Granted;
use crate::problem::Problem;
use crate::sources::SourceSet;
use crate::unserved::Unserved;
use bytes::Bytes;
use reeve_api::Reason;
use reeve_cluster::{Identity, Resource, WatchHandle, WatchScope, WatchSpec, WatchState};
use reeve_core::manifest::{Scope, storage_class_kind};
use reeve_core::ownership::plugin_selector;
use reeve_core::plan::{Policy, Schemas};
use reeve_core::prune;
use reeve_core::selector::Selector;
use reeve_core::{
    Desired, DesiredError, Digest, GroupVersionKind, Manifest, Metadata, ObjectReference, Outcome,
};
use reeve_engine::{Component, Limits};
use reeve_outside::signature::VerifyingKey;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// One loaded version of a plugin under one configuration. Nothing in it changes;
/// another version, configuration or policy is another value.
#[derive(Debug)]
pub(crate) struct Active {
    /// Name of the plugin.
    pub(crate) plugin: Arc<str>,
    /// What it was loaded from.
    pub(crate) key: LoadKey,
    /// The compiled component.
    pub(crate) component: Component,
    /// The keys by which it was found to be signed.
    pub(crate) signers: Arc<[VerifyingKey]>,
    /// Who it says it is.
    pub(crate) metadata: Metadata,
    /// What it declared for this configuration.
    pub(crate) manifest: Manifest,
    /// The configuration.
    pub(crate) config: Bytes,
    /// Bounds of each call.
    pub(crate) limits: Limits,
    /// How much it may withdraw before a person is asked.
    pub(crate) withdrawals: prune::Policy,
    /// Kinds to whose objects it may contribute.
    pub(crate) contributes: BTreeSet<String>,
    /// What it may do to objects that are there already.
    pub(crate) policy: Policy,
    /// The threads on which it runs.
    pub(crate) threads: PluginThreads,
    /// As whom it writes.
    pub(crate) identity: Identity,
    /// Name of the ServiceAccount behind that.
    pub(crate) account: String,
    /// Name of its field manager.
    pub(crate) field_manager: String,
    /// The kinds of its manifest as the cluster serves them.
    pub(crate) resources: HashMap<GroupVersionKind, Resource>,
    /// Those that it does not serve yet.
    pub(crate) unserved: Unserved,
    /// What the custom resources among them look like, as far as that is known.
    pub(crate) schemas: Arc<Schemas>,
    /// Which schemas those are, as the API server names them.
    pub(crate) schema_versions: BTreeMap<String, String>,
    /// What it watches.
    pub(crate) watches: Watches,
    /// What it may reach outside.
    pub(crate) granted: Arc<Granted>,
    /// The threads on which those run: they wait, and must not keep others waiting.
    pub(crate) effect_threads: PluginThreads,
    /// Room for runs that wait for the outside.
    pub(crate) outside: PluginRoom,
    /// Its outside documents.
    pub(crate) sources: SourceSet,
}

/// What an [`Active`] was loaded from. Equal keys mean that there is nothing new
/// to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadKey {
    /// Digest of the component.
    pub(crate) component: Digest,
    /// Digest of configuration and policy.
    pub(crate) settings: Digest,
}

/// The watches of one plugin; they end with it.
#[derive(Debug)]
pub(crate) struct Watches {
    /// Its primaries.
    pub(crate) primary: WatchHandle,
    /// What it reads, by the position of the rule in the manifest.
    pub(crate) reads: Vec<Vec<WatchHandle>>,
    /// What it owns.
    pub(crate) owned: Vec<WatchHandle>,
    /// All objects of the kinds to which it contributes.
    pub(crate) contributed: Vec<WatchHandle>,
    /// StorageClasses, where it writes claims. It can do without: then each claim is
    /// waited for until it is bound.
    pub(crate) classes: Option<WatchHandle>,
}

impl Watches {
    /// All of them that it cannot do without.
    pub(crate) fn all(&self) -> impl Iterator<Item = &WatchHandle> {
        std::iter::once(&self.primary)
            .chain(self.reads.iter().flatten())
            .chain(&self.owned)
            .chain(&self.contributed)
    }
}

impl Active {
    /// Why it does not see all that it works on, if that is so.
    pub(crate) fn blind(&self) -> Option<Problem> {
        self.watches.all().find_map(|watch| {
            let resource = &watch.spec().resource;
            let (reason, why) = match watch.state() {
                WatchState::Synced | WatchState::Syncing => return None,
                WatchState::Forbidden { message } => (Reason::Forbidden, message.to_string()),
                WatchState::NotServed => (
                    Reason::KindNotServed,
                    "the api server no longer serves them; install the CRD again, and the plugin goes on by itself".to_owned(),
                ),
                WatchState::Failing { message, .. } => (Reason::Unreachable, message.to_string()),
            };
            Some(Problem::passing(
                reason,
                format!(
                    "the agent cannot watch {resource}: {why}; what happens to them is not seen"
                ),
            ))
        })
    }

    /// The Secrets that it owns, if it writes any: nobody may watch them, so they are read
    /// by their names.
    pub(crate) fn secrets(&self) -> Option<&WatchHandle> {
        let mut owned = self.watches.owned.iter();
        owned.find(|watch| matches!(watch.spec().scope, WatchScope::Named { .. }))
    }

    /// As whom an object that it may own is read; none for the agent itself.
    pub(crate) fn reader(&self, kind: &GroupVersionKind) -> Option<&Identity> {
        let watch = self.secrets().filter(|_| kind.is_secret())?;
        match &watch.spec().scope {
            WatchScope::Named { identity } => identity.as_ref(),
            _ => None,
        }
    }

    /// The resource of a kind of the manifest.
    pub(crate) fn resource(&self, kind: &GroupVersionKind) -> Option<&Resource> {
        self.resources.get(kind)
    }

    /// Whether an object is in a namespace. Of a kind that is not served yet, the object
    /// itself says best.
    pub(crate) fn is_namespaced(&self, object: &ObjectReference) -> bool {
        match self.resource(&object.kind) {
            Some(resource) => resource.namespaced,
            None => object.namespace.is_some(),
        }
    }

    /// What a primary should have, by what the plugin says and may say.
    pub(crate) fn check(
        &self,
        outcome: Outcome,
        primary: &ObjectReference,
    ) -> Result<Desired, DesiredError> {
        let namespaced = |object: &ObjectReference| self.is_namespaced(object);
        Desired::check(outcome, &self.manifest, primary, namespaced)
    }
}

/// Which watches a manifest needs.
#[derive(Debug)]
pub(crate) struct WatchPlan {
    pub(crate) primary: WatchSpec,
    pub(crate) reads: Vec<Vec<WatchSpec>>,
    pub(crate) owned: Vec<WatchSpec>,
    pub(crate) contributed: Vec<WatchSpec>,
    pub(crate) classes: Option<WatchSpec>,
}

impl WatchPlan {
    /// The watches of a plugin; none where the primary's kind is not in `resources`.
    /// Another kind that is not there has no watch. Secrets that it owns are read as
    /// `reader`, or by the agent itself.
    pub(crate) fn of(
        plugin: &str,
        manifest: &Manifest,
        resources: &HashMap<GroupVersionKind, Resource>,
        contributes: &BTreeSet<String>,
        reader: Option<&Identity>,
    ) -> Option<Self> {
        let primary = manifest.primary();
        let selector = plugin_selector(plugin);
        let mut owned: Vec<WatchSpec> = Vec::new();
        let mut contributed: Vec<WatchSpec> = Vec::new();
        for write in &manifest.writes {
            let Some(resource) = resources.get(&write.kind) else {
                continue;
            };
            if write.kind.is_secret() {
                let spec = WatchSpec {
                    resource: resource.clone(),
                    scope: WatchScope::Named {
                        identity: reader.cloned(),
                    },
                    selector: selector.clone(),
                    without_payload: false,
                };
                if !owned.contains(&spec) {
                    owned.push(spec);
                }
                continue;
            }
            if contributes.contains(&write.kind.to_string()) {
                let everything = Selector::default();
                for spec in specs(resource, &write.scope, &[], &everything) {
                    if !contributed.contains(&spec) {
                        contributed.push(spec);
                    }
                }
            }
            for spec in specs(resource, &write.scope, &[], &selector) {
                if !owned.contains(&spec) {
                    owned.push(spec);
                }
            }
        }
        let mut reads = Vec::with_capacity(manifest.reads.len());
        for read in &manifest.reads {
            let specs = resources
                .get(&read.kind)
                .map(|resource| specs(resource, &read.scope, &read.names, &read.selector));
            reads.push(specs.unwrap_or_default());
        }
        Some(Self {
            primary: WatchSpec {
                resource: resources.get(&primary.kind)?.clone(),
                scope: WatchScope::All,
                selector: primary.selector.clone(),
                without_payload: false,
            },
            reads,
            owned,
            contributed,
            classes: manifest.writes_claims().then(storage_classes),
        })
    }

    /// All of them that the plugin cannot do without.
    pub(crate) fn all(&self) -> impl Iterator<Item = &WatchSpec> {
        std::iter::once(&self.primary)
            .chain(self.reads.iter().flatten())
            .chain(&self.owned)
            .chain(&self.contributed)
    }
}

/// The watch of all StorageClasses, which is one for all plugins.
fn storage_classes() -> WatchSpec {
    WatchSpec::all(Resource {
        kind: storage_class_kind().clone(),
        plural: "storageclasses".into(),
        namespaced: false,
    })
}

/// The narrowest watches that cover a scope. Where the namespaces are known only
/// from the primaries, that is one watch over all namespaces.
fn specs(
    resource: &Resource,
    scope: &Scope,
    names: &[String],
    selector: &Selector,
) -> Vec<WatchSpec> {
    let namespaces: Vec<Option<&String>> = match scope {
        Scope::Namespaces(namespaces) if resource.namespaced => {
            namespaces.iter().map(Some).collect()
        }
        _ => vec![None],
    };
    let spec = |scope| WatchSpec {
        resource: resource.clone(),
        scope,
        selector: selector.clone(),
        without_payload: false,
    };
    namespaces
        .into_iter()
        .flat_map(|namespace| {
            if !names.is_empty() {
                names
                    .iter()
                    .map(|name| {
                        spec(WatchScope::Object {
                            namespace: namespace.cloned(),
                            name: name.clone(),
                        })
                    })
                    .collect()
            } else {
                let scope = namespace.map_or(WatchScope::All, |n| WatchScope::Namespace(n.clone()));
                vec![spec(scope)]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_no_wider_than_the_scope() {
        let own =
            |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        let two = Scope::Namespaces(own(&["a", "b"]));
        let app = "app=web".parse::<Selector>().unwrap();
        let (maps, nodes) = ("configmaps", "nodes");
        for (plural, scope, names, selector, expected) in [
            (
                maps,
                &Scope::Cluster,
                &["x"][..],
                None,
                &["configmaps x"][..],
            ),
            (maps, &Scope::Cluster, &[], None, &["configmaps"]),
            // Their namespaces are known from the primaries alone.
            (maps, &Scope::PrimaryNamespace, &[], None, &["configmaps"]),
            (
                maps,
                &Scope::NamespaceNamedLikePrimary,
                &[],
                Some(&app),
                &["configmaps (app=web)"],
            ),
            (
                maps,
                &two,
                &[],
                None,
                &["configmaps in a", "configmaps in b"],
            ),
            (
                maps,
                &two,
                &["x", "y"],
                None,
                &[
                    "configmaps a/x",
                    "configmaps a/y",
                    "configmaps b/x",
                    "configmaps b/y",
                ],
            ),
            // What has no namespace is in none.
            (nodes, &two, &[], None, &["nodes"]),
            (nodes, &two, &["x"], None, &["nodes x"]),
        ] {
            let resource = Resource {
                kind: GroupVersionKind::new("", "v1", "Thing"),
                plural: plural.into(),
                namespaced: plural == maps,
            };
            let names = own(names);
            let selector = selector.cloned().unwrap_or_default();
            let specs = specs(&resource, scope, &names, &selector);
            let shown: Vec<String> = specs.iter().map(ToString::to_string).collect();
            assert_eq!(shown, expected, "{scope:?} {names:?}");
        }
    }
}
