//! Secrets that are generated for effects, and stored before them.
//!
//! A value is made when the Secret does not exist, or holds something else than the
//! plugin asks for; otherwise the one that is there is used. So a crash at any moment
//! strands no value: what the effect was told is what stands in the Secret.
//!
//! A Secret that somebody else made is refused, unless the plugin may adopt what others made
//! and the Secret has what is asked for around a value that could be a password: then it is
//! taken over with that value, so that whoever uses it goes on.
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
use reeve_core::generated::{NotGenerated, Purpose};
use reeve_core::outcome::{GeneratedSecret, SecretPart};
use reeve_core::ownership::{
    ADOPTED_VALUE_ANNOTATION, GENERATED_BY_ANNOTATION, GENERATED_FOR_ANNOTATION, Owner,
};
use reeve_core::plan::{Adoption, Claim, Whose, judge};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use reeve_outside::Secret;
use reeve_outside::secret::GENERATED_LENGTH;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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
    /// Somebody else's, which may be taken over, with its value.
    Adoptable(Box<Object>, Secret),
}

/// What a value may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As [`Secret::generate`] makes it.
    Generated,
    /// As anybody may have made it.
    Adopted,
}

/// How many characters a value of somebody else's has: fewer could be guessed, and more is
/// no password.
const ADOPTED_LENGTH: RangeInclusive<usize> = 16..=128;

