//! Which objects of a cluster are taken.

use crate::resource::Resource;
use serde_json::Value;
use std::collections::BTreeSet;

/// Namespaces of the cluster's own parts.
const SYSTEM: &[&str] = &["kube-node-lease", "kube-public", "kube-system"];

/// Kinds that a cluster writes about itself, and that nobody would look for in
/// another: kind and group.
const OWN: &[(&str, &str)] = &[
    ("APIService", "apiregistration.k8s.io"),
    ("CertificateSigningRequest", "certificates.k8s.io"),
    ("CSINode", "storage.k8s.io"),
    ("Endpoints", ""),
    ("EndpointSlice", "discovery.k8s.io"),
    ("Event", ""),
    ("Event", "events.k8s.io"),
    ("Lease", "coordination.k8s.io"),
    ("Node", ""),
    ("VolumeAttachment", "storage.k8s.io"),
];

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only objects in these namespaces, these namespaces themselves, and of the
    /// kinds without namespaces those that `kinds` names; all but the system's if
    /// empty.
    pub namespaces: Vec<String>,
    /// Only these kinds, as `Profile`, `profiles` or `Profile.kubeflow.org`; all but
    /// those that a cluster writes about itself if empty.
    pub kinds: Vec<String>,
    /// None of these kinds.
    pub without: Vec<String>,
    /// Whether values of Secrets are kept.
    pub keep_secrets: bool,
}

/// A kind was named that the cluster does not serve.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cluster serves no kind {0}; write it as kubectl api-resources does, with its group if needed: Profile.kubeflow.org"
)]
pub struct UnknownKind(pub String);

impl Selection {
    /// Refuses names of kinds that are not served.
    pub(super) fn check(&self, served: &[Resource]) -> Result<(), UnknownKind> {
        let mut names = self.kinds.iter().chain(&self.without);
        match names.find(|name| !served.iter().any(|resource| is_named(resource, name))) {
            Some(unknown) => Err(UnknownKind(unknown.clone())),
            None => Ok(()),
        }
    }

    /// Whether objects of a kind are read at all. Definitions and namespaces are, so
    /// that those that are needed are there.
    pub(super) fn reads(&self, resource: &Resource) -> bool {
        let named = |names: &[String]| names.iter().any(|name| is_named(resource, name));
        if named(&self.without) {
            return false;
        }
        if named(&self.kinds) || is_definition(resource) || is_namespace(resource) {
            return true;
        }
        let own = OWN
            .iter()
            .any(|(kind, group)| *resource.kind.kind == **kind && *resource.kind.group == **group);
        self.kinds.is_empty() && !own && (resource.namespaced || self.namespaces.is_empty())
    }

    /// The namespaces to read one by one; none where all are read at once.
    pub(super) fn places(&self, resource: &Resource) -> Vec<Option<&str>> {
        if resource.namespaced && !self.namespaces.is_empty() {
            return self.namespaces.iter().map(|name| Some(&**name)).collect();
        }
        vec![None]
    }

    /// Why an object is left out, where it is.
    pub(super) fn leaves_out(&self, resource: &Resource, object: &Value) -> Option<&'static str> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default();
        let namespace = text("/metadata/namespace").unwrap_or_default();
        if text("/metadata/deletionTimestamp").is_some() {
            return Some("being deleted");
        }
        let place = if is_namespace(resource) {
            name
        } else {
            namespace
        };
        if self.namespaces.is_empty() && SYSTEM.contains(&place) {
            return Some("in the namespaces of the system");
        }
        if is_namespace(resource) && !self.namespaces.is_empty() {
            let chosen = self.namespaces.iter().any(|chosen| chosen == name);
            return (!chosen).then_some("namespaces that were not asked for");
        }
        let bootstraps = text("/metadata/labels/kubernetes.io~1bootstrapping").is_some();
        let made = match resource.kind.kind.as_str() {
            "ConfigMap" => name == "kube-root-ca.crt",
            "Secret" => text("/type") == Some("kubernetes.io/service-account-token"),
            "ClusterRole" | "ClusterRoleBinding" | "PriorityClass" => {
                bootstraps || name.starts_with("system:") || name.starts_with("system-")
            }
            // Elsewhere it is a copy that somebody made.
            "Role" | "RoleBinding" => bootstraps && SYSTEM.contains(&namespace),
            "Service" => namespace == "default" && name == "kubernetes",
            _ => false,
        };
        made.then_some("made by every cluster itself")
    }

    /// Leaves the definitions out of whose kinds nothing was taken, where not
    /// everything was asked for.
    pub(super) fn needs_definition(&self, definition: &Value, taken: &BTreeSet<String>) -> bool {
        let everything = self.namespaces.is_empty() && self.kinds.is_empty();
        let name = definition.pointer("/metadata/name").and_then(Value::as_str);
        everything || name.is_some_and(|name| taken.contains(name))
    }
}

pub(super) fn is_definition(resource: &Resource) -> bool {
    resource.kind.kind == "CustomResourceDefinition"
        && resource.kind.group == "apiextensions.k8s.io"
}

pub(super) fn is_namespace(resource: &Resource) -> bool {
    resource.kind.kind == "Namespace" && resource.kind.group.is_empty()
}

/// Whether a kind is meant by a name, in any case, with or without its group.
fn is_named(resource: &Resource, name: &str) -> bool {
    let (name, group) = match name.split_once('.') {
        None => (name, None),
        Some((name, group)) => (name, Some(group)),
    };
    let called = name.eq_ignore_ascii_case(&resource.kind.kind)
        || name.eq_ignore_ascii_case(&resource.plural);
    called && group.is_none_or(|group| *group == *resource.kind.group)
}
