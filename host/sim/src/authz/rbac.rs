//! The decision: who may do what.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::policy::{Binding, RoleRef, RoleStore, Subject};
use super::rule::Rule;
use crate::field::quoted;
use crate::identity::Identity;

/// A request for a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// The verb of RBAC.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural resource.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for the cluster.
    pub namespace: &'a str,
    /// The name; empty where none is meant.
    pub name: &'a str,
}

impl Attributes<'_> {
    /// Why a user may not: the explanation in the server's `Forbidden`.
    pub fn refusal(&self, user: &Identity) -> String {
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {}", quoted(self.namespace))
        };
        let resource = if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        };
        sanitized(&format!(
            "User {} cannot {} resource {} in API group {} {scope}",
            quoted(&user.name),
            self.verb,
            quoted(&resource),
            quoted(self.group),
        ))
    }
}

/// Why a user may not do something with a path.
pub fn path_refusal(user: &Identity, verb: &str, path: &str) -> String {
    sanitized(&format!(
        "User {} cannot {verb} path {}",
        quoted(&user.name),
        quoted(path)
    ))
}

/// The server keeps its refusals from looking like markup.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Allowed; the reason is empty for those whom no rule binds.
    Allowed(String),
    /// No rule allows it. What stood in the way, such as a binding to a role
    /// that does not exist; often empty.
    Denied(String),
}

impl Access {
    /// Whether it was allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Access::Allowed(_))
    }
}

/// Decides a request for a resource.
pub fn authorize(store: &impl RoleStore, user: &Identity, asked: &Attributes<'_>) -> Access {
    decide(store, user, asked.namespace, |rule| rule.matches(asked))
}

/// Decides a request for a path that is no resource.
pub fn authorize_path(store: &impl RoleStore, user: &Identity, verb: &str, path: &str) -> Access {
    decide(store, user, "", |rule| rule.matches_path(verb, path))
}

/// Finds that a user may make a request for a resource.
///
/// # Errors
///
/// As for [`Access::Denied`]. Why it is allowed is not said, which takes longer than to
/// find out.
pub fn permit(
    store: &impl RoleStore,
    user: &Identity,
    asked: &Attributes<'_>,
) -> Result<(), String> {
    let allows = |rule: &Rule| rule.matches(asked);
    find(store, user, asked.namespace, allows, |_, _| ()).map(drop)
}

fn decide(
    store: &impl RoleStore,
    user: &Identity,
    namespace: &str,
    allows: impl Fn(&Rule) -> bool,
) -> Access {
    match find(store, user, namespace, allows, reason) {
        Ok(reason) => Access::Allowed(reason.unwrap_or_default()),
        Err(why) => Access::Denied(why),
    }
}

/// What is to be said of the first binding that allows something; nothing where no rule
/// binds the user. An error says what stood in the way.
fn find<T>(
    store: &impl RoleStore,
    user: &Identity,
    namespace: &str,
    allows: impl Fn(&Rule) -> bool,
    say: impl Fn(&Binding, &Subject) -> T,
) -> Result<Option<T>, String> {
    if user.is_master() {
        return Ok(None);
    }
    let mut missing = Vec::new();
    let found = visit(store, user, namespace, |source| match source {
        Source::Rules(binding, subject, rules) if rules.iter().any(&allows) => {
            ControlFlow::Break(say(binding, subject))
        }
        Source::Rules(..) => ControlFlow::Continue(()),
        Source::Missing(role, namespace) => {
            missing.push(not_found(role, namespace));
            ControlFlow::Continue(())
        }
    });
    match found {
        ControlFlow::Break(said) => Ok(Some(said)),
        ControlFlow::Continue(()) if missing.is_empty() => Err(String::new()),
        ControlFlow::Continue(()) => {
            let all = match missing.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            Err(format!("RBAC: {all}"))
        }
    }
}

/// The rules that apply to a user in a namespace, cluster-wide ones first.
pub fn rules_for(store: &impl RoleStore, user: &Identity, namespace: &str) -> Vec<Rule> {
    let mut all = Vec::new();
    let _: ControlFlow<()> = visit(store, user, namespace, |source| {
        if let Source::Rules(_, _, rules) = source {
            all.extend(rules.iter().cloned());
        }
        ControlFlow::Continue(())
    });
    if user.is_master() && all.is_empty() {
        all.extend(Rule::everything());
    }
    all
}

enum Source<'a> {
    Rules(&'a Binding, &'a Subject, Arc<[Rule]>),
    Missing(&'a RoleRef, &'a str),
}

