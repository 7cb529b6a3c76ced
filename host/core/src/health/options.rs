//! Annotations that change how health is judged.

use super::{Rule, RuleError};
use crate::annotations::{Annotations, Warning};
use serde_json::Value;

/// A rule for this object: one CEL expression, or a JSON object of several. See
/// [`Rule::parse`].
pub const HEALTH_ANNOTATION: &str = "reeve.dev/health";

const IGNORE: [&str; 2] = [
    "reeve.dev/ignore-healthcheck",
    "argocd.argoproj.io/ignore-healthcheck",
];
const IGNORE_RESTART_POLICY: [&str; 2] = [
    "reeve.dev/ignore-restart-policy",
    "argocd.argoproj.io/ignore-restart-policy",
];
const AWAIT_ADDRESS: [&str; 1] = ["reeve.dev/await-address"];

/// What annotations waive or ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Its existence is enough (`ignore-healthcheck`).
    pub ignore: bool,
    /// A Pod that is not restarted for ever is judged as if it were
    /// (`ignore-restart-policy`).
    pub ignore_restart_policy: bool,
    /// Whether an address is waited for (`reeve.dev/await-address`). Without a
    /// choice, a Service of type LoadBalancer waits and an Ingress does not.
    pub await_address: Option<bool>,
}

impl Overrides {
    /// Those of an object: of the desired one, which nobody else writes.
    pub fn of(object: &Value) -> (Self, Vec<Warning>) {
        let annotations = Annotations::of(object);
        let mut warnings = Vec::new();
        let overrides = Self {
            ignore: annotations.flag(&IGNORE, &mut warnings),
            ignore_restart_policy: annotations.flag(&IGNORE_RESTART_POLICY, &mut warnings),
            await_address: annotations.choice(&AWAIT_ADDRESS, &mut warnings),
        };
        (overrides, warnings)
    }
}

impl Rule {
    /// The rule in an object's [`HEALTH_ANNOTATION`], if it has one.
    ///
    /// # Errors
    ///
    /// When it cannot be used.
    pub fn of(object: &Value) -> Result<Option<Self>, RuleError> {
        Annotations::of(object)
            .get(HEALTH_ANNOTATION)
            .map(Self::parse)
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn our_names_win_over_those_of_others() {
        let object = json!({"metadata": {"annotations": {
            "argocd.argoproj.io/ignore-healthcheck": "true",
            "reeve.dev/ignore-restart-policy": "false",
            "argocd.argoproj.io/ignore-restart-policy": "true",
            "reeve.dev/await-address": "perhaps",
        }}});
        let (overrides, warnings) = Overrides::of(&object);
        let expected = Overrides {
            ignore: true,
            ignore_restart_policy: false,
            await_address: None,
        };
        assert_eq!(overrides, expected);
        let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "annotation reeve.dev/await-address: `perhaps`: expected `true` or `false`; it is \
              ignored"
            ]
        );
    }
}
