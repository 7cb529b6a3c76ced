//! Questions about identity and access: created, answered, forgotten.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::access;
use crate::access::answers::Whom;
use crate::authz::{Access, Attributes};
use crate::field::{Errors, FieldError, Path};
use crate::http::negotiate::{self, Encoding};
use crate::http::response::{self, Answer};
use crate::identity::Identity;
use crate::kinds::edit::{present, text};
use crate::rest::Call;
use crate::status::{About, ApiError};
use crate::tokens;

/// Answers the review in the body of a request.
pub(crate) fn review(call: &Call) -> Result<Answer, ApiError> {
    let whom = whom(call);
    let answers = call.server.rights.answers();
    let known = whom.and_then(|whom| answers.get(whom, &call.body));
    if let Some(known) = known {
        return Ok(response::json_bytes(StatusCode::CREATED, known));
    }
    let question = call.read_as(call.resource.typed())?;
    let answer = answer(call, question)?;
    let Some(whom) = whom else {
        let encoding = call.accepted.encoding;
        return Ok(response::encoded(StatusCode::CREATED, encoding, &answer));
    };
    let json = Bytes::from(response::written(&answer));
    // Who would be warned of his words is to be warned again.
    if call.warnings.lock().is_empty() {
        let rights = &call.server.rights;
        rights.remember(&answers, whom, &call.body, &json);
    }
    Ok(response::json_bytes(StatusCode::CREATED, json))
}

/// Whom a review is about that has the same answer whenever it is asked, while the rules
/// stay the same; none of others.
fn whom(call: &Call) -> Option<Whom<'_>> {
    let is_plain = call.query.is_empty()
        && call.accepted.encoding == Encoding::Json
        && negotiate::content_type(&call.parts.headers) == "application/json";
    if !is_plain {
        return None;
    }
    match &*call.resource.kind {
        "SubjectAccessReview" => Some(Whom::Named),
        "SelfSubjectAccessReview" => Some(Whom::Asker(&call.user)),
        _ => None,
    }
}

/// Answers a review.
fn answer(call: &Call, mut review: Value) -> Result<Value, ApiError> {
    call.resource.check_type(&mut review)?;
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["status"] = match call.resource.kind.as_str() {
        "SelfSubjectReview" => {
            review["metadata"]["creationTimestamp"] = json!(call.server.clock.timestamp());
            json!({"userInfo": user_info(&call.user)})
        }
        "TokenReview" => token(call, &review)?,
        "SelfSubjectAccessReview" => {
            check_access(call, &review)?;
            access(call, &call.user, &review)
        }
        "SubjectAccessReview" => {
            check_access(call, &review)?;
            access(call, &subject(&review), &review)
        }
        "LocalSubjectAccessReview" => {
            review["metadata"]["namespace"] = json!(call.namespace());
            check_access(call, &review)?;
            access(call, &subject(&review), &review)
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

/// Refuses a review that asks nothing, two things at once, or for nobody.
fn check_access(call: &Call, review: &Value) -> Result<(), ApiError> {
    let (spec, path) = (&review["spec"], Path::new("spec"));
    let (resource, other) = (attributes(spec), path_attributes(spec));
    let mut errors = Errors::new();
    if let (Some(_), Some(other)) = (resource, other) {
        let shown = json!({"Path": text(other, "path"), "Verb": text(other, "verb")});
        let why = "cannot be specified in combination with resourceAttributes";
        let path = path.child("nonResourceAttributes");
        errors.push(FieldError::invalid(&path, &shown, why));
    }
    let attributes = path.child("resourceAttributes");
    if resource.is_none() && other.is_none() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid(&attributes, &Value::Null, why));
    }
    let kind = &*call.resource.kind;
    let is_local = kind == "LocalSubjectAccessReview";
    let nobody = text(spec, "user").is_empty() && present(spec, "groups").is_none();
    if kind != "SelfSubjectAccessReview" && nobody {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid_str(&path.child("user"), "", why));
    }
    for field in ["fieldSelector", "labelSelector"] {
        if let Some(selector) = resource.and_then(|resource| resource.get(field)) {
            check_selector(&attributes.child(field), selector, &mut errors);
        }
    }
    check_metadata(&review["metadata"], is_local, &mut errors);
    if is_local {
        let namespace = resource.map(|resource| text(resource, "namespace"));
        if let Some(namespace) = namespace.filter(|namespace| *namespace != call.namespace()) {
            let why = "must match metadata.namespace";
            let path = attributes.child("namespace");
            errors.push(FieldError::invalid_str(&path, namespace, why));
        }
        if let Some(other) = other {
            let shown = json!({"Path": text(other, "path"), "Verb": text(other, "verb")});
            let why = "disallowed on this kind of request";
            let path = path.child("nonResourceAttributes");
            errors.push(FieldError::invalid(&path, &shown, why));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(nameless(call), &errors))
    }
}

