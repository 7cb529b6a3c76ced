//! Who may do what: RBAC over the stored roles and bindings, asked by requests
//! and by reviews.

pub(crate) mod answers;
mod impersonation;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::authz::{self, Access, Attributes, BindingRefused, Named, Personal, Policy};
use crate::http::route::{ResourcePath, Verb};
use crate::identity::Identity;
use crate::resource::Resource;
use crate::server::Shared;
use crate::status::{About, ApiError};
use crate::store::Object;

use answers::Answers;
use impersonation::LastModes;
pub(crate) use impersonation::{Asked, impersonate};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The roles and bindings of one server, kept up with every write.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    policy: RwLock<Policy>,
    /// Of `policy`. It is read while that is locked for reading, and forgotten while that is
    /// locked for writing.
    named: Named,
    /// Of `policy`, as `named` is.
    answers: Mutex<Arc<Answers>>,
    /// In which way callers acted for others last.
    modes: LastModes,
}

impl Rights {
    /// The same roles and bindings, which go their own way from here.
    pub(crate) fn fork(&self) -> Self {
        let policy = self.policy.read();
        Rights {
            policy: RwLock::new(policy.clone()),
            named: self.named.fork(),
            answers: Mutex::new(self.answers()),
            modes: LastModes::default(),
        }
    }

    /// Begins with what `policy` knows, and shares it until something changes. Says whether
    /// it did: not where there are roles or bindings already.
    pub(crate) fn begin(&self, policy: &Policy) -> bool {
        let mut own = self.policy.write();
        if own.is_empty() {
            own.clone_from(policy);
            self.forget();
            return true;
        }
        false
    }

    /// Asks about one user.
    fn about<T>(&self, user: &Identity, ask: impl FnOnce(&Personal<'_>) -> T) -> T {
        let policy = self.policy.read();
        ask(&Personal::new(&policy, &self.named, user))
    }

    fn change(&self, change: impl FnOnce(&mut Policy)) {
        let mut policy = self.policy.write();
        change(&mut policy);
        self.forget();
    }

    /// Forgets what followed from the policy, which is locked for writing.
    fn forget(&self) {
        self.named.forget();
        *self.answers.lock() = Arc::default();
    }

    /// Takes in a write to a role or binding; others mean nothing here.
    pub(crate) fn committed(&self, resource: &Resource, object: &Object, removed: bool) {
        if resource.group != GROUP {
            return;
        }
        if removed {
            self.change(|policy| {
                policy.remove(&resource.kind, object.namespace(), object.name());
            });
        } else {
            self.put(&resource.kind, &object.value());
        }
    }

    /// Takes in a role or binding.
    pub(crate) fn put(&self, kind: &str, object: &Value) {
        self.change(|policy| policy.put(kind, object));
    }
}

/// What a request to a path asks; `one` is the object that a list or watch is about,
/// where that is one alone.
pub(crate) fn attributes<'a>(
    path: &'a ResourcePath,
    verb: Verb,
    one: Option<&'a str>,
) -> Attributes<'a> {
    Attributes {
        verb: verb.as_str(),
        group: &path.group,
        resource: &path.resource,
        subresource: path.subresource.as_deref().unwrap_or_default(),
        namespace: path.namespace.as_deref().unwrap_or_default(),
        name: one.or(path.name.as_deref()).unwrap_or_default(),
    }
}

/// Whether the user may do something with a resource, and why.
pub(crate) fn decide(shared: &Shared, user: &Identity, asked: &Attributes<'_>) -> Access {
    shared
        .rights
        .about(user, |policy| authz::authorize(policy, user, asked))
}

/// Whether the user may do something with a path that is no resource, and why.
pub(crate) fn decide_path(shared: &Shared, user: &Identity, verb: &str, path: &str) -> Access {
    shared.rights.about(user, |policy| {
        authz::authorize_path(policy, user, verb, path)
    })
}

/// The status of a `SelfSubjectRulesReview`.
pub(crate) fn rules(shared: &Shared, user: &Identity, namespace: &str) -> Value {
    authz::rules_review(&*shared.rights.policy.read(), user, namespace)
}

/// Refuses what the user may not do with a resource.
pub(crate) fn authorize(
    shared: &Shared,
    user: &Identity,
    asked: &Attributes<'_>,
) -> Result<(), ApiError> {
    let permitted = shared
        .rights
        .about(user, |policy| authz::permit(policy, user, asked));
    permitted.map_err(|why| refused(user, asked, &why))
}

/// 403: the user may not do something with a resource, and why.
fn refused(user: &Identity, asked: &Attributes<'_>, why: &str) -> ApiError {
    let about = About {
        group: asked.group,
        resource: asked.resource,
        name: asked.name,
    };
    ApiError::forbidden(about, &with_reason(asked.refusal(user), why))
}

/// Refuses what the user may not do with a path that is no resource.
pub(crate) fn authorize_path(
    shared: &Shared,
    user: &Identity,
    verb: &str,
    path: &str,
) -> Result<(), ApiError> {
    match decide_path(shared, user, verb, path) {
        Access::Allowed(_) => Ok(()),
        Access::Denied(why) => {
            let nothing = About {
                group: "",
                resource: "",
                name: "",
            };
            let refusal = authz::path_refusal(user, verb, path);
            Err(ApiError::forbidden(nothing, &with_reason(refusal, &why)))
        }
    }
}

fn with_reason(refusal: String, why: &str) -> String {
    if why.is_empty() {
        refusal
    } else {
        format!("{refusal}: {why}")
    }
}

/// Refuses a role or binding that would give away what the user does not have.
pub(crate) fn check_escalation(
    shared: &Shared,
    user: &Identity,
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if resource.group != GROUP {
        return Ok(());
    }
    let policy = shared.rights.policy.read();
    let name = crate::rest::meta::text(object, "name");
    if resource.plural.ends_with("bindings") {
        return authz::check_binding(&*policy, user, object, old).map_err(
            |refused| match refused {
                // The real server names the role and the resource of the binding.
                BindingRefused::NoRole { name, .. } => ApiError::not_found(resource.about(&name)),
                BindingRefused::Escalates(why) => ApiError::forbidden(resource.about(name), &why),
            },
        );
    }
    authz::check_role(&*policy, user, object, old)
        .map_err(|why| ApiError::forbidden(resource.about(name), &why))
}

/// Refuses who approves or signs a request for a certificate in the name of a signer for
/// whom they may not.
pub(crate) fn check_signer(
    shared: &Shared,
    user: &Identity,
    resource: &Resource,
    subresource: Option<&str>,
    object: &Value,
    old: &Value,
) -> Result<(), ApiError> {
    const GROUP: &str = "certificates.k8s.io";
    if resource.group != GROUP || resource.plural != "certificatesigningrequests" {
        return Ok(());
    }
    let unchanged = |field: &str| {
        let at = |object: &Value| object["status"].get(field).cloned().unwrap_or_default();
        at(object) == at(old)
    };
    let verb = match subresource {
        Some("approval") => "approve",
        Some("status") if !(unchanged("certificate") && unchanged("conditions")) => "sign",
        _ => return Ok(()),
    };
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    let policy = shared.rights.policy.read();
    let may = [signer, &format!("{domain}/*")].iter().any(|name| {
        let asked = Attributes {
            verb,
            group: GROUP,
            resource: "signers",
            name,
            ..Attributes::default()
        };
        authz::permit(&*policy, user, &asked).is_ok()
    });
    if may {
        return Ok(());
    }
    let name = crate::rest::meta::text(old, "name");
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(ApiError::forbidden(resource.about(name), &why))
}
