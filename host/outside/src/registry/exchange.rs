//! One question to a registry: who asks, where a redirect leads, how much is read.

use super::{Registry, RegistryError};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use reeve_core::chain;
use reqwest::Url;
use serde_json::Value;
use std::time::Duration;

/// Time to connect, TLS included.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Time in which nothing comes.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// Time of one question, redirects and all bytes included: the largest component at
/// about 100 KB a second.
const WHOLE: Duration = Duration::from_secs(300);

/// Redirects that are followed: to a store of blobs, and there to the nearest copy.
const REDIRECTS: usize = 5;

/// Bytes of an error that are read.
const ERROR_BYTES: u64 = 16 << 10;

/// What proves who asks. Its value is marked as sensitive.
#[derive(Clone)]
pub(super) struct Authorization(pub(super) HeaderValue);

/// A question.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) accept: &'a [&'a str],
    /// Bytes of the answer.
    pub(super) limit: u64,
    /// What is sent, with its media type.
    pub(super) body: Option<(Bytes, &'a str)>,
}

impl Ask<'_> {
    pub(super) fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    pub(super) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            accept: &[],
            limit: ERROR_BYTES,
            body: None,
        }
    }
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Where it came from, without its query.
    pub(super) url: String,
    /// Whether that is the registry itself.
    own: bool,
}

impl Answer {
    /// An answer of somebody else than the registry.
    pub(super) fn of(status: StatusCode, body: Bytes, url: &Url) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body,
            url: shown(url),
            own: false,
        }
    }
}

impl Registry {
    /// Asks, and asks again as somebody if the registry wants that.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, RegistryError> {
        let asked = async {
            let answer = self.follow(&ask).await?;
            if answer.status != StatusCode::UNAUTHORIZED || !answer.own {
                return Ok(answer);
            }
            let authorization = self.authorize(&answer).await?;
            *self.authorization.lock() = Some(authorization);
            self.follow(&ask).await
        };
        let answer = tokio::time::timeout(WHOLE, asked).await.map_err(|_| {
            let seconds = WHOLE.as_secs();
            self.unreachable(format!("{} took more than {seconds} s", shown(&ask.url)))
        })??;
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.denied(&answer)),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(self.unreachable(said(&answer)))
            }
            status if status.is_server_error() => Err(self.unreachable(said(&answer))),
            _ => Ok(answer),
        }
    }

    async fn follow(&self, ask: &Ask<'_>) -> Result<Answer, RegistryError> {
        let mut url = ask.url.clone();
        for _ in 0..=REDIRECTS {
            let own = self.is_own(&url);
            let mut request = self.client.request(ask.method.clone(), url.clone());
            if !ask.accept.is_empty() {
                request = request.header(ACCEPT, ask.accept.join(", "));
            }
            // Nobody else learns it.
            if own && let Some(Authorization(value)) = self.authorization.lock().clone() {
                request = request.header(AUTHORIZATION, value);
            }
            if let Some((body, media_type)) = &ask.body {
                request = request.header(CONTENT_TYPE, *media_type).body(body.clone());
            }
            let mut response = request
                .send()
                .await
                .map_err(|error| self.failed(error, &url))?;
            if !response.status().is_redirection() {
                let limit = match response.status().is_success() {
                    true => ask.limit,
                    false => ERROR_BYTES,
                };
                let body = self.body(&mut response, &url, limit).await?;
                return Ok(Answer {
                    status: response.status(),
                    headers: std::mem::take(response.headers_mut()),
                    body,
                    url: shown(&url),
                    own,
                });
            }
            if !matches!(ask.method, Method::GET | Method::HEAD) {
                let from = shown(&url);
                return Err(self.protocol(format!("{from} redirects an upload")));
            }
            url = self.redirected(&url, response.headers())?;
        }
        let first = shown(&ask.url);
        Err(self.protocol(format!("{first} redirects more than {REDIRECTS} times")))
    }

    /// Where a header leads, never from TLS to without.
    pub(super) fn redirected(&self, from: &Url, headers: &HeaderMap) -> Result<Url, RegistryError> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| from.join(location).ok());
        let to = to
            .filter(|to| to.has_host())
            .ok_or_else(|| self.protocol(format!("{} redirects to what is no URL", shown(from))))?;
        let plain = from.scheme() == "http" && to.scheme() == "http";
        if to.scheme() != "https" && !plain {
            let (from, to) = (shown(from), shown(&to));
            return Err(self.protocol(format!("{from} redirects to {to}, which is without TLS")));
        }
        Ok(to)
    }

    pub(super) async fn body(
        &self,
        response: &mut reqwest::Response,
        url: &Url,
        limit: u64,
    ) -> Result<Bytes, RegistryError> {
        let too_large = || RegistryError::TooLarge {
            image: self.name.clone(),
            url: shown(url),
            limit,
        };
        let failed = !response.status().is_success();
        let announced = response.content_length();
        if announced.is_some_and(|length| length > limit) && !failed {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        loop {
            let chunk = response.chunk().await;
            match chunk.map_err(|error| self.failed(error, url))? {
                Some(chunk) if (body.len() + chunk.len()) as u64 > limit => {
                    // Of an error, what has come is enough.
                    return match failed {
                        true => Ok(body.freeze()),
                        false => Err(too_large()),
                    };
                }
                Some(chunk) => body.extend_from_slice(&chunk),
                None => return Ok(body.freeze()),
            }
        }
    }

    /// Whether a URL is of the registry itself.
    pub(super) fn is_own(&self, url: &Url) -> bool {
        let origin = |url: &Url| {
            let host = url.host_str().map(str::to_owned);
            (url.scheme().to_owned(), host, url.port_or_known_default())
        };
        origin(url) == origin(&self.base)
    }

    pub(super) fn failed(&self, error: reqwest::Error, url: &Url) -> RegistryError {
        let problem = chain(&error.without_url());
        self.unreachable(format!("{}: {problem}", shown(url)))
    }

    pub(super) fn unreachable(&self, problem: String) -> RegistryError {
        RegistryError::Unreachable {
            image: self.name.clone(),
            problem,
        }
    }

    pub(super) fn protocol(&self, problem: String) -> RegistryError {
        RegistryError::Protocol {
            image: self.name.clone(),
            problem,
        }
    }

    pub(super) fn unexpected(&self, answer: &Answer) -> RegistryError {
        self.protocol(said(answer))
    }

    pub(super) fn denied(&self, answer: &Answer) -> RegistryError {
        RegistryError::Denied {
            image: self.name.clone(),
            who: match &self.login {
                Some(login) => format!("the login `{}`", login.username),
                None => "requests without a login".to_owned(),
            },
            problem: said(answer),
        }
    }
}

/// What an answer says, in the registry's own code and nothing else of its text: who
/// writes that is a stranger.
fn said(answer: &Answer) -> String {
    let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let code = body
        .as_ref()
        .and_then(|body| body.pointer("/errors/0/code"));
    let code = code.and_then(Value::as_str).filter(|code| {
        let plain = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
        code.len() <= 64 && code.bytes().all(plain)
    });
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    format!("{} answers {}{code}", answer.url, answer.status.as_u16())
}

/// A URL without what may hold a credential.
pub(super) fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}"));
    let port = port.unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}
