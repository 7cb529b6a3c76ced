//! Puts a ConfigMap with a greeting into the namespace of every Profile.

use reeve_sdk::prelude::*;

/// The object for which the plugin runs, as far as it is read.
#[input]
struct Profile {
    metadata: Metadata,
}

/// What `config.yaml` may say; its JSON Schema is made of this.
#[config]
struct Config {
    /// The text of the greeting.
    text: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            text: "hello".to_owned(),
        }
    }
}

/// What the plugin reads and writes: what an operator is asked to grant.
fn manifest(_: &Config) -> Manifest {
    Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
        .projection(["/metadata/name"])
        .writes(
            Kind::new("v1", "ConfigMap"),
            Scope::NamespaceNamedLikePrimary,
        )
}

/// Every object that should exist for one Profile. What it returned before and does not
/// return now is deleted.
fn reconcile(profile: Profile, config: &Config, _: &Context) -> Result<Outcome, Failure> {
    let namespace = profile.metadata.name;
    Ok(Outcome::of([json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "{{name}}", "namespace": namespace},
        "data": {"text": config.text},
    })]))
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
