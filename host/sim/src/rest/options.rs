//! The options of lists, watches and deletions.

use std::time::Duration;

use serde_json::Value;

use super::Call;
use crate::field::{Errors, FieldError, Path};
use crate::http::negotiate;
use crate::http::query::{Query, invalid_options};
use crate::status::ApiError;

/// How `resourceVersion` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionMatch {
    /// At that version.
    Exact,
    /// At that version or a later one.
    NotOlderThan,
}

/// The parameters of a list or watch.
#[derive(Debug, Default)]
pub(super) struct ListOptions {
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) token: Option<String>,
    pub(super) version: Option<u64>,
    pub(super) matching: Option<VersionMatch>,
    pub(super) timeout: Option<Duration>,
    pub(super) bookmarks: bool,
    pub(super) initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads and checks the parameters.
    pub(super) fn parse(query: &Query, watch: bool) -> Result<Self, ApiError> {
        let mut errors = Errors::new();
        let forbid = |errors: &mut Errors, field: &str, why: &str| {
            errors.push(FieldError::forbidden(&Path::new(field), why));
        };
        let version = query
            .get("resourceVersion")
            .map(parse_version)
            .transpose()?;
        let initial_events = query
            .get("sendInitialEvents")
            .map(|_| query.flag("sendInitialEvents"));
        let token = query.get("continue").map(str::to_owned);
        let matching = match query.get("resourceVersionMatch") {
            None => None,
            Some("Exact") => Some(VersionMatch::Exact),
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            Some(other) => {
                errors.push(FieldError::not_supported(
                    &Path::new("resourceVersionMatch"),
                    &other.into(),
                    &["Exact", "NotOlderThan", ""],
                ));
                None
            }
        };
        if matching.is_some() && !watch && version.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            forbid(&mut errors, "resourceVersionMatch", why);
        }
        if matching == Some(VersionMatch::Exact) && !watch && version == Some(0) {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            forbid(&mut errors, "resourceVersionMatch", why);
        }
        if matching.is_some() && token.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            forbid(&mut errors, "resourceVersionMatch", why);
        }
        if watch && initial_events.is_some() && matching != Some(VersionMatch::NotOlderThan) {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            forbid(&mut errors, "resourceVersionMatch", why);
        }
        if watch && initial_events.is_none() && matching.is_some() {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            forbid(&mut errors, "resourceVersionMatch", why);
        }
        if !watch && initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            forbid(&mut errors, "sendInitialEvents", why);
        }
        if !errors.is_empty() {
            return Err(invalid_options("ListOptions", &errors));
        }
        if token.is_some() && version.is_some_and(|version| version > 0) {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let positive = |number: Option<i64>| {
            number
                .and_then(|n| u64::try_from(n).ok())
                .filter(|n| *n > 0)
        };
        let limit = positive(query.number("limit")?);
        Ok(ListOptions {
            labels: query.get("labelSelector").map(str::to_owned),
            fields: query.get("fieldSelector").map(str::to_owned),
            limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            token,
            version,
            matching,
            timeout: positive(query.number("timeoutSeconds")?).map(Duration::from_secs),
            bookmarks: query.flag("allowWatchBookmarks"),
            initial_events,
        })
    }
}

/// A resource version that a caller sent.
fn parse_version(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::internal(format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

/// What becomes of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Propagation {
    /// They are deleted after it.
    #[default]
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without their reference to it.
    Orphan,
}

/// How to delete.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DeleteOptions {
    /// What becomes of the dependents.
    pub(crate) propagation: Option<Propagation>,
    /// Only if the object has this UID.
    pub(crate) uid: Option<String>,
    /// Only if the object has this version.
    pub(crate) version: Option<String>,
    /// Only to be tried.
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Reads the body, and where there is none the parameters.
    pub(super) fn parse(call: &Call) -> Result<Self, ApiError> {
        let mut options = DeleteOptions {
            dry_run: call.query.dry_run()?,
            ..DeleteOptions::default()
        };
        let body = if call.body.is_empty() {
            Value::Null
        } else {
            negotiate::parse_body(&call.headers, &call.body, "DeleteOptions")?
        };
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        options.uid = text("/preconditions/uid").map(str::to_owned);
        options.version = text("/preconditions/resourceVersion").map(str::to_owned);
        if body["dryRun"].as_array().is_some_and(|all| !all.is_empty()) {
            options.dry_run = true;
        }
        let policy = text("/propagationPolicy").or_else(|| call.query.get("propagationPolicy"));
        options.propagation = match policy {
            None => orphan_dependents(&body, &call.query),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let mut errors = Errors::new();
                errors.push(FieldError::not_supported(
                    &Path::new("propagationPolicy"),
                    &other.into(),
                    &["Foreground", "Background", "Orphan", "nil"],
                ));
                return Err(invalid_options("DeleteOptions", &errors));
            }
        };
        Ok(options)
    }
}

/// The older way of saying `propagationPolicy`.
fn orphan_dependents(body: &Value, query: &Query) -> Option<Propagation> {
    let orphan = match body.get("orphanDependents").and_then(Value::as_bool) {
        Some(orphan) => orphan,
        None => {
            query.get("orphanDependents")?;
            query.flag("orphanDependents")
        }
    };
    Some(if orphan {
        Propagation::Orphan
    } else {
        Propagation::Background
    })
}
