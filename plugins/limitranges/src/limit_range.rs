//! The object that is applied.

use reeve_sdk::prelude::*;

use crate::Resources;

/// The name of the limit range in each profile's namespace.
const NAME: &str = "default-container-limits";

/// A LimitRange, as far as this plugin decides it.
#[output]
pub(crate) struct LimitRange<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: RangeMetadata,
    spec: Spec<'a>,
}

#[output]
struct RangeMetadata {
    name: &'static str,
    namespace: String,
}

#[output]
struct Spec<'a> {
    limits: [Limit<'a>; 1],
}

#[output]
struct Limit<'a> {
    r#type: &'static str,
    default: Amounts<'a>,
    default_request: Amounts<'a>,
}

#[output]
struct Amounts<'a> {
    cpu: &'a str,
    memory: &'a str,
}

impl<'a> LimitRange<'a> {
    /// The limit range for the namespace of a profile.
    pub(crate) fn new(profile: String, limits: &'a Resources, requests: &'a Resources) -> Self {
        Self {
            api_version: "v1",
            kind: "LimitRange",
            metadata: RangeMetadata {
                name: NAME,
                namespace: profile,
            },
            spec: Spec {
                limits: [Limit {
                    r#type: "Container",
                    default: limits.into(),
                    default_request: requests.into(),
                }],
            },
        }
    }
}

impl<'a> From<&'a Resources> for Amounts<'a> {
    fn from(resources: &'a Resources) -> Self {
        Self {
            cpu: &resources.cpu,
            memory: &resources.memory,
        }
    }
}
