//! Inside a component: the contract's imports and exports.

pub(crate) mod actions;

use std::panic::{self, PanicHookInfo};

pub(crate) use actions::OutsideBackend;
use bindings::exports::reeve::plugin::controller_api as api;
use bindings::reeve::plugin::{clock, cluster, log as host_log, sources, types};

use crate::action::{Action, ActionRule, GeneratedSecret, SecretPart};
use crate::log::Level;
use crate::manifest::{ReadRule, Scope};
use crate::outcome::{Absence, Condition, Event, Precondition};
use crate::plugin::Plugin;
use crate::source::{Document, Origin, SourceRule};
use crate::{
    ConfigError, Context, Failure, Kind, Manifest, ObjectReference, Outcome, Query, ReadError,
};

#[expect(missing_docs, reason = "generated; the contract is documented in WIT")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "controller",
        pub_export_macro: true,
    });
}

impl<P: Plugin> api::Guest for P {
    fn metadata() -> api::PluginMetadata {
        report_panics();
        let metadata = P::metadata();
        api::PluginMetadata {
            name: metadata.name.to_owned(),
            version: metadata.version.to_owned(),
            config_schema: metadata.config_schema,
        }
    }

    fn describe(config: Vec<u8>) -> Result<api::Manifest, api::ConfigError> {
        report_panics();
        match P::describe(&config) {
            Ok(manifest) => Ok(manifest.into()),
            Err(ConfigError { path, message }) => Err(api::ConfigError { path, message }),
        }
    }

    fn reconcile(request: api::Request) -> Result<api::Outcome, api::Failure> {
        report_panics();
        let facts = request.facts.into_iter();
        let facts = facts.map(|fact| (fact.key, fact.value)).collect();
        let cx = Context {
            backend: Backend { facts },
        };
        match P::reconcile(&request.primary, &request.config, &cx) {
            Ok(outcome) => Ok(outcome.into()),
            Err(Failure::Retry(text)) => Err(api::Failure::Retry(text)),
            Err(Failure::Terminal(text)) => Err(api::Failure::Terminal(text)),
            Err(Failure::NotReady(text)) => Err(api::Failure::NotReady(text)),
        }
    }
}

/// Sends the message of a panic to the host: what follows is a bare trap.
fn report_panics() {
    panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let text = info.payload_as_str().unwrap_or("panicked");
        match info.location() {
            Some(at) => host_log::fault(&format!("{text} ({}:{})", at.file(), at.line())),
            None => host_log::fault(text),
        }
    }));
}

/// The imports of the contract.
#[derive(Debug)]
pub(crate) struct Backend {
    /// What finished actions reported, by key.
    facts: Vec<(String, Vec<u8>)>,
}

impl Backend {
    pub(crate) fn get(
        &self,
        object: &ObjectReference,
        parts: &[String],
    ) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(cluster::get_parts(&object.clone().into(), parts)?)
    }

    pub(crate) fn list(&self, query: &Query) -> Result<Vec<Vec<u8>>, ReadError> {
        Ok(cluster::list(&query.clone().into())?)
    }

    pub(crate) fn list_references(&self, query: &Query) -> Result<Vec<ObjectReference>, ReadError> {
        let found = cluster::list_keys(&query.clone().into())?;
        Ok(found
            .into_iter()
            .map(|found| ObjectReference {
                kind: query.kind.clone(),
                namespace: found.namespace,
                name: found.name,
            })
            .collect())
    }

    pub(crate) fn now(&self) -> u64 {
        clock::now()
    }

    pub(crate) fn source(&self, name: &str) -> Result<Document, ReadError> {
        let document = sources::read(name)?;
        Ok(Document {
            body: document.body,
            media_type: document.media_type,
        })
    }

    pub(crate) fn source_age(&self, name: &str) -> Result<u64, ReadError> {
        Ok(sources::age(name)?)
    }

    pub(crate) fn fact(&self, key: &str) -> Option<&[u8]> {
        let found = self.facts.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_slice())
    }
}

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Debug => host_log::Level::Debug,
        Level::Info => host_log::Level::Info,
        Level::Warn => host_log::Level::Warn,
        Level::Error => host_log::Level::Error,
    };
    host_log::write(level, message);
}

impl From<Kind> for types::GroupVersionKind {
    fn from(kind: Kind) -> Self {
        Self {
            group: kind.group().to_owned(),
            version: kind.version().to_owned(),
            kind: kind.kind().to_owned(),
        }
    }
}

impl From<ObjectReference> for types::ObjectReference {
    fn from(object: ObjectReference) -> Self {
        Self {
            kind: object.kind.into(),
            namespace: object.namespace,
            name: object.name,
        }
    }
}

impl From<Query> for cluster::ListQuery {
    fn from(query: Query) -> Self {
        Self {
            kind: query.kind.into(),
            namespace: query.namespace,
            selector: query.selector,
            projection: query.projection,
        }
    }
}

impl From<cluster::ReadError> for ReadError {
    fn from(error: cluster::ReadError) -> Self {
        match error {
            cluster::ReadError::Forbidden(text) => Self::Forbidden(text),
            cluster::ReadError::Undeclared(text) => Self::Undeclared(text),
            cluster::ReadError::NotSynced(text) => Self::NotSynced(text),
            cluster::ReadError::Invalid(text) => Self::Invalid(text),
        }
    }
}

