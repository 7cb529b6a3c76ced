//! Bearer tokens: who holds them, and how a service account gets one.

mod kept;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::admission::policy::Operation;
use crate::clock::rfc3339;
use crate::field::{Errors, FieldError, Path, quoted};
use crate::identity::Identity;
use crate::kinds::edit::text;
use crate::kinds::token_lifetime;
use crate::rest::Call;
use crate::state::{Entry, Journal, Unkept};
use crate::status::{About, ApiError};
use crate::store::Store;
use crate::typed::TOKEN_REQUEST;

/// How long a token lasts when the request does not say.
const DEFAULT_SECONDS: i64 = 3600;

/// For whom tokens are that do not say: this server, which takes no others.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Whose life a token ends with: an object by table, key and UID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The table of the object.
    pub(crate) table: &'static str,
    /// Its key in there.
    pub(crate) key: String,
    /// Its UID: another object of that name is not meant.
    pub(crate) uid: String,
}

impl Bound {
    fn is_there(&self, store: &Store) -> bool {
        store
            .get(self.table, &self.key)
            .is_some_and(|object| object.uid() == self.uid)
    }
}

/// The tokens that are known.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    grants: Mutex<Grants>,
    /// Where tokens are kept before anybody has them, where they are.
    journal: OnceLock<Arc<Journal>>,
}

#[derive(Debug, Default)]
struct Grants {
    tokens: HashMap<String, Grant>,
    /// At how many those that have ended are looked for again.
    sweep: usize,
}

#[derive(Debug)]
struct Grant {
    identity: Arc<Identity>,
    expires: Option<SystemTime>,
    bound: Vec<Bound>,
    /// For whom it is; none says this server.
    audiences: Vec<String>,
}

/// Why a token means nobody. Prints as the server's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoToken {
    /// It is not known, or holds no longer.
    #[error("invalid bearer token")]
    Unknown,
    /// It is for others.
    #[error(
        "[invalid bearer token, token audiences {} is invalid for the target audiences {}]",
        listed(own),
        listed(wanted)
    )]
    ForOthers {
        /// For whom it is.
        own: Vec<String>,
        /// For whom it was to be.
        wanted: Vec<String>,
    },
}

/// As Go prints a slice of quoted texts.
fn listed(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(" "))
}

impl Grant {
    fn holds(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }

    /// Those of the audiences that it is for.
    fn among(&self, wanted: &[String]) -> Result<Vec<String>, NoToken> {
        let own = match self.audiences.as_slice() {
            [] => vec![AUDIENCE.to_owned()],
            own => own.to_vec(),
        };
        let known: HashSet<&String> = own.iter().collect();
        let both = wanted.iter().filter(|one| known.contains(one)).cloned();
        let both: Vec<String> = both.collect();
        if both.is_empty() {
            let wanted = wanted.to_vec();
            return Err(NoToken::ForOthers { own, wanted });
        }
        Ok(both)
    }
}

/// With fewer tokens than this, nobody looks for those that have ended.
const SWEEP: usize = 256;

impl Tokens {
    /// Makes `token` mean `identity` to these `audiences` (to this server, where there are
    /// none), until it expires or one of the objects is gone that it is `bound` to. `now` says which of the others have expired: those are
    /// forgotten from time to time, so that they are never many more than the rest.
    ///
    /// # Errors
    ///
    /// When it cannot be kept; it then means nothing.
    pub(crate) fn grant(
        &self,
        token: String,
        identity: Identity,
        expires: Option<SystemTime>,
        bound: Vec<Bound>,
        audiences: Vec<String>,
        now: SystemTime,
    ) -> Result<(), Unkept> {
        let mut grants = self.grants.lock();
        if grants.tokens.len() >= grants.sweep.max(SWEEP) {
            grants.tokens.retain(|_, grant| grant.holds(now));
            grants.sweep = 2 * grants.tokens.len();
        }
        let grant = Grant {
            identity: Arc::new(identity),
            expires,
            bound,
            audiences,
        };
        if let Some(journal) = self.journal.get() {
            let grant = &kept::text(&token, &grant);
            journal.append(&Entry::Token { grant })?;
        }
        grants.tokens.insert(token, grant);
        Ok(())
    }

    /// Whose token it is that somebody brings to this server.
    pub(crate) fn identify(&self, token: &str, store: &Store, now: SystemTime) -> Option<Identity> {
        let here = [AUDIENCE.to_owned()];
        let (identity, _) = self.identify_for(token, &here, store, now).ok()?;
        Some(identity)
    }

