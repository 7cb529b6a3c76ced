//! How fast an autoscaler goes up and down.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Amount, given, read, rename};

/// How fast to go up and down, as the server's own type is written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(in crate::kinds::autoscaling) struct Behavior {
    scale_up: Option<Rules>,
    scale_down: Option<Rules>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Rules {
    stabilization_window_seconds: Option<i32>,
    select_policy: Option<String>,
    policies: Option<Vec<Policy>>,
    tolerance: Option<Amount>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Policy {
    #[serde(rename = "Type")]
    kind: String,
    value: i32,
    period_seconds: i32,
}

/// The names of all fields of [`Behavior`].
const BEHAVIOR: &[&str] = &[
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

impl Behavior {
    /// That of v2, which has the same fields, in small letters.
    pub(in crate::kinds::autoscaling) fn of(behavior: &Value) -> Self {
        let mut behavior = behavior.clone();
        rename(&mut behavior, BEHAVIOR);
        serde_json::from_value(behavior).unwrap_or_default()
    }

    /// That of an annotation, in v2; none where it says nothing.
    pub(in crate::kinds::autoscaling) fn read(text: &str) -> Option<Value> {
        let behavior: Option<Behavior> = read(text, BEHAVIOR, false)?;
        let Behavior {
            scale_up,
            scale_down,
        } = behavior?;
        if scale_up.is_none() && scale_down.is_none() {
            return None;
        }
        let of = |rules: Option<Rules>| json!(rules.as_ref().map(Rules::to_v2));
        Some(given([
            ("scaleUp", of(scale_up)),
            ("scaleDown", of(scale_down)),
        ]))
    }
}

impl Rules {
    fn to_v2(&self) -> Value {
        let policies = self.policies.as_ref().map(|policies| {
            let policy = |policy: &Policy| {
                json!({
                    "type": policy.kind,
                    "value": policy.value,
                    "periodSeconds": policy.period_seconds,
                })
            };
            policies.iter().map(policy).collect::<Vec<_>>()
        });
        given([
            (
                "stabilizationWindowSeconds",
                json!(self.stabilization_window_seconds),
            ),
            ("selectPolicy", json!(self.select_policy)),
            ("policies", json!(policies)),
            ("tolerance", json!(self.tolerance)),
        ])
    }
}
