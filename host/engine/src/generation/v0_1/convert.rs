//! Requests, manifests and outcomes, from one set of types to the other.

use super::actions_api;
use super::bindings::reeve::plugin::{sql, types};
use crate::component::{ConfigError, Request};
use crate::outside::Actuation;
use reeve_core::manifest::{
    ActionRule, ConfigMapEntry, Origin, RawManifest, RawPrimary, RawRead, RawSource,
};
use reeve_core::outcome::{self, Outcome, Verb};
use reeve_core::printable::printable;
use reeve_core::sql as core_sql;
use reeve_core::{Failure, GroupVersionKind, Metadata, ObjectReference, Scope, WriteRule};
use std::time::Duration;

pub(super) fn request(request: &Request) -> types::Request {
    types::Request {
        primary: request.primary.to_vec(),
        config: request.config.to_vec(),
        facts: request
            .facts
            .iter()
            .map(|fact| types::Fact {
                key: fact.key.clone(),
                value: fact.value.to_vec(),
            })
            .collect(),
    }
}

pub(super) fn actuation(actuation: &Actuation) -> actions_api::Actuation {
    actions_api::Actuation {
        action: action_back(&actuation.action),
        verb: match actuation.verb {
            Verb::Apply => actions_api::Verb::Apply,
            Verb::Verify => actions_api::Verb::Verify,
            Verb::Retire => actions_api::Verb::Retire,
        },
        config: actuation.config.to_vec(),
        fact: actuation.fact.as_ref().map(|fact| fact.to_vec()),
    }
}

fn action_back(action: &outcome::Action) -> types::Action {
    let part = |part: &outcome::SecretPart| match part {
        outcome::SecretPart::Text(text) => types::SecretPart::Text(text.clone()),
        outcome::SecretPart::Generated => types::SecretPart::Generated,
    };
    let entry = |entry: &outcome::SecretEntry| types::SecretEntry {
        key: entry.key.clone(),
        parts: entry.parts.iter().map(part).collect(),
    };
    let secret = |secret: &outcome::GeneratedSecret| types::GeneratedSecret {
        name: secret.name.clone(),
        namespace: secret.namespace.clone(),
        secret: secret.secret.clone(),
        entries: secret.entries.iter().map(entry).collect(),
    };
    let verify = action.verify.map_or(0, |time| time.as_secs());
    types::Action {
        key: action.key.clone(),
        name: action.name.clone(),
        input: action.input.clone().into_bytes(),
        secrets: action.secrets.iter().map(secret).collect(),
        verify_seconds: u32::try_from(verify).unwrap_or(u32::MAX),
        retire: action.retire,
    }
}

/// The bytes of all texts in an outcome.
pub(super) fn size(outcome: &types::Outcome) -> usize {
    let objects: usize = outcome.objects.iter().map(Vec::len).sum();
    let absent: usize = outcome.absent.iter().map(size_of_absence).sum();
    let conditions: usize = outcome
        .conditions
        .iter()
        .map(|c| c.type_.len() + c.reason.len() + c.message.len())
        .sum();
    let events: usize = outcome
        .events
        .iter()
        .map(|e| e.reason.len() + e.message.len())
        .sum();
    let actions: usize = outcome
        .actions
        .iter()
        .map(|a| {
            let secrets: usize = a.secrets.iter().map(size_of_secret).sum();
            a.key.len() + a.name.len() + a.input.len() + secrets
        })
        .sum();
    let status = outcome.status.as_ref().map_or(0, Vec::len);
    objects + absent + conditions + events + actions + status
}

