//! What a plugin is and all that it may touch.

use crate::Kind;
use crate::action::ActionRule;
use crate::source::SourceRule;

/// What a plugin is and all that it may touch, for one configuration.
///
/// A manifest grants nothing: it is what the operator is asked to grant, and a
/// bound on what the plugin can do with it. Declare as little as will do.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
///     .projection(["/metadata/labels"])
///     .writes(Kind::new("v1", "ResourceQuota"), Scope::NamespaceNamedLikePrimary);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Manifest {
    pub(crate) primary: PrimaryRule,
    pub(crate) reads: Vec<ReadRule>,
    pub(crate) writes: Vec<(Kind, Scope)>,
    pub(crate) sources: Vec<SourceRule>,
    pub(crate) actions: Vec<ActionRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrimaryRule {
    pub(crate) kind: Kind,
    pub(crate) selector: String,
    pub(crate) projection: Vec<String>,
}

/// Where objects of a rule live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The namespace of the primary. Only for namespaced primaries.
    PrimaryNamespace,
    /// The namespace that has the primary's name.
    NamespaceNamedLikePrimary,
    /// Just these namespaces.
    Namespaces(Vec<String>),
    /// All namespaces for a namespaced kind; no namespace for a cluster-scoped
    /// one. The widest scope, and the hardest to be granted.
    Cluster,
}

impl Manifest {
    /// A plugin that runs once for each object of this kind: its primaries.
    pub fn controller(kind: Kind) -> Self {
        Self {
            primary: PrimaryRule {
                kind,
                selector: String::new(),
                projection: Vec::new(),
            },
            reads: Vec::new(),
            writes: Vec::new(),
            sources: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// Runs only for primaries with these labels, in Kubernetes' text form, such
    /// as `team=a,!retired`.
    pub fn selector(mut self, selector: impl Into<String>) -> Self {
        self.primary.selector = selector.into();
        self
    }

    /// Sees only these parts of the primary, as JSON Pointers; a change of
    /// anything else does not run the plugin.
    ///
    /// `apiVersion`, `kind` and the name, namespace and uid are always there.
    /// Without this, the plugin sees everything but `/status`.
    pub fn projection<P: Into<String>>(mut self, parts: impl IntoIterator<Item = P>) -> Self {
        self.primary.projection = parts.into_iter().map(Into::into).collect();
        self
    }

    /// Reads objects of a kind through [`Context`](crate::Context). The primary
    /// itself needs no rule.
    pub fn reads(mut self, rule: impl Into<ReadRule>) -> Self {
        self.reads.push(rule.into());
        self
    }

    /// May return objects of this kind, in this scope.
    pub fn writes(mut self, kind: Kind, scope: Scope) -> Self {
        self.writes.push((kind, scope));
        self
    }

    /// Reads an outside document through [`Context`](crate::Context).
    pub fn source(mut self, rule: SourceRule) -> Self {
        self.sources.push(rule);
        self
    }

    /// May ask for outside effects of this kind. The plugin then needs a third
    /// function, see [`plugin!`](crate::plugin).
    pub fn action(mut self, rule: ActionRule) -> Self {
        self.actions.push(rule);
        self
    }
}

/// A kind that a plugin reads, narrowed as far as the plugin can say.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let settings = ReadRule::new(Kind::new("v1", "ConfigMap"), Scope::PrimaryNamespace)
///     .names(["settings"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReadRule {
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
    pub(crate) names: Vec<String>,
    pub(crate) selector: String,
}

impl ReadRule {
    /// Reads all objects of this kind in this scope. Secrets must be [named](Self::names):
    /// the host refuses a manifest that reads others.
    pub fn new(kind: Kind, scope: Scope) -> Self {
        Self {
            kind,
            scope,
            names: Vec::new(),
            selector: String::new(),
        }
    }

    /// Only objects with one of these names; nothing is granted on others.
    pub fn names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Only objects with these labels, in Kubernetes' text form.
    pub fn selector(mut self, selector: impl Into<String>) -> Self {
        self.selector = selector.into();
        self
    }
}

impl From<(Kind, Scope)> for ReadRule {
    fn from((kind, scope): (Kind, Scope)) -> Self {
        Self::new(kind, scope)
    }
}

/// Configuration that fits the schema but makes no sense to the plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ConfigError {
    /// Where in the configuration, as a JSON Pointer; empty for all of it.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl ConfigError {
    /// What is wrong, and where.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// What a plugin's `manifest` function may return: a [`Manifest`], or one only
/// if the configuration makes sense.
pub trait IntoManifest {
    /// The manifest.
    ///
    /// # Errors
    ///
    /// When the configuration makes no sense.
    fn into_manifest(self) -> Result<Manifest, ConfigError>;
}

impl IntoManifest for Manifest {
    fn into_manifest(self) -> Result<Manifest, ConfigError> {
        Ok(self)
    }
}

impl IntoManifest for Result<Manifest, ConfigError> {
    fn into_manifest(self) -> Result<Manifest, ConfigError> {
        self
    }
}
