//! The way of a request: who asks, for what, may they, what is the answer.

mod authenticate;
mod compress;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod response;
pub(crate) mod route;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use self::negotiate::Accepted;
use self::query::Query;
use self::response::{Answer, BodyError};
use self::route::{ResourcePath, Route, Verb};
use crate::access;
use crate::discovery;
use crate::faults::{self, Asked, Felt, Outage, Outcome, Strike, Watcher, admin};
use crate::identity::Identity;
use crate::resource::Resource;
use crate::rest;
use crate::selector::FieldSelector;
use crate::server::Shared;
use crate::state::copy;
use crate::status::{About, ApiError};

/// The longest body that is read, as with the real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How much more of a body is taken and thrown away before its request is answered.
///
/// Who still sends while a connection or stream is closed may never see the answer.
const DRAINED: usize = 32 * 1024 * 1024;
/// How long that may take.
const DRAINING: Duration = Duration::from_secs(10);
/// How long nothing may come meanwhile.
const SILENCE: Duration = Duration::from_millis(500);
/// Longer bodies may be worked on for seconds.
const LONG: usize = 64 * 1024;
/// How long the head of a request may be, as with the real server.
pub(crate) const HEAD_LIMIT: usize = 1024 * 1024;

/// How the server knows who sends a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// It came from inside the process.
    Known(Arc<Identity>),
    /// It came over a socket and must bring a token.
    Socket,
}

/// Answers one request, or breaks its connection. Every request goes through here.
pub(crate) async fn handle<B>(
    shared: &Arc<Shared>,
    request: Request<B>,
    caller: Caller,
) -> Result<Answer, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let is_sent = matches!(caller, Caller::Socket);
    let (parts, body) = request.into_parts();
    let parts = Arc::new(parts);
    let mut body = pin!(body);
    let answer = if is_sent && head(&parts) > HEAD_LIMIT {
        let code = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        response::text(code, "431 Request Header Fields Too Large")
    } else {
        attend(shared, &parts, body.as_mut(), caller).await?
    };
    // Who has asked whether to send a body is not told to go on, unless part of it is read.
    let is_awaited = parts.headers.contains_key(EXPECT);
    let is_begun = answer.status() == StatusCode::PAYLOAD_TOO_LARGE;
    if is_sent && !body.is_end_stream() && (is_begun || !is_awaited) {
        drain(body).await;
    }
    let mut answer = compress::answer(&parts.headers, answer).await;
    if parts.method == Method::HEAD {
        *answer.body_mut() = response::empty();
    }
    Ok(answer)
}

/// Answers one request, whatever of its body is left.
async fn attend<B>(
    shared: &Arc<Shared>,
    parts: &Arc<Parts>,
    body: Pin<&mut B>,
    caller: Caller,
) -> Result<Answer, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let route = Route::parse(parts.uri.path());
    let is_admin = matches!(&route, Route::Other(segments) if admin::is_path(segments));
    if shared.faults.outage() != Outage::None && !is_admin {
        return Ok(response::refusal(&ApiError::unavailable()));
    }
    shared.controllers.ensure_running(shared);
    shared.actors.ensure_running(shared);
    match answer(shared, parts, route, body, caller).await {
        Ok(answer) => Ok(answer),
        Err(Failure::Refused(error)) => Ok(response::refusal(&error)),
        Err(Failure::Broken(error)) => Err(error),
    }
}

/// About how many bytes the head of a request has.
fn head(parts: &Parts) -> usize {
    let uri = &parts.uri;
    let path = uri.path().len() + uri.query().map_or(0, |query| query.len() + 1);
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    path + headers.sum::<usize>()
}

/// Why a request has no answer of its own.
enum Failure {
    /// It is refused.
    Refused(ApiError),
    /// Its connection breaks.
    Broken(BodyError),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Failure::Refused(error)
    }
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

/// Takes what is left of the body of a request, within limits. Who sends more, or is slower,
/// may not see the answer.
async fn drain<B>(body: Pin<&mut B>)
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut rest = Limited::new(body, DRAINED);
    let all =
        async { while let Ok(Some(Ok(_))) = tokio::time::timeout(SILENCE, rest.frame()).await {} };
    let _ = tokio::time::timeout(DRAINING, all).await;
}