/// The bytes of all texts in a manifest.
pub(super) fn size_of_manifest(manifest: &RawManifest) -> usize {
    let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let scope = |scope: &Scope| match scope {
        Scope::Namespaces(names) => texts(names),
        _ => 0,
    };
    let kind = |kind: &GroupVersionKind| kind.group.len() + kind.version.len() + kind.kind.len();
    let primary = manifest.primary.as_ref().map_or(0, |rule| {
        kind(&rule.kind) + rule.selector.len() + texts(&rule.projection)
    });
    let reads: usize = manifest
        .reads
        .iter()
        .map(|rule| {
            kind(&rule.kind) + scope(&rule.scope) + texts(&rule.names) + rule.selector.len()
        })
        .sum();
    let writes: usize = manifest
        .writes
        .iter()
        .map(|rule| kind(&rule.kind) + scope(&rule.scope))
        .sum();
    let sources: usize = manifest
        .sources
        .iter()
        .map(|rule| rule.name.len() + rule.description.len() + size_of_origin(&rule.origin))
        .sum();
    let actions: usize = manifest
        .actions
        .iter()
        .map(|rule| {
            let secrets: usize = rule.secrets.iter().map(scope).sum();
            rule.name.len()
                + rule.description.len()
                + texts(&rule.http)
                + texts(&rule.sql)
                + secrets
        })
        .sum();
    primary + reads + writes + sources + actions
}

fn size_of_origin(origin: &Origin) -> usize {
    match origin {
        Origin::Url(text) | Origin::File(text) => text.len(),
        Origin::ConfigMap(entry) => entry.namespace.len() + entry.name.len() + entry.key.len(),
    }
}

fn size_of_secret(secret: &types::GeneratedSecret) -> usize {
    let part = |part: &types::SecretPart| match part {
        types::SecretPart::Text(text) => text.len(),
        types::SecretPart::Generated => 0,
    };
    let entry =
        |entry: &types::SecretEntry| entry.key.len() + entry.parts.iter().map(part).sum::<usize>();
    let entries: usize = secret.entries.iter().map(entry).sum();
    secret.name.len() + secret.namespace.len() + secret.secret.len() + entries
}

fn size_of_absence(absence: &types::Absence) -> usize {
    let object = &absence.object;
    let preconditions: usize = absence
        .preconditions
        .iter()
        .map(|precondition| match precondition {
            types::Precondition::Uid(text) | types::Precondition::OwnedBy(text) => text.len(),
            types::Precondition::Phase(phases) => phases.iter().map(String::len).sum(),
        })
        .sum();
    object.name.len()
        + object.namespace.as_ref().map_or(0, String::len)
        + object.kind.group.len()
        + object.kind.version.len()
        + object.kind.kind.len()
        + preconditions
}

impl From<types::GroupVersionKind> for GroupVersionKind {
    fn from(kind: types::GroupVersionKind) -> Self {
        Self::new(kind.group, kind.version, kind.kind)
    }
}

impl From<types::ObjectReference> for ObjectReference {
    fn from(object: types::ObjectReference) -> Self {
        Self::new(object.kind.into(), object.namespace, object.name)
    }
}

impl From<ObjectReference> for types::ObjectReference {
    fn from(object: ObjectReference) -> Self {
        Self {
            kind: types::GroupVersionKind {
                group: object.kind.group.clone(),
                version: object.kind.version.clone(),
                kind: object.kind.kind.clone(),
            },
            namespace: object.namespace,
            name: object.name,
        }
    }
}

impl From<types::PluginMetadata> for Metadata {
    fn from(metadata: types::PluginMetadata) -> Self {
        Self {
            name: printable(metadata.name),
            version: printable(metadata.version),
            config_schema: metadata.config_schema,
        }
    }
}

impl From<types::ConfigError> for ConfigError {
    fn from(error: types::ConfigError) -> Self {
        Self {
            path: message(error.path),
            message: message(error.message),
        }
    }
}

