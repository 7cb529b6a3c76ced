//! Admission policies: what requests of clients are held to, and how they are changed, in
//! CEL.
//!
//! A policy counts where a binding names it. Both say which requests they are about;
//! the policy's expressions are evaluated once for each parameter of the binding. What
//! cannot be evaluated counts as the policy's `failurePolicy` says.

pub(super) mod matching;
mod mutating;
mod params;
mod validating;

use std::sync::Arc;

use serde_json::{Value, json};

use self::matching::{Equivalent, applies};
use crate::access;
use crate::authz::{Access, Attributes};
use crate::cel::rights::{Asking, Rights, Target};
use crate::cel::{Outcome, Scope};
use crate::conversion::{convert, rename_to};
use crate::identity::Identity;
use crate::kinds::edit::{items, present, text, text_at};
use crate::resource::Resource;
use crate::rest::meta;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Range;
use crate::typed::Typed;

pub(crate) use mutating::{has_mutating, mutate};
pub(crate) use validating::{check, has_validating};

const GROUP: &str = "admissionregistration.k8s.io";

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// The kind of what is asked for besides; none where nothing can be.
    fn options(self) -> Option<&'static str> {
        match self {
            Operation::Create => Some("CreateOptions"),
            Operation::Update => Some("UpdateOptions"),
            Operation::Delete => Some("DeleteOptions"),
            Operation::Connect => None,
        }
    }
}

/// A request as policies see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Arc<Shared>,
    pub(crate) resource: &'a Resource,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) user: &'a Identity,
    pub(crate) operation: Operation,
    /// The object as it will be; none when it is deleted.
    pub(crate) object: Option<&'a Value>,
    /// The object as it is; none when it is made.
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry_run: bool,
    /// What the object is where it is none of the resource.
    pub(crate) sent: Option<Sent<'a>>,
}

/// What is sent to a part of an object that is of a kind of its own: a `Scale`, a `Binding`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub(crate) typed: Typed<'a>,
    /// The namespace and the name of the object that it is sent to.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl Request<'_> {
    /// What it is about.
    fn subject(&self) -> &Value {
        self.object.or(self.old).unwrap_or(&Value::Null)
    }

    /// The name of the object.
    pub(super) fn name(&self) -> &str {
        match self.sent {
            Some(sent) => sent.name,
            None => meta::text(self.subject(), "name"),
        }
    }

    /// The namespace of the object: that of a Namespace is itself.
    fn namespace(&self) -> &str {
        match self.sent {
            Some(sent) => sent.namespace,
            None if self.is_of_namespace() => meta::text(self.subject(), "name"),
            None => meta::text(self.subject(), "namespace"),
        }
    }

    /// What was made of the object as `seen`, as what is to be written.
    ///
    /// # Errors
    ///
    /// 500 where a webhook is to say that, and does not.
    pub(super) fn made(&self, seen: &Equivalent<'_>, made: Value) -> Result<Value, ApiError> {
        let mut made = match seen {
            Equivalent::Sent(..) => return Ok(made),
            Equivalent::Other(_) => {
                convert(made, self.resource).map_err(|why| unconverted(&why))?
            }
            Equivalent::Itself(_) => rename_to(made, self.resource),
        };
        made["apiVersion"] = self.resource.api_version.as_str().into();
        Ok(made)
    }

    fn is_of_namespace(&self) -> bool {
        self.resource.plural == "namespaces" && self.resource.group.is_empty()
    }
}

/// Where the policies of one sort are, and their bindings.
struct Sort {
    policies: &'static str,
    bindings: &'static str,
}

/// Shows each policy that a request is held to, with each binding that says so, and as
/// what it sees the request.
fn each_bound<'a>(
    request: &Request<'a>,
    sort: &Sort,
    mut see: impl FnMut(&Value, &Value, &Equivalent<'a>),
) {
    let store = &request.server.store;
    if !store.any(sort.bindings, &Range::default()) || is_exempt(request.resource) {
        return;
    }
    let all = |table: &str| -> Vec<Value> {
        let page = store.list(table, &Range::default(), None);
        let objects = page.map(|page| page.objects).unwrap_or_default();
        objects.iter().map(|object| object.value()).collect()
    };
    let bindings = all(sort.bindings);
    for policy in all(sort.policies) {
        let name = meta::text(&policy, "name");
        let is_bound = |binding: &&Value| text_at(binding, "/spec/policyName") == name;
        let mut bound = bindings.iter().filter(is_bound).peekable();
        let constraints = policy.pointer("/spec/matchConstraints");
        let constraints = constraints.unwrap_or(&Value::Null);
        if bound.peek().is_none() {
            continue;
        }
        let Some(equivalent) = applies(request, constraints) else {
            continue;
        };
        for binding in bound {
            let limits = binding.pointer("/spec/matchResources");
            let mut limits = limits.filter(|limits| limits.is_object()).into_iter();
            if limits.all(|limits| applies(request, limits).is_some()) {
                see(&policy, binding, &equivalent);
            }
        }
    }
}

/// 500: what a request is about cannot be had in the version in which it is to be seen.
pub(super) fn unconverted(why: &str) -> ApiError {
    ApiError::internal_error(why)
}

