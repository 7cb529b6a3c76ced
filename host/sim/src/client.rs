//! Requests from inside the process: a tower service for `kube::Client`.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Request;
use kube::client::Body as ClientBody;

use crate::faults::Outage;
use crate::http::response::{Answer, BodyError};
use crate::http::{self as api, Caller};
use crate::identity::{Identity, service_account_groups};
use crate::server::Shared;

/// A service whose every request is made by one caller.
#[derive(Debug, Clone)]
pub(crate) struct InProcess {
    shared: Arc<Shared>,
    identity: Arc<Identity>,
}

impl InProcess {
    pub(crate) fn new(shared: Arc<Shared>, identity: Identity) -> Self {
        InProcess {
            shared,
            identity: Arc::new(identity),
        }
    }
}

impl tower::Service<Request<ClientBody>> for InProcess {
    type Response = Answer;
    type Error = BodyError;
    type Future = BoxFuture<'static, Result<Answer, BodyError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let shared = self.shared.clone();
        let caller = Caller::Known(self.identity.clone());
        Box::pin(async move {
            if shared.faults.outage() == Outage::Refused {
                let refused =
                    io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
                return Err(refused.into());
            }
            api::handle(&shared, request, caller).await
        })
    }
}

/// The caller that a name and groups mean.
pub(crate) fn identity<G: Into<String>>(
    user: &str,
    groups: impl IntoIterator<Item = G>,
) -> Identity {
    let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
    if groups.is_empty()
        && let Some((namespace, _)) = Identity::parse_service_account(user)
    {
        groups.extend(service_account_groups(namespace));
    }
    Identity::user(user, groups)
}
