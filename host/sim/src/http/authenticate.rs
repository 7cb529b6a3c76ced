//! Who sends a request, and in whose name.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::Caller;
use super::query::decode;
use crate::access::{self, Asked};
use crate::field::quoted;
use crate::identity::Identity;
use crate::server::Shared;
use crate::status::ApiError;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Who sends the request; who brings no token is anonymous.
///
/// # Errors
///
/// 401 where a token is nobody's.
pub(super) fn authenticate(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    caller: Caller,
) -> Result<Arc<Identity>, ApiError> {
    match caller {
        Caller::Known(identity) => Ok(identity),
        Caller::Socket => {
            let Some(token) = bearer(headers) else {
                return Ok(Arc::new(Identity::anonymous()));
            };
            let known = shared
                .tokens
                .identify(token, &shared.store, shared.clock.now());
            known.map(Arc::new).ok_or_else(ApiError::unauthorized)
        }
    }
}

/// The caller, or whom the caller may impersonate for what is asked and does.
///
/// # Errors
///
/// 403 where the caller may not.
pub(super) fn acting_as(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    caller: Arc<Identity>,
    asked: &Asked<'_>,
) -> Result<Arc<Identity>, ApiError> {
    match impersonated(headers)? {
        None => Ok(caller),
        Some(wanted) => access::impersonate(shared, &caller, &wanted, asked).map(Arc::new),
    }
}

/// The token that a request brings. Credentials of another kind are none, as they are
/// to the real server.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let mut parts = value.trim().splitn(3, ' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The identity that the headers ask for, as they say it.
fn impersonated(headers: &HeaderMap) -> Result<Option<Identity>, ApiError> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let all = |name: &str| headers.get_all(name).iter().map(text).collect::<Vec<_>>();
    let mut wanted = Identity {
        name: headers.get(USER).map(text).unwrap_or_default(),
        uid: headers.get(UID).map(text).unwrap_or_default(),
        groups: all(GROUP),
        ..Identity::default()
    };
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            wanted
                .extra
                .insert(decode(key, false).into_owned(), all(name.as_str()));
        }
    }
    if wanted == Identity::default() {
        return Ok(None);
    }
    if wanted.name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "requested {} without impersonating a user name",
            printed(&wanted)
        )));
    }
    Ok(Some(wanted))
}

/// An identity as Go prints it.
fn printed(wanted: &Identity) -> String {
    let texts = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups = match wanted.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => texts(groups),
    };
    let extra: Vec<String> = wanted
        .extra
        .iter()
        .map(|(key, values)| format!("{}:{}", quoted(key), texts(values)))
        .collect();
    let extra = if extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        format!("map[string][]string{{{}}}", extra.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
        quoted(&wanted.name),
        quoted(&wanted.uid)
    )
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_token_comes_after_its_scheme() {
        for (value, expected) in [
            ("Bearer x", Some("x")),
            (" bearer x y", Some("x")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearer  x", None),
            ("Basic x", None),
            ("", None),
        ] {
            let mut map = HeaderMap::new();
            map.append(AUTHORIZATION, HeaderValue::from_static(value));
            assert_eq!(bearer(&map), expected, "{value:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn a_group_alone_is_refused() {
        let mut map = HeaderMap::new();
        map.append(
            HeaderName::from_static(GROUP),
            HeaderValue::from_static("a"),
        );
        assert_eq!(impersonated(&map).unwrap_err().code(), 400);
    }
}
