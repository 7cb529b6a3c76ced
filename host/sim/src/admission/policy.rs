//! ValidatingAdmissionPolicies: what requests of clients are held to, in CEL.
//!
//! A policy counts where a binding names it. Both say which requests they are about;
//! the policy's expressions are evaluated once for each parameter of the binding. What
//! cannot be evaluated counts as the policy's `failurePolicy` says. Annotations for the
//! audit log are not made, and nothing can be asked about rights (`authorizer`).

mod matching;

use serde_json::{Value, json};

use self::matching::{Equivalent, applies};
use crate::cel::{Outcome, Scope};
use crate::identity::Identity;
use crate::kinds::edit::{items, present, text, text_at};
use crate::resource::Resource;
use crate::rest::meta;
use crate::selector::LabelSelector;
use crate::server::Shared;
use crate::status::{About, ApiError};
use crate::store::Range;

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
const GROUP: &str = "admissionregistration.k8s.io";
/// The longest message that an expression makes, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;
/// Why a request is refused where its policy does not say.
const INVALID: &str = "Invalid";

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
    fn subject(&self) -> &Value {
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

/// A refusal, by which policy and binding.
struct Denied {
    by: String,
    reason: &'static str,
    message: String,
}

/// What a policy came to for one parameter.
struct Verdict {
    /// None where something could not be evaluated: it is then a refusal unless such
    /// failures are to be ignored.
    reason: Option<&'static str>,
    message: String,
}

/// What all policies have to say.
#[derive(Default)]
struct Findings {
    /// The first refusal.
    denied: Option<Denied>,
    warnings: Vec<String>,
}

impl Findings {
    fn deny(&mut self, by: &str, reason: &'static str, message: String) {
        self.denied.get_or_insert_with(|| Denied {
            by: by.to_owned(),
            reason,
            message,
        });
    }
}

/// Holds a request to all policies. `warn` is told what is only to be warned of.
///
/// # Errors
///
/// The first refusal.
pub(crate) fn check(request: &Request<'_>, mut warn: impl FnMut(&str)) -> Result<(), ApiError> {
    let store = &request.server.store;
    if !store.any(BINDINGS, &Range::default()) || is_exempt(request.resource) {
        return Ok(());
    }
    let all = |table: &str| -> Vec<Value> {
        let page = store.list(table, &Range::default(), None);
        let objects = page.map(|page| page.objects).unwrap_or_default();
        objects.iter().map(|object| object.value()).collect()
    };
    let bindings = all(BINDINGS);
    let mut found = Findings::default();
    for policy in all(POLICIES) {
        let name = meta::text(&policy, "name");
        let is_bound = |binding: &&Value| text_at(binding, "/spec/policyName") == name;
        let mut bound = bindings.iter().filter(is_bound).peekable();
        let constraints = policy.pointer("/spec/matchConstraints");
        let constraints = constraints.unwrap_or(&Value::Null);
        if bound.peek().is_none() {
            continue;
        }
        if let Some(equivalent) = applies(request, constraints) {
            for binding in bound {
                hold(request, &policy, binding, &equivalent, &mut found);
            }
        }
    }
    for warning in &found.warnings {
        warn(warning);
    }
    match found.denied {
        Some(denied) => Err(refusal(request, &denied)),
        None => Ok(()),
    }
}

/// Holds a request that a policy is about to it, as one binding says.
fn hold(
    request: &Request<'_>,
    policy: &Value,
    binding: &Value,
    equivalent: &Equivalent<'_>,
    found: &mut Findings,
) {
    let limits = binding.pointer("/spec/matchResources");
    let limits = limits.filter(|limits| limits.is_object());
    if limits.is_some_and(|limits| applies(request, limits).is_none()) {
        return;
    }
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let fails = text(spec, "failurePolicy") != "Ignore";
    let (name, to) = (meta::text(policy, "name"), meta::text(binding, "name"));
    let alone = format!("ValidatingAdmissionPolicy '{name}'");
    let by = format!("{alone} with binding '{to}'");
    let params = match params(request, spec, binding) {
        Ok(params) => params,
        Err(_) if !fails => return,
        Err(Unusable::Policy(why)) => {
            return found.deny(
                &alone,
                INVALID,
                format!("failed to configure policy: {why}"),
            );
        }
        Err(Unusable::Binding(why)) => {
            return found.deny(&by, INVALID, format!("failed to configure binding: {why}"));
        }
    };
    let verdicts = params
        .iter()
        .flat_map(|param| judge(request, spec, equivalent, param));
    for verdict in verdicts.filter(|verdict| fails || verdict.reason.is_some()) {
        let message = verdict.message;
        for action in items(&binding["spec"], "validationActions") {
            match action.as_str() {
                Some("Deny") => {
                    found.deny(&by, verdict.reason.unwrap_or(INVALID), message.clone());
                }
                Some("Warn") => {
                    let warning = format!("Validation failed for {by}: {message}");
                    found.warnings.push(warning);
                }
                _ => {}
            }
        }
    }
}

/// Whether nobody is asked, so that policies can always be changed.
fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural.contains("admissionpolic")
}

