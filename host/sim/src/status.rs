//! API errors: the `Status` object that a refused request is answered with, in
//! the real server's words.

use serde_json::{Map, Value, json};

use crate::field::Errors;

/// A refused request. Boxed, since nearly every function here can return one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
pub(crate) struct ApiError(Box<Status>);

/// The parts of a failure `Status`.
#[derive(Debug, Clone, Default, PartialEq)]
struct Status {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Details>,
    /// With what a list can be gone on with all the same.
    next: String,
    /// Whether an object that was not there when it was looked for came in between.
    raced: bool,
}

/// Reasons that webhooks may give.
const REASONS: [&str; 17] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// `Status.details`: what the failure is about.
#[derive(Debug, Clone, Default, PartialEq)]
struct Details {
    name: String,
    group: String,
    kind: String,
    causes: Vec<Value>,
    retry_after: u32,
}

/// A resource or kind with its group, as messages print it: `pods`,
/// `deployments.apps`.
pub(crate) fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

/// What a request was about: the group with its resource or kind, and a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    /// The API group; empty for core.
    pub(crate) group: &'a str,
    /// The plural resource, or the kind where the real server says the kind.
    pub(crate) resource: &'a str,
    /// The object's name; empty when the request names none.
    pub(crate) name: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        qualified(self.group, self.resource)
    }

    fn details(&self) -> Details {
        Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            ..Details::default()
        }
    }
}

