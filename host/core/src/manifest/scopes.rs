//! Scopes that make no sense for the kinds that they are for.

use super::{Manifest, Scope};
use crate::kind::GroupVersionKind;

impl Manifest {
    /// What asks for a kind where there can be none of it, and what to do. `namespaced` says of
    /// a kind whether it lives in namespaces, and nothing of one that is not served yet: how that
    /// lives will be seen when it is.
    pub fn misplaced(
        &self,
        namespaced: impl Fn(&GroupVersionKind) -> Option<bool>,
    ) -> Option<String> {
        let has_no_place = namespaced(&self.primary().kind) == Some(false);
        let reads = self.reads.iter();
        let reads = reads.map(|rule| ("reads", &rule.kind, &rule.scope));
        let writes = self.writes.iter();
        let writes = writes.map(|rule| ("writes", &rule.kind, &rule.scope));
        reads.chain(writes).find_map(|(list, kind, scope)| {
            let problem = match scope {
                Scope::PrimaryNamespace if has_no_place => {
                    "the primary is cluster-scoped and has no namespace; use another scope"
                }
                Scope::Cluster => return None,
                _ if namespaced(kind) == Some(false) => {
                    "the kind is cluster-scoped; use scope `cluster`"
                }
                _ => return None,
            };
            Some(format!("{list}: {kind}: {problem}"))
        })
    }
}
