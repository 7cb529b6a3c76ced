//! Which requests a policy or a binding is about.

use std::sync::Arc;

use reeve_ssa::Schema;
use serde_json::Value;

use super::Request;
use crate::conversion::convert;
use crate::kinds::edit::{items, present, text};
use crate::resource::Resource;
use crate::selector::LabelSelector;
use crate::typed::Typed;

/// The resource as which a request is seen.
#[derive(Debug, Clone)]
pub(in crate::admission) enum Equivalent<'a> {
    /// That of the request.
    Itself(&'a Resource),
    /// The same in another version, which the rules name.
    Other(Arc<Resource>),
    /// That of the request, to a part of which something of another kind is sent.
    Sent(&'a Resource, Typed<'a>),
}

impl<'a> Equivalent<'a> {
    /// As what the request itself came.
    pub(in crate::admission) fn own(request: &Request<'a>) -> Self {
        match request.sent {
            Some(sent) => Equivalent::Sent(request.resource, sent.typed),
            None => Equivalent::Itself(request.resource),
        }
    }

    pub(in crate::admission) fn resource(&self) -> &Resource {
        match self {
            Equivalent::Itself(resource) | Equivalent::Sent(resource, _) => resource,
            Equivalent::Other(resource) => resource,
        }
    }

    /// The type of the object.
    pub(in crate::admission) fn typed(&self) -> Typed<'_> {
        match self {
            Equivalent::Sent(_, typed) => *typed,
            _ => self.resource().typed(),
        }
    }

    /// How objects of this type merge.
    pub(in crate::admission) fn schema(&self) -> &Schema {
        match self {
            Equivalent::Sent(_, typed) => typed.schema(),
            _ => self.resource().schema(),
        }
    }

    /// The object as it is in this version; null for none.
    ///
    /// # Errors
    ///
    /// Why a webhook that is to say that does not.
    pub(in crate::admission) fn of(&self, object: Option<&Value>) -> Result<Value, String> {
        let Some(object) = object else {
            return Ok(Value::Null);
        };
        let typed = self.typed();
        let mut object = object.clone();
        if let Equivalent::Other(resource) = self {
            object = convert(object, resource)?;
        }
        object["apiVersion"] = typed.api_version.into();
        object["kind"] = typed.kind.into();
        Ok(object)
    }
}

/// As what a request is seen by what `criteria` are about; none where they are about
/// others.
pub(in crate::admission) fn applies<'a>(
    request: &Request<'a>,
    criteria: &Value,
) -> Option<Equivalent<'a>> {
    if !in_namespace(request, criteria) || !is_selected(request, criteria) {
        return None;
    }
    let exact = text(criteria, "matchPolicy") == "Exact";
    if by_rules(request, criteria, "excludeResourceRules", exact).is_some() {
        return None;
    }
    if present(criteria, "resourceRules").is_none() {
        return Some(Equivalent::own(request));
    }
    by_rules(request, criteria, "resourceRules", exact)
}

/// Whether the namespace is selected. What is in none is never exempted.
fn in_namespace(request: &Request<'_>, criteria: &Value) -> bool {
    let Some(selector) = selector(criteria, "namespaceSelector") else {
        return true;
    };
    let namespace = request.namespace();
    if namespace.is_empty() {
        return true;
    }
    if request.is_of_namespace() && request.subresource.is_empty() {
        // A Namespace is selected by the labels that it is to have.
        if let Some(object) = request.object {
            return selector.matches_object(object);
        }
    }
    let found = request.server.store.get("namespaces", namespace);
    found.is_some_and(|found| selector.matches_object(&found.value()))
}

/// Whether the object is selected, as it was or as it will be.
fn is_selected(request: &Request<'_>, criteria: &Value) -> bool {
    let Some(selector) = selector(criteria, "objectSelector") else {
        return true;
    };
    let states = [request.object, request.old];
    states
        .into_iter()
        .flatten()
        .any(|object| selector.matches_object(object))
}

/// A selector; none where it selects everything. One that cannot be read was refused.
fn selector(criteria: &Value, field: &str) -> Option<LabelSelector> {
    let selector = LabelSelector::from_object(criteria.get(field)?).ok()?;
    (!selector.is_empty()).then_some(selector)
}

/// The resource that the rules name: the request's own, or the same in another version.
fn by_rules<'a>(
    request: &Request<'a>,
    criteria: &Value,
    field: &str,
    exact: bool,
) -> Option<Equivalent<'a>> {
    let name = request.name();
    let named = |rule: &Value| {
        present(rule, "resourceNames").is_none()
            || items(rule, "resourceNames").any(|given| given == name)
    };
    let names = |seen: &Resource| {
        items(criteria, field).any(|rule| matches(request, rule, seen) && named(rule))
    };
    let own = request.resource;
    if names(own) {
        return Some(Equivalent::own(request));
    }
    if exact {
        return None;
    }
    let mut others = request.server.registry.all().into_iter();
    let is_same = |other: &Resource| other.table == own.table && other.version != own.version;
    let found = others.find(|other| is_same(other) && names(other))?;
    Some(match request.sent {
        // It is of the same kind, to whatever version it is sent.
        Some(_) => Equivalent::own(request),
        None => Equivalent::Other(found),
    })
}

fn matches(request: &Request<'_>, rule: &Value, seen: &Resource) -> bool {
    let has =
        |field: &str, wanted: &str| items(rule, field).any(|given| given == "*" || given == wanted);
    has("operations", request.operation.name())
        && has("apiGroups", &seen.group)
        && has("apiVersions", &seen.version)
        && items(rule, "resources")
            .filter_map(Value::as_str)
            .any(|given| is_resource(given, &request.resource.plural, request.subresource))
        && in_scope(request, text(rule, "scope"))
}

/// Whether `given` names a resource or subresource: `pods`, `pods/status`, `pods/*`,
/// `*/status`; a star alone is no subresource.
fn is_resource(given: &str, resource: &str, subresource: &str) -> bool {
    let (name, sub) = given.split_once('/').unwrap_or((given, ""));
    (name == "*" || name == resource) && (sub == "*" || sub == subresource)
}

/// Namespaces are resources of the cluster.
fn in_scope(request: &Request<'_>, scope: &str) -> bool {
    let namespaced = !request.is_of_namespace() && !request.namespace().is_empty();
    match scope {
        "Namespaced" => namespaced,
        "Cluster" => !namespaced,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_named_with_their_subresources() {
        for (given, resource, subresource, expected) in [
            ("pods", "pods", "", true),
            ("pods", "pods", "status", false),
            ("pods/status", "pods", "status", true),
            ("pods/*", "pods", "status", true),
            ("pods/*", "pods", "", true),
            ("*", "pods", "", true),
            ("*", "pods", "status", false),
            ("*/*", "pods", "status", true),
            ("*/status", "pods", "status", true),
            ("*/status", "pods", "scale", false),
        ] {
            let found = is_resource(given, resource, subresource);
            assert_eq!(found, expected, "{given} {resource}/{subresource}");
        }
    }
}
