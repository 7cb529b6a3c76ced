//! Secrets that are generated for effects, and stored before them.
//!
//! A value is made when the Secret does not exist, or holds something else than the
//! plugin asks for; otherwise the one that is there is used. So a crash at any moment
//! strands no value: what the effect was told is what stands in the Secret.
//!
//! They are read and written as the plugin's account, so that RBAC is the grant here
//! as everywhere. They carry no label of ours and are no part of the inventory: that
//! a plugin is mistaken about its objects must not rotate a password. By what they are
//! known again, and by what they are not, [`Purpose`] says.

use crate::active::Active;
use crate::problem::chain;
use crate::secrets::{entries_of, resource};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_api::Reason;
use reeve_cluster::{Apply, Cluster, Create, Object, Preconditions, WriteError};
use reeve_core::UnitKey;
use reeve_core::generated::{NotGenerated, Purpose};
use reeve_core::outcome::{GeneratedSecret, SecretPart};
use reeve_outside::Secret;
use reeve_outside::secret::GENERATED_LENGTH;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A value that is stored.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) value: Secret,
}

/// Why a value is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotKept {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// Keeps the Secrets of one effect.
#[derive(Clone, Copy)]
pub(crate) struct Keeper<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) active: &'a Active,
    pub(crate) unit: &'a UnitKey,
    pub(crate) uid: &'a str,
    pub(crate) key: &'a str,
}

/// What there is of a Secret.
enum Found {
    Nothing,
    /// It holds something else than is asked for.
    Other(Box<Object>),
    Value(Secret),
}

impl Keeper<'_> {
    /// The value of a generated Secret, which is stored when this returns.
    pub(crate) async fn keep(&self, wanted: &GeneratedSecret) -> Result<Kept, NotKept> {
        match self.find(wanted).await? {
            Found::Nothing => self.make(wanted).await,
            Found::Other(found) => self.renew(wanted, &found).await,
            Found::Value(value) => Ok(Kept { value }),
        }
    }

    /// The value, if it is stored as it is asked for. Nothing is made.
    pub(crate) async fn look(&self, wanted: &GeneratedSecret) -> Result<Option<Kept>, NotKept> {
        Ok(match self.find(wanted).await? {
            Found::Nothing | Found::Other(_) => None,
            Found::Value(value) => Some(Kept { value }),
        })
    }

    async fn find(&self, wanted: &GeneratedSecret) -> Result<Found, NotKept> {
        let GeneratedSecret {
            namespace, secret, ..
        } = wanted;
        let resource = resource();
        let identity = Some(&self.active.identity);
        let found = self
            .cluster
            .get_as(&resource, Some(namespace), secret, identity)
            .await
            .map_err(|error| NotKept {
                reason: Reason::ActionFailed,
                message: chain(&error),
            })?;
        let Some(found) = found else {
            return Ok(Found::Nothing);
        };
        let (purpose, whole) = (self.purpose(wanted), found.whole());
        let not_ours = |error| self.not_ours(wanted, &error);
        purpose.check(&whole).map_err(not_ours)?;
        let Some(value) = value_in(&found, wanted) else {
            return Ok(Found::Other(Box::new(found)));
        };
        // A value that fits is used, so nobody else may have put it there.
        let entries = wanted.entries.iter().map(|entry| &*entry.key);
        purpose.check_entries(&whole, entries).map_err(not_ours)?;
        Ok(Found::Value(value))
    }

    /// Neither taken for what was generated nor overwritten: only a person knows which it
    /// is.
    fn not_ours(&self, wanted: &GeneratedSecret, error: &NotGenerated) -> NotKept {
        let GeneratedSecret {
            namespace, secret, ..
        } = wanted;
        let advice = match error {
            NotGenerated::Other => "delete it, or let the plugin choose another name".to_owned(),
            NotGenerated::Marked { .. } | NotGenerated::Entry { .. } => format!(
                "delete it, which makes another value, or, if its value is the right one, apply it as it is with `kubectl apply --server-side --force-conflicts --field-manager={}`",
                self.active.field_manager
            ),
        };
        NotKept {
            reason: Reason::Conflict,
            message: format!("Secret {namespace}/{secret} {error}; {advice}"),
        }
    }

    async fn make(&self, wanted: &GeneratedSecret) -> Result<Kept, NotKept> {
        let value = generate()?;
        let body = self.body(wanted, &value, None);
        let create = Create {
            resource: &resource(),
            namespace: Some(&wanted.namespace),
            name: &wanted.secret,
            body: &body,
            manager: &self.active.field_manager,
            identity: Some(&self.active.identity),
        };
        // Somebody who was faster is seen by the next attempt.
        self.cluster
            .create(create)
            .await
            .map_err(|error| not_written(&error))?;
        Ok(Kept { value })
    }

    /// Replaces what does not fit what is asked for.
    async fn renew(&self, wanted: &GeneratedSecret, found: &Object) -> Result<Kept, NotKept> {
        let value = generate()?;
        let body = self.body(wanted, &value, Some(found));
        let apply = Apply {
            resource: &resource(),
            namespace: Some(&wanted.namespace),
            name: &wanted.secret,
            body: &body,
            onto: Preconditions::default(),
            manager: &self.active.field_manager,
            force: true,
            strict: true,
            dry_run: false,
            identity: Some(&self.active.identity),
        };
        self.cluster
            .apply(apply)
            .await
            .map_err(|error| not_written(&error))?;
        Ok(Kept { value })
    }

    fn purpose(&self, wanted: &GeneratedSecret) -> Purpose {
        Purpose::new(self.unit, self.key, &wanted.name)
    }

    fn body(&self, wanted: &GeneratedSecret, value: &Secret, replaced: Option<&Object>) -> Value {
        let mut data = serde_json::Map::new();
        for entry in &wanted.entries {
            let text: String = entry
                .parts
                .iter()
                .map(|part| match part {
                    SecretPart::Text(text) => text,
                    SecretPart::Generated => value.expose(),
                })
                .collect();
            data.insert(entry.key.clone(), STANDARD.encode(text).into());
        }
        let mut metadata = json!({
            "name": wanted.secret,
            "namespace": wanted.namespace,
            "annotations": self.purpose(wanted).annotations(),
        });
        let primary = &self.unit.primary;
        if let Some(found) = replaced {
            metadata["uid"] = json!(found.uid());
        }
        // Garbage collection takes it with the primary, where an owner can be.
        let in_reach = primary
            .namespace
            .as_ref()
            .is_none_or(|own| *own == wanted.namespace);
        if in_reach {
            metadata["ownerReferences"] = json!([{
                "apiVersion": primary.kind.api_version(),
                "kind": primary.kind.kind,
                "name": primary.name,
                "uid": self.uid,
            }]);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            "data": data,
        })
    }
}

