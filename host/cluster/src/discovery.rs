//! Which kinds the API server serves, and under which names.

use crate::cluster::Cluster;
use crate::resource::{Resource, version_path};
use crate::transport::{Call, CallError, TransportError};
use parking_lot::RwLock;
use reeve_core::GroupVersionKind;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;

/// Kinds that were found. Absence is never remembered, since a CRD may arrive at
/// any moment.
pub(crate) type DiscoveryCache = RwLock<HashMap<GroupVersionKind, Resource>>;

/// Why a kind has no [`Resource`].
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The API server serves no such kind, for now.
    #[error("the api server serves no kind {kind}; is its CRD installed and established?")]
    NotServed {
        /// The kind that was asked for.
        kind: GroupVersionKind,
    },
    /// No answer.
    #[error("cannot look up kind {kind}")]
    Unreachable {
        /// The kind that was asked for.
        kind: GroupVersionKind,
        /// What went wrong on the way.
        source: TransportError,
    },
    /// The API server answered, but with a refusal or with something unreadable.
    #[error("the api server refuses to say what serves kind {kind} ({code}): {message}")]
    Refused {
        /// The kind that was asked for.
        kind: GroupVersionKind,
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
}

#[derive(Deserialize)]
struct ResourceList<'a> {
    #[serde(default, borrow)]
    resources: Vec<ServedResource<'a>>,
}

#[derive(Deserialize)]
struct ServedResource<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    namespaced: bool,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

impl Cluster {
    /// How the API server serves a kind, in whichever version it does: in the one
    /// that was asked for if possible, else in the group's order of preference.
    pub async fn resolve_in_any_version(
        &self,
        kind: &GroupVersionKind,
    ) -> Result<Resource, ResolveError> {
        match self.resolve(kind).await {
            Err(ResolveError::NotServed { .. }) if !kind.group.is_empty() => {}
            resolved => return resolved,
        }
        let answer = self.call(Call::get(format!("/apis/{}", kind.group))).await;
        let body = answer.map_err(|error| resolve_error(kind, error))?;
        let group: Group = parse(kind, &body)?;
        for GroupVersion { version } in group.versions {
            let other = GroupVersionKind::new(&*kind.group, version, &*kind.kind);
            match self.resolve(&other).await {
                Err(ResolveError::NotServed { .. }) => {}
                resolved => return resolved,
            }
        }
        Err(ResolveError::NotServed { kind: kind.clone() })
    }

    /// How the API server serves a kind.
    ///
    /// A kind that was found is remembered until [`Cluster::forget`]; one that is
    /// not served is asked for again each time.
    pub async fn resolve(&self, kind: &GroupVersionKind) -> Result<Resource, ResolveError> {
        if let Some(found) = self.discovery.read().get(kind) {
            return Ok(found.clone());
        }
        let answer = self.call(Call::get(version_path(kind))).await;
        let body = answer.map_err(|error| resolve_error(kind, error))?;
        let list: ResourceList<'_> = parse(kind, &body)?;
        self.remember(kind, list);
        let found = self.discovery.read().get(kind).cloned();
        found.ok_or_else(|| ResolveError::NotServed { kind: kind.clone() })
    }

    /// Forgets how a kind is served, so that it is asked for again: its CRD is
    /// gone, or was made again with other names or another scope.
    pub fn forget(&self, kind: &GroupVersionKind) {
        self.discovery.write().remove(kind);
    }

    /// Takes in every kind of one group and version; the answer holds them all.
    fn remember(&self, asked: &GroupVersionKind, list: ResourceList<'_>) {
        let mut cache = self.discovery.write();
        // A name with a slash is a subresource, whose kind may be another's.
        for served in list.resources.into_iter().filter(|r| !r.name.contains('/')) {
            let kind = GroupVersionKind::new(&*asked.group, &*asked.version, served.kind);
            cache.entry(kind.clone()).or_insert(Resource {
                kind,
                plural: served.name.into_owned(),
                namespaced: served.namespaced,
            });
        }
    }
}

fn resolve_error(kind: &GroupVersionKind, error: CallError) -> ResolveError {
    let kind = kind.clone();
    match error {
        CallError::Transport(source) => ResolveError::Unreachable { kind, source },
        CallError::Status(status) if status.code == 404 => ResolveError::NotServed { kind },
        CallError::Status(status) => ResolveError::Refused {
            kind,
            code: status.code,
            message: status.message,
        },
    }
}

fn parse<'a, T: Deserialize<'a>>(
    kind: &GroupVersionKind,
    body: &'a [u8],
) -> Result<T, ResolveError> {
    serde_json::from_slice(body).map_err(|error| ResolveError::Refused {
        kind: kind.clone(),
        code: 200,
        message: format!("not what discovery answers with: {error}"),
    })
}
