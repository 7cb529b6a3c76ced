//! Outside effects: asked for by `reconcile`, made by `actuate`.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::json;
use crate::{Failure, Scope};

/// A kind of outside effect that a plugin may ask for.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let database = ActionRule::new("database")
///     .describe("a database and its owner for each profile")
///     .sql("main")
///     .secrets(Scope::NamespaceNamedLikePrimary);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct ActionRule {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) http: Vec<String>,
    pub(crate) sql: Vec<String>,
    pub(crate) secrets: Vec<Scope>,
}

impl ActionRule {
    /// An effect of this name, a DNS-1123 label.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            http: Vec::new(),
            sql: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// What it does, in the words of the operator who grants it.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// It sends requests to this URL and below.
    pub fn http(mut self, url: impl Into<String>) -> Self {
        self.http.push(url.into());
        self
    }

    /// It uses the SQL connection of this name.
    pub fn sql(mut self, connection: impl Into<String>) -> Self {
        self.sql.push(connection.into());
        self
    }

    /// It has Secrets generated in this scope.
    pub fn secrets(mut self, scope: Scope) -> Self {
        self.secrets.push(scope);
        self
    }
}

/// An outside effect that should be in place for a primary.
///
/// It is carried out once, and again only when what stands here changes, a generated
/// Secret was made anew, or the effect is reported gone.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let login = GeneratedSecret::new("password", "alice", "database-login")
///     .entry("password", [SecretPart::Generated]);
/// let action = Action::new("database", "db")
///     .input(&json!({"role": "alice"}))
///     .secret(login)
///     .retire();
/// Outcome::new().action(action);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Action {
    /// Which declared effect it is.
    pub name: String,
    /// Its identity among the effects of the primary.
    pub key: String,
    pub(crate) input: Vec<u8>,
    pub(crate) unwritable: Option<String>,
    pub(crate) secrets: Vec<GeneratedSecret>,
    pub(crate) verify: Duration,
    pub(crate) retire: bool,
}

impl Action {
    /// The effect `name` of the manifest, under a key that is its identity among the
    /// effects of the primary.
    pub fn new(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            key: key.into(),
            input: b"null".to_vec(),
            unwritable: None,
            secrets: Vec::new(),
            verify: Duration::ZERO,
            retire: false,
        }
    }

    /// What it needs to know. No place for credentials: operators see it.
    pub fn input(mut self, input: &impl Serialize) -> Self {
        match serde_json::to_vec(input) {
            Ok(json) => self.input = json,
            Err(error) => {
                let problem = format!("input of action {}: {error}", self.key);
                self.unwritable = Some(problem);
            }
        }
        self
    }

    /// Has a Secret generated, and stored before the effect.
    pub fn secret(mut self, secret: GeneratedSecret) -> Self {
        self.secrets.push(secret);
        self
    }

    /// Whether it is still in place is asked this often; at least ten seconds. Without
    /// this, the host says.
    pub fn verify_every(mut self, time: Duration) -> Self {
        self.verify = time;
        self
    }

    /// It is taken away, with [`Verb::Retire`], when it is asked for no more or the
    /// primary is gone. Without this it stays, and an event says so.
    pub fn retire(mut self) -> Self {
        self.retire = true;
        self
    }
}

/// A Secret whose value nobody chooses and the plugin never sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct GeneratedSecret {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) secret: String,
    pub(crate) entries: Vec<(String, Vec<SecretPart>)>,
}

/// A part of the text of an entry of a generated Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretPart {
    /// Text, known to everybody.
    Text(String),
    /// The generated value: 43 letters, digits, `-` and `_`.
    Generated,
}

impl From<&str> for SecretPart {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SecretPart {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl GeneratedSecret {
    /// The Secret `namespace/secret`, to whose value `actuate` refers by `name`.
    pub fn new(
        name: impl Into<String>,
        namespace: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            secret: secret.into(),
            entries: Vec::new(),
        }
    }

    /// An entry, in parts. A Secret whose entries are other than those that are asked
    /// for is made anew, with a new value.
    pub fn entry<P: Into<SecretPart>>(
        mut self,
        key: impl Into<String>,
        parts: impl IntoIterator<Item = P>,
    ) -> Self {
        let parts = parts.into_iter().map(Into::into).collect();
        self.entries.push((key.into(), parts));
        self
    }
}

/// What to do about an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Put it in place. Must be idempotent: it may be repeated after a crash.
    Apply,
    /// Tell whether it is still in place, changing nothing.
    Verify,
    /// Take it away.
    Retire,
}

/// One call of `actuate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actuation {
    /// Which declared effect it is.
    pub name: String,
    /// Its identity among the effects of the primary.
    pub key: String,
    /// What to do about it.
    pub verb: Verb,
    pub(crate) input: Vec<u8>,
    pub(crate) fact: Option<Vec<u8>>,
}

impl Actuation {
    /// A call, for tests.
    pub fn new(action: &Action, verb: Verb) -> Self {
        Self {
            name: action.name.clone(),
            key: action.key.clone(),
            verb,
            input: action.input.clone(),
            fact: None,
        }
    }

    /// What the effect needs to know.
    ///
    /// # Errors
    ///
    /// Terminal, when it does not fit the type.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::from_slice(&self.input).map_err(|error| {
            Failure::Terminal(format!("the input has an unexpected form: {error}"))
        })
    }

    /// What [`Verb::Apply`] reported when it was last carried out.
    ///
    /// # Errors
    ///
    /// Terminal, when it does not fit the type.
    pub fn fact<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let fact = self.fact.as_ref().map(|fact| json::from_slice(fact));
        fact.transpose()
            .map_err(|error| Failure::Terminal(format!("the fact has an unexpected form: {error}")))
    }
}

/// How an effect stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Completion {
    pub(crate) in_place: bool,
    pub(crate) fact: Vec<u8>,
    pub(crate) unwritable: Option<String>,
}

impl Completion {
    /// It is in place; for every verb.
    pub fn done() -> Self {
        Self {
            in_place: true,
            fact: b"null".to_vec(),
            unwritable: None,
        }
    }

    /// It is in place, and later calls of `reconcile` find this fact under the
    /// action's key. At most 4 KiB, and no place for credentials.
    pub fn with_fact(fact: &impl Serialize) -> Self {
        match serde_json::to_vec(fact) {
            Ok(fact) => Self {
                fact,
                ..Self::done()
            },
            Err(error) => Self {
                unwritable: Some(format!("the fact cannot be written as JSON: {error}")),
                ..Self::done()
            },
        }
    }

    /// For [`Verb::Verify`]: whether it is still in place.
    pub fn is_in_place(in_place: bool) -> Self {
        Self {
            in_place,
            ..Self::done()
        }
    }
}