impl From<Manifest> for types::Manifest {
    fn from(manifest: Manifest) -> Self {
        let primary = manifest.primary;
        Self {
            role: types::Role::Controller(types::PrimaryRule {
                kind: primary.kind.into(),
                selector: primary.selector,
                projection: primary.projection,
            }),
            reads: manifest.reads.into_iter().map(Into::into).collect(),
            writes: manifest
                .writes
                .into_iter()
                .map(|(kind, scope)| types::WriteRule {
                    kind: kind.into(),
                    scope: scope.into(),
                })
                .collect(),
            sources: manifest.sources.into_iter().map(Into::into).collect(),
            actions: manifest.actions.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<sources::SourceError> for ReadError {
    fn from(error: sources::SourceError) -> Self {
        match error {
            sources::SourceError::Forbidden(text) => Self::Forbidden(text),
            sources::SourceError::Undeclared(text) => Self::Undeclared(text),
            sources::SourceError::NotSynced(text) => Self::NotSynced(text),
        }
    }
}

impl From<SourceRule> for types::SourceRule {
    fn from(rule: SourceRule) -> Self {
        Self {
            name: rule.name,
            description: rule.description,
            origin: match rule.origin {
                Origin::Url(url) => types::SourceOrigin::Url(url),
                Origin::File(path) => types::SourceOrigin::File(path),
                Origin::ConfigMap {
                    namespace,
                    name,
                    key,
                } => types::SourceOrigin::ConfigMap(types::ConfigMapEntry {
                    namespace,
                    name,
                    key,
                }),
            },
            interval_seconds: u32::try_from(rule.interval.as_secs()).unwrap_or(u32::MAX),
        }
    }
}

impl From<ActionRule> for types::ActionRule {
    fn from(rule: ActionRule) -> Self {
        Self {
            name: rule.name,
            description: rule.description,
            http: rule.http,
            sql: rule.sql,
            secrets: rule.secrets.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Action> for types::Action {
    fn from(action: Action) -> Self {
        Self {
            key: action.key,
            name: action.name,
            input: action.input,
            secrets: action.secrets.into_iter().map(Into::into).collect(),
            verify_seconds: u32::try_from(action.verify.as_secs()).unwrap_or(u32::MAX),
            retire: action.retire,
        }
    }
}

impl From<GeneratedSecret> for types::GeneratedSecret {
    fn from(secret: GeneratedSecret) -> Self {
        let part = |part| match part {
            SecretPart::Text(text) => types::SecretPart::Text(text),
            SecretPart::Generated => types::SecretPart::Generated,
        };
        let entry = |(key, parts): (String, Vec<SecretPart>)| types::SecretEntry {
            key,
            parts: parts.into_iter().map(part).collect(),
        };
        Self {
            name: secret.name,
            namespace: secret.namespace,
            secret: secret.secret,
            entries: secret.entries.into_iter().map(entry).collect(),
        }
    }
}

impl From<ReadRule> for types::ReadRule {
    fn from(rule: ReadRule) -> Self {
        Self {
            kind: rule.kind.into(),
            scope: rule.scope.into(),
            names: rule.names,
            selector: rule.selector,
        }
    }
}

impl From<Scope> for types::Scope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::PrimaryNamespace => Self::PrimaryNamespace,
            Scope::NamespaceNamedLikePrimary => Self::NamespaceNamedLikePrimary,
            Scope::Namespaces(names) => Self::Namespaces(names),
            Scope::Cluster => Self::Cluster,
        }
    }
}

impl From<Outcome> for types::Outcome {
    fn from(outcome: Outcome) -> Self {
        Self {
            objects: outcome.objects,
            absent: outcome.absent.into_iter().map(Into::into).collect(),
            conditions: outcome.conditions.into_iter().map(Into::into).collect(),
            events: outcome.events.into_iter().map(Into::into).collect(),
            status: outcome.status,
            actions: outcome.actions.into_iter().map(Into::into).collect(),
            next: match outcome.next {
                None => types::Next::OnChange,
                Some(time) => {
                    types::Next::After(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
                }
            },
            empty_is_meant: outcome.empty_is_meant,
        }
    }
}

impl From<Absence> for types::Absence {
    fn from(absence: Absence) -> Self {
        let precondition = |condition| match condition {
            Precondition::Uid(uid) => types::Precondition::Uid(uid),
            Precondition::OwnedBy(uid) => types::Precondition::OwnedBy(uid),
            Precondition::Phase(phases) => types::Precondition::Phase(phases),
        };
        Self {
            object: absence.object.into(),
            preconditions: absence
                .preconditions
                .into_iter()
                .map(precondition)
                .collect(),
        }
    }
}

impl From<Condition> for types::Condition {
    fn from(condition: Condition) -> Self {
        Self {
            type_: condition.kind,
            status: match condition.status {
                Some(true) => types::ConditionStatus::True,
                Some(false) => types::ConditionStatus::False,
                None => types::ConditionStatus::Unknown,
            },
            reason: condition.reason,
            message: condition.message,
        }
    }
}

impl From<Event> for types::Event {
    fn from(event: Event) -> Self {
        Self {
            severity: if event.warning {
                types::Severity::Warning
            } else {
                types::Severity::Normal
            },
            reason: event.reason,
            message: event.message,
        }
    }
}