    /// Whose token it is, and for which of these audiences it is.
    pub(crate) fn identify_for(
        &self,
        token: &str,
        audiences: &[String],
        store: &Store,
        now: SystemTime,
    ) -> Result<(Identity, Vec<String>), NoToken> {
        let mut grants = self.grants.lock();
        let grant = grants.tokens.get(token).ok_or(NoToken::Unknown)?;
        // What is gone does not come back: its UID is never given again.
        if !grant.holds(now) || !grant.bound.iter().all(|bound| bound.is_there(store)) {
            grants.tokens.remove(token);
            return Err(NoToken::Unknown);
        }
        let audiences = grant.among(audiences)?;
        Ok((Identity::clone(&grant.identity), audiences))
    }
}

/// What a token may be bound to besides its account: core kinds with their tables,
/// and whether they are in the account's namespace.
const BINDABLE: [(&str, &str, bool); 3] = [
    ("Pod", "pods", true),
    ("Secret", "secrets", true),
    ("Node", "nodes", false),
];

/// The object that a `TokenRequest` asks its token to be bound to.
fn bound_object(call: &Call, request: &Value) -> Result<Option<Bound>, ApiError> {
    let reference = &request["spec"]["boundObjectRef"];
    if !reference.is_object() {
        return Ok(None);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (name, kind, uid) = (text("name"), text("kind"), text("uid"));
    let known = BINDABLE
        .iter()
        .find(|(bindable, _, _)| *bindable == kind && !text("apiVersion").contains('/'));
    let Some((_, table, namespaced)) = known else {
        let version = text("apiVersion");
        let slash = if version.contains('/') { "" } else { "/" };
        return Err(ApiError::bad_request(format!(
            "cannot bind token to object of type {slash}{version}, Kind={kind}"
        )));
    };
    let key = if *namespaced {
        format!("{}/{name}", call.namespace())
    } else {
        name.to_owned()
    };
    let about = |resource| About {
        group: "",
        resource,
        name,
    };
    let found = call.server.store.get(table, &key);
    let found = found.ok_or_else(|| ApiError::not_found(about(table)))?;
    if kind == "Pod" && found.value()["spec"]["serviceAccountName"] != call.name() {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name()
        )));
    }
    if !uid.is_empty() && uid != found.uid() {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(about(kind), &why));
    }
    Ok(Some(Bound {
        table,
        key,
        uid: found.uid().to_owned(),
    }))
}

/// Answers a `TokenRequest` for the service account that the path names.
pub(crate) fn request(call: &Call, mut request: Value) -> Result<Value, ApiError> {
    call.change_sent(Operation::Create, TOKEN_REQUEST, &mut request, None)?;
    check_place(call, &request)?;
    let account = call.live()?;
    let seconds = request
        .pointer("/spec/expirationSeconds")
        .and_then(Value::as_i64);
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
    check_duration(seconds)?;
    let server = &call.server;
    let asked = filled_in(call, &request, account.uid(), seconds);
    call.check_sent(Operation::Create, TOKEN_REQUEST, &asked)?;
    let expires = server.clock.now() + Duration::from_secs(seconds.unsigned_abs());
    let token = server.random.token();
    let mut bound = vec![Bound {
        table: "serviceaccounts",
        key: account.key().to_owned(),
        uid: account.uid().to_owned(),
    }];
    bound.extend(bound_object(call, &request)?);
    let mut identity = Identity::service_account(account.namespace(), account.name());
    identity.uid = account.uid().to_owned();
    identity.extra = extra(&server.store, &server.random.uid(), bound.get(1));
    let audiences = request["spec"]["audiences"].as_array();
    let audiences = audiences.into_iter().flatten();
    let audiences = audiences.filter_map(|one| one.as_str().map(str::to_owned));
    let audiences: Vec<String> = audiences.collect();
    if !call.query.dry_run() {
        let now = server.clock.now();
        let expires = Some(expires);
        server
            .tokens
            .grant(token.clone(), identity, expires, bound, audiences, now)
            .map_err(|Unkept| ApiError::unkept())?;
    }
    let mut request = asked;
    request["spec"]["boundObjectRef"] = request["spec"]["boundObjectRef"].take();
    request["kind"] = json!("TokenRequest");
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["status"] = json!({"token": token, "expirationTimestamp": rfc3339(expires)});
    Ok(request)
}

/// A request for a token with what it leaves out, as it is before it is answered.
fn filled_in(call: &Call, request: &Value, uid: &str, seconds: i64) -> Value {
    let mut request = request.clone();
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    let metadata = json!({
        "name": call.name(),
        "namespace": call.namespace(),
        "uid": uid,
        "creationTimestamp": call.server.clock.timestamp(),
    });
    request["metadata"] = metadata;
    if request["spec"]["audiences"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        request["spec"]["audiences"] = json!([AUDIENCE]);
    }
    request["spec"]["expirationSeconds"] = json!(seconds);
    request
}

