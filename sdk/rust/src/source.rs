//! Outside documents: declared in the manifest, read through the context.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::json::{self, JsonError};

/// An outside document that a plugin reads.
///
/// ```
/// use reeve_sdk::prelude::*;
/// use std::time::Duration;
///
/// let prices = SourceRule::url("prices", "https://prices.example/v1/all")
///     .describe("prices of all regions")
///     .every(Duration::from_secs(300));
/// let settings = SourceRule::config_map("settings", "shared", "settings", "prices.json");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct SourceRule {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) origin: Origin,
    pub(crate) interval: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Url(String),
    File(String),
    ConfigMap {
        namespace: String,
        name: String,
        key: String,
    },
}

/// Time between two looks, unless a plugin says.
const INTERVAL: Duration = Duration::from_secs(60);

impl SourceRule {
    fn new(name: impl Into<String>, origin: Origin) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            origin,
            interval: INTERVAL,
        }
    }

    /// What an `http` or `https` URL gives, polled with GET.
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, Origin::Url(url.into()))
    }

    /// A file on the agent's machine, or in its pod, by its absolute path.
    pub fn file(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self::new(name, Origin::File(path.into()))
    }

    /// An entry of a ConfigMap. It is watched, and needs no rule in `reads`.
    pub fn config_map(
        name: impl Into<String>,
        namespace: impl Into<String>,
        config_map: impl Into<String>,
        key: impl Into<String>,
    ) -> Self {
        let origin = Origin::ConfigMap {
            namespace: namespace.into(),
            name: config_map.into(),
            key: key.into(),
        };
        Self::new(name, origin)
    }

    /// What the document is, in the words of the operator who grants it.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Looks this often, in whole seconds; the host may look less often. A minute by
    /// default.
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }
}

/// The last good version of an outside document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Its body.
    pub body: Vec<u8>,
    /// Its media type, as the server said it; empty if nobody did.
    pub media_type: String,
}

impl Document {
    /// The body as JSON of this type.
    ///
    /// # Errors
    ///
    /// When it does not fit.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        json::from_slice(&self.body)
    }
}
