//! Roles and bindings, parsed once and found by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;
use parking_lot::Mutex;
use serde_json::Value;

use super::rule::Rule;
use crate::identity::Identity;
use crate::kinds::edit::{items, text, text_at};

/// What a decision reads: the bindings that could apply, and the roles that
/// they name.
pub trait RoleStore {
    /// All ClusterRoleBindings.
    fn cluster_bindings(&self) -> impl Iterator<Item = &Binding>;
    /// The RoleBindings of a namespace.
    fn bindings(&self, namespace: &str) -> impl Iterator<Item = &Binding>;
    /// The rules of a ClusterRole.
    fn cluster_role(&self, name: &str) -> Option<Arc<[Rule]>>;
    /// The rules of a Role.
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>>;
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The namespace; empty for a ClusterRoleBinding.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The role it grants.
    pub role: RoleRef,
    /// Whom it grants it to.
    pub subjects: Vec<Subject>,
}

/// The role that a binding grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// Whom a binding grants its role to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A user by name.
    User(String),
    /// Everybody in a group.
    Group(String),
    /// A service account; without namespace, that of the binding.
    ServiceAccount {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// Of a kind that RBAC does not know.
    Unknown,
}

impl Binding {
    /// Reads a binding.
    pub fn parse(binding: &Value) -> Self {
        let role = binding.get("roleRef").unwrap_or(&Value::Null);
        Binding {
            namespace: text_at(binding, "/metadata/namespace").to_owned(),
            name: text_at(binding, "/metadata/name").to_owned(),
            role: RoleRef {
                kind: text(role, "kind").to_owned(),
                name: text(role, "name").to_owned(),
            },
            subjects: items(binding, "subjects").map(Subject::parse).collect(),
        }
    }

    /// The first subject that the user is.
    pub fn subject(&self, user: &Identity) -> Option<&Subject> {
        self.subjects
            .iter()
            .find(|subject| subject.is(user, &self.namespace))
    }
}

impl Subject {
    fn parse(subject: &Value) -> Self {
        let name = text(subject, "name").to_owned();
        match text(subject, "kind") {
            "User" => Subject::User(name),
            "Group" => Subject::Group(name),
            "ServiceAccount" => Subject::ServiceAccount {
                namespace: text(subject, "namespace").to_owned(),
                name,
            },
            _ => Subject::Unknown,
        }
    }

    fn is(&self, user: &Identity, binding_namespace: &str) -> bool {
        match self {
            Subject::User(name) => user.name == *name,
            Subject::Group(group) => user.groups.contains(group),
            Subject::ServiceAccount { namespace, name } => {
                let namespace = if namespace.is_empty() {
                    binding_namespace
                } else {
                    namespace
                };
                // Most are somebody else, which the length tells.
                user.name.len() == "system:serviceaccount::".len() + namespace.len() + name.len()
                    && Identity::parse_service_account(&user.name)
                        .is_some_and(|(ns, account)| ns == namespace && account == name)
            }
            Subject::Unknown => false,
        }
    }

    /// The subject as a reason names it.
    pub(super) fn describe(&self, binding_namespace: &str) -> String {
        match self {
            Subject::User(name) => format!("User {}", crate::field::quoted(name)),
            Subject::Group(name) => format!("Group {}", crate::field::quoted(name)),
            Subject::ServiceAccount { namespace, name } => {
                let namespace = if namespace.is_empty() {
                    binding_namespace
                } else {
                    namespace
                };
                // The server writes the name first.
                let both = format!("{name}/{namespace}");
                format!("ServiceAccount {}", crate::field::quoted(&both))
            }
            Subject::Unknown => String::new(),
        }
    }
}

/// The rules of roles by name.
type Roles = HashMap<String, Arc<[Rule]>>;

/// Bindings by name, in whose order they are looked at.
type Bindings = BTreeMap<String, Arc<Binding>>;

/// An index of all roles and bindings, kept up to date object by object. A copy shares
/// them until one of the two changes.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// By namespace; those of the cluster are in the empty one.
    roles: Arc<HashMap<String, Roles>>,
    bindings: Arc<HashMap<String, Bindings>>,
}

