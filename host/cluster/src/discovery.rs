//! Which kinds the API server serves, and under which names.

use crate::cluster::Cluster;
use crate::resource::{Resource, version_path};
use crate::transport::{Call, CallError, TransportError};
use parking_lot::RwLock;
use reeve_core::GroupVersionKind;
use reeve_core::manifest::{ManifestError, RawManifest, ServedKind};
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

/// Why a manifest's wildcards stand for nothing.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It is not known what they stand for.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
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
    // `null` where a server was written in Go and has none.
    #[serde(default, borrow)]
    verbs: Option<Vec<Cow<'a, str>>>,
}

impl ServedResource<'_> {
    /// A name with a slash is a subresource, whose kind may be another's.
    fn is_subresource(&self) -> bool {
        self.name.contains('/')
    }

    fn has(&self, verbs: [&str; 2]) -> bool {
        verbs
            .iter()
            .all(|verb| self.verbs.iter().flatten().any(|has| has == verb))
    }
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

    /// All kinds that the API server serves in one group and version, of which `any` names
    /// the two. They are asked for each time.
    ///
    /// # Errors
    ///
    /// When it serves no such group and version, or does not say.
    pub async fn kinds_beside(
        &self,
        any: &GroupVersionKind,
    ) -> Result<Vec<ServedKind>, ResolveError> {
        let answer = self.call(Call::get(version_path(any))).await;
        let body = answer.map_err(|error| resolve_error(any, error))?;
        let list: ResourceList<'_> = parse(any, &body)?;
        let kinds = list
            .resources
            .iter()
            .filter(|served| !served.is_subresource());
        let kinds = kinds.map(|served| ServedKind {
            kind: served.kind.clone().into_owned(),
            namespaced: served.namespaced,
            readable: served.has(["list", "watch"]),
            writable: served.has(["create", "patch"]),
        });
        Ok(kinds.collect())
    }

    /// Puts the kinds that are served in the place of a manifest's wildcards.
    ///
    /// # Errors
    ///
    /// When the manifest cannot be used anyway, or the API server serves no such group and
    /// version, or does not say.
    pub async fn expand(&self, manifest: &mut RawManifest) -> Result<(), ExpandError> {
        let mut served = HashMap::new();
        for any in manifest.wildcards()? {
            let kinds = self.kinds_beside(&any).await?;
            if kinds.is_empty() {
                return Err(ResolveError::NotServed { kind: any }.into());
            }
            served.insert(any, kinds);
        }
        manifest.expand(|any| served.get(any).cloned().unwrap_or_default());
        Ok(())
    }

    /// Forgets how a kind is served, so that it is asked for again: its CRD is
    /// gone, or was made again with other names or another scope.
    pub fn forget(&self, kind: &GroupVersionKind) {
        self.discovery.write().remove(kind);
    }

    /// Takes in every kind of one group and version; the answer holds them all.
    fn remember(&self, asked: &GroupVersionKind, list: ResourceList<'_>) {
        let mut cache = self.discovery.write();
        let kinds = list.resources.into_iter();
        for served in kinds.filter(|served| !served.is_subresource()) {
            let kind = GroupVersionKind::new(&*asked.group, &*asked.version, served.kind);
            cache.entry(kind.clone()).or_insert(Resource {
                kind,
                plural: served.name.into(),
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
