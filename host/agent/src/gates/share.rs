//! `spec.upgrade.canary` of a `Plugin` in the form in which it is followed.

use super::policy::parse;
use crate::problem::Problem;
use reeve_api::PluginSpec;
use reeve_core::upgrade::Bound;
use std::time::Duration;

/// For how long where the policy does not say: some polls of whatever looks at the
/// fleet.
const TIME: Duration = Duration::from_secs(600);

/// Which units get a new version first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CanaryRules {
    pub(crate) units: Bound,
    pub(crate) time: Duration,
    pub(crate) failing: Bound,
}

impl CanaryRules {
    /// What a policy says; none where all units get a new version at once.
    pub(crate) fn read(spec: &PluginSpec) -> Result<Option<Self>, Problem> {
        let upgrade = spec.upgrade.as_ref();
        let Some(policy) = upgrade.and_then(|upgrade| upgrade.canary.as_ref()) else {
            return Ok(None);
        };
        let failing = policy.max_failing.as_ref();
        let failing = failing.map(|bound| parse("canary.maxFailing", bound));
        let seconds = policy.seconds.map(u64::from);
        Ok(Some(Self {
            units: parse("canary.units", &policy.units)?,
            time: seconds.map_or(TIME, Duration::from_secs),
            failing: failing.transpose()?.unwrap_or(Bound {
                count: Some(0),
                percent: None,
            }),
        }))
    }

    /// Whether so many of so many are too many.
    pub(crate) fn is_exceeded(&self, failing: usize, units: usize) -> bool {
        let counted = self.failing.count.is_some_and(|count| failing > count);
        let shared = self
            .failing
            .percent
            .is_some_and(|percent| failing * 100 > units * usize::from(percent));
        counted || shared
    }
}
