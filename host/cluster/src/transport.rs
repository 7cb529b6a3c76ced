//! One request and its answer, with the errors that every verb shares.

use crate::client;
use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::lease::{LastLook, NotLeader, Passage};
use crate::observer::Observer;
use crate::resource::push_segment;
use crate::status::Status;
use crate::throttle::demanded;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Serialize;
use std::io::ErrorKind;
use std::time::Duration;

/// An ordinary request that is not answered within this time has failed. The API
/// server itself ends them after 60 seconds; waiting longer than half of that
/// holds a unit back for an answer that will hardly come.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");
const IMPERSONATE_GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// Why there is no answer from the API server.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The request could not be written down, for instance because of a name
    /// with characters that no header may have.
    #[error("cannot form the request")]
    Form(#[source] http::Error),
    /// What was to be sent could not be written down.
    #[error("cannot write the body of the request")]
    Body(#[source] serde_json::Error),
    /// Connecting, authenticating or sending failed.
    #[error("cannot reach the api server")]
    Send(#[source] Box<kube::Error>),
    /// The answer broke off.
    #[error("the api server's answer broke off")]
    Receive(#[source] Box<kube::Error>),
    /// No answer in time.
    #[error("the api server gave no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Another replica leads; nothing was sent.
    #[error("nothing was sent")]
    NotLeader(#[from] NotLeader),
    /// There was no answer when the lease came to its end.
    #[error("the lease came to its end before there was an answer")]
    Abandoned,
}

impl TransportError {
    /// Whether the API server may have had the request all the same.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match self {
            Self::Form(_) | Self::Body(_) | Self::NotLeader(_) => false,
            Self::Send(error) => !never_sent(error),
            Self::Receive(_) | Self::TimedOut(_) => true,
            // Nobody waits for it any more: whoever leads next looks at everything anew.
            Self::Abandoned => false,
        }
    }
}

/// Whether there was no connection on which a request could have been sent.
fn never_sent(error: &kube::Error) -> bool {
    let chain = std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| {
        error.source()
    });
    let mut io = chain.filter_map(|error| error.downcast_ref::<std::io::Error>());
    io.any(|error| {
        matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::AddrNotAvailable
        )
    })
}

/// Why a call did not succeed.
#[derive(Debug)]
pub(crate) enum CallError {
    Transport(TransportError),
    /// The API server said no.
    Status(Box<Status>),
}

impl From<TransportError> for CallError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

/// A request that is being written.
pub(crate) struct Call {
    method: Method,
    target: String,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
    /// Whether only the leader may send it.
    fenced: bool,
}

impl Call {
    /// A request that only the leader may send, unless it just reads.
    pub(crate) fn new(method: Method, path: String) -> Self {
        Self {
            fenced: !method.is_safe(),
            method,
            target: path,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path)
    }

    /// Lets every replica send it: it changes nothing, or it is what makes a
    /// leader.
    pub(crate) fn unfenced(mut self) -> Self {
        self.fenced = false;
        self
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, key: &str, value: &str) -> Self {
        self.target
            .push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(key);
        self.target.push('=');
        push_segment(&mut self.target, value);
        self
    }

    /// Says which form of answer is wanted, instead of plain JSON.
    pub(crate) fn accept(mut self, form: &str) -> Self {
        self.headers.push((header::ACCEPT, form.to_owned()));
        self
    }

    pub(crate) fn body(mut self, content_type: &str, body: Vec<u8>) -> Self {
        self.headers
            .push((header::CONTENT_TYPE, content_type.to_owned()));
        self.body = body;
        self
    }

    pub(crate) fn json(self, body: &impl Serialize) -> Self {
        // What has texts for its keys can be written, and nothing else is sent.
        let json = serde_json::to_vec(body).unwrap_or_default();
        self.body("application/json", json)
    }

    /// Sends it on behalf of somebody.
    ///
    /// A ServiceAccount goes without its groups: the API server adds them itself,
    /// and naming them would take the right to impersonate those groups, which is
    /// the right to act as any account in them.
    pub(crate) fn impersonate(mut self, identity: Option<&Identity>) -> Self {
        if let Some(identity) = identity {
            self.headers.push((IMPERSONATE_USER, identity.user.clone()));
            if !identity.is_service_account() {
                let groups = identity.groups.iter();
                self.headers
                    .extend(groups.map(|group| (IMPERSONATE_GROUP, group.clone())));
            }
        }
        self
    }