/// A selector is told in one of two forms.
fn check_selector(path: &Path<'_>, selector: &Value, errors: &mut Errors) {
    let raw = text(selector, "rawSelector");
    match (raw.is_empty(), present(selector, "requirements").is_none()) {
        (false, false) => {
            let why = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid_str(
                &path.child("rawSelector"),
                raw,
                why,
            ));
        }
        (true, true) => {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(&path.child("requirements"), why));
        }
        _ => {}
    }
}

/// A review has no name and nothing else of an object.
fn check_metadata(metadata: &Value, is_local: bool, errors: &mut Errors) {
    let empty = |name: &str| name == "managedFields" || (is_local && name == "namespace");
    let fields = metadata.as_object().into_iter().flatten();
    // What is written as nothing is not there, as for every field of an object.
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    };
    let mut given = fields.filter(|(name, value)| !empty(name) && !is_nothing(value));
    if given.next().is_some() {
        let except = if is_local {
            " except for namespace"
        } else {
            ""
        };
        let why = format!("must be empty{except}");
        errors.push(FieldError::invalid(&Path::new("metadata"), metadata, why));
    }
}

fn attributes(spec: &Value) -> Option<&Value> {
    let value = spec.get("resourceAttributes");
    value.filter(|value| value.is_object())
}

fn path_attributes(spec: &Value) -> Option<&Value> {
    let value = spec.get("nonResourceAttributes");
    value.filter(|value| value.is_object())
}

/// Whether the subject may do what a review asks that is in order.
fn access(call: &Call, subject: &Identity, review: &Value) -> Value {
    let spec = &review["spec"];
    let allowed = match (attributes(spec), path_attributes(spec)) {
        (Some(resource), _) => {
            let attributes = Attributes {
                verb: text(resource, "verb"),
                group: text(resource, "group"),
                resource: text(resource, "resource"),
                subresource: text(resource, "subresource"),
                namespace: text(resource, "namespace"),
                name: text(resource, "name"),
            };
            access::decide(&call.server, subject, &attributes)
        }
        (None, path) => {
            let path = path.unwrap_or(&Value::Null);
            let (verb, path) = (text(path, "verb"), text(path, "path"));
            access::decide_path(&call.server, subject, verb, path)
        }
    };
    let mut status = json!({"allowed": allowed.is_allowed()});
    let (Access::Allowed(reason) | Access::Denied(reason)) = allowed;
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    status
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
fn subject(review: &Value) -> Identity {
    let spec = &review["spec"];
    let extra = spec["extra"].as_object().into_iter().flatten();
    Identity {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: strings(&spec["groups"]),
        extra: extra
            .map(|(key, values)| (key.clone(), strings(values)))
            .collect(),
    }
}

fn strings(values: &Value) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    values
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn token(call: &Call, review: &Value) -> Result<Value, ApiError> {
    let token = review
        .pointer("/spec/token")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(why));
    }
    let server = &call.server;
    let mut audiences = strings(&review["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences.push(tokens::AUDIENCE.to_owned());
    }
    let now = server.clock.now();
    let found = server
        .tokens
        .identify_for(token, &audiences, &server.store, now);
    Ok(match found {
        Ok((identity, audiences)) => json!({
            "authenticated": true,
            "user": user_info(&identity),
            "audiences": audiences,
        }),
        Err(why) => json!({"user": {}, "error": why.to_string()}),
    })
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