/// What is known of the holder of a token besides the account: which token it is, and the
/// object that it is bound to, with the node of a pod that is on one.
fn extra(store: &Store, id: &str, bound: Option<&Bound>) -> BTreeMap<String, Vec<String>> {
    let entry = |name: &str, value: String| {
        let name = format!("authentication.kubernetes.io/{name}");
        (name, vec![value])
    };
    let mut extra = BTreeMap::from([entry("credential-id", format!("JTI={id}"))]);
    if let Some(bound) = bound
        && let Some(of) = match bound.table {
            "pods" => Some("pod"),
            "nodes" => Some("node"),
            _ => None,
        }
    {
        let name = bound.key.rsplit('/').next().unwrap_or_default();
        extra.extend([
            entry(&format!("{of}-name"), name.to_owned()),
            entry(&format!("{of}-uid"), bound.uid.clone()),
        ]);
        let pod = store.get(bound.table, &bound.key).filter(|_| of == "pod");
        let node = pod.map(|pod| text(&pod.value()["spec"], "nodeName").to_owned());
        if let Some(node) = node.filter(|node| !node.is_empty()) {
            let known = store.get("nodes", &node);
            extra.extend(known.map(|known| entry("node-uid", known.uid().to_owned())));
            extra.extend([entry("node-name", node)]);
        }
    }
    extra
}

/// Refuses a request in a namespace that is not there, or that says to be of another
/// account than its path.
fn check_place(call: &Call, request: &Value) -> Result<(), ApiError> {
    let namespace = call.namespace();
    if call.server.store.get("namespaces", namespace).is_none() {
        return Err(ApiError::not_found(About {
            group: "",
            resource: "namespaces",
            name: namespace,
        }));
    }
    let path = Path::new("metadata");
    let mut errors = Errors::new();
    for (field, of_path) in [("name", call.name()), ("namespace", namespace)] {
        let given = text(&request["metadata"], field);
        if !given.is_empty() && given != of_path {
            let why = format!("must match the service account {field} if specified");
            errors.push(FieldError::invalid_str(&path.child(field), given, why));
            break;
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let about = About {
        group: TOKEN_REQUEST.group,
        resource: TOKEN_REQUEST.kind,
        name: call.name(),
    };
    Err(ApiError::invalid(about, &errors))
}

fn check_duration(seconds: i64) -> Result<(), ApiError> {
    let mut errors = Errors::new();
    token_lifetime::validate(&Path::new("spec"), seconds, &mut errors);
    if errors.is_empty() {
        return Ok(());
    }
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

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn tokens_end_when_they_expire() {
        let (tokens, store) = (Tokens::default(), Store::new(1));
        let admin = Identity::admin();
        let granted = tokens.grant(
            "a".to_owned(),
            admin.clone(),
            Some(at(10)),
            Vec::new(),
            Vec::new(),
            at(0),
        );
        assert_eq!(granted, Ok(()));
        assert_eq!(tokens.identify("a", &store, at(9)), Some(admin));
        assert_eq!(tokens.identify("a", &store, at(10)), None);
        assert_eq!(
            tokens.identify("a", &store, at(9)),
            None,
            "an expired token is forgotten"
        );
        assert_eq!(tokens.identify("b", &store, at(0)), None);
    }

    #[test]
    fn tokens_for_others_mean_nobody_here() {
        let (tokens, store) = (Tokens::default(), Store::new(1));
        let others = vec!["other".to_owned(), "z".to_owned()];
        let admin = Identity::admin();
        let granted = tokens.grant(
            "a".to_owned(),
            admin.clone(),
            None,
            Vec::new(),
            others.clone(),
            at(0),
        );
        assert_eq!(granted, Ok(()));
        assert_eq!(tokens.identify("a", &store, at(1)), None);
        let asked = |one: &str| {
            let wanted = [one.to_owned()];
            tokens.identify_for("a", &wanted, &store, at(1))
        };
        assert_eq!(asked("z"), Ok((admin, vec!["z".to_owned()])));
        let refused = asked("nope").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "[invalid bearer token, token audiences [\"other\" \"z\"] is invalid for the target \
             audiences [\"nope\"]]"
        );
    }

    #[test]
    fn expired_tokens_are_forgotten_though_nobody_brings_them() {
        let tokens = Tokens::default();
        for second in 0..10_000 {
            let expires = Some(at(second + 10));
            let token = format!("t{second}");
            let (bound, whose) = (Vec::new(), Vec::new());
            let admin = Identity::admin();
            let granted = tokens.grant(token, admin, expires, bound, whose, at(second));
            assert_eq!(granted, Ok(()));
        }
        let kept = tokens.grants.lock().tokens.len();
        assert!(kept <= SWEEP + 1, "{kept} are kept, of which ten hold");
    }
}
