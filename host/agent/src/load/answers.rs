//! What a component says of itself, and what is told when it does not.

use crate::calls::PluginThreads;
use crate::config_schema::SchemaError;
use crate::problem::{Problem, chain};
use crate::run::of_fault;
use bytes::Bytes;
use reeve_api::Reason;
use reeve_core::Manifest;
use reeve_core::manifest::{ManifestError, RawManifest, is_dns_label};
use reeve_core::printable::printable;
use reeve_engine::{Component, Counted, Limits, LoadError};

pub(super) async fn call_metadata(
    component: &Component,
    limits: &Limits,
    threads: &PluginThreads,
) -> Result<reeve_core::Metadata, Problem> {
    let call = {
        let (component, limits) = (component.clone(), limits.clone());
        Box::pin(async move { component.metadata(&limits).await })
    };
    let called = threads.run(call).await.map_err(|fault| Problem {
        reason: Reason::MetadataFailed,
        message: of_fault(&fault),
        retries: fault.retries(),
    })?;
    let metadata = called.value;
    if !is_dns_label(&metadata.name) {
        return Err(Problem::lasting(
            Reason::MetadataFailed,
            format!(
                "metadata: name: `{}` is not a DNS-1123 label such as `quotas`",
                metadata.name
            ),
        ));
    }
    Ok(metadata)
}

pub(super) async fn call_describe(
    component: &Component,
    config: &Bytes,
    limits: &Limits,
    threads: &PluginThreads,
) -> Result<RawManifest, Problem> {
    let call = {
        let (component, limits) = (component.clone(), limits.clone());
        let config = config.clone();
        Box::pin(async move { component.describe(config, &limits).await })
    };
    let called = threads.run(call).await.map_err(|fault| Problem {
        reason: Reason::DescribeFailed,
        message: of_fault(&fault),
        retries: fault.retries(),
    })?;
    called.value.map_err(|error| {
        Problem::lasting(
            Reason::ConfigInvalid,
            format!("data[\"config.yaml\"]: {}: {}", error.path, error.message),
        )
    })
}

/// Checks what a component says of itself.
pub(super) fn check_manifest(raw: RawManifest) -> Result<Manifest, Problem> {
    Manifest::try_from(raw).map_err(|error| manifest_problem(&error))
}

pub(super) fn manifest_problem(error: &ManifestError) -> Problem {
    Problem::lasting(
        Reason::ManifestInvalid,
        format!("describe: {}", printable(chain(error))),
    )
}

pub(super) fn config_schema_problem(error: &SchemaError) -> Problem {
    let text = error.to_string();
    match error {
        SchemaError::Schema(_) => Problem::lasting(Reason::MetadataFailed, text),
        SchemaError::Config(_) => Problem::lasting(Reason::ConfigInvalid, text),
        SchemaError::Interrupted(_) => Problem::passing(Reason::MetadataFailed, text),
    }
}

/// What the engine says of a component that was found at this place.
pub(super) fn load_problem(place: &str, error: &LoadError) -> Problem {
    let reason = match error {
        LoadError::TooLarge { .. }
        | LoadError::TooMany { .. }
        | LoadError::BeyondInstance { .. } => Reason::TooLarge,
        LoadError::NotAComponent { .. } => Reason::NotAComponent,
        LoadError::WrongWorld { .. } => Reason::WrongWorld,
        _ => Reason::CompileFailed,
    };
    let message = format!("{place}: {}", chain(error));
    Problem {
        reason,
        message: match limit_of(error) {
            Some(limit) => format!("{message} (`spec.limits.{limit}` of its Plugin)"),
            None => message,
        },
        retries: error.retries(),
    }
}

/// The limit that a component did not keep, as `Plugin.spec.limits` names it.
fn limit_of(error: &LoadError) -> Option<&'static str> {
    Some(match error {
        LoadError::TooLarge { .. } => "componentBytes",
        LoadError::TooMany { what, .. } => match what {
            Counted::Imports => "imports",
            Counted::Exports => "exports",
            Counted::Definitions => "definitions",
            Counted::NameBytes => return None,
        },
        LoadError::CompileTimeout { .. } => "compileMilliseconds",
        LoadError::CompileMemory { .. } => "compileMemoryBytes",
        _ => return None,
    })
}
