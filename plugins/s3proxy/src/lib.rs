//! Gives every Profile that asks for it a proxy for object storage: the Argo CD
//! Application that deploys it, its configuration, and the routes to it.

mod config;
mod nginx;
mod objects;
mod routes;

use reeve_sdk::prelude::*;

use config::{Complete, Config};

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const APPLICATION: Kind = Kind::new("argoproj.io/v1alpha1", "Application");
const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
const VIRTUAL_SERVICE: Kind = Kind::new("networking.istio.io/v1beta1", "VirtualService");

/// The part of a Profile, and of an Application, that is read.
#[input]
struct Named {
    metadata: Metadata,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    let place = || Scope::NamespaceNamedLikePrimary;
    let argocd = || Scope::Namespaces(vec![config.argocd_namespace.clone()]);
    let manifest = Manifest::controller(PROFILE)
        .projection(["/metadata/labels"])
        .writes(APPLICATION, argocd())
        .writes(CONFIG_MAP, place())
        .writes(VIRTUAL_SERVICE, place());
    Ok(match config.keeps_on_opt_out() {
        true => manifest.reads((APPLICATION, argocd())),
        false => manifest,
    })
}

fn reconcile(profile: Named, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let profile = profile.metadata;
    let mut problems = Problems::new();
    let flag = problems.take(profile.flag(&config.enabled_label)).flatten();
    // Who asks for nothing has nothing, and that is meant.
    let mut outcome = Outcome::new().empty_is_meant();
    if flag == Some(true) || stays(&profile, config, cx)? {
        let complete = Complete::of(config).or_terminal(format_args!(
            "the Profile asks for s3proxy by its label {}",
            config.enabled_label
        ))?;
        outcome = outcome
            .object(objects::application(&profile.name, &complete))
            .object(objects::nginx(&profile.name, &complete))
            .object(routes::virtual_service(&profile.name, &complete));
    }
    Ok(outcome.problems("LabelsUsable", "UnusableLabels", &problems))
}

/// Whether a proxy that is no longer asked for is there and stays.
fn stays(profile: &Metadata, config: &Config, cx: &Context) -> Result<bool, Failure> {
    if !config.keeps_on_opt_out() {
        return Ok(false);
    }
    let application = objects::reference(&profile.name, config);
    let found: Option<Named> = cx.get_parts(&application, ["/metadata/labels"])?;
    Ok(found.is_some_and(|found| found.metadata.belongs_to_plugin()))
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