async fn answer<B>(
    shared: &Arc<Shared>,
    parts: &Arc<Parts>,
    route: Route,
    body: Pin<&mut B>,
    caller: Caller,
) -> Result<Answer, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let is_sent = matches!(caller, Caller::Socket);
    let caller = authenticate::authenticate(shared, &parts.headers, caller)?;
    // No fault strikes questions after the server's health.
    if let Route::Other(segments) = &route
        && let Some(answer) = discovery::health(segments, &query)
    {
        // Whether it is up is told to anybody, single checks to those who may see them.
        if segments.len() > 1 {
            let verb = parts.method.as_str().to_ascii_lowercase();
            access::authorize_path(shared, &caller, &verb, parts.uri.path())?;
        }
        return Ok(answer);
    }
    match route {
        Route::Other(segments) => {
            let path = parts.uri.path();
            let verb = parts.method.as_str().to_ascii_lowercase();
            let wanted = access::Asked::Path { verb: &verb, path };
            let user = authenticate::acting_as(shared, &parts.headers, caller, &wanted)?;
            if admin::is_path(&segments) {
                let body = read(body).await?;
                return Ok(admin::answer(shared, &parts.method, &user, &body)?);
            }
            if copy::is_path(&segments) {
                return Ok(copy::answer(shared, &parts.method, &user)?);
            }
            let asked = asked(parts, &user, &query, None, "", "");
            if let Some(answer) = struck(shared, &asked, NOTHING).await?.1 {
                return Ok(answer);
            }
            access::authorize_path(shared, &user, &verb, path)?;
            Ok(discovery::answer(shared, &segments, parts, &query)?)
        }
        Route::Resource(path) => {
            let verb = path
                .verb(&parts.method, &query)
                .ok_or_else(ApiError::method_not_allowed)?;
            let one = one_of_list(&path, verb, &query);
            let wanted = access::Asked::Resource(access::attributes(&path, verb, one.as_deref()));
            let user = authenticate::acting_as(shared, &parts.headers, caller, &wanted)?;
            let request = Asking {
                query,
                path,
                verb,
                one,
                is_sent,
            };
            resource(shared, parts, request, user, body).await
        }
    }
}

/// What a request to a resource asks for.
struct Asking {
    query: Query,
    path: ResourcePath,
    verb: Verb,
    /// The one object that a list or watch is about.
    one: Option<String>,
    /// Whether it came over a socket.
    is_sent: bool,
}

/// The one object that a list or watch is about, where it says so: access to it may be
/// granted by name. The older paths of watches have no such meaning.
fn one_of_list(path: &ResourcePath, verb: Verb, query: &Query) -> Option<String> {
    match verb {
        Verb::List | Verb::Watch if !path.watch => {
            query.get("fieldSelector").and_then(FieldSelector::name_in)
        }
        _ => None,
    }
}

/// The object of a request that names none.
const NOTHING: About<'static> = About {
    group: "",
    resource: "",
    name: "",
};

/// What faults tell requests apart by.
fn asked<'a>(
    parts: &'a Parts,
    user: &'a Identity,
    query: &Query,
    verb: Option<Verb>,
    resource: &'a str,
    namespace: &'a str,
) -> Asked<'a> {
    let agent = parts.headers.get(http::header::USER_AGENT);
    let version = query
        .get("resourceVersion")
        .is_some_and(|version| version != "0");
    Asked {
        verb,
        resource,
        namespace,
        user: &user.name,
        agent: agent
            .and_then(|agent| agent.to_str().ok())
            .unwrap_or_default(),
        versioned: version || query.get("continue").is_some(),
    }
}

/// Lets faults strike: the request may have to wait, and may have its answer then.
async fn struck(
    shared: &Shared,
    asked: &Asked<'_>,
    about: About<'_>,
) -> Result<(Strike, Option<Answer>), Failure> {
    let strike = shared.faults.strike(asked);
    faults::pause(strike.delay).await;
    let watch = asked.verb == Some(Verb::Watch);
    let answer = strike
        .outcome
        .and_then(|outcome| outcome.answer(about, watch));
    let answer = answer.transpose().map_err(Failure::Broken)?;
    Ok((strike, answer))
}

