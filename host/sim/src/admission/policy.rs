//! Admission policies: what requests of clients are held to, and how they are changed, in
//! CEL.
//!
//! A policy counts where a binding names it. Both say which requests they are about;
//! the policy's expressions are evaluated once for each parameter of the binding. What
//! cannot be evaluated counts as the policy's `failurePolicy` says. Nothing can be asked
//! about rights (`authorizer`).

pub(super) mod matching;
mod mutating;
mod params;
mod validating;

use serde_json::{Value, json};

use self::matching::{Equivalent, applies};
use crate::cel::{Outcome, Scope};
use crate::identity::Identity;
use crate::kinds::edit::{items, present, text, text_at};
use crate::resource::Resource;
use crate::rest::meta;
use crate::server::Shared;
use crate::store::Range;

pub(crate) use mutating::{has_mutating, mutate};
pub(crate) use validating::check;

const GROUP: &str = "admissionregistration.k8s.io";

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }

    fn options(self) -> &'static str {
        match self {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        }
    }
}

/// A request as policies see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Shared,
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
}

impl Request<'_> {
    /// What it is about.
    pub(super) fn subject(&self) -> &Value {
        self.object.or(self.old).unwrap_or(&Value::Null)
    }

    /// The namespace of the object: that of a Namespace is itself.
    fn namespace(&self) -> &str {
        if self.is_of_namespace() {
            meta::text(self.subject(), "name")
        } else {
            meta::text(self.subject(), "namespace")
        }
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
    spec: &Value,
    known: &[(&'static str, Value)],
) -> Result<bool, String> {
    // They are not told of the namespace.
    let nothing = json!({});
    let outside = known.iter().map(|(name, value)| match *name {
        "namespaceObject" => (*name, &nothing),
        name => (name, value),
    });
    let outside = Scope::new(outside);
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

/// What expressions of a policy may refer to, its variables among them.
fn scope(spec: &Value, known: &[(&'static str, Value)]) -> Scope {
    let mut scope = Scope::new(known.iter().map(|(name, value)| (*name, value)));
    for variable in items(spec, "variables") {
        scope.define(text(variable, "name"), text(variable, "expression"));
    }
    scope
}

/// What is known of a request, for one parameter of a policy.
fn known_with(
    request: &Request<'_>,
    equivalent: &Equivalent<'_>,
    spec: &Value,
    param: &Value,
) -> Vec<(&'static str, Value)> {
    let mut known = known(request, equivalent);
    if present(spec, "paramKind").is_some() {
        known.push(("params", param.clone()));
    }
    known
}

/// What expressions may refer to.
pub(super) fn known(
    request: &Request<'_>,
    equivalent: &Equivalent<'_>,
) -> Vec<(&'static str, Value)> {
    let namespace = if request.is_of_namespace() {
        None
    } else {
        request.server.store.get("namespaces", request.namespace())
    };
    let (resource, seen) = (request.resource, equivalent.resource());
    let gvk = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let gvr = |group: &str, version: &str, resource: &str| json!({"group": group, "version": version, "resource": resource});
    let mut asked = json!({
        "kind": gvk(&seen.group, &seen.version, &seen.kind),
        "resource": gvr(&seen.group, &seen.version, &seen.plural),
        "subResource": request.subresource,
        "requestKind": gvk(&resource.group, &resource.version, &resource.kind),
        "requestResource": gvr(&resource.group, &resource.version, &resource.plural),
        "requestSubResource": request.subresource,
        "name": meta::text(request.subject(), "name"),
        "namespace": request.namespace(),
        "operation": request.operation.name(),
        "userInfo": {
            "username": request.user.name,
            "uid": request.user.uid,
            "groups": request.user.groups,
            "extra": request.user.extra,
        },
        "dryRun": request.dry_run,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": request.operation.options()},
    });
    // As in JSON, which leaves out what is empty.
    if let Some(fields) = asked.as_object_mut() {
        fields.retain(|_, value| value != "");
    }
    vec![
        ("object", equivalent.of(request.object)),
        ("oldObject", equivalent.of(request.old)),
        ("request", asked),
        (
            "namespaceObject",
            namespace
                .map(|namespace| namespace.value())
                .unwrap_or_default(),
        ),
    ]
}
