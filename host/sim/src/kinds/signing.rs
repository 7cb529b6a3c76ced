//! What may be said of requests for certificates: who approves them says nothing else, and
//! who signs them approves none.

use std::collections::BTreeSet;

use serde_json::Value;

use super::edit::{items, items_mut, text};
use crate::field::{Errors, FieldError, Path};

const STATUS: Path<'static> = Path::new("status");
const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
/// What is approved with, by the path `approval` alone.
const VERDICTS: [&str; 2] = [APPROVED, DENIED];
/// What can only be true, and does not go.
const LASTING: [&str; 3] = [APPROVED, DENIED, "Failed"];
const CONDITIONS: &str = "conditions";

/// Puts verdicts back that a write of the status has changed. Such as it adds or takes away
/// are refused later.
pub(super) fn restore_verdicts(request: &mut Value, old: &Value) {
    for verdict in VERDICTS {
        let before: Vec<&Value> = of_type(old, verdict).collect();
        if of_type(request, verdict).count() != before.len() {
            continue;
        }
        let Some(status) = request.get_mut("status") else {
            return;
        };
        let now = items_mut(status, CONDITIONS).filter(|one| text(one, "type") == verdict);
        for (now, before) in now.zip(before) {
            now.clone_from(before);
        }
    }
}

/// What is wrong with the conditions that a write of the status leaves.
pub(super) fn validate_status(request: &Value, old: &Value, errors: &mut Errors) {
    validate(request, old, errors);
    let path = STATUS.child(CONDITIONS);
    for verdict in VERDICTS {
        if of_type(request, verdict).count() > of_type(old, verdict).count() {
            let why = format!("updates may not add a condition of type {verdict:?}");
            errors.push(FieldError::forbidden(&path, why));
        }
    }
}

/// What is wrong with the conditions that an approval leaves.
pub(super) fn validate_approval(_: &str, request: &Value, old: &Value, errors: &mut Errors) {
    validate(request, old, errors);
}

fn validate(request: &Value, old: &Value, errors: &mut Errors) {
    let path = STATUS.child(CONDITIONS);
    // What was let in once may stay.
    let both = VERDICTS.iter().all(|one| of_type(old, one).count() > 0);
    let mut types: BTreeSet<&str> = items(&old["status"], CONDITIONS)
        .map(|one| text(one, "type"))
        .collect();
    let twice = types.len() < items(&old["status"], CONDITIONS).count();
    types.clear();
    for (index, condition) in items(&request["status"], CONDITIONS).enumerate() {
        let path_of_one = path.index(index);
        let name = text(condition, "type");
        if name.is_empty() {
            errors.push(FieldError::required(&path_of_one.child("type"), ""));
        }
        let allowed: &[&str] = match LASTING.contains(&name) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        let status = path_of_one.child("status");
        match text(condition, "status") {
            "" => errors.push(FieldError::required(&status, "")),
            other if !allowed.contains(&other) => {
                let value = &condition["status"];
                errors.push(FieldError::not_supported(&status, value, allowed));
            }
            _ => {}
        }
        let against = match name {
            APPROVED => Some(DENIED),
            DENIED => Some(APPROVED),
            _ => None,
        };
        if !both && against.is_some_and(|against| types.contains(against)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid_str(&path, name, why));
        }
        if !types.insert(name) && !twice {
            let value = &condition["type"];
            errors.push(FieldError::duplicate(&path_of_one.child("type"), value));
        }
    }
    for name in LASTING {
        if of_type(request, name).count() < of_type(old, name).count() {
            let why = format!("updates may not remove a condition of type {name:?}");
            errors.push(FieldError::forbidden(&path, why));
        }
    }
}

/// The conditions of one type.
fn of_type<'v>(request: &'v Value, name: &'v str) -> impl Iterator<Item = &'v Value> {
    items(&request["status"], CONDITIONS).filter(move |one| text(one, "type") == name)
}
