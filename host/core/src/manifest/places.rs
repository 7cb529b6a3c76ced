//! Where a plugin may work, and where not whatever it declares.

use super::{Manifest, Scope, secret_kind};
use crate::kind::{GroupVersionKind, ObjectReference};

/// With which the names of the namespaces begin that Kubernetes keeps for itself
/// (kubernetes.io, Namespaces: "avoid creating namespaces with the prefix `kube-`").
const RESERVED: &str = "kube-";

impl Manifest {
    /// What the plugin's account writes, and where: objects, and Secrets that are generated
    /// for actions.
    pub fn written(&self) -> impl Iterator<Item = (&GroupVersionKind, &Scope)> {
        let writes = self.writes.iter().map(|rule| (&rule.kind, &rule.scope));
        let secrets = self.actions.iter().flat_map(|action| &action.secrets);
        writes.chain(secrets.map(|scope| (secret_kind(), scope)))
    }

    /// The namespace that a plugin would work in because of this primary and may not, given
    /// the agent's own: that, or one that Kubernetes keeps for itself and that is called like
    /// the primary.
    ///
    /// Who may make a primary does not therefore decide about these namespaces: without this,
    /// the rights of the plugin would be lent to whoever finds the right name (a confused
    /// deputy, as in CVE-2026-42541). Namespaces that the manifest names are not meant, nor is
    /// the namespace in which the primary itself is, but for the agent's.
    pub fn lent<'a>(&self, primary: &'a ObjectReference, agent: &str) -> Option<&'a str> {
        let derived = |scope: &Scope| match scope {
            Scope::NamespaceNamedLikePrimary => {
                Some(&*primary.name).filter(|name| *name == agent || name.starts_with(RESERVED))
            }
            Scope::PrimaryNamespace => primary.namespace.as_deref().filter(|name| *name == agent),
            Scope::Namespaces(_) | Scope::Cluster => None,
        };
        let reads = self.reads.iter().map(|rule| &rule.scope);
        let writes = self.writes.iter().map(|rule| &rule.scope);
        let secrets = self.actions.iter().flat_map(|action| &action.secrets);
        let mut scopes = reads.chain(writes).chain(secrets);
        scopes.find_map(derived)
    }

    /// What names this namespace among the places where something is written, such as
    /// `writes: ConfigMap.v1`; none when nothing does.
    ///
    /// What stands in the agent's namespace decides what the agent runs, and as whom: a
    /// manifest that names that one is refused, and granted to nobody.
    pub fn writes_in(&self, namespace: &str) -> Option<String> {
        let here = |scope: &Scope| match scope {
            Scope::Namespaces(names) => names.iter().any(|name| name == namespace),
            _ => false,
        };
        let writes = self.writes.iter();
        let writes = writes.map(|rule| (format!("writes: {}", rule.kind), &rule.scope));
        let secrets = self.actions.iter().flat_map(|action| {
            let what = format!("actions: {}: secrets", action.name);
            action
                .secrets
                .iter()
                .map(move |scope| (what.clone(), scope))
        });
        let mut all = writes.chain(secrets);
        all.find(|(_, scope)| here(scope)).map(|(what, _)| what)
    }
}
