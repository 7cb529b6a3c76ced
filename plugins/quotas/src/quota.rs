//! The object that is applied.

use std::collections::BTreeMap;

use reeve_sdk::prelude::*;

/// The name of the quota in each profile's namespace.
const NAME: &str = "quotas";

/// A ResourceQuota, as far as this plugin decides it.
#[output]
pub(crate) struct ResourceQuota {
    api_version: &'static str,
    kind: &'static str,
    metadata: QuotaMetadata,
    spec: Spec,
}

#[output]
struct QuotaMetadata {
    name: &'static str,
    namespace: String,
}

#[output]
struct Spec {
    hard: BTreeMap<String, String>,
}

impl ResourceQuota {
    /// The quota with these limits for the namespace of a profile.
    pub(crate) fn new(profile: String, hard: BTreeMap<String, String>) -> Self {
        Self {
            api_version: "v1",
            kind: "ResourceQuota",
            metadata: QuotaMetadata {
                name: NAME,
                namespace: profile,
            },
            spec: Spec { hard },
        }
    }
}
