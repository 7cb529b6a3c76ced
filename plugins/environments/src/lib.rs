//! Keeps the deployments of a prediction environment as ModelDeployments: the loop of
//! DataRobot's management agent with its supervisor, as a plugin.
//!
//! A PredictionEnvironment names the environment. Its deployments are listed by an outside
//! document; each becomes a ModelDeployment, which the plugin `models` serves. A list that
//! is not whole changes nothing.

mod config;
mod deployment;
mod entry;
mod fields;
mod list;
mod live;
mod names;
mod package;
mod report;
mod wanted;

use reeve_sdk::names::check_label_value;
use reeve_sdk::prelude::*;

use config::Config;
use live::Live;
use names::{ENVIRONMENT, MODEL_DEPLOYMENT};
use package::Index;
use wanted::{Sources, Wanted};

/// The parts of a PredictionEnvironment that are read.
#[input]
struct PredictionEnvironment {
    metadata: Metadata,
    spec: Spec,
}

#[input]
struct Spec {
    id: String,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    let place = || Scope::Namespaces(config.namespaces.clone());
    let manifest = Manifest::controller(ENVIRONMENT)
        .projection(["/spec"])
        .reads((MODEL_DEPLOYMENT, place()))
        .writes(MODEL_DEPLOYMENT, place())
        // Its status.
        .writes(ENVIRONMENT, place());
    let sources = config.sources().into_iter();
    Ok(sources.fold(manifest, Manifest::source))
}

fn reconcile(
    primary: PredictionEnvironment,
    config: &Config,
    cx: &Context,
) -> Result<Outcome, Failure> {
    let Metadata {
        name,
        namespace,
        uid,
        ..
    } = primary.metadata;
    let namespace = namespace.unwrap_or_default();
    let id = primary.spec.id;
    if !config.namespaces.contains(&namespace) {
        return Err(Failure::terminal(format!(
            "namespace {namespace} is not among /namespaces of the configuration ({}); add it, or \
             make the PredictionEnvironment in one of them",
            config.namespaces.join(", ")
        )));
    }
    check_label_value(&id).or_terminal(format_args!("spec.id: `{id}`"))?;
    let list = list::read(config, cx)?;
    let index = Index::read(config, cx)?;
    let live = Live::read(&namespace, &uid, &id, cx)?;
    let sources = Sources {
        supervisor: &config.supervisor,
        index: index.as_ref(),
        live: &live,
    };
    let wanted = Wanted::of(&id, &list, &sources);

    let mut outcome = Outcome::new();
    // A list that has lost all of them may be a mistake. An answer without any object is
    // held by the host until somebody has looked; one with a status would not be empty.
    if !wanted.specs.is_empty() || live.own.is_empty() {
        outcome = report::status(outcome, &name, &namespace, &wanted);
    }
    let Wanted {
        specs, problems, ..
    } = wanted;
    for (name, spec) in specs {
        outcome = outcome.object(spec.object(&name, &namespace, &id));
    }
    Ok(outcome.problems("DeploymentsUsable", "UnusableDeployments", &problems))
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
