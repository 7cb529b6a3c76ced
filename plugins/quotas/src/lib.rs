//! Gives every Profile a ResourceQuota, with limits that labels of the Profile
//! override.

mod hard;
mod quota;

use std::collections::BTreeMap;

use reeve_sdk::prelude::*;

use hard::Hard;
use quota::ResourceQuota;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const RESOURCE_QUOTA: Kind = Kind::new("v1", "ResourceQuota");

/// The part of a Profile that is read.
#[input]
struct Profile {
    metadata: Metadata,
}

/// Limits for the profiles of a platform.
#[config]
struct Config {
    /// Accepted so that one value may be given to all plugins of Profiles: README
    /// and code of the original controller say the same of this one.
    preset: Preset,
    /// Limits by resource name. They replace or add to the built-in ones; null
    /// removes one. Each can be overridden for a profile by a label, see
    /// labelPrefix.
    hard: BTreeMap<String, Option<Quantity>>,
    /// What stands before the resource name in a label that overrides a limit,
    /// and before `gpu` in the one for GPUs.
    label_prefix: String,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Default)]
enum Preset {
    /// Its README.
    #[default]
    Readme,
    /// Its code.
    Main,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            hard: BTreeMap::new(),
            label_prefix: "quotas.statcan.gc.ca/".to_owned(),
        }
    }
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    hard::check_limits(&config.hard)?;
    hard::check_prefix(&config.label_prefix)?;
    Ok(Manifest::controller(PROFILE)
        .projection(["/metadata/labels"])
        .writes(RESOURCE_QUOTA, Scope::NamespaceNamedLikePrimary))
}

fn reconcile(profile: Profile, config: &Config, _: &Context) -> Result<Outcome, Failure> {
    // Both mean the same here.
    let (Preset::Readme | Preset::Main) = config.preset;
    let profile = profile.metadata;
    let Hard { limits, unusable } =
        Hard::for_labels(&config.hard, &config.label_prefix, &profile.labels);
    Ok(
        Outcome::of([ResourceQuota::new(profile.name, limits)]).problems(
            "LabelsUsable",
            "UnusableLabels",
            &unusable,
        ),
    )
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