async fn resource<B>(
    shared: &Arc<Shared>,
    parts: &Arc<Parts>,
    asking: Asking,
    user: Arc<Identity>,
    body: Pin<&mut B>,
) -> Result<Answer, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Asking {
        query,
        path,
        verb,
        one,
        is_sent,
    } = asking;
    let found = shared
        .registry
        .find(&path.group, &path.version, &path.resource);
    let is_served = |resource: &Arc<Resource>| {
        let subresource = path.subresource.as_deref();
        subresource.is_none_or(|name| resource.subresource(name).is_some())
    };
    let named = crate::status::qualified(&path.group, &path.full_resource());
    // What anybody can make up is not kept.
    if found.as_ref().is_some_and(is_served) {
        let dry_run = query.get("dryRun").is_some();
        shared.counter.record(verb, &named, dry_run);
    }
    let namespace = path.namespace.as_deref().unwrap_or_default();
    let asked = asked(parts, &user, &query, Some(verb), &named, namespace);
    let about = About {
        group: &path.group,
        resource: &path.resource,
        name: path.name.as_deref().unwrap_or_default(),
    };
    let (strike, answer) = struck(shared, &asked, about).await?;
    if let Some(answer) = answer {
        return Ok(answer);
    }
    let watcher = (verb == Verb::Watch).then(|| Watcher {
        resource: named.clone(),
        namespace: namespace.to_owned(),
        user: user.name.clone(),
        agent: asked.agent.to_owned(),
    });
    access::authorize(
        shared,
        &user,
        &access::attributes(&path, verb, one.as_deref()),
    )?;
    let Some(resource) = found else {
        return Ok(not_served(shared, &path)?);
    };
    let accepted = Accepted::parse(&parts.headers, verb == Verb::Watch)?;
    // Nobody's body is read before it is known that he may ask for this.
    let body = match verb {
        Verb::Get | Verb::List | Verb::Watch => Bytes::new(),
        _ => read(body).await?,
    };
    let is_long = body.len() > LONG;
    let call = rest::Call {
        server: shared.clone(),
        resource,
        path,
        query,
        parts: parts.clone(),
        body,
        user,
        accepted,
        patches: verb == Verb::Patch,
        warnings: Mutex::default(),
    };
    if let Some(Outcome::Lost(delay)) = strike.outcome {
        return lose(call, verb, delay, strike.felt).await;
    }
    let mut answer = if is_long && is_sent {
        apart(rest::dispatch(verb, &call)).await?
    } else {
        rest::dispatch(verb, &call).await?
    };
    if let Some(Outcome::Truncated(after)) = strike.outcome {
        answer = faults::truncate(answer, after, strike.felt);
    }
    if let Some(watcher) = watcher {
        answer = faults::silence(answer, shared.faults.clone(), watcher);
    }
    Ok(answer)
}

/// Carries out what may compute for long, where the runtime has several threads: another one
/// takes over what this one would have had to do, so that nobody else waits for it.
async fn apart<T>(work: impl Future<Output = T>) -> T {
    let runtime = Handle::current();
    match runtime.runtime_flavor() {
        RuntimeFlavor::MultiThread => block_in_place(|| runtime.block_on(work)),
        _ => work.await,
    }
}

/// Carries a request out, at once or later, and breaks its connection before the
/// answer.
async fn lose(
    call: rest::Call,
    verb: Verb,
    delay: Duration,
    felt: Option<Felt>,
) -> Result<Answer, Failure> {
    if let Some(felt) = felt {
        felt.note();
    }
    let carried_out = async move {
        faults::pause(delay).await;
        // Whatever comes of it, nobody hears of it.
        let _ = rest::dispatch(verb, &call).await;
    };
    if delay.is_zero() {
        carried_out.await;
    } else {
        tokio::spawn(carried_out);
    }
    Err(Failure::Broken(faults::reset()))
}

/// A path to a group that is not served is no path at all; in a group that is
/// served, it is a version or a resource that is not.
fn not_served(shared: &Shared, path: &ResourcePath) -> Result<Answer, ApiError> {
    let serves = |resource: &Arc<Resource>| {
        resource.group == path.group && (!resource.is_custom() || resource.version == path.version)
    };
    if shared.registry.all().iter().any(serves) {
        return Err(ApiError::no_such_resource());
    }
    Ok(discovery::page_not_found())
}
