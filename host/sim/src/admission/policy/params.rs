//! The parameters for which the expressions of a policy are evaluated.

use serde_json::Value;

use super::Request;
use crate::kinds::edit::{present, text};
use crate::selector::LabelSelector;
use crate::store::Range;

/// Why there are no parameters.
pub(super) enum Unusable {
    Policy(String),
    Binding(String),
}

/// The parameters for which a policy is evaluated: null where it has none.
pub(super) fn params(
    request: &Request<'_>,
    spec: &Value,
    binding: &Value,
) -> Result<Vec<Value>, Unusable> {
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
    let shown = |object| match resource.shown_now(object) {
        Ok(object) => Ok(object.value_as(&resource)),
        Err(why) => Err(unusable(&why.to_string())),
    };
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
            let mut found = Vec::new();
            for object in objects {
                let object = shown(object)?;
                if selector.matches_object(&object) {
                    found.push(object);
                }
            }
            found
        }
        name => {
            let object = store.get(&resource.table, &resource.key(namespace, name));
            object.map(shown).transpose()?.into_iter().collect()
        }
    };
    if found.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(unusable(why));
    }
    Ok(found)
}
