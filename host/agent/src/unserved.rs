//! Kinds of a manifest that the cluster does not serve yet.
//!
//! A plugin that writes CustomResourceDefinitions may bring kinds itself, so it runs
//! without them: what it wants of such a kind waits, and nothing else does. When the
//! kind is served the plugin is loaded anew, with all that it works on.

use crate::problem::{Problem, chain};
use reeve_api::Reason;
use reeve_cluster::{Cluster, ResolveError, Resource};
use reeve_core::{GroupVersionKind, Manifest};
use std::collections::{BTreeSet, HashMap};

/// Those of one plugin, as they were when it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unserved(BTreeSet<GroupVersionKind>);

impl Unserved {
    /// How the cluster serves the kinds of a manifest, and those that it does not and
    /// that the plugin may bring.
    ///
    /// # Errors
    ///
    /// When another kind is not served, or the API server does not say.
    pub(crate) async fn resolve(
        cluster: &Cluster,
        manifest: &Manifest,
    ) -> Result<(HashMap<GroupVersionKind, Resource>, Self), Problem> {
        let (mut served, mut unserved) = (HashMap::new(), Self::default());
        for kind in manifest.kinds() {
            match cluster.resolve(kind).await {
                Ok(resource) => {
                    served.insert(kind.clone(), resource);
                }
                Err(ResolveError::NotServed { .. }) if manifest.may_bring(kind) => {
                    unserved.0.insert(kind.clone());
                }
                Err(ResolveError::NotServed { .. }) => {
                    return Err(not_served(cluster, kind).await);
                }
                Err(error) => return Err(problem(&error)),
            }
        }
        Ok((served, unserved))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, kind: &GroupVersionKind) -> bool {
        self.0.contains(kind)
    }

    pub(crate) fn kinds(&self) -> &BTreeSet<GroupVersionKind> {
        &self.0
    }

    /// Whether one of them is served by now. Not to be told is as good as not.
    pub(crate) async fn has_come(&self, cluster: &Cluster) -> bool {
        for kind in &self.0 {
            if cluster.resolve(kind).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// Checks that nothing of a unit can be hidden behind one of them, before the unit
    /// is said to have nothing left.
    ///
    /// # Errors
    ///
    /// When one is served, in whichever version: there may be objects of it that the
    /// plugin does not see. And when the API server does not say.
    pub(crate) async fn check_nothing_is_hidden(&self, cluster: &Cluster) -> Result<(), Problem> {
        for kind in &self.0 {
            let served = match cluster.resolve_in_any_version(kind).await {
                Ok(resource) => resource.kind.version.clone(),
                Err(ResolveError::NotServed { .. }) => continue,
                Err(error) => return Err(problem(&error)),
            };
            return Err(Problem::passing(
                Reason::KindNotServed,
                format!(
                    "the api server serves {} in version {served}, and the plugin works with {}, \
                     which it is not loaded with: what the unit has of it is not seen, and the unit \
                     does not end before it is. Have its definition serve {} again",
                    kind.kind, kind.version, kind.version
                ),
            ));
        }
        Ok(())
    }
}

/// What to do about a kind that is not served: it may be served in another version.
async fn not_served(cluster: &Cluster, kind: &GroupVersionKind) -> Problem {
    match cluster.resolve_in_any_version(kind).await {
        Ok(other) => Problem::passing(
            Reason::KindNotServed,
            format!(
                "the api server serves {} in version {}, and not in {}, with which the plugin \
                 works: have its definition serve that version, or build the plugin for the other. \
                 The plugin waits for it, and starts by itself",
                kind.kind, other.kind.version, kind.version
            ),
        ),
        Err(error) => problem(&error),
    }
}

pub(crate) fn problem(error: &ResolveError) -> Problem {
    let reason = match error {
        ResolveError::NotServed { .. } => Reason::KindNotServed,
        ResolveError::Unreachable { .. } | ResolveError::Refused { .. } => Reason::Unreachable,
    };
    let mut message = chain(error);
    if reason == Reason::KindNotServed {
        message.push_str(" The plugin waits for it, and starts by itself");
    }
    Problem::passing(reason, message)
}