fn refusal(request: &Request<'_>, denied: &Denied) -> ApiError {
    let about = About {
        name: meta::text(request.subject(), "name"),
        ..request.resource.about("")
    };
    let why = format!("{} denied request: {}", denied.by, denied.message);
    ApiError::denied(about, denied.reason, &why)
}

/// Why there are no parameters.
enum Unusable {
    Policy(String),
    Binding(String),
}

/// The parameters for which a policy is evaluated: null where it has none.
fn params(request: &Request<'_>, spec: &Value, binding: &Value) -> Result<Vec<Value>, Unusable> {
    let none = || vec![Value::Null];
    let Some(kind) = present(spec, "paramKind") else {
        return Ok(none());
    };
    let (version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
    let registry = &request.server.registry;
    let Some(resource) = registry.find_kind(version, kind) else {
        let why =
            format!("failed to find resource referenced by paramKind: '{version}, Kind={kind}'");
        return Err(Unusable::Policy(why));
    };
    let Some(reference) = binding
        .pointer("/spec/paramRef")
        .filter(|reference| reference.is_object())
    else {
        return Ok(none());
    };
    let unusable = |why: &str| Unusable::Binding(why.to_owned());
    let given = text(reference, "namespace");
    let namespace = match (resource.namespaced, given, request.namespace()) {
        (false, "", _) => "",
        (false, ..) => {
            let why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(unusable(why));
        }
        (true, "", "") => {
            let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(unusable(why));
        }
        (true, "", own) => own,
        (true, given, _) => given,
    };
    let store = &request.server.store;
    let found: Vec<Value> = match text(reference, "name") {
        "" => {
            let selector = reference.get("selector").unwrap_or(&Value::Null);
            let selector = LabelSelector::from_object(selector);
            let selector = selector.map_err(|why| unusable(&why.to_string()))?;
            let prefix = match namespace {
                "" => String::new(),
                namespace => format!("{namespace}/"),
            };
            let inside = Range {
                prefix: &prefix,
                from: "",
            };
            let page = store.list(&resource.table, &inside, None);
            let objects = page.map(|page| page.objects).unwrap_or_default();
            let objects = objects.iter().map(|object| object.value_as(&resource));
            objects
                .filter(|object| selector.matches_object(object))
                .collect()
        }
        name => {
            let object = store.get(&resource.table, &resource.key(namespace, name));
            let object = object.map(|object| object.value_as(&resource));
            object.into_iter().collect()
        }
    };
    if found.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(unusable(why));
    }
    Ok(found)
}

/// What a policy says of a request, for one parameter: what it refuses.
fn judge(
    request: &Request<'_>,
    spec: &Value,
    equivalent: &Equivalent<'_>,
    param: &Value,
) -> Vec<Verdict> {
    let fault = |message| Verdict {
        reason: None,
        message,
    };
    let mut known = known(request, equivalent);
    if present(spec, "paramKind").is_some() {
        known.push(("params", param.clone()));
    }
    // Conditions are not told of the namespace.
    let nothing = json!({});
    let outside = known.iter().map(|(name, value)| match *name {
        "namespaceObject" => (*name, &nothing),
        name => (name, value),
    });
    let outside = Scope::new(outside);
    let mut scope = Scope::new(known.iter().map(|(name, value)| (*name, value)));
    let mut faults = Vec::new();
    for condition in items(spec, "matchConditions") {
        match outside.evaluate(text(condition, "expression")) {
            Ok(Outcome::Bool(true)) => {}
            Ok(_) => return Vec::new(),
            Err(why) => faults.push(fault(failed(text(condition, "expression"), &why))),
        }
    }
    if !faults.is_empty() {
        faults.truncate(1);
        return faults;
    }
    for variable in items(spec, "variables") {
        scope.define(text(variable, "name"), text(variable, "expression"));
    }
    let verdict = |validation: &Value| {
        let expression = text(validation, "expression");
        match scope.evaluate(expression) {
            Ok(Outcome::Bool(true)) => None,
            Ok(_) => Some(Verdict {
                reason: Some(match text(validation, "reason") {
                    "Unauthorized" => "Unauthorized",
                    "Forbidden" => "Forbidden",
                    "RequestEntityTooLarge" => "RequestEntityTooLarge",
                    _ => INVALID,
                }),
                message: message(&scope, validation),
            }),
            Err(why) => Some(fault(failed(expression, &why))),
        }
    };
    items(spec, "validations").filter_map(verdict).collect()
}

fn failed(expression: &str, why: &str) -> String {
    format!("expression '{expression}' resulted in error: {why}")
}

/// What a validation that does not hold says.
fn message(scope: &Scope, validation: &Value) -> String {
    let made = match text(validation, "messageExpression") {
        "" => None,
        expression => scope.evaluate(expression).ok(),
    };
    if let Some(Outcome::Text(made)) = made {
        let made = made.trim();
        if !made.is_empty() && made.len() <= LONGEST_MESSAGE && !made.contains('\n') {
            return made.to_owned();
        }
    }
    match text(validation, "message").trim() {
        "" => format!(
            "failed expression: {}",
            text(validation, "expression").trim()
        ),
        message => message.to_owned(),
    }
}

/// What expressions may refer to.
fn known(request: &Request<'_>, equivalent: &Equivalent<'_>) -> Vec<(&'static str, Value)> {
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
