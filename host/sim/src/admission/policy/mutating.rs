//! MutatingAdmissionPolicies: how requests of clients are changed before they are checked.
//!
//! What they add belongs to nobody. Policies are asked in the order of their names. Where
//! one changes an object, those before it are asked once more that want to be
//! (`reinvocationPolicy: IfNeeded`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::matching::Equivalent;
use super::params::{Unusable, params};
use super::{Request, Sort, conditions_hold, each_bound, failed, known_with, scope, unconverted};
use crate::admission::no_object;
use crate::kinds::edit::{items, text, text_at};
use crate::rest::meta;
use crate::rest::patch::operations;
use crate::server::Shared;
use crate::status::{About, ApiError};
use crate::store::Range;
use crate::typed::SCALE;

const SORT: Sort = Sort {
    policies: "mutatingadmissionpolicies.admissionregistration.k8s.io",
    bindings: "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
};
/// Whether there are policies that may change requests.
pub(crate) fn has_mutating(server: &Shared) -> bool {
    server.store.any(SORT.bindings, &Range::default())
}

/// A policy that cannot be carried out, and why.
struct Refused {
    by: String,
    reason: &'static str,
    why: String,
}

/// One policy with one binding and one parameter.
struct Invocation<'a> {
    spec: Value,
    by: String,
    param: Value,
    equivalent: Equivalent<'a>,
}

impl Invocation<'_> {
    fn fails(&self) -> bool {
        fails(&self.spec)
    }

    fn is_asked_again(&self) -> bool {
        text(&self.spec, "reinvocationPolicy") == "IfNeeded"
    }
}

fn fails(spec: &Value) -> bool {
    text(spec, "failurePolicy") != "Ignore"
}

/// Changes the object of a request as policies say; none where they change nothing.
/// `settle` brings a changed object into the form that objects have, defaults included.
///
/// # Errors
///
/// What the first policy says that cannot be carried out and whose failures count, or what
/// is wrong with the object that one makes.
pub(crate) fn mutate(
    request: &Request<'_>,
    mut settle: impl FnMut(&mut Value) -> Result<(), ApiError>,
) -> Result<Option<Value>, ApiError> {
    let Some(original) = request.object else {
        return Ok(None);
    };
    let (invocations, mut refused) = invocations(request);
    let mut object = original.clone();
    let (mut asked, mut again) = (BTreeSet::new(), BTreeSet::new());
    for is_first in [true, false] {
        for (index, invocation) in invocations.iter().enumerate() {
            if !is_first && !again.contains(&index) {
                continue;
            }
            let before = object.clone();
            let done = invoke(request, invocation, &mut object, &mut settle)?;
            if let Err(why) = done
                && invocation.fails()
            {
                refused.get_or_insert(Refused {
                    by: invocation.by.clone(),
                    reason: "Invalid",
                    why,
                });
            }
            if object != before {
                again.append(&mut asked);
            }
            if invocation.is_asked_again() {
                asked.insert(index);
            }
        }
    }
    match refused {
        Some(refused) => Err(refusal(request, &refused)),
        None => Ok((object != *original).then_some(object)),
    }
}

fn refusal(request: &Request<'_>, refused: &Refused) -> ApiError {
    let about = About {
        name: request.name(),
        ..request.resource.about("")
    };
    let Refused { by, reason, why } = refused;
    ApiError::not_carried_out(about, reason, &format!("{by} denied request: {why}"))
}

/// All that is to be asked, and who cannot be, with the reason, where that counts.
fn invocations<'a>(request: &Request<'a>) -> (Vec<Invocation<'a>>, Option<Refused>) {
    let (mut invocations, mut refused) = (Vec::new(), None);
    each_bound(request, &SORT, |policy, binding, equivalent| {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let (name, to) = (meta::text(policy, "name"), meta::text(binding, "name"));
        let alone = format!("policy '{name}'");
        let by = format!("{alone} with binding '{to}'");
        match params(request, spec, binding) {
            Ok(params) => invocations.extend(params.into_iter().map(|param| Invocation {
                spec: spec.clone(),
                by: by.clone(),
                param,
                equivalent: equivalent.clone(),
            })),
            Err(unusable) if fails(spec) => {
                let (by, why) = match unusable {
                    Unusable::Policy(why) => (alone, format!("failed to configure policy: {why}")),
                    Unusable::Binding(why) => (by, format!("failed to configure binding: {why}")),
                };
                refused.get_or_insert(Refused {
                    by,
                    reason: "Forbidden",
                    why,
                });
            }
            Err(_) => {}
        }
    });
    (invocations, refused)
}

