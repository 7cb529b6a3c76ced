//! Nobody grants what they do not have.
//!
//! Writing a role asks for all of its rules, or for the verb `escalate`; writing
//! a binding for all rules of the role it names, or for the verb `bind`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::policy::{Binding, RoleStore};
use super::rbac::{Attributes, permit, rules_for, rules_of};
use super::rule::Rule;
use crate::field::quoted;
use crate::identity::Identity;
use crate::kinds::edit::{items, text_at};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks that a user may write a Role or ClusterRole. `old` is what it was.
///
/// # Errors
///
/// With the explanation of a `Forbidden` about the role.
pub fn check_role(
    store: &impl RoleStore,
    user: &Identity,
    role: &Value,
    old: Option<&Value>,
) -> Result<(), String> {
    if user.is_master() || old.is_some_and(|old| only_lifecycle_differs(role, old)) {
        return Ok(());
    }
    let namespace = text_at(role, "/metadata/namespace");
    let asked = Attributes {
        verb: "escalate",
        group: GROUP,
        resource: if namespace.is_empty() {
            "clusterroles"
        } else {
            "roles"
        },
        namespace,
        // A request that creates has no name in its path.
        name: if old.is_some() {
            text_at(role, "/metadata/name")
        } else {
            ""
        },
        ..Attributes::default()
    };
    if permit(store, user, &asked).is_ok() {
        return Ok(());
    }
    let rules: Vec<Rule> = items(role, "rules").map(Rule::parse).collect();
    confirm(store, user, namespace, &rules)?;
    let aggregates = |role: &Value| items_of_aggregation(role) > 0;
    if (aggregates(role) || old.is_some_and(aggregates))
        && confirm(store, user, namespace, &Rule::everything()).is_err()
    {
        return Err("must have cluster-admin privileges to use the aggregationRule".to_owned());
    }
    Ok(())
}

/// Checks that a user may write a RoleBinding or ClusterRoleBinding. `old` is
/// what it was.
///
/// # Errors
///
/// With the explanation of a `Forbidden` about the binding, or the text of a
/// `NotFound` about its role, which comes before the binding is known to be
/// forbidden.
pub fn check_binding(
    store: &impl RoleStore,
    user: &Identity,
    binding: &Value,
    old: Option<&Value>,
) -> Result<(), BindingRefused> {
    if user.is_master() || old.is_some_and(|old| only_lifecycle_differs(binding, old)) {
        return Ok(());
    }
    let parsed = Binding::parse(binding);
    let resource = match parsed.role.kind.as_str() {
        "Role" => "roles",
        _ => "clusterroles",
    };
    let asked = Attributes {
        verb: "bind",
        group: GROUP,
        resource,
        namespace: &parsed.namespace,
        name: &parsed.role.name,
        ..Attributes::default()
    };
    if permit(store, user, &asked).is_ok() {
        return Ok(());
    }
    let rules =
        rules_of(store, &parsed.role, &parsed.namespace).ok_or_else(|| BindingRefused::NoRole {
            resource,
            name: parsed.role.name.clone(),
        })?;
    confirm(store, user, &parsed.namespace, &rules).map_err(BindingRefused::Escalates)
}

/// Why a binding may not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingRefused {
    /// The role does not exist: a `NotFound`.
    #[error("{resource}.rbac.authorization.k8s.io \"{name}\" not found")]
    NoRole {
        /// `roles` or `clusterroles`.
        resource: &'static str,
        /// The name.
        name: String,
    },
    /// The role grants more than the user has: a `Forbidden`.
    #[error("{0}")]
    Escalates(String),
}

fn items_of_aggregation(role: &Value) -> usize {
    role.get("aggregationRule")
        .map_or(0, |rule| items(rule, "clusterRoleSelectors").count())
}

/// Whether only owners and finalizers change, which the garbage collector does
/// to objects whose rights it has not.
fn only_lifecycle_differs(object: &Value, old: &Value) -> bool {
    let strip = |object: &Value| {
        let mut object = object.clone();
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "managedFields"] {
                meta.remove(field);
            }
        }
        object
    };
    strip(object) == strip(old)
}