impl Policy {
    /// Whether there are no roles and no bindings.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    /// Takes in a new or changed Role, ClusterRole or binding. Objects of other
    /// kinds are ignored.
    pub fn put(&mut self, kind: &str, object: &Value) {
        let namespace = text_at(object, "/metadata/namespace").to_owned();
        let name = text_at(object, "/metadata/name").to_owned();
        match kind {
            "Role" | "ClusterRole" => {
                let rules = items(object, "rules").map(Rule::parse).collect();
                let roles = Arc::make_mut(&mut self.roles);
                roles.entry(namespace).or_default().insert(name, rules);
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let bindings = Arc::make_mut(&mut self.bindings);
                let bindings = bindings.entry(namespace).or_default();
                bindings.insert(name, Arc::new(Binding::parse(object)));
            }
            _ => {}
        }
    }

    /// Forgets a deleted object; `namespace` is empty for those of the cluster.
    pub fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        match kind {
            "Role" | "ClusterRole" => {
                let roles = Arc::make_mut(&mut self.roles);
                if let Some(named) = roles.get_mut(namespace) {
                    named.remove(name);
                    if named.is_empty() {
                        roles.remove(namespace);
                    }
                }
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let bindings = Arc::make_mut(&mut self.bindings);
                if let Some(named) = bindings.get_mut(namespace) {
                    named.remove(name);
                    if named.is_empty() {
                        bindings.remove(namespace);
                    }
                }
            }
            _ => {}
        }
    }
}

/// What a [`Policy`] has for single users: those of the bindings of the whole cluster
/// that name them, which are few of many. It is right for as long as the policy stays as
/// it is, and is forgotten by whoever changes that.
#[derive(Debug, Default)]
pub struct Named(Mutex<HashMap<Identity, Arc<[Arc<Binding>]>>>);

/// So many users are remembered.
const REMEMBERED: usize = 1024;
/// Of whom no more bytes than these are known: who asks about others says who they are,
/// which may be as long as a request.
const LONGEST: usize = 4096;

impl Named {
    /// Those that are remembered, for a policy that is the same.
    pub fn fork(&self) -> Self {
        Named(Mutex::new(self.0.lock().clone()))
    }

    /// Forgets all of them: the policy changes.
    pub fn forget(&self) {
        self.0.lock().clear();
    }

    fn of(&self, policy: &Policy, user: &Identity) -> Arc<[Arc<Binding>]> {
        let mut known = self.0.lock();
        if let Some(bindings) = known.get(user) {
            return bindings.clone();
        }
        let all = policy.bindings.get("").into_iter();
        let all = all.flat_map(BTreeMap::values);
        let own = all.filter(|binding| binding.subject(user).is_some());
        let own: Arc<[Arc<Binding>]> = own.cloned().collect();
        if user.bytes() > LONGEST {
            return own;
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(user.clone(), own.clone());
        own
    }
}

/// A policy as one user meets it, who must be the only one that it is asked about.
#[derive(Debug)]
pub struct Personal<'a> {
    policy: &'a Policy,
    cluster: Arc<[Arc<Binding>]>,
}

impl<'a> Personal<'a> {
    /// The policy for `user`; `named` was made for that policy as it is now.
    pub fn new(policy: &'a Policy, named: &Named, user: &Identity) -> Self {
        // Whom no rule binds nothing need be known about.
        let cluster = if user.is_master() {
            Arc::default()
        } else {
            named.of(policy, user)
        };
        Personal { policy, cluster }
    }
}

impl RoleStore for Personal<'_> {
    fn cluster_bindings(&self) -> impl Iterator<Item = &Binding> {
        self.cluster.iter().map(|binding| &**binding)
    }

    fn bindings(&self, namespace: &str) -> impl Iterator<Item = &Binding> {
        self.policy.bindings(namespace)
    }

    fn cluster_role(&self, name: &str) -> Option<Arc<[Rule]>> {
        self.policy.cluster_role(name)
    }

    fn role(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        self.policy.role(namespace, name)
    }
}

impl RoleStore for Policy {
    fn cluster_bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings("")
    }

    fn bindings(&self, namespace: &str) -> impl Iterator<Item = &Binding> {
        self.bindings
            .get(namespace)
            .into_iter()
            .flat_map(BTreeMap::values)
            .map(|binding| &**binding)
    }

    fn cluster_role(&self, name: &str) -> Option<Arc<[Rule]>> {
        self.role("", name)
    }

    fn role(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        self.roles.get(namespace)?.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_as_long_as_a_request_is_not_remembered() {
        let (policy, named) = (Policy::default(), Named::default());
        let ask = |group: String| {
            let user = Identity::user("alice", [group]);
            Personal::new(&policy, &named, &user);
            named.0.lock().len()
        };
        assert_eq!(ask("g".repeat(LONGEST)), 0);
        assert_eq!(ask("g".to_owned()), 1);
    }
}
