//! Who sends a request, and in whose name.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::Caller;
use super::query::decode;
use crate::access;
use crate::field::quoted;
use crate::identity::{AUTHENTICATED, Identity, service_account_groups};
use crate::server::Shared;
use crate::status::ApiError;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// The caller, or whom the caller may impersonate and does.
pub(super) fn authenticate(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    caller: Caller,
) -> Result<Identity, ApiError> {
    let caller = match caller {
        Caller::Known(identity) => identity,
        Caller::Socket => {
            let token = bearer(headers).ok_or_else(ApiError::unauthorized)?;
            let known = shared
                .tokens
                .identify(token, &shared.store, shared.clock.now());
            known.ok_or_else(ApiError::unauthorized)?
        }
    };
    match impersonated(headers)? {
        None => Ok(caller),
        Some(wanted) => {
            access::authorize_impersonation(shared, &caller, &wanted)?;
            Ok(completed(wanted))
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.trim())
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
            wanted.extra.insert(decode(key, false), all(name.as_str()));
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

/// Adds the groups that the impersonated user has anyway.
fn completed(mut wanted: Identity) -> Identity {
    if wanted.groups.is_empty()
        && let Some((namespace, _)) = Identity::parse_service_account(&wanted.name)
    {
        wanted.groups.extend(service_account_groups(namespace));
    }
    let anonymous = wanted.name == "system:anonymous";
    let unauthenticated = wanted
        .groups
        .iter()
        .any(|group| group == "system:unauthenticated");
    let authenticated = wanted.groups.iter().any(|group| group == AUTHENTICATED);
    if !anonymous && !unauthenticated && !authenticated {
        wanted.groups.push(AUTHENTICATED.to_owned());
    }
    wanted
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn check(headers: &[(&'static str, &'static str)], expected: Option<(&str, &[&str])>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let got = impersonated(&map).unwrap().map(completed);
        let got = got.as_ref().map(|id| (id.name.as_str(), id.groups.clone()));
        let expected = expected.map(|(name, groups)| {
            (
                name,
                groups.iter().map(|&g| g.to_owned()).collect::<Vec<_>>(),
            )
        });
        assert_eq!(got, expected);
    }

    #[test]
    fn impersonated_users_get_their_groups() {
        check(&[], None);
        check(&[(USER, "joe")], Some(("joe", &[AUTHENTICATED])));
        check(
            &[(USER, "joe"), (GROUP, "a"), (GROUP, "b")],
            Some(("joe", &["a", "b", AUTHENTICATED])),
        );
        check(
            &[(USER, "system:serviceaccount:ns:bot")],
            Some((
                "system:serviceaccount:ns:bot",
                &[
                    "system:serviceaccounts",
                    "system:serviceaccounts:ns",
                    AUTHENTICATED,
                ],
            )),
        );
        check(
            &[(USER, "system:anonymous")],
            Some(("system:anonymous", &[])),
        );
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
