//! `spec.upgrade` of a `Plugin` in the form in which it is followed.

use crate::problem::Problem;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use reeve_api::{Reason, ShadowMode, UpgradePolicy};
use reeve_core::prune;
use reeve_core::upgrade::{Bound, Bounds};

/// What an upgrade may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpgradeRules {
    pub(super) shadow: ShadowMode,
    pub(super) bounds: Bounds,
}

impl UpgradeRules {
    /// Reads a policy; none is one of which every field is absent.
    pub(super) fn read(
        policy: Option<&UpgradePolicy>,
        withdrawals: &prune::Policy,
    ) -> Result<Self, Problem> {
        let mut bounds = Bounds::of(withdrawals);
        let Some(policy) = policy else {
            return Ok(Self {
                shadow: ShadowMode::default(),
                bounds,
            });
        };
        for (field, text, bound) in [
            ("maxDeleted", &policy.max_deleted, &mut bounds.deleted),
            ("maxChanged", &policy.max_changed, &mut bounds.changed),
            ("maxFailing", &policy.max_failing, &mut bounds.failing),
        ] {
            if let Some(text) = text {
                *bound = parse(field, text)?;
            }
        }
        Ok(Self {
            shadow: policy.shadow.unwrap_or_default(),
            bounds,
        })
    }
}

pub(super) fn parse(field: &str, value: &IntOrString) -> Result<Bound, Problem> {
    let text = match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    text.parse().map_err(|error| {
        let message = format!("spec.upgrade.{field} of the Plugin: {error}");
        Problem::lasting(Reason::PolicyInvalid, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(policy: Value, expected: Result<(ShadowMode, Bounds), &str>) {
        let policy: UpgradePolicy = serde_json::from_value(policy).unwrap();
        let found = UpgradeRules::read(Some(&policy), &prune::Policy::default())
            .map(|rules| (rules.shadow, rules.bounds))
            .map_err(|problem| problem.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn policies_are_read() {
        let defaults = Bounds::of(&prune::Policy::default());
        check(json!({}), Ok((ShadowMode::Enforce, defaults)));
        let bound = |text: &str| text.parse().unwrap();
        check(
            json!({"shadow": "Report", "maxDeleted": 5, "maxChanged": "20%", "maxFailing": "0"}),
            Ok((
                ShadowMode::Report,
                Bounds {
                    deleted: bound("5"),
                    changed: bound("20%"),
                    failing: bound("0"),
                },
            )),
        );
        check(
            json!({"maxDeleted": -1}),
            Err(
                "PolicyInvalid: spec.upgrade.maxDeleted of the Plugin: `-1` is neither a number \
                 such as 20 nor a percentage from 0% to 100%",
            ),
        );
        check(
            json!({"maxFailing": "few"}),
            Err(
                "PolicyInvalid: spec.upgrade.maxFailing of the Plugin: `few` is neither a number \
                 such as 20 nor a percentage from 0% to 100%",
            ),
        );
    }
}
