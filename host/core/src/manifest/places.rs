//! Where a plugin may write.

use super::{Manifest, Scope};

impl Manifest {
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
