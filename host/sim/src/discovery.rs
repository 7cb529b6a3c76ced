//! What is not a resource: health, version, discovery and OpenAPI.

mod aggregated;
mod groups;
mod openapi;
mod versions;

use std::sync::Arc;

use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::json;

use crate::http::query::Query;
use crate::http::response::{self, Answer};
use crate::kinds;
use crate::server::Shared;
use crate::status::ApiError;

pub(crate) use versions::compare_versions;

/// The version that is spoken.
const VERSION: (&str, &str, &str) = ("1", "36", "v1.36.3+reeve");

/// The answer to a question after the server's health, before it is looked at who asks:
/// `/healthz`, `/livez` and `/readyz`, their single checks, and with `verbose` all
/// checks by name.
pub(crate) fn health(segments: &[String], query: &Query) -> Option<Answer> {
    const CHECKS: [&str; 2] = ["ping", "log"];
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let name = match segments.as_slice() {
        [name @ ("healthz" | "livez" | "readyz")] => *name,
        ["healthz" | "livez" | "readyz", check] => {
            let known = CHECKS.contains(check);
            return Some(if known {
                response::text(StatusCode::OK, "ok")
            } else {
                page_not_found()
            });
        }
        _ => return None,
    };
    if !query.has("verbose") {
        return Some(response::text(StatusCode::OK, "ok"));
    }
    let mut text: String = CHECKS.map(|check| format!("[+]{check} ok\n")).concat();
    text.push_str(&format!("{name} check passed\n"));
    Some(response::text(StatusCode::OK, text))
}

/// The answer to a path that is not there.
pub(crate) fn page_not_found() -> Answer {
    response::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The answer to any path that is no resource's.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    segments: &[String],
    parts: &Parts,
    query: &Query,
) -> Result<Answer, ApiError> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Ok(page_not_found());
    }
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let aggregated = aggregated::Wanted::of(&parts.headers);
    let found = match segments.as_slice() {
        [] => Some(response::json(StatusCode::OK, &groups::root(shared))),
        ["version"] => Some(response::json(StatusCode::OK, &version())),
        ["api"] | ["apis"] if aggregated.is_some() => {
            let core = segments == ["api"];
            Some(aggregated::answer(shared, core))
        }
        ["api"] => Some(response::json(StatusCode::OK, &groups::core_versions())),
        ["apis"] => Some(response::json(StatusCode::OK, &groups::groups(shared))),
        ["api", version] => groups::resources(shared, "", version).transpose()?,
        ["apis", group] => groups::group(shared, group),
        ["apis", group, version] => groups::resources(shared, group, version).transpose()?,
        ["openapi", "v2"] => openapi::v2(shared, &parts.headers),
        ["openapi", "v3"] => Some(openapi::v3_index(shared)),
        ["openapi", "v3", "api", version] => {
            openapi::v3(shared, "", version, query, &parts.headers)
        }
        ["openapi", "v3", "apis", group, version] => {
            openapi::v3(shared, group, version, query, &parts.headers)
        }
        _ => None,
    };
    if let ["apis", group, _] = segments.as_slice()
        && found.is_none()
        && kinds::all().any(|kind| kind.group == *group)
    {
        return Err(ApiError::no_such_resource());
    }
    Ok(found.unwrap_or_else(page_not_found))
}

fn version() -> serde_json::Value {
    let (major, minor, git) = VERSION;
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": git,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