/// Has a policy change an object. The inner error is why it cannot be carried out; its
/// mutations before that one have changed the object.
fn invoke(
    request: &Request<'_>,
    invocation: &Invocation<'_>,
    object: &mut Value,
    settle: &mut impl FnMut(&mut Value) -> Result<(), ApiError>,
) -> Result<Result<(), String>, ApiError> {
    let Invocation {
        spec,
        param,
        equivalent,
        ..
    } = invocation;
    let known = |object: &Value| {
        let request = Request {
            object: Some(object),
            ..*request
        };
        known_with(&request, equivalent, spec, param).map_err(|why| unconverted(&why))
    };
    match conditions_hold(request, spec, &known(object)?) {
        Ok(true) => {}
        Ok(false) => return Ok(Ok(())),
        Err(why) => return Ok(Err(why)),
    }
    let mut fault = Ok(());
    for mutation in items(spec, "mutations") {
        let scope = scope(Some(request), spec, &known(object)?);
        let made = |field: &str| {
            let expression = text_at(mutation, &format!("/{field}/expression"));
            let made = scope.json(expression);
            made.map_err(|why| failed(expression, &why))?
        };
        let seen = equivalent
            .of(Some(object))
            .map_err(|why| unconverted(&why))?;
        let changed = match text(mutation, "patchType") {
            "ApplyConfiguration" => {
                let made = made("applyConfiguration");
                made.and_then(|made| applied(equivalent, &seen, made))
            }
            _ => match made("jsonPatch") {
                Ok(made) => patched(&seen, &made),
                Err(why) => Err(why),
            },
        };
        match changed {
            Ok(changed) if changed == seen => {}
            Ok(changed) if !changed.is_object() => return Err(no_object(&changed)),
            Ok(changed) => {
                let mut changed = request.made(equivalent, changed)?;
                settle(&mut changed)?;
                *object = changed;
            }
            Err(why) => fault = fault.and(Err(why)),
        }
    }
    Ok(fault)
}

/// An object with what a policy applies to it.
fn applied(equivalent: &Equivalent<'_>, object: &Value, mut made: Value) -> Result<Value, String> {
    let typed = equivalent.typed();
    if !made.is_object() {
        return Err("unsupported return type from ApplyConfiguration expression".to_owned());
    }
    let refused =
        |what: &str, why: &dyn std::fmt::Display| format!("error applying patch: {what}: {why}");
    if typed.kind == SCALE.kind && typed.group == SCALE.group {
        // The real server looks for it among the types of the group of what is scaled.
        let why = format!(
            "no corresponding type for {}, Kind={}",
            typed.api_version, typed.kind
        );
        return Err(refused(
            "failed to convert patch object to typed object",
            &why,
        ));
    }
    made["apiVersion"] = typed.api_version.into();
    made["kind"] = typed.kind.into();
    let schema = equivalent.schema();
    reeve_ssa::typed::validate(schema, &made, reeve_ssa::typed::Duplicates::Refused)
        .map_err(|why| refused("failed to convert patch object to typed object", &why))?;
    let atomics = reeve_ssa::typed::atomics(schema, &made);
    if !atomics.is_empty() {
        let paths: Vec<String> = atomics.iter().map(ToString::to_string).collect();
        let why = format!(
            "may not mutate atomic arrays, maps or structs: {}",
            paths.join(", ")
        );
        return Err(refused("invalid ApplyConfiguration", &why));
    }
    reeve_ssa::typed::merge(schema, object, &made)
        .map_err(|why| refused("failed to merge patch", &why))
}

/// An object with a JSON patch of a policy done to it. One whose test fails is not done.
fn patched(object: &Value, made: &Value) -> Result<Value, String> {
    let Some(made) = made.as_array() else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut patched = object.clone();
    for operation in made {
        let path = text(operation, "path");
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let has_parent = patched.pointer(parent).is_some();
        let is_test = text(operation, "op") == "test";
        if is_test && patched.pointer(path).is_none() {
            return Err(format!(
                "JSON Patch: test operation does not apply: is missing path: {path}: missing value"
            ));
        }
        match operations::run(&mut patched, std::slice::from_ref(operation)) {
            Ok(()) => {}
            Err(_) if is_test => return Ok(object.clone()),
            Err(_) => return Err(inapplicable(operation, has_parent)),
        }
    }
    Ok(patched)
}

/// Why an operation cannot be done, in the words of the library that the real server uses.
fn inapplicable(operation: &Value, has_parent: bool) -> String {
    let (op, path) = (text(operation, "op"), text(operation, "path"));
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let why = match op {
        "add" | "remove" if !has_parent => {
            format!("{op} operation does not apply: doc is missing path: {path:?}: missing value")
        }
        "remove" => {
            let key = last(path);
            format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
            )
        }
        "replace" => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        "move" => {
            let key = last(text(operation, "from"));
            format!(
                "error in move for path: '{key}': Unable to remove nonexistent key: {key}: missing value"
            )
        }
        "add" | "copy" => format!("{op} operation does not apply: {path}"),
        other => format!("Unexpected kind: {other}"),
    };
    format!("JSON Patch: {why}")
}