impl From<types::Manifest> for RawManifest {
    fn from(manifest: types::Manifest) -> Self {
        Self {
            primary: match manifest.role {
                types::Role::Controller(rule) => Some(RawPrimary {
                    kind: rule.kind.into(),
                    selector: rule.selector,
                    projection: rule.projection,
                }),
                types::Role::Pack => None,
            },
            reads: manifest
                .reads
                .into_iter()
                .map(|rule| RawRead {
                    kind: rule.kind.into(),
                    scope: rule.scope.into(),
                    names: rule.names,
                    selector: rule.selector,
                })
                .collect(),
            writes: manifest
                .writes
                .into_iter()
                .map(|rule| WriteRule {
                    kind: rule.kind.into(),
                    scope: rule.scope.into(),
                })
                .collect(),
            sources: manifest.sources.into_iter().map(Into::into).collect(),
            actions: manifest.actions.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<types::SourceRule> for RawSource {
    fn from(rule: types::SourceRule) -> Self {
        Self {
            name: rule.name,
            description: printable(rule.description),
            origin: match rule.origin {
                types::SourceOrigin::Url(url) => Origin::Url(url),
                types::SourceOrigin::File(path) => Origin::File(path),
                types::SourceOrigin::ConfigMap(entry) => Origin::ConfigMap(ConfigMapEntry {
                    namespace: entry.namespace,
                    name: entry.name,
                    key: entry.key,
                }),
            },
            interval_seconds: rule.interval_seconds,
        }
    }
}

impl From<types::ActionRule> for ActionRule {
    fn from(rule: types::ActionRule) -> Self {
        Self {
            name: rule.name,
            description: printable(rule.description),
            http: rule.http,
            sql: rule.sql,
            secrets: rule.secrets.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<types::Scope> for Scope {
    fn from(scope: types::Scope) -> Self {
        match scope {
            types::Scope::PrimaryNamespace => Self::PrimaryNamespace,
            types::Scope::NamespaceNamedLikePrimary => Self::NamespaceNamedLikePrimary,
            types::Scope::Namespaces(names) => Self::Namespaces(names),
            types::Scope::Cluster => Self::Cluster,
        }
    }
}

/// Bytes of a text for people beyond which it is not looked at: some times more than anybody
/// is shown of one, in a condition (4 KiB) or an event. What is written out takes six times as
/// much room, and the size of an outcome is counted before.
const TEXT_BYTES: usize = 16 << 10;

/// A text for people.
fn message(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES));
    printable(text)
}

impl From<types::Failure> for Failure {
    fn from(failure: types::Failure) -> Self {
        match failure {
            types::Failure::Retry(text) => Self::Retry(message(text)),
            types::Failure::Terminal(text) => Self::Terminal(message(text)),
            types::Failure::NotReady(text) => Self::NotReady(message(text)),
        }
    }
}

impl From<types::Outcome> for Outcome {
    fn from(outcome: types::Outcome) -> Self {
        Self {
            objects: outcome.objects,
            absent: outcome.absent.into_iter().map(Into::into).collect(),
            conditions: outcome.conditions.into_iter().map(Into::into).collect(),
            events: outcome
                .events
                .into_iter()
                .map(|event| outcome::Event {
                    warning: matches!(event.severity, types::Severity::Warning),
                    reason: event.reason,
                    message: message(event.message),
                })
                .collect(),
            status: outcome.status,
            actions: outcome.actions.into_iter().map(Into::into).collect(),
            next: match outcome.next {
                types::Next::OnChange => outcome::Next::OnChange,
                types::Next::After(millis) => outcome::Next::After(Duration::from_millis(millis)),
            },
            empty_is_meant: outcome.empty_is_meant,
        }
    }
}

impl From<types::Action> for outcome::Action {
    fn from(action: types::Action) -> Self {
        let seconds = u64::from(action.verify_seconds);
        Self {
            key: action.key,
            name: action.name,
            // What is no UTF-8 becomes what is no JSON, and is refused as that.
            input: String::from_utf8(action.input)
                .unwrap_or_else(|_| char::REPLACEMENT_CHARACTER.to_string()),
            secrets: action.secrets.into_iter().map(Into::into).collect(),
            verify: (seconds > 0).then(|| Duration::from_secs(seconds)),
            retire: action.retire,
        }
    }
}

impl From<types::GeneratedSecret> for outcome::GeneratedSecret {
    fn from(secret: types::GeneratedSecret) -> Self {
        let part = |part| match part {
            types::SecretPart::Text(text) => outcome::SecretPart::Text(text),
            types::SecretPart::Generated => outcome::SecretPart::Generated,
        };
        let entry = |entry: types::SecretEntry| outcome::SecretEntry {
            key: entry.key,
            parts: entry.parts.into_iter().map(part).collect(),
        };
        Self {
            name: secret.name,
            namespace: secret.namespace,
            secret: secret.secret,
            entries: secret.entries.into_iter().map(entry).collect(),
        }
    }
}

impl From<sql::Statement> for core_sql::Statement {
    fn from(statement: sql::Statement) -> Self {
        let part = |part| match part {
            sql::Part::Text(text) => core_sql::Part::Text(text),
            sql::Part::Identifier(name) => core_sql::Part::Identifier(name),
            sql::Part::Literal(value) => core_sql::Part::Literal(value),
            sql::Part::Password(name) => core_sql::Part::Password(name),
        };
        let value = |value| match value {
            sql::Value::Null => core_sql::Value::Null,
            sql::Value::Boolean(value) => core_sql::Value::Boolean(value),
            sql::Value::Integer(value) => core_sql::Value::Integer(value),
            sql::Value::Float(value) => core_sql::Value::Float(value),
            sql::Value::Text(value) => core_sql::Value::Text(value),
            sql::Value::Bytes(value) => core_sql::Value::Bytes(value),
        };
        Self {
            parts: statement.parts.into_iter().map(part).collect(),
            parameters: statement.parameters.into_iter().map(value).collect(),
        }
    }
}

impl From<core_sql::Rows> for sql::Rows {
    fn from(rows: core_sql::Rows) -> Self {
        let value = |value| match value {
            core_sql::Value::Null => sql::Value::Null,
            core_sql::Value::Boolean(value) => sql::Value::Boolean(value),
            core_sql::Value::Integer(value) => sql::Value::Integer(value),
            core_sql::Value::Float(value) => sql::Value::Float(value),
            core_sql::Value::Text(value) => sql::Value::Text(value),
            core_sql::Value::Bytes(value) => sql::Value::Bytes(value),
        };
        let row = |row: Vec<core_sql::Value>| row.into_iter().map(value).collect();
        Self {
            columns: rows.columns,
            rows: rows.rows.into_iter().map(row).collect(),
            affected: rows.affected,
        }
    }
}

impl From<core_sql::SqlError> for sql::SqlError {
    fn from(error: core_sql::SqlError) -> Self {
        match error {
            core_sql::SqlError::Forbidden(text) => Self::Forbidden(text),
            core_sql::SqlError::Connection(text) => Self::Connection(text),
            core_sql::SqlError::Refused { state, message } => {
                Self::Refused(sql::Refusal { state, message })
            }
            core_sql::SqlError::Timeout(text) => Self::Timeout(text),
            core_sql::SqlError::TooLarge(text) => Self::TooLarge(text),
            core_sql::SqlError::Invalid(text) => Self::Invalid(text),
        }
    }
}

impl From<types::Absence> for outcome::Absence {
    fn from(absence: types::Absence) -> Self {
        Self {
            object: absence.object.into(),
            preconditions: absence
                .preconditions
                .into_iter()
                .map(|precondition| match precondition {
                    types::Precondition::Uid(uid) => outcome::Precondition::Uid(uid),
                    types::Precondition::OwnedBy(uid) => outcome::Precondition::OwnedBy(uid),
                    types::Precondition::Phase(phases) => outcome::Precondition::Phase(phases),
                })
                .collect(),
        }
    }
}

impl From<types::Condition> for outcome::Condition {
    fn from(condition: types::Condition) -> Self {
        Self {
            kind: condition.type_,
            status: match condition.status {
                types::ConditionStatus::True => outcome::ConditionStatus::True,
                types::ConditionStatus::False => outcome::ConditionStatus::False,
                types::ConditionStatus::Unknown => outcome::ConditionStatus::Unknown,
            },
            reason: condition.reason,
            message: message(condition.message),
        }
    }
}