/// Whether nobody is asked, so that policies can always be changed.
fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural.contains("admissionpolic")
}

fn failed(expression: &str, why: &str) -> String {
    format!("expression '{expression}' resulted in error: {why}")
}

/// Whether the conditions of a policy hold.
///
/// # Errors
///
/// Why the first cannot be evaluated that cannot be, where none says that they do not.
pub(super) fn conditions_hold(
    request: &Request<'_>,
    spec: &Value,
    known: &[(&'static str, Value)],
) -> Result<bool, String> {
    // They are not told of the namespace.
    let nothing = json!({});
    let outside = known.iter().map(|(name, value)| match *name {
        "namespaceObject" => (*name, &nothing),
        name => (name, value),
    });
    let mut outside = Scope::new(outside);
    ask(request, &mut outside);
    let mut fault = None;
    for condition in items(spec, "matchConditions") {
        let expression = text(condition, "expression");
        match outside.evaluate(expression) {
            Ok(Outcome::Bool(true)) => {}
            Ok(_) => return Ok(false),
            Err(why) => drop(fault.get_or_insert_with(|| failed(expression, &why))),
        }
    }
    fault.map_or(Ok(true), Err)
}

/// What expressions of a policy may refer to, its variables among them. They may ask about
/// rights where there is a request of somebody.
fn scope(request: Option<&Request<'_>>, spec: &Value, known: &[(&'static str, Value)]) -> Scope {
    let mut scope = Scope::new(known.iter().map(|(name, value)| (*name, value)));
    if let Some(request) = request {
        ask(request, &mut scope);
    }
    for variable in items(spec, "variables") {
        scope.define(text(variable, "name"), text(variable, "expression"));
    }
    scope
}

/// Lets expressions ask what the caller may do, and others.
fn ask(request: &Request<'_>, scope: &mut Scope) {
    let asking = Asking {
        rights: Arc::new(Roles(request.server.clone())),
        user: request.user.clone(),
    };
    let about = Target {
        group: request.resource.group.clone(),
        resource: request.resource.plural.clone(),
        subresource: request.subresource.to_owned(),
        namespace: request.namespace().to_owned(),
        name: request.name().to_owned(),
    };
    scope.ask(&asking, about);
}

/// The roles of a server, as expressions ask about them.
#[derive(Debug)]
struct Roles(Arc<Shared>);

impl Rights for Roles {
    fn of_resource(&self, user: &Identity, asked: &Attributes<'_>) -> Access {
        access::decide(&self.0, user, asked)
    }

    fn of_path(&self, user: &Identity, verb: &str, path: &str) -> Access {
        access::decide_path(&self.0, user, verb, path)
    }
}

/// What is known of a request, for one parameter of a policy.
fn known_with(
    request: &Request<'_>,
    equivalent: &Equivalent<'_>,
    spec: &Value,
    param: &Value,
) -> Result<Vec<(&'static str, Value)>, String> {
    let mut known = known(request, equivalent)?;
    if present(spec, "paramKind").is_some() {
        known.push(("params", param.clone()));
    }
    Ok(known)
}

/// What expressions may refer to.
///
/// # Errors
///
/// Why a webhook that is to say what an object is like in another version does not.
pub(super) fn known(
    request: &Request<'_>,
    equivalent: &Equivalent<'_>,
) -> Result<Vec<(&'static str, Value)>, String> {
    let namespace = if request.is_of_namespace() {
        None
    } else {
        request.server.store.get("namespaces", request.namespace())
    };
    let (resource, seen) = (request.resource, equivalent.resource());
    let own = Equivalent::own(request);
    let gvk = |seen: &Equivalent<'_>| {
        let Typed { group, kind, .. } = seen.typed();
        json!({"group": group, "version": seen.typed().version(), "kind": kind})
    };
    let gvr = |group: &str, version: &str, resource: &str| json!({"group": group, "version": version, "resource": resource});
    let mut asked = json!({
        "kind": gvk(equivalent),
        "resource": gvr(&seen.group, &seen.version, &seen.plural),
        "subResource": request.subresource,
        "requestKind": gvk(&own),
        "requestResource": gvr(&resource.group, &resource.version, &resource.plural),
        "requestSubResource": request.subresource,
        "name": request.name(),
        "namespace": request.namespace(),
        "operation": request.operation.name(),
        "userInfo": {
            "username": request.user.name,
            "uid": request.user.uid,
            "groups": request.user.groups,
            "extra": request.user.extra,
        },
        "dryRun": request.dry_run,
    });
    if let Some(kind) = request.operation.options() {
        asked["options"] = json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
    }
    // As in JSON, which leaves out what is empty.
    if let Some(fields) = asked.as_object_mut() {
        fields.retain(|_, value| value != "");
    }
    Ok(vec![
        ("object", equivalent.of(request.object)?),
        ("oldObject", equivalent.of(request.old)?),
        ("request", asked),
        (
            "namespaceObject",
            namespace
                .map(|namespace| namespace.value())
                .unwrap_or_default(),
        ),
    ])
}
