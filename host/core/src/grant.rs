//! The Kubernetes RBAC that a manifest asks for: nothing wider, nothing hidden.
//!
//! A grant has two halves. The plugin's ServiceAccount gets what the plugin may
//! write, and what it may be shown; the agent's account gets the right to watch
//! just that, and to impersonate that one ServiceAccount. Where RBAC cannot be as
//! narrow as the manifest, a [policy](admission_policy) for that account is the
//! narrower layer.

mod admission;
mod base;
mod cautions;
mod expected;
mod holding;
mod objects;
mod rules;

pub use admission::admission_policy;
pub use base::agent_base;
pub use cautions::cautions;
pub use expected::expected;
pub use holding::{holding, holding_policy, holding_rules};
pub use objects::{objects, secrets};
pub use rules::{
    Rule, SECRET_VERBS, Served, WRITE_SECRET_VERBS, WRITE_VERBS, account_rules, agent_rules,
    in_words,
};

use crate::ownership::plugin_label;
use serde_json::{Value, json};

/// Annotation by which a ServiceAccount agrees to be used for a plugin.
pub const ACCOUNT_ANNOTATION: &str = "reeve.dev/plugin";

/// Name of the Lease that replicas of an agent share, unless it is told another.
pub const LEASE: &str = "reeve";

/// Label of what was granted to a plugin, by which a later grant finds what is no
/// longer asked for. Its value is that of the plugin's own label.
pub const GRANT_LABEL: &str = "reeve.dev/granted-to";
/// Label: the namespace of the agent for which something was granted.
pub const GRANT_NAMESPACE_LABEL: &str = "reeve.dev/granted-in";

/// Whom a grant is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grantee<'a> {
    /// Name of the plugin.
    pub plugin: &'a str,
    /// Namespace of the agent, of the plugin and of its ServiceAccount.
    pub namespace: &'a str,
    /// The ServiceAccount as which the plugin writes.
    pub service_account: &'a str,
    /// RBAC subject of the agent.
    pub agent: Subject<'a>,
}

impl Grantee<'_> {
    /// Name of the user that the plugin's account is for the API server.
    fn user(&self) -> String {
        format!(
            "system:serviceaccount:{}:{}",
            self.namespace, self.service_account
        )
    }

    /// Start of the names of all that is granted. Cluster-wide objects of agents in
    /// different namespaces must not meet: there is no dot in the name of a namespace.
    pub fn role_name(&self) -> String {
        let plugin = plugin_label(self.plugin).to_lowercase();
        format!("reeve-plugin-{}.{plugin}", self.namespace)
    }

    /// Name of what lets its primaries wait. Not the name above and a suffix: that could
    /// be another plugin's.
    fn holding_name(&self) -> String {
        let plugin = plugin_label(self.plugin).to_lowercase();
        format!("reeve-primaries-{}.{plugin}", self.namespace)
    }

    /// Whether something of this name may have been granted to it. Labels say so as
    /// well, but can be forged.
    pub fn may_own(&self, name: &str) -> bool {
        let starts = [self.role_name(), self.holding_name()];
        starts.iter().any(|start| name.starts_with(start.as_str()))
    }

    /// Labels of all that is granted.
    fn labels(&self) -> Value {
        json!({
            GRANT_LABEL: plugin_label(self.plugin),
            GRANT_NAMESPACE_LABEL: self.namespace,
        })
    }
}

/// Who the agent is for RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A ServiceAccount in the agent's namespace.
    ServiceAccount(&'a str),
    /// A user.
    User(&'a str),
}

impl Subject<'_> {
    /// The subject as a binding names it.
    fn value(self, namespace: &str) -> Value {
        match self {
            Self::ServiceAccount(name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
            Self::User(name) => {
                json!({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"})
            }
        }
    }
}

/// ServiceAccount of the agent where nobody says another: that of the chart.
pub const AGENT_SERVICE_ACCOUNT: &str = "reeve";

/// The command that grants a plugin what its manifest asks for, to be pasted into a shell.
/// `agent` is the user that the agent is for the API server, where that is known.
pub fn command(plugin: &str, namespace: &str, agent: Option<&str>) -> String {
    let own = format!("system:serviceaccount:{namespace}:");
    let who = match agent.map(|user| (user, user.strip_prefix(&own))) {
        None | Some((_, Some(AGENT_SERVICE_ACCOUNT))) => String::new(),
        Some((_, Some(account))) => format!(" --agent-service-account {}", quoted(account)),
        Some((user, None)) => format!(" --agent-user {}", quoted(user)),
    };
    format!("`reeve plugin grant {plugin} --namespace {namespace}{who} --apply`")
}

/// A word for a shell: names of users are whatever a certificate or an identity provider
/// says.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@/".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both are cluster-wide: one would take the other's place.
    #[test]
    fn names_of_different_agents_do_not_meet() {
        let names = |namespace, plugin| {
            let grantee = Grantee {
                plugin,
                namespace,
                service_account: plugin,
                agent: Subject::ServiceAccount("reeve"),
            };
            [grantee.role_name(), grantee.holding_name()]
        };
        let (one, other) = (
            names("reeve", "system-quotas"),
            names("reeve-system", "quotas"),
        );
        assert!(
            one.iter().all(|name| !other.contains(name)),
            "{one:?} {other:?}"
        );
    }

    #[test]
    fn the_command_names_the_agent_where_it_is_not_the_usual_one() {
        let grant = |agent| command("quotas", "reeve-system", agent);
        let plain = "`reeve plugin grant quotas --namespace reeve-system --apply`";
        assert_eq!(grant(None), plain);
        assert_eq!(
            grant(Some("system:serviceaccount:reeve-system:reeve")),
            plain
        );
        for (agent, flag) in [
            (
                "system:serviceaccount:reeve-system:mine",
                "--agent-service-account mine",
            ),
            (
                "system:serviceaccount:other:reeve",
                "--agent-user system:serviceaccount:other:reeve",
            ),
            ("kubernetes-admin", "--agent-user kubernetes-admin"),
            ("Ann O'Hara", r"--agent-user 'Ann O'\''Hara'"),
        ] {
            let command = grant(Some(agent));
            assert!(command.contains(&format!(" {flag} --apply`")), "{command}");
        }
    }
}
