//! What the macro line of a plugin expands to.

use serde::de::DeserializeOwned;

use crate::action::{Actuation, Completion};
use crate::json;
use crate::manifest::IntoManifest;
use crate::outside::Outside;
use crate::schema::ConfigSchema;
use crate::{ConfigError, Context, Failure, Manifest, Outcome};

/// A plugin with the types of its primary and configuration rubbed off: bytes in,
/// desired objects out. [`plugin!`](crate::plugin) implements it; tests may call
/// it to run a plugin from end to end.
pub trait Plugin {
    /// Who the plugin is.
    fn metadata() -> PluginMetadata;

    /// What the plugin wants to do under this configuration, one JSON text.
    ///
    /// # Errors
    ///
    /// When the configuration makes no sense.
    fn describe(config: &[u8]) -> Result<Manifest, ConfigError>;

    /// What should exist for this primary, one JSON text like the configuration.
    ///
    /// # Errors
    ///
    /// As the plugin says, and terminal when the primary or the configuration
    /// does not fit its type.
    fn reconcile(primary: &[u8], config: &[u8], cx: &Context) -> Result<Outcome, Failure>;
}

/// A plugin with outside effects. [`plugin!`](crate::plugin) with three functions
/// implements it.
pub trait Actuates: Plugin {
    /// Does something about an outside effect; the configuration is one JSON text.
    ///
    /// # Errors
    ///
    /// As the plugin says, and terminal when the configuration does not fit its type.
    fn actuate(call: &Actuation, config: &[u8], outside: &Outside) -> Result<Completion, Failure>;
}

/// Who a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginMetadata {
    /// Name of the component, for people.
    pub name: &'static str,
    /// Version of the component, for people: semantic versioning 2.0 by convention.
    pub version: &'static str,
    /// JSON Schema (draft 2020-12) of the configuration.
    pub config_schema: Vec<u8>,
}

/// [`Plugin::metadata`] for a plugin whose `manifest` is this function. Here and
/// below, the types are found from the signatures of the plugin's functions.
pub fn metadata<C: ConfigSchema, M>(
    _manifest: fn(&C) -> M,
    name: &'static str,
    version: &'static str,
) -> PluginMetadata {
    PluginMetadata {
        name,
        version,
        config_schema: C::SCHEMA.to_json(),
    }
}

/// [`Plugin::describe`] for a plugin whose `manifest` is this function.
///
/// # Errors
///
/// When the configuration does not fit its type or makes no sense.
pub fn describe<C: DeserializeOwned, M: IntoManifest>(
    manifest: fn(&C) -> M,
    config: &[u8],
) -> Result<Manifest, ConfigError> {
    let config = json::from_slice(config)
        .map_err(|error| ConfigError::new(error.path(), error.message()))?;
    manifest(&config).into_manifest()
}

/// [`Plugin::reconcile`] for a plugin whose `reconcile` is this function.
///
/// # Errors
///
/// Those of [`Plugin::reconcile`].
pub fn reconcile<P: DeserializeOwned, C: DeserializeOwned>(
    reconcile: fn(P, &C, &Context) -> Result<Outcome, Failure>,
    primary: &[u8],
    config: &[u8],
    cx: &Context,
) -> Result<Outcome, Failure> {
    let primary = json::from_slice(primary).map_err(|error| {
        Failure::Terminal(format!("the primary has an unexpected form: {error}"))
    })?;
    let config = json::from_slice(config).map_err(|error| {
        Failure::Terminal(format!("the configuration has an unexpected form: {error}"))
    })?;
    let outcome = reconcile(primary, &config, cx)?;
    match outcome.unwritable {
        Some(problem) => Err(Failure::Terminal(problem)),
        None => Ok(outcome),
    }
}

/// [`Actuates::actuate`] for a plugin whose `actuate` is this function.
///
/// # Errors
///
/// Those of [`Actuates::actuate`].
pub fn actuate<C: DeserializeOwned>(
    actuate: fn(&Actuation, &C, &Outside) -> Result<Completion, Failure>,
    call: &Actuation,
    config: &[u8],
    outside: &Outside,
) -> Result<Completion, Failure> {
    let config = json::from_slice(config).map_err(|error| {
        Failure::Terminal(format!("the configuration has an unexpected form: {error}"))
    })?;
    let completion = actuate(call, &config, outside)?;
    match completion.unwritable {
        Some(problem) => Err(Failure::Terminal(problem)),
        None => Ok(completion),
    }
}
