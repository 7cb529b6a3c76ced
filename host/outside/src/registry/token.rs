//! How a registry wants to know who asks: with a token of a service that it names, or
//! with name and password themselves.

use super::exchange::{Answer, Authorization, shown};
use super::{Registry, RegistryError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http_auth::ChallengeRef;
use reqwest::Url;
use serde_json::Value;

/// Bytes of a token service's answer. Tokens with many claims have some thousand.
const TOKEN_BYTES: u64 = 64 << 10;

impl Registry {
    /// What answers a challenge.
    pub(super) async fn authorize(&self, answer: &Answer) -> Result<Authorization, RegistryError> {
        let challenges = answer.headers.get_all(WWW_AUTHENTICATE);
        let texts: Vec<&str> = challenges
            .iter()
            .filter_map(|one| one.to_str().ok())
            .collect();
        let parsed: Vec<ChallengeRef<'_>> = texts
            .iter()
            .filter_map(|text| http_auth::parse_challenges(text).ok())
            .flatten()
            .collect();
        let find = |scheme: &str| {
            let mut found = parsed.iter();
            found.find(|one| one.scheme.eq_ignore_ascii_case(scheme))
        };
        if let Some(bearer) = find("Bearer") {
            return self.token(bearer).await;
        }
        if find("Basic").is_some() {
            return self.basic().ok_or_else(|| self.denied(answer));
        }
        Err(self.protocol(format!(
            "{} answers 401 and asks neither for a token nor for a password",
            answer.url
        )))
    }

    /// Name and password, if there are some.
    fn basic(&self) -> Option<Authorization> {
        let login = self.login.as_ref()?;
        let text = format!("{}:{}", login.username, login.password.expose());
        authorization(&format!("Basic {}", STANDARD.encode(text)))
    }

    async fn token(&self, challenge: &ChallengeRef<'_>) -> Result<Authorization, RegistryError> {
        let parameter = |name: &str| {
            let mut parameters = challenge.params.iter();
            let found = parameters.find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        let realm = parameter("realm").and_then(|realm| Url::parse(&realm).ok());
        let mut url = realm
            .filter(|url| url.has_host() && matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| self.protocol("its token service is no URL".to_owned()))?;
        if url.scheme() == "http" && self.base.scheme() == "https" {
            let service = shown(&url);
            return Err(self.protocol(format!("its token service, {service}, is without TLS")));
        }
        let scope = parameter("scope");
        let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository));
        if let Some(service) = parameter("service") {
            url.query_pairs_mut().append_pair("service", &service);
        }
        url.query_pairs_mut().append_pair("scope", &scope);
        // No redirects here: where they lead, nobody has named.
        let mut request = self.client.get(url.clone());
        if let Some(Authorization(value)) = self.basic() {
            request = request.header(AUTHORIZATION, value);
        }
        let response = request.send().await;
        let mut response = response.map_err(|error| self.failed(error, &url))?;
        let body = self.body(&mut response, &url, TOKEN_BYTES).await?;
        let answer = Answer::of(response.status(), body, &url);
        match answer.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(self.denied(&answer)),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(self.unreachable(format!(
                    "its token service {} answers {}",
                    answer.url,
                    status.as_u16()
                )));
            }
            _ => return Err(self.unexpected(&answer)),
        }
        let parsed: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let field = |name: &str| {
            let value = parsed.as_ref()?.get(name)?.as_str()?;
            (!value.is_empty()).then_some(value)
        };
        let token = field("token").or_else(|| field("access_token"));
        token
            .and_then(|token| authorization(&format!("Bearer {token}")))
            .ok_or_else(|| {
                self.protocol(format!("its token service {} gives no token", answer.url))
            })
    }
}

fn authorization(text: &str) -> Option<Authorization> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(Authorization(value))
}
