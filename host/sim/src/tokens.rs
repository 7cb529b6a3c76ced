//! Bearer tokens: who holds them, and how a service account gets one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::clock::rfc3339;
use crate::field::{Errors, FieldError, Path};
use crate::identity::Identity;
use crate::rest::Call;
use crate::status::{About, ApiError};

/// How long a token lasts when the request does not say.
const DEFAULT_SECONDS: u64 = 3600;
/// The bounds of what a request may say, as with the real server.
const LEAST_SECONDS: u64 = 600;
const MOST_SECONDS: u64 = 1 << 32;

/// The tokens that are known.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<HashMap<String, Grant>>);

#[derive(Debug)]
struct Grant {
    identity: Arc<Identity>,
    expires: Option<SystemTime>,
}

impl Tokens {
    /// Makes `token` mean `identity`, until it expires.
    pub(crate) fn grant(&self, token: String, identity: Identity, expires: Option<SystemTime>) {
        let identity = Arc::new(identity);
        self.0.lock().insert(token, Grant { identity, expires });
    }

    /// Whose token it is.
    pub(crate) fn identify(&self, token: &str, now: SystemTime) -> Option<Identity> {
        let mut tokens = self.0.lock();
        let expires = tokens.get(token)?.expires;
        if expires.is_some_and(|expires| expires <= now) {
            tokens.remove(token);
            return None;
        }
        tokens
            .get(token)
            .map(|grant| Identity::clone(&grant.identity))
    }
}

/// Answers a `TokenRequest` for the service account that the path names.
pub(crate) fn request(call: &Call, mut request: Value) -> Result<Value, ApiError> {
    let account = call.live()?;
    let seconds = request
        .pointer("/spec/expirationSeconds")
        .and_then(Value::as_u64);
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
    check_duration(seconds)?;
    let server = &call.server;
    let expires = server.clock.now() + Duration::from_secs(seconds);
    let token = server.random.token();
    if call.query.dry_run() {
        return Ok(request);
    }
    let mut identity = Identity::service_account(account.namespace(), account.name());
    identity.uid = account.uid().to_owned();
    server.tokens.grant(token.clone(), identity, Some(expires));
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    if request["spec"]["audiences"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        request["spec"]["audiences"] = json!(["https://kubernetes.default.svc"]);
    }
    request["spec"]["expirationSeconds"] = json!(seconds);
    request["spec"]["boundObjectRef"] = request["spec"]["boundObjectRef"].take();
    request["kind"] = json!("TokenRequest");
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["metadata"] = json!({
        "name": account.name(),
        "namespace": account.namespace(),
        "uid": account.uid(),
        "creationTimestamp": server.clock.timestamp(),
    });
    request["status"] = json!({"token": token, "expirationTimestamp": rfc3339(expires)});
    Ok(request)
}

fn check_duration(seconds: u64) -> Result<(), ApiError> {
    let why = if seconds < LEAST_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MOST_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let mut errors = Errors::new();
    let path = Path::new("spec");
    errors.push(FieldError::invalid(
        &path.child("expirationSeconds"),
        &json!(seconds),
        why,
    ));
    let about = About {
        group: "authentication.k8s.io",
        resource: "TokenRequest",
        name: "",
    };
    Err(ApiError::invalid(about, &errors))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn tokens_end_when_they_expire() {
        let tokens = Tokens::default();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        tokens.grant("a".to_owned(), Identity::admin(), Some(at(10)));
        assert_eq!(tokens.identify("a", at(9)), Some(Identity::admin()));
        assert_eq!(tokens.identify("a", at(10)), None);
        assert_eq!(
            tokens.identify("a", at(9)),
            None,
            "an expired token is forgotten"
        );
        assert_eq!(tokens.identify("b", at(0)), None);
    }
}
