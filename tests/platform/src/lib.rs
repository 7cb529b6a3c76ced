//! The plugins of Profiles as a platform has them: a real API server with the true kinds,
//! with real databases, storage and gateways around it, and the agent and its plugins as
//! their charts install them.
//!
//! [`Platform`] starts all of it but the agent, [`tenants`] says whose Profiles there are,
//! [`buckets`] what others share with them, and [`values`] what the chart of the plugins is
//! told. What should come of it is not said here: a test that wants to know says it by
//! itself.

mod artifacts;
pub mod buckets;
mod platform;
pub mod tenants;
pub mod values;

use serde_json::Value;

pub use buckets::Bucket;
pub use platform::{DESCRIPTIONS, NAMESPACE, PLUGINS, Platform, absent};
pub use tenants::Tenant;

/// Which description of the controllers is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Their documentation.
    Readme,
    /// Their code.
    Main,
}

/// What is the same for all Profiles.
#[derive(Clone, Debug)]
pub struct World {
    /// What is followed.
    pub preset: Preset,
    /// What others share.
    pub buckets: Vec<Bucket>,
    /// Of the database servers, unclassified first.
    pub ports: [u16; 2],
    /// Groups that support every Profile, as they are configured.
    pub groups: &'static [&'static str],
    /// Who was given the right to edit, by Profile.
    pub editors: Vec<(String, String)>,
    /// Settings of each Plugin object.
    pub plugin: Value,
    /// From where components are pulled; null where they are delivered as ConfigMaps.
    pub artifacts: Value,
}
