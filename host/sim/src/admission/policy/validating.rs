//! ValidatingAdmissionPolicies: what requests of clients are held to.
//!
//! Annotations for the audit log are not made.

use serde_json::Value;

use super::matching::Equivalent;
use super::params::{Unusable, params};
use super::{Request, Sort, conditions_hold, each_bound, failed, known_with, scope};
use crate::cel::Outcome;
use crate::kinds::edit::{items, text};
use crate::rest::meta;
use crate::server::Shared;
use crate::status::{About, ApiError};
use crate::store::Range;

const SORT: Sort = Sort {
    policies: "validatingadmissionpolicies.admissionregistration.k8s.io",
    bindings: "validatingadmissionpolicybindings.admissionregistration.k8s.io",
};
/// Whether there are policies that requests are held to.
pub(crate) fn has_validating(server: &Shared) -> bool {
    server.store.any(SORT.bindings, &Range::default())
}

/// The longest message that an expression makes, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;
/// Why a request is refused where its policy does not say.
const INVALID: &str = "Invalid";

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
    let mut found = Findings::default();
    each_bound(request, &SORT, |policy, binding, equivalent| {
        hold(request, policy, binding, equivalent, &mut found);
    });
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

fn refusal(request: &Request<'_>, denied: &Denied) -> ApiError {
    let about = About {
        name: request.name(),
        ..request.resource.about("")
    };
    let why = format!("{} denied request: {}", denied.by, denied.message);
    ApiError::denied(about, denied.reason, &why)
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
    let known = match known_with(request, equivalent, spec, param) {
        Ok(known) => known,
        Err(why) => {
            let why = format!("failed to convert object version: {why}");
            return vec![fault(format!("failed to configure binding: {why}"))];
        }
    };
    match conditions_hold(request, spec, &known) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(why) => return vec![fault(why)],
    }
    let scope = scope(Some(request), spec, &known);
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
                message: message(spec, &known, validation),
            }),
            Err(why) => Some(fault(failed(expression, &why))),
        }
    };
    items(spec, "validations").filter_map(verdict).collect()
}

/// What a validation that does not hold says.
fn message(spec: &Value, known: &[(&'static str, Value)], validation: &Value) -> String {
    let made = match text(validation, "messageExpression") {
        "" => None,
        // What is said does not ask about rights, not by way of variables either.
        expression => scope(None, spec, known).evaluate(expression).ok(),
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
