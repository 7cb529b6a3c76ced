//! Gives every Profile a LimitRange, from which containers without resource
//! settings get theirs.

mod limit_range;

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
    /// Limits.
    default: Resources,
    /// Requests.
    default_request: Resources,
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
    config.default.check("/default")?;
    config.default_request.check("/defaultRequest")?;
    Ok(Manifest::controller(PROFILE)
        // The name is there in any case; a projection of nothing else keeps every
        // other change of a Profile from running the plugin.
        .projection(["/metadata/name"])
        .writes(LIMIT_RANGE, Scope::NamespaceNamedLikePrimary))
}

impl Resources {
    fn check(&self, path: &str) -> Result<(), ConfigError> {
        for (name, text) in [("cpu", &self.cpu), ("memory", &self.memory)] {
            let problem = match text.parse::<Quantity>() {
                Ok(quantity) if quantity.is_negative() => "below zero".to_owned(),
                Ok(_) => continue,
                Err(error) => error.to_string(),
            };
            return Err(ConfigError::new(format!("{path}/{name}"), problem));
        }
        Ok(())
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