fn generate() -> Result<Secret, NotKept> {
    Secret::generate().map_err(|error| NotKept {
        reason: Reason::ActionFailed,
        message: error.to_string(),
    })
}

fn not_written(error: &WriteError) -> NotKept {
    let reason = match error {
        WriteError::NamespaceAbsent { .. } => Reason::NamespaceAbsent,
        _ => Reason::ActionFailed,
    };
    NotKept {
        reason,
        message: chain(error),
    }
}

/// The value in a Secret, if it holds what is asked for. What else somebody keeps there
/// is no reason for another password.
fn value_in(found: &Object, wanted: &GeneratedSecret) -> Option<Secret> {
    value_among(&entries_of(found), wanted)
}

fn value_among(entries: &BTreeMap<String, Vec<u8>>, wanted: &GeneratedSecret) -> Option<Secret> {
    let mut value: Option<String> = None;
    for entry in &wanted.entries {
        let mut rest = std::str::from_utf8(entries.get(&entry.key)?).ok()?;
        for part in &entry.parts {
            match part {
                SecretPart::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                SecretPart::Generated => {
                    let found = rest.get(..GENERATED_LENGTH)?;
                    rest = &rest[GENERATED_LENGTH..];
                    if !Secret::is_generated(found) || value.as_ref().is_some_and(|v| v != found) {
                        return None;
                    }
                    value = Some(found.to_owned());
                }
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    value.map(Secret::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::outcome::SecretEntry;

    #[test]
    fn a_secret_that_fits_keeps_its_value() {
        let value = Secret::generate().unwrap();
        let text = |text: &str| SecretPart::Text(text.into());
        let wanted = GeneratedSecret {
            name: "password".into(),
            namespace: "alice".into(),
            secret: "login".into(),
            entries: vec![
                SecretEntry {
                    key: "database".into(),
                    parts: vec![text("USER=a\nPASSWD="), SecretPart::Generated, text("\n")],
                },
                SecretEntry {
                    key: "password".into(),
                    parts: vec![SecretPart::Generated],
                },
            ],
        };
        let other = Secret::generate().unwrap();
        let (value, other) = (value.expose(), other.expose());
        let database = format!("USER=a\nPASSWD={value}\n");
        for (entries, fits) in [
            (vec![("database", &*database), ("password", value)], true),
            (vec![("database", &*database), ("password", other)], false),
            (vec![("database", &*database)], false),
            (vec![("database", "USER=b"), ("password", value)], false),
            (vec![("database", &*database), ("password", "short")], false),
            (vec![("database", &*database), ("other", value)], false),
            (
                vec![
                    ("database", &*database),
                    ("other", "x"),
                    ("password", value),
                ],
                true,
            ),
            (
                vec![("database", &*format!("{database}x")), ("password", value)],
                false,
            ),
        ] {
            let entries: BTreeMap<String, Vec<u8>> = entries
                .iter()
                .map(|(key, text)| ((*key).to_owned(), text.as_bytes().to_vec()))
                .collect();
            let found = value_among(&entries, &wanted);
            let expected = fits.then(|| Secret::new(value));
            assert_eq!(found, expected, "{:?}", entries.keys());
        }
    }
}