/// The sentence of an optimistic locking failure.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        ApiError(Box::new(Status {
            code,
            reason,
            message: message.into(),
            details: None,
            next: String::new(),
            raced: false,
        }))
    }

    fn with(mut self, details: Details) -> Self {
        self.0.details = Some(details);
        self
    }

    /// 404: the object is not there.
    pub(crate) fn not_found(about: About<'_>) -> Self {
        let message = format!("{} {:?} not found", about.qualified(), about.name);
        Self::new(404, "NotFound", message).with(about.details())
    }

    /// 404: the path names no resource that is served.
    pub(crate) fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message).with(Details::default())
    }

    /// 409: an object of that name is there already.
    /// It may be on its way out.
    pub(crate) fn already_exists(about: About<'_>, ending: bool) -> Self {
        let why = if ending {
            "object is being deleted: "
        } else {
            ""
        };
        let message = format!("{why}{} {:?} already exists", about.qualified(), about.name);
        let mut error = Self::new(409, "AlreadyExists", message).with(about.details());
        error.0.raced = true;
        error
    }

    /// Whether this server found an object that was not there when it was looked for. What
    /// others say for a reason of that name is none of it.
    pub(crate) fn is_raced(&self) -> bool {
        self.0.raced
    }

    /// 409: the resource version that was sent is not the current one.
    pub(crate) fn modified(about: About<'_>) -> Self {
        Self::conflict(about, MODIFIED)
    }

    /// 409: the write contradicts the state of the object, and why.
    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            about.qualified(),
            about.name
        );
        Self::new(409, "Conflict", message).with(about.details())
    }

    /// 409: an apply would change fields of other managers; `causes` are the
    /// fields, ready for `details.causes`.
    pub(crate) fn apply_conflict(message: impl Into<String>, causes: Vec<Value>) -> Self {
        Self::new(409, "Conflict", message).with(Details {
            causes,
            ..Details::default()
        })
    }

    /// 422: the object breaks the rules of its kind. `about.resource` is the kind.
    pub(crate) fn invalid(about: About<'_>, errors: &Errors) -> Self {
        let message = errors.message(&about.qualified(), about.name);
        let mut details = about.details();
        details.causes = errors.causes();
        Self::new(422, "Invalid", message).with(details)
    }

    /// 422: a patch cannot be applied to the object as it is.
    pub(crate) fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message).with(Details::default())
    }

    /// 400: the request itself is malformed.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: the caller is not known.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: the caller may not, or nobody may, and why.
    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        let message = if about.resource.is_empty() {
            format!("forbidden: {why}")
        } else if about.name.is_empty() {
            format!("{} is forbidden: {why}", about.qualified())
        } else {
            format!("{} {:?} is forbidden: {why}", about.qualified(), about.name)
        };
        Self::new(403, "Forbidden", message).with(about.details())
    }

    /// A policy does not allow it, for a reason of its own, and why.
    pub(crate) fn denied(about: About<'_>, reason: &'static str, why: &str) -> Self {
        let mut error = Self::forbidden(about, why);
        error.0.reason = reason;
        error.0.code = match reason {
            "Unauthorized" => 401,
            "Forbidden" => 403,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        if let Some(details) = &mut error.0.details {
            details.causes = vec![json!({"message": why})];
        }
        error
    }

    /// 403: a policy that is to change an object cannot be carried out.
    pub(crate) fn not_carried_out(about: About<'_>, reason: &'static str, why: &str) -> Self {
        let mut error = Self::new(403, reason, why.to_owned()).with(about.details());
        if let Some(details) = &mut error.0.details {
            details.causes = vec![json!({"message": why})];
        }
        error
    }

    /// A webhook does not allow it. Reasons that are none of Kubernetes' are left out.
    pub(crate) fn by_webhook(code: u16, reason: &str, message: String) -> Self {
        let reason = REASONS.into_iter().find(|known| *known == reason);
        Self::new(code, reason.unwrap_or_default(), message)
    }

    /// 403 of namespace lifecycle: nothing new in a namespace that is ending.
    pub(crate) fn namespace_terminating(about: About<'_>, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut error = Self::forbidden(about, &why);
        if let Some(details) = &mut error.0.details {
            details.causes = vec![json!({
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            })];
        }
        error
    }

    /// 405: the resource does not know this verb.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with(Details::default())
    }

    /// 406: no media type that the caller accepts can be given.
    /// `known` says that the encoding can be, and only the form cannot.
    pub(crate) fn not_acceptable(known: bool) -> Self {
        const TYPES: &str =
            "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        if known {
            let message = format!("only the following media types are accepted: {TYPES}");
            return Self::new(406, "NotAcceptable", message);
        }
        let message = format!("406: Not Acceptable\n\nAvailable representations: {TYPES}");
        Self::new(406, "NotAcceptable", message).with(Details::default())
    }

    /// 406: the caller accepts nothing that a stream can be given in.
    pub(crate) fn not_acceptable_stream() -> Self {
        let message = "only the following media types are accepted: application/json, application/json;stream=watch, application/vnd.kubernetes.protobuf, application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(406, "NotAcceptable", message)
    }

    /// 410: the resource version is older than the history that is kept.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 410: the version that a list is read at is older than the history that is kept.
    /// The rest of it can be had as it is now, with `token`.
    pub(crate) fn expired_page(token: String) -> Self {
        let mut error = Self::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        );
        error.0.next = token;
        error
    }

    /// 413: the body is longer than the server reads.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 413: a JSON patch of more operations than the server does.
    pub(crate) fn too_many_operations(count: usize, limit: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {count}"
        );
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: the body is in a format that the server does not read here.
    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 415: no such language of patches.
    pub(crate) fn no_such_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(415, "UnsupportedMediaType", message).with(Details::default())
    }

    /// 429: an eviction that a budget does not allow, and why. Where `seconds` are
    /// given, it may be allowed after so many.
    pub(crate) fn would_disrupt(why: &str, seconds: u32) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::new(429, "TooManyRequests", message).with(Details {
            causes: vec![json!({"reason": "DisruptionBudget", "message": why})],
            retry_after: seconds,
            ..Details::default()
        })
    }

    /// 500 with no reason, as the real server answers where it lacks a typed error.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 500 with a reason: something went wrong that should not.
    pub(crate) fn internal_error(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        Self::new(500, "InternalError", message).with(Details {
            causes: vec![json!({"message": why})],
            ..Details::default()
        })
    }

    /// 500: the write cannot be kept, and was not carried out.
    pub(crate) fn unkept() -> Self {
        Self::internal_error(
            "the state folder of the server cannot be written, so nothing was changed; its log says why",
        )
    }

    /// 503: the server does not serve at present.
    pub(crate) fn unavailable() -> Self {
        Self::unavailable_for(1)
    }

    /// 503: the server does not serve for so many seconds.
    pub(crate) fn unavailable_for(seconds: u32) -> Self {
        let message = "the server is currently unable to handle the request";
        Self::new(503, "ServiceUnavailable", message).with(Details {
            retry_after: seconds,
            ..Details::default()
        })
    }

    /// 503: what the server would hand a request on to cannot be reached.
    pub(crate) fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 504: the asked-for resource version lies in the future.
    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", message).with(Details {
            causes: vec![json!({
                "reason": "ResourceVersionTooLarge",
                "message": "Too large resource version",
            })],
            retry_after: 1,
            ..Details::default()
        })
    }

    /// The HTTP status code.
    pub(crate) fn code(&self) -> u16 {
        self.0.code
    }

    /// The `reason`; empty where the real server gives none.
    pub(crate) fn reason(&self) -> &str {
        self.0.reason
    }

    /// Seconds after which to try again, where the answer says so.
    pub(crate) fn retry_after(&self) -> Option<u32> {
        let seconds = self.0.details.as_ref()?.retry_after;
        (seconds > 0).then_some(seconds)
    }

    /// The `Status` object.
    pub(crate) fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.0.message,
            "code": self.0.code,
        });
        if !self.0.reason.is_empty() {
            status["reason"] = json!(self.0.reason);
        }
        if let Some(details) = &self.0.details {
            status["details"] = details.to_value();
        }
        if !self.0.next.is_empty() {
            status["metadata"]["continue"] = json!(self.0.next);
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
        ] {
            if !text.is_empty() {
                map.insert(key.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".to_owned(), json!(self.causes));
        }
        if self.retry_after > 0 {
            map.insert("retryAfterSeconds".to_owned(), json!(self.retry_after));
        }
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: About<'static> = About {
        group: "example.com",
        resource: "widgets",
        name: "a",
    };
    const CONFIG: About<'static> = About {
        group: "",
        resource: "configmaps",
        name: "a",
    };

    fn check(error: &ApiError, code: u16, reason: &str, message: &str) {
        assert_eq!(
            (error.code(), error.reason(), error.to_string().as_str()),
            (code, reason, message)
        );
        assert_eq!(error.to_value()["message"], message);
    }

    #[test]
    fn errors_are_worded_as_the_server_words_them() {
        check(
            &ApiError::not_found(WIDGET),
            404,
            "NotFound",
            "widgets.example.com \"a\" not found",
        );
        check(
            &ApiError::already_exists(CONFIG, false),
            409,
            "AlreadyExists",
            "configmaps \"a\" already exists",
        );
        check(
            &ApiError::modified(CONFIG),
            409,
            "Conflict",
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again",
        );
        check(
            &ApiError::forbidden(About { name: "", ..CONFIG }, "no"),
            403,
            "Forbidden",
            "configmaps is forbidden: no",
        );
    }

    #[test]
    fn details_leave_out_what_is_empty() {
        assert_eq!(
            ApiError::not_found(CONFIG).to_value()["details"],
            json!({"name": "a", "kind": "configmaps"})
        );
        assert_eq!(
            ApiError::no_such_resource().to_value()["details"],
            json!({})
        );
        assert_eq!(ApiError::bad_request("x").to_value().get("details"), None);
        assert_eq!(ApiError::internal("x").to_value().get("reason"), None);
    }
}