    /// On whose behalf it is sent, if on somebody else's.
    fn user(&self) -> Option<String> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(name, _)| *name == IMPERSONATE_USER);
        found.map(|(_, user)| user.clone())
    }

    fn into_request(self) -> Result<Request<Body>, http::Error> {
        let mut request = Request::builder().method(self.method).uri(self.target);
        if !self.headers.iter().any(|(name, _)| name == header::ACCEPT) {
            request = request.header(header::ACCEPT, "application/json");
        }
        for (name, value) in self.headers {
            request = request.header(name, HeaderValue::try_from(value)?);
        }
        request.body(Body::from(self.body))
    }
}

impl Cluster {
    /// Sends a call and returns the whole body of a successful answer.
    pub(crate) async fn call(&self, call: Call) -> Result<Bytes, CallError> {
        // hyper asks for the body only of a request that has one.
        debug_assert!(
            !call.fenced || !call.body.is_empty(),
            "a write has to be looked after"
        );
        // Of a follower nothing is sent that changes the cluster, and of a leader
        // nothing stays under way past the end of its lease.
        let passage = match call.fenced {
            true => Some(self.fence.pass().map_err(TransportError::from)?),
            false => None,
        };
        let over = async {
            match &passage {
                Some(passage) => passage.over().await,
                None => std::future::pending().await,
            }
        };
        let exchange = async {
            let last_look = passage.as_ref().and_then(Passage::last_look);
            let response = self.send(call, last_look).await?;
            Ok(collect(response).await?)
        };
        let exchange = tokio::time::timeout(REQUEST_TIMEOUT, exchange);
        tokio::select! {
            // First, so that a process that was stopped does not go on sending.
            biased;
            () = over => Err(TransportError::Abandoned.into()),
            exchanged = exchange => exchanged
                .unwrap_or(Err(TransportError::TimedOut(REQUEST_TIMEOUT).into())),
        }
    }

    /// Sends a call that just reads, and returns a successful answer whose body is
    /// still to come.
    pub(crate) async fn open(&self, call: Call) -> Result<Response<Body>, CallError> {
        debug_assert!(!call.fenced, "a write has to pass the fence");
        self.send(call, None).await
    }

    async fn send(
        &self,
        call: Call,
        last_look: Option<LastLook>,
    ) -> Result<Response<Body>, CallError> {
        let method = call.method.clone();
        let user = call.user();
        let mut request = call.into_request().map_err(TransportError::Form)?;
        if let Some(last_look) = last_look {
            request.extensions_mut().insert(last_look);
        }
        let mut answered = Answered {
            observer: &*self.observer,
            method,
            code: None,
        };
        let response =
            self.client.send(request).await.map_err(|error| {
                match client::was_held_back(&error) {
                    true => NotLeader.into(),
                    false => TransportError::Send(Box::new(error)),
                }
            })?;
        let code = response.status();
        answered.code = Some(code.as_u16());
        drop(answered);
        if code.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let body = collect(response).await?;
        let mut status = Status::parse(code.as_u16(), &body);
        if code == StatusCode::TOO_MANY_REQUESTS {
            let wait = &mut status.details.retry_after_seconds;
            *wait = demanded(&headers, *wait);
            self.throttle
                .wait(user, Duration::from_secs((*wait).into()));
        }
        Err(CallError::Status(Box::new(status)))
    }
}

/// Tells of a request when it is dropped: one that is given up counts too.
struct Answered<'a> {
    observer: &'a dyn Observer,
    method: Method,
    code: Option<u16>,
}

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        self.observer.request(&self.method, self.code);
    }
}

async fn collect(response: Response<Body>) -> Result<Bytes, TransportError> {
    let body = response.into_body().collect().await;
    Ok(body
        .map_err(|error| TransportError::Receive(Box::new(error)))?
        .to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let call = Call::get("/api".into())
            .query("labelSelector", "a in (b,c)")
            .query("limit", "5");
        assert_eq!(
            call.target,
            "/api?labelSelector=a%20in%20%28b%2Cc%29&limit=5"
        );
    }

    #[test]
    fn only_a_plain_user_is_impersonated_with_groups() {
        let person = Identity {
            user: "ann".into(),
            groups: vec!["a".into(), "b".into()],
        };
        let account = Identity::service_account("ns", "name");
        for (identity, user, groups) in [
            (&person, "ann", &["a", "b"][..]),
            (&account, "system:serviceaccount:ns:name", &[]),
        ] {
            let call = Call::get("/api".into()).impersonate(Some(identity));
            let request = call.into_request().unwrap();
            assert_eq!(request.headers()["impersonate-user"], user);
            let sent = request.headers().get_all("impersonate-group");
            assert_eq!(sent.iter().collect::<Vec<_>>(), groups);
        }
    }
}
