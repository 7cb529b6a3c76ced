//! Installs a platform in packs: sets of Namespaces, Secrets and Flux releases that
//! are wanted together, in the order in which they need one another.
//!
//! The component plays four parts, each as an instance with a configuration and
//! rights of its own, since what one of them needs does not exist before another has
//! run: Pack objects from the desired state, Flux, releases of Flux, and what goes
//! through the charts' own definitions.

mod applyset;
mod catalog;
mod certificate;
mod cloud;
mod configuration;
mod desired_state;
mod documents;
mod findings;
mod flux;
mod forms;
mod front_door;
mod gate;
mod graph;
mod json;
mod keys;
mod kinds;
mod live;
mod pack;
mod releases;
mod render;
mod set;
mod settings;
mod values;

use reeve_sdk::prelude::*;

use json::{Json, is_true, text};
use settings::{Config, Role};

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    Ok(match config.role {
        Role::Releases => releases::manifest(config),
        Role::FrontDoor => front_door::manifest(config),
        Role::Flux => flux::manifest(config),
        Role::DesiredState => set::manifest(config),
    })
}

/// Of a Pack only the name is read: the others say what theirs has to do with it, so it is
/// read with them.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the form of the plugin's function"
)]
fn reconcile(primary: Json, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let Json(primary) = &primary;
    let name = text(primary, "/metadata/name");
    match config.role {
        Role::Releases => releases::reconcile(name, config, cx),
        Role::FrontDoor => front_door::reconcile(name, config, cx),
        Role::Flux => flux::reconcile(name, config, cx),
        Role::DesiredState => set::reconcile(is_true(primary, "/spec/allowEmpty"), config, cx),
    }
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