impl Keeper<'_> {
    /// The value of a generated Secret, which is stored when this returns.
    pub(crate) async fn keep(&self, wanted: &GeneratedSecret) -> Result<Kept, NotKept> {
        match self.find(wanted).await? {
            Found::Nothing => self.make(wanted).await,
            Found::Other(found) => {
                let body = |value: &Secret| self.body(wanted, value, Some(&found));
                self.write(wanted, generate()?, body).await
            }
            Found::Adoptable(found, value) => {
                let body = |value: &Secret| self.adopted(wanted, value, &found);
                self.write(wanted, value, body).await
            }
            Found::Value(value) => Ok(Kept { value }),
        }
    }

    /// The value, if it is stored as it is asked for. Nothing is made.
    pub(crate) async fn look(&self, wanted: &GeneratedSecret) -> Result<Option<Kept>, NotKept> {
        Ok(match self.find(wanted).await? {
            Found::Nothing | Found::Other(_) | Found::Adoptable(..) => None,
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
        if let Err(error) = purpose.check(&whole) {
            let is_foreign = error == NotGenerated::Other;
            return match value_in(&found, wanted, Form::Adopted) {
                Some(value) if is_foreign && self.may_adopt(wanted, &whole) => {
                    Ok(Found::Adoptable(Box::new(found), value))
                }
                _ => Err(not_ours(error)),
            };
        }
        let adopted = &whole["metadata"]["annotations"][ADOPTED_VALUE_ANNOTATION];
        let form = match adopted == "true" {
            true => Form::Adopted,
            false => Form::Generated,
        };
        let Some(value) = value_in(&found, wanted, form) else {
            return Ok(Found::Other(Box::new(found)));
        };
        // A value that fits is used, so nobody else may have put it there.
        let entries = wanted.entries.iter().map(|entry| &*entry.key);
        purpose.check_entries(&whole, entries).map_err(not_ours)?;
        Ok(Found::Value(value))
    }

    /// Whether the plugin may take over a Secret of somebody else, as of any other object.
    fn may_adopt(&self, wanted: &GeneratedSecret, whole: &Value) -> bool {
        let owner = Owner {
            unit: self.unit.clone(),
            uid: self.uid.to_owned(),
        };
        let claim = Claim {
            owner: &owner,
            manager: &self.active.field_manager,
            policy: &self.active.policy,
        };
        let kind = GroupVersionKind::new("", "v1", "Secret");
        let namespace = Some(wanted.namespace.clone());
        let reference = ObjectReference::new(kind, namespace, &wanted.secret);
        // One that says to be generated is another plugin's, or a forgery.
        let annotations = &whole["metadata"]["annotations"];
        let marks = [GENERATED_BY_ANNOTATION, GENERATED_FOR_ANNOTATION];
        marks.iter().all(|mark| annotations[*mark].is_null())
            && judge(&claim, &reference, whole) == Whose::Adoptable
    }

    /// Neither taken for what was generated nor overwritten: only a person knows which it
    /// is.
    fn not_ours(&self, wanted: &GeneratedSecret, error: &NotGenerated) -> NotKept {
        let GeneratedSecret {
            namespace, secret, ..
        } = wanted;
        let advice = match error {
            NotGenerated::Other => match self.active.policy.adoption {
                Adoption::Never => format!(
                    "delete it, which makes another value, let the plugin choose another name, or, to keep its value, set spec.adoption of Plugin {}",
                    self.active.plugin
                ),
                Adoption::IfUnowned | Adoption::Always => "it is not adopted, since it is somebody's or has no value of this form; delete it, which makes another value, or let the plugin choose another name".to_owned(),
            },
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

    /// Writes a value over what is there.
    async fn write(
        &self,
        wanted: &GeneratedSecret,
        value: Secret,
        body: impl Fn(&Secret) -> Value,
    ) -> Result<Kept, NotKept> {
        let body = body(&value);
        let apply = Apply {
            resource: &resource(),
            namespace: Some(&wanted.namespace),
            name: &wanted.secret,
            body: (&body).into(),
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

    /// The same Secret with the value that somebody else gave it, and only as it is now: that
    /// value must be no other by then.
    fn adopted(&self, wanted: &GeneratedSecret, value: &Secret, found: &Object) -> Value {
        let mut body = self.body(wanted, value, Some(found));
        body["metadata"]["annotations"][ADOPTED_VALUE_ANNOTATION] = json!("true");
        body["metadata"]["resourceVersion"] = found.whole()["metadata"]["resourceVersion"].clone();
        body
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
fn value_in(found: &Object, wanted: &GeneratedSecret, form: Form) -> Option<Secret> {
    value_among(&entries_of(found), wanted, form)
}

fn value_among(
    entries: &BTreeMap<String, Vec<u8>>,
    wanted: &GeneratedSecret,
    form: Form,
) -> Option<Secret> {
    let mut value: Option<&str> = None;
    for entry in &wanted.entries {
        let mut rest = std::str::from_utf8(entries.get(&entry.key)?).ok()?;
        for part in &entry.parts {
            match part {
                SecretPart::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                SecretPart::Generated => {
                    let (found, after) = form.value_before(rest)?;
                    if value.is_some_and(|value| value != found) {
                        return None;
                    }
                    (value, rest) = (Some(found), after);
                }
            }
        }
        // People end their lines.
        if !rest.is_empty() && (form == Form::Generated || rest != "\n") {
            return None;
        }
    }
    value.map(Secret::new)
}

impl Form {
    /// The value that a text begins with, and what follows.
    fn value_before(self, text: &str) -> Option<(&str, &str)> {
        match self {
            Self::Generated => text
                .split_at_checked(GENERATED_LENGTH)
                .filter(|(value, _)| Secret::is_generated(value)),
            Self::Adopted => {
                // Letters and digits, and what the alphabets of base64 have besides.
                let is_other = |char: char| {
                    !char.is_ascii_alphanumeric() && !matches!(char, '-' | '_' | '+' | '/' | '=')
                };
                let end = text.find(is_other).unwrap_or(text.len());
                text.split_at_checked(end)
                    .filter(|_| ADOPTED_LENGTH.contains(&end))
            }
        }
    }
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
            let found = value_among(&entries, &wanted, Form::Generated);
            let expected = fits.then(|| Secret::new(value));
            assert_eq!(found, expected, "{:?}", entries.keys());
        }
    }

    #[test]
    fn a_value_of_somebody_else_is_found_where_it_could_be_a_password() {
        let wanted = |end: &str| GeneratedSecret {
            name: "password".into(),
            namespace: "alice".into(),
            secret: "login".into(),
            entries: vec![SecretEntry {
                key: "database".into(),
                parts: vec![
                    SecretPart::Text("PASSWD=".into()),
                    SecretPart::Generated,
                    SecretPart::Text(end.into()),
                ],
            }],
        };
        let theirs = "3q2-7_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let (short, long) = ("x".repeat(15), "x".repeat(129));
        for (text, end, value) in [
            (format!("PASSWD={theirs}"), "", Some(theirs)),
            (format!("PASSWD={theirs}\n"), "", Some(theirs)),
            (format!("PASSWD={theirs}\nMORE=1"), "\nMORE=1", Some(theirs)),
            (format!("PASSWD={theirs}\nMORE=1"), "", None),
            (format!("PASSWD={theirs}'; x"), "", None),
            (format!("PASSWD={short}"), "", None),
            (format!("PASSWD={long}"), "", None),
            (format!("PASSWORD={theirs}"), "", None),
            ("PASSWD=".to_owned(), "", None),
        ] {
            let entries = BTreeMap::from([("database".to_owned(), text.clone().into_bytes())]);
            let found = value_among(&entries, &wanted(end), Form::Adopted);
            assert_eq!(found, value.map(Secret::new), "{text}");
            if value.is_some() {
                assert_eq!(value_among(&entries, &wanted(end), Form::Generated), None);
            }
        }
    }
}
