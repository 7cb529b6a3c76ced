//! Questions about identity and access: created, answered, forgotten.

use serde_json::{Map, Value, json};

use crate::access;
use crate::authz::{Access, Attributes};
use crate::field::{Errors, FieldError, Path};
use crate::identity::Identity;
use crate::rest::Call;
use crate::status::{About, ApiError};

/// Answers a review.
pub(crate) fn answer(call: &Call, mut review: Value) -> Result<Value, ApiError> {
    call.resource.check_type(&mut review)?;
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["status"] = match call.resource.kind.as_str() {
        "SelfSubjectReview" => {
            review["metadata"]["creationTimestamp"] = json!(call.server.clock.timestamp());
            json!({"userInfo": user_info(&call.user)})
        }
        "TokenReview" => token(call, &review),
        "SelfSubjectAccessReview" => access(call, &call.user, &review)?,
        "SubjectAccessReview" => access(call, &subject(call, &review)?, &review)?,
        "LocalSubjectAccessReview" => {
            let namespace = review.pointer("/spec/resourceAttributes/namespace");
            if namespace.and_then(Value::as_str) != Some(call.namespace()) {
                let mut errors = Errors::new();
                let spec = Path::new("spec");
                let attributes = spec.child("resourceAttributes");
                errors.push(FieldError::invalid(
                    &attributes.child("namespace"),
                    namespace.unwrap_or(&Value::Null),
                    "must match metadata.namespace",
                ));
                return Err(ApiError::invalid(nameless(call), &errors));
            }
            review["metadata"]["namespace"] = json!(call.namespace());
            access(call, &subject(call, &review)?, &review)?
        }
        "SelfSubjectRulesReview" => {
            let namespace = review.pointer("/spec/namespace").and_then(Value::as_str);
            match namespace {
                Some(namespace) if !namespace.is_empty() => {
                    let rules = access::rules(&call.server, &call.user, namespace);
                    review["spec"] = json!({});
                    rules
                }
                _ => return Err(ApiError::bad_request("no namespace on request")),
            }
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(review)
}

/// Whether the subject may do what the review asks.
fn access(call: &Call, subject: &Identity, review: &Value) -> Result<Value, ApiError> {
    let spec = &review["spec"];
    let field = |value: &Value, field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let resource = spec
        .get("resourceAttributes")
        .filter(|value| value.is_object());
    let path = spec
        .get("nonResourceAttributes")
        .filter(|value| value.is_object());
    let allowed = match (resource, path) {
        (Some(resource), None) => {
            let [verb, group, name_of_resource, subresource, namespace, name] = [
                "verb",
                "group",
                "resource",
                "subresource",
                "namespace",
                "name",
            ]
            .map(|key| field(resource, key));
            let attributes = Attributes {
                verb: &verb,
                group: &group,
                resource: &name_of_resource,
                subresource: &subresource,
                namespace: &namespace,
                name: &name,
            };
            access::decide(&call.server, subject, &attributes)
        }
        (None, Some(path)) => access::decide_path(
            &call.server,
            subject,
            &field(path, "verb"),
            &field(path, "path"),
        ),
        (resource, path) => {
            let mut errors = Errors::new();
            let both = resource.is_some() && path.is_some();
            let (field, value, why) = if both {
                let [path, verb] = ["path", "verb"].map(|key| field(path.unwrap_or(spec), key));
                (
                    "spec.nonResourceAttributes",
                    json!({"Path": path, "Verb": verb}),
                    "cannot be specified in combination with resourceAttributes",
                )
            } else {
                (
                    "spec.resourceAttributes",
                    Value::Null,
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified",
                )
            };
            errors.push(FieldError::invalid(&Path::new(field), &value, why));
            return Err(ApiError::invalid(nameless(call), &errors));
        }
    };
    let mut status = json!({"allowed": allowed.is_allowed()});
    let (Access::Allowed(reason) | Access::Denied(reason)) = allowed;
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    Ok(status)
}

/// What a refused review is called: its group, and nothing more.
fn nameless(call: &Call) -> About<'_> {
    About {
        group: &call.resource.group,
        resource: "",
        name: "",
    }
}

/// The subject that a review is about.
fn subject(call: &Call, review: &Value) -> Result<Identity, ApiError> {
    let spec = &review["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    let subject = Identity {
        name: text("user"),
        uid: text("uid"),
        groups: strings(&spec["groups"]),
        extra: spec["extra"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), strings(values)))
            .collect(),
    };
    if subject.name.is_empty() && subject.groups.is_empty() {
        let mut errors = Errors::new();
        let path = Path::new("spec");
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid_str(&path.child("user"), "", why));
        return Err(ApiError::invalid(nameless(call), &errors));
    }
    Ok(subject)
}

fn strings(values: &Value) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    values
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn token(call: &Call, review: &Value) -> Value {
    let token = review
        .pointer("/spec/token")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let server = &call.server;
    match server
        .tokens
        .identify(token, &server.store, server.clock.now())
    {
        Some(identity) => json!({
            "authenticated": true,
            "user": user_info(&identity),
            "audiences": ["https://kubernetes.default.svc"],
        }),
        None => json!({"user": {}, "error": "[invalid bearer token]"}),
    }
}

fn user_info(user: &Identity) -> Value {
    let mut info = Map::new();
    info.insert("username".to_owned(), json!(user.name));
    if !user.uid.is_empty() {
        info.insert("uid".to_owned(), json!(user.uid));
    }
    info.insert("groups".to_owned(), json!(user.groups));
    if !user.extra.is_empty() {
        info.insert("extra".to_owned(), json!(user.extra));
    }
    Value::Object(info)
}
