//! The objects that are applied.

use reeve_sdk::prelude::*;

use crate::config;
use crate::{ROLE, ROLE_BINDING};

/// The API group of all that RBAC knows.
const GROUP: &str = "rbac.authorization.k8s.io";

/// A RoleBinding to a ClusterRole.
#[output]
pub(crate) struct RoleBinding {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    role_ref: RoleRef,
    subjects: Vec<Subject>,
}

#[output]
struct RoleRef {
    api_group: &'static str,
    kind: &'static str,
    name: &'static str,
}

/// Who gets the rights.
#[output]
pub(crate) struct Subject {
    api_group: &'static str,
    kind: &'static str,
    name: String,
}

impl Subject {
    pub(crate) fn user(name: String) -> Self {
        Self::new("User", name)
    }

    pub(crate) fn group(name: String) -> Self {
        Self::new("Group", name)
    }

    fn new(kind: &'static str, name: String) -> Self {
        Self {
            api_group: GROUP,
            kind,
            name,
        }
    }
}

/// What a RoleBinding binds to cannot be changed: one of ours that binds to something else
/// is made anew.
const ANEW: [(&str, &str); 1] = [("reeve.dev/sync-options", "Force=true")];

/// The binding to the ClusterRole of the same name.
pub(crate) fn role_binding(
    namespace: &str,
    name: &'static str,
    subjects: Vec<Subject>,
) -> RoleBinding {
    let mut metadata: ObjectMeta = ROLE_BINDING.object(name).in_namespace(namespace).into();
    metadata
        .annotations
        .extend(ANEW.map(|(name, value)| (name.to_owned(), value.to_owned())));
    RoleBinding {
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata,
        role_ref: RoleRef {
            api_group: GROUP,
            kind: "ClusterRole",
            name,
        },
        subjects,
    }
}

/// A Role.
#[output]
pub(crate) struct Role<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    rules: Vec<Rule<'a>>,
}

#[output]
struct Rule<'a> {
    api_groups: &'a [String],
    resources: &'a [String],
    resource_names: Option<&'a [String]>,
    verbs: &'a [String],
}

/// The configured Role.
pub(crate) fn role<'a>(namespace: &str, role: &'a config::Role) -> Role<'a> {
    let rule = |rule: &'a config::Rule| Rule {
        api_groups: &rule.api_groups,
        resources: &rule.resources,
        resource_names: Some(&*rule.resource_names).filter(|names| !names.is_empty()),
        verbs: &rule.verbs,
    };
    Role {
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: ROLE.object(&role.name).in_namespace(namespace).into(),
        rules: role.rules.iter().map(rule).collect(),
    }
}
