//! Who asks a registry: from the file that `docker login` writes, which is also what a
//! Secret of type `kubernetes.io/dockerconfigjson` holds.

use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

/// Docker's own name of its registry, under which `docker login` stores it.
const DOCKER_HUB_KEYS: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];

/// A name and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub username: String,
    /// The password.
    pub password: Secret,
}

/// Why such a file names nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// It is not such a file.
    #[error("it is no docker configuration: {0}")]
    Malformed(String),
    /// Nothing in it is for this registry.
    #[error("it has no entry under `auths` for {host}; it has {known}")]
    Absent {
        /// The registry.
        host: String,
        /// For which there are entries.
        known: String,
    },
    /// An entry cannot be used.
    #[error("its entry `{entry}` {problem}")]
    Unusable {
        /// Key of the entry.
        entry: String,
        /// What is wrong, and what to do.
        problem: &'static str,
    },
}

impl Login {
    /// A name and a password.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            username: username.into(),
            password: Secret::new(password),
        }
    }

    /// Who a docker configuration says that we are to a repository of a registry: the
    /// entry whose path is the longest that leads to it.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be used. No error holds anything of an entry but
    /// its name.
    pub fn from_docker_config(
        text: &[u8],
        host: &str,
        repository: &str,
    ) -> Result<Self, LoginError> {
        // What the parser says may show what it read.
        let parsed: Value = serde_json::from_slice(text)
            .map_err(|error| LoginError::Malformed(format!("line {} is no JSON", error.line())))?;
        let Some(auths) = parsed.get("auths").and_then(Value::as_object) else {
            return Err(LoginError::Malformed("it has no `auths`".to_owned()));
        };
        let fits = auths
            .iter()
            .filter_map(|(key, entry)| Some((fit(key, host, repository)?, key, entry)));
        let Some((_, key, entry)) = fits.max_by_key(|(length, key, _)| (*length, key.len())) else {
            let known: Vec<&str> = auths.keys().map(String::as_str).collect();
            return Err(LoginError::Absent {
                host: host.to_owned(),
                known: match known.is_empty() {
                    true => "none".to_owned(),
                    false => known.join(", "),
                },
            });
        };
        let unusable = |problem| LoginError::Unusable {
            entry: key.clone(),
            problem,
        };
        let text = |field: &str| {
            let value = entry.get(field).and_then(Value::as_str);
            value.filter(|value| !value.is_empty())
        };
        if let Some(auth) = text("auth") {
            let decoded =
                decode(auth).ok_or_else(|| unusable("has an `auth` that is no base64"))?;
            let Some((username, password)) = decoded.split_once(':') else {
                return Err(unusable("has an `auth` that is not `name:password`"));
            };
            return Ok(Self::new(username, password.trim_end_matches('\0')));
        }
        match (text("username"), text("password")) {
            (Some(username), Some(password)) => Ok(Self::new(username, password)),
            _ if text("identitytoken").is_some() => Err(unusable(
                "has only an `identitytoken`, which is not used; store a name and a password or \
                 an access token",
            )),
            _ => Err(unusable(
                "has neither `auth` nor `username` and `password`; a credential helper cannot be \
                 asked from here, so store them in the file",
            )),
        }
    }
}

/// Padding is left out by some.
fn decode(auth: &str) -> Option<String> {
    let lenient = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let text = auth.trim();
    let bytes = STANDARD.decode(text).or_else(|_| lenient.decode(text));
    String::from_utf8(bytes.ok()?).ok()
}

/// How long the path of an entry is, if it leads to this repository.
fn fit(key: &str, host: &str, repository: &str) -> Option<usize> {
    let bare = key.trim_start_matches("https://");
    let bare = bare.trim_start_matches("http://").trim_end_matches('/');
    let (entry, path) = bare.split_once('/').unwrap_or((bare, ""));
    // Docker's own is stored as https://index.docker.io/v1/.
    let path = match path {
        "v1" | "v2" => "",
        path => path,
    };
    let docker = host == "docker.io" && DOCKER_HUB_KEYS.contains(&entry);
    if entry != host && !docker {
        return None;
    }
    let below = repository.strip_prefix(path)?;
    let whole = path.is_empty() || below.is_empty() || below.starts_with('/');
    whole.then_some(path.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(config: &Value, host: &str, repository: &str) -> Result<(String, String), String> {
        let text = config.to_string();
        Login::from_docker_config(text.as_bytes(), host, repository)
            .map(|login| (login.username, login.password.expose().to_owned()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_entry_that_fits_best_is_used() {
        let auth = |text: &str| json!({"auth": STANDARD.encode(text)});
        let config = json!({"auths": {
            "https://index.docker.io/v1/": auth("hub:1"),
            "reg.example": auth("all:2"),
            "reg.example/team": auth("team:3:4"),
            "reg.example/team/app": {"username": "app", "password": "5"},
            "reg.example:5000": {"auth": STANDARD.encode("port:6").trim_end_matches('=')},
        }});
        for (host, repository, expected) in [
            ("docker.io", "library/x", ("hub", "1")),
            ("reg.example", "other", ("all", "2")),
            ("reg.example", "teams", ("all", "2")),
            ("reg.example", "team/x", ("team", "3:4")),
            ("reg.example", "team/app", ("app", "5")),
            ("reg.example:5000", "team/app", ("port", "6")),
        ] {
            let (username, password) = read(&config, host, repository).unwrap();
            assert_eq!(
                (username.as_str(), password.as_str()),
                expected,
                "{host}/{repository}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_what_is_secret() {
        let canary = STANDARD.encode("c4n4ry");
        for (config, says) in [
            (json!({"auths": {}}), "it has none"),
            (
                json!({"auths": {"a.b": {}}}),
                "no entry under `auths` for reg.example; it has a.b",
            ),
            (json!({"a": canary}), "it has no `auths`"),
            (
                json!({"auths": {"reg.example": {"auth": canary}}}),
                "that is not `name:password`",
            ),
            (
                json!({"auths": {"reg.example": {"auth": "c4n4ry*"}}}),
                "that is no base64",
            ),
            (
                json!({"auths": {"reg.example": {"identitytoken": "c4n4ry"}}}),
                "which is not used",
            ),
            (
                json!({"auths": {"reg.example": {}}}),
                "a credential helper cannot be asked",
            ),
        ] {
            let error = read(&config, "reg.example", "a").unwrap_err();
            assert!(error.contains(says), "{says}: {error}");
            assert!(
                !error.contains("c4n4ry") && !error.contains(&canary),
                "{error}"
            );
        }
        let error = Login::from_docker_config(b"c4n4ry", "a.b", "c").unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is no docker configuration: line 1 is no JSON"
        );
    }
}
