//! The object that is applied.

use reeve_sdk::prelude::*;

use crate::hard::Limits;

/// The name of the quota in each profile's namespace.
const NAME: &str = "quotas";

/// A ResourceQuota, as far as this plugin decides it.
#[output]
pub(crate) struct ResourceQuota<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: QuotaMetadata,
    spec: Spec<'a>,
}

#[output]
struct QuotaMetadata {
    name: &'static str,
    namespace: String,
}

#[output]
struct Spec<'a> {
    hard: Limits<'a>,
}

impl<'a> ResourceQuota<'a> {
    /// The quota with these limits for the namespace of a profile.
    pub(crate) fn new(profile: String, hard: Limits<'a>) -> Self {
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
