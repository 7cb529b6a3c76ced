//! The options of lists, watches and deletions.

use std::time::Duration;

use serde_json::{Value, json};

use super::Call;
use crate::decode::{self, Document};
use crate::field::{Errors, FieldError, Path};
use crate::http::negotiate;
use crate::http::query::{Query, check_dry_run, invalid_options};
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
        let version = query
            .get("resourceVersion")
            .map(parse_version)
            .transpose()
            .map_err(|why| match watch {
                true => ApiError::internal(why),
                false => ApiError::bad_request(format!("invalid resource version: {why}")),
            })?;
        let initial_events = query
            .get("sendInitialEvents")
            .map(|_| query.flag("sendInitialEvents"));
        let token = query.get("continue").map(str::to_owned);
        let asked = query.get("resourceVersionMatch");
        let matching = match asked {
            Some("Exact") => Some(VersionMatch::Exact),
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        let given = Match {
            asked,
            matching,
            continues: token.is_some(),
        };
        if watch {
            given.check_watch(initial_events.is_some(), &mut errors);
        } else {
            let versioned = query.get("resourceVersion").is_some();
            given.check_list(versioned, version == Some(0), &mut errors);
        }
        if !watch && initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden(&Path::new("sendInitialEvents"), why));
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

/// What a request says of how its version is meant.
struct Match<'a> {
    asked: Option<&'a str>,
    matching: Option<VersionMatch>,
    /// Whether it asks for a further page.
    continues: bool,
}

impl Match<'_> {
    const FIELD: Path<'static> = Path::new("resourceVersionMatch");

    fn check_list(&self, versioned: bool, any_version: bool, errors: &mut Errors) {
        if self.asked.is_none() {
            return;
        }
        if !versioned {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&Self::FIELD, why));
        }
        self.check_continues(errors);
        if self.matching.is_none() {
            self.refuse(&["Exact", "NotOlderThan", ""], errors);
        }
        if self.matching == Some(VersionMatch::Exact) && any_version {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&Self::FIELD, why));
        }
    }

    fn check_watch(&self, initial_events: bool, errors: &mut Errors) {
        let fits = self.matching == Some(VersionMatch::NotOlderThan);
        if initial_events && !fits {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(&Self::FIELD, why));
        }
        if self.asked.is_none() {
            return;
        }
        if !initial_events {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&Self::FIELD, why));
        }
        if !fits {
            self.refuse(&["NotOlderThan"], errors);
        }
        self.check_continues(errors);
    }

    fn check_continues(&self, errors: &mut Errors) {
        if self.continues {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&Self::FIELD, why));
        }
    }

    fn refuse(&self, supported: &[&str], errors: &mut Errors) {
        let asked = self.asked.unwrap_or_default();
        errors.push(FieldError::not_supported(
            &Self::FIELD,
            &asked.into(),
            supported,
        ));
    }
}

/// A resource version that a caller sent.
pub(super) fn parse_version(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        )
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
    /// Reads the body, or where there is none the parameters.
    ///
    /// # Errors
    ///
    /// When something has another type than it should: an option that cannot be read
    /// might be what was to hold the deletion back.
    pub(super) fn parse(call: &Call) -> Result<Self, ApiError> {
        let asked = if call.body.is_empty() {
            options_of(&call.query)?
        } else {
            options_in(call)?
        };
        let text = |pointer: &str| asked.pointer(pointer).and_then(Value::as_str);
        let mut errors = Errors::new();
        let policy = text("/propagationPolicy");
        let orphan = asked.get("orphanDependents").and_then(Value::as_bool);
        if let Some(policy) = policy
            && orphan.is_some()
        {
            errors.push(FieldError::invalid_str(
                &Path::new("propagationPolicy"),
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        let stages = asked["dryRun"].as_array().into_iter().flatten();
        let stages: Vec<&str> = stages.filter_map(Value::as_str).collect();
        let propagation = match (policy, orphan) {
            // The older way of saying it.
            (None, Some(true)) => Some(Propagation::Orphan),
            (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
            (Some("Background"), _) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) => Some(Propagation::Orphan),
            (Some(other), _) => {
                errors.push(FieldError::not_supported(
                    &Path::new("propagationPolicy"),
                    &other.into(),
                    &["Foreground", "Background", "Orphan", "nil"],
                ));
                None
            }
        };
        check_dry_run(&stages, &mut errors);
        if !errors.is_empty() {
            return Err(invalid_options("DeleteOptions", &errors));
        }
        Ok(DeleteOptions {
            propagation,
            uid: text("/preconditions/uid").map(str::to_owned),
            version: text("/preconditions/resourceVersion").map(str::to_owned),
            dry_run: !stages.is_empty(),
        })
    }
}

/// The options in the parameters, as a body would have them.
fn options_of(query: &Query) -> Result<Value, ApiError> {
    let mut options = json!({});
    if let Some(seconds) = query.number("gracePeriodSeconds")? {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    if query.has("orphanDependents") {
        options["orphanDependents"] = json!(query.flag("orphanDependents"));
    }
    if query.has("propagationPolicy") {
        options["propagationPolicy"] = json!(query.get("propagationPolicy").unwrap_or_default());
    }
    for precondition in ["uid", "resourceVersion"] {
        if let Some(text) = query.get(precondition) {
            options["preconditions"][precondition] = json!(text);
        }
    }
    let stages: Vec<&str> = query.all("dryRun").collect();
    if !stages.is_empty() {
        options["dryRun"] = json!(stages);
    }
    Ok(options)
}

/// The options in the body, which may say that they are of any version.
fn options_in(call: &Call) -> Result<Value, ApiError> {
    let body = negotiate::parse_body(&call.parts.headers, &call.body, "DeleteOptions").map_err(
        |error| {
            let text = error.to_string();
            let bare = text
                .strip_prefix(
                    "the object provided is unrecognized (must be of type DeleteOptions): ",
                )
                .and_then(|rest| rest.rsplit_once(" ("))
                .map(|(why, _)| why.to_owned());
            bare.map_or(error, ApiError::bad_request)
        },
    )?;
    let text = |field: &str| body[field].as_str().unwrap_or_default();
    let kind = text("kind");
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(ApiError::bad_request(format!(
            "no kind {kind:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            text("apiVersion")
        )));
    }
    let read = decode::builtin("v1", "DeleteOptions", Document::from(body));
    read.map(|read| read.object).map_err(ApiError::bad_request)
}