/// Checks that the user's own rules cover `rules`.
fn confirm(
    store: &impl RoleStore,
    user: &Identity,
    namespace: &str,
    rules: &[Rule],
) -> Result<(), String> {
    let own = rules_for(store, user, namespace);
    let missing: Vec<Rule> = rules
        .iter()
        .flat_map(Rule::atoms)
        .filter(|atom| !own.iter().any(|rule| rule.covers(atom)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<String> = merged(missing).iter().map(Rule::compact).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let groups: Vec<String> = user.groups.iter().map(|group| quoted(group)).collect();
    Err(format!(
        "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        quoted(&user.name),
        groups.join(" "),
        lines.join("\n")
    ))
}

/// Joins rules that differ in nothing but their verbs.
fn merged(atoms: Vec<Rule>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for atom in atoms {
        let same = rules.iter_mut().find(|rule| {
            atom.paths.is_empty()
                && rule.groups == atom.groups
                && rule.resources == atom.resources
                && rule.names == atom.names
                && rule.paths.is_empty()
        });
        match same {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => rules.push(atom),
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Policy;
    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::default();
        let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
        let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        let roles = json!({"verbs": ["escalate", "bind"], "apiGroups": [GROUP],
            "resources": ["roles", "clusterroles"]});
        policy.put("ClusterRole", &role("reader", json!([pods])));
        policy.put("ClusterRole", &role("granter", json!([roles])));
        for (name, user) in [("reader", "u"), ("granter", "v")] {
            policy.put(
                "ClusterRoleBinding",
                &json!({
                    "metadata": {"name": name},
                    "roleRef": {"kind": "ClusterRole", "name": name},
                    "subjects": [{"kind": "User", "name": user}],
                }),
            );
        }
        policy
    }

    fn user(name: &str) -> Identity {
        let none: [&str; 0] = [];
        Identity::user(name, none)
    }

    #[test]
    fn roles() {
        let policy = policy();
        let role = |verbs: &[&str]| {
            json!({"metadata": {"name": "r", "namespace": "n"}, "rules": [
                {"verbs": verbs, "apiGroups": [""], "resources": ["pods"]},
            ]})
        };
        let check =
            |name: &str, verbs: &[&str]| check_role(&policy, &user(name), &role(verbs), None);
        assert_eq!(check("u", &["get"]), Ok(()));
        assert_eq!(check("v", &["get", "list"]), Ok(()));
        assert_eq!(
            check("u", &["get", "list", "watch"]),
            Err(
                "user \"u\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC \
                 permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], \
                 Verbs:[\"list\" \"watch\"]}"
                    .to_owned()
            )
        );
        let old = role(&["list"]);
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["a/b"]);
        assert_eq!(check_role(&policy, &user("u"), &new, Some(&old)), Ok(()));
    }

    #[test]
    fn aggregation_is_for_administrators() {
        let role = json!({"metadata": {"name": "r"}, "aggregationRule": {
            "clusterRoleSelectors": [{}]}});
        assert_eq!(
            check_role(&policy(), &user("u"), &role, None),
            Err("must have cluster-admin privileges to use the aggregationRule".to_owned())
        );
        assert_eq!(
            check_role(&policy(), &Identity::admin(), &role, None),
            Ok(())
        );
    }

    #[test]
    fn bindings() {
        let policy = policy();
        let check = |name: &str, role: &str| {
            let binding = json!({
                "metadata": {"name": "b", "namespace": "n"},
                "roleRef": {"kind": "ClusterRole", "name": role},
            });
            check_binding(&policy, &user(name), &binding, None)
        };
        assert_eq!(check("u", "reader"), Ok(()));
        assert_eq!(check("v", "reader"), Ok(()));
        assert!(matches!(
            check("u", "granter"),
            Err(BindingRefused::Escalates(_))
        ));
        assert_eq!(
            check("u", "none").unwrap_err().to_string(),
            "clusterroles.rbac.authorization.k8s.io \"none\" not found"
        );
    }
}
