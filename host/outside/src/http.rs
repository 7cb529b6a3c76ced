//! Requests to hosts that were granted.

use crate::address::{AddressRefused, Networks, literal};
use crate::resolve::{self, Resolver, with_port};
use crate::rule::{Rule, RuleError, without_query};
use crate::sign::{KeyError, Signer};
use crate::tls::RootsError;
use ::http::header::AUTHORIZATION;
use ::http::{Method, Request, Response, Uri};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use reeve_core::chain;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How large and how slow an exchange may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Bytes of a response's body.
    pub response_bytes: u64,
    /// Time to connect, TLS included.
    pub connect: Duration,
    /// Time from the first try to connect to the last byte of the response.
    pub whole: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            // As much as one call may return in objects.
            response_bytes: 4 << 20,
            // A service that takes longer to accept is down for all purposes.
            connect: Duration::from_secs(10),
            // Storage services answer a create within seconds.
            whole: Duration::from_secs(30),
        }
    }
}

/// Where signers come from.
pub trait Keys: Send + Sync + 'static {
    /// The signer behind a name.
    fn signer<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Signer>, KeyError>>;
}

/// Why a request got no response. Holds no credential, and no query of a URL.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// No grant covers it.
    #[error(
        "{method} {url} is not granted; grant it in Plugin spec.capabilities.http, as narrowly as it can be"
    )]
    NotGranted {
        /// The method.
        method: Method,
        /// The URL.
        url: String,
    },
    /// Grants cover it with other methods.
    #[error(
        "{method} {url} is not granted: what is granted there is {granted}; add the method in Plugin spec.capabilities.http if it is meant"
    )]
    MethodNotGranted {
        /// The method.
        method: Method,
        /// The URL.
        url: String,
        /// The methods that are.
        granted: String,
    },
    /// The URL is malformed or ambiguous.
    #[error(transparent)]
    Url(#[from] RuleError),
    /// An address of the host may not be connected to.
    #[error(transparent)]
    Address(#[from] AddressRefused),
    /// The key with which requests to this host are signed cannot be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The request brings its own credentials where the host signs.
    #[error(
        "{url}: requests under this grant are signed with key `{key}`; leave the header `authorization` out"
    )]
    Signed {
        /// The URL.
        url: String,
        /// Name of the key.
        key: String,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// The client cannot be set up.
    #[error("http cannot be set up: {problem}")]
    Setup {
        /// Why.
        problem: String,
    },
    /// There is no connection.
    #[error("cannot connect to {url}: {problem}")]
    Connect {
        /// The URL.
        url: String,
        /// Why.
        problem: String,
    },
    /// It took too long.
    #[error("{url} did not answer within {} s", limit.as_secs())]
    Timeout {
        /// The URL.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// The response is larger than the limit.
    #[error("{url} returned more than {limit} bytes")]
    TooLarge {
        /// The URL.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// The exchange broke off.
    #[error("the exchange with {url} failed: {problem}")]
    Exchange {
        /// The URL.
        url: String,
        /// Why.
        problem: String,
    },
}

/// Sends requests to hosts that were granted, to addresses that were looked at.
#[derive(Clone)]
pub struct Http {
    inner: Arc<Inner>,
}

struct Inner {
    grants: Vec<Grant>,
    keys: Arc<dyn Keys>,
    resolver: Arc<dyn Resolver>,
    limits: HttpLimits,
}

struct Grant {
    rule: Rule,
    /// Made when it is first needed. Each grant has its own, since connections that
    /// are kept were looked at under that grant.
    client: Mutex<Option<reqwest::Client>>,
}

impl Http {
    /// Requests under these rules, with names from the system's resolver.
    pub fn new(rules: Vec<Rule>, keys: Arc<dyn Keys>, limits: HttpLimits) -> Self {
        Self::resolving(rules, keys, limits, resolve::system())
    }

    /// As [`Http::new`], with names from another resolver.
    pub fn resolving(
        rules: Vec<Rule>,
        keys: Arc<dyn Keys>,
        limits: HttpLimits,
        resolver: Arc<dyn Resolver>,
    ) -> Self {
        let grants = rules.into_iter().map(|rule| Grant {
            rule,
            client: Mutex::default(),
        });
        Self {
            inner: Arc::new(Inner {
                grants: grants.collect(),
                keys,
                resolver,
                limits,
            }),
        }
    }

    fn grant(&self, method: &Method, uri: &Uri) -> Result<&Grant, HttpError> {
        let mut unclear = None;
        let mut with = Vec::new();
        for grant in &self.inner.grants {
            match grant.rule.covers(method, uri) {
                Ok(true) => return Ok(grant),
                Ok(false) if grant.rule.covers_place(uri) => {
                    with.extend(grant.rule.methods.iter().map(Method::as_str));
                }
                Ok(false) => {}
                // To a wider grant the rest of the path does not matter.
                Err(error) => unclear = Some(error),
            }
        }
        if let Some(error) = unclear {
            return Err(error.into());
        }
        // Says what is wrong with the URL even where nothing at all is granted.
        Rule::new(&without_query(uri))?;
        let (method, url) = (method.clone(), without_query(uri));
        with.sort_unstable();
        with.dedup();
        match with.is_empty() {
            true => Err(HttpError::NotGranted { method, url }),
            false => Err(HttpError::MethodNotGranted {
                method,
                url,
                granted: with.join(", "),
            }),
        }
    }

    /// Sends one request and waits for the whole response. Redirects are responses
    /// like others: whoever follows one sends another request, which is looked at in
    /// the same way.
    ///
    /// # Errors
    ///
    /// When it is not granted, or there is no response within the limits. A response
    /// with the status of an error is a response.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let url = without_query(request.uri());
        let limit = self.inner.limits.whole;
        match tokio::time::timeout(limit, self.exchange(request, &url)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::Timeout { url, limit }),
        }
    }

    async fn exchange(
        &self,
        mut request: Request<Bytes>,
        url: &str,
    ) -> Result<Response<Bytes>, HttpError> {
        let grant = self.grant(request.method(), request.uri())?;
        let rule = &grant.rule;
        // The connector asks no resolver for what is an address already.
        if let Some(address) = literal(rule.host()) {
            rule.networks.check(rule.host(), address)?;
        }
        if let Some(key) = &rule.key {
            if request.headers().contains_key(AUTHORIZATION) {
                return Err(HttpError::Signed {
                    url: url.to_owned(),
                    key: key.clone(),
                });
            }
            let signer = self.inner.keys.signer(key).await?;
            signer.sign(&mut request, SystemTime::now());
        }
        let client = self.client(grant)?;
        let request = reqwest::Request::try_from(request).map_err(|error| HttpError::Exchange {
            url: url.to_owned(),
            problem: chain(&error.without_url()),
        })?;
        let sent = client.execute(request).await;
        let mut response = sent.map_err(|error| self.failed(error, url))?;
        let body = self.body(&mut response, url).await?;
        let mut answer = Response::new(body);
        *answer.status_mut() = response.status();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok(answer)
    }

    async fn body(&self, response: &mut reqwest::Response, url: &str) -> Result<Bytes, HttpError> {
        let limit = self.inner.limits.response_bytes;
        let too_large = || HttpError::TooLarge {
            url: url.to_owned(),
            limit,
        };
        if response
            .content_length()
            .is_some_and(|length| length > limit)
        {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    if (body.len() + chunk.len()) as u64 > limit {
                        return Err(too_large());
                    }
                    body.extend_from_slice(&chunk);
                }
                Ok(None) => return Ok(body.freeze()),
                Err(error) => return Err(self.failed(error, url)),
            }
        }
    }

    /// What went wrong, with the reason that our own resolver gave found again.
    fn failed(&self, error: reqwest::Error, url: &str) -> HttpError {
        let error = error.without_url();
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(one) = cause {
            if let Some(refused) = one.downcast_ref::<AddressRefused>() {
                return HttpError::Address(refused.clone());
            }
            cause = one.source();
        }
        let (url, problem) = (url.to_owned(), chain(&error));
        if error.is_timeout() {
            let limit = if error.is_connect() {
                self.inner.limits.connect
            } else {
                self.inner.limits.whole
            };
            HttpError::Timeout { url, limit }
        } else if error.is_connect() {
            HttpError::Connect { url, problem }
        } else {
            HttpError::Exchange { url, problem }
        }
    }

    fn client(&self, grant: &Grant) -> Result<reqwest::Client, HttpError> {
        /// Connections that wait for another request.
        const IDLE: usize = 4;
        /// An idle connection lives no longer than a name should be believed.
        const IDLE_TIME: Duration = Duration::from_secs(30);
        let mut kept = grant.client.lock();
        if let Some(client) = &*kept {
            return Ok(client.clone());
        }
        let resolver = Checked {
            resolver: Arc::clone(&self.inner.resolver),
            networks: grant.rule.networks.clone(),
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(grant.rule.roots.client()?)
            .dns_resolver(Arc::new(resolver))
            .redirect(reqwest::redirect::Policy::none())
            // What the environment says is no grant.
            .no_proxy()
            .user_agent(concat!("reeve/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.inner.limits.connect)
            .pool_max_idle_per_host(IDLE)
            .pool_idle_timeout(IDLE_TIME)
            .build()
            .map_err(|error| HttpError::Setup {
                problem: chain(&error),
            })?;
        *kept = Some(client.clone());
        Ok(client)
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grants = self.inner.grants.iter();
        let rules = grants.map(|grant| grant.rule.to_string());
        f.debug_list().entries(rules).finish()
    }
}

/// Gives the connector no address that may not be connected to. What it is given is
/// what it connects to, so there is no second look-up that could say otherwise.
struct Checked {
    resolver: Arc<dyn Resolver>,
    networks: Networks,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let networks = self.networks.clone();
        let found = self.resolver.resolve(host.clone());
        Box::pin(async move {
            let found = found.await?;
            let allowed = check_all(&networks, &host, &found)?;
            let addresses: Addrs = Box::new(with_port(allowed, 0).into_iter());
            Ok(addresses)
        })
    }
}

/// The addresses that may be connected to; the first refusal if there are none.
pub(crate) fn check_all(
    networks: &Networks,
    host: &str,
    found: &[std::net::IpAddr],
) -> Result<Vec<std::net::IpAddr>, AddressRefused> {
    let mut refused = None;
    let mut allowed = Vec::with_capacity(found.len());
    for address in found {
        match networks.check(host, *address) {
            Ok(()) => allowed.push(*address),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    match refused {
        Some(refused) if allowed.is_empty() => Err(refused),
        _ => Ok(allowed),
    }
}
