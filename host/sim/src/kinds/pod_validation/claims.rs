//! Claims of devices: those of a pod, and which of them a container uses.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{items, text};
use crate::names;

/// Checks the claims of a pod. The answer is their names.
pub(super) fn of_pod<'a>(
    list: &Path<'_>,
    spec: &'a Value,
    errors: &mut Errors,
) -> BTreeSet<&'a str> {
    const SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
    let mut known = BTreeSet::new();
    for (index, claim) in items(spec, "resourceClaims").enumerate() {
        let path = list.index(index);
        let name = text(claim, "name");
        let of_name = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&of_name, ""));
        } else if known.insert(name) {
            for wrong in names::dns1123_label(name) {
                errors.push(FieldError::invalid_str(&of_name, name, wrong));
            }
        } else {
            errors.push(FieldError::duplicate(&of_name, &name.into()));
        }
        let given = SOURCES.map(|source| claim.get(source).and_then(Value::as_str));
        let wrong = match given {
            [Some(_), Some(_)] => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
            [None, None] => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "",
        };
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path, claim, wrong));
        }
        for (source, given) in SOURCES.into_iter().zip(given) {
            let Some(given) = given else { continue };
            for wrong in names::dns1123_subdomain(given) {
                errors.push(FieldError::invalid_str(&path.child(source), given, wrong));
            }
        }
    }
    known
}

/// Checks which claims of its pod somebody uses, each of them or a request in it once.
pub(super) fn validate(list: &Path<'_>, of: &Value, known: &BTreeSet<&str>, errors: &mut Errors) {
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, claim) in items(of, "claims").enumerate() {
        let path = list.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let is_whole = request.is_empty();
        if used.contains(&(name, "")) {
            errors.push(FieldError::duplicate(&path, &name.into()));
        } else {
            if !is_whole {
                for wrong in names::dns1123_label(request) {
                    errors.push(FieldError::invalid_str(
                        &path.child("request"),
                        request,
                        wrong,
                    ));
                }
            }
            if used.contains(&(name, request)) {
                let shown = format!("{name}/{request}");
                errors.push(FieldError::duplicate(&path, &shown.into()));
            } else if is_whole {
                for _ in used.iter().filter(|(other, _)| *other == name) {
                    errors.push(FieldError::duplicate(&path, &name.into()));
                }
            }
            used.insert((name, request));
        }
        if !known.contains(name) {
            let mut error = FieldError::not_found(&path, &name.into());
            let all: Vec<&str> = known.iter().copied().collect();
            error.detail = match all.as_slice() {
                [] => {
                    "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
                }
                all => format!(
                    "must be one of the names in pod.spec.resourceClaims: {}",
                    all.join(", ")
                ),
            };
            errors.push(error);
        }
    }
}
