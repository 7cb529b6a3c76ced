//! The way of a request: who asks, for what, may they, what is the answer.

mod authenticate;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod response;
pub(crate) mod route;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use self::negotiate::Accepted;
use self::query::Query;
use self::response::Answer;
use self::route::{ResourcePath, Route, Verb};
use crate::access;
use crate::counter;
use crate::discovery;
use crate::faults::Outage;
use crate::identity::Identity;
use crate::resource::Resource;
use crate::rest;
use crate::server::Shared;
use crate::status::ApiError;

/// The longest body that is read, as with the real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// How the server knows who sends a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// It came from inside the process.
    Known(Identity),
    /// It came over a socket and must bring a token.
    Socket,
}

/// Answers one request. Every request goes through here.
pub(crate) async fn handle<B>(shared: &Arc<Shared>, request: Request<B>, caller: Caller) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if shared.faults.outage() != Outage::None {
        return response::refusal(&ApiError::unavailable());
    }
    shared.controllers.ensure_running(shared);
    shared.actors.ensure_running(shared);
    let (parts, body) = request.into_parts();
    let answer = match read(body).await {
        Ok(body) => answer(shared, &parts, body, caller).await,
        Err(error) => Err(error),
    };
    let mut answer = answer.unwrap_or_else(|error| response::refusal(&error));
    if parts.method == Method::HEAD {
        *answer.body_mut() = response::empty();
    }
    answer
}

async fn read<B>(body: B) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(ApiError::too_large(BODY_LIMIT))
        }
        Err(error) => Err(ApiError::bad_request(error.to_string())),
    }
}

async fn answer(
    shared: &Arc<Shared>,
    parts: &Parts,
    body: Bytes,
    caller: Caller,
) -> Result<Answer, ApiError> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let route = Route::parse(parts.uri.path());
    // Whether the server is up is told to anybody.
    if let Route::Other(segments) = &route
        && let Some(answer) = discovery::health(segments)
    {
        return Ok(answer);
    }
    let user = authenticate::authenticate(shared, &parts.headers, caller)?;
    match route {
        Route::Other(segments) => {
            let path = parts.uri.path();
            let verb = parts.method.as_str().to_ascii_lowercase();
            access::authorize_path(shared, &user, &verb, path)?;
            discovery::answer(shared, &segments, parts, &query)
        }
        Route::Resource(path) => {
            let verb = path
                .verb(&parts.method, &query)
                .ok_or_else(ApiError::method_not_allowed)?;
            resource(shared, parts, query, path, verb, user, body).await
        }
    }
}

async fn resource(
    shared: &Arc<Shared>,
    parts: &Parts,
    query: Query,
    path: ResourcePath,
    verb: Verb,
    user: Identity,
    body: Bytes,
) -> Result<Answer, ApiError> {
    let found = shared
        .registry
        .find(&path.group, &path.version, &path.resource);
    count(shared, &path, verb, &query);
    access::authorize(shared, &user, &access::attributes(&path, verb))?;
    let Some(resource) = found else {
        return not_served(shared, &path);
    };
    let accepted = Accepted::parse(&parts.headers)?;
    let call = rest::Call {
        server: shared.clone(),
        resource,
        path,
        query,
        headers: parts.headers.clone(),
        body,
        user,
        accepted,
    };
    rest::dispatch(verb, &call).await
}

fn count(shared: &Shared, path: &ResourcePath, verb: Verb, query: &Query) {
    shared.counter.record(counter::Call {
        verb,
        resource: crate::status::qualified(&path.group, &path.full_resource()),
        dry_run: query.get("dryRun").is_some(),
    });
}

/// A path to a group that is not served is no path at all; in a group that is
/// served, it is a resource that is not.
fn not_served(shared: &Shared, path: &ResourcePath) -> Result<Answer, ApiError> {
    let serves =
        |resource: &Arc<Resource>| resource.group == path.group && resource.version == path.version;
    if shared.registry.all().iter().any(serves) {
        return Err(ApiError::no_such_resource());
    }
    Ok(discovery::page_not_found())
}
