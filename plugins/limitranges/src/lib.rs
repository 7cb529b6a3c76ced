//! Gives every Profile a LimitRange, from which containers without resource
//! settings get theirs.

mod limit_range;

use std::cmp::Ordering;

use reeve_sdk::prelude::*;

use limit_range::LimitRange;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const LIMIT_RANGE: Kind = Kind::new("v1", "LimitRange");

/// The part of a Profile that is read.
#[input]
struct Profile {
    metadata: Metadata,
}

/// What a container gets that says nothing itself.
#[config]
#[derive(Default)]
struct Config {
    /// Accepted so that one value may be given to all plugins of Profiles: README
    /// and code of the original controller say the same of this one.
    preset: Preset,
    /// Limits.
    default: Resources,
    /// Requests, none above its limit.
    default_request: Resources,
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

/// Amounts for one container.
#[config]
#[derive(Clone)]
struct Resources {
    /// CPU, 250m unless set.
    cpu: String,
    /// Memory, 256M unless set.
    memory: String,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            cpu: "250m".to_owned(),
            memory: "256M".to_owned(),
        }
    }
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    let limits = config.default.amounts("/default")?;
    let requests = config.default_request.amounts("/defaultRequest")?;
    for ((name, limit), (_, request)) in limits.iter().zip(&requests) {
        if request.compare(limit) == Ordering::Greater {
            return Err(ConfigError::new(
                format!("/defaultRequest/{name}"),
                format!("`{request}` is above /default/{name}, `{limit}`; set both"),
            ));
        }
    }
    Ok(Manifest::controller(PROFILE)
        // The name is there in any case; a projection of nothing else keeps every
        // other change of a Profile from running the plugin.
        .projection(["/metadata/name"])
        .writes(LIMIT_RANGE, Scope::NamespaceNamedLikePrimary))
}

impl Resources {
    /// Both amounts with their names. `path` is where they are in the configuration.
    fn amounts(&self, path: &str) -> Result<[(&'static str, Quantity); 2], ConfigError> {
        let amount = |name: &'static str, text: &str| {
            let problem = match text.parse::<Quantity>() {
                Ok(quantity) if quantity.is_negative() => "below zero".to_owned(),
                Ok(quantity) => return Ok((name, quantity)),
                Err(error) => error.to_string(),
            };
            Err(ConfigError::new(format!("{path}/{name}"), problem))
        };
        Ok([amount("cpu", &self.cpu)?, amount("memory", &self.memory)?])
    }
}

fn reconcile(profile: Profile, config: &Config, _: &Context) -> Result<Outcome, Failure> {
    Ok(Outcome::of([LimitRange::new(
        profile.metadata.name,
        &config.default,
        &config.default_request,
    )]))
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
