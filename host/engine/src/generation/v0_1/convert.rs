//! Requests, manifests and outcomes, from one set of types to the other.

use super::bindings::reeve::plugin::types;
use crate::component::{ConfigError, Request};
use reeve_core::manifest::{RawManifest, RawPrimary, RawRead};
use reeve_core::outcome::{self, Outcome};
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
        .map(|a| a.key.len() + a.name.len() + a.input.len())
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
    primary + reads + writes + texts(&manifest.sources) + texts(&manifest.actions)
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
                group: object.kind.group,
                version: object.kind.version,
                kind: object.kind.kind,
            },
            namespace: object.namespace,
            name: object.name,
        }
    }
}

impl From<types::PluginMetadata> for Metadata {
    fn from(metadata: types::PluginMetadata) -> Self {
        Self {
            name: metadata.name,
            version: metadata.version,
            config_schema: metadata.config_schema,
        }
    }
}

impl From<types::ConfigError> for ConfigError {
    fn from(error: types::ConfigError) -> Self {
        Self {
            path: error.path,
            message: error.message,
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
            sources: names(manifest.sources, |rule| rule.name),
            actions: names(manifest.actions, |rule| rule.name),
        }
    }
}

fn names<T>(rules: Vec<T>, name: impl Fn(T) -> String) -> Vec<String> {
    rules.into_iter().map(name).collect()
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

impl From<types::Failure> for Failure {
    fn from(failure: types::Failure) -> Self {
        match failure {
            types::Failure::Retry(text) => Self::Retry(text),
            types::Failure::Terminal(text) => Self::Terminal(text),
            types::Failure::NotReady(text) => Self::NotReady(text),
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
                    message: event.message,
                })
                .collect(),
            status: outcome.status,
            actions: outcome
                .actions
                .into_iter()
                .map(|action| outcome::Action {
                    key: action.key,
                    name: action.name,
                    input: action.input,
                })
                .collect(),
            next: match outcome.next {
                types::Next::OnChange => outcome::Next::OnChange,
                types::Next::After(millis) => outcome::Next::After(Duration::from_millis(millis)),
            },
            empty_is_meant: outcome.empty_is_meant,
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
            message: condition.message,
        }
    }
}