fn visit<B>(
    store: &impl RoleStore,
    user: &Identity,
    namespace: &str,
    mut see: impl FnMut(Source<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut each = |binding: &Binding| match binding.subject(user) {
        None => ControlFlow::Continue(()),
        Some(subject) => match rules_of(store, &binding.role, &binding.namespace) {
            Some(rules) => see(Source::Rules(binding, subject, rules)),
            None => see(Source::Missing(&binding.role, &binding.namespace)),
        },
    };
    store.cluster_bindings().try_for_each(&mut each)?;
    if !namespace.is_empty() {
        store.bindings(namespace).try_for_each(&mut each)?;
    }
    ControlFlow::Continue(())
}

/// The rules of the role that a binding in `namespace` names.
pub(super) fn rules_of(
    store: &impl RoleStore,
    role: &RoleRef,
    namespace: &str,
) -> Option<Arc<[Rule]>> {
    match role.kind.as_str() {
        "Role" => store.role(namespace, &role.name),
        "ClusterRole" => store.cluster_role(&role.name),
        _ => None,
    }
}

fn not_found(role: &RoleRef, _namespace: &str) -> String {
    let resource = match role.kind.as_str() {
        "Role" => "role",
        _ => "clusterrole",
    };
    format!(
        "{resource}.rbac.authorization.k8s.io {} not found",
        quoted(&role.name)
    )
}

fn reason(binding: &Binding, subject: &Subject) -> String {
    let role = format!("{} {}", binding.role.kind, quoted(&binding.role.name));
    let subject = subject.describe(&binding.namespace);
    if binding.namespace.is_empty() {
        let name = quoted(&binding.name);
        format!("RBAC: allowed by ClusterRoleBinding {name} of {role} to {subject}")
    } else {
        let name = quoted(&format!("{}/{}", binding.name, binding.namespace));
        format!("RBAC: allowed by RoleBinding {name} of {role} to {subject}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Policy;
    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::default();
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let role = json!({"metadata": {"name": "r", "namespace": "n"}, "rules": rules});
        policy.put("Role", &role);
        policy.put(
            "ClusterRole",
            &json!({"metadata": {"name": "c"}, "rules": [
                {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]},
                {"verbs": ["get"], "nonResourceURLs": ["/healthz"]},
            ]}),
        );
        policy.put(
            "RoleBinding",
            &json!({
                "metadata": {"name": "b", "namespace": "n"},
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
            }),
        );
        policy.put(
            "ClusterRoleBinding",
            &json!({
                "metadata": {"name": "cb"},
                "roleRef": {"kind": "ClusterRole", "name": "c"},
                "subjects": [{"kind": "Group", "name": "g"}],
            }),
        );
        policy.put(
            "ClusterRoleBinding",
            &json!({
                "metadata": {"name": "dangling"},
                "roleRef": {"kind": "ClusterRole", "name": "none"},
                "subjects": [{"kind": "User", "name": "w"}],
            }),
        );
        policy
    }

    fn pods<'a>(verb: &'a str, namespace: &'a str) -> Attributes<'a> {
        Attributes {
            verb,
            resource: "pods",
            namespace,
            ..Attributes::default()
        }
    }

    #[test]
    fn decisions() {
        let policy = policy();
        let none: [&str; 0] = [];
        let user = Identity::user("u", none);
        let account = Identity::service_account("n", "s");
        let elsewhere = Identity::service_account("m", "s");
        let grouped = Identity::user("v", ["g"]);
        let check = |user: &Identity, asked: &Attributes<'_>, expected: Option<&str>| {
            let expected = match expected {
                Some(reason) => Access::Allowed(reason.to_owned()),
                None => Access::Denied(String::new()),
            };
            assert_eq!(authorize(&policy, user, asked), expected, "{asked:?}");
        };
        check(
            &user,
            &pods("get", "n"),
            Some("RBAC: allowed by RoleBinding \"b/n\" of Role \"r\" to User \"u\""),
        );
        check(
            &account,
            &pods("get", "n"),
            Some("RBAC: allowed by RoleBinding \"b/n\" of Role \"r\" to ServiceAccount \"s/n\""),
        );
        check(&elsewhere, &pods("get", "n"), None);
        check(&user, &pods("get", "m"), None);
        check(&user, &pods("get", ""), None);
        check(&user, &pods("list", "n"), None);
        check(&Identity::admin(), &pods("list", ""), Some(""));
        let scale = Attributes {
            verb: "update",
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            namespace: "any",
            name: "x",
        };
        check(
            &grouped,
            &scale,
            Some("RBAC: allowed by ClusterRoleBinding \"cb\" of ClusterRole \"c\" to Group \"g\""),
        );
        assert!(authorize_path(&policy, &grouped, "get", "/healthz").is_allowed());
        assert!(!authorize_path(&policy, &user, "get", "/healthz").is_allowed());
        assert_eq!(
            authorize(&policy, &Identity::user("w", none), &pods("get", "n")),
            Access::Denied(
                "RBAC: clusterrole.rbac.authorization.k8s.io \"none\" not found".to_owned()
            )
        );
    }

    #[test]
    fn refusals() {
        let none: [&str; 0] = [];
        let user = Identity::user("u", none);
        assert_eq!(
            pods("list", "n").refusal(&user),
            "User \"u\" cannot list resource \"pods\" in API group \"\" in the namespace \"n\""
        );
        let asked = Attributes {
            subresource: "log",
            ..pods("get", "")
        };
        assert_eq!(
            asked.refusal(&user),
            "User \"u\" cannot get resource \"pods/log\" in API group \"\" at the cluster scope"
        );
        assert_eq!(
            path_refusal(&user, "get", "/metrics"),
            "User \"u\" cannot get path \"/metrics\""
        );
    }

    #[test]
    fn forgotten_bindings_grant_nothing() {
        let mut policy = policy();
        policy.remove("RoleBinding", "n", "b");
        let none: [&str; 0] = [];
        let user = Identity::user("u", none);
        assert!(!authorize(&policy, &user, &pods("get", "n")).is_allowed());
    }
}
