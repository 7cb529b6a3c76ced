//! An HTTPS server with one document, which redirects, changes, and may be slow.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Request, Response, StatusCode};
use reeve_test_support::http::{self, Body, Certificate};
use tokio::runtime::Runtime;

/// Between two bytes of a body that never ends: no single read takes long.
const PAUSE: Duration = Duration::from_millis(500);

/// The server. It ends with this.
pub(crate) struct Documents {
    state: Arc<Mutex<State>>,
    port: u16,
    _runtime: Runtime,
}

#[derive(Clone, Debug, Default)]
struct State {
    text: String,
    slow: bool,
    astray: bool,
    hangs_up: bool,
}

impl Documents {
    /// Serves with a certificate.
    pub(crate) fn serve(certificate: &Certificate) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let state = Arc::new(Mutex::new(State {
            text: "one".to_owned(),
            ..State::default()
        }));
        let served = Arc::clone(&state);
        let answers = http::serve(Some(certificate), move |request| {
            let answered = answer(&request, &served);
            async move { answered }
        });
        let port = runtime.block_on(answers)?;
        Ok(Self {
            state,
            port,
            _runtime: runtime,
        })
    }

    /// Where the document is said to be; what is granted is one folder up.
    pub(crate) fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/v1/notes", self.port)
    }

    /// Changes the document.
    pub(crate) fn set(&self, text: &str) {
        locked(&self.state).text = text.to_owned();
    }

    /// Whether the body comes to no end.
    pub(crate) fn be_slow(&self, slow: bool) {
        locked(&self.state).slow = slow;
    }

    /// Whether each connection is for one answer.
    pub(crate) fn hang_up(&self, hangs_up: bool) {
        locked(&self.state).hangs_up = hangs_up;
    }

    /// Whether it redirects to what is not granted.
    pub(crate) fn lead_astray(&self, astray: bool) {
        locked(&self.state).astray = astray;
    }
}

fn locked(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(request: &Request<Bytes>, shared: &Arc<Mutex<State>>) -> Response<Body> {
    let state = locked(shared).clone();
    let tag = format!("\"{}\"", state.text);
    let nothing = || http::whole(String::new());
    let (status, header, body) = match request.uri().path() {
        "/v1/notes" if state.astray => (
            StatusCode::FOUND,
            Some(("location", "/elsewhere".to_owned())),
            nothing(),
        ),
        "/v1/notes" => (
            StatusCode::TEMPORARY_REDIRECT,
            Some(("location", "current".to_owned())),
            nothing(),
        ),
        "/v1/current" if state.slow => {
            let shared = Arc::clone(shared);
            let bytes = stream::repeat(shared).then(async |shared| {
                tokio::time::sleep(PAUSE).await;
                match locked(&shared).slow {
                    true => Ok(Frame::data(Bytes::from_static(b"."))),
                    // What was never whole is nothing.
                    false => Err(io::Error::other("the exchange breaks off")),
                }
            });
            let endless = StreamBody::new(bytes).boxed_unsync();
            (StatusCode::OK, None, endless)
        }
        "/v1/current" => {
            let known = request.headers().get("if-none-match");
            match known.is_some_and(|known| *known == *tag) {
                true => (StatusCode::NOT_MODIFIED, None, nothing()),
                false => (StatusCode::OK, Some(("etag", tag)), http::whole(state.text)),
            }
        }
        "/elsewhere" => (StatusCode::OK, None, http::whole("what nobody was to read")),
        _ => (StatusCode::NOT_FOUND, None, nothing()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some((name, value)) = header
        && let Ok(value) = value.parse()
    {
        response.headers_mut().insert(name, value);
    }
    if state.hangs_up {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}
